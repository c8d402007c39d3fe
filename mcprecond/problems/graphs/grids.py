"""Grids with a constant stencil, x fastest; their diagonal is stored."""

from __future__ import annotations

import itertools
import math

import numpy as np
import scipy.sparse as sp

from mcprecond.backends import compile_loop, compile_row, offset_type
from mcprecond.backends.arguments import integer, one_of
from mcprecond.problems.graphs.simple import matrix_of, offsets_of, size_of

#: Of the 27 nodes around a node, itself in the middle, numbered x + 3 y + 9 z: a bit for every one that is a neighbor.
ALL_AROUND = 2**27 - 1
ALONG_AXES = sum(1 << p for p in (4, 10, 12, 13, 14, 16, 22))
#: Edges of the six tetrahedra around the diagonal of each cube (Kuhn): no step forward goes with one backward.
TETRAHEDRA = sum(
    1 << p for p, step in enumerate(itertools.product((-1, 0, 1), repeat=3)) if min(step) >= 0 or max(step) <= 0
)


def fenl(n: int) -> sp.csr_matrix:
    """Return the pattern of `mcprecond.problems.fenl`: n x n x n trilinear hexahedra, 27 points.

    Node (x, y, z) has the number x + (n + 1) (y + (n + 1) z); two nodes are neighbors if all three of their coordinates
    differ by at most one. Eight colors are needed, and enough.

    Parameters
    ----------
    n : int
        Elements along an edge.

    Returns
    -------
    csr_matrix, shape ((n + 1)^3, (n + 1)^3)
        (3 n + 1)^3 ones, those on the diagonal included.

    Raises
    ------
    TypeError, ValueError
        If n is not a positive integer.

    References
    ----------
    Deveci, Boman, Devine, Rajamanickam: Parallel Graph Coloring for Manycore Architectures, IPDPS 2016.

    Examples
    --------
    >>> from mcprecond.problems import graphs
    >>> graphs.fenl(4).shape, graphs.fenl(4).nnz
    ((125, 125), 2197)
    """
    m = size_of(n, "n", 1, 3) + 1
    return stencil((m, m, m), ALL_AROUND, 1.0, 1.0)


def grid2d(n: int, points: int = 5) -> sp.csr_matrix:
    """Return the Laplacian of an n x n grid, x fastest, with Dirichlet conditions all around.

    -1 for each neighbor and points - 1 on the diagonal of every row, though nodes at the boundary have fewer neighbors:
    positive definite. With 5 points, neighbors are a step along an axis away (2 colors); with 9, also one diagonally
    (4 colors, and not the Mehrstellen weights).

    Parameters
    ----------
    n : int
        Nodes along an edge.
    points : {5, 9}
        Of the stencil.

    Returns
    -------
    csr_matrix, shape (n^2, n^2)
        5 n^2 - 4 n or (3 n - 2)^2 entries.

    Raises
    ------
    TypeError, ValueError
        If n is not a positive integer, or points is another number.

    Examples
    --------
    >>> from mcprecond.problems import graphs
    >>> print(graphs.grid2d(2).toarray())
    [[ 4. -1. -1.  0.]
     [-1.  4.  0. -1.]
     [-1.  0.  4. -1.]
     [ 0. -1. -1.  4.]]
    """
    n = size_of(n, "n", 1, 2)
    return stencil((n, n, 1), neighbors_by(points, 5, 9), points - 1.0, -1.0)


def grid3d(n: int, points: int = 7) -> sp.csr_matrix:
    """Return the Laplacian of an n x n x n grid, x fastest, then y, with Dirichlet conditions all around.

    -1 for each neighbor and points - 1 on the diagonal of every row, though nodes at the boundary have fewer neighbors:
    positive definite. With 7 points, neighbors are a step along an axis away (2 colors); with 27, all nodes around (8).

    Parameters
    ----------
    n : int
        Nodes along an edge.
    points : {7, 27}
        Of the stencil.

    Returns
    -------
    csr_matrix, shape (n^3, n^3)
        7 n^3 - 6 n^2 or (3 n - 2)^3 entries.

    Raises
    ------
    TypeError, ValueError
        If n is not a positive integer, or points is another number.
    """
    n = size_of(n, "n", 1, 3)
    return stencil((n, n, n), neighbors_by(points, 7, 27), points - 1.0, -1.0)


def elasticity_pattern(n: int, elements: str = "hexahedra") -> sp.csr_matrix:
    """Return the pattern of linear elasticity on n x n x n nodes: three unknowns per node.

    The pattern only: all entries are one. It is the Kronecker product of a stencil and a full 3 x 3 block, as assembled
    codes keep it, also where an isotropic material on a uniform mesh makes some of them zero. With trilinear hexahedra
    the stencil has 27 points, and rows of nodes inside have 81 entries: 24 colors are needed, and enough. With linear
    tetrahedra, six to a cube, it has 15 points, and rows have 45 entries: 12 colors. Component c of node v is unknown
    3 v + c; nodes are numbered x fastest, then y.

    Parameters
    ----------
    n : int
        Nodes along an edge.
    elements : {"hexahedra", "tetrahedra"}

    Returns
    -------
    csr_matrix, shape (3 n^3, 3 n^3)
        Ones, those on the diagonal included: 9 (3 n - 2)^3 of them with hexahedra.

    Raises
    ------
    TypeError, ValueError
        If n is not a positive integer, or elements is something else.
    """
    n = size_of(n, "n", 1, 3)
    nodes = stencil((n, n, n), neighbors_of(elements), 1.0, 1.0)
    size, nnz = 3 * n**3, 9 * nodes.nnz
    dtype = offset_type(max(size, nnz))
    indptr: np.ndarray = np.zeros(size + 1, dtype)
    np.cumsum(np.repeat(3 * np.diff(nodes.indptr), 3), out=indptr[1:])
    indices = np.empty(nnz, dtype)
    _expand_blocks(0, size, nodes.indptr, nodes.indices, indptr, indices)
    return matrix_of(np.ones(nnz), indices, indptr)


def neighbors_by(points: int, few: int, many: int) -> int:
    """The neighbors of a stencil with so many points, one of two numbers."""
    points = integer(points, "points")
    if points not in (few, many):
        raise ValueError(f"points must be {few} or {many}, got {points}")
    return ALL_AROUND if points == many else ALONG_AXES


def neighbors_of(elements: str) -> int:
    """The neighbors of a node in a mesh of such elements."""
    return ALL_AROUND if one_of(elements, "elements", ("hexahedra", "tetrahedra")) == "hexahedra" else TETRAHEDRA


def stencil(shape: tuple[int, int, int], neighbors: int, diagonal: float, other: float) -> sp.csr_matrix:
    """A grid with constant coefficients and these of the 27 neighbors."""
    nodes = math.prod(shape)
    counts = np.empty(nodes, np.int64)
    _count_stencil(0, nodes, *shape, neighbors, counts)
    indptr = offsets_of(counts, nodes)
    indices, values = np.empty(int(indptr[-1]), indptr.dtype), np.empty(int(indptr[-1]))
    _fill_stencil(0, nodes, *shape, neighbors, diagonal, other, indptr, indices, values)
    return matrix_of(values, indices, indptr)


@compile_row
def in_stencil(p, x, y, z, mx, my, mz, neighbors):
    """Whether the p-th of the 27 nodes around node (x, y, z), itself included, exists and is a neighbor of it."""
    px, py, pz = x + p % 3 - 1, y + p // 3 % 3 - 1, z + p // 9 - 1
    return neighbors >> p & 1 and 0 <= px < mx and 0 <= py < my and 0 <= pz < mz


@compile_loop
def _count_stencil(first, end, mx, my, mz, neighbors, counts):
    for v in range(first, end):
        x, y, z = v % mx, v // mx % my, v // (mx * my)
        count = 0
        for p in range(27):
            if in_stencil(p, x, y, z, mx, my, mz, neighbors):
                count += 1
        counts[v] = count


@compile_loop
def _fill_stencil(first, end, mx, my, mz, neighbors, diagonal, other, indptr, indices, values):
    for v in range(first, end):
        x, y, z = v % mx, v // mx % my, v // (mx * my)
        place = indptr[v]
        for p in range(27):
            if in_stencil(p, x, y, z, mx, my, mz, neighbors):
                indices[place] = x + p % 3 - 1 + mx * (y + p // 3 % 3 - 1 + my * (z + p // 9 - 1))
                values[place] = diagonal if p == 13 else other
                place += 1


@compile_loop
def _expand_blocks(first, end, node_indptr, node_indices, indptr, indices):
    for row in range(first, end):
        place = indptr[row]
        for k in range(node_indptr[row // 3], node_indptr[row // 3 + 1]):
            for component in range(3):
                indices[place] = 3 * node_indices[k] + component
                place += 1
