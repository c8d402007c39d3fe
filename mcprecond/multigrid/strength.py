"""Strength of connection: which neighbors an unknown is strongly connected to, so that they may share an aggregate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mcprecond.backends import KernelSet, compile_inlined, compile_row
from mcprecond.backends.cuda_source import WARP
from mcprecond.backends.sorting import lower_bound
from mcprecond.backends.team.atomics import atomic_add
from mcprecond.coloring.graph import Graph
from mcprecond.linalg.csr import lanes_for
from mcprecond.linalg.diagonal import sizes_of
from mcprecond.matrix import AdmittedMatrix, canonical_csr
from mcprecond.multigrid.patterns import PARTS, gather_rows
from mcprecond.typing import StrengthName

KERNELS = KernelSet(__file__, "OFFSET VALUE LANES")

#: a_ji may make a_ij strong only if |a_ij| is above the limit, or below it by at most this share. The magnitudes of
#: a_ij and a_ji differ by less than that.
NEAR_LIMIT = 1 / 16
#: Where no limit is given, a connection is strong from this share of the average one on.
SHARE_OF_AVERAGE = 0.5
#: Positive entries from this share of the limit on weaken the connections to common neighbors.
LEAST_POSITIVE = 0.25
#: The strength of diagonal entries, and of positive entries where these are weak.
NEVER = -1
CUDA_CONSTANTS = {"NEAR_LIMIT": NEAR_LIMIT, "LEAST_POSITIVE": LEAST_POSITIVE, "NEVER": NEVER}


class Connections(NamedTuple):
    """The strong connections of a level.

    Attributes
    ----------
    graph : Graph
        Without a diagonal, and symmetric.
    indptr, indices : arrays
        The pattern of A without its weak entries, with the diagonal; that of A itself if there are none.
    """

    graph: Graph
    indptr: Any
    indices: Any


def symmetric_strength(
    matrix: AdmittedMatrix, nodes: AdmittedMatrix, theta: float | None, *, spreads: bool = True
) -> Connections:
    """Return the strong connections: ``|a_ij| >= theta sqrt(|a_ii a_jj|)``.

    Where unknowns come in nodes the Frobenius norms of the blocks are compared, and the vertices are nodes.

    For None the limit is ``sqrt(|a_ii a_jj| / (m_i m_j)) / 2`` with the numbers m_i and m_j of neighbors. In a row
    whose sum is zero ``a_ii / m_i`` is the average connection, so that one of half the average is strong, whatever the
    stencil: on coarse levels, where rows are longer, the limit is lower. A row without a strong connection is dominated
    by its diagonal entry, and smoothing serves it.

    Departing from the paper, for None positive entries are weak where a node has one unknown, since errors need not be
    smooth along them. Moreover, each a_ik > 0 is spread over the common neighbors j of i and k whose entries are
    negative: the strength of a_ij is ``-a_ij - sum_k a_ik a_kj / sum_l a_kl``, where l runs over the common neighbors,
    and it is compared with the limit. If k is strongly connected to j, the positive entry cancels a part of a_ij. For
    bilinear elements that are flat in one direction, this makes the corners of the stencil weak. If the strengths of
    a_ij and a_ji differ, the larger one decides for both.

    Parameters
    ----------
    matrix : AdmittedMatrix
        Canonical, with values and a diagonal.
    nodes : AdmittedMatrix
        With the pattern of its nodes; the matrix itself where a node has one unknown.
    theta : float or None
        With 0 all neighbors are strong whose entry is not zero.
    spreads : bool
        Whether positive entries weaken the connections to common neighbors. Where PETSc distributes A over several
        ranks they do not, since a rank does not have the rows that this takes.

    References
    ----------
    Vanek, Mandel, Brezina: Algebraic Multigrid by Smoothed Aggregation for Second and Fourth Order Elliptic Problems,
    Computing 56, 1996, eq. (4).
    """
    backend, n = nodes.backend, nodes.shape[0]
    xp, offset = backend.xp, nodes.indptr.dtype
    norms = matrix if nodes is matrix else norms_of_blocks(matrix, nodes)
    run, entries = kernels_for(norms), norms.indices.size
    sizes = sizes_of(norms, per_neighbor=theta is None)
    # Entries at the limit are strong, however they are rounded.
    least = (SHARE_OF_AVERAGE if theta is None else theta) * (1 - 8 * float(np.finfo(matrix.dtype).eps))
    is_signed = theta is None and nodes is matrix
    arrays = norms.indptr, norms.indices, norms.data, sizes, least, int(is_signed)
    counts, degrees, found = xp.empty(n + 1, offset), xp.empty(n, np.int32), xp.empty(entries, np.int32)
    report, strengths = backend.zeros(2, np.int64), xp.empty(0, norms.data.real.dtype)
    results = counts, degrees, found, report
    run.find_strong(n, *arrays, int(is_signed and spreads), 0, strengths, *results)
    strong, any_spread = (int(number) for number in backend.to_host(report))
    if any_spread:
        strengths = xp.empty(entries, strengths.dtype)
        run.find_strengths(n, *arrays, strengths)
        report.fill(0)
        run.find_strong(n, *arrays, 0, 1, strengths, *results)
        strong = int(report[0])
    indptr, indices = gather_rows(norms.indptr, counts, found, backend, strong)
    if len(indices) == entries:
        return Connections(Graph.of(nodes), nodes.indptr, nodes.indices)
    if matrix.is_hermitian or (matrix.is_ours and nodes.is_symmetric):
        graph = Graph(indptr, indices, degrees, n, nodes.max_degree, backend)
    else:
        graph = Graph.of(canonical_csr(xp.empty(len(indices), np.float32), indices, indptr, nodes.shape, backend))
    return Connections(graph, indptr, indices)


Strength = Callable[[AdmittedMatrix, AdmittedMatrix, float | None], Connections]
#: By name: ``strength(A, nodes, theta)`` returns the strong connections.
STRENGTHS: dict[StrengthName, Strength] = {"symmetric": symmetric_strength}


def norms_of_blocks(matrix: AdmittedMatrix, nodes: AdmittedMatrix) -> AdmittedMatrix:
    """Return the matrix of the Frobenius norms of the blocks of nodes, in double precision."""
    norms = matrix.backend.xp.empty(nodes.indices.size)
    block_size = matrix.shape[0] // nodes.shape[0]
    of_nodes = nodes.indptr.astype(matrix.indptr.dtype, copy=False), nodes.indices
    arrays = matrix.indptr, matrix.indices, matrix.data, *of_nodes
    kernels_for(matrix).find_norms(nodes.shape[0], block_size, *arrays, norms)
    return nodes.renewed(csr=canonical_csr(norms, nodes.indices, nodes.indptr, nodes.shape, matrix.backend))


def kernels_for(matrix: AdmittedMatrix) -> Any:
    """The kernels for a matrix, whose rows teams share."""
    lanes = WARP if matrix.has_hubs else lanes_for(matrix.indices.size / max(matrix.shape[0], 1))
    return matrix.backend.kernels(KERNELS, OFFSET=matrix.indptr.dtype, VALUE=matrix.dtype, LANES=lanes)


@compile_inlined
def is_spread(i, k, indptr, indices, values, sizes, theta):
    """Whether the entry at place k of row i is positive, and large enough to be spread."""
    j, a = np.uint32(indices[k]), values[k].real
    return i != j and a > 0 and a >= LEAST_POSITIVE * (theta * (sizes[i] * sizes[j]))


@compile_inlined
def strength_of(i, k, indices, values, signed):
    """The strength of the entry at place k of row i, before positive entries are spread."""
    is_weak = i == indices[k] or (signed and values[k].real > 0)
    return np.float64(NEVER) if is_weak else np.float64(abs(values[k]))


@compile_inlined
def take_magnitudes(i, indptr, indices, values, sizes, theta, signed, strengths):
    """The strengths of a row before positive entries are spread. Returns whether any of them is."""
    spreads = False
    for k in range(indptr[i], indptr[i + 1]):
        strengths[k] = strength_of(i, k, indices, values, signed)
        spreads |= is_spread(i, k, indptr, indices, values, sizes, theta)
    return spreads


@compile_inlined
def spread_positive(k, indptr, indices, values, places, common, shares, strengths):
    """Spread the entry at place k over the common neighbors of its row and its column.

    `places` has the place of each neighbor whose connection to the row may be strong, and -1 for all others. `common`
    and `shares` have room for the common neighbors, and for one number more.
    """
    j = np.uint32(indices[k])
    count, total = 0, 0.0
    for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + np.uint32(1)])):
        own, share = places[np.uint32(indices[p])], -values[p].real
        common[count], shares[count] = own, share
        if own >= 0 and share > 0:
            total += share
            count += 1
    for t in range(count):
        own = common[t]
        strengths[own] = max(strengths[own] - values[k].real * (shares[t] / total), 0.0)


@compile_row
def spread_row(i, indptr, indices, values, sizes, theta, places, common, shares, strengths):
    """Spread the positive entries of a row."""
    for k in range(indptr[i], indptr[i + 1]):
        places[indices[k]] = np.int64(k) if strengths[k] != NEVER else np.int64(-1)
    for k in range(indptr[i], indptr[i + 1]):
        if is_spread(i, k, indptr, indices, values, sizes, theta):
            spread_positive(k, indptr, indices, values, places, common, shares, strengths)
    for k in range(indptr[i], indptr[i + 1]):
        places[indices[k]] = -1


@KERNELS.in_parts(PARTS, "indptr")
def find_strengths(first_part, end_part, n, indptr, indices, values, sizes, theta, signed, strengths):
    """Find the strength of each entry after positive entries are spread."""
    begin, end, any_positive, longest_row = first_part * n // PARTS, end_part * n // PARTS, False, 0
    for i in range(begin, end):
        any_positive |= take_magnitudes(i, indptr, indices, values, sizes, theta, signed, strengths)
        longest_row = max(longest_row, indptr[i + 1] - indptr[i])
    if any_positive:
        places = np.full(n, -1, np.int64)
        common, shares = np.empty(longest_row + 1, np.int64), np.empty(longest_row + 1)
        for i in range(begin, end):
            spread_row(i, indptr, indices, values, sizes, theta, places, common, shares, strengths)


@compile_inlined
def strength_across(i, j, indptr, indices, values, signed, is_known, strengths):
    """The strength of a_ji, or 0 if it is not stored."""
    place = lower_bound(indices, indptr[j], indptr[j + np.uint32(1)], i)
    if place == indptr[j + np.uint32(1)] or indices[place] != i:
        return 0.0
    return np.float64(strengths[place]) if is_known else strength_of(j, place, indices, values, signed)


@KERNELS.per_item
def find_strong(
    first, end, indptr, indices, values, sizes, theta, signed, spreads, is_known, strengths, counts, degrees, found,
    report,
):  # fmt: skip
    """Write the columns of the strong entries of row i to `found`, from ``indptr[i]`` on, and their number to
    ``counts[i + 1]``, and without the diagonal entry to ``degrees[i]``.

    The diagonal entry counts as strong. The larger strength of a_ij and a_ji decides for both. Unless strengths are
    known they are magnitudes. Report how many strong entries there are. If positive entries are to be spread and there
    is one, also report a 1; then the other results are not valid.
    """
    strong = np.int64(0)
    for i in range(first, end):
        if spreads and report[1]:
            break
        if i == 0:
            counts[0] = 0
        place = np.uint64(indptr[i])
        for k in range(indptr[i], indptr[i + 1]):
            j = np.uint32(indices[k])
            size = np.float64(strengths[k]) if is_known else strength_of(i, k, indices, values, signed)
            limit = theta * (sizes[i] * sizes[j])
            if 0 <= size < limit <= (1 + NEAR_LIMIT) * abs(values[k]):
                size = max(size, strength_across(i, j, indptr, indices, values, signed, is_known, strengths))
            if spreads and is_spread(i, k, indptr, indices, values, sizes, theta):
                report[1] = 1
            found[place] = j
            place += np.uint64(i == j or (size > 0 and size >= limit))
        counts[i + 1] = place - indptr[i]
        degrees[i] = counts[i + 1] - 1
        strong += np.int64(counts[i + 1])
    atomic_add(report, 0, strong)


@KERNELS.per_item
def find_norms(first, end, b, indptr, indices, values, node_indptr, node_indices, norms):
    """The Frobenius norm of each block."""
    for v in range(first, end):
        for e in range(node_indptr[v], node_indptr[v + 1]):
            square, column = 0.0, node_indices[e] * b
            for row in range(v * b, (v + 1) * b):
                k = lower_bound(indices, indptr[row], indptr[row + 1], column)
                while k < indptr[row + 1] and indices[k] < column + b:
                    square += abs(values[k]) ** 2
                    k += 1
            norms[e] = np.sqrt(square)
