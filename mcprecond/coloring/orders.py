"""Orders in which vertices are colored, for the methods that take one."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.coloring.graph import Graph

ORDERS = ("natural", "random", "ldf")


def sequence_of(graph: Graph, order: Any, seed: int) -> Any:
    """Return the vertices in the order in which they are colored.

    Parameters
    ----------
    graph : Graph
    order : {"natural", "random", "ldf"} or array of int, shape (n,)
        Row order; a random one; largest degree first, ties in row order; or a permutation: which vertex comes when.
    seed : int
        Of the random order.

    Returns
    -------
    array of int32, shape (n,)

    Raises
    ------
    ValueError
        If the order is neither known nor a permutation.
    """
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
