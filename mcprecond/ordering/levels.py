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
from mcprecond.coloring.coloring import finish
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


def coloring_by_levels(graph: Graph, sequence: Any | None, method: str) -> Coloring:
    """Return the levels as a coloring."""
    return finish(levels_of(graph, sequence), log_of([], graph.backend), method, graph.backend)
