"""JPL, the Jones-Plassmann-Luby coloring of Naumov, Castonguay and Cohen (NVIDIA, 2015).

Every vertex draws one random number. Round c gives color c to all uncolored vertices whose number is larger than those
of their uncolored neighbors: an independent set. Simple and fast, at several times the colors of first-fit methods.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_row
from mcprecond.backends.hashing import mix
from mcprecond.coloring.graph import UNCOLORED, Graph
from mcprecond.coloring.history import log_round, new_log

KERNELS = KernelSet(__file__, "OFFSET")


def jpl(graph: Graph, *, seed: int = 0) -> tuple[Any, Any]:
    """Color one independent set per round.

    Parameters
    ----------
    graph : Graph
    seed : int
        Selects the random numbers.

    Returns
    -------
    colors : array of int32, shape (n,)
        The same on every device and in every run. Not bounded by max_degree + 1.
    log : array of int32, shape (rows, 2)
        As many rounds as colors; see `Coloring.history`.
    """
    xp, n = graph.backend.xp, graph.n
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype)
    colors = xp.empty(n, np.int32)
    worklists = xp.empty((2, n), np.int32)
    scratch, log = xp.zeros(4, np.int32), new_log(graph)
    run.color_by_sets(n, graph.indptr, graph.indices, seed & 0xFFFFFFFF, colors, worklists, scratch, log)
    return colors, log


@compile_row
def is_local_maximum(v, c, indptr, indices, seed, colors):
    """Whether v has the largest random number among its neighbors that were uncolored when round c began."""
    own = mix(v, seed)
    for k in range(indptr[v], indptr[v + 1]):
        u = indices[k]
        if u != v and (colors[u] == UNCOLORED or colors[u] == c):
            theirs = mix(u, seed)
            if theirs > own or (theirs == own and u > v):
                return False
    return True


@KERNELS.resident
def color_by_sets(n, indptr, indices, seed, colors, worklists, scratch, log):
    """All rounds; the uncolored vertices are kept in a worklist."""
    colors[:] = UNCOLORED
    left, c = np.arange(n), np.int64(0)
    while len(left):
        before = len(left)
        for v in left:
            if is_local_maximum(v, c, indptr, indices, seed, colors):
                colors[v] = c
        left = left[colors[left] == UNCOLORED]
        log_round(log, before - len(left), 0)
        c += 1
