"""The range of floats: A scaled by powers of two, matrices in a narrower dtype, and diagonals that cancel."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mcprecond.backends import NUMBERS, Backend, KernelSet
from mcprecond.backends.inputs import any_of, first_place
from mcprecond.linalg.csr import Csr, product_with
from mcprecond.matrix import AdmittedMatrix, canonical_csr, diagonal_places, place_of, rows_of

KERNELS = KernelSet(__file__, "VALUE STORED")

#: ``units(A)`` returns the scales of A that make units equal.
Units = Callable[[AdmittedMatrix], Any]

#: A coarse diagonal entry counts as canceled below so many units of rounding times what it would be without couplings.
CANCELED = 100
#: Nor is a coarse diagonal entry below so many times the least normal number of the narrowest dtype.
ROOM = 2.0**20
#: The largest ratio of diagonal entries for which levels compute in single precision. With larger ratios, as where
#: coefficients jump, the rounding may cost CG many iterations.
MOST_CONTRAST = 1e6
#: A row of A x counts as zero if it is at most this share of a_ii x_i.
SMALL_SUM = 0.1
#: A diagonal counts as even up to this ratio of its largest entry to the smallest one.
MOST_EVEN = 4
#: Let s be a vector of scales. If A s is about zero in a share of the rows below FEW_ROWS, the scales are relaxed by
#: Jacobi's method. The relaxed scales are used if A s is then about zero in a share of the rows above MOST_ROWS.
FEW_ROWS, MOST_ROWS = 0.75, 0.9
#: The number of Jacobi steps for the scales and their damping factor. A scale stays above LEAST_LEFT times its start.
STEPS, DAMPING, LEAST_LEFT = 20, 2 / 3, 1e-6
NOT_DEFINITE = "so A is not positive definite; use minres if A is symmetric, or ILU0 with gmres"


def scales_of(matrix: AdmittedMatrix, narrowest: Any) -> Any:
    """Return the powers of two s that make the diagonal of diag(s) A diag(s) about 1, as float64, shape (n,).

    None where the diagonal is so far from overflow and underflow in the narrowest dtype of a hierarchy that products
    and sums are, too.
    """
    xp, (least, most) = matrix.backend.xp, (math.frexp(extreme)[1] for extreme in matrix.extremes)
    near = np.finfo(narrowest).maxexp // 3
    if -near <= least and most <= near:
        return None
    return xp.ldexp(1.0, -(xp.frexp(matrix.diagonal().real.astype(np.float64))[1] // 2))


def inverse_roots(matrix: AdmittedMatrix) -> Any:
    """1 / sqrt(a_ii), in double precision."""
    return 1 / matrix.backend.xp.sqrt(matrix.diagonal().real.astype(np.float64, copy=False))


def relaxed_roots(matrix: AdmittedMatrix) -> Any:
    """Start with 1 / sqrt(a_ii), take some steps of Jacobi's method for A x = 0, and return x, which stays positive.

    Where both units and coefficients differ, the diagonal shows neither of them. But in equal units constants are in
    the near-null space: A x is small for the vector x that scales to a constant, and Jacobi's steps reduce the local
    errors of x.
    """
    A, roots, xp = product_with(matrix), inverse_roots(matrix), matrix.backend.xp
    diagonal = matrix.diagonal().real.astype(np.float64)
    x = roots = roots / roots.max()
    with np.errstate(all="ignore"):
        for _ in range(STEPS):
            x = xp.maximum(x - DAMPING * A.times(x.astype(matrix.dtype)).real / diagonal, LEAST_LEFT * roots)
    return x


def find_units(matrix: AdmittedMatrix) -> tuple[Units | None, Any]:
    """Find scales s so that the units of diag(s) A diag(s) are equal. Return the function that computes them, which is
    `inverse_roots` or `relaxed_roots`, and its result for A, whose features are known; or None twice if the units of A
    are equal.

    The units are taken to differ if the diagonal varies, and if A s is about zero in more rows than A times the vector
    of ones. Where constants are in the near-null space, the latter is about zero. If neither is about zero in most
    rows, `relaxed_roots` is tried.
    """
    if is_even(matrix):
        return None, None
    of_ones, of_roots = matrix.findings.of_ones, matrix.findings.of_roots
    if max(of_ones, of_roots) < FEW_ROWS and share_of_small(matrix, relaxed := relaxed_roots(matrix)) > MOST_ROWS:
        return relaxed_roots, relaxed
    return (inverse_roots, inverse_roots(matrix)) if of_roots > of_ones else (None, None)


def is_even(matrix: AdmittedMatrix) -> bool:
    """Whether the entries of a positive diagonal are of about the same size."""
    least, largest = (float(extreme) for extreme in matrix.extremes)
    return largest <= MOST_EVEN * least


def share_of_small(matrix: AdmittedMatrix, x: Any) -> float:
    """The share of rows in which A x is about zero."""
    product = product_with(matrix).times(x.astype(matrix.dtype, copy=False))
    return float((abs(product) <= SMALL_SUM * matrix.diagonal().real * x).mean())


def has_contrasts(matrix: AdmittedMatrix) -> bool:
    """Whether entries of a positive diagonal differ so much that levels should have the dtype of A."""
    least, largest = matrix.extremes
    return bool(largest / MOST_CONTRAST > least)


def scale_matrix(matrix: AdmittedMatrix, scales: Any) -> AdmittedMatrix:
    """diag(s) A diag(s)."""
    csr = matrix.csr
    rows = rows_of(csr.indptr, csr.indices, matrix.backend.xp)
    return _with_values(matrix, (csr.data * scales[rows] * scales[csr.indices]).astype(csr.dtype))


def scale_candidates(B: Any, scales: Any) -> Any:
    """The near-null space of diag(s) A diag(s) for that of A, up to a factor."""
    least, most = (math.frexp(float(extreme))[1] for extreme in (scales.min(), scales.max()))
    return (B * (2.0 ** ((least + most) // 2) / scales)[:, None]).astype(B.dtype)


def _with_values(matrix: AdmittedMatrix, values: Any) -> AdmittedMatrix:
    """Those values in the pattern of a matrix; nobody else changes them."""
    csr = canonical_csr(values, matrix.csr.indices, matrix.csr.indptr, matrix.shape, matrix.backend)
    return matrix.renewed(csr=csr, is_hermitian=False, largest=None, is_ours=True, findings=None, features=None)


class Narrowing:
    """Converts the matrices of levels to narrower dtypes, and checks all of them at once, so that the host waits once.

    Parameters
    ----------
    backend : Backend
    why_not : str
        The end of error messages.
    """

    def __init__(self, backend: Backend, why_not: str) -> None:
        self._flaws, self._why_not = backend.zeros(2, np.int32), why_not
        self._narrowed: list[tuple[int, AdmittedMatrix, AdmittedMatrix]] = []

    def narrow(self, matrix: AdmittedMatrix, dtype: Any, level: int, before: Any = None) -> AdmittedMatrix:
        """Return the matrix of a level in another dtype, with zeros in place of entries that underflow there. Its
        values replace those of `before`, an array that is no longer needed, if that has this dtype.
        """
        if matrix.dtype == dtype:
            return matrix
        info, backend = np.finfo(dtype), matrix.backend
        narrow = backend.xp.empty(matrix.data.size, dtype) if before is None or before.dtype != dtype else before
        parts, of_matrix = narrow.view(info.dtype), matrix.data.view(np.finfo(matrix.dtype).dtype)
        run = backend.kernels(KERNELS, VALUE=matrix.dtype, STORED=np.dtype(dtype))
        run.narrow_numbers(len(parts), of_matrix, float(info.tiny), float(info.max), parts, self._flaws)
        self._narrowed.append((level, matrix, _with_values(matrix, narrow)))
        return self._narrowed[-1][-1]

    def keep_narrow(self) -> None:
        """Let the coarse matrices have their narrower values, so that the others are freed."""
        for level, matrix, narrow in self._narrowed:
            if level > 0:  # the finest one is the user's
                matrix.csr.data = narrow.data

    def refuse_lost(self) -> None:
        """Raise ValueError if an entry is too large for its dtype, or one of a diagonal too small; names the level and
        the row.
        """
        if not self._narrowed:
            return
        _, first, _ = self._narrowed[0]
        if not first.backend.to_host(self._flaws).any():
            return
        for level, matrix, narrow in self._narrowed:
            if (entry := lost_entry(matrix, narrow)) is not None:
                row, column = place_of(matrix.csr, entry, matrix.backend)
                raise ValueError(
                    f"the matrix of level {level} holds {matrix.data[entry].item():.3g} in row {row}, column {column}, "
                    f"which {narrow.dtype} has no room for, {self._why_not}"
                )


def lost_entry(matrix: AdmittedMatrix, narrow: AdmittedMatrix) -> int | None:
    """Return the place of an entry of a matrix that is too large for the narrower dtype, or of one of the diagonal that
    is too small; None if there is none.
    """
    xp, of_matrix = matrix.backend.xp, matrix.data.view(np.finfo(matrix.dtype).dtype)
    if any_of(~xp.isfinite(narrow.data)):
        return int(abs(of_matrix).argmax()) * matrix.data.size // of_matrix.size
    row = first_place((narrow.diagonal() == 0) & (matrix.diagonal() != 0), xp)
    return None if row is None else int(diagonal_places(matrix.csr, xp.asarray([row]), matrix.backend)[0])


def without_couplings(R: Any, diagonal: Any, backend: Backend) -> Any:
    """The diagonal of R A P if A has nothing but this one."""
    squares = abs(R.data).astype(diagonal.dtype) ** 2
    return Csr(canonical_csr(squares, R.indices, R.indptr, R.shape, backend), backend).times(diagonal)


def refuse_indefinite(coarse: AdmittedMatrix, R: Any, A: AdmittedMatrix, level: int, narrowest: Any) -> None:
    """Raise ValueError if a coarse matrix R A P has a negative diagonal entry.

    Where the sum that makes an entry cancels to rounding, as where A is singular, the coarse unknown stands for a
    vector of the null space. Its entry becomes that of a row without couplings, so that there is hardly a correction.
    The same happens where the narrowest dtype of the hierarchy has no room for it.
    """
    rounding, least = CANCELED * float(np.finfo(coarse.dtype).eps), ROOM * float(np.finfo(narrowest).tiny)
    if coarse.extremes[0] > max(rounding * A.extremes[1], least):
        return
    xp, pivots = coarse.backend.xp, coarse.diagonal().real
    uncoupled = without_couplings(R, A.diagonal().real, coarse.backend)
    row = first_place(~(pivots >= -rounding * uncoupled), xp)
    if row is not None:
        raise ValueError(
            f"the matrix of level {level} has {pivots[row].item():.3g} on the diagonal in row {row}, {NOT_DEFINITE}"
        )
    vanished = xp.flatnonzero((pivots <= rounding * uncoupled) | (pivots < least))
    filled = xp.maximum(uncoupled, least)[vanished]
    coarse.data[diagonal_places(coarse.csr, vanished, coarse.backend)] = coarse.diagonal()[vanished] = filled


@KERNELS.per_item(grain=NUMBERS)
def narrow_numbers(first, end, numbers, least, most, narrow, flaws):
    """Convert numbers to a narrower dtype, with zeros in place of magnitudes below `least`.

    Set ``flaws[0]`` if a number that is not zero became zero, and ``flaws[1]`` if one is NaN or larger than `most`.
    """
    any_lost = any_beyond = False
    for k in range(first, end):
        size = abs(numbers[k])
        narrow[k] = 0 if size < least else numbers[k]
        any_lost |= 0 < size < least
        any_beyond |= not size <= most
    if any_lost:
        flaws[0] = 1
    if any_beyond:
        flaws[1] = 1
