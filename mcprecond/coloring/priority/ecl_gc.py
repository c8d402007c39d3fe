"""ECL-GC: Jones-Plassmann coloring, largest degree first, with the two shortcuts of Alabandi, Powers and Burtscher
(PPoPP 2020, Section 3).

Each vertex keeps the set of colors that it may still get. It may take its best one before all neighbors of higher
priority are colored, if none of the uncolored ones still considers it (shortcut 1), and it stops waiting for a neighbor
whose possible colors do not overlap with its own (shortcut 2). The result is the coloring of a serial JP-LDF with the
same priorities, to the last vertex, whatever the order in which threads run.

Vertices of degree below 32 hold their possible colors in one integer. The others keep a bitmap and show their neighbors
only the range from the best to the worst possible color; they have higher priority, so they are colored first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from mcprecond.backends import KernelSet, compile_loop, compile_part
from mcprecond.coloring.graph import Graph
from mcprecond.coloring.priorities import mix

KERNELS = KernelSet(__file__)

LOW_DEGREE = 32
UNCOLORED = -1


def ecl_gc(graph: Graph, *, seed: int = 0) -> tuple[Any, int]:
    """Color by largest degree first; ties go to the larger hash of vertex number and seed, then to the larger number.

    Parameters
    ----------
    graph : Graph
    seed : int
        Selects the hash that breaks ties between equal degrees.

    Returns
    -------
    colors : array of int32, shape (n,)
        At most max_degree + 1 of them, the same on every device and in every run.
    rounds : int
        Most visits to any vertex until it had its color.
    """
    xp, n = graph.backend.xp, graph.n
    nnz = graph.indices.size
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype)
    colors, waiting, possible = (xp.empty(n, np.int32) for _ in range(3))
    dag = xp.empty(max(nnz, 1), np.int32)
    # Row v of the bitmaps starts at word indptr[v] // 32 + v: room for degree + 1 bits without a prefix sum.
    bitmaps = xp.empty(nnz // 32 + n + 1 if graph.max_degree >= LOW_DEGREE else 1, np.uint32)
    scratch = xp.zeros(4, np.int32)
    run.color_by_degree(
        n, graph.indptr, graph.indices, graph.degrees, seed & 0xFFFFFFFF, graph.max_degree, colors, waiting, possible,
        dag, bitmaps, scratch,
    )  # fmt: skip
    return colors, int(scratch[1])


@compile_part
def precedes(u, v, degrees, seed):
    """Whether u has the higher priority."""
    if degrees[u] != degrees[v]:
        return degrees[u] > degrees[v]
    hu, hv = mix(u, seed), mix(v, seed)
    return hu > hv if hu != hv else u > v


@compile_part
def lowest_bit(mask):
    """The number of the lowest bit that is set."""
    bit = 0
    while not (mask >> bit) & 1:
        bit += 1
    return bit


@compile_part
def without_highest_bit(mask):
    """The mask without its highest set bit: with one edge less, one color less is needed in the worst case."""
    smeared = mask
    smeared |= smeared >> 1
    smeared |= smeared >> 2
    smeared |= smeared >> 4
    smeared |= smeared >> 8
    smeared |= smeared >> 16
    return mask & (smeared >> 1)


@compile_part
def without_color(mask, color_bit):
    """Case 1 of the paper: a neighbor is colored, its edge goes, and one possible color with it."""
    return mask & ~color_bit if mask & color_bit else without_highest_bit(mask)


@compile_part
def open_high(v, indptr, indices, degrees, seed, waiting, possible, dag, bitmaps):
    """List the neighbors that a high-degree vertex waits for and make the colors 0..k possible."""
    k = 0
    for e in range(indptr[v], indptr[v + 1]):
        u = indices[e]
        if u != v and precedes(u, v, degrees, seed):
            dag[indptr[v] + k] = u
            k += 1
    waiting[v] = k
    possible[v] = 0
    word = indptr[v] // 32 + v
    for w in range(k // 32 + 1):
        bitmaps[word + w] = 0xFFFFFFFF


@compile_part
def visit_high(v, indptr, degrees, colors, waiting, possible, dag, bitmaps):
    """Advance a high-degree vertex; `possible` holds its best color, and its degree stands for its worst."""
    begin, word = indptr[v], indptr[v] // 32 + v
    still = 0
    for e in range(begin, begin + waiting[v]):
        u = dag[e]
        if colors[u] == UNCOLORED:
            dag[begin + still] = u
            still += 1
        elif colors[u] <= degrees[v]:
            bitmaps[word + colors[u] // 32] &= ~(1 << (colors[u] % 32)) & 0xFFFFFFFF
    waiting[v] = still
    best = possible[v]
    while not (bitmaps[word + best // 32] >> (best % 32)) & 1:
        best += 1
    possible[v] = best
    for e in range(begin, begin + still):
        u = dag[e]
        color = colors[u]  # read once: it may change
        if color == best or (color == UNCOLORED and possible[u] <= best <= degrees[u]):
            return False
    colors[v] = best
    return True


@compile_part
def open_low(v, indptr, indices, degrees, seed, colors, waiting, possible, dag):
    """Make the colors 0..k possible for a low-degree vertex with k higher-priority neighbors, less those that its
    high-degree neighbors already have."""
    k = still = 0
    for e in range(indptr[v], indptr[v + 1]):
        u = indices[e]
        if u != v and precedes(u, v, degrees, seed):
            k += 1
            if degrees[u] < LOW_DEGREE:
                dag[indptr[v] + still] = u
                still += 1
    mask = (1 << (k + 1)) - 1
    if still < k:
        for e in range(indptr[v], indptr[v + 1]):
            u = indices[e]
            if u != v and degrees[u] >= LOW_DEGREE:
                mask = without_color(mask, 1 << colors[u] if colors[u] < LOW_DEGREE else 0)
    waiting[v] = still
    possible[v] = np.int32(np.uint32(mask))


@compile_part
def visit_low(v, indptr, waiting, possible, dag):
    """Advance a low-degree vertex by the three cases of Section 3; one bit left means that it is colored."""
    mask = np.int64(possible[v]) & 0xFFFFFFFF
    begin, still, union = indptr[v], 0, 0
    for e in range(begin, begin + waiting[v]):
        u = dag[e]
        theirs = np.int64(possible[u]) & 0xFFFFFFFF
        if theirs & (theirs - 1) == 0:
            mask = without_color(mask, theirs)
        elif theirs & mask == 0:
            mask = without_highest_bit(mask)  # shortcut 2
        else:
            union |= theirs
            dag[begin + still] = u
            still += 1
    best = mask & -mask
    if best & union == 0:
        mask, still = best, 0  # shortcut 1, or nobody left to wait for
    waiting[v] = still
    possible[v] = np.int32(np.uint32(mask))
    return mask == best


@compile_loop
def open_all_high(n, indptr, indices, degrees, seed, colors, waiting, possible, dag, bitmaps):
    """Every vertex is uncolored; those of high degree get their lists."""
    for v in prange(n):
        colors[v] = UNCOLORED
        if degrees[v] >= LOW_DEGREE:
            open_high(v, indptr, indices, degrees, seed, waiting, possible, dag, bitmaps)


@compile_loop
def visit_all_high(left, indptr, degrees, colors, waiting, possible, dag, bitmaps):
    """One round over the uncolored high-degree vertices; returns those that stay uncolored."""
    done = np.zeros(len(left), np.bool_)
    for i in prange(len(left)):
        done[i] = visit_high(left[i], indptr, degrees, colors, waiting, possible, dag, bitmaps)
    return left[~done]


@compile_loop
def open_all_low(n, indptr, indices, degrees, seed, colors, waiting, possible, dag):
    """The low-degree vertices get their lists, once all others are colored."""
    for v in prange(n):
        if degrees[v] < LOW_DEGREE:
            open_low(v, indptr, indices, degrees, seed, colors, waiting, possible, dag)


@compile_loop
def visit_all_low(left, indptr, waiting, possible, dag):
    """One round over the uncolored low-degree vertices; returns those that stay uncolored."""
    done = np.zeros(len(left), np.bool_)
    for i in prange(len(left)):
        done[i] = visit_low(left[i], indptr, waiting, possible, dag)
    return left[~done]


@compile_loop
def color_low(n, degrees, possible, colors):
    """The one bit that is left is the color."""
    for v in prange(n):
        if degrees[v] < LOW_DEGREE:
            colors[v] = lowest_bit(np.int64(possible[v]) & 0xFFFFFFFF)


@KERNELS.resident_twin
def color_by_degree(n, indptr, indices, degrees, seed, max_degree, colors, waiting, possible, dag, bitmaps, scratch):
    """The whole coloring: high degrees first, then the others, each list visited until nobody is left."""
    open_all_high(n, indptr, indices, degrees, seed, colors, waiting, possible, dag, bitmaps)
    left = np.flatnonzero(degrees >= LOW_DEGREE)
    high_rounds = low_rounds = 0
    while len(left):
        left = visit_all_high(left, indptr, degrees, colors, waiting, possible, dag, bitmaps)
        high_rounds += 1
    open_all_low(n, indptr, indices, degrees, seed, colors, waiting, possible, dag)
    left = np.flatnonzero(degrees < LOW_DEGREE)
    while len(left):
        left = visit_all_low(left, indptr, waiting, possible, dag)
        low_rounds += 1
    scratch[1] = max(high_rounds, low_rounds)
    color_low(n, degrees, possible, colors)
