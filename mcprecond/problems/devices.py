"""Matrices and vectors of SciPy and NumPy on a device, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse


def on(device: str, *objects: Any) -> Any:
    """Each matrix or array where the device has it: as it is on the CPU, as CuPy's on a GPU."""
    if device == "cpu":
        return objects if len(objects) > 1 else objects[0]
    from cupyx.scipy.sparse import csr_matrix

    asarray = library(device).asarray
    moved = [csr_matrix(each) if scipy.sparse.issparse(each) else asarray(each) for each in objects]
    return moved if len(moved) > 1 else moved[0]


def library(device: str) -> Any:
    """NumPy, or CuPy for a GPU."""
    if device == "cpu":
        return np
    import cupy

    return cupy


def to_host(array: Any) -> np.ndarray:
    """An array as NumPy's."""
    return np.asarray(array.get() if hasattr(array, "get") else array)
