"""ECL-GC in the rounds of its paper (Alabandi, Powers and Burtscher, PPoPP 2020, Section 3): `published=True`.

Every vertex lists the k neighbors of higher priority, the incoming edges of the graph's orientation, and has the colors
0..k for possible ones. Each round visits all vertices without a color and shortens their lists, one color for an edge:
an edge from a colored neighbor goes, and with it that color or, if that is not possible any more, the worst one; so
does an edge from a neighbor whose possible colors are others, and the worst one (shortcut 2). A vertex gets its best
color when no edge is left, or when none of the neighbors left considers that color (shortcut 1). Rounds are
asynchronous: a visit may or may not see what others of the same round do.

Vertices of degree below 32 are visited by a thread each and keep their possible colors in an integer. A warp visits
each of the others, which keep a bitmap, take shortcut 1 only, and show neighbors two integers, their best possible
color and their worst, k. The best one is maintained, the worst is not updated. By degree they come before all vertices
of low degree, so that they wait for each other only.

The paper says that vertices are processed asynchronously and repeatedly. Here the GPU colors the vertices of high
degree first, in rounds over a list of those without a color, which an atomic counter fills. Then every thread visits
its own vertices of low degree until all have their colors, and waits for no other thread: round r of the log has the
vertices that were colored in pass r - 1 of their thread. A CPU visits all vertices without a color in each round, in
the order of the worklist.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_row
from mcprecond.coloring.graph import Graph
from mcprecond.coloring.history import log_round, new_log
from mcprecond.coloring.priorities import LOW_DEGREE, ORDERS, lowest_bit, precedes

KERNELS = KernelSet(__file__, "OFFSET")


def color_in_published_rounds(graph: Graph, order: str, shortcut1: bool, shortcut2: bool, seed: int) -> tuple[Any, Any]:
    """Return the colors and the log: its first round has the vertices that wait for nobody, as Figure 5a does."""
    xp, n, nnz = graph.backend.xp, graph.n, graph.indices.size
    colors, possible, waiting = (xp.empty(n, np.int32) for _ in range(3))
    dag, bitmaps = xp.empty(nnz, np.int32), xp.empty(nnz // 32 + n + 1, np.uint32)
    worklists = xp.empty((2, n), np.int32)
    if graph.backend.name == "cpu":
        worklists[0] = np.arange(n)
    scratch, log = xp.zeros(8, np.int32), new_log(graph)
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype)
    run.color_by_visits(
        n,
        graph.indptr,
        graph.indices,
        graph.degrees,
        ORDERS.index(order),
        seed & 0xFFFFFFFF,
        int(shortcut1),
        int(shortcut2),
        colors,
        possible,
        waiting,
        dag,
        bitmaps,
        worklists,
        scratch,
        log,
    )
    return colors, log


@compile_row
def highest_bit(mask):
    """The number of the highest bit that is set."""
    bit = 0
    while mask >> (bit + 1):
        bit += 1
    return bit


@compile_row
def possible_of(listed, colors, possible):
    """Return the colors 0 to 31 that a listed neighbor may get, or the color that it has, as a bit mask, and whether
    the neighbor is uncolored.

    On a GPU a single load reads both: between two loads, another thread might color the neighbor.
    """
    if listed >= 0:
        mask = np.int64(possible[listed]) & 0xFFFFFFFF
        return mask, mask & (mask - 1) != 0
    color = np.int64(colors[~listed])
    if color >= 0:
        return np.int64(1) << color if color < 32 else np.int64(0), False
    best, worst = ~color, min(np.int64(possible[~listed]), np.int64(31))
    return np.int64(0) if best > worst else (np.int64(2) << worst) - (np.int64(1) << best), True


@compile_row
def visit_low(v, indptr, shortcut1, shortcut2, colors, possible, waiting, dag):
    """Apply the three cases of Section 3 to a vertex of low degree. When a single bit is left, it is the color."""
    begin = indptr[v]
    mask, considered, still = np.int64(possible[v]) & 0xFFFFFFFF, np.int64(0), 0
    for e in range(begin, begin + waiting[v]):
        u = dag[e]
        theirs, is_open = possible_of(u, colors, possible)
        if is_open and (theirs & mask or not shortcut2):
            considered |= theirs
            dag[begin + still] = u
            still += 1
        else:
            mask ^= theirs if theirs & mask else np.int64(1) << highest_bit(mask)
    best = mask & -mask
    if shortcut1 and best & considered == 0:
        mask = best
    waiting[v] = still
    possible[v] = np.int32(np.uint32(mask))
    if mask == best:
        colors[v] = lowest_bit(best)


@compile_row
def visit_high(v, indptr, shortcut1, colors, possible, waiting, dag, bitmaps):
    """The same by a bitmap. v gets its best color once no neighbor is left, or none may get that color."""
    begin, word = indptr[v], indptr[v] // 32 + v
    still = 0
    for e in range(begin, begin + waiting[v]):
        u = dag[e]
        color = colors[u]
        if color < 0:
            dag[begin + still] = u
            still += 1
        elif color <= possible[v]:
            bitmaps[word + color // 32] &= ~(1 << (color % 32)) & 0xFFFFFFFF
    waiting[v] = still
    best = ~colors[v]
    while not (bitmaps[word + best // 32] >> (best % 32)) & 1:
        best += 1
    colored = shortcut1 or still == 0
    for e in range(begin, begin + still):
        color = colors[dag[e]]  # read once: it may change
        if color == best or (color < 0 and ~color <= best <= possible[dag[e]]):
            colored = False
    colors[v] = best if colored else ~best


@compile_row
def open_vertex(v, indptr, indices, degrees, order, seed, colors, possible, waiting, dag, bitmaps):
    """List the neighbors that v waits for. If there are none, its color is 0.

    Where the degree of v is low, a neighbor u of high degree is listed as ~u.
    """
    k, low = 0, degrees[v] < LOW_DEGREE
    for e in range(indptr[v], indptr[v + 1]):
        u = indices[e]
        if u != v and precedes(u, v, degrees, order, seed):
            dag[indptr[v] + k] = ~u if low and degrees[u] >= LOW_DEGREE else u
            k += 1
    waiting[v] = k
    if low:
        possible[v] = np.int32(np.uint32((np.int64(2) << k) - 1))
    else:
        possible[v] = k
        word = indptr[v] // 32 + v
        for w in range(k // 32 + 1):
            bitmaps[word + w] = 0xFFFFFFFF
    colors[v] = 0 if k == 0 else ~0


@KERNELS.resident
def color_by_visits(
    n,
    indptr,
    indices,
    degrees,
    order,
    seed,
    shortcut1,
    shortcut2,
    colors,
    possible,
    waiting,
    dag,
    bitmaps,
    worklists,
    scratch,
    log,
):
    """Rounds until everyone has a color. `possible` holds a bitmap for low degrees, the worst color for high ones."""
    for v in range(n):
        open_vertex(v, indptr, indices, degrees, order, seed, colors, possible, waiting, dag, bitmaps)
    before, left = n, worklists[0][colors[worklists[0]] < 0]
    while before:
        log_round(log, before - len(left), 0)
        before = len(left)
        for v in left:
            if degrees[v] < LOW_DEGREE:
                visit_low(v, indptr, shortcut1, shortcut2, colors, possible, waiting, dag)
            else:
                visit_high(v, indptr, shortcut1, colors, possible, waiting, dag, bitmaps)
        left = left[colors[left] < 0]
