"""JP, the coloring of Jones and Plassmann (SIAM J. Sci. Comput. 14, 1993) with a given order as priority.

A vertex is ready when all neighbors that precede it are colored; it then takes the smallest color that none of them
has. The ready vertices of each step form a front, an independent set. The result is that of coloring first-fit in that
order, one vertex after the other. Hasenplaugh et al. (SPAA 2014) compare orders.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from mcprecond.backends import KernelSet, compile_loop, compile_part
from mcprecond.backends.atomics import atomic_add
from mcprecond.coloring.graph import Graph
from mcprecond.coloring.orders import sequence_of

KERNELS = KernelSet(__file__)

PALETTE = 64


def jp(graph: Graph, *, order: Any = "random", seed: int = 0) -> tuple[Any, int]:
    """Color first-fit in the given order, front by front.

    Parameters
    ----------
    graph : Graph
    order : {"random", "ldf", "natural", "sdl", "sdl_batch"} or array of int, shape (n,)
        Who comes first: at random; largest degree first, ties in row order; row order; smallest degree last, the order
        of which is found serially on the host; the same in parallel, where whole batches of vertices of small remaining
        degree come before each other; or a permutation: which vertex comes when. Smallest degree last needs at most
        degeneracy + 1 colors, in batches too.
    seed : int
        Of the random order.

    Returns
    -------
    colors : array of int32, shape (n,)
        At most max_degree + 1 of them, the same on every device and in every run.
    rounds : int
        The number of fronts: the longest chain of neighbors, each preceding the next.
    """
    return by_fronts(graph, sequence_of(graph, order, seed))


def by_fronts(graph: Graph, sequence: Any) -> tuple[Any, int]:
    """Color first-fit in the order of `sequence`, a permutation of the vertices on the graph's device."""
    xp, n = graph.backend.xp, graph.n
    rank = xp.empty(n, np.int32)
    rank[sequence] = xp.arange(n, dtype=np.int32)
    colors, waiting = (xp.empty(n, np.int32) for _ in range(2))
    fronts = xp.empty((2, n), np.int32)
    scratch = xp.zeros(4, np.int32)
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype)
    run.color_fronts(n, graph.indptr, graph.indices, rank, colors, waiting, fronts, scratch)
    return colors, int(scratch[1])


@compile_part
def smallest_free_color(v, indptr, indices, colors):
    """The smallest color that no neighbor has, looked for 64 at a time."""
    offset = 0
    while True:
        taken = np.uint64(0)
        for k in range(indptr[v], indptr[v + 1]):
            color = colors[indices[k]] - offset
            if indices[k] != v and 0 <= color < PALETTE:
                taken |= np.uint64(1) << np.uint64(color)
        for color in range(PALETTE):
            if not (taken >> np.uint64(color)) & np.uint64(1):
                return offset + color
        offset += PALETTE


@compile_loop
def first_front(n, indptr, indices, rank, colors, waiting, front, length):
    """Count for each vertex the neighbors that precede it; those with none are the first front."""
    for v in prange(n):
        before = 0
        for k in range(indptr[v], indptr[v + 1]):
            before += rank[indices[k]] < rank[v]
        colors[v] = -1
        waiting[v] = before
        if before == 0:
            front[atomic_add(length, 0, np.int32(1))] = v


@compile_loop
def color_front(count, front, indptr, indices, rank, colors, waiting, following, length):
    """Color the vertices of a front; whoever colors the last that a neighbor waits for lists it for the next."""
    for i in prange(count):
        v = front[i]
        colors[v] = smallest_free_color(v, indptr, indices, colors)
        for k in range(indptr[v], indptr[v + 1]):
            u = indices[k]
            if rank[u] > rank[v] and atomic_add(waiting, u, np.int32(-1)) == 1:
                following[atomic_add(length, 0, np.int32(1))] = u


@KERNELS.resident_twin
def color_fronts(n, indptr, indices, rank, colors, waiting, fronts, scratch):
    """Front after front until there is none."""
    length = np.zeros(1, np.int32)
    first_front(n, indptr, indices, rank, colors, waiting, fronts[0], length)
    rounds = 0
    while length[0]:
        count = length[0]
        length[0] = 0
        color_front(count, fronts[rounds % 2], indptr, indices, rank, colors, waiting, fronts[(rounds + 1) % 2], length)
        rounds += 1
    scratch[1] = rounds
