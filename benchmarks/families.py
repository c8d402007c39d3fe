"""Families of graphs that papers color and no page of the documentation does: symmetric, ones, no diagonal."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree

from mcprecond.problems.graphs.points import random_points
from mcprecond.problems.graphs.simple import simple_graph


def random_geometric(n: int, seed: int = 0) -> sp.csr_matrix:
    """n random points of the unit square, neighbors if closer than the radius of DIMACS10, 0.55 √(ln n / n).

    The points are sorted by cells a little wider than the radius, row by row, so that neighbors have numbers close by.
    (Holtgrewe, Sanders, Schulz: Engineering a Scalable High Quality Graph Partitioner, IPDPS 2010.)
    """
    radius = 0.55 * math.sqrt(math.log(max(n, 2)) / n)
    points = random_points(n, cells_of(n, radius), seed)
    rows, columns = KDTree(points).query_pairs(radius, output_type="ndarray").T
    return simple_graph(n, rows, columns)


def cells_of(n: int, radius: float) -> int:
    """Along an edge; a little wider than the radius."""
    return max(1, math.floor(min(0.999 / radius, math.ceil(math.sqrt(n)))))


def mycielskian(k: int) -> sp.csr_matrix:
    """The k-th Mycielski graph: without triangles (for k >= 3), yet it needs k colors.

    From one graph A to the next: every vertex v gets a copy v + n with the neighbors of v, and one more vertex, the
    last, has all copies as neighbors. The third is a pentagon, the fourth the Grötzsch graph; mycielskian* of the
    SuiteSparse collection. (Mycielski: Sur le coloriage des graphes, Colloquium Mathematicum 3, 1955.)
    """
    n, rows, columns = 2, np.zeros(1, np.int32), np.ones(1, np.int32)
    for _ in range(k - 2):
        copies = np.arange(n, 2 * n, dtype=np.int32)
        rows, columns = (
            np.concatenate([rows, rows, rows + np.int32(n), copies]),
            np.concatenate([columns, columns + np.int32(n), columns, np.full(n, 2 * n, np.int32)]),
        )
        n = 2 * n + 1
    return simple_graph(n, rows, columns)


def random_regular(n: int, degree: int, seed: int = 0) -> sp.csr_matrix:
    """A nearly regular random graph: the union of `degree` random perfect matchings.

    Pairs in more than one matching are kept once, and where n is odd each matching leaves one vertex out. From degree 3
    on it is connected with high probability. (Wormald: Models of Random Regular Graphs, Surveys in Combinatorics 1999.)
    """
    rng = np.random.default_rng(seed)
    vertices, half = np.arange(n, dtype=np.int32), n // 2
    rows, columns = np.empty((degree, half), np.int32), np.empty((degree, half), np.int32)
    for matching in range(degree):
        shuffled = rng.permutation(vertices)
        rows[matching], columns[matching] = shuffled[:half], shuffled[half : 2 * half]
    return simple_graph(n, rows.ravel(), columns.ravel())


def road_like(n: int, seed: int = 0) -> sp.csr_matrix:
    """A graph that resembles a road network: planar, connected, mostly long chains of vertices of degree two.

    A stand-in for such graphs as europe_osm of DIMACS10 (50.9 M vertices, mean degree 2.12). Of a grid of s x s
    junctions, s = ⌊√(n / 10)⌋ but at least 2, a random spanning tree is kept (each junction keeps a side to the
    junction before it in x or in y) and half of the other sides. The remaining n - s^2 vertices subdivide the sides
    that are left at random. A junction's number is followed by those of the chains that lead from it to junctions
    before it.
    """
    rng = np.random.default_rng(seed)
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
    return simple_graph(n, rows, columns)
