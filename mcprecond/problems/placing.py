"""Where an assembled matrix goes."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

from mcprecond.backends import Backend

#: Indices of CuPy's sparse matrices are int32.
INT32_LIMIT = 2**31


def place_matrix(A: sp.csr_matrix, backend: Backend) -> Any:
    """Return the matrix as one of the backend: itself on the CPU, a copy on the GPU.

    Raises
    ------
    ValueError
        If it has too many entries for the GPU's int32 indices.
    """
    if backend.name == "cpu":
        return A
    if A.nnz >= INT32_LIMIT:
        raise ValueError(f"{A.nnz} entries are too many for int32 indices on the GPU; use device='cpu'")
    placed = backend.sparse.csr_matrix(A)
    placed.has_canonical_format = A.has_canonical_format  # otherwise CuPy checks it before the first product
    return placed
