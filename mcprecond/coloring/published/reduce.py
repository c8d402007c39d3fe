"""Advance neighbor-reduce coloring of Gunrock: Osama et al., "Graph Coloring on the GPU", Section IV-B3, Algorithm 7.

The comparison of a vertex with its neighbors is a segmented reduction: the maximum of the random numbers in each
neighbor list, which is not cut short, but which several threads share. A reduction yields the maxima or the minima, so
there is one color per round, as in `jpl`. `published=True` has the paper's operators instead (`segments.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_loop, compile_part
from mcprecond.backends.arguments import flag
from mcprecond.backends.hashing import mix
from mcprecond.coloring.graph import UNCOLORED, Graph
from mcprecond.coloring.history import log_round, new_log
from mcprecond.coloring.published.segments import color_published

KERNELS = KernelSet(__file__, "OFFSET LANES")

NOBODY = -1  # the maximum over no neighbors
CUDA_CONSTANTS = {"NOBODY": NOBODY}


def is_reduce(graph: Graph, *, seed: int = 0, published: bool = False) -> tuple[Any, Any]:
    """Color one independent set per round, found by segmented reduction: "is_reduce" in `COLORINGS`.

    Osama et al., Section IV-B3, Algorithm 7.

    Parameters
    ----------
    graph : Graph
    seed : int
        Selects the random numbers, one per vertex; the vertex number decides between equal ones.
    published : bool
        Run the paper's operators: advance with a block for each vertex, a segmented reduction by threads, warps and
        blocks, and coloring, apart from each other. The result is the same.

    Returns
    -------
    colors : array of int32, shape (n,)
        The same on every device and in every run, and those of `jpl`. Not bounded by max_degree + 1.
    log : array of int32, shape (rows, 2)
        As many rounds as colors; see `Coloring.history`.
    """
    if flag(published, "published"):
        return color_published(graph, seed)
    xp, n = graph.backend.xp, graph.n
    # Threads per segment on the GPU: about as many as a row has entries, a warp at most.
    lanes = min(32, 1 << (graph.indices.size // max(n, 1)).bit_length())
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype, LANES=lanes)
    colors = xp.empty(n, np.int32)
    worklists = xp.empty((2, n), np.int32)
    scratch, log = xp.zeros(4, np.int32), new_log(graph)
    run.color_by_reduction(n, graph.indptr, graph.indices, seed & 0xFFFFFFFF, colors, worklists, scratch, log)
    return colors, log


@compile_part
def number_of(v, seed):
    """The random number of a vertex and, below it, the vertex itself: no two are equal, none is negative."""
    return mix(v, seed) << 31 | v


@compile_part
def neighbor_maximum(v, iteration, indptr, indices, seed, colors):
    """ADVANCEOP and REDUCEMAXOP on one segment: the maximum over the neighbors uncolored when the round began."""
    largest = np.int64(NOBODY)
    for k in range(indptr[v], indptr[v + 1]):
        u = indices[k]
        if u != v and (colors[u] == UNCOLORED or colors[u] == iteration):
            largest = max(largest, number_of(u, seed))
    return largest


@compile_loop
def color_each(first, end, F, iteration, indptr, indices, seed, colors, removed):
    """The vertices of `color_removed`."""
    for i in range(first, end):
        if number_of(F[i], seed) > neighbor_maximum(F[i], iteration, indptr, indices, seed, colors):
            colors[F[i]] = iteration
            removed[i] = True


@compile_part
def color_removed(F, iteration, indptr, indices, seed, colors):
    """One round: color those above their neighbors (COLORREMOVEDOP); returns the rest of the frontier F."""
    removed = np.zeros(len(F), np.bool_)
    color_each(0, len(F), F, iteration, indptr, indices, seed, colors, removed)
    return F[~removed]


@KERNELS.resident
def color_by_reduction(n, indptr, indices, seed, colors, worklists, scratch, log):
    """GUNROCKARCOLOR: all rounds."""
    colors[:] = UNCOLORED
    F = np.arange(n)
    iteration = np.int64(0)  # a literal would have all callees compiled twice
    while len(F):
        before = len(F)
        F = color_removed(F, iteration, indptr, indices, seed, colors)
        log_round(log, before - len(F), 0)
        iteration += 1
