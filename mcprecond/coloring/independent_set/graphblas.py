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
from numba import prange

from mcprecond.backends import KernelSet, compile_part
from mcprecond.backends.arguments import one_of
from mcprecond.backends.hashing import mix
from mcprecond.coloring.graph import Graph
from mcprecond.coloring.history import log_of

KERNELS = KernelSet(__file__)
ENGINES = ("kernels", "suitesparse")

MAX_TIMES, BOOLEAN = 0, 1  # semirings; mirrored in graphblas.cu


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
        ``mcprecond[graphblas]``. The colors are the same.

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
    from mcprecond.coloring.independent_set.suitesparse import SuiteSparseEngine

    return SuiteSparseEngine(graph)


class KernelEngine:
    """Operations of GraphBLAS on arrays of NumPy or CuPy, int64 or bool; products by the kernel `vxm`."""

    def __init__(self, graph: Graph):
        self.graph = graph
        lanes = 8 if graph.indices.size > 8 * graph.n else 2  # threads that share a row on the GPU
        self.kernels = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype, LANES=lanes)

    def zeros(self, dtype: Any) -> Any:
        """A vector of zeros."""
        return self.graph.backend.xp.zeros(self.graph.n, dtype)

    def random(self, seed: int) -> Any:
        """Distinct positive weights: GrB_apply of set_random()."""
        weight = self.graph.backend.xp.empty(self.graph.n, np.int64)
        self.kernels.set_random(self.graph.n, seed & 0xFFFFFFFF, weight)
        return weight

    def copy(self, x: Any) -> Any:
        """GrB_Vector_dup."""
        return x.copy()

    def vxm(self, x: Any, semiring: int, mask: Any) -> Any:
        """GrB_vxm where the mask is not zero; elsewhere the result is zero."""
        y = self.graph.backend.xp.empty_like(x)
        self.kernels.vxm(self.graph.n, self.graph.indptr, self.graph.indices, semiring, x, mask, y)
        return y

    def greater(self, x: Any, y: Any) -> Any:
        """GrB_eWiseAdd with GT."""
        return x > y

    def multiply(self, x: Any, y: Any) -> Any:
        """GrB_eWiseMult with TIMES."""
        return x * y

    def assign(self, x: Any, mask: Any, value: int) -> None:
        """GrB_assign of a scalar, in place, where the mask is true."""
        self.graph.backend.xp.copyto(x, value, where=mask)  # unlike x[mask] = value, it does not count the mask first

    def count(self, x: Any) -> int:
        """GrB_reduce of a Boolean vector with PLUS."""
        return int(x.sum())

    def scatter(self, x: Any, size: int) -> Any:
        """GxB_scatter: a Boolean vector of `size` that is true at the entries of x, and at 0."""
        flags = self.graph.backend.xp.zeros(size, np.bool_)
        flags[x] = flags[0] = True
        return flags

    def first_zero(self, x: Any) -> int:
        """GrB_eWiseMult with an ascending vector and GrB_reduce with MIN: the first position that is false."""
        return int(x.argmin())

    def colors(self, C: Any) -> Any:
        """The colors 1, 2, ... of a finished coloring as an array, from 0."""
        return (C - 1).astype(np.int32)


@compile_part
def add(semiring, a, b):
    """The semiring's addition. Its multiplication has nothing to do, since the entries of A are one."""
    return max(a, b) if semiring == MAX_TIMES else a | b


@KERNELS.twin
def set_random(n, seed, weight):
    """The hash of a vertex and, below it, the vertex itself, from 1."""
    for v in prange(n):
        weight[v] = mix(v, seed) << 31 | (v + 1)


@KERNELS.twin
def vxm(n, indptr, indices, semiring, x, mask, y):
    """y = x A where the mask is not zero, and zero elsewhere; A is symmetric and without its diagonal."""
    for v in prange(n):
        total = np.int64(0)
        if mask[v]:
            for k in range(indptr[v], indptr[v + 1]):
                if indices[k] != v:
                    total = add(semiring, total, np.int64(x[indices[k]]))
        y[v] = total
