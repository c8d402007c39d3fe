"""Aggregates: the nodes around each vertex of a distance-2 maximal independent set, found in parallel.

The set is the one that a serial search finds: it goes through the vertices in a random order and takes each one that
has nobody of the set within distance 2. A second pass makes aggregates of the vertices that are left over between the
first ones, where three of them or more are together, or two on a chain. All others join the neighboring aggregate in
which they have the most neighbors.

Bell, Dalton, Olson: Exposing Fine-Grained Parallelism in Algebraic Multigrid Methods, SIAM J. Sci. Comput. 34, 2012.
Kelley, Rajamanickam: Parallel, Portable Algorithms for Distance-2 Maximal Independent Set and Graph Coarsening, IPDPS
2022, Algorithms 1 and 3. Their numbers are drawn anew in every round; here they stay, so that a CPU finds the same set
by one search.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import NUMBERS, KernelSet, compile_loop, compile_part
from mcprecond.coloring.graph import Graph
from mcprecond.linalg.csr import lanes_for
from mcprecond.multigrid.patterns import new_control

KERNELS = KernelSet(__file__, "OFFSET LANES")

IN, OUT = 0, 2**32 - 1  # in the set, or not; the numbers of undecided vertices are in between
ALONE = 4  # entries of a row of average length for each thread of a team
SCRATCH = 8  # numbers that the search for a set counts with
LEAST_SIZE = 3  # of an aggregate of the second pass
MOST_ALONE = 256  # entries of the longest row for each thread of a team, where teams are smaller than a warp
COUNTED = 256  # entries of a row that each of its entries is compared with, at most
#: Odd factors of the bijective hash that numbers the vertices at random, and their inverses modulo 2^32.
SPREAD = 0x85EBCA6B, 0xC2B2AE35
GATHER = pow(SPREAD[0], -1, 2**32), pow(SPREAD[1], -1, 2**32)
CUDA_CONSTANTS = {
    "IN": IN,
    "OUT": OUT,
    "COUNTED": COUNTED,
    **{"FIRST_SPREAD": SPREAD[0], "SECOND_SPREAD": SPREAD[1]},
    **{"FIRST_GATHER": GATHER[0], "SECOND_GATHER": GATHER[1]},
}


def aggregates(graph: Graph) -> tuple[Any, int, bool]:
    """Return the aggregate of each vertex, -1 for vertices without neighbors, how many aggregates there are, and
    whether any vertex is in none.

    Parameters
    ----------
    graph : Graph
        Of strong connections.

    Returns
    -------
    labels : array of int32, shape (n,)
        The same on every device and in every run. Aggregates are numbered in the order of their roots.
    count : int
    any_alone : bool
    """
    backend, xp, n = graph.backend, graph.backend.xp, graph.n
    if n == 0:
        return xp.empty(0, np.int32), 0, False
    pattern, roots, sizes = (graph.indptr, graph.indices), xp.full(n, -1, np.int32), xp.empty(n, np.int32)
    scratch = backend.zeros(2 * SCRATCH + 2, np.int32)
    for turn, least_size in enumerate((1, LEAST_SIZE)):
        find_roots(graph, least_size, roots, sizes, scratch[turn * SCRATCH :])
    (joined, labels), numbers, report = xp.empty((2, n), np.int32), xp.empty(n + 1, np.int64), scratch[-2:]
    kernels_for(graph).number(n, *pattern, roots, sizes, joined, numbers, labels, report, new_control(backend))
    count, any_alone = (int(number) for number in backend.to_host(report))
    return labels, count, bool(any_alone)


def find_roots(graph: Graph, least_size: int, roots: Any, sizes: Any, scratch: Any) -> Any:
    """Find a distance-2 maximal independent set of the vertices without a root. A vertex of the set becomes a root, to
    which its neighbors without a root are joined, if together they are enough vertices; see `least_size`.

    Parameters
    ----------
    graph : Graph
    least_size : int
        See `join_roots`.
    roots : array of int32, shape (n,)
        Vertices that have one, and vertices without neighbors, are left out: no path goes through them.
    sizes : array of int32, shape (n,)
        Of roots: how many are joined to each.
    scratch : array of int32
        `SCRATCH` zeros or more, which change.

    Returns
    -------
    array of uint32, shape (n,)
        `IN` for the vertices of the set, and `OUT`.
    """
    xp, n = graph.backend.xp, graph.n
    own, (choices, missing) = xp.empty(n, np.uint32), xp.empty((2, n), np.int32)
    worklists = xp.empty(2 * n, np.int32)
    arrays = (graph.indptr, graph.indices, graph.degrees, least_size, roots, sizes)
    kernels_for(graph).search_roots(n, bits_of(n), *arrays, own, choices, missing, worklists, scratch)
    return own


def kernels_for(graph: Graph) -> Any:
    """The kernels for the rows of a graph, which has vertices."""
    lanes = max(lanes_for(graph.indices.size / graph.n, ALONE), lanes_for(graph.max_degree, MOST_ALONE))
    return graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype, LANES=lanes)


def bits_of(n: int) -> int:
    """The number of bits of a vertex number below n: the random order permutes all numbers of so many bits."""
    return max((n - 1).bit_length(), 1)


@compile_part
def vertex_at(place, bits):
    """The vertex at a place in the random order: the inverse of the hash in aggregation.cu."""
    mask, half = np.uint64((1 << bits) - 1), np.uint64((bits + 1) // 2)
    v = np.uint64(place)
    v ^= v >> half
    v = (v * np.uint64(GATHER[1])) & mask
    v ^= v >> half
    v = (v * np.uint64(GATHER[0])) & mask
    return np.int64(v ^ (v >> half))


@compile_part
def cover(v, indptr, indices, roots, covered):
    """Mark what is within distance 2 of v, on paths through free vertices."""
    for k in range(indptr[v], indptr[v + 1]):
        u = np.uint32(indices[k])
        covered[u] = True
        if roots[u] < 0:
            for e in range(np.uint64(indptr[u]), np.uint64(indptr[u + np.uint32(1)])):
                covered[np.uint32(indices[e])] = True


@KERNELS.resident
def search_roots(
    n, bits, indptr, indices, degrees, least_size, roots, sizes, own, choices, missing, worklists, scratch
):
    """The serial search. No vertex has two neighbors in the set, so that it goes over each row once."""
    covered = np.empty(n, np.bool_)
    for v in range(n):
        own[v], covered[v] = OUT, roots[v] >= 0 or degrees[v] == 0
    for place in range(1 << bits):
        v = vertex_at(place, bits)
        if v < n and not covered[v]:
            own[v] = IN
            cover(v, indptr, indices, roots, covered)
    join_roots(0, n, indptr, indices, own, least_size, roots, sizes)


@compile_loop(offsets="indptr")
def join_roots(first, end, indptr, indices, own, least_size, roots, sizes):
    """Make roots of the vertices of the set, joined by their free neighbors, if these are `least_size` together, or
    half of all neighbors are free, as where a vertex of a chain has one of two.

    Two vertices of the set have no free neighbor in common, so this is done for all of them at once.
    """
    for v in range(first, end):
        if own[v] == IN:
            size, neighbors = 1, 0
            for k in range(indptr[v], indptr[v + 1]):
                neighbors += indices[k] != v
                size += indices[k] != v and roots[indices[k]] < 0
            if size >= min(least_size, 1 + (neighbors + 1) // 2):
                roots[v], sizes[v] = v, size
                for k in range(indptr[v], indptr[v + 1]):
                    if roots[indices[k]] < 0:
                        roots[indices[k]] = v


@KERNELS.resident
def number(n, indptr, indices, roots, sizes, joined, numbers, labels, report, control):
    """The number of each vertex's aggregate, -1 if it has none; report how many there are, and 1 if any has none."""
    join_neighbors(0, n, indptr, indices, roots, sizes, joined)
    numbers[0] = 0
    for v in range(n):
        numbers[v + 1] = numbers[v] + (joined[v] == v)
    report[0], report[1] = numbers[n], number_members(0, n, joined, numbers, labels) > 0


@compile_loop(offsets="indptr")
def join_neighbors(first, end, indptr, indices, roots, sizes, joined):
    """Let each vertex without a root join the aggregate of most of its neighbors; of several, the smallest one.

    In a long row each neighbor is compared with `COUNTED` others only: the time of a hub must not grow with the square
    of its degree.
    """
    for v in range(first, end):
        best, most = roots[v], 0
        if best < 0:
            for k in range(indptr[v], indptr[v + 1]):
                root = roots[indices[k]]
                if root < 0 or root == best:
                    continue
                count = 0
                for other in range(k, min(indptr[v + 1], k + COUNTED)):
                    count += roots[indices[other]] == root
                smaller = best >= 0 and (sizes[root], root) < (sizes[best], best)
                if count > most or (count == most and smaller):
                    best, most = root, count
        joined[v] = best


@compile_loop(grain=NUMBERS)
def number_members(first, end, joined, numbers, labels):
    """The labels of some vertices; returns how many have none."""
    alone = 0
    for v in range(first, end):
        labels[v] = numbers[joined[v]] if joined[v] >= 0 else -1
        alone += joined[v] < 0
    return alone
