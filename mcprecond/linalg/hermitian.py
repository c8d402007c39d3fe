"""Whether a matrix is Hermitian, up to rounding."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_inlined
from mcprecond.backends.sorting import lower_bound
from mcprecond.backends.team.atomics import atomic_max
from mcprecond.linalg.diagonal import sizes_of
from mcprecond.matrix import AdmittedMatrix, place_of

KERNELS = KernelSet(__file__, "OFFSET VALUE")


def is_hermitian(matrix: AdmittedMatrix, dtype: Any = None) -> bool:
    """Whether A and its conjugate transpose differ by rounding at most, as `first_unsymmetric` tells."""
    if dtype is None and matrix.is_nearly_hermitian is not None:
        return matrix.is_nearly_hermitian
    return first_unsymmetric(matrix, dtype) is None


def with_symmetry(matrix: AdmittedMatrix) -> AdmittedMatrix:
    """Return a canonical matrix that knows whether it is Hermitian up to rounding, so that this is found once."""
    return matrix.knowing(is_nearly_hermitian=is_hermitian(matrix))


def first_unsymmetric(matrix: AdmittedMatrix, dtype: Any = None) -> tuple[int, int] | None:
    """Return the row i and the column j of the first stored entry for which a_ij and conj(a_ji) differ by more than
    rounding; None if there is none. An entry that is not stored is zero.

    The difference is divided by ``sqrt(|a_ii a_jj|)``, where zeros on the diagonal are replaced by the largest entry of
    A. So the result stays the same if rows and columns are scaled alike. The quotient may be as large as the square
    root of the machine epsilon, since sums over finite elements are rounded, too.

    Parameters
    ----------
    matrix : AdmittedMatrix
        Of finite floats.
    dtype : dtype, optional
        Whose rounding counts; that of A by default.
    """
    A, backend, entries = matrix.canonical(), matrix.backend, matrix.canonical().indices.size
    if A.is_hermitian or not entries:
        return None
    scales = sizes_of(A)
    if not A.extremes[0] > 0:
        scales = backend.xp.where(scales > 0, scales, math.sqrt(float(abs(A.data).max())))
    tolerance = float(np.sqrt(np.finfo(dtype or matrix.dtype).eps))
    behind = backend.zeros(1, np.int64)
    run = backend.kernels(KERNELS, OFFSET=A.indptr.dtype, VALUE=A.dtype)
    run.compare_entries(entries, A.shape[0], A.indptr, A.indices, A.data, scales, tolerance, behind)
    from_end = int(behind[0])
    return place_of(A.csr, entries - from_end, backend) if from_end else None


# On the CPU.


@compile_inlined
def difference_across(k, i, indptr, indices, values):
    """Return a_ij - conj(a_ji), where entry k is a_ij; a_ji is zero if it is not stored."""
    j = np.uint32(indices[k])
    across = indptr[j + np.uint32(1)] - 1 - (k - indptr[i])  # its place if row j mirrors row i, as on a grid
    if not (across >= indptr[j] and indices[across] == i):
        across = lower_bound(indices, indptr[j], indptr[j + np.uint32(1)], i)
        if not (across < indptr[j + np.uint32(1)] and indices[across] == i):
            return values[k]
    return values[k] - np.conj(values[across])


@KERNELS.per_item
def compare_entries(first, end, n, indptr, indices, values, scales, tolerance, behind):
    """Find the first entry whose `difference_across` exceeds the tolerance. Store the number of entries from this one
    to the last; store nothing if there is none.
    """
    i = lower_bound(indptr, 0, n, first + 1) - 1
    for k in range(first, end):
        while k >= indptr[i + 1]:
            i += 1
        size = np.float64(abs(difference_across(k, i, indptr, indices, values)))
        if not size / scales[i] / scales[indices[k]] <= tolerance:
            atomic_max(behind, 0, np.int64(indptr[n] - k))
            return
