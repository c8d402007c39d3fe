"""Families of graphs to color and to sweep over, from a seed, as symmetric matrices.

Every function returns a scipy.sparse.csr_matrix of float64 with sorted column indices, none twice, of int32 where they
fit. Grids (`fenl`, `grid2d`, `grid3d`, `elasticity_pattern`) store their diagonal; the others are adjacency matrices of
simple graphs: ones, and nothing on the diagonal. The same arguments give the same matrix, on any number of threads.

>>> from mcprecond.problems import graphs
>>> A = graphs.rmat(10, seed=1)
>>> A.shape, bool((A != A.T).nnz)
((1024, 1024), False)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from mcprecond.backends import compile_loop, compile_part
from mcprecond.backends.arguments import integer, one_of, real, shown
from mcprecond.backends.atomics import atomic_add
from mcprecond.problems.triangulation import delaunay_triangles

__all__ = [
    "delaunay",
    "elasticity_pattern",
    "fenl",
    "grid2d",
    "grid3d",
    "mycielskian",
    "random_geometric",
    "random_points",
    "random_regular",
    "rmat",
    "road_like",
]

#: From so many vertices or entries on, indices are int64.
INT32_LIMIT = 2**31

#: Of the 27 nodes around a node, itself in the middle, numbered x + 3 y + 9 z: a bit for every one that is a neighbor.
ALL_AROUND = 2**27 - 1
ALONG_AXES = sum(1 << p for p in (4, 10, 12, 13, 14, 16, 22))
#: Edges of the six tetrahedra around the diagonal of each cube (Kuhn): no step forward goes with one backward.
TETRAHEDRA = sum(
    1 << p for p, step in enumerate(itertools.product((-1, 0, 1), repeat=3)) if min(step) >= 0 or max(step) <= 0
)

#: Rows are dealt out to so many parts, row v to part v % PARTS: R-MAT graphs have their long rows at the low numbers
#: and, as they look alike at every scale, at regular distances. A prime evens that out.
PARTS = 1021


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
    >>> graphs.fenl(4).nnz == 13**3
    True
    """
    m = size_of(n, "n", 1, 3) + 1
    return _stencil((m, m, m), ALL_AROUND, 1.0, 1.0)


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
    return _stencil((n, n, 1), _neighbors_by(points, 5, 9), points - 1.0, -1.0)


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
    return _stencil((n, n, n), _neighbors_by(points, 7, 27), points - 1.0, -1.0)


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
    nodes = _stencil((n, n, n), _neighbors_of(elements), 1.0, 1.0)
    size, nnz = 3 * n**3, 9 * nodes.nnz
    dtype = _index_type(size, nnz)
    indptr: np.ndarray = np.zeros(size + 1, dtype)
    np.cumsum(np.repeat(3 * np.diff(nodes.indptr), 3), out=indptr[1:])
    indices = np.empty(nnz, dtype)
    _expand_blocks(0, size, nodes.indptr, nodes.indices, indptr, indices)
    return _matrix(np.ones(nnz), indices, indptr)


def rmat(
    scale: int,
    edges: int | None = None,
    seed: int = 0,
    probabilities: Sequence[float] = (0.57, 0.19, 0.19, 0.05),
) -> sp.csr_matrix:
    """Return a recursive-matrix (R-MAT) graph on 2^scale vertices: a few vertices of very high degree, many of none.

    Each edge falls into one quarter of the adjacency matrix at random, into one quarter of that, and so on, down to a
    single entry. The edges are made undirected; loops are dropped and repeated edges kept once, so that there are fewer
    than drawn. Vertices are not renumbered: the low numbers have the high degrees. The random bits are a hash of the
    seed, the edge and the level (SplitMix64), 32 bits a level.

    Parameters
    ----------
    scale : int
        log2 of the number of vertices, 1 to 30.
    edges : int, optional
        How many to draw; by default 8 per vertex.
    seed : int
    probabilities : four floats
        Of the quarters (0, 0), (0, 1), (1, 0) and (1, 1). By default those of Graph500.

    Returns
    -------
    csr_matrix, shape (2^scale, 2^scale)
        At most 2 edges ones.

    Raises
    ------
    TypeError, ValueError
        If scale, edges or seed is out of range, or the probabilities are not four that add up to one.

    References
    ----------
    Chakrabarti, Zhan, Faloutsos: R-MAT: A Recursive Model for Graph Mining, SDM 2004.

    Examples
    --------
    >>> from mcprecond.problems import graphs
    >>> A = graphs.rmat(12)
    >>> bool(A.getnnz(axis=1).max() > 20 * A.nnz / A.shape[0])
    True
    """
    scale = integer(scale, "scale", 1, 30)
    count = 8 * 2**scale if edges is None else size_of(edges, "edges", 0)
    try:
        p = np.asarray(probabilities, np.float64)
    except (TypeError, ValueError):
        p = np.array(np.nan)
    if p.shape != (4,) or not (p >= 0).all() or not math.isclose(p.sum(), 1, abs_tol=1e-9):
        raise ValueError(f"probabilities must be four numbers >= 0 that add up to one, got {shown(probabilities)}")
    bounds = np.rint(np.cumsum(p)[:3] * 2.0**32).astype(np.uint64)
    rows, columns = np.empty(count, np.int32), np.empty(count, np.int32)
    _draw_edges(0, count, scale, _seed(seed), bounds, rows, columns)
    return _simple_graph(2**scale, rows, columns)


def random_points(n: int, cells: int, seed: int = 0) -> np.ndarray:
    """Return n uniformly random points of the unit square, sorted by the cells of a grid of cells x cells.

    Cells are ordered as a grid is numbered, x fastest; inside a cell the order is random. The number of cells changes
    the order, not the points.

    Parameters
    ----------
    n : int
    cells : int
        Along an edge.
    seed : int

    Returns
    -------
    numpy.ndarray, shape (n, 2)
        x and y.

    Raises
    ------
    TypeError, ValueError
        If n or cells is not a positive integer, or the seed is out of range.
    """
    n, cells = size_of(n, "n", 1), size_of(cells, "cells", 1, 2)
    points = np.random.default_rng(_seed(seed)).random((n, 2))
    return points[np.argsort(_cells_of(points, cells), kind="stable")]


def random_geometric(n: int, seed: int = 0, radius: float | None = None) -> sp.csr_matrix:
    """Return a random geometric graph: n random points of the unit square, neighbors if closer than the radius.

    The points are ``random_points(n, cells, seed)`` with cells = ⌊0.999 / radius⌋ but at least 1 and at most ⌈√n⌉:
    sorted by cells a little wider than the radius, row by row, so that neighbors have numbers close by. (The graphs
    rgg_n_2_* of DIMACS10 are of this kind; theirs are other points in another order.) The mean degree is about
    n π radius^2, less at the boundary: with the radius of DIMACS10 0.95 ln n, 13.2 on 2^20 points.

    Parameters
    ----------
    n : int
        Points.
    seed : int
    radius : float, optional
        By default 0.55 √(ln n / n).

    Returns
    -------
    csr_matrix, shape (n, n)

    Raises
    ------
    TypeError, ValueError
        If n is not a positive integer, the seed is out of range, or the radius is not positive and finite.

    References
    ----------
    Holtgrewe, Sanders, Schulz: Engineering a Scalable High Quality Graph Partitioner, IPDPS 2010.
    """
    n = size_of(n, "n", 1)
    if radius is None:
        radius = 0.55 * math.sqrt(math.log(max(n, 2)) / n)
    cells = geometric_cells(n, radius)
    points = random_points(n, cells, seed)
    first = np.searchsorted(_cells_of(points, cells), np.arange(cells * cells + 1))
    counts = np.empty(n, np.int64)
    _count_near(0, n, points, cells, first, float(radius) ** 2, counts)
    indptr = _offsets(counts, n)
    indices = np.empty(int(indptr[-1]), indptr.dtype)
    _fill_near(0, n, points, cells, first, float(radius) ** 2, indptr, indices)
    return _matrix(np.ones(len(indices)), indices, indptr)


def geometric_cells(n: int, radius: float) -> int:
    """Return how many cells along an edge `random_geometric` sorts its points into.

    Raises
    ------
    TypeError, ValueError
        If n is not a positive integer, or the radius is not positive and finite.
    """
    n, radius = size_of(n, "n", 1), real(radius, "radius")
    if radius <= 0:
        raise ValueError(f"radius must be positive, got {radius}")
    # A little wider than the radius, so that rounding cannot part two neighbors by a cell.
    return max(1, math.floor(min(0.999 / radius, math.ceil(math.sqrt(n)))))


def delaunay(n: int, seed: int = 0) -> sp.csr_matrix:
    """Return the graph of the Delaunay triangulation of n random points of the unit square.

    The points are ``random_points(n, ⌈√n⌉, seed)``: sorted by about n cells, row by row, so that neighbors have numbers
    close by. Planar, about 3 n edges: the mean degree is a little below 6. (The graphs delaunay_n* of DIMACS10 are of
    this kind; theirs are other points in another order.)

    Parameters
    ----------
    n : int
        Points, at least 3.
    seed : int

    Returns
    -------
    csr_matrix, shape (n, n)
        At most 6 n - 12 ones.

    Raises
    ------
    TypeError, ValueError
        If n is not an integer of at least 3, or the seed is out of range.
    """
    n = size_of(n, "n", 3)
    triangles = delaunay_triangles(random_points(n, math.ceil(math.sqrt(n)), seed))
    # Sides inside occur twice, those of the hull once.
    return _simple_graph(n, triangles.ravel(), np.roll(triangles, 1, axis=1).ravel())


def mycielskian(k: int) -> sp.csr_matrix:
    """Return the k-th Mycielski graph: without triangles (for k >= 3), yet it needs k colors.

    mycielskian(2) is an edge. From one graph A to the next: every vertex v gets a copy v + n with the neighbors of v,
    and one more vertex, the last, has all copies as neighbors::

        [ A  A  0 ]
        [ A  0  1 ]
        [ 0  1' 0 ]

    The third is a pentagon, the fourth the Grötzsch graph. The graphs mycielskian* of the SuiteSparse collection.

    Parameters
    ----------
    k : int
        The chromatic number, at least 2.

    Returns
    -------
    csr_matrix, shape (n, n)
        n = 3 · 2^(k-2) - 1, and 7 · 3^(k-2) + 1 - 3 · 2^(k-1) ones: two for each edge. The 15th has 24575 vertices and
        5555555 edges.

    Raises
    ------
    TypeError, ValueError
        If k is not an integer of at least 2.

    References
    ----------
    Mycielski: Sur le coloriage des graphes, Colloquium Mathematicum 3, 1955.

    Examples
    --------
    >>> from mcprecond.problems import graphs
    >>> A = graphs.mycielskian(3)
    >>> A.shape, A.nnz
    ((5, 5), 10)
    """
    k = integer(k, "k", 2, 31)
    n, rows, columns = 2, np.zeros(1, np.int32), np.ones(1, np.int32)
    for _ in range(k - 2):
        copies = np.arange(n, 2 * n, dtype=np.int32)
        rows, columns = (
            np.concatenate([rows, rows, rows + np.int32(n), copies]),
            np.concatenate([columns, columns + np.int32(n), columns, np.full(n, 2 * n, np.int32)]),
        )
        n = 2 * n + 1
    return _simple_graph(n, rows, columns)


def random_regular(n: int, degree: int, seed: int = 0) -> sp.csr_matrix:
    """Return a nearly regular random graph: the union of `degree` random perfect matchings.

    Pairs that occur in more than one matching are kept once, and where n is odd each matching leaves one vertex out: no
    vertex has more than `degree` neighbors, all but about degree^2 / 2 (n even) or degree^2 / 2 + degree (n odd) of
    them have as many. From degree 3 on such a graph is connected, and an expander, with high probability; with 2 it
    consists of cycles.

    Parameters
    ----------
    n : int
        Vertices.
    degree : int
        0 to n - 1.
    seed : int

    Returns
    -------
    csr_matrix, shape (n, n)
        At most n degree ones.

    Raises
    ------
    TypeError, ValueError
        If n is not a positive integer, degree is not in 0..n - 1, or the seed is out of range.

    References
    ----------
    Wormald: Models of Random Regular Graphs, Surveys in Combinatorics 1999.
    """
    n = size_of(n, "n", 1)
    degree = integer(degree, "degree", 0, n - 1)
    rng = np.random.default_rng(_seed(seed))
    vertices, half = np.arange(n, dtype=np.int32), n // 2
    rows, columns = np.empty((degree, half), np.int32), np.empty((degree, half), np.int32)
    for matching in range(degree):
        shuffled = rng.permutation(vertices)
        rows[matching], columns[matching] = shuffled[:half], shuffled[half : 2 * half]
    return _simple_graph(n, rows.ravel(), columns.ravel())


def road_like(n: int, seed: int = 0) -> sp.csr_matrix:
    """Return a graph that resembles a road network: planar, connected, mostly long chains of vertices of degree two.

    A stand-in for such graphs as europe_osm of DIMACS10 (50.9 M vertices, mean degree 2.12), with no geography in it.
    Of a grid of s x s junctions, s = ⌊√(n / 10)⌋ but at least 2, a random spanning tree is kept (each junction keeps a
    side to the junction before it in x or in y) and half of the other sides. The remaining n - s^2 vertices subdivide
    the sides that are left at random, about six a side. For large n the mean degree is 2.1; the largest is at most 4. A
    junction's number is followed by those of the chains that lead from it to junctions before it, so that most
    neighbors have consecutive numbers.

    Parameters
    ----------
    n : int
        Vertices, at least 4.
    seed : int

    Returns
    -------
    csr_matrix, shape (n, n)
        About 2.1 n ones.

    Raises
    ------
    TypeError, ValueError
        If n is not an integer of at least 4, or the seed is out of range.
    """
    n = size_of(n, "n", 4)
    rng = np.random.default_rng(_seed(seed))
    s = max(2, math.isqrt(n // 10))
    junctions = s * s
    y, x = np.divmod(np.arange(junctions), s)
    # Column 0: a side to the junction before in x; column 1: in y.
    exists = np.stack([x > 0, y > 0], axis=1)
    in_tree = rng.random(junctions) < 0.5
    kept = np.stack([in_tree, ~in_tree], axis=1)
    kept[y == 0] = True
    kept[x == 0] = True
    kept |= rng.random((junctions, 2)) < 0.5
    kept &= exists

    sides = int(kept.sum())
    cuts = np.sort(rng.integers(0, n - junctions, sides - 1, endpoint=True))
    lengths = np.zeros((junctions, 2), np.int64)
    lengths[kept] = np.diff(cuts, prepend=0, append=n - junctions)

    number = np.zeros(junctions, np.int64)
    np.cumsum(1 + lengths.sum(axis=1)[:-1], out=number[1:])
    last = number[:, None] + np.cumsum(lengths, axis=1)
    last[:, 1][lengths[:, 1] == 0] = number[lengths[:, 1] == 0]
    before = np.stack([np.roll(number, 1), np.roll(number, s)], axis=1)

    # Each vertex of a chain follows another, the first one the junction.
    chained = np.ones(n, bool)
    chained[number] = False
    previous = np.arange(-1, n - 1)
    second = lengths[:, 1] > 0
    previous[(number + lengths[:, 0] + 1)[second]] = number[second]
    rows = np.concatenate([np.flatnonzero(chained), last[kept]])
    columns = np.concatenate([previous[chained], before[kept]])
    return _simple_graph(n, rows, columns)


def size_of(value: int, name: str, least: int, dimensions: int = 1) -> int:
    """Return a number of nodes along an edge, or of vertices: of all together at most 2^40, which no memory holds."""
    return integer(value, name, least, round(2 ** (40 / dimensions)))


def _seed(seed: int) -> int:
    return integer(seed, "seed", 0, 2**63 - 1)


def _neighbors_by(points: int, few: int, many: int) -> int:
    points = integer(points, "points")
    if points not in (few, many):
        raise ValueError(f"points must be {few} or {many}, got {points}")
    return ALL_AROUND if points == many else ALONG_AXES


def _neighbors_of(elements: str) -> int:
    return ALL_AROUND if one_of(elements, "elements", ("hexahedra", "tetrahedra")) == "hexahedra" else TETRAHEDRA


def _index_type(n: int, nnz: int) -> type:
    # SciPy wants both arrays of one dtype, and copies them otherwise.
    return np.int32 if max(n, nnz) < INT32_LIMIT else np.int64


def _offsets(counts: np.ndarray, n: int) -> np.ndarray:
    """Row offsets from row lengths."""
    ends = np.cumsum(counts, dtype=np.int64)
    indptr: np.ndarray = np.zeros(n + 1, _index_type(n, int(ends[-1])))
    indptr[1:] = ends
    return indptr


def _matrix(values: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> sp.csr_matrix:
    n = len(indptr) - 1
    A = sp.csr_matrix((values, indices, indptr), shape=(n, n))
    A.has_canonical_format = True
    return A


def _stencil(shape: tuple[int, int, int], neighbors: int, diagonal: float, other: float) -> sp.csr_matrix:
    """A grid with constant coefficients and these of the 27 neighbors."""
    nodes = math.prod(shape)
    counts = np.empty(nodes, np.int64)
    _count_stencil(0, nodes, *shape, neighbors, counts)
    indptr = _offsets(counts, nodes)
    indices, values = np.empty(int(indptr[-1]), indptr.dtype), np.empty(int(indptr[-1]))
    _fill_stencil(0, nodes, *shape, neighbors, diagonal, other, indptr, indices, values)
    return _matrix(values, indices, indptr)


def _simple_graph(n: int, rows: np.ndarray, columns: np.ndarray) -> sp.csr_matrix:
    """The undirected graph of a list of edges; loops are dropped, repeated edges kept once."""
    lengths = np.zeros(n, np.int64)
    _count_ends(0, len(rows), rows, columns, lengths)
    start = np.cumsum(lengths) - lengths
    total, place = int(lengths.sum()), start.copy()
    ends = np.empty(total, np.int32 if n < INT32_LIMIT else np.int64)
    _place_ends(0, len(rows), rows, columns, place, ends)
    _sort_rows(0, PARTS, n, start, lengths, ends)
    indptr = _offsets(lengths, n)
    if int(indptr[-1]) == total:
        indices = ends.astype(indptr.dtype, copy=False)
    else:
        indices = np.empty(int(indptr[-1]), indptr.dtype)
        _pack_rows(0, PARTS, n, start, lengths, ends, indptr, indices)
    return _matrix(np.ones(len(indices)), indices, indptr)


def _cells_of(points: np.ndarray, cells: int) -> np.ndarray:
    x, y = (points * cells).astype(np.int64).T
    return np.minimum(x, cells - 1) + cells * np.minimum(y, cells - 1)


@compile_part
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


@compile_part
def random_bits(counter, seed):
    """64 well-mixed bits: the output `counter` of SplitMix64 started at a hash of the seed."""
    z = np.uint64(seed) * np.uint64(0xD1342543DE82EF95)
    z ^= z >> np.uint64(32)
    z += (np.uint64(counter) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compile_loop
def _draw_edges(first, end, scale, seed, bounds, rows, columns):
    for e in range(first, end):
        row = column = np.int64(0)
        bits = np.uint64(0)
        for level in range(scale):
            # One hash is enough for two levels.
            if level % 2 == 0:
                bits = random_bits(e * 15 + level // 2, seed)
            else:
                bits >>= np.uint64(32)
            r = bits & np.uint64(0xFFFFFFFF)
            past_0, past_1, past_2 = r >= bounds[0], r >= bounds[1], r >= bounds[2]
            row = 2 * row + past_1
            column = 2 * column + (past_0 ^ past_1 ^ past_2)
        rows[e] = row
        columns[e] = column


@compile_loop
def _count_ends(first, end, rows, columns, lengths):
    for e in range(first, end):
        if rows[e] != columns[e]:
            atomic_add(lengths, rows[e], np.int64(1))
            atomic_add(lengths, columns[e], np.int64(1))


@compile_loop
def _place_ends(first, end, rows, columns, place, ends):
    for e in range(first, end):
        if rows[e] != columns[e]:
            ends[atomic_add(place, rows[e], np.int64(1))] = columns[e]
            ends[atomic_add(place, columns[e], np.int64(1))] = rows[e]


@compile_loop(grain=1)
def _sort_rows(first, end, n, start, lengths, ends):
    """Sort each row and move its repeated entries out of it; sorting undoes the random order of the threads."""
    for part in range(first, end):
        for v in range(part, n, PARTS):
            lengths[v] = sort_row(ends[start[v] : start[v] + lengths[v]])


@compile_part
def sort_row(row):
    """Sort in place, keep each value once, and return how many there are."""
    row.sort()
    kept = min(1, len(row))
    for k in range(1, len(row)):
        if row[k] != row[kept - 1]:
            row[kept] = row[k]
            kept += 1
    return kept


@compile_loop(grain=1)
def _pack_rows(first, end, n, start, lengths, ends, indptr, indices):
    for part in range(first, end):
        for v in range(part, n, PARTS):
            for k in range(lengths[v]):
                indices[indptr[v] + k] = ends[start[v] + k]


@compile_part
def near(v, points, cells, first, square, found, place):
    """Count the neighbors of a point; write them to `found` from `place` on, if place >= 0. They come in order."""
    cx = min(int(points[v, 0] * cells), cells - 1)
    cy = min(int(points[v, 1] * cells), cells - 1)
    count = 0
    for row in range(max(cy - 1, 0), min(cy + 2, cells)):
        left, right = row * cells + max(cx - 1, 0), row * cells + min(cx + 2, cells)
        for u in range(first[left], first[right]):
            dx, dy = points[u, 0] - points[v, 0], points[u, 1] - points[v, 1]
            if u != v and dx * dx + dy * dy < square:
                if place >= 0:
                    found[place + count] = u
                count += 1
    return count


@compile_loop
def _count_near(begin, end, points, cells, first, square, counts):
    for v in range(begin, end):
        counts[v] = near(v, points, cells, first, square, counts, -1)


@compile_loop
def _fill_near(begin, end, points, cells, first, square, indptr, indices):
    for v in range(begin, end):
        near(v, points, cells, first, square, indices, indptr[v])
