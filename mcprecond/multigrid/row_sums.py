"""Sums of the magnitudes of rows, from which weights of Jacobi steps are made."""

from __future__ import annotations

from typing import Any

from mcprecond.backends import KernelSet, compile_inlined
from mcprecond.backends.cuda_source import WARP
from mcprecond.linalg.csr import lanes_for
from mcprecond.matrix import AdmittedMatrix

KERNELS = KernelSet(__file__, "OFFSET VALUE LANES")

#: Each thread loads about PER_LANE entries of an average row, and at least two threads share a row. These kernels are
#: bound by the latency of memory: the fewer threads share a row, the more rows are loaded at the same time.
PER_LANE = 8


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
