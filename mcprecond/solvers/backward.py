"""What the residual of a vector says: by how much the system would have to change for the vector to solve it, and how
large its error is at least.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mcprecond.linalg.accurate import find_accurate_residual
from mcprecond.linalg.csr import product_with
from mcprecond.linalg.sums import total, wide
from mcprecond.matrix import AdmittedMatrix


def find_backward_error(matrix: AdmittedMatrix, b: Any, x: Any) -> float:
    """``||b - A x|| / (||A|| ||x|| + ||b||)`` in maximum norms, for one right-hand side (Rigal, Gaches 1967)."""
    if not len(b):
        return 0.0
    xp = matrix.backend.xp
    x = xp.asarray(x)
    with np.errstate(all="ignore"):
        of_A = (wide_magnitudes(matrix) @ xp.ones(len(b))).max()
        return largest_ratio(abs(accurate_residual(matrix, b, x)).max(), of_A * abs(wide(x)).max() + abs(wide(b)).max())


def find_componentwise_error(matrix: AdmittedMatrix, b: Any, x: Any) -> float:
    """The largest ``|b - A x|_i / (|A| |x| + |b|)_i``, for one right-hand side (Oettli, Prager 1964)."""
    if not len(b):
        return 0.0
    x = matrix.backend.xp.asarray(x)
    with np.errstate(all="ignore"):
        sizes = wide_magnitudes(matrix) @ abs(wide(x)) + abs(wide(b))
        return largest_ratio(abs(accurate_residual(matrix, b, x)), sizes)


def energy_of(matrix: AdmittedMatrix, b: Any, x: Any, r: Any) -> float:
    """x'(b + r) with the residual r of x: ||x*||_A^2 - ||x* - x||_A^2 for a Hermitian A and its solution x*."""
    x = matrix.backend.xp.asarray(x)
    with np.errstate(all="ignore"):
        return float(total((wide(x).conj() * (wide(b) + r)).real, matrix.backend))


def least_energy(matrix: AdmittedMatrix, r: Any) -> float:
    """r'inv(D) r / m with the diagonal D of A and the number m of entries of the longest row: a lower bound of the
    square of the error's energy norm.

    As A is positive definite, |a_ij| <= sqrt(a_ii a_jj). So no eigenvalue of inv(sqrt(D)) A inv(sqrt(D)) is above m.
    """
    scales = scales_of(matrix)
    with np.errstate(all="ignore"):
        squares = (abs(wide(r)) / matrix.backend.xp.where(scales > 0, scales, np.inf)) ** 2
        return float(total(squares, matrix.backend)) / (matrix.max_degree + 1)


def least_error(matrix: AdmittedMatrix, x: Any, r: Any) -> float:
    """The square of the energy norm that the error of x has at least, by its residual r and by the rounding of each
    number of x.
    """
    x = matrix.backend.xp.asarray(x)
    with np.errstate(all="ignore"):
        of_rounding = (float(np.finfo(x.dtype).eps) * abs(wide(x)) * scales_of(matrix)) ** 2
        return max(least_energy(matrix, r), float(total(of_rounding, matrix.backend)))


def scales_of(matrix: AdmittedMatrix) -> Any:
    """The square roots of the magnitudes on the diagonal of A, in double precision."""
    return matrix.backend.xp.sqrt(wide(abs(matrix.canonical().diagonal())))


def accurate_residual(matrix: AdmittedMatrix, b: Any, x: Any) -> Any:
    """b - A x in the dtype of A, rounded once."""
    xp, dtype = matrix.backend.xp, matrix.dtype
    if (x.dtype.kind == "c" and dtype.kind != "c") or x.dtype.itemsize > dtype.itemsize:
        matrix = replace(matrix, csr=matrix.csr.astype(x.dtype))
        dtype = x.dtype
    A, r = product_with(matrix), xp.empty(len(b), dtype)
    x, b = (xp.ascontiguousarray(v.astype(dtype, copy=False)) for v in (x, b))
    find_accurate_residual(A, x, b, r, matrix.backend)
    return r


def wide_magnitudes(matrix: AdmittedMatrix) -> Any:
    """The magnitudes of the entries of A in double precision."""
    return matrix.magnitudes().astype(np.float64)


def largest_ratio(above: Any, below: Any) -> float:
    """The largest quotient, 0 where both are 0."""
    return float((above / (below + (above == 0))).max())
