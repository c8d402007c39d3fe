"""Levels: which rows of a triangular factor can be computed at once, when an order of the rows is given.

A row depends on those of its neighbors that come earlier, so its level is one more than the largest of theirs.
Neighbors have different levels: levels are a coloring. Sorting by level keeps the earlier of two neighbors first, and
that is all that substitution and an incomplete factorization on the matrix's pattern depend on.

Naumov: Parallel Solution of Sparse Triangular Linear Systems in the Preconditioned Iterative Methods on the GPU, NVIDIA
Technical Report NVR-2011-001.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet
from mcprecond.coloring import Graph

KERNELS = KernelSet(__file__)


def levels_of(graph: Graph, sequence: Any) -> Any:
    """Return the level of each vertex: int32, 0 for those before which no neighbor comes.

    Parameters
    ----------
    graph : Graph
    sequence : array of int32, shape (n,)
        Which vertex comes when.
    """
    xp, n = graph.backend.xp, graph.n
    rank = xp.empty(n, np.int32)
    rank[sequence] = xp.arange(n, dtype=np.int32)
    levels, waiting = (xp.empty(n, np.int32) for _ in range(2))
    fronts, scratch = xp.empty((2, n), np.int32), xp.zeros(4, np.int32)
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype, LANES=8)
    run.find_levels(n, graph.indptr, graph.indices, sequence, rank, levels, waiting, fronts, scratch)
    return levels


@KERNELS.resident_twin
def find_levels(n, indptr, indices, sequence, rank, levels, waiting, fronts, scratch):
    """In the given order; CUDA goes front by front, each a level, for which the last three arguments are."""
    for v in sequence:
        level = 0
        for k in range(indptr[v], indptr[v + 1]):
            u = indices[k]
            if rank[u] < rank[v]:
                level = max(level, levels[u] + 1)
        levels[v] = level
