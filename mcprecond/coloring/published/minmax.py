"""Min-max independent set coloring of Gunrock: Osama et al., "Graph Coloring on the GPU", Section IV-B1, Algorithm 5.

As `jpl`, but every comparison of a vertex with its neighbors is used twice: a round colors the vertices of locally
largest random number and, in a second color, those of locally smallest. That nearly halves the rounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_loop, compile_row
from mcprecond.backends.hashing import mix
from mcprecond.coloring.graph import UNCOLORED, Graph
from mcprecond.coloring.history import log_round, new_log

KERNELS = KernelSet(__file__, "OFFSET")


def is_minmax(graph: Graph, *, seed: int = 0) -> tuple[Any, Any]:
    """Color two independent sets per round: "is_minmax" in `COLORINGS`.

    Osama et al., Section IV-B1, Algorithm 5.

    Parameters
    ----------
    graph : Graph
    seed : int
        Selects the random numbers, one per vertex; the vertex number decides between equal ones.

    Returns
    -------
    colors : array of int32, shape (n,)
        The same on every device and in every run. Not bounded by max_degree + 1; some numbers may have no vertex.
    log : array of int32, shape (rows, 2)
        There are at most twice as many colors as rounds. See `Coloring.history`.
    """
    xp, n = graph.backend.xp, graph.n
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype)
    colors = xp.empty(n, np.int32)
    worklists = xp.empty((2, n), np.int32)
    scratch, log = xp.zeros(4, np.int32), new_log(graph)
    run.color_by_two_sets(n, graph.indptr, graph.indices, seed & 0xFFFFFFFF, colors, worklists, scratch, log)
    return colors, log


@compile_row
def color_of(v, base, indptr, indices, seed, colors):
    """COLOROP: base for a local maximum, base + 1 for a local minimum; UNCOLORED for neither.

    Colors from base on are of this round: such neighbors were uncolored when it began. Who has no uncolored neighbors
    is both and gets the second color, as in the paper.
    """
    own = mix(v, seed)
    colormax = colormin = True
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


@compile_loop
def color_two_sets(first, end, left, base, indptr, indices, seed, colors, done):
    """One round over the vertices that are left; marks those that it colors."""
    for i in range(first, end):
        color = color_of(left[i], base, indptr, indices, seed, colors)
        if color != UNCOLORED:
            colors[left[i]] = color
            done[i] = True


@KERNELS.resident
def color_by_two_sets(n, indptr, indices, seed, colors, worklists, scratch, log):
    """GUNROCKCOLOR: all rounds; the uncolored vertices are kept in a worklist."""
    colors[:] = UNCOLORED
    left = np.arange(n)
    iteration = 0
    while len(left):
        done = np.zeros(len(left), np.bool_)
        color_two_sets(0, len(left), left, 2 * iteration, indptr, indices, seed, colors, done)
        log_round(log, np.sum(done), 0)
        left = left[~done]
        iteration += 1
