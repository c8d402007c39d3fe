"""Whether a matrix is Hermitian, up to rounding."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends.inputs import first_place
from mcprecond.matrix import AdmittedMatrix, place_of, rows_of, transpose


def is_hermitian(matrix: AdmittedMatrix, dtype: Any = None) -> bool:
    """Whether A and its conjugate transpose differ by rounding at most, as `first_unsymmetric` tells."""
    return first_unsymmetric(matrix, dtype) is None


def first_unsymmetric(matrix: AdmittedMatrix, dtype: Any = None) -> tuple[int, int] | None:
    """The row and the column of the first entry of A that differs from that of its conjugate transpose by more than
    rounding, or None.

    Entries are compared beside the geometric mean of the two diagonal ones, or the largest entry of A where one of them
    is zero, so that scaling rows and columns alike changes nothing. They may differ by the square root of the unit of
    rounding: sums over elements round, too.

    Parameters
    ----------
    matrix : AdmittedMatrix
        Of finite floats.
    dtype : dtype, optional
        Whose rounding counts; that of A by default.
    """
    xp, matrix = matrix.backend.xp, matrix.canonical()
    csr = matrix.csr
    if not csr.data.size:
        return None
    sizes = abs(matrix.diagonal())
    scales = 1 / xp.sqrt(xp.where(sizes > 0, sizes, abs(csr.data).max()))
    rows = rows_of(csr.indptr, csr.indices, xp)
    with np.errstate(all="ignore"):
        values = csr.data * scales[rows] * scales[csr.indices]
        scaled = matrix.backend.sparse.csr_matrix((values, csr.indices, csr.indptr), shape=matrix.shape)
        difference = scaled - transpose(scaled.conj(), matrix.backend)
        differs = ~(abs(difference.data) <= np.sqrt(np.finfo(dtype or matrix.dtype).eps))
    k = first_place(differs, xp)
    return None if k is None else place_of(difference, k, matrix.backend)
