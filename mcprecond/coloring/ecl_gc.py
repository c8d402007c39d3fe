"""ECL-GC: Jones-Plassmann coloring, largest degree first, with the two shortcuts of Alabandi, Powers and Burtscher
(PPoPP 2020, Section 3).

Each vertex keeps the set of colors that it may still get. It may take its best one before all neighbors of higher
priority are colored, if none of the uncolored ones still considers it (shortcut 1), and it stops waiting for a neighbor
whose possible colors do not overlap with its own (shortcut 2). The result is the coloring of a serial JP-LDF with the
same priorities, to the last vertex, whatever the order in which threads run and whichever shortcuts they take.

Vertices of degree below 32 hold their possible colors in one integer, `possible`. The others keep a bitmap, take
shortcut 1 only, and show their neighbors just the best possible color: `colors` holds its complement until they are
colored, and `possible` all from it on, as far as they matter to low degrees.

Three points differ from the paper, none of which changes a color; `published=True` has the paper's rounds instead
(`published/visits.py`). In the paper a vertex of high degree also shows its worst possible color, which is the number
of neighbors that it waits for at first. Here its neighbors assume that any color from the best one on is possible: hubs
then wait for a few neighbors more, but a poll loads one word for each neighbor, not two. A vertex with k neighbors to
wait for keeps just the k + 1 best of its possible colors, which is what clearing one bit per removed edge amounts to.
And vertices are visited by priority, on a GPU one by one until they have their colors. So most of them find all
neighbors that they wait for colored, and only high degrees need the lists of edges that the paper shortens. Hubs wait
for each other in a long chain; a step of it takes a GPU one load from memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_loop, compile_part, compile_row
from mcprecond.backends.arguments import flag, one_of
from mcprecond.backends.hashing import mix
from mcprecond.coloring.graph import Graph
from mcprecond.coloring.history import log_round, new_log
from mcprecond.coloring.orders import sequence_of
from mcprecond.coloring.priorities import LDF, LOW_DEGREE, ORDERS, lowest_bit, precedes

KERNELS = KernelSet(__file__, "OFFSET LANES")

LONG_DEGREE = 128  # a GPU's blocks sort their own vertices below
SHORT_ROW = 8  # entries in the mean; up to here, vertices are visited in their own order
MOST_ROUNDS = 1024  # in the log then, which are many times as many as are needed
BATCH = 4096  # vertices that the CPU takes up per round
CUDA_CONSTANTS = {"LONG_DEGREE": LONG_DEGREE}


def ecl_gc(
    graph: Graph,
    *,
    order: str = "ldf",
    shortcut1: bool = True,
    shortcut2: bool = True,
    published: bool = False,
    seed: int = 0,
) -> tuple[Any, Any]:
    """Color first-fit by priority, by default largest degree first, with shortcuts.

    Parameters
    ----------
    graph : Graph
    order : {"ldf", "ldf_natural", "natural"}
        Who has the higher priority: the larger degree, ties going to the larger hash of vertex number and seed; the
        larger degree, ties going to the smaller number, which is "ldf" of `jp`; the smaller number.
    shortcut1, shortcut2 : bool
        Whether the shortcuts are taken (Table 5). They save rounds and change no color.
    published : bool
        Whether vertices are visited in the rounds of the paper, and its shortcut 1 taken as the paper has it, with the
        worst possible color of high degrees, too. The colors are the same. Not for the order "natural".
    seed : int
        Selects the hash.

    Returns
    -------
    colors : array of int32, shape (n,)
        At most max_degree + 1 of them, the same on every device and in every run.
    log : array of int32, shape (rows, 2)
        On a GPU, round r counts the vertices that had their color after r visits that found something new, or in round
        r of the warp that has them, of those that color any; on the CPU, rounds are passes over lists of all vertices,
        or into which vertices come by priority. If `published`, round 1 has the vertices that wait for nobody, and the
        others are visits of all uncolored vertices. See `Coloring.history`.

    Raises
    ------
    TypeError, ValueError
        If the order is unknown, or a permutation, or a flag is neither True nor False; or if the published rounds are
        to be in row order.
    """
    one_of(order, "order of ecl_gc", ORDERS)
    shortcut1, shortcut2 = flag(shortcut1, "shortcut1"), flag(shortcut2, "shortcut2")
    if flag(published, "published"):
        if order == "natural":
            raise ValueError(
                "published ecl_gc colors the largest degree first, got order='natural'; leave one of them out"
            )
        from mcprecond.coloring.published.visits import color_in_published_rounds

        return color_in_published_rounds(graph, order, shortcut1, shortcut2, seed)
    xp, n, nnz = graph.backend.xp, graph.n, graph.indices.size
    colors = xp.empty(n, np.int32)
    short_rows = order == "ldf" and graph.max_degree < LOW_DEGREE and nnz <= SHORT_ROW * n
    lanes = 1 if short_rows else 2 if nnz <= SHORT_ROW * n else 8 if n <= 32 * graph.backend.resident_warps else 4
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype, LANES=lanes)
    if short_rows:
        # A warp's list, where shared memory has no room for it.
        pending = xp.empty((n, 4 if graph.indptr.dtype == np.int32 else 6), np.int32)
        zeros = xp.zeros(2 * MOST_ROUNDS + n, np.int32)
        run.color_in_rounds(
            n,
            graph.indptr,
            graph.indices,
            graph.degrees,
            seed & 0xFFFFFFFF,
            int(shortcut1),
            int(shortcut2),
            colors,
            pending,
            MOST_ROUNDS,
            zeros,
        )
        return colors, zeros[: 2 * MOST_ROUNDS].reshape(-1, 2)
    log = new_log(graph)
    possible, waiting = xp.empty(n, np.int32), xp.empty(n, np.int32)
    if order != "ldf":
        worklist = sequence_of(graph, order.removesuffix("_natural"), seed)
    elif graph.max_degree >= LONG_DEGREE:
        keys = xp.empty(n, np.uint64)
        run.priority_keys(n, graph.degrees, seed & 0xFFFFFFFF, keys)
        worklist = xp.argsort(keys).astype(np.int32)
    else:  # no list of all vertices is needed; whoever colors sorts what it takes
        worklist = xp.empty(n, np.int32)
    dag = xp.empty(nnz if graph.max_degree >= LOW_DEGREE else 0, np.int32)  # for high degrees: edges to wait for
    run.color_by_priority(
        n,
        graph.indptr,
        graph.indices,
        graph.degrees,
        ORDERS.index(order),
        seed & 0xFFFFFFFF,
        int(shortcut1),
        int(shortcut2),
        graph.max_degree,
        colors,
        possible,
        worklist,
        waiting,
        dag,
        log,
    )
    return colors, log


@compile_row
def best_colors(mask, count):
    """The lowest `count` bits of those that are set: with so many neighbors less one to wait for, no others matter."""
    kept = 0
    while mask and count:
        kept |= mask & -mask
        mask &= mask - 1
        count -= 1
    return kept


@compile_row
def show_low(v, mask, possible):
    """Let neighbors know the colors, bit by bit."""
    possible[v] = np.int32(np.uint32(mask))


@compile_row
def open_low(v, degrees, possible):
    """The colors 0..degree are possible."""
    show_low(v, (1 << (degrees[v] + 1)) - 1, possible)


@compile_row
def visit_low(v, indptr, indices, degrees, order, seed, shortcut1, shortcut2, colors, possible):
    """Advance a low-degree vertex by the three cases of Section 3; true once a single bit is left, its color."""
    mask = np.int64(possible[v]) & 0xFFFFFFFF
    taken = considered = still = 0
    for e in range(indptr[v], indptr[v + 1]):
        u = indices[e]
        if u != v and precedes(u, v, degrees, order, seed):
            theirs = np.int64(possible[u]) & 0xFFFFFFFF
            if theirs & (theirs - 1) == 0:
                taken |= theirs
            elif theirs & mask or not shortcut2:
                considered |= theirs
                still += 1
    mask = best_colors(mask & ~taken, still + 1)
    best = mask & -mask
    if shortcut1 and best & considered == 0:
        mask = best
    show_low(v, mask, possible)
    if mask == best:
        colors[v] = lowest_bit(best)
    return mask == best


@compile_row
def show_high(v, best, colored, colors, possible):
    """Let neighbors know the color, or else that it is at least `best`; low degrees have no use for 32 or more."""
    colors[v] = best if colored else ~best
    mask = 0
    if best < LOW_DEGREE:
        mask = 1 << best if colored else (0xFFFFFFFF << best) & 0xFFFFFFFF
    show_low(v, mask, possible)


@compile_row
def visit_high(v, indptr, degrees, shortcut1, colors, possible, waiting, dag, bitmaps):
    """Advance a high-degree vertex, true once it has its color; its neighbors may get any color from their best on."""
    begin, word = indptr[v], indptr[v] // 32 + v
    still = 0
    for e in range(begin, begin + waiting[v]):
        u = dag[e]
        color = colors[u]
        if color < 0:
            dag[begin + still] = u
            still += 1
        elif color <= degrees[v]:
            bitmaps[word + color // 32] &= ~(1 << (color % 32)) & 0xFFFFFFFF
    waiting[v] = still
    best = ~colors[v]
    while not (bitmaps[word + best // 32] >> (best % 32)) & 1:
        best += 1
    colored = shortcut1 or still == 0
    for e in range(begin, begin + still):
        color = colors[dag[e]]  # read once: it may change
        if color == best or (color < 0 and ~color <= best):
            colored = False
    show_high(v, best, colored, colors, possible)
    return colored


@compile_loop
def open_all(first, end, indptr, indices, degrees, order, seed, colors, possible, waiting, dag, bitmaps):
    """Every vertex is uncolored. One of high degree lists the k neighbors that it waits for; 0..k are possible."""
    for v in range(first, end):
        if degrees[v] < LOW_DEGREE:
            colors[v] = ~0
            open_low(v, degrees, possible)
            continue
        k = 0
        for e in range(indptr[v], indptr[v + 1]):
            u = indices[e]
            if u != v and precedes(u, v, degrees, order, seed):
                dag[indptr[v] + k] = u
                k += 1
        waiting[v] = k
        word = indptr[v] // 32 + v
        for w in range(k // 32 + 1):
            bitmaps[word + w] = 0xFFFFFFFF
        show_high(v, 0, False, colors, possible)


@compile_loop
def visit_each(
    first,
    end,
    left,
    done,
    shortcut1,
    shortcut2,
    indptr,
    indices,
    degrees,
    order,
    seed,
    colors,
    possible,
    waiting,
    dag,
    bitmaps,
):
    """The vertices of `visit_all`."""
    for i in range(first, end):
        v = left[i]
        if degrees[v] < LOW_DEGREE:
            done[i] = visit_low(v, indptr, indices, degrees, order, seed, shortcut1, shortcut2, colors, possible)
        else:
            done[i] = visit_high(v, indptr, degrees, shortcut1, colors, possible, waiting, dag, bitmaps)


@compile_part
def visit_all(left, shortcut1, shortcut2, vertices):
    """One round over uncolored vertices; returns those that stay uncolored. `vertices` is what `open_all` opened."""
    done = np.zeros(len(left), np.bool_)
    visit_each(0, len(left), left, done, shortcut1, shortcut2, *vertices)
    return left[~done]


@KERNELS.per_item
def priority_keys(first, end, degrees, seed, keys):
    """What LDF sorts by: falling degree, then falling hash."""
    for v in range(first, end):
        keys[v] = np.uint64(0x7FFFFFFF - degrees[v]) << np.uint64(32) | np.uint64(mix(v, seed) ^ 0xFFFFFFFF)


@KERNELS.resident
def color_in_rounds(n, indptr, indices, degrees, seed, shortcut1, shortcut2, colors, pending, log_rows, zeros):
    """The whole coloring where no degree is high, largest first. `zeros` is the log, of so many rows, and room for n.

    A GPU's warps list uncolored vertices in `pending`.
    """
    log, possible = zeros[: 2 * log_rows].reshape(-1, 2), zeros[2 * log_rows :]
    none, bitmaps = np.empty(0, np.int32), np.empty(0, np.uint32)  # for high degrees
    vertices = indptr, indices, degrees, LDF, seed, colors, possible, none, none, bitmaps
    open_all(0, n, *vertices)
    left = np.arange(n, dtype=np.int32)
    while len(left):
        before = len(left)
        left = visit_all(left, shortcut1, shortcut2, vertices)
        log_round(log, before - len(left), 0)


@KERNELS.resident
def color_by_priority(
    n,
    indptr,
    indices,
    degrees,
    order,
    seed,
    shortcut1,
    shortcut2,
    max_degree,
    colors,
    possible,
    worklist,
    waiting,
    dag,
    log,
):
    """The whole coloring: by falling priority, piece by piece, vertices are listed and visited until nobody is left."""
    if order == LDF and max_degree < LONG_DEGREE:
        keys = np.empty(n, np.uint64)
        priority_keys(0, n, degrees, seed, keys)
        for i, v in enumerate(np.argsort(keys)):
            worklist[i] = v
    # For high degrees. Row v starts at word indptr[v] // 32 + v, which leaves room for degree + 1 bits without a prefix
    # sum.
    bitmaps = np.empty(len(dag) // 32 + n + 1, np.uint32)
    vertices = indptr, indices, degrees, order, seed, colors, possible, waiting, dag, bitmaps
    open_all(0, n, *vertices)
    left, listed = worklist[:0], 0
    while len(left) or listed < n:
        batch = worklist[listed : listed + BATCH]
        before = len(left) + len(batch)
        left = visit_all(np.concatenate((left, batch)), shortcut1, shortcut2, vertices)
        log_round(log, before - len(left), 0)
        listed += len(batch)
