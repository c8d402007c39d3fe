"""RIG and SIRG, the improved greedy coloring of Rokos et al. as brought to GPUs by Sistla and Nandivada, Figs. 1-4.

Speculation with one barrier per round: a vertex of the worklist that finds itself in conflict is recolored on the spot
and checked again in the next round. Of two neighbors in conflict, only the one of lower priority is recolored. That
is the lower index in RIG (Fig. 1); in SIRG (Section 3.2) the lower degree, ties by index. As that order is strict, the
vertex of highest priority leaves the worklist in every round (Section 3.1).

Every thread keeps the colors that are still free in a palette, `adjColors`, of 64-bit words (Section 4.1). RIG gets a
palette for all colors that could ever be needed, as equation (1) estimates them; SIRG starts with 256 colors and
doubles the palette whenever some vertex finds nothing free in it (Section 4.2).

`published=True` has the paper's own schedule (`palettes.py`). The default is this.

Four points beyond the paper. On a GPU a vertex has a team of threads, which keeps a palette together; the higher the
degrees, the larger it is. The first colors are given in stretches of rows, as in `eb`: neighbors are seldom colored at
the same time, so that few conflicts are left to resolve. A vertex of degree d considers d + 1 colors only. And rounds
run inside one kernel, which returns when palettes must grow.

The array `nextVertices` of Section 5 is left out: which of two neighbors comes first matters only if they have the
same color.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_loop, compile_row
from mcprecond.backends.arguments import flag, one_of
from mcprecond.backends.cuda_source import BLOCK
from mcprecond.backends.hashing import mix
from mcprecond.coloring.graph import UNCOLORED, Graph
from mcprecond.coloring.history import log_round, new_log
from mcprecond.coloring.published.palettes import color_published
from mcprecond.coloring.published.rows import lanes_for, next_row, stretch_begin
from mcprecond.coloring.published.vertex_parts import check_resolution, gives_way

KERNELS = KernelSet(__file__, "OFFSET LANES")

OWNERS = ("threads", "vertices")  # of palettes
WORD = 64
ALL_FREE = np.uint64(2**WORD - 1)
K0 = 256  # colors in a palette of SIRG at first
CHUNK = 2  # vertices to a thread of a GPU, at least, that get their first colors one after another
MOST_THREADS = {"cpu": BLOCK, "gpu": 2**18}
PALETTE_WORDS = 2**27  # over all teams: 1 GiB, unless a single block needs more
CUDA_CONSTANTS = {"WORD": WORD}


def rig(graph: Graph, *, seed: int = 0, published: bool = False) -> tuple[Any, Any]:
    """Color by RIG (Section 2, Figure 1): the lower index is recolored; palettes for the largest degree.

    Parameters
    ----------
    graph : Graph
    seed : int
        Accepted for uniformity; no random numbers are drawn.
    published : bool
        Whether to run the paper's schedule, a thread to a vertex (`mcprecond.coloring.published.palettes`).

    Returns
    -------
    colors : array of int32, shape (n,)
        At most max_degree + 1 of them; not reproducible from run to run, since threads race by design.
    log : array of int32, shape (rows, 2)
        The coloring phase, and the passes of conflict resolution, which recolor as many vertices as they find in
        conflict. See `Coloring.history`.
    """
    if flag(published, "published"):
        return color_published(graph, False, estimate(graph), long_words=False, of_vertices=False)
    return resolve_in_palettes(graph, by_degree=False, max_color=estimate(graph))


def sirg(
    graph: Graph,
    *,
    seed: int = 0,
    resolution: str = "degree",
    doubling: bool = True,
    published: bool = False,
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
    published : bool
        Whether to run the paper's schedule, a thread to a vertex (`mcprecond.coloring.published.palettes`).
    long_words : bool
        Section 4.1: palettes are of words of 64 bits. False is for `published` only: words have 32 bits then.
    palettes : {"threads", "vertices"}
        Who has a palette; "vertices" is for `published` only, and takes as much memory for each of them.

    Returns
    -------
    colors : array of int32, shape (n,)
        At most max_degree + 1 of them; not reproducible from run to run, since threads race by design.
    log : array of int32, shape (rows, 2)
        The coloring phase, and the passes of conflict resolution, which recolor as many vertices as they find in
        conflict. See `Coloring.history`.

    Raises
    ------
    TypeError, ValueError
        If an option is something else, or for `published` only.
    """
    check_resolution(resolution)
    most = min(K0, estimate(graph)) if flag(doubling, "doubling") else estimate(graph)
    long_words = flag(long_words, "long_words")
    of_vertices = one_of(palettes, "palettes", OWNERS) == "vertices"
    if flag(published, "published"):
        return color_published(graph, resolution == "degree", most, long_words, of_vertices)
    if not long_words:
        raise ValueError("long_words must be True, or False with published=True, got False")
    if of_vertices:
        raise ValueError("palettes must be 'threads', or 'vertices' with published=True, got 'vertices'")
    return resolve_in_palettes(graph, by_degree=resolution == "degree", max_color=most)


def estimate(graph: Graph) -> int:
    """Equation (1): the least power of two that is at least 1 + max_degree."""
    return 1 << graph.max_degree.bit_length()


def resolve_in_palettes(graph: Graph, by_degree: bool, max_color: int) -> tuple[Any, Any]:
    """Fig. 2, with palettes of `max_color` colors that double until all vertices are colored."""
    xp, backend, n = graph.backend.xp, graph.backend, graph.n
    lanes = lanes_for(graph, distance=1)
    run = backend.kernels(KERNELS, OFFSET=graph.indptr.dtype, LANES=lanes)
    C, worklists, log = xp.empty(n, np.int32), xp.empty((2, n), np.int32), new_log(graph)
    words = -(-max_color // WORD)
    rounds, left = 0, n
    while left:
        teams = -(-min(left, MOST_THREADS[backend.name] // lanes, max(1, PALETTE_WORDS // words)) // BLOCK) * BLOCK
        palettes = xp.empty(teams * words, np.uint64)
        scratch = xp.zeros(16, np.int32)
        run.color_and_resolve(
            teams,
            n,
            graph.indptr,
            graph.indices,
            graph.degrees,
            int(by_degree),
            C,
            worklists,
            rounds,
            left,
            palettes,
            words,
            CHUNK,
            scratch,
            log,
        )
        if words * WORD > graph.max_degree:
            break  # there was a free color for everyone
        rounds, left = (int(value) for value in backend.to_host(scratch)[1:3])
        words *= 2
    return C, log


@compile_row
def in_conflict(v, indptr, indices, degrees, by_degree, C):
    """Whether a neighbor of v in S(v), of higher priority than v, has the color of v (Fig. 4, line 5)."""
    color = C[v]
    for k in range(indptr[v], indptr[v + 1]):
        u = indices[k]
        if C[u] == color and gives_way(v, u, by_degree, degrees):
            return True
    return False


@compile_row
def minimum_color(v, indptr, indices, degrees, C, palette):
    """The minimum color that no neighbor of v has, among those of the palette; UNCOLORED if there is none."""
    words = min(len(palette), degrees[v] // WORD + 1)
    for word in range(words):
        palette[word] = ALL_FREE
    for k in range(indptr[v], indptr[v + 1]):
        color = C[indices[k]]
        if indices[k] != v and 0 <= color < words * WORD:
            palette[color // WORD] &= ~(np.uint64(1) << np.uint64(color % WORD))
    for color in range(words * WORD):
        if (palette[color // WORD] >> np.uint64(color % WORD)) & np.uint64(1):
            return color
    return UNCOLORED


@compile_loop(grain=1)
def color_all(first, last, n, indptr, indices, degrees, C, palettes):
    """COLORING (Fig. 3): every thread has a stretch of the vertices, every other one first, and a palette."""
    for t in range(first, last):
        begin, end = stretch_begin(t, len(palettes), n, indptr), stretch_begin(t + 1, len(palettes), n, indptr)
        v, own = begin + mix(t, 0) % max(end - begin, 1), palettes[t]
        for _ in range(end - begin):
            C[v] = minimum_color(v, indptr, indices, degrees, C, own)
            v = next_row(v, begin, end)


@compile_loop(grain=1)
def resolve(first, end, W_in, indptr, indices, degrees, by_degree, C, palettes, recolored):
    """CONFLICTRESOLVEANDRECOLOR (Fig. 4): marks those that are in W_out."""
    share = -(-len(W_in) // len(palettes))
    for t in range(first, end):
        own = palettes[t]
        for i in range(t * share, min((t + 1) * share, len(W_in))):
            v = W_in[i]
            if C[v] == UNCOLORED or in_conflict(v, indptr, indices, degrees, by_degree, C):
                C[v] = minimum_color(v, indptr, indices, degrees, C, own)
                recolored[i] = True


@compile_loop
def count_uncolored(first, end, W_in, C):
    """How many vertices found nothing free in their palettes."""
    lacking = 0
    for i in range(first, end):
        lacking += C[W_in[i]] == UNCOLORED
    return lacking


@KERNELS.resident
def color_and_resolve(
    teams, n, indptr, indices, degrees, by_degree, C, worklists, rounds, length, palettes, words, chunk, scratch, log
):
    """Rounds until no vertex is left, or one lacks a color; the worklist of round r is in half r % 2 of `worklists`."""
    own = palettes.reshape((teams, words))
    if rounds == 0:
        C[:] = UNCOLORED
        color_all(0, teams, n, indptr, indices, degrees, C, own)
        log_round(log, n, 0)
        rounds = 1
        W_in = np.arange(n, dtype=np.int32)
        lacking = count_uncolored(0, len(W_in), W_in, C)
    else:
        W_in = worklists[rounds % 2, :length].copy()
        lacking = False
    while len(W_in) and not lacking:
        recolored = np.zeros(len(W_in), np.bool_)
        resolve(0, teams, W_in, indptr, indices, degrees, by_degree, C, own, recolored)
        W_in = W_in[recolored]
        log_round(log, len(W_in), len(W_in))
        rounds += 1
        lacking = count_uncolored(0, len(W_in), W_in, C)
    worklists[rounds % 2, : len(W_in)] = W_in
    scratch[1] = rounds
    scratch[2] = len(W_in)
