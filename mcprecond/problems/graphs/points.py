"""Triangulations of random points of the unit square."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from mcprecond.problems.graphs.simple import seed_of, simple_graph, size_of


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
    from scipy.spatial import Delaunay

    n = size_of(n, "n", 3)
    triangles = Delaunay(random_points(n, math.ceil(math.sqrt(n)), seed)).simplices
    # Sides inside occur twice, those of the hull once.
    return simple_graph(n, triangles.ravel(), np.roll(triangles, 1, axis=1).ravel())


def _cells_of(points: np.ndarray, cells: int) -> np.ndarray:
    x, y = (points * cells).astype(np.int64).T
    return np.minimum(x, cells - 1) + cells * np.minimum(y, cells - 1)
