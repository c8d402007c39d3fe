"""RIG and SIRG as Sistla and Nandivada have them (Figures 2-4 and Section 4): `published=True`.

A thread takes every so many vertices, a cyclic distribution. It has a palette, `adjColors`, of one bit for each color,
all of them set. For a vertex it unsets the colors of the neighbors, takes the first one that is set, and sets all
again, from the first word of the palette to the last. The coloring phase does this for all vertices. In each round of
conflict resolution a vertex of the worklist that has the color of a neighbor of higher priority is colored again and
stays in the list, for which a warp does one atomic.

The baseline has words of 32 bits. With optimization 1 they have 64, where more than 32 colors may be needed; with
optimization 2 palettes begin with 256 colors and double when a vertex finds nothing free. Palettes may also belong to
vertices and not to threads, which Section 6.4 compares.

The array `nextVertices` is left out, as in `rig.py`: all neighbors are looked at, and their priorities compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_loop, compile_row
from mcprecond.backends.cuda_source import BLOCK
from mcprecond.coloring.graph import UNCOLORED, Graph
from mcprecond.coloring.history import log_round, new_log
from mcprecond.coloring.published.vertex_parts import gives_way

KERNELS = KernelSet(__file__, "OFFSET BITS")

MOST_THREADS = {"cpu": BLOCK, "gpu": 2**18}
PALETTE_BYTES = 2**30  # over all threads, unless a single block needs more; palettes of vertices take what they need


def color_published(
    graph: Graph, by_degree: bool, max_color: int, long_words: bool, of_vertices: bool
) -> tuple[Any, Any]:
    """Return the colors and the log; palettes have room for `max_color` colors at first, and double when needed."""
    xp, backend, n = graph.backend.xp, graph.backend, graph.n
    C, worklists, log = xp.empty(n, np.int32), xp.empty((2, n), np.int32), new_log(graph)
    rounds, left = 0, n
    while left:
        word = np.uint64 if long_words and max_color > 32 else np.uint32
        bits = 8 * np.dtype(word).itemsize
        words = -(-max_color // bits)
        most = max(1, PALETTE_BYTES // (words * bits // 8))
        threads = -(-min(left, MOST_THREADS[backend.name], n if of_vertices else most) // BLOCK) * BLOCK
        palettes = xp.full((n if of_vertices else threads, words), np.iinfo(word).max, word)
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


@compile_row
def minimum_color(v, indptr, indices, C, palettes, p):
    """The first color of palette p that no neighbor has, UNCOLORED if there is none; then all are set again."""
    words, one, bits = palettes.shape[1], palettes.dtype.type(1), 8 * palettes.itemsize
    for k in range(indptr[v], indptr[v + 1]):
        color = C[indices[k]]
        if indices[k] != v and 0 <= color < words * bits:
            palettes[p, color // bits] &= ~(one << palettes.dtype.type(color % bits))
    found = UNCOLORED
    for color in range(words * bits):
        if (palettes[p, color // bits] >> palettes.dtype.type(color % bits)) & one:
            found = color
            break
    for word in range(words):
        palettes[p, word] = ~palettes.dtype.type(0)
    return found


@compile_row
def in_conflict(v, indptr, indices, degrees, by_degree, C):
    """Whether a neighbor in S(v) has the color of v (Figure 4, line 5)."""
    for k in range(indptr[v], indptr[v + 1]):
        if C[indices[k]] == C[v] and gives_way(v, indices[k], by_degree, degrees):
            return True
    return False


@compile_loop(grain=1)
def color_all(first, end, threads, n, indptr, indices, of_vertices, C, palettes):
    """COLORING (Figure 3); returns how many vertices found nothing free."""
    lacking = 0
    for t in range(first, end):
        for v in range(t, n, threads):
            C[v] = minimum_color(v, indptr, indices, C, palettes, v if of_vertices else t)
            lacking += C[v] == UNCOLORED
    return lacking


@compile_loop(grain=1)
def resolve(first, end, threads, W_in, indptr, indices, degrees, by_degree, of_vertices, C, palettes, recolored):
    """CONFLICTRESOLVEANDRECOLOR (Figure 4): marks those that stay; returns how many of them found nothing free."""
    lacking = 0
    for t in range(first, end):
        for i in range(t, len(W_in), threads):
            v = W_in[i]
            if C[v] == UNCOLORED or in_conflict(v, indptr, indices, degrees, by_degree, C):
                C[v] = minimum_color(v, indptr, indices, C, palettes, v if of_vertices else t)
                recolored[i] = True
                lacking += C[v] == UNCOLORED
    return lacking


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
    worklists,
    rounds,
    length,
    palettes,
    words,
    scratch,
    log,
):
    """Figure 2, until no vertex is left, or one lacks a color; the worklist of round r is in half r % 2."""
    lacking = 0
    if rounds == 0:
        C[:] = UNCOLORED
        lacking = color_all(0, threads, threads, n, indptr, indices, of_vertices, C, palettes)
        log_round(log, n, 0)
        rounds = 1
        W_in = np.arange(n, dtype=np.int32)
    else:
        W_in = worklists[rounds % 2, :length].copy()
    while len(W_in) and lacking == 0:
        recolored = np.zeros(len(W_in), np.bool_)
        lacking = resolve(
            0, threads, threads, W_in, indptr, indices, degrees, by_degree, of_vertices, C, palettes, recolored
        )
        W_in = W_in[recolored]
        log_round(log, len(W_in), len(W_in))
        rounds += 1
    worklists[rounds % 2, : len(W_in)] = W_in
    scratch[1] = rounds
    scratch[2] = len(W_in)
