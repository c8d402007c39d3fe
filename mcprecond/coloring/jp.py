"""JP, the coloring of Jones and Plassmann (SIAM J. Sci. Comput. 14, 1993) with a given order as priority.

A vertex is ready when all neighbors that precede it are colored; it then takes the smallest color that none of them
has. The result is that of coloring first-fit in that order, one vertex after the other. Hasenplaugh et al. (SPAA 2014)
compare orders.

The ready vertices of each step form a front, an independent set. The CPU goes front by front. On the GPU vertices wait
for each other one by one: chains, stretches of the order in which each vertex is a neighbor of the one before it,
can only be colored one after the other, so each is in the hands of one team of threads. In row order of a grid a chain
is a line, all lines are worked on at once, and a step from vertex to vertex costs one load from memory, no barrier.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import NUMBERS, KernelSet, compile_loop, compile_part, compile_row
from mcprecond.backends.team.atomics import atomic_add
from mcprecond.coloring.graph import Graph, row_near, rows_near
from mcprecond.coloring.history import new_log
from mcprecond.coloring.hubs import hubs_of, in_sequence
from mcprecond.coloring.orders import sequence_of

KERNELS = KernelSet(__file__, "OFFSET LANES NATURAL")

PALETTE = 64
PARTS = 64  # of a front, on the CPU
READY = 64  # vertices that a part lists together


def jp(graph: Graph, *, distance: int = 1, order: Any = "random", seed: int = 0) -> tuple[Any, Any]:
    """Color first-fit in the given order, front by front.

    Parameters
    ----------
    graph : Graph
    distance : {1, 2}
        At 2 a vertex goes through the rows of its neighbors, too. No graph of all such pairs is built, and orders by
        degree go by the number of neighbors. Where hubs would take most of the time, the host colors, serially
        (`mcprecond.coloring.hubs`); colors and log are the same.
    order : {"random", "ldf", "natural", "sdl", "sdl_batch"} or array of int, shape (n,)
        Who comes first: at random; largest degree first, ties in row order; row order; smallest degree last, the order
        of which is found serially on the host; the same in parallel, where whole batches of vertices of small remaining
        degree come before each other; or a permutation: which vertex comes when. At distance 1 smallest degree last
        needs at most degeneracy + 1 colors, in batches too.
    seed : int
        Of the random order.

    Returns
    -------
    colors : array of int32, shape (n,)
        At most one more than a vertex has others within the distance; the same on every device and in every run.
    log : array of int32, shape (rows, 2)
        Front by front, as many as the longest chain of such vertices, each preceding the next. See `Coloring.history`.
    """
    natural = isinstance(order, str) and order == "natural"
    sequence = None if natural else sequence_of(graph, order, seed)
    xp, n = graph.backend.xp, graph.n
    colors, log = xp.empty(n, np.int32), new_log(graph)
    _kernels(graph, sequence).read_states(n, colors_and_fronts(graph, sequence, distance), colors, log)
    return colors, log


def colors_and_fronts(graph: Graph, sequence: Any | None, distance: int = 1) -> Any:
    """One word per vertex (int64): its color in the lower half, the number of its front, from 1, above.

    `sequence` is a permutation of the vertices; None stands for row order.
    """
    backend, xp, n = graph.backend, graph.backend.xp, graph.n
    if distance == 2 and (hubs := hubs_of(graph)) is not None:
        colors, fronts = in_sequence(graph, hubs, sequence)
        return xp.asarray(fronts.astype(np.int64) << 32 | colors)
    run = _kernels(graph, sequence)
    if sequence is None:
        sequence = rank = xp.arange(n, dtype=np.int32)
    else:
        rank = xp.empty(n, np.int32)
        rank[sequence] = xp.arange(n, dtype=np.int32)
    chains = xp.empty(n, np.int32)
    scratch = xp.zeros(1 + backend.resident_warps, np.int32)  # more than there are blocks
    states = xp.empty(n, np.int64)
    run.color_fronts(n, distance, graph.indptr, graph.indices, sequence, rank, chains, scratch, states)
    return states


def _kernels(graph: Graph, sequence: Any | None) -> Any:
    return graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype, LANES=_lanes(graph), NATURAL=int(sequence is None))


def _lanes(graph: Graph) -> int:
    """How many threads of a GPU share a vertex: each loads 4 neighbors at once; a warp where some have very many."""
    mean = graph.indices.size / max(graph.n, 1)
    if graph.max_degree > 64 * mean:
        return 32
    lanes = 2
    while lanes < 32 and 4 * lanes < mean:
        lanes *= 2
    return lanes


@compile_row
def smallest_free_color(v, distance, indptr, indices, colors):
    """The smallest color that nobody near v has, looked for 64 at a time; v itself is uncolored, so takes none."""
    offset = 0
    while True:
        taken = np.uint64(0)
        for j in rows_near(v, distance, indptr):
            row = row_near(j, v, indptr, indices)
            for k in range(indptr[row], indptr[row + 1]):
                color = colors[indices[k]] - offset
                if 0 <= color < PALETTE:
                    taken |= np.uint64(1) << np.uint64(color)
        for color in range(PALETTE):
            if not (taken >> np.uint64(color)) & np.uint64(1):
                return offset + color
        offset += PALETTE


@compile_loop
def first_front(first, end, distance, indptr, indices, rank, waiting, front, length):
    """Count for each vertex how often those near it that precede it are listed; those with none are the first front."""
    for v in range(first, end):
        before = 0
        for j in rows_near(v, distance, indptr):
            row = row_near(j, v, indptr, indices)
            for k in range(indptr[row], indptr[row + 1]):
                before += rank[indices[k]] < rank[v]
        waiting[v] = before
        if before == 0:
            front[atomic_add(length, 0, np.int32(1))] = v


@compile_row
def list_ready(ready, count, following, length):
    """Append the first `count` of `ready` to the next front."""
    begin = atomic_add(length, 0, np.int32(count))
    for k in range(count):
        following[begin + k] = ready[k]


@compile_loop(grain=1)
def color_front(
    first, end, parts, number, count, front, distance, indptr, indices, colors, states, waiting, following, length
):
    """Color the vertices of a front; whoever colors the last that another one waits for lists it for the next.

    Of those near a vertex the ones with a color precede it, so one pass both finds the color and tells the others.
    """
    for part in range(first, end):
        ready, listed = np.empty(READY, np.int32), 0  # one list for all threads would have them wait for each other
        for i in range(part * count // parts, (part + 1) * count // parts):
            v, taken = front[i], np.uint64(0)
            for j in rows_near(v, distance, indptr):
                row = row_near(j, v, indptr, indices)
                for k in range(indptr[row], indptr[row + 1]):
                    u = indices[k]
                    if colors[u] >= 0:
                        if colors[u] < PALETTE:
                            taken |= np.uint64(1) << np.uint64(colors[u])
                    elif u != v and atomic_add(waiting, u, np.int64(-1)) == 1:
                        if listed == READY:
                            list_ready(ready, listed, following, length)
                            listed = 0
                        ready[listed] = u
                        listed += 1
            color = 0
            while color < PALETTE and (taken >> np.uint64(color)) & np.uint64(1):
                color += 1
            colors[v] = color if color < PALETTE else smallest_free_color(v, distance, indptr, indices, colors)
            states[v] = (number << 32) + colors[v]
        list_ready(ready, listed, following, length)


@KERNELS.resident
def color_fronts(n, distance, indptr, indices, sequence, rank, chains, scratch, states):
    """Front after front until there is none. In CUDA the vertices of a chain wait for their neighbors' colors."""
    waiting, front, following = np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n, np.int32)
    colors, length = np.full(n, -1, np.int32), np.zeros(1, np.int32)
    first_front(0, n, distance, indptr, indices, rank, waiting, front, length)
    number = 0
    while length[0]:
        count = length[0]
        length[0] = 0
        number += 1
        parts = min(PARTS, 1 + count // READY)
        color_front(
            0, parts, parts, number, count, front, distance, indptr, indices, colors, states, waiting, following, length
        )
        front, following = following, front


@compile_part
def log_fronts(states, log):
    """One after the other."""
    for state in states:
        front = min(state >> 32, len(log) - 1)
        log[front, 0] += 1
        log[0, 0] = max(log[0, 0], front)


@compile_loop(grain=NUMBERS)
def read_colors(first, end, states, colors):
    """The vertices of `read_states`."""
    for v in range(first, end):
        colors[v] = states[v] & 0xFFFFFFFF


@KERNELS.strided
def read_states(n, states, colors, log):
    """The colors, and a log of how many vertices each front has."""
    read_colors(0, n, states, colors)
    log_fronts(states, log)
