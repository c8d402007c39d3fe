"""IPGC, VB and VB BIT: vertex-based speculative coloring after Deveci et al. (IPDPS 2016), Algorithms 1-4.

Every round colors the vertices of a worklist, CONF, by first-fit and in parallel; then one end of each edge in conflict
loses its color and stays in the worklist. The three methods differ in how a thread keeps the colors of the neighbors,
FORBIDDEN: an array for all colors (IPGC), flags for 64 colors at a time (VB), the 64 bits of one word (VB BIT).

On a GPU rows of 32 entries and more have a warp or a block of threads each, which share a FORBIDDEN: with one thread to
a vertex, all would wait for the longest row. `chunk_size` is about the others.

`published=True` has the paper's own rounds (`vertices.py`). The default is this.

A vertex that loses is uncolored at once. Algorithm 3 lets it keep the color until it gets the next one; then a neighbor
could forbid an old color in one color range and a new one in another, and a vertex could need more than degree + 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_loop, compile_part, compile_row
from mcprecond.backends.arguments import flag, integer, one_of
from mcprecond.coloring.graph import UNCOLORED, Graph, row_near, rows_near
from mcprecond.coloring.history import log_of_first_round, log_round, new_log
from mcprecond.coloring.hubs import colors_around_hubs
from mcprecond.coloring.published.vertex_parts import (
    MAXFORBID,
    allow_all,
    check_resolution,
    forbid_color,
    gives_way,
    set_color,
)
from mcprecond.coloring.published.vertices import color_published

KERNELS = KernelSet(__file__, "OFFSET LONG_ROWS")

WORKLISTS = ("atomic", "pps")

LARGEST_CHUNK = 2**31 - 1
CUDA_CONSTANTS = {"MAXFORBID": MAXFORBID}
FORBIDDEN_ENTRIES = 2**28  # of IPGC, over all threads: 1 GiB, unless a single thread needs more
MOST_THREADS = {"cpu": 64, "gpu": 2**18}  # that get a FORBIDDEN of IPGC


def ipgc(
    graph: Graph,
    *,
    seed: int = 0,
    chunk_size: int = 8,
    resolution: str = "index",
    published: bool = False,
    worklist: str = "atomic",
) -> tuple[Any, Any]:
    """Color by IPGC (Section II-A, Algorithms 1-3): every thread has a FORBIDDEN for all colors.

    FORBIDDEN is initialized once; entries carry the time stamp of the vertex that they are forbidden for. The number of
    threads that color is limited so that their arrays take no more than 1 GiB.

    Parameters
    ----------
    graph : Graph
    seed : int
        Accepted for uniformity; no random numbers are drawn.
    chunk_size : int
        So many consecutive vertices of the worklist are colored by one thread, one after another (Section IV-C).
    resolution : {"index", "degree"}
        Which end of an edge in conflict is recolored: that of smaller index, or that of smaller degree and then index
        (Section IV-D).
    published : bool
        Whether to run the paper's rounds, a thread for a vertex (`mcprecond.coloring.published.vertices`).
    worklist : {"atomic", "pps"}
        If `published`, how vertices in conflict are listed: by an atomic counter or by a prefix sum (Section IV-A).

    Returns
    -------
    colors : array of int32, shape (n,)
        At most max_degree + 1 of them; not reproducible from run to run, since threads race by design.
    log : array of int32, shape (rows, 2)
        See `Coloring.history`.
    """
    check_options(chunk_size, resolution, published, worklist)
    xp, backend, n = graph.backend.xp, graph.backend, graph.n
    row = graph.max_degree + 2  # one entry per color, and the time
    threads = max(1, min(MOST_THREADS[backend.name], FORBIDDEN_ENTRIES // row, -(-n // chunk_size)))
    forbidden = xp.zeros(threads * row, np.int32)
    if published:
        return color_published(
            "color_in_time",
            graph,
            graph.indices,
            chunk_size,
            resolution == "degree",
            worklist,
            forbidden=forbidden.reshape((threads, row)),
        )
    C, worklists, scratch = xp.empty(n, np.int32), xp.empty((2, n), np.int32), xp.zeros(4, np.int32)
    log = new_log(graph)
    backend.kernels(KERNELS, OFFSET=graph.indptr.dtype, LONG_ROWS=has_long_rows(graph)).color_ipgc(
        n,
        graph.indptr,
        graph.indices,
        graph.degrees,
        chunk_size,
        int(resolution == "degree"),
        C,
        worklists,
        scratch,
        log,
        forbidden,
        row,
        threads,
    )
    return C, log


def vb(
    graph: Graph,
    *,
    distance: int = 1,
    seed: int = 0,
    edge_filtering: bool = False,
    chunk_size: int = 8,
    resolution: str = "index",
    published: bool = False,
    worklist: str = "atomic",
) -> tuple[Any, Any]:
    """Color by VB (Section III-A1, Algorithm 4): FORBIDDEN is a private array of 64 flags.

    A vertex looks for a color in one COLORRANGE of 64 after the other and traverses its neighbors once for each.

    Parameters
    ----------
    graph : Graph
    distance : {1, 2}
        At 2 a vertex goes through the rows of its neighbors, too. No graph of all such pairs is built. Where hubs would
        take most of the time, they and their neighbors are colored before, first-fit (`mcprecond.coloring.hubs`).
    seed : int
        Accepted for uniformity; no random numbers are drawn.
    edge_filtering : bool
        Move neighbors whose color was considered to the front of the row, in a copy of the adjacency, and skip them in
        the next color ranges (Section IV-B). Pays where many colors are needed. At distance 1 only: at distance 2
        others read the row.
    chunk_size : int
        So many consecutive vertices of the worklist are colored by one thread, one after another (Section IV-C).
    resolution : {"index", "degree"}
        Which end of an edge in conflict is recolored: that of smaller index, or that of smaller degree and then index
        (Section IV-D).
    published : bool
        Whether to run the paper's rounds, a thread for a vertex (`mcprecond.coloring.published.vertices`). At
        distance 1 only.
    worklist : {"atomic", "pps"}
        If `published`, how vertices in conflict are listed: by an atomic counter or by a prefix sum (Section IV-A).

    Returns
    -------
    colors : array of int32, shape (n,)
        At most max_degree + 1 of them, where not `published`; not reproducible from run to run, since threads race by
        design.
    log : array of int32, shape (rows, 2)
        See `Coloring.history`.
    """
    kernel = "color_by_flags" if flag(published, "published") else "color_vb"
    return by_color_ranges(kernel, graph, distance, edge_filtering, chunk_size, resolution, published, worklist)


def vb_bit(
    graph: Graph,
    *,
    distance: int = 1,
    seed: int = 0,
    edge_filtering: bool = False,
    chunk_size: int = 8,
    resolution: str = "index",
    published: bool = False,
    worklist: str = "atomic",
) -> tuple[Any, Any]:
    """Color by VB BIT (Section III-A2, Algorithm 4): FORBIDDEN is one word of 64 bits.

    Parameters and results are those of `vb`.

    Parameters
    ----------
    graph : Graph
    distance : {1, 2}
    seed : int
    edge_filtering : bool
    chunk_size : int
    resolution : {"index", "degree"}
    published : bool
    worklist : {"atomic", "pps"}

    Returns
    -------
    colors : array of int32, shape (n,)
    log : array of int32, shape (rows, 2)
        See `Coloring.history`.
    """
    kernel = "color_by_bits" if flag(published, "published") else "color_vb_bit"
    return by_color_ranges(kernel, graph, distance, edge_filtering, chunk_size, resolution, published, worklist)


def by_color_ranges(
    kernel: str,
    graph: Graph,
    distance: int,
    edge_filtering: bool,
    chunk_size: int,
    resolution: str,
    published: bool,
    worklist: str,
) -> tuple[Any, Any]:
    """Run VB or VB BIT."""
    check_options(chunk_size, resolution, published, worklist)
    if published and distance == 2:
        raise ValueError("published works at distance 1 only, got distance=2; leave one of them out")
    if flag(edge_filtering, "edge_filtering") and distance == 2:
        raise ValueError("edge_filtering works at distance 1 only; leave it out at distance 2")
    xp, n = graph.backend.xp, graph.n
    adjacency = graph.indices.copy() if edge_filtering else graph.indices
    if published:
        by_degree = resolution == "degree"
        return color_published(kernel, graph, adjacency, chunk_size, by_degree, worklist, edge_filtering)
    C, colored = colors_around_hubs(graph) if distance == 2 else (xp.empty(n, np.int32), 0)
    worklists, scratch = xp.empty((2, n), np.int32), xp.zeros(4, np.int32)
    log = log_of_first_round(graph, colored)
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype, LONG_ROWS=has_long_rows(graph))
    getattr(run, kernel)(
        n,
        distance,
        graph.indptr,
        adjacency,
        graph.degrees,
        chunk_size,
        int(resolution == "degree"),
        int(colored > 0),
        C,
        worklists,
        scratch,
        log,
        int(bool(edge_filtering)),
    )
    return C, log


def has_long_rows(graph: Graph) -> int:
    """Whether the GPU has teams of threads for some rows: with the diagonal they have 32 entries and more."""
    return int(graph.max_degree + 1 >= 32)


def check_options(chunk_size: int, resolution: str, published: bool, worklist: str) -> None:
    """Raise TypeError or ValueError for an option that no method here knows."""
    integer(chunk_size, "chunk_size", 1, LARGEST_CHUNK)
    check_resolution(resolution)
    published = flag(published, "published")
    if one_of(worklist, "worklist", WORKLISTS) == "pps" and not published:
        raise ValueError("worklist must be 'atomic', or 'pps' with published=True, got 'pps'")


@compile_row
def loses(v, distance, indptr, adjacency, degrees, by_degree, C):
    """Algorithm 3 on one vertex, which does not give way to itself."""
    color = C[v]
    for j in rows_near(v, distance, indptr):
        row = row_near(j, v, indptr, adjacency)
        for k in range(indptr[row], indptr[row + 1]):
            u = adjacency[k]
            if C[u] == color and gives_way(v, u, by_degree, degrees):
                return True
    return False


@compile_loop
def detect_each(first, end, conf, distance, indptr, adjacency, degrees, by_degree, C, lost):
    """The vertices of `detect_conflicts`."""
    for i in range(first, end):
        if loses(conf[i], distance, indptr, adjacency, degrees, by_degree, C):
            C[conf[i]] = UNCOLORED
            lost[i] = True


@compile_part
def detect_conflicts(conf, distance, indptr, adjacency, degrees, by_degree, C):
    """DETECTCONFLICTS: uncolor those who give way; returns the new worklist."""
    lost = np.zeros(len(conf), np.bool_)
    detect_each(0, len(conf), conf, distance, indptr, adjacency, degrees, by_degree, C, lost)
    return conf[lost]


@compile_row
def first_fit(v, indptr, indices, C, forbidden):
    """Algorithm 2 on one vertex: `forbidden` holds a time stamp per color and, last, the time.

    v itself is uncolored, so that an entry on the diagonal forbids nothing.
    """
    now = forbidden[-1] + 1
    forbidden[-1] = now
    for k in range(indptr[v], indptr[v + 1]):
        color = C[indices[k]]
        if color != UNCOLORED:
            forbidden[color] = now
    color = 0
    while forbidden[color] == now:
        color += 1
    return color


@compile_row
def first_fit_by_ranges(v, distance, indptr, adjacency, filtering, C, forbidden, bitwise):
    """Algorithm 4 on one vertex, with edge filtering on request.

    v itself is uncolored, so that where it is listed it forbids nothing.
    """
    seen = offset = 0  # entries of its row that filtering has put in front; the first color of the range
    while True:
        allow_all(forbidden)
        for j in rows_near(v, distance, indptr):
            row = row_near(j, v, indptr, adjacency)
            for k in range(indptr[row] + seen, indptr[row + 1]):
                u = adjacency[k]
                color = C[u] - offset
                if 0 <= color < MAXFORBID:
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
def assign_ipgc(first, end, conf, chunk, indptr, indices, C, forbidden):
    """ASSIGNCOLORS of IPGC; row t of `forbidden` belongs to thread t, which has a run of chunks."""
    threads = len(forbidden)
    share = -(-len(conf) // (threads * chunk)) * chunk
    for t in range(first, end):
        own = forbidden[t]
        for i in range(t * share, min((t + 1) * share, len(conf))):
            C[conf[i]] = first_fit(conf[i], indptr, indices, C, own)


@compile_loop(grain=1)
def assign_by_ranges(first, end, conf, chunk, distance, indptr, adjacency, filtering, C, bitwise):
    """ASSIGNCOLORS of VB and VB BIT, chunk by chunk."""
    for t in range(first, end):
        forbidden = np.empty(1 if bitwise else MAXFORBID, np.uint64)
        for i in range(t * chunk, min((t + 1) * chunk, len(conf))):
            C[conf[i]] = first_fit_by_ranges(conf[i], distance, indptr, adjacency, filtering, C, forbidden, bitwise)


@KERNELS.resident
def color_ipgc(n, indptr, indices, degrees, chunk, by_degree, C, worklists, scratch, log, forbidden, row, threads):
    """Algorithm 1 with Algorithm 2."""
    C[:] = UNCOLORED
    conf = np.arange(n)
    while len(conf):
        assign_ipgc(0, threads, conf, chunk, indptr, indices, C, forbidden.reshape((threads, row)))
        before = len(conf)
        conf = detect_conflicts(conf, 1, indptr, indices, degrees, by_degree, C)
        log_round(log, before, len(conf))


@compile_part
def color_by_ranges(graph, distance, chunk, by_degree, some_colored, C, log, filtering, bitwise):
    """Algorithm 1 with Algorithm 4.

    If `some_colored`, C holds the colors of some vertices and UNCOLORED for the others, and the log already
    has one round.
    """
    indptr, adjacency, degrees = graph
    if not some_colored:
        C[:] = UNCOLORED
    conf = np.flatnonzero(C == UNCOLORED)
    while len(conf):
        assign_by_ranges(0, -(-len(conf) // chunk), conf, chunk, distance, indptr, adjacency, filtering, C, bitwise)
        before = len(conf)
        conf = detect_conflicts(conf, distance, indptr, adjacency, degrees, by_degree, C)
        log_round(log, before, len(conf))


@KERNELS.resident
def color_vb(
    n, distance, indptr, adjacency, degrees, chunk, by_degree, some_colored, C, worklists, scratch, log, filtering
):
    """VB: flags."""
    color_by_ranges((indptr, adjacency, degrees), distance, chunk, by_degree, some_colored, C, log, filtering, False)


@KERNELS.resident
def color_vb_bit(
    n, distance, indptr, adjacency, degrees, chunk, by_degree, some_colored, C, worklists, scratch, log, filtering
):
    """VB BIT: bits."""
    color_by_ranges((indptr, adjacency, degrees), distance, chunk, by_degree, some_colored, C, log, filtering, True)
