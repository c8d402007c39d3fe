"""The hash coloring of Gunrock: Osama et al., "Graph Coloring on the GPU", Section IV-B2, Algorithm 6.

Every uncolored vertex proposes two of its closed neighborhood for coloring: the uncolored ones of largest and of
smallest random number. Those proposed need not be independent, but they are more than the local maxima and minima. Each
of them takes a color of an earlier round that its hash table does not prohibit, or else a new one. The table of a
vertex holds the first `table_size` colors that it saw at its neighbors, perhaps not all. Conflicts are resolved in the
end: they come from neighbors colored at the same time and from colors that a full table lacks.

A round has three operators, with a barrier after each, and a thread for each vertex, also for those that have a color.
HASHCOLOROP: a vertex without a color finds the two to propose, looks for a color in the tables of both, and gives it to
them. Conflict resolution takes the color from one of two neighbors that have the same. Hash generation enters the new
colors around a vertex into its table.

Points beyond the paper, which make the result reproducible and the rounds end: many vertices may propose the same one,
and a vertex reads neighbors that others color at that moment; so the colors before a round, those proposed in it, and
those after it are in three arrays, and of two proposals the minimum's wins. Of two neighbors in conflict, the one
colored in an earlier round or else the one of larger random number keeps its color. A vertex that lost to a color its
table lacks takes new colors from then on. So the vertex of largest random number among the uncolored is colored after
two rounds at the latest.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_row
from mcprecond.backends.arguments import integer
from mcprecond.backends.hashing import mix
from mcprecond.coloring.graph import UNCOLORED, Graph
from mcprecond.coloring.history import log_round, new_log

KERNELS = KernelSet(__file__, "OFFSET")

# What a place in a hash table holds besides colors. NO_REUSE, in the first place: do not ask this table any more.
EMPTY, NO_REUSE = -1, -2
LARGEST_TABLE = 63  # one bit less than a word of the search for a color
CUDA_CONSTANTS = {"EMPTY": EMPTY, "NO_REUSE": NO_REUSE, "LARGEST_TABLE": LARGEST_TABLE}


def is_hash(graph: Graph, *, seed: int = 0, table_size: int = 16) -> tuple[Any, Any]:
    """Propose vertices, reuse colors by hash tables, resolve conflicts: "is_hash" in `COLORINGS`.

    Osama et al., Section IV-B2, Algorithm 6.

    Parameters
    ----------
    graph : Graph
    seed : int
        Selects the random numbers, one per vertex; the vertex number decides between equal ones.
    table_size : int
        Prohibited colors that a vertex remembers, 1 to 63, in as many int32 per vertex. The more of them, the fewer
        conflicts and colors.

    Returns
    -------
    colors : array of int32, shape (n,)
        The same on every device and in every run. Not bounded by max_degree + 1; some numbers may have no vertex.
    log : array of int32, shape (rows, 2)
        Colored in a round are those proposed; see `Coloring.history`.
    """
    table_size = integer(table_size, "table_size", 1, LARGEST_TABLE)
    xp, n = graph.backend.xp, graph.n
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype)
    colors = xp.full((3, n), UNCOLORED, np.int32)
    tables = xp.full(table_size * n, EMPTY, np.int32)
    scratch, log = xp.zeros(8, np.int32), new_log(graph)
    run.color_by_operators(n, graph.indptr, graph.indices, seed & 0xFFFFFFFF, table_size, colors, tables, scratch, log)
    return colors[2], log


@compile_row
def number_of(v, seed):
    """The random number of a vertex and, below it, the vertex itself: no two are equal."""
    return mix(v, seed) << 31 | v


@compile_row
def prohibit(tables, v, color):
    """Enter a color into the table of v, unless it is there already or the table is full."""
    for j in range(tables.shape[1]):
        if tables[v, j] == color or tables[v, j] == NO_REUSE:
            return
        if tables[v, j] == EMPTY:
            tables[v, j] = color
            return


@compile_row
def color_of(proposal, new, tables, v):
    """The smallest color of an earlier round that the table of v does not prohibit, or else the new one proposed."""
    if tables[v, 0] == NO_REUSE:
        return proposal
    prohibited = 0  # bit c: color c is; a color below the size of a table + 1 is not
    for j in range(tables.shape[1]):
        if EMPTY < tables[v, j] <= LARGEST_TABLE:
            prohibited |= 1 << tables[v, j]
    c = 0
    while (prohibited >> c) & 1:
        c += 1
    return c if c < new else proposal


@compile_row
def hash_color(v, new, indptr, indices, seed, C, proposed, tables):
    """HASHCOLOROP on a vertex without a color."""
    largest = smallest = np.int64(v)
    for k in range(indptr[v], indptr[v + 1]):
        u = np.int64(indices[k])
        if C[u] == UNCOLORED:
            if number_of(u, seed) > number_of(largest, seed):
                largest = u
            if number_of(u, seed) < number_of(smallest, seed):
                smallest = u
    proposed[largest] = max(proposed[largest], color_of(new, new, tables, largest))
    proposed[smallest] = max(proposed[smallest], color_of(new + 1, new, tables, smallest))


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


@KERNELS.resident
def color_by_operators(n, indptr, indices, seed, table_size, colors, tables, scratch, log):
    """All rounds; the new colors of a round are new and new + 1. The last row gets the colors."""
    own = tables.reshape((n, table_size))
    C, proposed, after = colors[0], colors[1], colors[2]
    left, new = np.arange(n), np.int64(0)
    while len(left):
        proposed[:] = UNCOLORED
        for v in left:
            hash_color(v, new, indptr, indices, seed, C, proposed, own)
        lost = 0
        for v in left:  # conflict resolution
            if proposed[v] != UNCOLORED and loses(v, indptr, indices, seed, C, proposed, own):
                lost += 1
            else:
                after[v] = proposed[v]
        before, left = len(left), left[after[left] == UNCOLORED]
        for v in left:  # hash generation
            for k in range(indptr[v], indptr[v + 1]):
                if C[indices[k]] == UNCOLORED and after[indices[k]] != UNCOLORED:
                    prohibit(own, v, after[indices[k]])
        for v in range(len(C)):
            C[v] = after[v]
        log_round(log, before - len(left) + lost, lost)
        new += 2
