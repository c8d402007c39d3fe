"""The benchmarks' own families of graphs: simple, reproducible, and what their docstrings say."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from benchmarks.families import cells_of, mycielskian, random_geometric, random_regular, road_like
from mcprecond import color
from mcprecond.problems.graphs.points import random_points

SEEDED = {
    "random_geometric": lambda seed=0: random_geometric(500, seed),
    "random_regular": lambda seed=0: random_regular(301, 6, seed),
    "road_like": lambda seed=0: road_like(2000, seed),
}
SIMPLE = SEEDED | {
    "one point": lambda: random_geometric(1),
    "mycielskian": lambda: mycielskian(6),
    "matching": lambda: random_regular(10, 1),
    "degree 0": lambda: random_regular(3, 0),
    "smallest road": lambda: road_like(4),
}


@pytest.mark.parametrize("name", SIMPLE)
def test_graphs_are_simple_and_symmetric(name):
    A = SIMPLE[name]()
    assert A.has_sorted_indices and (A != A.T).nnz == 0
    assert (A.data == 1).all() and not A.diagonal().any()


@pytest.mark.parametrize("name", SEEDED)
def test_a_seed_gives_one_graph(name):
    make = SEEDED[name]
    assert (make() != make(seed=0)).nnz == 0 < (make() != make(seed=1)).nnz


def test_geometric_neighbors_are_the_pairs_within_the_radius():
    n = 300
    radius = 0.55 * np.sqrt(np.log(n) / n)
    points = random_points(n, cells_of(n, radius), 3)
    square = ((points[:, None] - points) ** 2).sum(axis=2)
    np.testing.assert_array_equal(random_geometric(n, 3).toarray(), (square < radius**2) & ~np.eye(n, dtype=bool))


def test_geometric_degree_is_that_of_the_radius():
    n = 20000
    mean = random_geometric(n).nnz / n
    assert 0.9 < mean / (0.55**2 * np.pi * np.log(n)) < 1


@pytest.mark.parametrize("k", range(2, 9))
def test_mycielskian(k):
    A = mycielskian(k)
    assert A.shape[0] == 3 * 2 ** (k - 2) - 1
    assert A.nnz == 7 * 3 ** (k - 2) + 1 - 3 * 2 ** (k - 1)
    assert k == 2 or (A @ A).multiply(A).nnz == 0
    assert color(A, "greedy").n_colors >= k
    if k > 2:
        B = mycielskian(k - 1)
        ones = np.ones((B.shape[0], 1))
        assert (sp.bmat([[B, B, None], [B, None, ones], [None, ones.T, None]], "csr") != A).nnz == 0


def test_the_small_mycielskians_are_the_known_graphs():
    assert (mycielskian(3).getnnz(axis=1) == 2).all()
    groetzsch = mycielskian(4)
    assert groetzsch.shape[0] == 11 and groetzsch.nnz == 40
    assert sorted(groetzsch.getnnz(axis=1)) == [3] * 5 + [4] * 5 + [5]


@pytest.mark.parametrize(("n", "degree"), [(2000, 4), (2000, 7), (2001, 7), (8, 7)])
def test_random_regular_has_at_most_its_degree(n, degree):
    degrees = random_regular(n, degree, 1).getnnz(axis=1)
    assert degrees.max() <= degree
    assert (degrees < degree).sum() < degree**2 + degree


def test_road_like():
    n = 20000
    A = road_like(n)
    degrees = A.getnnz(axis=1)
    assert A.shape == (n, n)
    assert connected_components(A)[0] == 1
    assert degrees.min() >= 1 and degrees.max() <= 4
    assert 2.05 < degrees.mean() < 2.15 and (degrees == 2).mean() > 0.85
    rows, columns = A.nonzero()
    assert (abs(rows - columns) == 1).mean() > 0.8


@pytest.mark.parametrize("seed", range(20))
def test_small_roads_are_connected(seed):
    # Up to 89 vertices there are 2 x 2 junctions: what remains of their square is a path or all of it.
    for n, most in [(4, 2), (5, 2), (9, 2), (89, 2), (90, 4), (300, 4), (1000, 4)]:
        A = road_like(n, seed)
        assert A.shape[0] == n and connected_components(A)[0] == 1
        assert A.getnnz(axis=1).max() <= most
