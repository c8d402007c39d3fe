"""The tentative prolongator T, which has the near-null-space candidates in its range.

On each aggregate its columns are an orthonormal basis of them: T B_c = B.

Vanek, Mandel, Brezina: Algebraic Multigrid by Smoothed Aggregation for Second and Fourth Order Elliptic Problems,
Computing 56, 1996, Algorithm 5.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from mcprecond.backends import Backend, KernelSet, compile_part

KERNELS = KernelSet(__file__)

#: What is left of a candidate after orthogonalization, as a share of it, below which an aggregate does without it.
DEPENDENT = {"f": 1e-5, "d": 1e-10}


def tentative(labels: Any, count: int, B: Any, block_size: int, backend: Backend) -> tuple[Any, Any]:
    """Return the rows of the tentative prolongator and the candidates of the coarse level, so that T B_c = B.

    Parameters
    ----------
    labels : array of int32, shape (n / block_size,)
        The aggregate of each node, or -1.
    count : int
        How many aggregates there are.
    B : array, shape (n, k)

    Returns
    -------
    Q : array, shape (n, k)
        Row i of T: its entries in columns k a .. k a + k - 1 of its aggregate a. Zero where there is none.
    coarse : array, shape (count * k, k)
    """
    xp, k = backend.xp, B.shape[1]
    nodes = xp.flatnonzero(labels >= 0).astype(np.int32)
    ones, offsets = xp.ones(len(nodes), np.float32), xp.arange(len(nodes) + 1, dtype=np.int32)
    by_node = backend.sparse.csr_matrix((ones, labels[nodes], offsets), shape=(len(nodes), count))
    by_aggregate = by_node.T.tocsr()
    by_aggregate.sort_indices()
    members, offsets = nodes[by_aggregate.indices], by_aggregate.indptr.astype(np.int32)
    keeps = xp.repeat(labels >= 0, block_size)
    Q = xp.ascontiguousarray(xp.where(keeps[:, None], B, 0).astype(B.dtype))
    coarse = xp.zeros((count * k, k), B.dtype)
    run = backend.kernels(KERNELS, OFFSET=np.int32, VALUE=B.dtype)
    tiny = DEPENDENT[B.dtype.char.lower()]
    run.fit_candidates(count, offsets, members.astype(np.int32), block_size, k, tiny, Q.reshape(-1), coarse.reshape(-1))
    return Q, coarse


# The twins.


@compile_part
def orthogonalize(members, b, k, tiny, Q, R):
    """Modified Gram-Schmidt, twice, on the rows of one aggregate; R is its upper triangle."""
    for c in range(k):
        before = after = 0.0
        for node in members:
            for i in range(node * b, (node + 1) * b):
                before += abs(Q[i * k + c]) ** 2
        for _ in range(2):
            for d in range(c):
                product = Q.dtype.type(0)
                for node in members:
                    for i in range(node * b, (node + 1) * b):
                        product += np.conj(Q[i * k + d]) * Q[i * k + c]
                for node in members:
                    for i in range(node * b, (node + 1) * b):
                        Q[i * k + c] -= product * Q[i * k + d]
                R[d * k + c] += product
        for node in members:
            for i in range(node * b, (node + 1) * b):
                after += abs(Q[i * k + c]) ** 2
        norm = np.sqrt(after)
        vanished = not norm > tiny * np.sqrt(before)
        R[c * k + c] = 0 if vanished else norm
        factor = Q.real.dtype.type(0 if vanished else 1 / norm)
        for node in members:
            for i in range(node * b, (node + 1) * b):
                Q[i * k + c] *= factor


@KERNELS.twin
def fit_candidates(n_aggregates, offsets, members, b, k, tiny, Q, R):
    """Q becomes an orthonormal basis on each aggregate, and R what makes the candidates of it.

    A candidate that depends on those before it is left out: its column, and its diagonal entry of R, are zero.
    """
    for a in prange(n_aggregates):
        orthogonalize(members[offsets[a] : offsets[a + 1]], b, k, tiny, Q, R[a * k * k : (a + 1) * k * k])
