"""The hash coloring of Gunrock: Osama et al., "Graph Coloring on the GPU", Section IV-B2, Algorithm 6.

Every uncolored vertex proposes two of its closed neighborhood for coloring: the uncolored ones of largest and of
smallest random number. Those proposed need not be independent, but they are more than the local maxima and minima. Each
of them takes a color of an earlier round that its hash table does not prohibit, or else a new one. The table of a
vertex holds the first `table_size` colors that it saw at its neighbors, perhaps not all. Conflicts are resolved in the
end: they come from neighbors colored at the same time and from colors that a full table lacks.

Points beyond the paper, which make the result reproducible and the rounds end: who is proposed picks its color itself,
once all proposals are known, as a minimum if it is proposed for both roles. Of two neighbors in conflict, the one
colored in an earlier round or else the one of larger random number keeps its color. A vertex that lost to a color its
table lacks takes new colors from then on. So the vertex of largest random number among the uncolored is colored after
two rounds at the latest.

`published=True` has the paper's three operators with barriers between them (`hash_operators.py`). The result is the
same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_loop, compile_row
from mcprecond.backends.arguments import flag, integer
from mcprecond.backends.atomics import atomic_max
from mcprecond.coloring.graph import UNCOLORED, Graph
from mcprecond.coloring.history import log_round, new_log
from mcprecond.coloring.published.hash_operators import color_published
from mcprecond.coloring.published.hash_tables import EMPTY, LARGEST_TABLE, NO_REUSE, color_of, number_of, prohibit

KERNELS = KernelSet(__file__, "OFFSET")


def is_hash(graph: Graph, *, seed: int = 0, table_size: int = 16, published: bool = False) -> tuple[Any, Any]:
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
    published : bool
        Go through all vertices in every round, by the paper's operators: one proposes and colors, one resolves
        conflicts, one enters colors into the tables. The result is the same.

    Returns
    -------
    colors : array of int32, shape (n,)
        The same on every device and in every run. Not bounded by max_degree + 1; some numbers may have no vertex.
    log : array of int32, shape (rows, 2)
        Colored in a round are those proposed; see `Coloring.history`.
    """
    table_size = integer(table_size, "table_size", 1, LARGEST_TABLE)
    if flag(published, "published"):
        return color_published(graph, seed, table_size)
    xp, n = graph.backend.xp, graph.n
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype)
    colors, proposals = xp.full(n, UNCOLORED, np.int32), xp.full(n, UNCOLORED, np.int32)
    tables = xp.full(int(table_size) * n, EMPTY, np.int32)
    worklists = xp.empty((2, n), np.int32)
    scratch, log = xp.zeros(4, np.int32), new_log(graph)
    run.color_by_proposals(
        n,
        graph.indptr,
        graph.indices,
        seed & 0xFFFFFFFF,
        int(table_size),
        colors,
        proposals,
        tables,
        worklists,
        scratch,
        log,
    )
    return colors, log


@compile_row
def raise_to(proposals, v, value):
    """Make value the proposal for v, unless there is a larger one; many vertices propose the same."""
    if proposals[v] < value:
        atomic_max(proposals, v, np.int32(value))


@compile_row
def generate_and_propose(v, new, indptr, indices, seed, colors, proposals, tables):
    """Enter the neighbors colored in the last round into the table of v; propose two of its closed neighborhood.

    A proposal is the new color that goes with the role: `new` for a maximum, new + 1 for a minimum.
    """
    largest = smallest = v
    for k in range(indptr[v], indptr[v + 1]):
        u = np.int64(indices[k])
        if colors[u] == UNCOLORED:
            if number_of(u, seed) > number_of(largest, seed):
                largest = u
            if number_of(u, seed) < number_of(smallest, seed):
                smallest = u
        elif proposals[u] >= new - 2:
            prohibit(tables, v, colors[u])
    raise_to(proposals, largest, new)
    raise_to(proposals, smallest, new + 1)


@compile_row
def loses(v, new, indptr, indices, seed, colors, proposals, tables):
    """Whether v has to give up the color it got in this round."""
    lost = False
    for k in range(indptr[v], indptr[v + 1]):
        u = indices[k]
        if u != v and colors[u] == colors[v]:
            if proposals[u] < new:  # u has been colored before
                tables[v, 0] = NO_REUSE
                return True
            lost |= number_of(u, seed) > number_of(v, seed)
    return lost


@compile_loop
def propose(first, end, left, new, indptr, indices, seed, colors, proposals, tables):
    """The hash generation operator and lines 8-18 of HASHCOLOROP."""
    for i in range(first, end):
        v = left[i]
        generate_and_propose(v, new, indptr, indices, seed, colors, proposals, tables)


@compile_loop
def color_proposed(first, end, left, new, colors, proposals, tables):
    """Lines 19-29 of HASHCOLOROP, by those proposed themselves."""
    for i in range(first, end):
        v = left[i]
        if proposals[v] >= new:
            colors[v] = color_of(proposals[v], new, tables, v)


@compile_loop
def resolve(first, end, left, new, indptr, indices, seed, colors, proposals, tables, stays):
    """The conflict resolution operator: marks the vertices that are without a color in the end."""
    for i in range(first, end):
        v = left[i]
        stays[i] = proposals[v] < new or loses(v, new, indptr, indices, seed, colors, proposals, tables)


@KERNELS.resident
def color_by_proposals(n, indptr, indices, seed, table_size, colors, proposals, tables, worklists, scratch, log):
    """All rounds; the uncolored vertices are kept in a worklist. The new colors of a round are new and new + 1."""
    own = tables.reshape((n, table_size))
    left = np.arange(n)
    new = np.int64(0)  # a literal would have all callees compiled twice
    while len(left):
        propose(0, len(left), left, new, indptr, indices, seed, colors, proposals, own)
        color_proposed(0, len(left), left, new, colors, proposals, own)
        before, proposed = len(left), np.sum(proposals[left] >= new)
        stays = np.zeros(len(left), np.bool_)
        resolve(0, len(left), left, new, indptr, indices, seed, colors, proposals, own, stays)
        left = left[stays]
        colors[left] = UNCOLORED  # only now: all conflicts are judged by the same colors
        log_round(log, proposed, proposed - (before - len(left)))
        new += 2
