"""The speculative colorings of Chen et al. (IPDPS Workshops 2016), as Alabandi et al. (2020, Section 4) describe them.

All vertices are colored in parallel with the first permissible color; of neighbors in conflict the one of highest
degree preserves its color, and the others are uncolored for the next round. Forbidden colors are bits of one word, and
a vertex is worked on by a thread, a warp or a block, depending on the length of its row (Merrill's balancing).

The three versions differ in how a round finds its vertices:

- topology-driven: every round visits all vertices;
- data-driven: two worklists hold the vertices to be processed, in turn. *wlc* fills them by atomic counters; *pq*
  keeps them in order of priority.

Three points beyond what that description says. Of neighbors of equal degree, the larger index preserves its color. The
word of 64 bits moves on to the next 64 colors where all are taken, so there is no largest number of colors to be set,
which Sistla and Nandivada (Section 6.1) report as what keeps the original from terminating. And of *Data-pq* only the
name and its results are given, fewer colors than *Data-wlc* in less time: here it is a queue of the vertices in order
of degree, largest first, whose order a prefix sum preserves from round to round.

On a CPU one thread colors, which leaves no vertex in conflict.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet
from mcprecond.coloring.graph import Graph
from mcprecond.coloring.history import new_log
from mcprecond.coloring.orders import sequence_of
from mcprecond.coloring.published.speculation import color_alone

KERNELS = KernelSet(__file__, "OFFSET")


def chen_topo(graph: Graph, *, seed: int = 0) -> tuple[Any, Any]:
    """Color by the topology-driven version: every round visits all vertices.

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
        See `Coloring.history`.
    """
    xp, n = graph.backend.xp, graph.n
    C, settled = xp.empty(n, np.int32), xp.zeros(n, np.int32)
    scratch, log = xp.zeros(8, np.int32), new_log(graph)
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype)
    run.color_by_topology(n, graph.indptr, graph.indices, graph.degrees, C, settled, scratch, log)
    return C, log


def chen_wlc(graph: Graph, *, seed: int = 0) -> tuple[Any, Any]:
    """Color by the data-driven version with atomically filled worklists.

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
        See `Coloring.history`.
    """
    return data_driven(graph, "natural", in_order=False)


def chen_pq(graph: Graph, *, seed: int = 0) -> tuple[Any, Any]:
    """Color by the data-driven version with a queue in order of degree, largest first.

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
        See `Coloring.history`.
    """
    return data_driven(graph, "ldf", in_order=True)


def data_driven(graph: Graph, order: str, in_order: bool) -> tuple[Any, Any]:
    """Run a data-driven version whose first worklist is in the given order."""
    xp, n = graph.backend.xp, graph.n
    C, scratch, log = xp.empty(n, np.int32), xp.zeros(8, np.int32), new_log(graph)
    worklists, marks = xp.empty((2, n), np.int32), xp.empty((2, n if in_order else 0), np.int32)
    worklists[0] = sequence_of(graph, order, 0)
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype)
    run.color_by_worklist(
        n, graph.indptr, graph.indices, graph.degrees, C, worklists, int(in_order), marks, scratch, log
    )
    return C, log


@KERNELS.resident
def color_by_topology(n, indptr, indices, degrees, C, settled, scratch, log):
    """A round over all vertices."""
    color_alone(indptr, indices, np.arange(n), C, log)


@KERNELS.resident
def color_by_worklist(n, indptr, indices, degrees, C, worklists, in_order, marks, scratch, log):
    """A round over the first worklist."""
    color_alone(indptr, indices, worklists[0], C, log)
