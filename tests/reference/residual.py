"""Residuals by rational numbers, whose only rounding is the last one."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np


def residual(A: Any, b: Any, x: Any) -> np.ndarray:
    """b - A x of real or complex arrays, rounded once to double precision; A is sparse."""
    if any(v.dtype.kind == "c" for v in (A, b, x)):
        (Ar, Ai), (br, bi), (xr, xi) = ((v.real, v.imag) for v in (A, b, x))
        stacked = [
            residual(sparse_sum(Ar, -Ai), br, np.concatenate([xr, xi])),
            residual(sparse_sum(Ai, Ar), bi, np.concatenate([xr, xi])),
        ]
        return stacked[0] + 1j * stacked[1]
    csr, values = A.tocsr(), [Fraction(float(value)) for value in x]
    found = []
    for i in range(csr.shape[0]):
        total = Fraction(float(b[i]))
        for k in range(csr.indptr[i], csr.indptr[i + 1]):
            total -= Fraction(float(csr.data[k])) * values[csr.indices[k]]
        found.append(float(total))
    return np.array(found)


def sparse_sum(left: Any, right: Any) -> Any:
    """Two sparse matrices side by side."""
    import scipy.sparse as sp

    return sp.hstack([left, right], format="csr")


def norm(v: Any) -> float:
    """The Euclidean norm, wherever squares would overflow or underflow."""
    largest = float(np.abs(v).max()) if v.size else 0.0
    return largest * float(np.linalg.norm(v / largest)) if largest > 0 else 0.0
