"""EB, the edge-based speculative coloring of Deveci, Boman, Devine and Rajamanickam (IPDPS 2016), Algorithms 5-9.

Threads own edges. Every round lets the two ends of an edge tell each other what they intend (tentative colors), gives
each uncolored vertex a color, takes it back from one end of every edge in conflict, and drops the edges that can say
nothing new. A vertex looks for its color among 31 at a time, its color set; C holds one bit, and its sign marks a
tentative color.

`published=True` has the paper's own rounds (`edges.py`). The default is this.

Three points where the paper leaves room. The rounds run inside one kernel, because a launch costs more than a late
round. The colors that a vertex of degree d may never need, those above d + 1, are forbidden from the start, so that the
bound of Lemma 2 holds by construction; its proof is about Algorithm 5, which has no tentative colors. And in the
tentative phase a thread of a GPU takes several consecutive edges, as Section IV-C has it for vertices: they mostly
share a vertex, so that its neighbors hear of each choice before the next one is made.

In the first round all edges are in the list, so it is not written: the rows of the matrix hold every edge at both of
its ends. The edges are taken up by rows, and a vertex hears of its neighbors' tentative colors from its own row, all at
once and without atomics, in all color sets. The rows of a stretch come one after another, every other first: on grids,
and with several unknowns to a node, that takes fewer colors. Stretches run beside each other in step, so each begins at
a place of its own: where all began alike, the same lines of a grid would meet every time. Only the edges that the three
rules of Section III-B3 leave after this round are listed, from the rows of the vertices without a color; each of those
goes on in the lowest color set that final colors have not filled.

Where a few vertices have many more neighbors than the mean, the rounds come in waves. Hubs, those above the mean, go
first, by classes of falling degree, from power of two to power of two; within a class there are so few edges that they
are listed from the start. A wave goes on until its vertices have final colors: hubs, which see the most colors, do not
speculate beside the many small vertices, and it takes hardly more colors than largest degree first. All others are the
last wave, whose first round is that by rows. On meshes it is the only one.

The paper lets the smaller index give way (Section III-B2). Here the smaller degree does, unless `resolution` says
otherwise; the paper has that for vertex-based methods (Section IV-D). Where degrees differ much it takes fewer colors,
and no time: edges are listed with the end first that gives way.

At distance 2 the edges, pairs with a common neighbor too, are too many to be listed. They are found again in every
phase, from the uncolored vertices through the rows of their neighbors, and an uncolored vertex looks for all final
colors itself. How many others are within distance two is not known. So a vertex may use one color more than a lower
bound of that number, in place of degree + 1: the neighbors of one vertex, or the others whose final colors it has seen
plus the different hashes of uncolored ones. Where hubs would take most of the time, they and their neighbors are
colored before, first-fit (`mcprecond.coloring.hubs`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_loop, compile_row
from mcprecond.backends.arguments import flag, one_of
from mcprecond.backends.hashing import mix
from mcprecond.backends.team.atomics import atomic_or
from mcprecond.coloring.graph import UNCOLORED, Graph, row_near, rows_near
from mcprecond.coloring.history import log_of_first_round, log_round, new_log
from mcprecond.coloring.hubs import colors_around_hubs
from mcprecond.coloring.jp import smallest_free_color
from mcprecond.coloring.published.color_sets import (
    SET_SIZE,
    STRETCHES,
    assign_color,
    beyond,
    detect_conflict,
    detect_conflicts,
    first_available,
    from_bits,
    keep_edges,
    to_number,
)
from mcprecond.coloring.published.edges import color_published
from mcprecond.coloring.published.rows import lanes_for, next_row, stretch_begin
from mcprecond.coloring.published.speculation import check_resolution, gives_way

KERNELS = KernelSet(__file__, "OFFSET LANES")
WORKLISTS = ("pps", "atomic")

CHUNK = 8  # consecutive edges that one thread of a GPU takes up in the tentative phase; in the first round vertices
SKEWED = 8  # times the mean degree: from such a largest degree on, hubs go first
WAITING = UNCOLORED - 1  # instead of a color, before the wave of a vertex
CUDA_CONSTANTS = {"WAITING": WAITING}


def eb(
    graph: Graph,
    *,
    distance: int = 1,
    seed: int = 0,
    worklist: str = "pps",
    resolution: str | None = None,
    published: bool = False,
    tentative: bool = True,
    drop_edges: bool = True,
) -> tuple[Any, Any]:
    """Color by edges (Algorithm 5 with the three optimizations of Section III-B).

    Parameters
    ----------
    graph : Graph
    distance : {1, 2}
        At 2 no edges are listed, and `worklist` means nothing.
    seed : int
        Accepted for uniformity; EB draws no random numbers.
    worklist : {"pps", "atomic"}
        How the edges that survive a later round are listed: by a parallel prefix sum, which keeps their order, or by an
        atomic counter, which scatters them (Section IV-A).
    resolution : {"index", "degree"}, optional
        Which end of an edge in conflict is recolored: that of smaller index, or that of smaller degree and then index.
        By default the degree decides, or if `published` the index.
    published : bool
        Whether to run the paper's rounds, from a list of all edges (`mcprecond.coloring.published.edges`). At
        distance 1 only.
    tentative : bool
        Whether the uncolored ends of an edge exchange tentative colors (Section III-B2). If False, `published` has to
        be True.
    drop_edges : bool
        Whether an edge leaves the list once it cannot forbid another color (Section III-B3). If False, `published` has
        to be True, and `worklist` is ignored.

    Returns
    -------
    colors : array of int32, shape (n,)
        At most one more than a vertex has others within the distance, where not `published`; not reproducible from run
        to run, since threads race by design.
    log : array of int32, shape (rows, 2)
        A round takes up all uncolored vertices of a wave; one whose color set is full counts in both columns. See
        `Coloring.history`.
    """
    one_of(worklist, "worklist", WORKLISTS)
    if resolution is None:
        resolution = "index" if flag(published, "published") else "degree"
    check_resolution(resolution)
    tentative, drop_edges = flag(tentative, "tentative"), flag(drop_edges, "drop_edges")
    if flag(published, "published"):
        if distance == 2:
            raise ValueError("published works at distance 1 only, got distance=2; leave one of them out")
        return color_published(graph, worklist, resolution == "degree", tentative, drop_edges)
    if not (tentative and drop_edges):
        raise ValueError("tentative=False and drop_edges=False are options of published=True; pass that, too")
    xp, n = graph.backend.xp, graph.n
    by_degree = int(resolution == "degree")
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype, LANES=lanes_for(graph, distance))
    # Per vertex: C, CS, VFORBIDDEN, TVFORBIDDEN. Edges as (u, v) pairs. Both lists shrink from one half to the other.
    CS, VF, TVF = (xp.empty(n, np.int32) for _ in range(3))
    uncolored = xp.empty((2, n), np.int32)
    scratch = xp.zeros(8192, np.int64)
    if distance == 2:
        C, colored = colors_around_hubs(graph)
        log = log_of_first_round(graph, colored)
        reach = xp.empty(n, np.int32)
        run.color_pairs(
            n,
            graph.indptr,
            graph.indices,
            graph.degrees,
            by_degree,
            int(colored > 0),
            reach,
            C,
            CS,
            VF,
            TVF,
            uncolored,
            scratch,
            log,
        )
        return C, log
    C, log = xp.empty(n, np.int32), new_log(graph)
    number = xp.empty(n, np.int32)
    highest, lowest = hub_classes(graph)
    chunk = CHUNK if highest < lowest else 1  # within a wave few vertices are neighbors
    edges = xp.empty((2, max(graph.indices.size // 2, 1), 2), np.int32)
    run.color_edges(
        n,
        graph.indptr,
        graph.indices,
        graph.degrees,
        by_degree,
        highest,
        lowest,
        number,
        C,
        CS,
        VF,
        TVF,
        uncolored,
        edges,
        edges[0].size // 2,
        scratch,
        int(worklist == "pps"),
        chunk,
        log,
    )
    return number, log


def hub_classes(graph: Graph) -> tuple[int, int]:
    """The highest and lowest class of hubs, k being that of degrees from 2^k on; lowest - 1 first if there is none."""
    entries = graph.indices.size
    lowest = (entries // max(graph.n, 1)).bit_length()
    skewed = graph.max_degree * graph.n >= SKEWED * entries
    return graph.max_degree.bit_length() - 1 if skewed else lowest - 1, lowest


@compile_row
def tentative_color(low, high, C, CS, VF, TVF):
    """Algorithm 8 on one edge: both ends hear of each other's intended color; the low one gives way."""
    if CS[low] != CS[high] or C[low] > 0 or C[high] > 0:
        return
    if C[low] == 0 and C[high] == 0:
        C[high] = -first_available(VF[high] | TVF[high])
    elif C[low] == C[high]:
        C[low] = -first_available(VF[low] | TVF[low] | -C[high])
    if C[high] < 0:
        atomic_or(TVF, low, np.int32(-C[high]))
    if C[low] < 0:
        atomic_or(TVF, high, np.int32(-C[low]))


@compile_loop(grain=1)
def first_numbers(first, last, n, indptr, indices, stretches, number):
    """TENTATIVECOLOR of the first round, by rows: the smallest number that no neighbor has so far. Hubs keep theirs."""
    for t in range(first, last):
        begin, end = stretch_begin(t, stretches, n, indptr), stretch_begin(t + 1, stretches, n, indptr)
        v = begin + mix(t, 0) % max(end - begin, 1)
        for _ in range(end - begin):
            if number[v] < 0:
                number[v] = smallest_free_color(v, 1, indptr, indices, number)
            v = next_row(v, begin, end)


@compile_loop
def first_conflicts(first, end, indptr, indices, degrees, by_degree, number):
    """DETECTCONFLICTS of the first round, by rows: uncolor one end of every edge in conflict."""
    for v in range(first, end):
        for k in range(indptr[v], indptr[v + 1]):
            u = indices[k]
            color = number[v]
            if u > v and color != UNCOLORED and number[u] == color:
                if gives_way(v, u, by_degree, degrees):
                    number[v] = UNCOLORED
                else:
                    number[u] = UNCOLORED


@compile_loop
def to_bits(first, end, number, C, CS):
    """C and CS of what is colored; the others have neither yet."""
    for v in range(first, end):
        C[v] = 0 if number[v] == UNCOLORED else 1 << number[v] % SET_SIZE
        CS[v] = max(number[v], 0) // SET_SIZE


@compile_row
def to_list(v, u, number, color_set):
    """Whether an edge of an uncolored vertex v stays after the first round, as the row of v has it.

    One with a vertex of a later wave does not: that vertex will collect all final colors itself.
    """
    return u > v if number[u] == UNCOLORED else number[u] // SET_SIZE > color_set


@compile_loop
def forbid_finals(first, end, U, indptr, indices, degrees, number, CS, VF, TVF, counts):
    """FORBIDCOLORS from what is final before the edges are listed, by the rows of U; counts the edges to list."""
    for i in range(first, end):
        v = U[i]
        color_set = smallest_free_color(v, 1, indptr, indices, number) // SET_SIZE
        forbidden = beyond(degrees[v], color_set)
        count = 0
        for k in range(indptr[v], indptr[v + 1]):
            u = indices[k]
            if to_list(v, u, number, color_set):
                count += 1
            elif number[u] >= color_set * SET_SIZE:
                forbidden |= 1 << (number[u] - color_set * SET_SIZE)
        CS[v], VF[v], TVF[v], counts[i] = color_set, forbidden, 0, count


@compile_loop
def list_edges(first, end, U, indptr, indices, degrees, by_degree, number, CS, ends, E):
    """CREATENEWEDGELIST from the rows of U, the end first that gives way; the list of vertex U[i] ends at ends[i]."""
    for i in range(first, end):
        v, e = U[i], ends[i]
        for k in range(indptr[v], indptr[v + 1]):
            u = indices[k]
            if to_list(v, u, number, CS[v]):
                e -= 1
                gives = gives_way(v, u, by_degree, degrees)
                E[e, 0], E[e, 1] = (v, u) if gives else (u, v)


@compile_loop
def start_vertices(first, end, degrees, some_colored, C, CS, VF, TVF):
    """Nothing is forbidden but what a vertex never needs, and nothing colored, unless C holds colors of some."""
    for v in range(first, end):
        color = C[v] if some_colored else UNCOLORED
        C[v] = 0 if color == UNCOLORED else 1 << color % SET_SIZE
        CS[v] = max(color, 0) // SET_SIZE
        TVF[v] = 0
        VF[v] = beyond(degrees[v], 0)


@compile_loop
def tentative_colors(first, end, E, C, CS, VF, TVF):
    """TENTATIVECOLOR."""
    for e in range(first, end):
        tentative_color(E[e, 0], E[e, 1], C, CS, VF, TVF)


@compile_loop
def assign_colors(first, end, U, degrees, C, CS, VF, TVF):
    """ASSIGNCOLORS on the list of uncolored vertices."""
    for i in range(first, end):
        assign_color(U[i], degrees[U[i]], C, CS, VF, TVF)


@compile_loop
def set_numbers(first, end, U, C, CS, number):
    """The colors that are final now, as numbers."""
    for i in range(first, end):
        if C[U[i]] != 0:
            number[U[i]] = to_number(C[U[i]], CS[U[i]])


@KERNELS.resident
def color_edges(
    n,
    indptr,
    indices,
    degrees,
    by_degree,
    highest,
    lowest,
    number,
    C,
    CS,
    VF,
    TVF,
    uncolored,
    edges,
    max_edges,
    scratch,
    pps,
    chunk,
    log,
):
    """Algorithm 5: the rounds of each wave; that of the others comes last, and its first round is by rows."""
    E, kept = edges[0], edges[1]
    number[:] = WAITING
    waiting = n
    for shift in range(highest, lowest - 2, -1):
        if shift < lowest:
            stretches = max(min(STRETCHES, n // chunk), 1)
            first_numbers(0, stretches, n, indptr, indices, stretches, number)
            first_conflicts(0, n, indptr, indices, degrees, by_degree, number)
            to_bits(0, n, number, C, CS)
            U = np.flatnonzero(number == UNCOLORED).astype(np.int32)
            if waiting:
                log_round(log, waiting, len(U))
        else:
            U = np.flatnonzero(degrees >> shift == 1).astype(np.int32)
            number[U] = UNCOLORED
            C[U] = 0
            waiting -= len(U)
        counts = np.empty(len(U), np.int64)
        forbid_finals(0, len(U), U, indptr, indices, degrees, number, CS, VF, TVF, counts)
        ends = np.cumsum(counts)
        list_edges(0, len(U), U, indptr, indices, degrees, by_degree, number, CS, ends, E)
        length = ends[-1] if len(U) else 0
        while len(U):
            tentative_colors(0, length, E, C, CS, VF, TVF)
            assign_colors(0, len(U), U, degrees, C, CS, VF, TVF)
            detect_conflicts(0, length, E, C, CS)
            set_numbers(0, len(U), U, C, CS, number)
            before, U = len(U), U[C[U] == 0]
            log_round(log, before, len(U))
            length = keep_edges(pps, length, E, C, CS, VF, kept, scratch)
            E, kept = kept, E


@compile_loop
def find_reach(first, end, indptr, indices, degrees, reach):
    """The largest degree of a vertex and its neighbors: at least so many others are within distance two."""
    for v in range(first, end):
        reach[v] = degrees[v]
        for k in range(indptr[v], indptr[v + 1]):
            reach[v] = max(reach[v], degrees[indices[k]])


@compile_loop
def visit_pairs(first, end, U, tentative, indptr, indices, by_degree, reach, C, CS, VF, TVF):
    """TENTATIVECOLOR or DETECTCONFLICTS on all pairs of uncolored vertices within distance two."""
    for i in range(first, end):
        v = U[i]
        for j in rows_near(v, 2, indptr):
            row = row_near(j, v, indptr, indices)
            for k in range(indptr[row], indptr[row + 1]):
                u = indices[k]
                if u > v:
                    low, high = (v, u) if gives_way(v, u, by_degree, reach) else (u, v)
                    if tentative:
                        tentative_color(low, high, C, CS, VF, TVF)
                    else:
                        detect_conflict(low, high, C, CS)


@compile_row
def forbidden_near(v, indptr, indices, reach, C, CS):
    """VFORBIDDEN of a vertex at distance two: the final colors, and those beyond what it knows that it may need.

    It knows as many others as there are final colors, and as uncolored vertices differ in their hashes.
    """
    finals = others = known = 0
    for j in rows_near(v, 2, indptr):
        row = row_near(j, v, indptr, indices)
        for k in range(indptr[row], indptr[row + 1]):
            u = np.int64(indices[k])
            if C[u] == 0 and u != v:
                others |= 1 << mix(u, 0) % SET_SIZE
            elif CS[u] == CS[v]:
                finals |= C[u]
    for bit in range(SET_SIZE):
        known += ((finals >> bit) & 1) + ((others >> bit) & 1)
    return finals | beyond(max(known, reach[v] - CS[v] * SET_SIZE), 0)


@compile_loop
def forbid_near(first, end, U, indptr, indices, reach, C, CS, VF):
    """FORBIDCOLORS on the list of uncolored vertices."""
    for i in range(first, end):
        VF[U[i]] = forbidden_near(U[i], indptr, indices, reach, C, CS)


@KERNELS.resident
def color_pairs(n, indptr, indices, degrees, by_degree, some_colored, reach, C, CS, VF, TVF, uncolored, scratch, log):
    """Algorithm 5 at distance two: the rounds, without a list of edges.

    If `some_colored`, C holds the colors of some vertices and UNCOLORED for the others, and the log already
    has one round.
    """
    find_reach(0, n, indptr, indices, degrees, reach)
    start_vertices(0, n, reach, some_colored, C, CS, VF, TVF)
    U = np.flatnonzero(C == 0).astype(np.int32)
    if some_colored:
        forbid_near(0, len(U), U, indptr, indices, reach, C, CS, VF)
    while len(U):
        visit_pairs(0, len(U), U, True, indptr, indices, by_degree, reach, C, CS, VF, TVF)
        assign_colors(0, len(U), U, reach, C, CS, VF, TVF)
        visit_pairs(0, len(U), U, False, indptr, indices, by_degree, reach, C, CS, VF, TVF)
        before, U = len(U), U[C[U] == 0]
        log_round(log, before, len(U))
        forbid_near(0, len(U), U, indptr, indices, reach, C, CS, VF)
    from_bits(0, n, C, CS)
