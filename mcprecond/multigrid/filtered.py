"""The filtered matrix, which smooths prolongators: A without weak entries, and still with its near-null space.

A weak entry a_ij goes to the diagonal as ``a_ij B_j / B_i``, so that the filtered matrix times B is A B. Prolongators
then reach along strong connections only, and coarse matrices stay sparse.

Vanek, Mandel, Brezina: Algebraic Multigrid by Smoothed Aggregation for Second and Fourth Order Elliptic Problems,
Computing 56, 1996, eq. (6), which has it for a constant B.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import Backend, KernelSet
from mcprecond.linalg.csr import lanes_for
from mcprecond.matrix import AdmittedMatrix

KERNELS = KernelSet(__file__, "OFFSET VALUE LANES")


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
        self.take_candidate(B)

    def take_candidate(self, B: Any) -> None:
        """Take another candidate."""
        self._B = B.reshape(-1)

    def values(self, matrix: AdmittedMatrix) -> Any:
        """Return its values for those of A."""
        if len(self.indices) == matrix.indices.size:
            return matrix.data
        values = matrix.backend.xp.zeros(len(self.indices), matrix.dtype)
        run = kernels_for(matrix.indptr, matrix.dtype, matrix.indices.size, matrix.backend)
        arrays = matrix.indptr, matrix.indices, matrix.data, self._B, self.indptr, self.indices, values
        run.filter_rows(matrix.shape[0], *arrays)
        return values


def inverse_row_sums(indptr: Any, values: Any, backend: Backend) -> Any:
    """Return ``1 / sum_j |a_ij|`` for each row, 0 for a row of zeros.

    With these on the diagonal of D no eigenvalue of ``D A`` is above 1 in magnitude, whatever A.
    """
    sums = backend.xp.empty(len(indptr) - 1, values.dtype)
    kernels_for(indptr, values.dtype, len(values), backend).invert_row_sums(len(sums), indptr, values, sums)
    return sums


def kernels_for(indptr: Any, dtype: Any, entries: int, backend: Backend) -> Any:
    """The kernels for rows of this length on average."""
    lanes = lanes_for(2 * entries / max(len(indptr) - 1, 1))
    return backend.kernels(KERNELS, OFFSET=indptr.dtype, VALUE=dtype, LANES=lanes)


@KERNELS.per_item
def filter_rows(first, end, indptr, indices, values, B, strong_indptr, strong_indices, strong):
    """Copy the strong entries, and add the weak ones to the diagonal."""
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


@KERNELS.per_item
def invert_row_sums(first, end, indptr, values, sums):
    """1 / sum |a_ij|."""
    for i in range(first, end):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += abs(values[k])
        sums[i] = 1 / total if total > 0 else 0.0
