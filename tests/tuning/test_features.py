"""Features of matrices, from a sample of their rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from mcprecond import problems
from mcprecond.matrix import admit_matrix
from mcprecond.tuning.features import Features, features_of, with_features


def features(A) -> Features:
    return features_of(admit_matrix(A, finite=True))


def five_diagonals(n=50):
    return sp.csr_matrix(sp.diags_array([-1.0, 4.0, -1.0, 0.5], offsets=[-1, 0, 1, 5], shape=(n, n)))


def test_sums_and_distances(to_device):
    """Of 50 rows all are read, and of some of them the neighbors."""
    found = features(to_device(five_diagonals()))
    assert found.n == 50 and found.entries == 193 and not found.has_hubs
    assert found.surplus == pytest.approx(2 - 6.5 / 4)
    assert found.positive == pytest.approx(45 * 0.5 / 4 / 50) and found.negative == pytest.approx(98 / 4 / 50)
    assert found.width == (45 * 5 + 5) / 50
    # l_ik u_kj is 1/16 on the diagonal, and -1/32 four columns to the right of it, where nothing is stored
    assert found.products == pytest.approx(1.5 / 16) and found.dropped == pytest.approx(0.5 / 16)


@pytest.mark.parametrize(
    ("shape", "points", "dimensions"),
    [((60, 60), 5, 2), ((90, 50), 9, 2), ((24, 24, 24), 7, 3), ((20, 20, 20), 27, 3), ((3000, 2), 5, 1)],
)
def test_grids_in_any_order(shape, points, dimensions, to_device):
    A = problems.laplacian(shape, points=points)
    order = np.random.default_rng(0).permutation(A.shape[0])
    for matrix in (A, sp.csr_matrix(sp.csr_array(A)[order][:, order])):
        assert features(to_device(matrix)).dimensions == dimensions


def test_graphs_that_are_no_grids(to_device):
    n = 3000
    rng = np.random.default_rng(0)
    pairs = [(np.arange(n), rng.permutation(n)) for _ in range(4)]
    expander = sum(sp.csr_matrix((np.ones(n), pair), shape=(n, n)) for pair in pairs)
    assert features(to_device(sp.csr_matrix(expander + expander.T + 9 * sp.eye_array(n)))).dimensions is None
    star = sp.lil_matrix((n, n))
    star[0, :] = star[:, 0] = -1.0
    star.setdiag(5.0)
    hub = features(to_device(sp.csr_matrix(star)))
    assert hub.has_hubs and hub.dimensions is None and hub.growth == np.inf
    tree = sp.csr_matrix((np.ones(n - 1), (np.arange(1, n), np.arange(1, n) // 2)), shape=(n, n))
    assert features(to_device(sp.csr_matrix(tree + tree.T + 4 * sp.eye_array(n)))).dimensions == 1


@given(exponents=st.lists(st.integers(-8, 8), min_size=400, max_size=400))
def test_units_of_unknowns_do_not_make_a_diagonal_dominant(exponents):
    """D A D has a surplus of 0 like A, though many of its rows seem to be dominated."""
    D = sp.diags_array(2.0 ** np.array(exponents))
    found = features(sp.csr_matrix(D @ problems.laplacian((20, 20)) @ D))
    assert found.surplus <= 0.5 + 1e-12  # at the boundary it is up to 1/2


def test_contrast_and_nodes(to_device):
    A = problems.laplacian((40, 40))
    assert features(to_device(A)).contrast == 0 and features(to_device(A)).in_nodes == 0
    weak = sp.diags_array(np.where(np.arange(1600) < 800, 1.0, 1e-2))
    jump = sp.csr_matrix(weak @ A @ weak)
    assert 0 <= features(to_device(jump)).contrast <= 4 + 1e-9
    nodes = sp.csr_matrix(sp.kron(A, np.array([[2.0, 1.0], [1.0, 2.0]])))
    assert features(to_device(nodes)).in_nodes == 1


@pytest.mark.parametrize("matrix", [sp.csr_matrix((0, 0)), sp.csr_matrix(([1.0], ([0], [1])), shape=(3, 3))])
def test_without_rows_or_a_diagonal(matrix, to_device):
    found = features(to_device(matrix))
    assert found.surplus == found.positive == 0 and np.isfinite(found.width) and found.dimensions


@given(data=st.data())
def test_features_are_finite_and_the_same_each_time(data):
    n = data.draw(st.integers(1, 30))
    dense = data.draw(st.lists(st.sampled_from([0.0, 1.0, -2.0, 1e300, -1e-300]), min_size=n * n, max_size=n * n))
    A = sp.csr_matrix(np.array(dense).reshape(n, n))
    first, second = features(A), features(A)
    assert first == second
    assert np.isfinite([first.surplus, first.positive, first.negative, first.width]).all()


def test_features_are_found_once():
    matrix = with_features(admit_matrix(five_diagonals(), finite=True))
    assert with_features(matrix) is matrix
