"""EB as its paper has it (Deveci et al., IPDPS 2016, Algorithms 5, 6, 8 and 9): `published=True` of `eb`.

All edges are in the list from the first round on. A round gives every vertex without a final color one (ASSIGNCOLORS,
over all vertices), uncolors one end of every edge in conflict (DETECTCONFLICTS), forbids the colors that stay to
uncolored neighbors and drops the edges that can say nothing new (FORBIDCOLORS and CREATENEWEDGELIST, in one sweep), and
lets the ends of the edges left tell each other what they intend (TENTATIVECOLOR). So the first round gives everyone the
first color, as in Figure 1, and leaves it to those who give way to nobody. A thread owns one edge.

Where the paper contradicts itself, its text is followed and not its listings. Of an edge in conflict the smaller index
gives way (Sections III-B2 and IV-D, Figure 1). A vertex goes on to the next color set when its final colors leave
nothing free, VFORBIDDEN being full (the text on Algorithm 9; its line 9 has the opposite). And who chooses again as the
other end intends the same color does not choose that one again, which lines 10-13 of Algorithm 8 would let it do.

Options turn off tentative colors and the dropping of edges, the paper's second and third optimization (Section III-B).
Its first one, color sets, is always on: without them each vertex would need an array FORBIDDEN with an entry for each
color.

Colors are not bounded by the degree. A tentative color that was taken back stays in TVFORBIDDEN until the round ends,
so a vertex may find more colors forbidden than it has neighbors, and choose a higher one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_loop, compile_row
from mcprecond.backends.team.atomics import atomic_or
from mcprecond.coloring.graph import Graph
from mcprecond.coloring.history import log_round, new_log
from mcprecond.coloring.published.color_sets import (
    assign_color,
    detect_conflicts,
    first_available,
    forbid_color,
    from_bits,
    keep_edges,
)

KERNELS = KernelSet(__file__, "OFFSET")

UNBOUNDED = 2**31 - 1  # in place of a degree: of all color sets every color may be needed


def color_published(graph: Graph, worklist: str, by_degree: bool, tentative: bool, drop_edges: bool) -> tuple[Any, Any]:
    """Return the colors and the log: a round colors all without a final color, and finds some of them in conflict."""
    xp, n = graph.backend.xp, graph.n
    E = edge_list(graph, by_degree)
    length = len(E)
    edges = xp.empty((2, max(length, 1), 2), np.int32)
    edges[0, :length] = E
    C, CS, VF, TVF = (xp.empty(n, np.int32) for _ in range(4))
    marks, scratch, log = xp.empty(length, np.int8), xp.zeros(8192, np.int64), new_log(graph)
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype)
    run.color_by_edges(
        n,
        length,
        C,
        CS,
        VF,
        TVF,
        edges,
        edges[0].size // 2,
        marks,
        scratch,
        int(worklist == "pps"),
        int(tentative),
        int(drop_edges),
        log,
    )
    return C, log


def edge_list(graph: Graph, by_degree: bool) -> Any:
    """Every edge once, in the order of the rows, the end first that gives way: int32, shape (edges, 2)."""
    xp, indices = graph.backend.xp, graph.indices
    entries = xp.arange(indices.size, dtype=graph.indptr.dtype)
    rows = (xp.searchsorted(graph.indptr, entries, side="right") - 1).astype(np.int32)
    once = rows < indices
    low, high = rows[once], indices[once].astype(np.int32)
    if by_degree:
        swapped = graph.degrees[low] > graph.degrees[high]
        low, high = xp.where(swapped, high, low), xp.where(swapped, low, high)
    return xp.stack((low, high), axis=1)


@compile_row
def tentative_color(low, high, C, CS, VF, TVF):
    """Algorithm 8 on one edge."""
    if CS[low] != CS[high]:
        return
    c_low, c_high = C[low], C[high]
    if c_low > 0 or c_high > 0:
        return
    if c_low == 0 and c_high == 0:
        c_high = -first_available(VF[high] | TVF[high])
        C[high] = c_high
        atomic_or(TVF, low, np.int32(-c_high))
    elif c_high == 0:
        atomic_or(TVF, high, np.int32(-c_low))
    elif c_low == 0:
        atomic_or(TVF, low, np.int32(-c_high))
    elif c_low == c_high:
        c_low = -first_available(VF[low] | TVF[low] | -c_high)
        C[low] = c_low
        atomic_or(TVF, high, np.int32(-c_low))


@compile_loop
def start_all(first, end, C, CS, VF, TVF):
    """Nobody has a color, and nothing is forbidden."""
    for v in range(first, end):
        C[v] = CS[v] = VF[v] = TVF[v] = 0


@compile_loop
def assign_colors(first, end, C, CS, VF, TVF):
    """ASSIGNCOLORS over all vertices; returns how many of them had no final color."""
    left = 0
    for v in range(first, end):
        if C[v] <= 0:
            left += 1
            assign_color(v, UNBOUNDED, C, CS, VF, TVF)
    return left


@compile_loop
def forbid_colors(first, end, E, C, CS, VF):
    """FORBIDCOLORS."""
    for e in range(first, end):
        forbid_color(E[e, 0], E[e, 1], C, CS, VF)


@compile_loop
def tentative_colors(first, end, E, C, CS, VF, TVF):
    """TENTATIVECOLOR."""
    for e in range(first, end):
        tentative_color(E[e, 0], E[e, 1], C, CS, VF, TVF)


@KERNELS.resident
def color_by_edges(n, length, C, CS, VF, TVF, edges, max_edges, marks, scratch, pps, tentative, drop_edges, log):
    """Algorithm 5; where edges are dropped, the list moves from one half of `edges` to the other."""
    E, kept = edges[0], edges[1]
    start_all(0, n, C, CS, VF, TVF)
    left = assign_colors(0, n, C, CS, VF, TVF)
    while left:
        detect_conflicts(0, length, E, C, CS)
        if drop_edges:
            length = keep_edges(pps, length, E, C, CS, VF, kept, scratch)
            E, kept = kept, E
        else:
            forbid_colors(0, length, E, C, CS, VF)
        if tentative:
            tentative_colors(0, length, E, C, CS, VF, TVF)
        before, left = left, assign_colors(0, n, C, CS, VF, TVF)
        log_round(log, before, left)
    from_bits(0, n, C, CS)
