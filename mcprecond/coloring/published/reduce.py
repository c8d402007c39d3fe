"""Advance neighbor-reduce coloring of Gunrock: Osama et al., "Graph Coloring on the GPU", Section IV-B3, Algorithm 7.

A round has three operators, with a barrier between them. Advance has a block for each vertex of the frontier, whose
threads take its neighbors, and writes the neighborhood frontier: the random numbers of those without a color. The
segmented reduction takes the maximum of each segment, which belongs to a thread, a warp or a block, depending on its
size. Then a thread for each vertex colors those above their neighbors. A reduction yields the maxima or the minima, so
there is one color per round, as in `jpl`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet
from mcprecond.coloring.graph import Graph
from mcprecond.coloring.history import new_log
from mcprecond.coloring.published.jpl import color_by_sets

KERNELS = KernelSet(__file__, "OFFSET")

NOBODY = -1  # in place of a neighbor that is out of the frontier
CUDA_CONSTANTS = {"NOBODY": NOBODY}


def is_reduce(graph: Graph, *, seed: int = 0) -> tuple[Any, Any]:
    """Color one independent set per round, found by segmented reduction: "is_reduce" in `COLORINGS`.

    Osama et al., Section IV-B3, Algorithm 7. Takes 8 bytes for each entry of the graph.

    Parameters
    ----------
    graph : Graph
    seed : int
        Selects the random numbers, one per vertex; the vertex number decides between equal ones.

    Returns
    -------
    colors : array of int32, shape (n,)
        The same on every device and in every run, and those of `jpl`. Not bounded by max_degree + 1.
    log : array of int32, shape (rows, 2)
        As many rounds as colors; see `Coloring.history`.
    """
    xp, n = graph.backend.xp, graph.n
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype)
    colors, worklists = xp.empty(n, np.int32), xp.empty((2, n), np.int32)
    reached, largest = xp.empty(graph.indices.size, np.int64), xp.empty(n, np.int64)
    scratch, log = xp.zeros(4, np.int32), new_log(graph)
    run.color_by_segments(
        n, graph.indptr, graph.indices, seed & 0xFFFFFFFF, colors, worklists, reached, largest, scratch, log
    )
    return colors, log


@KERNELS.resident
def color_by_segments(n, indptr, indices, seed, colors, worklists, reached, largest, scratch, log):
    """GUNROCKARCOLOR: all rounds. One thread needs no reduction, and finds the maxima as `jpl` does."""
    color_by_sets(n, indptr, indices, seed, colors, worklists, scratch, log)
