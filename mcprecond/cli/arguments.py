"""What the arguments of commands stand for: the device, a coloring, and files that are read and written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io

import mcprecond
from mcprecond.backends import Backend, get_backend, gpu_problem
from mcprecond.backends.arguments import one_of
from mcprecond.problems.files import columns, matrix_market, npz
from mcprecond.studies.whole_files import write_whole
from mcprecond.typing import ColoringMethod

#: So far, relative to the largest entry, may a matrix be from symmetric: files are rounded.
SYMMETRY = 1e-8


def backend_for(gpu: bool) -> Backend:
    """The device that a command was asked to run on."""
    if gpu and (problem := gpu_problem()):
        raise ValueError(f"--gpu cannot be used: {problem}")
    return get_backend("gpu" if gpu else "cpu")


def coloring_method(name: str, option: str) -> ColoringMethod:
    """The method that an option names."""
    known: list[ColoringMethod] = [*mcprecond.COLORINGS, "auto"]
    return one_of(name, option, known)


def read(file: Path) -> Any:
    """The matrix in a file, by its ending."""
    if file.name.endswith((".mtx", ".mtx.gz")):
        return matrix_market(file)
    if file.suffix == ".npz":
        return npz(file)
    raise ValueError(f"{file} must end in .mtx, .mtx.gz or .npz")


@np.errstate(over="ignore")
def is_symmetric(A: Any, file: Path) -> bool:
    """Whether conjugate gradients can be tried on a matrix, which has to be square and finite: it is symmetric, or
    Hermitian.
    """
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"{file} holds a matrix of shape {A.shape}; it must be square")
    largest = abs(A.data).max(initial=0.0)
    if not np.isfinite(largest):
        raise ValueError(f"{file} holds a NaN or an infinity; every value must be finite")
    return not A.nnz or bool(abs(A - A.conj().T).max() <= SYMMETRY * largest)


def symmetric(A: Any, file: Path) -> Any:
    """Return a matrix that conjugate gradients can be tried on."""
    if not is_symmetric(A, file):
        needed = "Hermitian" if A.dtype.kind == "c" else "symmetric"
        raise ValueError(f"{file} holds a matrix that is not {needed}; conjugate gradients need a {needed} one")
    return A


def null_space(given: str | None) -> Any:
    """What --nullspace names: "constant", "detect", or the columns in a file."""
    return given if given in (None, "constant", "detect") else columns(Path(given))


def check_output(file: Path | None, *suffixes: str) -> None:
    """Before the work, not after it."""
    if file is not None and file.suffix not in suffixes:
        raise ValueError(f"--output must end in {' or '.join(suffixes)}, got {file}")
    if file is not None and not file.parent.is_dir():
        raise ValueError(f"--output: there is no folder {file.parent}")
    if file is not None and (file.is_dir() or not os.access(file if file.exists() else file.parent, os.W_OK)):
        raise ValueError(f"--output: {file} cannot be written")


def write(file: Path, values: np.ndarray) -> None:
    """Write a vector, by the ending of the file."""
    with write_whole(file) as part, part.open("wb") as stream:  # a path might get another ending
        if file.suffix == ".txt":
            np.savetxt(stream, values, fmt="%d")
        elif file.suffix == ".mtx":
            scipy.io.mmwrite(stream, values[:, None], precision=17)
        else:
            np.save(stream, values)
