"""Strength of connection: which neighbors an unknown is strongly connected to, so that they may share an aggregate."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from mcprecond.backends import KernelSet, compile_part
from mcprecond.coloring.graph import Graph
from mcprecond.matrix import AdmittedMatrix, admitted, place_of

KERNELS = KernelSet(__file__)


def strength_graph(matrix: AdmittedMatrix, theta: float, block_size: int = 1) -> Graph:
    """Return the graph of strong connections: ``|a_ij| >= theta sqrt(|a_ii a_jj|)``, without a diagonal.

    Where unknowns come in nodes the Frobenius norms of the blocks are compared, and the vertices are nodes.

    Parameters
    ----------
    matrix : AdmittedMatrix
        Canonical, with values.
    theta : float
        With 0 all neighbors are strong whose entry is not zero.
    block_size : int

    References
    ----------
    Vanek, Mandel, Brezina: Algebraic Multigrid by Smoothed Aggregation for Second and Fourth Order Elliptic Problems,
    Computing 56, 1996, eq. (4).
    """
    if block_size > 1:
        matrix = norms_of_blocks(matrix, block_size)
    backend, n = matrix.backend, matrix.shape[0]
    xp, offset = backend.xp, matrix.indptr.dtype
    if theta == 0 and bool((matrix.data != 0).all()):
        return Graph.of(matrix)
    run = backend.kernels(KERNELS, OFFSET=offset, VALUE=matrix.dtype)
    sizes, counts = sizes_of(matrix), xp.zeros(n + 1, offset)
    least = theta * (1 - 8 * float(np.finfo(matrix.dtype).eps))  # entries at the limit are strong, however rounded
    arrays = (matrix.indptr, matrix.indices, matrix.data, sizes, least)
    run.count_strong(n, *arrays, counts[1:])
    indptr = xp.cumsum(counts, dtype=offset)
    indices = xp.empty(int(indptr[-1]), np.int32)
    run.list_strong(n, *arrays, indptr, indices)
    # Values that are symmetric but for rounding may be on both sides of the limit: that is mended with the pattern.
    unused = xp.empty(len(indices), np.float32)
    return Graph.of(backend.sparse.csr_matrix((unused, indices, indptr), shape=matrix.shape))


def norms_of_blocks(matrix: AdmittedMatrix, block_size: int) -> AdmittedMatrix:
    """Return the matrix of the Frobenius norms of the blocks of nodes."""
    backend, n_nodes = matrix.backend, matrix.shape[0] // block_size
    xp, csr = backend.xp, matrix.csr
    rows = xp.searchsorted(csr.indptr, xp.arange(csr.indices.size), side="right") - 1
    squares = (abs(csr.data).astype(np.float64)) ** 2
    places = (rows // block_size, csr.indices // block_size)
    nodes = backend.sparse.coo_matrix((squares, places), shape=(n_nodes, n_nodes)).tocsr()
    nodes.sum_duplicates()
    nodes.data = xp.sqrt(nodes.data)
    return admitted(nodes)


def sizes_of(matrix: AdmittedMatrix, zero: float = 0.0) -> Any:
    """The square roots of the diagonal's magnitudes, in double precision; `zero` in place of 0."""
    sizes = matrix.backend.xp.sqrt(abs(matrix.csr.diagonal()).astype(np.float64))
    return matrix.backend.xp.where(sizes > 0, sizes, zero) if zero else sizes


def refuse_unsymmetric(matrix: AdmittedMatrix) -> None:
    """Raise ValueError, naming an entry, if a canonical A is not Hermitian up to rounding, as `is_hermitian` has it."""
    xp, entries = matrix.backend.xp, matrix.indices.size
    if not entries:
        return
    first = xp.full(1, entries, np.int64)
    sizes = sizes_of(matrix, float(abs(matrix.data).max()) ** 0.5)
    tolerance = float(np.sqrt(np.finfo(matrix.dtype).eps))
    run = matrix.backend.kernels(KERNELS, OFFSET=matrix.indptr.dtype, VALUE=matrix.dtype)
    run.find_unsymmetric(matrix.shape[0], matrix.indptr, matrix.indices, matrix.data, sizes, tolerance, first)
    k = int(first[0])
    if k < entries:
        row, column = place_of(matrix.csr, k, matrix.backend)
        raise ValueError(
            f"A is not symmetric (or Hermitian): it holds {matrix.data[k].item()} in row {row}, column {column}, and "
            "something else across; smoothed aggregation needs a symmetric A; use ILU0 with gmres or bicgstab"
        )


@compile_part
def is_strong(i, j, a, sizes, theta):
    """Whether the neighbors i and j are strongly connected by an entry a."""
    return i != j and a != 0 and abs(a) >= theta * sizes[i] * sizes[j]


@KERNELS.twin
def count_strong(n, indptr, indices, values, sizes, theta, counts):
    """How many strong neighbors each row has."""
    for i in prange(n):
        count = 0
        for k in range(indptr[i], indptr[i + 1]):
            count += is_strong(i, indices[k], values[k], sizes, theta)
        counts[i] = count


@KERNELS.twin
def list_strong(n, indptr, indices, values, sizes, theta, strong_indptr, strong_indices):
    """These neighbors."""
    for i in prange(n):
        place = strong_indptr[i]
        for k in range(indptr[i], indptr[i + 1]):
            if is_strong(i, indices[k], values[k], sizes, theta):
                strong_indices[place] = indices[k]
                place += 1


@compile_part
def entry(i, j, indptr, indices, values):
    """a_ij, or 0 if it is not stored."""
    place = indptr[i] + np.searchsorted(indices[indptr[i] : indptr[i + 1]], j)
    return values[place] if place < indptr[i + 1] and indices[place] == j else values.dtype.type(0)


@KERNELS.twin
def find_unsymmetric(n, indptr, indices, values, sizes, tolerance, first):
    """The first entry that is not the conjugate of that across; `first` holds the number of entries before."""
    least = first[0]
    for i in prange(n):
        found = indptr[n]
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            other = np.conj(entry(j, i, indptr, indices, values))
            if abs(values[k] - other) > tolerance * sizes[i] * sizes[j]:
                found = k
                break
        least = min(least, np.int64(found))
    first[0] = least
