"""Balancing: move vertices out of large color classes into small ones, without a conflict.

The unscheduled shuffling of Lu et al. (IPDPS 2015): a vertex of a class that is too large goes to the smallest class in
which it has no neighbor. The vertices of one class are no neighbors of each other, so they move at the same time. At
distance two a vertex with a common neighbor counts as a neighbor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from mcprecond.backends import KernelSet, compile_part
from mcprecond.backends.atomics import atomic_add
from mcprecond.coloring.graph import Graph, row_near, rows_near

KERNELS = KernelSet(__file__)

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
    for _ in range(PASSES):
        for c in np.argsort(-sizes, kind="stable"):
            if sizes[c] > target:
                members = xp.flatnonzero(colors == c).astype(np.int32)
                run.leave_class(
                    len(members), members, distance, graph.indptr, graph.indices, int(c), target, len(sizes), colors,
                    on_device,
                )  # fmt: skip
                sizes = to_host(on_device)
    return colors, sizes


@compile_part
def best_class(v, distance, indptr, indices, target, n_colors, colors, sizes):
    """The smallest class below the target in which nobody is near v; -1 if there is none.

    Where v itself is listed, its own class is no goal; it is too large for one anyway.
    """
    best, best_size = -1, target
    for offset in range(0, n_colors, 64):
        taken = np.uint64(0)
        for j in rows_near(v, distance, indptr):
            row = row_near(j, v, indptr, indices)
            for k in range(indptr[row], indptr[row + 1]):
                color = colors[indices[k]] - offset
                if 0 <= color < 64:
                    taken |= np.uint64(1) << np.uint64(color)
        for color in range(min(64, n_colors - offset)):
            if not (taken >> np.uint64(color)) & np.uint64(1) and sizes[offset + color] < best_size:
                best, best_size = offset + color, sizes[offset + color]
    return best


@KERNELS.twin
def leave_class(items, members, distance, indptr, indices, c, target, n_colors, colors, sizes):
    """Let members of class c move to smaller classes until the class is down to the target."""
    for i in prange(items):
        v = members[i]
        if sizes[c] <= target:
            continue
        goal = best_class(v, distance, indptr, indices, target, n_colors, colors, sizes)
        if goal < 0:
            continue
        # Take a place there and give one up here, or undo it.
        if atomic_add(sizes, goal, np.int64(1)) >= target:
            atomic_add(sizes, goal, np.int64(-1))
        elif atomic_add(sizes, c, np.int64(-1)) <= target:
            atomic_add(sizes, c, np.int64(1))
            atomic_add(sizes, goal, np.int64(-1))
        else:
            colors[v] = goal
