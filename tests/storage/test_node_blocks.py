"""Blocks of nodes: b unknowns per node, the nodes colored, diagonal blocks inverted."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference.gauss_seidel import block_sweep

from mcprecond import MulticolorGS, MulticolorSGS, color, pcg, problems, smooth
from mcprecond.matrix import admit_matrix
from mcprecond.storage import NodeBlocks, schedule
from mcprecond.storage.node_blocks import node_pattern
from mcprecond.sweeps.relaxation import Relaxation

FIXTURES_STAY = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def block_matrix(
    n_nodes: int, b: int, seed: int, density: float = 0.2, symmetric: bool = True
) -> scipy.sparse.csr_array:
    """A random matrix that is diagonally dominant; its blocks have holes."""
    random = np.random.default_rng(seed)
    A = scipy.sparse.random_array((n_nodes * b, n_nodes * b), density=density, rng=random, format="csr")
    A.data -= 0.5
    if symmetric:
        A = A + A.T
    return (A + scipy.sparse.diags_array(abs(A).sum(axis=1) + 1.0)).tocsr()


def dense_blocks(A, n_nodes, b):
    return A.toarray().reshape(n_nodes, b, n_nodes, b).transpose(0, 2, 1, 3)


@FIXTURES_STAY
@given(st.integers(1, 24), st.integers(2, 9), st.integers(0, 2**32 - 1), st.sampled_from([0.02, 0.2, 1.0]))
def test_pattern_of_nodes(device, backend, to_device, n_nodes, b, seed, density):
    A = block_matrix(n_nodes, b, seed, density, symmetric=False)
    nodes = node_pattern(admit_matrix(to_device(A)), b)
    stored = dense_blocks(abs(A), n_nodes, b).any(axis=(2, 3))
    assert np.array_equal(backend.to_host(nodes.toarray()), stored)
    assert nodes.has_sorted_indices and nodes.nnz == stored.sum()


@FIXTURES_STAY
@given(st.integers(1, 12), st.integers(2, 5), st.integers(0, 2**32 - 1), st.sampled_from([0.02, 0.1, 0.4]))
def test_pattern_of_nodes_with_empty_rows(device, backend, to_device, n_nodes, b, seed, density):
    """Nothing is said of diagonals: rows of a node may be empty, or have fewer entries than the row below them."""
    A = scipy.sparse.random_array((n_nodes * b,) * 2, density=density, rng=np.random.default_rng(seed), format="csr")
    nodes = node_pattern(admit_matrix(to_device(A)), b)
    stored = dense_blocks(A, n_nodes, b).any(axis=(2, 3))
    assert np.array_equal(backend.to_host(nodes.toarray()), stored) and nodes.nnz == stored.sum()


@FIXTURES_STAY
@given(n_nodes=st.integers(2, 8), b=st.integers(2, 4), columns=st.integers(1, 2), seed=st.integers(0, 99))
def test_residual_of_an_iterate(device, backend, to_device, n_nodes, b, columns, seed):
    """r = b - A x after a sweep from zero, for which half of A is read if it was a forward one, and after others."""
    A = block_matrix(n_nodes, b, seed, 0.4)
    xp, shape = backend.xp, (n_nodes * b, columns)
    relaxation = Relaxation(NodeBlocks(to_device(A), "greedy", block_size=b), columns)
    rhs, x, r = to_device(np.random.default_rng(seed).uniform(-1, 1, shape)), xp.empty(shape), xp.empty(shape)
    for sweep, omega in itertools.product(("forward", "backward", "symmetric"), (1.0, 0.8)):
        iterate = relaxation.start_from_zero(rhs, x, sweep, omega=omega)
        for _ in range(2):
            iterate.residual(rhs, r)
            np.testing.assert_allclose(*(backend.to_host(v) for v in (r, rhs - to_device(A) @ x)), atol=1e-12)
            iterate.sweep(rhs, sweep, omega=omega)


@FIXTURES_STAY
@given(st.integers(1, 24), st.integers(2, 9), st.integers(0, 2**32 - 1), st.sampled_from([0.02, 0.2, 1.0]))
def test_permuted_is_the_matrix_in_color_order(device, backend, to_device, n_nodes, b, seed, density):
    A = block_matrix(n_nodes, b, seed, density, symmetric=False)
    blocks = NodeBlocks(to_device(A), "jp", block_size=b)
    perm = backend.to_host(blocks.perm)
    unknowns = (perm[:, None] * b + np.arange(b)).reshape(-1)
    assert np.allclose(blocks.permuted().toarray(), to_device(A[unknowns][:, unknowns]).toarray(), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("some", "others"),
    [pytest.param(64, 64, id="not all rows of a slice fit"), pytest.param(6, 500, id="not even one")],
)
def test_slices_whose_rows_do_not_fit_into_shared_memory(device, backend, to_device, monkeypatch, some, others):
    monkeypatch.setattr(schedule, "USUAL_ROWS", 1000.0)  # many rows in a slice
    n_nodes, b, random = some + others, 3, np.random.default_rng(some)
    colors = np.arange(n_nodes) >= some
    A = scipy.sparse.csr_array(
        np.kron((colors[:, None] != colors) | np.eye(n_nodes, dtype=bool), np.ones((b, b)))
        * random.uniform(1, 2, (n_nodes * b, n_nodes * b))
    )
    blocks = NodeBlocks(to_device(A), colors.astype(np.int32), block_size=b)
    A.data = A.data[::-1].copy()
    blocks.update(to_device(A))
    assert np.array_equal(blocks.permuted().toarray(), to_device(A).toarray())
    expected = np.linalg.inv(dense_blocks(A, n_nodes, b)[range(n_nodes), range(n_nodes)])
    assert np.allclose(backend.to_host(blocks.dinv), expected, rtol=1e-9)


@FIXTURES_STAY
@given(
    st.integers(1, 24),
    st.integers(2, 8),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.02, 0.2, 1.0]),
    st.sampled_from([1.0, 0.7, 1.4]),
    st.sampled_from(["forward", "backward", "symmetric"]),
)
def test_sweep_is_block_gauss_seidel(device, backend, to_device, n_nodes, b, seed, density, omega, sweep):
    A = block_matrix(n_nodes, b, seed, density)
    M = MulticolorGS(to_device(A), "jp", sweep=sweep, omega=omega, block_size=b)
    r = np.random.default_rng(seed).uniform(-1, 1, A.shape[0])
    expected = block_sweep(A, backend.to_host(M.coloring.colors), b, r, omega, sweep)
    for _ in range(2):  # the second application finds what the first one has left
        assert np.allclose(backend.to_host(M @ to_device(r)), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("sweep", ["forward", "backward", "symmetric"])
@pytest.mark.parametrize("b", [2, 3])
def test_more_sweeps_and_smoothing_converge(device, backend, to_device, b, sweep):
    """Sweep after sweep from zero is what smoothing does, and that goes to the solution."""
    A = block_matrix(20, b, seed=b)
    x = np.random.default_rng(0).uniform(-1, 1, A.shape[0])
    A, rhs = to_device(A), to_device(A @ x)
    M = MulticolorGS(A, "jp", sweep=sweep, sweeps=4, block_size=b)
    zero = to_device(np.zeros_like(x))
    smoothed = smooth(A, zero, rhs, 4, coloring="jp", sweep=sweep, block_size=b)
    assert np.allclose(backend.to_host(M @ rhs), backend.to_host(smoothed), rtol=1e-12)
    long = smooth(A, zero, rhs, 60, coloring="jp", sweep=sweep, block_size=b)
    assert np.allclose(backend.to_host(long), x, rtol=1e-8)


@pytest.mark.parametrize("omega", [1.0, 1.3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_eisenstat_takes_the_steps_of_the_plain_form(device, backend, to_device, omega, dtype):
    A = problems.elasticity(6, device=device).astype(dtype)
    b = A @ backend.xp.asarray(np.random.default_rng(0).uniform(-1, 1, A.shape[0]), dtype=dtype)
    M = MulticolorSGS(A, "jp", omega=omega, block_size=3)
    plain, eisenstat = (pcg(A, b, M=M, rtol=1e-4, form=form) for form in ("plain", "eisenstat"))
    assert plain.info == eisenstat.info == 0 and abs(plain.iterations - eisenstat.iterations) <= 1
    steps = min(plain.iterations, eisenstat.iterations)
    close = {"rtol": 1e-2, "atol": 0} if dtype == np.float32 else {"rtol": 1e-6, "atol": 0}
    assert np.allclose(plain.residuals[:steps], eisenstat.residuals[:steps], **close)


def test_hermitian_matrices(device, backend, to_device):
    A = problems.elasticity(5).astype(complex)
    turn = np.exp(1j * np.random.default_rng(3).uniform(0, 6, A.shape[0]))
    Q = scipy.sparse.diags_array(turn)
    A = scipy.sparse.csr_matrix(Q.conj() @ A @ Q)
    b = A @ np.random.default_rng(0).uniform(-1, 1, A.shape[0])
    M = MulticolorSGS(to_device(A), "jp", block_size=3)
    plain, eisenstat = (pcg(to_device(A), to_device(b), M=M, rtol=1e-8, form=form) for form in ("plain", "eisenstat"))
    assert plain.info == eisenstat.info == 0
    assert abs(plain.iterations - eisenstat.iterations) <= 1
    r, s = (random + 1j * random[::-1] for random in np.random.default_rng(1).uniform(-1, 1, (2, A.shape[0])))
    assert np.vdot(s, backend.to_host(M @ to_device(r))) == pytest.approx(np.vdot(backend.to_host(M @ to_device(s)), r))


def test_transposed_and_float32(device, backend, to_device):
    A = block_matrix(30, 3, seed=5)
    A = (A + scipy.sparse.triu(A, 1) * 0.5).tocsr()
    r, s = np.random.default_rng(1).uniform(-1, 1, (2, A.shape[0]))
    M = MulticolorGS(to_device(A), "jp", sweep="forward", block_size=3)
    left = float(backend.to_host(M @ to_device(r)) @ s)
    assert left == pytest.approx(float(backend.to_host(M.T @ to_device(s)) @ r), rel=1e-12)
    single = MulticolorGS(to_device(A), "jp", sweep="forward", block_size=3, dtype=np.float32)
    assert np.allclose(backend.to_host(single @ to_device(r)), backend.to_host(M @ to_device(r)), rtol=1e-5, atol=1e-6)
    assert single.blocks.lower.values.dtype == np.float32


def test_elasticity_takes_fewer_colors(device, backend, to_device):
    A = problems.elasticity(8, device=device)
    points, nodes = MulticolorSGS(A, "jp"), MulticolorSGS(A, "jp", block_size=3)
    assert nodes.n_colors < points.n_colors / 2
    assert color(node_pattern(admit_matrix(A), 3), "jp").n_colors == nodes.n_colors
    b = A @ backend.xp.asarray(np.random.default_rng(0).uniform(-1, 1, A.shape[0]))
    by_points, by_nodes = (pcg(A, b, M=M, rtol=1e-8) for M in (points, nodes))
    assert by_points.info == by_nodes.info == 0
    assert by_nodes.iterations <= by_points.iterations


def test_update_and_unsorted_rows(device, backend, to_device):
    A = block_matrix(25, 3, seed=2)
    M = MulticolorSGS(to_device(A), "jp", block_size=3)
    twice = to_device(2 * A)
    r = to_device(np.random.default_rng(0).uniform(-1, 1, A.shape[0]))
    before = backend.to_host(M @ r)
    M.update(twice)
    assert np.allclose(backend.to_host(M @ r), before / 2, rtol=1e-13)
    reversed_rows = A.copy()
    for i in range(A.shape[0]):
        row = slice(A.indptr[i], A.indptr[i + 1])
        reversed_rows.indices[row], reversed_rows.data[row] = A.indices[row][::-1], A.data[row][::-1]
    reversed_rows.has_sorted_indices = False
    before_indices = reversed_rows.indices.copy()
    other = MulticolorSGS(to_device(reversed_rows), M.coloring, block_size=3)
    assert np.allclose(backend.to_host(other @ r), before, rtol=1e-13)
    assert np.array_equal(reversed_rows.indices, before_indices)
    M.update(to_device(reversed_rows))
    assert np.allclose(backend.to_host(M @ r), before, rtol=1e-13)


def test_update_says_where_the_pattern_is_another(to_device):
    A = scipy.sparse.csr_array(np.kron(np.diag([4.0, 4, 4, 4]) + np.diag([1.0, 1, 1], 1), np.ones((3, 3))))
    blocks = NodeBlocks(to_device(A), "greedy", block_size=3)
    for dropped, where in (((7, 11), "inside of its blocks"), ((slice(6, 9), slice(9, 12)), "in rows 6 to 8")):
        other = A.toarray()
        other[dropped] = 0
        with pytest.raises(ValueError, match=f"another pattern than before {where}; build a new object"):
            blocks.update(to_device(scipy.sparse.csr_array(other)))
    assert blocks.compared_with(to_device(A))()


@FIXTURES_STAY
@given(st.integers(1, 24), st.integers(1, 10), st.integers(0, 2**32 - 1), st.sampled_from([0.02, 0.2, 1.0]))
def test_bsr_matrices_keep_their_block_size(device, backend, n_nodes, b, seed, density):
    """Nodes are colored, so that the zeros of their blocks are no edges; blocks of ten unknowns are too large."""
    A = block_matrix(n_nodes, b, seed, density)
    own, said = A.tobsr((b, b)), b if b <= 9 else 1
    M = MulticolorSGS(own, "greedy", device=device)
    other = MulticolorSGS(own.tocsr(), "greedy", block_size=said, device=device)
    assert M.blocks.block_size == said and M.n_colors == other.n_colors
    r = np.random.default_rng(seed).uniform(-1, 1, n_nodes * b)
    np.testing.assert_array_equal(M @ r, other @ r)
    if said == b:
        np.testing.assert_array_equal(M @ r, MulticolorSGS(A, "greedy", block_size=b, device=device) @ r)
    relaxed = smooth(own, np.zeros_like(r), r, sweep="symmetric", coloring="greedy", device=device)
    np.testing.assert_allclose(relaxed, M @ r, rtol=1e-12, atol=1e-14)


def test_updates_and_solves_with_a_bsr_matrix(device):
    A = problems.elasticity(6).tobsr((3, 3))
    M = MulticolorSGS(A, "greedy", device=device)
    b = A @ np.random.default_rng(0).uniform(-1, 1, A.shape[0])
    first = pcg(A, b, M=M, rtol=1e-8) if device == "cpu" else None
    other = A.copy()
    other.data[:, 0, 1] = other.data[:, 1, 0] = 0  # stored zeros elsewhere
    M.update(other)
    r = b[: A.shape[0]]
    np.testing.assert_array_equal(M @ r, MulticolorSGS(other, "greedy", device=device) @ r)
    if first is not None:
        assert first.converged and pcg(other, b, M=M, rtol=1e-8).converged
        assert first.iterations == pcg(A, b, M=MulticolorSGS(A.tocsr(), "greedy", block_size=3), rtol=1e-8).iterations


def test_another_block_size_than_that_of_bsr():
    A = problems.elasticity(4).tobsr((3, 3))
    points = color(A, "greedy")
    assert MulticolorSGS(A, points, block_size=1).n_colors == points.n_colors
    assert MulticolorSGS(A, block_size=6).blocks.block_size == 6
    assert MulticolorSGS(problems.elasticity(4).tobsr((3, 6))).blocks.block_size == 1
    with pytest.raises(
        ValueError, match="coloring must be one of the 64 nodes of A, got 192 colors; pass block_size=1"
    ):
        MulticolorSGS(A, points)


def test_errors_at_the_door(to_device):
    A = to_device(block_matrix(10, 3, seed=0))
    with pytest.raises(ValueError, match="block_size 4 does not divide the 30 unknowns"):
        MulticolorSGS(A, block_size=4)
    for wrong, error in ((0, ValueError), (10, ValueError), (2.0, TypeError), (-1, ValueError)):
        with pytest.raises(error, match="block_size must be"):
            MulticolorSGS(A, block_size=wrong)
    with pytest.raises(ValueError, match="one of the 10 nodes of A, got 30 colors"):
        MulticolorSGS(A, np.zeros(30, np.int32), block_size=3)
    with pytest.raises(ValueError, match="shape"):
        MulticolorSGS(A, np.zeros(29, np.int32), block_size=3)
    singular = scipy.sparse.csr_array(scipy.linalg.block_diag(np.eye(2), np.ones((2, 2)), np.eye(2)))
    with pytest.raises(ValueError, match="rows 2 to 3 is singular"):
        MulticolorSGS(to_device(singular), block_size=2)
    missing = scipy.sparse.csr_array(np.kron([[3, 1, 1], [1, 0, 0], [1, 0, 3]], [[2.0, 1.0], [1.0, 2.0]]))
    missing.eliminate_zeros()
    with pytest.raises(ValueError, match="rows 2 to 3 is singular"):
        MulticolorSGS(to_device(missing), block_size=2)
