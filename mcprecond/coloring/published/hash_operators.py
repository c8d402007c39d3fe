"""Gunrock's hash coloring as published (Osama et al., Section IV-B2, Algorithm 6): `published=True`.

A round has three operators, with a barrier after each, and a thread for each vertex, also for those that have a color.
HASHCOLOROP: a vertex without a color finds the two to propose, looks for a color in the tables of both, and gives it to
them. Conflict resolution takes the color from one of two neighbors that have the same. Hash generation enters the new
colors around a vertex into its table.

Many vertices may propose the same one, and a vertex reads neighbors that others color at that moment. So the colors
before a round, those proposed in it, and those after it are in three arrays, and of two proposals the minimum's wins.
With the other points of `hashed.py`, colors and history are those of its schedule.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_loop, compile_row
from mcprecond.backends.atomics import atomic_max
from mcprecond.coloring.graph import UNCOLORED, Graph
from mcprecond.coloring.history import log_round, new_log
from mcprecond.coloring.published.hash_tables import EMPTY, NO_REUSE, color_of, number_of, prohibit

KERNELS = KernelSet(__file__, "OFFSET")


def color_published(graph: Graph, seed: int, table_size: int) -> tuple[Any, Any]:
    """Return the colors and the log."""
    xp, n = graph.backend.xp, graph.n
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype)
    colors = xp.full((3, n), UNCOLORED, np.int32)
    tables = xp.full(table_size * n, EMPTY, np.int32)
    scratch, log = xp.zeros(8, np.int32), new_log(graph)
    run.color_by_operators(n, graph.indptr, graph.indices, seed & 0xFFFFFFFF, table_size, colors, tables, scratch, log)
    return colors[2], log


@compile_row
def propose(u, role, new, tables, proposed):
    """Give u a color that its table does not prohibit, or the new one of the role, unless it has a higher one."""
    color = color_of(new + role, new, tables, u)
    if proposed[u] < color:
        atomic_max(proposed, u, np.int32(color))


@compile_loop
def hash_color(first, end, new, indptr, indices, seed, C, proposed, tables):
    """HASHCOLOROP."""
    for v in range(first, end):
        if C[v] != UNCOLORED:
            continue
        largest = smallest = np.int64(v)
        for k in range(indptr[v], indptr[v + 1]):
            u = np.int64(indices[k])
            if C[u] != UNCOLORED:
                continue
            if number_of(u, seed) > number_of(largest, seed):
                largest = u
            if number_of(u, seed) < number_of(smallest, seed):
                smallest = u
        propose(largest, 0, new, tables, proposed)
        propose(smallest, 1, new, tables, proposed)


@compile_row
def loses(v, indptr, indices, seed, C, proposed, tables):
    """Whether v has to give up the color that was proposed: to a vertex colored before, or of larger number."""
    lost = False
    for k in range(indptr[v], indptr[v + 1]):
        u = indices[k]
        if u == v or (proposed[u] if C[u] == UNCOLORED else C[u]) != proposed[v]:
            continue
        if C[u] != UNCOLORED:
            tables[v, 0] = NO_REUSE
            return True
        lost |= number_of(u, seed) > number_of(v, seed)
    return lost


@compile_loop
def resolve(first, end, indptr, indices, seed, C, proposed, after, tables):
    """The conflict resolution operator: puts the colors after the round into `after`; returns how many are lost."""
    lost = 0
    for v in range(first, end):
        after[v] = C[v]
        if C[v] == UNCOLORED and proposed[v] != UNCOLORED:
            if loses(v, indptr, indices, seed, C, proposed, tables):
                lost += 1
            else:
                after[v] = proposed[v]
    return lost


@compile_loop
def generate(first, end, indptr, indices, C, proposed, after, tables):
    """The hash generation operator, which also empties the proposals; returns how many vertices have no color."""
    left = 0
    for v in range(first, end):
        proposed[v] = UNCOLORED
        if after[v] != UNCOLORED:
            continue
        left += 1
        for k in range(indptr[v], indptr[v + 1]):
            u = indices[k]
            if C[u] == UNCOLORED and after[u] != UNCOLORED:
                prohibit(tables, v, after[u])
    return left


@KERNELS.resident
def color_by_operators(n, indptr, indices, seed, table_size, colors, tables, scratch, log):
    """All rounds; the new colors of a round are new and new + 1. The last row gets the colors."""
    own = tables.reshape((n, table_size))
    C, proposed, after = colors[0], colors[1], colors[2]
    left, new = n, np.int64(0)  # a literal would have all callees compiled twice
    while left:
        hash_color(0, n, new, indptr, indices, seed, C, proposed, own)
        lost = resolve(0, n, indptr, indices, seed, C, proposed, after, own)
        before, left = left, generate(0, n, indptr, indices, C, proposed, after, own)
        log_round(log, before - left + lost, lost)
        new += 2
        C, after = after, C
    colors[2] = C
