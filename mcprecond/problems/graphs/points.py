"""Graphs of random points of the unit square: neighbors that are near, and triangulations."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from mcprecond.backends import compile_loop, compile_row
from mcprecond.backends.arguments import real
from mcprecond.problems.graphs.simple import matrix_of, offsets_of, seed_of, simple_graph, size_of
from mcprecond.problems.triangulation import delaunay_triangles


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
    points = np.random.default_rng(seed_of(seed)).random((n, 2))
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
    indptr = offsets_of(counts, n)
    indices = np.empty(int(indptr[-1]), indptr.dtype)
    _fill_near(0, n, points, cells, first, float(radius) ** 2, indptr, indices)
    return matrix_of(np.ones(len(indices)), indices, indptr)


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
    return simple_graph(n, triangles.ravel(), np.roll(triangles, 1, axis=1).ravel())


def _cells_of(points: np.ndarray, cells: int) -> np.ndarray:
    x, y = (points * cells).astype(np.int64).T
    return np.minimum(x, cells - 1) + cells * np.minimum(y, cells - 1)


@compile_row
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
