"""Greedy first-fit coloring in a given order: the quality reference.

Vertices take, one after the other, the smallest color that no neighbor has.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import compile_part
from mcprecond.coloring.graph import Graph
from mcprecond.coloring.history import without_conflicts
from mcprecond.coloring.orders import sequence_of
from mcprecond.coloring.priority.jp import by_fronts


def greedy(graph: Graph, *, order: Any = "natural", seed: int = 0) -> tuple[Any, np.ndarray]:
    """Color first-fit in the given order: serially on the CPU, by the fronts of `jp` on the GPU, with equal colors.

    Parameters
    ----------
    graph : Graph
    order : {"natural", "random", "ldf"} or array of int, shape (n,)
        Row order; a random one; largest degree first, ties in row order; or a permutation: which vertex comes when.
    seed : int
        Of the random order.

    Returns
    -------
    colors : array of int32, shape (n,)
        At most max_degree + 1 of them, the same on every device.
    history : numpy.ndarray of int64, shape (rounds, 2)
        Front by front on the GPU, one round on the CPU. See `Coloring`.
    """
    sequence = sequence_of(graph, order, seed)
    if graph.backend.name == "gpu":
        return by_fronts(graph, sequence)
    colors = np.full(graph.n, -1, np.int32)
    first_fit(graph.indptr, graph.indices, sequence, colors)
    return colors, without_conflicts([graph.n] if graph.n else [])


@compile_part
def first_fit(indptr, indices, sequence, colors):
    """The serial loop. `taken_by[c] == v` says that a neighbor of v has color c."""
    taken_by = np.full(len(colors) + 1, -1, np.int32)
    for v in sequence:
        for k in range(indptr[v], indptr[v + 1]):
            if indices[k] != v and colors[indices[k]] >= 0:
                taken_by[colors[indices[k]]] = v
        color = 0
        while taken_by[color] == v:
            color += 1
        colors[v] = color
