"""Graphs without a geometry, from lists of edges: with hubs, with many colors, nearly regular, or of long chains."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from mcprecond.backends import compile_loop, compile_row
from mcprecond.backends.arguments import integer, shown
from mcprecond.problems.graphs.simple import seed_of, simple_graph, size_of


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
    >>> print(A.nnz // A.shape[0], "entries in a row on average,", A.getnnz(axis=1).max(), "in the longest")
    13 entries in a row on average, 905 in the longest
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
    draw_edges(0, count, scale, seed_of(seed), bounds, rows, columns)
    return simple_graph(2**scale, rows, columns)


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
    return simple_graph(n, rows, columns)


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
    rng = np.random.default_rng(seed_of(seed))
    vertices, half = np.arange(n, dtype=np.int32), n // 2
    rows, columns = np.empty((degree, half), np.int32), np.empty((degree, half), np.int32)
    for matching in range(degree):
        shuffled = rng.permutation(vertices)
        rows[matching], columns[matching] = shuffled[:half], shuffled[half : 2 * half]
    return simple_graph(n, rows.ravel(), columns.ravel())


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
    rng = np.random.default_rng(seed_of(seed))
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


@compile_row
def random_bits(counter, seed):
    """64 well-mixed bits: the output `counter` of SplitMix64 started at a hash of the seed."""
    z = np.uint64(seed) * np.uint64(0xD1342543DE82EF95)
    z ^= z >> np.uint64(32)
    z += (np.uint64(counter) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compile_loop
def draw_edges(first, end, scale, seed, bounds, rows, columns):
    """Draw edges: a quarter at each level, by the bounds of their probabilities."""
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
