"""CC, the second heuristic of Naumov, Castonguay and Cohen (NVIDIA, 2015): several sets per round, by hash functions.

It is this package's reading of a paragraph, and not cuSPARSE's csrcolor. That goes back to the same idea, but its hash
functions, how many there are and when it stops are not in the article; it finds other colors, and another number of
them. Where a table says csrcolor, cuSPARSE was called.

As `jpl`, but with several hash functions in place of one random number. For each of them the local maxima and the local
minima among the uncolored vertices are two independent sets, so a round assigns up to 2 * hashes colors at once. That
takes fewer rounds and mostly some more colors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_row
from mcprecond.backends.arguments import integer
from mcprecond.backends.hashing import mix
from mcprecond.coloring.graph import UNCOLORED, Graph
from mcprecond.coloring.history import log_round, new_log

KERNELS = KernelSet(__file__, "OFFSET")

MOST_HASHES = 32  # the bits of a word in cc.cu


def cc(graph: Graph, *, seed: int = 0, hashes: int = 4) -> tuple[Any, Any]:
    """Color up to 2 * hashes independent sets per round: "cc" in `COLORINGS`.

    The method is known from the section "A Parallel Algorithm for Graph Coloring" of NVIDIA's article, which gives no
    listing of it: "multiple hash functions instead of random numbers to assign multiple colors at once".
    That a hash function serves for its minima, too, and stays the same in all rounds are choices made here.

    Parameters
    ----------
    graph : Graph
    seed : int
        Selects the hash functions; the vertex number decides between equal hashes.
    hashes : int
        The number of hash functions, 1 to 32. Many of them save rounds and cost colors.

    Returns
    -------
    colors : array of int32, shape (n,)
        The same on every device and in every run. Not bounded by max_degree + 1; some numbers may have no vertex.
    log : array of int32, shape (rows, 2)
        There are at most 2 * hashes times as many colors as rounds. See `Coloring.history`.
    """
    hashes = integer(hashes, "hashes", 1, MOST_HASHES)
    xp, n = graph.backend.xp, graph.n
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype)
    colors = xp.empty(n, np.int32)
    worklists = xp.empty((2, n), np.int32)
    scratch, log = xp.zeros(4, np.int32), new_log(graph)
    run.color_by_hashes(n, graph.indptr, graph.indices, seed & 0xFFFFFFFF, hashes, colors, worklists, scratch, log)
    return colors, log


@compile_row
def color_of(v, base, indptr, indices, seed, hashes, colors):
    """The color of the first set that v is in; UNCOLORED if it is in none.

    By hash function h, the local maxima get color base + 2 h and the local minima base + 2 h + 1. All sets are judged
    against the neighbors that were uncolored when the round began: those without a color or with one from base on. So
    each of them is independent, and so is what earlier sets leave of it.
    """
    maximal = minimal = (1 << hashes) - 1  # bit h: v may still be one by hash function h
    for k in range(indptr[v], indptr[v + 1]):
        u = indices[k]
        if u == v or UNCOLORED < colors[u] < base:
            continue
        for h in range(hashes):
            if ((maximal | minimal) >> h) & 1:
                own, theirs = mix(v, seed + h), mix(u, seed + h)
                if theirs > own or (theirs == own and u > v):
                    maximal &= ~(1 << h)
                else:
                    minimal &= ~(1 << h)
        if (maximal | minimal) == 0:
            return UNCOLORED
    h = 0
    while not ((maximal | minimal) >> h) & 1:
        h += 1
    return base + 2 * h + (0 if (maximal >> h) & 1 else 1)


@KERNELS.resident
def color_by_hashes(n, indptr, indices, seed, hashes, colors, worklists, scratch, log):
    """All rounds; the uncolored vertices are kept in a worklist."""
    colors[:] = UNCOLORED
    left, base = np.arange(n), np.int64(0)
    while len(left):
        before = len(left)
        for v in left:
            colors[v] = color_of(v, base, indptr, indices, seed, hashes, colors)
        left = left[colors[left] == UNCOLORED]
        log_round(log, before - len(left), 0)
        base += 2 * hashes
