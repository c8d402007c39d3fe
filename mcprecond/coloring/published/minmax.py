"""Min-max independent set coloring of Gunrock: Osama et al., "Graph Coloring on the GPU", Section IV-B1, Algorithm 5.

As `jpl`, but every comparison of a vertex with its neighbors is used twice: a round colors the vertices of locally
largest random number and, in a second color, those of locally smallest. That nearly halves the rounds.

Gunrock's frontier holds all vertices in every round. Table II compares one set in a round or two, and an operator that
counts the colored vertices by an atomic for each, or none. Without that operator each block adds up what it has colored
and does one atomic, since the history needs the sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_row
from mcprecond.backends.arguments import flag
from mcprecond.backends.hashing import mix
from mcprecond.coloring.graph import UNCOLORED, Graph
from mcprecond.coloring.history import log_round, new_log

KERNELS = KernelSet(__file__, "OFFSET")


def is_minmax(graph: Graph, *, seed: int = 0, two_sets: bool = True, atomics: bool = False) -> tuple[Any, Any]:
    """Color two independent sets per round: "is_minmax" in `COLORINGS`.

    Osama et al., Section IV-B1, Algorithm 5.

    Parameters
    ----------
    graph : Graph
    seed : int
        Selects the random numbers, one per vertex; the vertex number decides between equal ones.
    two_sets : bool
        Whether a round colors the minima, too. Without them the colors are those of `jpl`.
    atomics : bool
        Whether an operator of its own counts the colored vertices after each round, by an atomic for each of them:
        "Independent Set with Atomics" in Table II. On a GPU; the result is the same.

    Returns
    -------
    colors : array of int32, shape (n,)
        The same on every device and in every run. Not bounded by max_degree + 1; some numbers may have no vertex.
    log : array of int32, shape (rows, 2)
        There are at most twice as many colors as rounds. See `Coloring.history`.
    """
    two_sets, atomics = flag(two_sets, "two_sets"), flag(atomics, "atomics")
    xp, n = graph.backend.xp, graph.n
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype)
    colors = xp.empty(n, np.int32)
    scratch, log = xp.zeros(4, np.int32), new_log(graph)
    run.color_frontier(
        n, graph.indptr, graph.indices, seed & 0xFFFFFFFF, int(two_sets), int(atomics), colors, scratch, log
    )
    return colors, log


@compile_row
def color_of(v, base, two_sets, indptr, indices, seed, colors):
    """COLOROP: base for a local maximum, base + 1 for a local minimum; UNCOLORED for neither.

    A neighbor with a color from `base` on was colored in this round, so it was uncolored when the round began. A vertex
    without uncolored neighbors is a maximum and a minimum, and gets the second color, as in the paper. With one set a
    round only finds maxima.
    """
    own = mix(v, seed)
    colormax, colormin = True, two_sets
    for k in range(indptr[v], indptr[v + 1]):
        u = indices[k]
        if u == v or UNCOLORED < colors[u] < base:
            continue
        theirs = mix(u, seed)
        if theirs > own or (theirs == own and u > v):
            colormax = False
        else:
            colormin = False
        if not (colormax or colormin):
            return UNCOLORED
    return base + 1 if colormin else base


@KERNELS.resident
def color_frontier(n, indptr, indices, seed, two_sets, atomics, colors, scratch, log):
    """GUNROCKCOLOR: all rounds; one thread lists the vertices that are left, and counts them without atomics."""
    colors[:] = UNCOLORED
    left, base = np.arange(n), np.int64(0)
    while len(left):
        before = len(left)
        for v in left:
            colors[v] = color_of(v, base, two_sets != 0, indptr, indices, seed, colors)
        left = left[colors[left] == UNCOLORED]
        log_round(log, before - len(left), 0)
        base += 1 + two_sets
