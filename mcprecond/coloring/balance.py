"""Balancing: move vertices out of large color classes into small ones, without a conflict.

The unscheduled shuffling of Lu et al. (IPDPS 2015): a vertex of a class that is too large goes to the smallest class in
which it has no neighbor, as far as that can be seen from 64 classes at a time, those that were smallest before. The
vertices of one class are no neighbors of each other, so they move at the same time. At distance two a vertex with a
common neighbor counts as a neighbor; where hubs would take most of the time, they and their neighbors stay where they
are (`mcprecond.coloring.hubs`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_row
from mcprecond.backends.team.atomics import atomic_add
from mcprecond.coloring.graph import Graph, row_near, rows_near
from mcprecond.coloring.hubs import near_hubs

KERNELS = KernelSet(__file__, "OFFSET")

#: Largest class over smallest that counts as balanced.
BALANCED = 1.3
PASSES = 4


def balance(graph: Graph, distance: int, colors: Any, sizes: np.ndarray) -> Any:
    """Even out the classes, with one more color if it does not work without.

    Parameters
    ----------
    graph : Graph
    distance : {1, 2}
    colors : array of int32, shape (n,)
        A coloring, proper at that distance; contiguous. Not changed.
    sizes : numpy.ndarray of int64, shape (n_colors,)
        Vertices per color.

    Returns
    -------
    array of int32, shape (n,)
        As proper, with at most one color more. Threads race for places, so it differs from run to run.
    """
    if len(sizes) < 2:
        return colors
    for n_colors in (len(sizes), len(sizes) + 1):
        spare = np.zeros(n_colors - len(sizes), np.int64)
        shifted, new_sizes = _shift(graph, distance, colors, np.append(sizes, spare))
        if new_sizes.max() <= BALANCED * new_sizes.min():
            return shifted
    return shifted if new_sizes.min() > 0 else _shift(graph, distance, colors, sizes)[0]


def _shift(graph: Graph, distance: int, colors: Any, sizes: np.ndarray) -> tuple[Any, np.ndarray]:
    """Some passes over all classes, the largest first."""
    xp, to_host = graph.backend.xp, graph.backend.to_host
    colors, on_device = colors.copy(), xp.asarray(sizes)
    target = -(-graph.n // len(sizes))
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype)
    stays = near_hubs(graph) if distance == 2 else None
    for _ in range(PASSES):
        by_size = np.argsort(sizes, kind="stable")
        goals = by_size[sizes[by_size] < target].astype(np.int32)
        if not len(goals):
            break
        place = np.full(len(sizes), -1, np.int32)
        place[goals] = np.arange(len(goals), dtype=np.int32)
        goals, place, begin = xp.asarray(goals), xp.asarray(place), xp.zeros(1, np.int64)
        # Classes that are too large take nobody in, so the members of all of them are known beforehand.
        members = xp.argsort(colors, kind="stable").astype(np.int32)
        ends = np.cumsum(sizes)
        before = sizes
        for c in by_size[::-1]:
            if sizes[c] > target:
                its = members[int(ends[c] - before[c]) : int(ends[c])]
                its = its if stays is None else its[~stays[its]]
                run.leave_class(
                    len(its),
                    its,
                    distance,
                    graph.indptr,
                    graph.indices,
                    int(c),
                    target,
                    len(goals),
                    goals,
                    place,
                    begin,
                    colors,
                    on_device,
                )
                sizes = to_host(on_device).copy()
    return colors, sizes


@compile_row
def best_class(v, distance, indptr, indices, target, goals, place, begin, colors, sizes):
    """The smallest class below the target in which nobody is near v, among the first 64 goals where there is one; -1 if
    there is none.

    Where v itself is listed, its own class is no goal. `begin` is where goals that were not full began.
    """
    for offset in range(begin[0], len(goals), 64):
        room = False
        for i in range(offset, min(offset + 64, len(goals))):
            room = room or sizes[goals[i]] < target
        if not room:
            if begin[0] == offset:
                begin[0] = offset + 64
            continue
        taken = np.uint64(0)
        for j in rows_near(v, distance, indptr):
            row = row_near(j, v, indptr, indices)
            for k in range(indptr[row], indptr[row + 1]):
                bit = place[colors[indices[k]]] - offset
                if 0 <= bit < 64:
                    taken |= np.uint64(1) << np.uint64(bit)
        best, best_size = -1, target
        for i in range(64):
            bit = (v + i) % 64  # of equally small ones not all take the first
            if offset + bit < len(goals) and not (taken >> np.uint64(bit)) & np.uint64(1):
                goal = goals[offset + bit]
                if sizes[goal] < best_size:
                    best, best_size = goal, sizes[goal]
        if best >= 0:
            return best
    return -1


@KERNELS.per_item
def leave_class(first, end, members, distance, indptr, indices, c, target, n_goals, goals, place, begin, colors, sizes):
    """Let members of class c move to smaller classes until the class is down to the target.

    `goals` are the classes that were below the target before, the smallest first, and `place` says where in this list a
    class is, or -1.
    """
    for i in range(first, end):
        v, moved = members[i], False
        while not moved and sizes[c] > target:
            goal = best_class(v, distance, indptr, indices, target, goals, place, begin, colors, sizes)
            if goal < 0:
                break
            # Count v in that class and no longer in its own; undo this if another thread has filled the class first.
            if atomic_add(sizes, goal, np.int64(1)) >= target:
                atomic_add(sizes, goal, np.int64(-1))
            elif atomic_add(sizes, c, np.int64(-1)) <= target:
                atomic_add(sizes, c, np.int64(1))
                atomic_add(sizes, goal, np.int64(-1))
                break
            else:
                colors[v], moved = goal, True
