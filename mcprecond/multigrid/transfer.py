"""Transfer between levels: tentative and smoothed prolongators, and the matrix of the coarse level.

The tentative prolongator T has the near-null-space candidates in its range: on each aggregate its columns are an
orthonormal basis of them, T B_c = B. A step of Jacobi, ``P = (I - omega / rho(inv(D) A) inv(D) A) T``, makes the
columns of T smooth. A row of P has all k columns of the aggregates of its node and of the neighbors of that, zeros too:
so the pattern of P does not depend on values.

Vanek, Mandel, Brezina: Algebraic Multigrid by Smoothed Aggregation for Second and Fourth Order Elliptic Problems,
Computing 56, 1996, Algorithm 5.1.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numba import prange

from mcprecond.backends import Backend, KernelSet, compile_part, offset_type
from mcprecond.matrix import AdmittedMatrix

KERNELS = KernelSet(__file__)

#: Beyond this many neighbors of a node, a library's product finds the pattern of P.
LONGEST = 2048
#: What is left of a candidate after orthogonalization, as a share of it, below which an aggregate does without it.
DEPENDENT = {"f": 1e-5, "d": 1e-10}
#: On a GPU a product of sparse matrices takes some hundred bytes for each product of two numbers: so many at once.
MOST_PRODUCTS = 2**26


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


def touched_aggregates(nodes: AdmittedMatrix, labels: Any, count: int) -> tuple[Any, Any]:
    """Row offsets and columns of the pattern of P, by nodes: the aggregates of a node and of its neighbors, sorted.

    Parameters
    ----------
    nodes : AdmittedMatrix
        With the pattern of the nodes of A.
    labels, count
        As in `tentative`.
    """
    backend, n, offset = nodes.backend, nodes.shape[0], nodes.indptr.dtype
    xp, sparse = backend.xp, backend.sparse
    if nodes.max_degree > LONGEST:
        inside = (labels >= 0).astype(np.float32)
        own = sparse.csr_matrix((inside, xp.maximum(labels, 0), xp.arange(n + 1, dtype=np.int32)), shape=(n, count))
        ones = xp.ones(nodes.indices.size, np.float32)
        product = (sparse.csr_matrix((ones, nodes.indices, nodes.indptr), shape=(n, n)) @ own + own).tocsr()
        product.eliminate_zeros()
        product.sort_indices()
        return product.indptr.astype(offset), product.indices.astype(np.int32)
    run = backend.kernels(KERNELS, OFFSET=offset, VALUE=np.float64)
    room, counts = xp.empty(nodes.indices.size + n, np.int32), xp.zeros(n + 1, offset)
    run.list_touched(n, nodes.indptr, nodes.indices, labels, room, counts[1:])
    indptr = xp.cumsum(counts, dtype=offset)
    touched = xp.empty(int(indptr[-1]), np.int32)
    run.copy_touched(n, nodes.indptr, room, indptr, touched)
    return indptr, touched


def smoothed(
    matrix: AdmittedMatrix, Q: Any, labels: Any, count: int, touched: tuple[Any, Any], scale: Any, block_size: int
) -> Any:
    """Return ``P = T - diag(scale) A T`` as a CSR matrix with sorted rows; see `tentative`, `touched_aggregates`."""
    backend, n, k = matrix.backend, matrix.shape[0], Q.shape[1]
    xp, offset = backend.xp, matrix.indptr.dtype
    entries = len(touched[1]) * block_size * k
    if offset_type(entries) != offset:
        raise ValueError("the prolongator has more entries than row offsets of 32 bits have room for")
    indptr, indices, values = xp.empty(n + 1, offset), xp.empty(entries, np.int32), xp.empty(entries, matrix.dtype)
    run = backend.kernels(KERNELS, OFFSET=offset, VALUE=matrix.dtype)
    run.smooth_rows(
        n, block_size, k, matrix.indptr, matrix.indices, matrix.data, scale, labels, Q.reshape(-1), *touched,
        indptr, indices, values,
    )  # fmt: skip
    return backend.sparse.csr_matrix((values, indices, indptr), shape=(n, count * k))


def galerkin(csr: Any, P: Any, R: Any, backend: Backend) -> Any:
    """Return R A P as a CSR matrix with sorted rows; on a GPU in pieces of rows, so that it takes little memory."""
    n, products = csr.shape[0], csr.indices.size * (P.indices.size / max(P.shape[0], 1))
    pieces = 1 if backend.name == "cpu" else max(1, min(n, round(products / MOST_PRODUCTS)))
    if pieces == 1:
        coarse = R @ (csr @ P)
    else:
        bounds, coarse = np.linspace(0, n, pieces + 1).astype(int).tolist(), None
        for first, end in pairwise(bounds):
            part = P[first:end].conj().T.tocsr() @ (csr[first:end] @ P)
            coarse = part if coarse is None else coarse + part
    coarse = coarse.tocsr()
    coarse.sort_indices()
    return coarse


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


@compile_part
def insert(label, own, count):
    """Put a label into a sorted list, unless it is there; returns the length."""
    place = count
    while place > 0 and own[place - 1] > label:
        place -= 1
    if place > 0 and own[place - 1] == label:
        return count
    for p in range(count, place, -1):
        own[p] = own[p - 1]
    own[place] = label
    return count + 1


@KERNELS.twin
def list_touched(n, indptr, indices, labels, room, counts):
    """The aggregates of each node and its neighbors, in a place with room for all of them, and how many there are."""
    for v in prange(n):
        own, count = room[indptr[v] + v : indptr[v + 1] + v + 1], 0
        if labels[v] >= 0:
            count = insert(labels[v], own, count)
        for k in range(indptr[v], indptr[v + 1]):
            if labels[indices[k]] >= 0:
                count = insert(labels[indices[k]], own, count)
        counts[v] = count


@KERNELS.twin
def copy_touched(n, indptr, room, touched_indptr, touched):
    """The same, without the gaps."""
    for v in prange(n):
        first = indptr[v] + v - touched_indptr[v]
        for k in range(touched_indptr[v], touched_indptr[v + 1]):
            touched[k] = room[first + k]


@KERNELS.twin
def smooth_rows(
    n, b, k, indptr, indices, values, scale, labels, Q, touched_indptr, touched, P_indptr, P_indices, P
):  # fmt: skip
    """Row i of P: offset, columns, and T_i - scale_i sum_j a_ij T_j."""
    P_indptr[n] = np.int64(touched_indptr[n // b]) * b * k
    for i in prange(n):
        node = i // b
        own = touched[touched_indptr[node] : touched_indptr[node + 1]]
        first = (np.int64(touched_indptr[node]) * b + (i - node * b) * len(own)) * k
        P_indptr[i] = first
        for t in range(len(own)):
            for c in range(k):
                P_indices[first + t * k + c] = own[t] * k + c
                P[first + t * k + c] = 0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            label = labels[j // b]
            if label >= 0:
                a, place = scale[i] * values[e], first + np.searchsorted(own, label) * k
                for c in range(k):
                    P[place + c] -= a * Q[j * k + c]
        if labels[node] >= 0:
            place = first + np.searchsorted(own, labels[node]) * k
            for c in range(k):
                P[place + c] += Q[i * k + c]
