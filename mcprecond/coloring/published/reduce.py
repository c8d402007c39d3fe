"""Advance neighbor-reduce coloring of Gunrock: Osama et al., "Graph Coloring on the GPU", Section IV-B3, Algorithm 7.

The comparison of a vertex with its neighbors is a segmented reduction: the maximum of the random numbers in each
neighbor list, which is not cut short, but which several threads share. A reduction yields the maxima or the minima, so
there is one color per round, as in `jpl`. `published=True` has the paper's operators instead (`segments.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet
from mcprecond.backends.arguments import flag
from mcprecond.coloring.graph import Graph
from mcprecond.coloring.history import new_log
from mcprecond.coloring.published.jpl import color_by_sets
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


@KERNELS.resident
def color_by_reduction(n, indptr, indices, seed, colors, worklists, scratch, log):
    """GUNROCKARCOLOR: all rounds. One thread alone needs no reduction, and finds the maxima as `jpl` does."""
    color_by_sets(n, indptr, indices, seed, colors, worklists, scratch, log)
