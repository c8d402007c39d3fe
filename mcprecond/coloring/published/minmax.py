"""Min-max independent set coloring of Gunrock: Osama et al., "Graph Coloring on the GPU", Section IV-B1, Algorithm 5.

As `jpl`, but every comparison of a vertex with its neighbors is used twice: a round colors the vertices of locally
largest random number and, in a second color, those of locally smallest. That nearly halves the rounds.

`published=True` has Gunrock's frontier, which holds all vertices in every round, and with it what Table II compares:
one set in a round or two, and an operator that counts the colored vertices by an atomic for each, or none. Without that
operator each block adds up what it has colored and does one atomic, since the history needs the sum. The default keeps
a list of the vertices without a color. Colors and history are the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_loop, compile_row
from mcprecond.backends.arguments import flag
from mcprecond.backends.atomics import atomic_add
from mcprecond.backends.hashing import mix
from mcprecond.coloring.graph import UNCOLORED, Graph
from mcprecond.coloring.history import log_round, new_log

KERNELS = KernelSet(__file__, "OFFSET")


def is_minmax(
    graph: Graph, *, seed: int = 0, published: bool = False, two_sets: bool = True, atomics: bool = False
) -> tuple[Any, Any]:
    """Color two independent sets per round: "is_minmax" in `COLORINGS`.

    Osama et al., Section IV-B1, Algorithm 5.

    Parameters
    ----------
    graph : Graph
    seed : int
        Selects the random numbers, one per vertex; the vertex number decides between equal ones.
    published : bool
        Go through a frontier of all vertices in every round, and not through a list of those without a color. The
        result is the same.
    two_sets : bool
        If `published`, whether a round colors the minima, too. Without them the colors are those of `jpl`.
    atomics : bool
        If `published`, whether an operator of its own counts the colored vertices after each round, by an atomic for
        each of them: "Independent Set with Atomics" in Table II.

    Returns
    -------
    colors : array of int32, shape (n,)
        The same on every device and in every run. Not bounded by max_degree + 1; some numbers may have no vertex.
    log : array of int32, shape (rows, 2)
        There are at most twice as many colors as rounds. See `Coloring.history`.
    """
    published, two_sets, atomics = flag(published, "published"), flag(two_sets, "two_sets"), flag(atomics, "atomics")
    for name, value, default in (("two_sets", two_sets, True), ("atomics", atomics, False)):
        if value != default and not published:
            raise ValueError(f"{name} must be {default}, or {value} with published=True, got {value}")
    xp, n, seed = graph.backend.xp, graph.n, seed & 0xFFFFFFFF
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype)
    colors = xp.empty(n, np.int32)
    scratch, log = xp.zeros(4, np.int32), new_log(graph)
    if published:
        sets, counted = int(two_sets), int(atomics)
        run.color_frontier(n, graph.indptr, graph.indices, seed, sets, counted, colors, scratch, log)
    else:
        worklists = xp.empty((2, n), np.int32)
        run.color_by_two_sets(n, graph.indptr, graph.indices, seed, colors, worklists, scratch, log)
    return colors, log


@compile_row
def color_of(v, base, two_sets, indptr, indices, seed, colors):
    """COLOROP: base for a local maximum, base + 1 for a local minimum; UNCOLORED for neither.

    Colors from base on are of this round: such neighbors were uncolored when it began. Who has no uncolored neighbors
    is both and gets the second color, as in the paper. Of one set there are maxima only.
    """
    own = mix(v, seed)
    colormax, colormin = True, two_sets
    for k in range(indptr[v], indptr[v + 1]):
        u = indices[k]
        if u == v or UNCOLORED < colors[u] < base:
            continue
        theirs = mix(u, seed)
        if theirs > own or (theirs == own and u > v):
            colormax = False
        else:
            colormin = False
        if not (colormax or colormin):
            return UNCOLORED
    return base + 1 if colormin else base


@compile_loop
def color_two_sets(first, end, left, base, indptr, indices, seed, colors, done):
    """One round over the vertices that are left; marks those that it colors."""
    for i in range(first, end):
        color = color_of(left[i], base, True, indptr, indices, seed, colors)
        if color != UNCOLORED:
            colors[left[i]] = color
            done[i] = True


@KERNELS.resident
def color_by_two_sets(n, indptr, indices, seed, colors, worklists, scratch, log):
    """GUNROCKCOLOR: all rounds; the uncolored vertices are kept in a worklist."""
    colors[:] = UNCOLORED
    left = np.arange(n)
    iteration = 0
    while len(left):
        done = np.zeros(len(left), np.bool_)
        color_two_sets(0, len(left), left, 2 * iteration, indptr, indices, seed, colors, done)
        log_round(log, np.sum(done), 0)
        left = left[~done]
        iteration += 1


@compile_loop
def color_vertices(first, end, base, two_sets, indptr, indices, seed, colors):
    """COLOROP on all vertices; returns how many it colors."""
    colored = 0
    for v in range(first, end):
        if colors[v] == UNCOLORED:
            colors[v] = color_of(v, base, two_sets, indptr, indices, seed, colors)
            colored += colors[v] != UNCOLORED
    return colored


@compile_loop
def count_colored(first, end, colors, counter):
    """The operator that checks the colors, by an atomic for each vertex that has one."""
    for v in range(first, end):
        if colors[v] != UNCOLORED:
            atomic_add(counter, 0, np.int64(1))


@KERNELS.resident
def color_frontier(n, indptr, indices, seed, two_sets, atomics, colors, scratch, log):
    """GUNROCKCOLOR as published: the frontier has all vertices, and a round those colors that two sets or one need."""
    colors[:] = UNCOLORED
    base, done = np.int64(0), np.int64(0)  # literals would have all callees compiled twice
    while done < n:
        before = done
        done += color_vertices(0, n, base, two_sets != 0, indptr, indices, seed, colors)
        if atomics:
            counter = np.zeros(1, np.int64)
            count_colored(0, n, colors, counter)
            done = counter[0]
        log_round(log, done - before, 0)
        base += 1 + two_sets
