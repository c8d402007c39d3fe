"""Aggregates: the nodes around each vertex of a distance-2 maximal independent set, found in parallel.

In every round each undecided vertex draws a new random number. It comes into the set if its number is the smallest
within distance 2, and is out of it as soon as somebody within distance 2 is in: so the graph need not be squared. What
is left over between the aggregates gets aggregates of its own in a second pass, where there is room for some of three
vertices or more, and joins the neighboring aggregate that it has most neighbors in otherwise.

Bell, Dalton, Olson: Exposing Fine-Grained Parallelism in Algebraic Multigrid Methods, SIAM J. Sci. Comput. 34, 2012.
Kelley, Rajamanickam: Parallel, Portable Algorithms for Distance-2 Maximal Independent Set and Graph Coarsening, IPDPS
2022, Algorithms 1 and 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from mcprecond.backends import KernelSet, compile_loop, compile_part
from mcprecond.backends.hashing import mix
from mcprecond.coloring.graph import Graph
from mcprecond.multigrid.cycle import lanes_for

KERNELS = KernelSet(__file__)

IN, OUT = -1, 2**63 - 1  # of the set; numbers of undecided vertices lie in between.
LEAST_SIZE = 3  # of an aggregate of the second pass
COUNTED = 256  # entries of a row that are compared with each one
CUDA_CONSTANTS = {"IN": IN, "OUT": OUT, "COUNTED": COUNTED}


def aggregates(graph: Graph) -> tuple[Any, int]:
    """Return the aggregate of each vertex, -1 for vertices without neighbors, and how many aggregates there are.

    Parameters
    ----------
    graph : Graph
        Of strong connections.

    Returns
    -------
    labels : array of int32, shape (n,)
        The same on every device and in every run. Aggregates are numbered in the order of their roots.
    count : int
    """
    xp, n = graph.backend.xp, graph.n
    if n == 0:
        return xp.empty(0, np.int32), 0
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype, LANES=1)
    pattern, roots = (graph.indptr, graph.indices), xp.full(n, -1, np.int32)
    sizes, joined, is_root = xp.empty((3, n), np.int32)
    for least_size in (1, LEAST_SIZE):
        own = independent_set_of(graph, roots)
        run.join_roots(n, *pattern, own, least_size, roots, sizes)
    run.join_neighbors(n, *pattern, roots, sizes, joined, is_root)
    numbers, labels = xp.cumsum(is_root, dtype=np.int32), xp.empty(n, np.int32)
    run.number(n, joined, numbers, labels)
    return labels, int(numbers[-1])


def independent_set_of(graph: Graph, roots: Any) -> Any:
    """Return `IN` for the vertices of a distance-2 maximal independent set of those without a root, and `OUT`.

    Parameters
    ----------
    graph : Graph
    roots : array of int32, shape (n,)
        Vertices that have one, and vertices without neighbors, are not there: no path goes through them.
    """
    xp, n = graph.backend.xp, graph.n
    own, least = xp.empty(n, np.int64), xp.empty(n, np.int64)
    worklists, scratch = xp.empty((4, n), np.int32), xp.zeros(8, np.int32)
    lanes = lanes_for(graph.indices.size / n)
    while lanes > 1 and n * lanes > 32 * graph.backend.resident_warps:  # where every thread has vertices of its own
        lanes //= 2
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype, LANES=lanes)
    arrays = (graph.indptr, graph.indices, graph.degrees, roots)
    run.independent_set(n, *arrays, own, least, worklists.reshape(-1), scratch)
    return own


@compile_part
def number_of(v, round_number):
    """The random number of a vertex in a round and, below it, the vertex itself: no two are equal."""
    return np.int64(mix(v, round_number)) << 31 | v


@compile_loop
def draw(left, round_number, own):
    """New numbers for the undecided."""
    for i in prange(len(left)):
        own[left[i]] = number_of(left[i], round_number)


@compile_loop
def find_least(columns, indptr, indices, own, least):
    """The smallest number within distance 1, OUT if one is in the set; returns those that have one."""
    stays = np.zeros(len(columns), np.bool_)
    for i in prange(len(columns)):
        u = columns[i]
        found = own[u]
        for k in range(indptr[u], indptr[u + 1]):
            found = min(found, own[indices[k]])
        least[u] = OUT if found == IN else found
        stays[i] = least[u] != OUT
    return columns[stays]


@compile_loop
def decide(left, indptr, indices, roots, own, least):
    """Who is the smallest within distance 2 is in, whose neighbor knows one who is in is out; returns the others."""
    stays = np.zeros(len(left), np.bool_)
    for i in prange(len(left)):
        v = left[i]
        is_out, is_least = least[v] == OUT, least[v] == own[v]
        for k in range(indptr[v], indptr[v + 1]):
            u = indices[k]
            if roots[u] < 0:
                is_out |= least[u] == OUT
                is_least &= least[u] == own[v]
        stays[i] = not is_out and not is_least
        if is_out:
            own[v] = OUT
        elif is_least:
            own[v] = IN
    return left[stays]


@KERNELS.resident_twin
def independent_set(n, indptr, indices, degrees, roots, own, least, worklists, scratch):
    """All rounds: the undecided, and the vertices around them that still know a number, are kept in worklists."""
    own[:] = OUT
    least[:] = OUT
    left = np.flatnonzero((roots < 0) & (degrees > 0))
    columns = left
    round_number = np.int64(0)  # a literal would have all callees compiled twice
    while len(left):
        draw(left, round_number, own)
        columns = find_least(columns, indptr, indices, own, least)
        left = decide(left, indptr, indices, roots, own, least)
        round_number += 1


@KERNELS.twin
def join_roots(n, indptr, indices, own, least_size, roots, sizes):
    """Vertices of the set become roots, and free neighbors join them, where an aggregate has so many vertices.

    Two of the set have no free neighbor in common, so that all of them can do so at once.
    """
    for v in prange(n):
        if own[v] == IN:
            size = 1
            for k in range(indptr[v], indptr[v + 1]):
                size += indices[k] != v and roots[indices[k]] < 0
            if size >= least_size:
                roots[v], sizes[v] = v, size
                for k in range(indptr[v], indptr[v + 1]):
                    if roots[indices[k]] < 0:
                        roots[indices[k]] = v


@KERNELS.twin
def join_neighbors(n, indptr, indices, roots, sizes, joined, is_root):
    """Who has no root joins the one that most of its neighbors have; of several that with the smallest aggregate.

    Of long rows each neighbor is compared with some only, so that a hub takes no time by the square of its degree.
    """
    for v in prange(n):
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
        joined[v], is_root[v] = best, best == v


@KERNELS.twin
def number(n, joined, numbers, labels):
    """The number of each vertex's aggregate, -1 if it has none."""
    for v in prange(n):
        labels[v] = numbers[joined[v]] - 1 if joined[v] >= 0 else -1
