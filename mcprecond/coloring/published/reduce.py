"""Advance neighbor-reduce coloring of Gunrock: Osama et al., "Graph Coloring on the GPU", Section IV-B3, Algorithm 7.

A round has three operators, with a barrier between them. Advance has a block for each vertex of the frontier, whose
threads take its neighbors, and writes the neighborhood frontier: the random numbers of those without a color. The
segmented reduction takes the maximum of each segment, which belongs to a thread, a warp or a block, depending on its
size. Then a thread for each vertex colors those above their neighbors. A reduction yields the maxima or the minima, so
there is one color per round, as in `jpl`. The paper names the fusion of both as its next step: a reduction that yields
maxima and minima, so that a round has two colors, as in `is_minmax`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet
from mcprecond.backends.arguments import flag
from mcprecond.coloring.graph import Graph
from mcprecond.coloring.history import new_log
from mcprecond.coloring.published.jpl import color_by_sets
from mcprecond.coloring.published.minmax import color_frontier

KERNELS = KernelSet(__file__, "OFFSET")

NOBODY = -1  # in place of a neighbor that is out of the frontier
CUDA_CONSTANTS = {"NOBODY": NOBODY}


def is_reduce(graph: Graph, *, seed: int = 0, fused: bool = False) -> tuple[Any, Any]:
    """Color independent sets, found by segmented reduction: "is_reduce" in `COLORINGS`.

    Osama et al., Section IV-B3, Algorithm 7. Takes 8 bytes for each entry of the graph.

    Parameters
    ----------
    graph : Graph
    seed : int
        Selects the random numbers, one per vertex; the vertex number decides between equal ones.
    fused : bool
        If True, one reduction finds both the largest and the smallest number of each neighborhood, and a round colors
        two independent sets.

    Returns
    -------
    colors : array of int32, shape (n,)
        The same on every device and in every run, and those of `jpl`, or of `is_minmax` if fused. Not bounded by
        max_degree + 1.
    log : array of int32, shape (rows, 2)
        As many rounds as colors, or half as many if fused; see `Coloring.history`.
    """
    fused = flag(fused, "fused")
    xp, n = graph.backend.xp, graph.n
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype)
    colors, worklists = xp.empty(n, np.int32), xp.empty((2, n), np.int32)
    reached, largest = xp.empty(graph.indices.size, np.int64), xp.empty(n, np.int64)
    smallest = xp.empty(n if fused else 0, np.int64)
    scratch, log = xp.zeros(4, np.int32), new_log(graph)
    found = colors, worklists, reached, largest, smallest, scratch, log
    run.color_by_segments(n, graph.indptr, graph.indices, seed & 0xFFFFFFFF, int(fused), *found)
    return colors, log


@KERNELS.resident
def color_by_segments(n, indptr, indices, seed, fused, colors, worklists, reached, largest, smallest, scratch, log):
    """GUNROCKARCOLOR: all rounds. One thread needs no reduction: it finds the maxima as `jpl` does, and both extremes
    as `is_minmax` does.
    """
    if fused:
        color_frontier(n, indptr, indices, seed, 1, 0, colors, scratch, log)
    else:
        color_by_sets(n, indptr, indices, seed, colors, worklists, scratch, log)
