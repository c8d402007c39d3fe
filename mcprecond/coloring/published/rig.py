"""RIG and SIRG, the improved greedy coloring of Rokos et al. as brought to GPUs by Sistla and Nandivada, Figs. 1-4.

A thread of a GPU takes every so many vertices, a cyclic distribution. It has a palette, `adjColors`, of one bit for
each color, all of them set. For a vertex it unsets the colors of the neighbors, takes the first one that is set, and
sets all again, from the first word of the palette to the last. The coloring phase does this for all vertices. In each
round of conflict resolution a vertex of the worklist that has the color of a neighbor of higher priority is colored
again and stays in the list, for which a warp does one atomic. Of higher priority is the larger index in RIG (Fig. 1);
in SIRG (Section 3.2) the larger degree, ties by index. As that order is strict, the vertex of highest priority leaves
the worklist in every round (Section 3.1).

RIG is the baseline: words of 32 bits, and palettes for all colors that could ever be needed, as equation (1)
estimates them. SIRG has words of 64 bits where more than 32 colors may be needed (optimization 1, Section 4.1), and
palettes that begin with 256 colors and double when a vertex finds nothing free (optimization 2, Section 4.2).
Section 6.4 compares palettes of threads with palettes of vertices; `palettes` chooses between them.

The array `nextVertices` of Section 5 tells where in the row of a vertex the neighbors begin that it is checked against,
those of higher priority. By index they are the last ones of a sorted row; by degree they are listed in rows of another
array, `conflicting`. In the authors' code the host does so as it reads the graph, before anything is timed; here the
coloring phase does it. A thread's palette of a single word stays in a register. On a CPU one thread colors, so that the
options change nothing there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet
from mcprecond.backends.arguments import flag, one_of
from mcprecond.backends.cuda_source import BLOCK
from mcprecond.coloring.graph import Graph
from mcprecond.coloring.history import log_round, new_log
from mcprecond.coloring.published.speculation import check_resolution, color_alone

KERNELS = KernelSet(__file__, "OFFSET BITS")

OWNERS = ("threads", "vertices")  # of palettes
K0 = 256  # colors in a palette of SIRG at first
MOST_THREADS = {"cpu": BLOCK, "gpu": 2**18}
PALETTE_BYTES = 2**30  # over all threads, unless a single block needs more; palettes of vertices take what they need


def rig(graph: Graph, *, seed: int = 0) -> tuple[Any, Any]:
    """Color by RIG (Section 2, Figure 1): the lower index is recolored; palettes for the largest degree.

    Parameters
    ----------
    graph : Graph
    seed : int
        Accepted for uniformity; no random numbers are drawn.

    Returns
    -------
    colors : array of int32, shape (n,)
        At most max_degree + 1 of them; not reproducible from run to run on a GPU, since threads race by design.
    log : array of int32, shape (rows, 2)
        The coloring phase, and the passes of conflict resolution, which recolor as many vertices as they find in
        conflict. See `Coloring.history`.
    """
    return resolve_in_palettes(graph, False, estimate(graph), long_words=False, of_vertices=False)


def sirg(
    graph: Graph,
    *,
    seed: int = 0,
    resolution: str = "degree",
    doubling: bool = True,
    long_words: bool = True,
    palettes: str = "threads",
) -> tuple[Any, Any]:
    """Color by SIRG (Sections 3 and 4, Figures 2-4): the lower degree is recolored; palettes double when needed.

    Parameters
    ----------
    graph : Graph
    seed : int
        Accepted for uniformity; no random numbers are drawn.
    resolution : {"degree", "index"}
        Which of two neighbors of the same color is recolored: that of lower degree, or of lower index.
    doubling : bool
        Section 4.2: palettes begin with 256 colors. Otherwise they have room for the largest degree from the start.
    long_words : bool
        Section 4.1: palettes are of words of 64 bits. Otherwise words have 32 bits.
    palettes : {"threads", "vertices"}
        Who has a palette; "vertices" takes as much memory for each of them.

    Returns
    -------
    colors : array of int32, shape (n,)
        At most max_degree + 1 of them; not reproducible from run to run on a GPU, since threads race by design.
    log : array of int32, shape (rows, 2)
        The coloring phase, and the passes of conflict resolution, which recolor as many vertices as they find in
        conflict. See `Coloring.history`.

    Raises
    ------
    TypeError, ValueError
        If an option is something else.
    """
    check_resolution(resolution)
    most = min(K0, estimate(graph)) if flag(doubling, "doubling") else estimate(graph)
    of_vertices = one_of(palettes, "palettes", OWNERS) == "vertices"
    return resolve_in_palettes(graph, resolution == "degree", most, flag(long_words, "long_words"), of_vertices)


def estimate(graph: Graph) -> int:
    """Equation (1): the least power of two that is at least 1 + max_degree."""
    return 1 << graph.max_degree.bit_length()


def resolve_in_palettes(
    graph: Graph, by_degree: bool, max_color: int, long_words: bool, of_vertices: bool
) -> tuple[Any, Any]:
    """Fig. 2, with palettes of `max_color` colors that double until all vertices are colored."""
    xp, backend, n = graph.backend.xp, graph.backend, graph.n
    C, worklists, log = xp.empty(n, np.int32), xp.empty((2, n), np.int32), new_log(graph)
    conflicting = xp.empty(graph.indices.size if by_degree else 0, np.int32)
    next_vertices = xp.empty(n, graph.indptr.dtype)
    rounds, left = 0, n
    while left:
        word = np.uint64 if long_words and max_color > 32 else np.uint32
        bits = 8 * np.dtype(word).itemsize
        words = -(-max_color // bits)
        most = max(1, PALETTE_BYTES // (words * bits // 8))
        threads = -(-min(left, MOST_THREADS[backend.name], n if of_vertices else most) // BLOCK) * BLOCK
        owners = n if of_vertices else threads if words > 1 else 0
        palettes = xp.full((owners, words), np.iinfo(word).max, word)
        scratch = xp.zeros(16, np.int32)
        run = backend.kernels(KERNELS, OFFSET=graph.indptr.dtype, BITS=bits)
        run.color_with_palettes(
            threads,
            n,
            graph.indptr,
            graph.indices,
            graph.degrees,
            int(by_degree),
            int(of_vertices),
            C,
            conflicting,
            next_vertices,
            worklists,
            rounds,
            left,
            palettes,
            words,
            scratch,
            log,
        )
        if words * bits > graph.max_degree:
            break  # there was a free color for everyone
        rounds, left = (int(value) for value in backend.to_host(scratch)[1:3])
        max_color *= 2
    return C, log


@KERNELS.resident
def color_with_palettes(
    threads,
    n,
    indptr,
    indices,
    degrees,
    by_degree,
    of_vertices,
    C,
    conflicting,
    next_vertices,
    worklists,
    rounds,
    length,
    palettes,
    words,
    scratch,
    log,
):
    """Fig. 2: the coloring phase, and a pass that finds no conflicts. One thread needs no palette."""
    color_alone(indptr, indices, np.arange(n), C, log)
    log_round(log, 0, 0)
