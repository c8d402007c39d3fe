"""Greedy first-fit coloring in a given order: the quality reference.

Vertices take, one after the other, the smallest color that no neighbor has. On the CPU that is the loop as it stands.
On the GPU the same coloring is found in parallel: a vertex is ready when all neighbors that precede it in the order are
colored, and the ready ones of each step form a front.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet
from mcprecond.coloring.graph import Graph

KERNELS = KernelSet(__file__)

ORDERS = ("natural", "random", "ldf")


def greedy(graph: Graph, *, order: Any = "natural", seed: int = 0) -> tuple[Any, int]:
    """Color first-fit in the given order.

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
    rounds : int
        Fronts on the GPU; 1 on the CPU.
    """
    xp, n = graph.backend.xp, graph.n
    sequence = _sequence(graph, order, seed)
    rank = xp.empty(n, np.int32)
    rank[sequence] = xp.arange(n, dtype=np.int32)
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype)
    colors = xp.empty(n, np.int32)
    waiting = xp.empty(n, np.int32)
    fronts = xp.empty((2, n), np.int32)
    scratch = xp.zeros(4, np.int32)
    run.first_fit(n, graph.indptr, graph.indices, sequence, rank, colors, waiting, fronts, scratch)
    return colors, int(scratch[1])


def _sequence(graph: Graph, order: Any, seed: int) -> Any:
    """The vertices in the order in which they are colored."""
    xp, n = graph.backend.xp, graph.n
    if not isinstance(order, str):
        sequence = xp.asarray(order)
        if sequence.shape != (n,) or not bool((xp.sort(sequence) == xp.arange(n)).all()):
            raise ValueError(f"order must be one of {', '.join(ORDERS)} or a permutation of 0..{n - 1}")
        return sequence.astype(np.int32)
    if order == "natural":
        return xp.arange(n, dtype=np.int32)
    if order == "random":
        return xp.asarray(np.random.default_rng(seed).permutation(n).astype(np.int32))
    if order == "ldf":
        return xp.argsort(-graph.degrees, kind="stable").astype(np.int32)
    raise ValueError(f"order must be one of {', '.join(ORDERS)} or a permutation, got {order!r}")


@KERNELS.resident_twin
def first_fit(n, indptr, indices, sequence, rank, colors, waiting, fronts, scratch):
    """The serial loop. `taken_by[c] == v` says that a neighbor of v has color c."""
    colors[:] = -1
    taken_by = np.full(n + 1, -1, np.int32)
    for v in sequence:
        for k in range(indptr[v], indptr[v + 1]):
            if indices[k] != v and colors[indices[k]] >= 0:
                taken_by[colors[indices[k]]] = v
        color = 0
        while taken_by[color] == v:
            color += 1
        colors[v] = color
    scratch[1] = 1
