"""The GraphBLAS colorings of Osama, Truong, Yang, Buluç and Owens: "Graph Coloring on the GPU", Section IV-A.

Vectors have one entry per vertex, and 0 stands for none. A product with the adjacency matrix, all of whose entries are
one, tells each vertex about its neighbors: over the semiring (max, ×) the largest of their weights, over the Boolean
semiring (or, and) whether one of them is in a set. A mask says who wants to know. The three methods below are the
paper's listings, from the same few operations; an *engine* carries these out.

Where the listings leave room: weights are distinct, so that the local maxima of any uncolored set are not empty; the
inner loop of the maximal independent sets works on a copy of the weights; and all products are masked, by the vertices
that can still change.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends.arguments import one_of
from mcprecond.coloring.graph import Graph
from mcprecond.coloring.history import log_of
from mcprecond.coloring.published.semirings import BOOLEAN, MAX_TIMES, KernelEngine

ENGINES = ("kernels", "suitesparse")


def graphblas_is(graph: Graph, *, seed: int = 0, engine: str = "kernels") -> tuple[Any, Any]:
    """Color one independent set per round, found by a product over (max, ×): "graphblas_is" in `COLORINGS`.

    Osama et al., Section IV-A1, Algorithm 2.

    Parameters
    ----------
    graph : Graph
    seed : int
        Selects the weights, one per vertex; the vertex number decides between equal ones.
    engine : {"kernels", "suitesparse"}
        Who multiplies: this package's kernels, on the CPU or a GPU, or SuiteSparse:GraphBLAS on the CPU, from the extra
        the extra ``graphblas``. The colors are the same.

    Returns
    -------
    colors : array of int32, shape (n,)
        The same on every device and in every run, and those of `jpl`. Not bounded by max_degree + 1.
    log : array of int32, shape (rows, 2)
        As many rounds as colors; see `Coloring.history`.

    Raises
    ------
    ImportError
        If the engine is not installed.
    ValueError
        If the engine is unknown, or cannot work on the graph's device.

    Examples
    --------
    >>> import scipy.sparse
    >>> from mcprecond import color
    >>> A = scipy.sparse.diags_array([1.0, 2.0, 1.0], offsets=[-1, 0, 1], shape=(20, 20), format="csr")
    >>> color(A, "graphblas_is").n_colors, color(A, "graphblas_mis").n_colors
    (4, 3)
    """
    G = engine_for(graph, engine)
    C, weight = G.zeros(np.int64), G.random(seed)
    colored = []
    for color in range(1, graph.n + 1):
        frontier, succ = local_maxima(G, weight)
        if succ == 0:
            break
        G.assign(C, frontier, color)
        G.assign(weight, frontier, 0)
        colored.append(succ)
    return G.colors(C), log_of(colored, graph.backend)


def graphblas_mis(graph: Graph, *, seed: int = 0, engine: str = "kernels") -> tuple[Any, Any]:
    """Color one maximal independent set after the other: "graphblas_mis" in `COLORINGS`.

    Osama et al., Section IV-A2, Algorithm 2 with 3. More rounds than `graphblas_is`, far fewer colors.

    Parameters
    ----------
    graph : Graph
    seed : int
    engine : {"kernels", "suitesparse"}
        As in `graphblas_is`, and so is what is raised.

    Returns
    -------
    colors : array of int32, shape (n,)
        At most max_degree + 1 of them, the same on every device and in every run: those of first-fit by falling weight.
    log : array of int32, shape (rows, 2)
        A round is a step in which a set grew. See `Coloring.history`.
    """
    G = engine_for(graph, engine)
    C, weight = G.zeros(np.int64), G.random(seed)
    colored = []
    for color in range(1, graph.n + 1):
        mis, grown = maximal_independent_set(G, weight)
        if not grown:
            break
        G.assign(C, mis, color)
        G.assign(weight, mis, 0)
        colored += grown
    return G.colors(C), log_of(colored, graph.backend)


def graphblas_jp(graph: Graph, *, seed: int = 0, engine: str = "kernels") -> tuple[Any, Any]:
    """Color one independent set per round with the smallest color free around it: "graphblas_jp" in `COLORINGS`.

    Osama et al., Section IV-A3, Algorithm 2 with 4. The whole set gets one color, which no neighbor of the set has.

    Parameters
    ----------
    graph : Graph
    seed : int
    engine : {"kernels", "suitesparse"}
        As in `graphblas_is`, and so is what is raised.

    Returns
    -------
    colors : array of int32, shape (n,)
        The same on every device and in every run. Not bounded by max_degree + 1, but no more than those of `jpl`.
    log : array of int32, shape (rows, 2)
        That of `graphblas_is`.
    """
    G = engine_for(graph, engine)
    C, weight = G.zeros(np.int64), G.random(seed)
    most, colored = 0, []
    while True:
        frontier, succ = local_maxima(G, weight)
        if succ == 0:
            break
        color = min_color(G, C, frontier, most + 2)
        G.assign(C, frontier, color)
        G.assign(weight, frontier, 0)
        most = max(most, color)
        colored.append(succ)
    return G.colors(C), log_of(colored, graph.backend)


def local_maxima(G: Any, weight: Any) -> tuple[Any, int]:
    """Algorithm 2, lines 8-15: the vertices that outweigh all neighbors, and how many they are."""
    largest = G.vxm(weight, MAX_TIMES, mask=weight)
    frontier = G.greater(weight, largest)
    return frontier, G.count(frontier)


def maximal_independent_set(G: Any, weight: Any) -> tuple[Any, list[int]]:
    """Algorithm 3: a maximal independent set of the vertices with a weight, and by how many it grew in each step."""
    mis, candidates = G.zeros(np.bool_), G.copy(weight)
    grown: list[int] = []
    while True:
        frontier, succ = local_maxima(G, candidates)
        if succ == 0:
            return mis, grown
        G.assign(mis, frontier, True)
        G.assign(candidates, frontier, 0)
        neighbors = G.vxm(frontier, BOOLEAN, mask=candidates)
        G.assign(candidates, neighbors, 0)
        grown.append(succ)


def min_color(G: Any, C: Any, frontier: Any, max_colors: int) -> int:
    """Algorithm 4: the smallest color from 1 to max_colors - 1 that no neighbor of the frontier has; there is one."""
    neighbors = G.vxm(frontier, BOOLEAN, mask=C)
    taken = G.scatter(G.multiply(neighbors, C), max_colors)
    return G.first_zero(taken)


def engine_for(graph: Graph, engine: str) -> Any:
    """Return the engine of that name, with the adjacency matrix of the graph."""
    if one_of(engine, "engine", ENGINES) == "kernels":
        return KernelEngine(graph)
    from mcprecond.coloring.published.suitesparse import SuiteSparseEngine

    return SuiteSparseEngine(graph)
