"""IPGC, VB and VB BIT: vertex-based speculative coloring after Deveci et al. (IPDPS 2016), Algorithms 1-4.

A thread of a GPU colors a chunk of the worklist by first-fit, one vertex after another, and reads whole rows, however
long they are. Then a thread for each vertex of the worklist looks for a neighbor with the same color to which it has to
give way. The three methods differ in how a thread keeps the colors of the neighbors, FORBIDDEN: an array for all colors
(IPGC), flags for 64 colors at a time (VB), the 64 bits of one word (VB BIT).

A vertex keeps its color until it gets the next one. So in another color range a neighbor may see another color of the
same vertex, and colors are bounded by the degree for IPGC only, where there are no ranges.

The next worklist is made by one atomic increment for each vertex in conflict, or by marks and their prefix sum, which
keeps the order (Section IV-A). As in Section IV-D, the smaller index gives way; line 4 of Algorithm 3 has the larger.
If random numbers decide, the vertex with the smaller one gives way. They are hashes of the vertices by a bijection, so
that no two are equal.

On a CPU one thread colors, so that the options change nothing there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet
from mcprecond.backends.arguments import flag, integer, one_of
from mcprecond.coloring.graph import Graph
from mcprecond.coloring.history import new_log
from mcprecond.coloring.published import speculation
from mcprecond.coloring.published.speculation import color_alone

KERNELS = KernelSet(__file__, "OFFSET MAXFORBID")

WORKLISTS = ("atomic", "pps")
RESOLUTIONS = (*speculation.RESOLUTIONS, "random")
LARGEST_CHUNK = 2**31 - 1
MAXFORBID, LARGEST_MAXFORBID = 64, 1024
CUDA_CONSTANTS = {"BY_DEGREE": RESOLUTIONS.index("degree"), "AT_RANDOM": RESOLUTIONS.index("random")}
FORBIDDEN_ENTRIES = 2**28  # of IPGC, over all threads: 1 GiB, unless a single thread needs more
MOST_THREADS = {"cpu": 64, "gpu": 2**18}  # that get a FORBIDDEN of IPGC


def ipgc(
    graph: Graph, *, seed: int = 0, chunk_size: int = 8, resolution: str = "index", worklist: str = "atomic"
) -> tuple[Any, Any]:
    """Color by IPGC (Section II-A, Algorithms 1-3): every thread has a FORBIDDEN for all colors.

    FORBIDDEN is initialized once; entries carry the time stamp of the vertex that they are forbidden for. The number of
    threads that color is limited so that their arrays take no more than 1 GiB.

    Parameters
    ----------
    graph : Graph
    seed : int
        Selects the random numbers of `resolution="random"`.
    chunk_size : int
        So many consecutive vertices of the worklist are colored by one thread, one after another (Section IV-C).
    resolution : {"index", "degree", "random"}
        Which end of an edge in conflict is recolored: that of smaller index, that of smaller degree and then index, or
        that of the smaller random number (Section IV-D).
    worklist : {"atomic", "pps"}
        How vertices in conflict are listed: by an atomic counter or by a prefix sum (Section IV-A).

    Returns
    -------
    colors : array of int32, shape (n,)
        At most max_degree + 1 of them; not reproducible from run to run on a GPU, since threads race by design.
    log : array of int32, shape (rows, 2)
        See `Coloring.history`.
    """
    row = graph.max_degree + 2  # one entry per color, and the time
    chunks = -(-graph.n // integer(chunk_size, "chunk_size", 1, LARGEST_CHUNK))
    threads = max(1, min(MOST_THREADS[graph.backend.name], FORBIDDEN_ENTRIES // row, chunks))
    forbidden = graph.backend.xp.zeros(threads * row, np.int32)
    own = forbidden, row, threads
    return run_rounds("color_in_time", graph, graph.indices, seed, chunk_size, resolution, worklist, *own)


def vb(
    graph: Graph,
    *,
    seed: int = 0,
    edge_filtering: bool = False,
    chunk_size: int = 8,
    resolution: str = "index",
    worklist: str = "atomic",
    max_forbid: int = MAXFORBID,
) -> tuple[Any, Any]:
    """Color by VB (Section III-A1, Algorithm 4): FORBIDDEN is a private array of MAXFORBID flags.

    A vertex searches one COLORRANGE of MAXFORBID colors after the other, and traverses its neighbors once for each.

    Parameters
    ----------
    graph : Graph
    seed : int
        Selects the random numbers of `resolution="random"`.
    edge_filtering : bool
        Move neighbors whose color was considered to the front of the row, in a copy of the adjacency, and skip them in
        the next color ranges (Section IV-B). Pays where many colors are needed.
    chunk_size : int
        So many consecutive vertices of the worklist are colored by one thread, one after another (Section IV-C).
    resolution : {"index", "degree", "random"}
        Which end of an edge in conflict is recolored: that of smaller index, that of smaller degree and then index, or
        that of the smaller random number (Section IV-D).
    worklist : {"atomic", "pps"}
        How vertices in conflict are listed: by an atomic counter or by a prefix sum (Section IV-A).
    max_forbid : int
        MAXFORBID, from 1 to 1024. The paper takes 64, which balances memory and work. For a GPU, each value compiles
        another kernel.

    Returns
    -------
    colors : array of int32, shape (n,)
        Not bounded by max_degree + 1, and not reproducible from run to run on a GPU, since threads race by design.
    log : array of int32, shape (rows, 2)
        See `Coloring.history`.
    """
    flags = integer(max_forbid, "max_forbid", 1, LARGEST_MAXFORBID)
    return by_color_ranges("color_by_flags", graph, seed, edge_filtering, chunk_size, resolution, worklist, flags)


def vb_bit(
    graph: Graph,
    *,
    seed: int = 0,
    edge_filtering: bool = False,
    chunk_size: int = 8,
    resolution: str = "index",
    worklist: str = "atomic",
) -> tuple[Any, Any]:
    """Color by VB BIT (Section III-A2, Algorithm 4): FORBIDDEN is one word of 64 bits.

    Parameters and results are those of `vb`.

    Parameters
    ----------
    graph : Graph
    seed : int
    edge_filtering : bool
    chunk_size : int
    resolution : {"index", "degree", "random"}
    worklist : {"atomic", "pps"}

    Returns
    -------
    colors : array of int32, shape (n,)
    log : array of int32, shape (rows, 2)
        See `Coloring.history`.
    """
    return by_color_ranges("color_by_bits", graph, seed, edge_filtering, chunk_size, resolution, worklist)


def by_color_ranges(
    kernel: str,
    graph: Graph,
    seed: int,
    edge_filtering: bool,
    chunk_size: int,
    resolution: str,
    worklist: str,
    max_forbid: int = MAXFORBID,
) -> tuple[Any, Any]:
    """Run VB or VB BIT; filtering permutes a copy of the rows."""
    filtering = flag(edge_filtering, "edge_filtering")
    adjacency = graph.indices.copy() if filtering else graph.indices
    common = seed, chunk_size, resolution, worklist
    return run_rounds(kernel, graph, adjacency, *common, int(filtering), max_forbid=max_forbid)


def run_rounds(
    kernel: str,
    graph: Graph,
    adjacency: Any,
    seed: int,
    chunk_size: int,
    resolution: str,
    worklist: str,
    *own: Any,
    max_forbid: int = MAXFORBID,
) -> tuple[Any, Any]:
    """Return the colors and the log; `own` are the arguments that the kernel of a method has besides."""
    chunk_size = integer(chunk_size, "chunk_size", 1, LARGEST_CHUNK)
    one_of(resolution, "resolution", RESOLUTIONS)
    one_of(worklist, "worklist", WORKLISTS)
    xp, n = graph.backend.xp, graph.n
    C, worklists, marks = xp.empty(n, np.int32), xp.empty((2, n), np.int32), xp.empty(n, np.int8)
    scratch, log = xp.zeros(8192, np.int64), new_log(graph)
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype, MAXFORBID=max_forbid)
    getattr(run, kernel)(
        n,
        graph.indptr,
        adjacency,
        graph.degrees,
        chunk_size,
        RESOLUTIONS.index(resolution),
        seed & 0xFFFFFFFF,
        int(worklist == "pps"),
        C,
        worklists,
        marks,
        scratch,
        log,
        *own,
    )
    return C, log


@KERNELS.resident
def color_in_time(
    n, indptr, adjacency, degrees, chunk, rule, seed, pps, C, worklists, marks, scratch, log, forbidden, row, threads
):
    """IPGC: Algorithm 1 with Algorithm 2."""
    color_alone(indptr, adjacency, np.arange(n), C, log)


@KERNELS.resident
def color_by_flags(n, indptr, adjacency, degrees, chunk, rule, seed, pps, C, worklists, marks, scratch, log, filtering):
    """VB: Algorithm 1 with Algorithm 4."""
    color_alone(indptr, adjacency, np.arange(n), C, log)


@KERNELS.resident
def color_by_bits(n, indptr, adjacency, degrees, chunk, rule, seed, pps, C, worklists, marks, scratch, log, filtering):
    """VB BIT: Algorithm 1 with Algorithm 4."""
    color_alone(indptr, adjacency, np.arange(n), C, log)
