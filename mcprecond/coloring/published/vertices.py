"""IPGC, VB and VB BIT as their paper has them (Deveci et al., IPDPS 2016, Algorithms 1-4): `published=True`.

A thread colors a chunk of the worklist, one vertex after another, and reads whole rows, however long they are. Then a
thread for each vertex of the worklist looks for a neighbor with the same color to which it has to give way. A vertex
keeps its color until it gets the next one. So in another color range a neighbor may see another color of the same
vertex, and colors are bounded by the degree for IPGC only, where there are no ranges.

The next worklist is made by one atomic increment for each vertex in conflict, or by marks and their prefix sum, which
keeps the order (Section IV-A). As in Section IV-D, the smaller index gives way; line 4 of Algorithm 3 has the larger.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_loop, compile_part, compile_row
from mcprecond.coloring.graph import UNCOLORED, Graph
from mcprecond.coloring.history import log_round, new_log
from mcprecond.coloring.published.vertex_parts import MAXFORBID, allow_all, forbid_color, gives_way, set_color

KERNELS = KernelSet(__file__, "OFFSET")

CUDA_CONSTANTS = {"MAXFORBID": MAXFORBID}


def color_published(
    kernel: str,
    graph: Graph,
    adjacency: Any,
    chunk_size: int,
    by_degree: bool,
    worklist: str,
    filtering: bool = False,
    forbidden: Any = None,
) -> tuple[Any, Any]:
    """Return the colors and the log.

    `kernel` says which method; `adjacency` is that of the graph, or if `filtering` a copy, which is permuted. Of IPGC,
    `forbidden` has a row of zeros for each thread that colors, an entry for each color and one for the time.
    """
    xp, n = graph.backend.xp, graph.n
    C, worklists, marks = xp.empty(n, np.int32), xp.empty((2, n), np.int32), xp.empty(n, np.int8)
    scratch, log = xp.zeros(8192, np.int64), new_log(graph)
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype)
    own = (int(filtering),) if forbidden is None else (forbidden, forbidden.shape[1], forbidden.shape[0])
    getattr(run, kernel)(
        n,
        graph.indptr,
        adjacency,
        graph.degrees,
        chunk_size,
        int(by_degree),
        int(worklist == "pps"),
        C,
        worklists,
        marks,
        scratch,
        log,
        *own,
    )
    return C, log


@compile_row
def fit_in_time(v, indptr, adjacency, C, forbidden):
    """Algorithm 2 on one vertex; entries of `forbidden` are times, its last one the time of the vertex before."""
    now = forbidden[-1] + 1
    forbidden[-1] = now
    for k in range(indptr[v], indptr[v + 1]):
        color = C[adjacency[k]]
        if adjacency[k] != v and color != UNCOLORED:
            forbidden[color] = now
    color = 0
    while forbidden[color] == now:
        color += 1
    return color


@compile_row
def fit_in_ranges(v, indptr, adjacency, filtering, C, forbidden, bitwise):
    """Algorithm 4 on one vertex; filtering puts those considered in front of its row and skips them from then on."""
    seen = offset = 0
    while True:
        allow_all(forbidden)
        for k in range(indptr[v] + seen, indptr[v + 1]):
            u = adjacency[k]
            color = C[u] - offset
            if u != v and 0 <= color < MAXFORBID:
                forbid_color(forbidden, color, bitwise)
                if filtering:
                    adjacency[k] = adjacency[indptr[v] + seen]
                    adjacency[indptr[v] + seen] = u
                    seen += 1
        color = set_color(forbidden, bitwise)
        if color < MAXFORBID:
            return offset + color
        offset += MAXFORBID


@compile_loop(grain=1)
def assign_in_time(first_thread, end_thread, conf, chunk, indptr, adjacency, C, forbidden):
    """ASSIGNCOLORS of IPGC: thread t has every so many chunks, and row t of `forbidden`."""
    threads = len(forbidden)
    for t in range(first_thread, end_thread):
        own = forbidden[t]
        for first in range(t * chunk, len(conf), threads * chunk):
            for i in range(first, min(first + chunk, len(conf))):
                C[conf[i]] = fit_in_time(conf[i], indptr, adjacency, C, own)


@compile_loop(grain=1)
def assign_in_ranges(first, end, conf, chunk, indptr, adjacency, filtering, C, bitwise):
    """ASSIGNCOLORS of VB and VB BIT."""
    for t in range(first, end):
        forbidden = np.empty(1 if bitwise else MAXFORBID, np.uint64)
        for i in range(t * chunk, min((t + 1) * chunk, len(conf))):
            C[conf[i]] = fit_in_ranges(conf[i], indptr, adjacency, filtering, C, forbidden, bitwise)


@compile_row
def in_conflict(v, indptr, adjacency, degrees, by_degree, C):
    """Algorithm 3 on one vertex."""
    for k in range(indptr[v], indptr[v + 1]):
        u = adjacency[k]
        if C[u] == C[v] and gives_way(v, u, by_degree, degrees):
            return True
    return False


@compile_loop
def mark_conflicts(first, end, conf, indptr, adjacency, degrees, by_degree, C, marks):
    """The vertices of `conflicts`."""
    for i in range(first, end):
        marks[i] = in_conflict(conf[i], indptr, adjacency, degrees, by_degree, C)


@compile_part
def conflicts(conf, indptr, adjacency, degrees, by_degree, C):
    """DETECTCONFLICTS; returns the next worklist, in order also where a GPU scatters it."""
    marks = np.zeros(len(conf), np.bool_)
    mark_conflicts(0, len(conf), conf, indptr, adjacency, degrees, by_degree, C, marks)
    return conf[marks]


@KERNELS.resident
def color_in_time(
    n, indptr, adjacency, degrees, chunk, by_degree, pps, C, worklists, marks, scratch, log, forbidden, row, threads
):
    """IPGC."""
    C[:] = UNCOLORED
    conf = np.arange(n)
    while len(conf):
        before = len(conf)
        assign_in_time(0, len(forbidden), conf, chunk, indptr, adjacency, C, forbidden)
        conf = conflicts(conf, indptr, adjacency, degrees, by_degree, C)
        log_round(log, before, len(conf))


@compile_part
def color_in_ranges(n, indptr, adjacency, degrees, chunk, by_degree, C, log, filtering, bitwise):
    """Algorithm 1 with Algorithm 4."""
    C[:] = UNCOLORED
    conf = np.arange(n)
    while len(conf):
        before = len(conf)
        assign_in_ranges(0, -(-len(conf) // chunk), conf, chunk, indptr, adjacency, filtering, C, bitwise)
        conf = conflicts(conf, indptr, adjacency, degrees, by_degree, C)
        log_round(log, before, len(conf))


@KERNELS.resident
def color_by_flags(n, indptr, adjacency, degrees, chunk, by_degree, pps, C, worklists, marks, scratch, log, filtering):
    """VB."""
    color_in_ranges(n, indptr, adjacency, degrees, chunk, by_degree, C, log, filtering, False)


@KERNELS.resident
def color_by_bits(n, indptr, adjacency, degrees, chunk, by_degree, pps, C, worklists, marks, scratch, log, filtering):
    """VB BIT."""
    color_in_ranges(n, indptr, adjacency, degrees, chunk, by_degree, C, log, filtering, True)
