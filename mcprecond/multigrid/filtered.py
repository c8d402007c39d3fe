"""The filtered matrix, which smooths prolongators: A without weak entries, and still with its near-null space.

A weak entry a_ij goes to the diagonal as ``a_ij B_j / B_i``, so that the filtered matrix times B is A B. Prolongators
then reach along strong connections only, and coarse matrices stay sparse.

Vanek, Mandel, Brezina: Algebraic Multigrid by Smoothed Aggregation for Second and Fourth Order Elliptic Problems,
Computing 56, 1996, eq. (6), which has it for a constant B.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_inlined
from mcprecond.backends.cuda_source import WARP
from mcprecond.linalg.csr import lanes_for
from mcprecond.matrix import AdmittedMatrix

KERNELS = KernelSet(__file__, "OFFSET VALUE LANES")

#: The number of threads per row is chosen so that each loads about PER_LANE entries of an average row, but at least two
#: threads share a row. These kernels wait for memory most of the time. With fewer threads per row, more rows are loaded
#: at the same time.
PER_LANE = 8


class FilteredMatrix:
    """The filtered matrix of a level: its pattern once, its values again and again.

    Parameters
    ----------
    matrix : AdmittedMatrix
        A, canonical.
    indptr, indices : arrays
        Its pattern, see `Connections`. If that has all entries of A the filtered matrix is A.
    B : array, shape (n, 1)
        The candidate.
    """

    def __init__(self, matrix: AdmittedMatrix, indptr: Any, indices: Any, B: Any) -> None:
        self.indptr, self.indices = indptr, indices
        self._is_whole = len(indices) == matrix.indices.size
        self.take_candidate(B)

    def take_candidate(self, B: Any) -> None:
        """Take another candidate."""
        self._B = None if self._is_whole else B.reshape(-1)

    def values(self, matrix: AdmittedMatrix) -> tuple[Any, Any]:
        """Return its values for those of A, and its inverse row sums."""
        if self._is_whole:
            return matrix.data, inverse_row_sums(matrix)
        xp, n = matrix.backend.xp, matrix.shape[0]
        values, sums = xp.empty(len(self.indices), matrix.dtype), xp.empty(n, matrix.dtype)
        arrays = matrix.indptr, matrix.indices, matrix.data, self._B, self.indptr, self.indices, values, sums
        kernels_for(matrix).filter_rows(n, *arrays)
        return values, sums


def inverse_row_sums(matrix: AdmittedMatrix) -> Any:
    """Return ``1 / sum_j |a_ij|`` for each row, 0 for a row of zeros.

    Let D be the diagonal matrix of these numbers. By Gershgorin's theorem, the eigenvalues of ``D A`` are at
    most 1 in magnitude.
    """
    sums = matrix.backend.xp.empty(matrix.shape[0], matrix.dtype)
    kernels_for(matrix).invert_row_sums(len(sums), matrix.indptr, matrix.data, sums)
    return sums


def bounded_inverse_diagonal(matrix: AdmittedMatrix) -> Any:
    """Return ``1 / a_ii`` for each row, or ``2 / sum_j |a_ij|`` where that is smaller in magnitude.

    Let D be the diagonal matrix of these numbers. By Gershgorin's theorem, the eigenvalues of ``D A`` are at
    most 2 in magnitude.
    """
    weights = matrix.backend.xp.empty(matrix.shape[0], matrix.dtype)
    arrays = matrix.indptr, matrix.data, matrix.diagonal(), weights
    kernels_for(matrix).bound_inverse_diagonal(len(weights), *arrays)
    return weights


def kernels_for(matrix: AdmittedMatrix) -> Any:
    """The kernels for the rows of a matrix."""
    per_row = matrix.indices.size / max(matrix.shape[0], 1)
    lanes = WARP if matrix.has_hubs else max(lanes_for(per_row, PER_LANE), 2)
    return matrix.backend.kernels(KERNELS, OFFSET=matrix.indptr.dtype, VALUE=matrix.dtype, LANES=lanes)


@compile_inlined
def inverse_sum(begin, end, values):
    """1 over the sum of some magnitudes, or 0."""
    total = 0.0
    for k in range(begin, end):
        total += abs(values[k])
    return 1 / total if total > 0 else 0.0


@KERNELS.per_item
def filter_rows(first, end, indptr, indices, values, B, strong_indptr, strong_indices, strong, sums):
    """Copy the strong entries, add the weak ones to the diagonal, and invert the row sums of magnitudes."""
    for i in range(first, end):
        place, stop, lump, diagonal = strong_indptr[i], strong_indptr[i + 1], B.dtype.type(0), strong_indptr[i]
        for k in range(indptr[i], indptr[i + 1]):
            j = np.uint32(indices[k])
            if place < stop and strong_indices[place] == j:
                strong[place] = values[k]
                if j == i:
                    diagonal = place
                place += 1
            elif B[i] != 0:
                lump += values[k] * (B[j] / B[i])
        strong[diagonal] += lump
        sums[i] = inverse_sum(strong_indptr[i], stop, strong)


@KERNELS.per_item
def invert_row_sums(first, end, indptr, values, sums):
    """1 / sum |a_ij|."""
    for i in range(first, end):
        sums[i] = inverse_sum(indptr[i], indptr[i + 1], values)


@KERNELS.per_item
def bound_inverse_diagonal(first, end, indptr, values, diagonal, weights):
    """1 / a_ii, or 2 / sum |a_ij| where that is smaller."""
    for i in range(first, end):
        most = weights.real.dtype.type(2 * inverse_sum(indptr[i], indptr[i + 1], values))
        own = weights.dtype.type(1) / diagonal[i]
        weights[i] = own if abs(own) <= most else most
