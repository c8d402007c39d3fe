"""Graphs with hubs, from lists of edges at random."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from mcprecond.backends import compile_loop, compile_row
from mcprecond.backends.arguments import describe, integer
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
        raise ValueError(f"probabilities must be four numbers >= 0 that add up to one, got {describe(probabilities)}")
    bounds = np.rint(np.cumsum(p)[:3] * 2.0**32).astype(np.uint64)
    rows, columns = np.empty(count, np.int32), np.empty(count, np.int32)
    draw_edges(0, count, scale, seed_of(seed), bounds, rows, columns)
    return simple_graph(2**scale, rows, columns)


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
