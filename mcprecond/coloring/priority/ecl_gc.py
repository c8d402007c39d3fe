"""ECL-GC: Jones-Plassmann coloring, largest degree first, with the two shortcuts of Alabandi, Powers and Burtscher
(PPoPP 2020, Section 3).

Each vertex keeps the set of colors that it may still get. It may take its best one before all neighbors of higher
priority are colored, if none of the uncolored ones still considers it (shortcut 1), and it stops waiting for a neighbor
whose possible colors do not overlap with its own (shortcut 2). The result is the coloring of a serial JP-LDF with the
same priorities, to the last vertex, whatever the order in which threads run.

Vertices of degree below 32 hold their possible colors in one integer. The others keep a bitmap and show their neighbors
only the range from the best to the worst possible color; they have higher priority, so they are colored first.

Two points differ from the paper, neither of which changes a color. A vertex with k neighbors to wait for keeps just the
k + 1 best of its possible colors, which is what clearing one bit per removed edge amounts to. And low-degree
vertices are visited roughly by priority, so that most of them find all they wait for colored, and the lists of edges
that the paper shortens need not exist.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from mcprecond.backends import KernelSet, compile_loop, compile_part
from mcprecond.coloring.graph import Graph
from mcprecond.coloring.history import history_of, log_round, new_log
from mcprecond.coloring.priorities import mix

KERNELS = KernelSet(__file__)

LOW_DEGREE = 32
UNCOLORED = -1
BATCH = 4096  # low-degree vertices that the CPU takes up per round


def ecl_gc(graph: Graph, *, seed: int = 0) -> tuple[Any, np.ndarray]:
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
    history : numpy.ndarray of int64, shape (rounds, 2)
        On a GPU, round r counts the vertices that had their color after r visits; on the CPU, rounds are passes over
        lists, first of high and then of low degrees. See `Coloring`.
    """
    xp, n = graph.backend.xp, graph.n
    nnz, has_high = graph.indices.size, graph.max_degree >= LOW_DEGREE
    lanes = 4 if nnz > 8 * n else 2
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype, LANES=lanes)
    colors, possible = (xp.empty(n, np.int32) for _ in range(2))
    keys = xp.empty(n, np.uint32)
    run.priority_keys(n, graph.degrees, seed & 0xFFFFFFFF, keys)
    worklist = xp.argsort(keys, kind="stable").astype(np.int32)
    # For high degrees: edges to wait for, and bitmaps. Row v of the bitmaps starts at word indptr[v] // 32 + v, which
    # leaves room for degree + 1 bits without a prefix sum.
    waiting = xp.empty(n if has_high else 1, np.int32)
    dag = xp.empty(nnz if has_high else 1, np.int32)
    bitmaps = xp.empty(nnz // 32 + n + 1 if has_high else 1, np.uint32)
    scratch, log = xp.zeros(4, np.int32), new_log(graph)
    run.color_by_degree(
        n, graph.indptr, graph.indices, graph.degrees, seed & 0xFFFFFFFF, graph.max_degree, colors, possible, worklist,
        waiting, dag, bitmaps, scratch, log,
    )  # fmt: skip
    return colors, history_of(log, graph)


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
def best_colors(mask, count):
    """The lowest `count` bits of those that are set: with so many neighbors less one to wait for, no others matter."""
    kept = 0
    while mask and count:
        kept |= mask & -mask
        mask &= mask - 1
        count -= 1
    return kept


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
def visit_low(v, indptr, indices, degrees, seed, possible):
    """Advance a low-degree vertex by the three cases of Section 3; true once a single bit is left, its color."""
    mask = np.int64(possible[v]) & 0xFFFFFFFF
    taken = considered = still = 0
    for e in range(indptr[v], indptr[v + 1]):
        u = indices[e]
        if u != v and precedes(u, v, degrees, seed):
            theirs = np.int64(possible[u]) & 0xFFFFFFFF
            if theirs & (theirs - 1) == 0:
                taken |= theirs
            elif theirs & mask:  # otherwise shortcut 2: no need to wait for u
                considered |= theirs
                still += 1
    mask = best_colors(mask & ~taken, still + 1)
    best = mask & -mask
    if best & considered == 0:
        mask = best  # shortcut 1, or nobody left to wait for
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
def open_low(n, degrees, colors, possible):
    """Low degrees may get the colors 0..degree. High ones are colored: one bit, or none if the color is beyond."""
    for v in prange(n):
        if degrees[v] < LOW_DEGREE:
            possible[v] = np.int32(np.uint32((1 << (degrees[v] + 1)) - 1))
        else:
            possible[v] = np.int32(np.uint32(1 << colors[v] if colors[v] < LOW_DEGREE else 0))


@compile_loop
def visit_all_low(left, indptr, indices, degrees, seed, possible):
    """One round over the uncolored low-degree vertices; returns those that stay uncolored."""
    done = np.zeros(len(left), np.bool_)
    for i in prange(len(left)):
        done[i] = visit_low(left[i], indptr, indices, degrees, seed, possible)
    return left[~done]


@compile_loop
def color_low(n, degrees, possible, colors):
    """The one bit that is left is the color."""
    for v in prange(n):
        if degrees[v] < LOW_DEGREE:
            colors[v] = lowest_bit(np.int64(possible[v]) & 0xFFFFFFFF)


@KERNELS.twin
def priority_keys(n, degrees, seed, keys):
    """Sort keys: vertices of high degree first, then by falling degree and hash (its first 26 bits)."""
    for v in prange(n):
        keys[v] = (max(LOW_DEGREE - degrees[v], 0) << 26) | ((mix(v, seed) ^ 0xFFFFFFFF) >> 6)


@KERNELS.resident_twin
def color_by_degree(
    n, indptr, indices, degrees, seed, max_degree, colors, possible, worklist, waiting, dag, bitmaps, scratch, log
):
    """The whole coloring: high degrees first, then the others, each list visited until nobody is left."""
    if max_degree >= LOW_DEGREE:
        open_all_high(n, indptr, indices, degrees, seed, colors, waiting, possible, dag, bitmaps)
        left = np.flatnonzero(degrees >= LOW_DEGREE)
        while len(left):
            before = len(left)
            left = visit_all_high(left, indptr, degrees, colors, waiting, possible, dag, bitmaps)
            log_round(log, before - len(left), 0)
    open_low(n, degrees, colors, possible)
    left, listed = worklist[:0], np.sum(degrees >= LOW_DEGREE)
    while len(left) or listed < n:
        batch = worklist[listed : listed + BATCH]
        before = len(left) + len(batch)
        left = visit_all_low(np.concatenate((left, batch)), indptr, indices, degrees, seed, possible)
        log_round(log, before - len(left), 0)
        listed += len(batch)
    color_low(n, degrees, possible, colors)
