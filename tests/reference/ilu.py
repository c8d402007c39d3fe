"""ILU(0): Saad's algorithm on a dense matrix."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def factors(A: sp.csr_matrix, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """L and U of ILU(0), dense, in the given order: Saad's Algorithm 10.4."""
    B = A.toarray()[np.ix_(order, order)]
    B = B.astype(np.result_type(B, np.float64))
    pattern = sp.csr_matrix((np.ones(A.nnz), A.indices, A.indptr), A.shape).toarray()[np.ix_(order, order)] > 0
    n = len(B)
    for i in range(1, n):
        for k in np.flatnonzero(pattern[i, :i]):
            B[i, k] /= B[k, k]
            later = pattern[i] & pattern[k] & (np.arange(n) > k)
            B[i, later] -= B[i, k] * B[k, later]
    return np.tril(B, -1) + np.eye(n), np.triu(B)
