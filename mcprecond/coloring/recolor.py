"""Recoloring by iterated greedy (Culberson 1992): first-fit once more, class by class.

If all vertices of a class come one after the other, first-fit needs no more colors than there are classes: by induction
the vertices of the first k classes get by with k colors. Going through the classes in another order often frees some.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.coloring.graph import Graph
from mcprecond.coloring.greedy import greedy


def recolor(graph: Graph, distance: int, colors: Any, sizes: np.ndarray, passes: int) -> Any:
    """Color first-fit again, `passes` times, by classes: in turn the last first, and the largest first.

    Parameters
    ----------
    graph : Graph
    distance : {1, 2}
    colors : array of int32, shape (n,)
        A coloring, proper at that distance; contiguous.
    sizes : numpy.ndarray of int, shape (n_colors,)
        Vertices per color.
    passes : int

    Returns
    -------
    array of int32, shape (n,)
        As proper, with at most as many colors; deterministic.
    """
    xp = graph.backend.xp
    for k in range(passes):
        classes = np.arange(len(sizes))[::-1] if k % 2 == 0 else np.argsort(-sizes, kind="stable")
        rank = np.empty(len(sizes), np.int32)
        rank[classes] = np.arange(len(sizes), dtype=np.int32)
        sequence = xp.argsort(xp.asarray(rank)[colors], kind="stable")
        colors, _ = greedy(graph, distance=distance, order=sequence)
        sizes = np.bincount(graph.backend.to_host(colors))
    return colors
