"""Advance and neighbor-reduce as Gunrock has them (Osama et al., Section IV-B3, Algorithm 7): `published=True`.

A round has three operators, with a barrier between them. Advance has a block for each vertex of the frontier, whose
threads take its neighbors, and writes the neighborhood frontier: the random numbers of those without a color. The
segmented reduction takes the maximum of each segment, which belongs to a thread, a warp or a block, depending on its
size. Then a thread for each vertex colors those above their neighbors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_loop, compile_row
from mcprecond.backends.hashing import mix
from mcprecond.coloring.graph import UNCOLORED, Graph
from mcprecond.coloring.history import log_round, new_log

KERNELS = KernelSet(__file__, "OFFSET")

NOBODY = -1  # in place of a neighbor that is out of the frontier
CUDA_CONSTANTS = {"NOBODY": NOBODY}


def color_published(graph: Graph, seed: int) -> tuple[Any, Any]:
    """Return the colors and the log; takes 8 bytes for each entry of the graph."""
    xp, n = graph.backend.xp, graph.n
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype)
    colors, worklists = xp.empty(n, np.int32), xp.empty((2, n), np.int32)
    reached, largest = xp.empty(graph.indices.size, np.int64), xp.empty(n, np.int64)
    scratch, log = xp.zeros(4, np.int32), new_log(graph)
    run.color_by_segments(
        n, graph.indptr, graph.indices, seed & 0xFFFFFFFF, colors, worklists, reached, largest, scratch, log
    )
    return colors, log


@compile_row
def number_of(v, seed):
    """The random number of a vertex and, below it, the vertex itself: no two are equal, none is negative."""
    return mix(v, seed) << 31 | v


@compile_loop
def advance(first, end, F, indptr, indices, seed, colors, reached):
    """ADVANCEOP."""
    for i in range(first, end):
        v = F[i]
        for k in range(indptr[v], indptr[v + 1]):
            u = indices[k]
            reached[k] = number_of(u, seed) if u != v and colors[u] == UNCOLORED else NOBODY


@compile_loop
def reduce_segments(first, end, F, indptr, reached, largest):
    """REDUCEMAXOP: the maximum of each segment."""
    for i in range(first, end):
        found = np.int64(NOBODY)
        for k in range(indptr[F[i]], indptr[F[i] + 1]):
            found = max(found, reached[k])
        largest[i] = found


@compile_loop
def color_removed(first, end, F, iteration, seed, colors, largest, removed):
    """COLORREMOVEDOP: color the vertices of the frontier F above their neighbors, and mark them."""
    for i in range(first, end):
        if number_of(F[i], seed) > largest[i]:
            colors[F[i]] = iteration
            removed[i] = True


@KERNELS.resident
def color_by_segments(n, indptr, indices, seed, colors, worklists, reached, largest, scratch, log):
    """GUNROCKARCOLOR: all rounds."""
    colors[:] = UNCOLORED
    F = np.arange(n)
    iteration = np.int64(0)  # a literal would have all callees compiled twice
    while len(F):
        advance(0, len(F), F, indptr, indices, seed, colors, reached)
        reduce_segments(0, len(F), F, indptr, reached, largest)
        removed = np.zeros(len(F), np.bool_)
        color_removed(0, len(F), F, iteration, seed, colors, largest, removed)
        log_round(log, np.sum(removed), 0)
        F = F[~removed]
        iteration += 1
