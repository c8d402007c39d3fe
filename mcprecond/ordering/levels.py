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

from mcprecond.coloring import Coloring, Graph
from mcprecond.coloring.coloring import finished
from mcprecond.coloring.history import log_of
from mcprecond.coloring.jp import colors_and_fronts


def levels_of(graph: Graph, sequence: Any | None) -> Any:
    """Return the level of each vertex: int32, 0 for those before which no neighbor comes.

    These are the fronts in which Jones and Plassmann's method colors in that order.

    Parameters
    ----------
    graph : Graph
    sequence : array of int32, shape (n,), or None
        Which vertex comes when; None stands for row order.
    """
    return ((colors_and_fronts(graph, sequence) >> 32) - 1).astype(np.int32)


def coloring_by_levels(graph: Graph, sequence: Any | None, method: str, n_rest: int = 0) -> Coloring:
    """Return the levels as a coloring.

    The last `n_rest` vertices of the sequence get a color of their own behind all others, whatever their levels are.
    """
    levels = levels_of(graph, sequence)
    if n_rest and sequence is not None:
        rest = sequence[len(sequence) - n_rest :]
        levels[rest] = -1
        levels[rest] = levels.max() + 1
    return finished(levels, log_of([], graph.backend), method, graph.backend)
