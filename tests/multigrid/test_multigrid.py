"""Smoothed aggregation: aggregates, transfers, cycles and the operator, on both devices."""

from __future__ import annotations

import pkgutil
from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg
from graphs import grid5, neighbors, patterns, slivers, spd, star, stencil27
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from reference.aggregation import independent_set

from benchmarks.cases import diffusion
from benchmarks.papers.mesh_families import anisotropic, jumping
from mcprecond import (
    ILU0,
    ClassicalAMG,
    MulticolorGS,
    MulticolorSGS,
    PatternChangedError,
    SmoothedAggregation,
    pcg,
    problems,
)
from mcprecond.backends import get_backend
from mcprecond.coloring.graph import Graph
from mcprecond.linalg.vectors import signs
from mcprecond.matrix import admit_matrix, diagonal_places
from mcprecond.multigrid import Multigrid, from_pyamg, rigid_body_modes
from mcprecond.multigrid.aggregation import IN, LEAST_SIZE, SCRATCH, SPREAD, aggregates, find_roots, vertex_at
from mcprecond.multigrid.built import refuse_unfit
from mcprecond.multigrid.hierarchy import MOST_WORK, corrected_twice
from mcprecond.multigrid.interpolation import OMEGA, SmoothedInterpolation
from mcprecond.multigrid.named_smoothers import SMOOTHERS
from mcprecond.multigrid.patterns import least_entries, transpose_pattern
from mcprecond.multigrid.products import Rows, product_pattern
from mcprecond.multigrid.setup import STRENGTHS
from mcprecond.multigrid.spectrum import (
    GOLDEN,
    SAFETY,
    fall_of_residual,
    jacobi_weights,
    largest_ritz_value,
    with_largest_eigenvalue,
)
from mcprecond.multigrid.strength import LEAST_POSITIVE, SHARE_OF_AVERAGE, Connections, symmetric_strength
from mcprecond.multigrid.tentative import Tentative, fit_tentative
from mcprecond.multigrid.two_steps import TwoSteps
from mcprecond.multigrid.units import Narrowing
from mcprecond.problems.elasticity import _element_matrix as element_matrix


def poisson(*shape):
    return problems.laplacian(shape)


def solved(A, to_device, rtol=1e-8, **options):
    """The result of CG for a random solution, and the preconditioner."""
    x = np.random.default_rng(1).uniform(-1, 1, A.shape[0])
    M = SmoothedAggregation(to_device(A), **options)
    result = pcg(to_device(A), to_device(A @ x), M=M, rtol=rtol, maxiter=200)
    assert result.converged
    return result, M


def dense(M, backend):
    return backend.to_host(M @ backend.xp.eye(M.shape[0], dtype=M.dtype))


def on_host(A, backend):
    return A if backend.name == "cpu" else A.get()


FAMILIES = {
    "2d": lambda: poisson(120, 120),
    "3d": lambda: poisson(24, 24, 24),
    "27 points": lambda: problems.laplacian((20, 20, 20), points=27),
    "jumping": lambda: jumping(96),
    "anisotropic": lambda: anisotropic(150),
    "triangles": lambda: slivers(8000, 1.0),
}

# ---- Aggregates


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(A=patterns(), share=st.sampled_from([0.0, 0.3]))
@example(A=grid5(25), share=0.0)
@example(A=stencil27(8), share=0.1)
@example(A=star(300), share=0.0)
def test_the_set_is_that_of_a_serial_search(to_device, backend, A, share):
    graph = Graph.of(to_device(A))
    taken = np.random.default_rng(0).random(graph.n) < share
    roots = to_device(np.where(taken, 0, -1).astype(np.int32))
    sizes, scratch = (backend.xp.zeros(size, np.int32) for size in (graph.n, SCRATCH))
    own = backend.to_host(find_roots(graph, 1, roots, sizes, scratch))
    taken |= backend.to_host(graph.degrees) == 0
    np.testing.assert_array_equal(own == IN, independent_set(A, taken))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(A=patterns())
def test_aggregates_cover_all_that_have_neighbors(to_device, backend, A):
    labels, count, _ = aggregates(Graph.of(to_device(A)))
    labels, near = backend.to_host(labels), [others - {v} for v, others in enumerate(neighbors(A))]
    np.testing.assert_array_equal(labels >= 0, [len(others) > 0 for others in near])
    np.testing.assert_array_equal(np.unique(labels[labels >= 0]), np.arange(count))
    for label in range(count):
        members = set(np.flatnonzero(labels == label).tolist())
        # A root with neighbors, and those that joined afterwards, each next to one of them.
        assert len(members) >= 2
        assert any(sum(bool((near[u] | {u}) & (near[v] | {v})) for u in members) >= 2 for v in members)


def test_aggregates_are_the_same_in_every_run_and_of_a_good_size(to_device, backend):
    for A, least, most in ((grid5(60), 5, 9), (stencil27(16), 15, 60)):
        graph = Graph.of(to_device(A))
        first, count, _ = aggregates(graph)
        second, _, _ = aggregates(graph)
        np.testing.assert_array_equal(backend.to_host(first), backend.to_host(second))
        assert least <= A.shape[0] / count <= most
        sizes = np.bincount(backend.to_host(first))
        assert sizes.min() >= LEAST_SIZE - 1


def test_weak_connections_are_left_out(to_device, backend):
    A = sp.csr_matrix(sp.kron(sp.eye_array(20), grid5(20)) + 1e-3 * sp.kron(grid5(20)[:20, :20], sp.eye_array(400)))
    M = SmoothedAggregation(to_device(A), theta=0.1, max_coarse=10)
    labels = backend.to_host(M.levels[0].T.labels)
    assert all(
        len(np.unique(part)) == len(np.unique(labels)) // 20 or part.min() >= 0 for part in labels.reshape(20, -1)
    )
    assert sum(len(np.unique(part)) for part in labels.reshape(20, -1)) == len(np.unique(labels))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_connections_at_the_limit_are_strong(to_device, backend, dtype):
    """As those of a 5-point grid are with theta = 1/4, however its rows are scaled."""
    A = poisson(12, 12)
    scale = sp.diags_array(np.random.default_rng(0).uniform(0.1, 10, 144))
    scaled = sp.csr_matrix(scale @ A @ scale).astype(dtype)
    matrix = admit_matrix(to_device(scaled))
    graph = symmetric_strength(matrix, matrix, 0.25).graph
    np.testing.assert_array_equal(backend.to_host(graph.degrees), np.diff(A.indptr) - 1)
    scaled.data[scaled.indices != np.repeat(np.arange(144), np.diff(scaled.indptr))] *= 1 - 1e-4
    matrix = admit_matrix(to_device(scaled))
    assert not symmetric_strength(matrix, matrix, 0.25).graph.degrees.any()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(A=patterns(), seed=st.integers(0, 99))
@example(A=star(3000), seed=0)
@example(A=stencil27(6), seed=0)
def test_neighbors_in_a_graph_without_weights_are_strong(to_device, backend, A, seed):
    """Of whatever degrees, and however rows and columns are scaled."""
    graph = sp.csr_matrix(abs(A + A.T) > 0, dtype=float)
    graph.setdiag(0)
    graph.eliminate_zeros()
    scale = sp.diags_array(10 ** np.random.default_rng(seed).uniform(-3, 3, A.shape[0]))
    laplacian = sp.csr_matrix(scale @ (sp.diags_array(np.diff(graph.indptr) + 0.0) - graph) @ scale)
    matrix = admit_matrix(to_device(laplacian)).canonical()
    strong = backend.to_host(symmetric_strength(matrix, matrix, None).graph.degrees)
    np.testing.assert_array_equal(strong, np.diff(graph.indptr))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(n=st.integers(2, 60), degree=st.integers(1, 20), positive=st.floats(0, 1), seed=st.integers(0, 99))
@example(n=60, degree=20, positive=0.3, seed=0)
def test_positive_entries_weaken_the_connections_to_common_neighbors(to_device, backend, n, degree, positive, seed):
    rng = np.random.default_rng(seed)
    A = np.where(rng.random((n, n)) < degree / n, rng.uniform(0.1, 1, (n, n)), 0.0)
    A = np.triu(A * np.where(rng.random((n, n)) < positive, 1.0, -1.0), 1)
    A += A.T + np.diag(rng.uniform(1, 10, n))
    others = A - np.diag(np.diag(A))
    sizes = np.sqrt(np.diag(A) / np.maximum((others != 0).sum(axis=1), 1))
    limit = SHARE_OF_AVERAGE * np.outer(sizes, sizes)
    negative = np.maximum(-others, 0)
    strengths = negative.copy()
    for i, k in np.argwhere((others > 0) & (others >= LEAST_POSITIVE * limit)):
        shares = np.where(negative[i] > 0, negative[k], 0)
        if shares.any():
            strengths[i] -= others[i, k] * shares / shares.sum()
    strengths = np.maximum(strengths, strengths.T)
    assume((abs(strengths - limit) > 1e-9 * limit).all())  # rounding decides for none
    matrix = admit_matrix(to_device(sp.csr_matrix(A))).canonical()
    found = symmetric_strength(matrix, matrix, None)
    columns, indptr = backend.to_host(found.indices), backend.to_host(found.indptr)
    strong = sp.csr_matrix((np.ones(len(columns), bool), columns, indptr), shape=(n, n)).toarray()
    np.testing.assert_array_equal(strong, ((strengths >= limit) & (strengths > 0)) | np.eye(n, dtype=bool))


def test_a_given_limit_falls_from_level_to_level(to_device, monkeypatch):
    limits = []

    def noted(matrix, nodes, theta):
        limits.append(theta)
        return symmetric_strength(matrix, nodes, theta)

    monkeypatch.setitem(STRENGTHS, "symmetric", noted)
    SmoothedAggregation(to_device(grid5(40)), theta=0.2, max_coarse=5)
    assert limits[:3] == [0.2, 0.1, 0.05]


def test_where_coarsening_stalls_all_neighbors_are_strong(to_device):
    """Pairs of nodes with 6 candidates for 3 unknowns each leave as many unknowns as there were."""
    n = 40
    near = sp.diags_array([-np.resize([1.0, 1e-6], n - 1)] * 2, offsets=[-1, 1], shape=(n, n))
    chain = near + sp.diags_array(1e-3 - np.asarray(near.sum(axis=1)).ravel())
    A = sp.csr_matrix(sp.kron(chain, sp.eye_array(3)))
    B = np.random.default_rng(0).uniform(-1, 1, (3 * n, 6))
    sizes = [
        level.A.shape[0] for level in SmoothedAggregation(to_device(A), to_device(B), block_size=3, max_coarse=6).levels
    ]
    assert len(sizes) > 1 and all(coarser <= 0.8 * finer for finer, coarser in pairwise(sizes))


# ---- Levels


@pytest.mark.parametrize("n", [5, 20])
@pytest.mark.parametrize("block_size", [1, 2])
def test_tentative_and_galerkin(to_device, backend, block_size, n):
    """On some aggregates one candidate depends on another."""
    A = sp.csr_matrix(sp.kron(grid5(n), [[2.0, 0.5], [0.5, 3.0]]))
    B = np.random.default_rng(0).uniform(0.5, 1.5, (A.shape[0], 3 if block_size == 2 else 2))
    B[: A.shape[0] // 2, 1] = 2 * B[: A.shape[0] // 2, 0]
    M = SmoothedAggregation(to_device(A), to_device(B), block_size=block_size, max_coarse=10, dtype="float64")
    candidates = B
    for level, coarser in pairwise(M.levels):
        Q, labels, b = backend.to_host(level.T.Q), backend.to_host(level.T.labels), level.interpolation.b
        k = Q.shape[1]
        T = np.zeros((len(Q), level.T.count * k))
        for i in range(len(Q)):
            if labels[i // b] >= 0:
                T[i, labels[i // b] * k : (labels[i // b] + 1) * k] = Q[i]
        coarse = np.linalg.lstsq(T, candidates)[0]
        kept = np.repeat(labels >= 0, b)
        np.testing.assert_allclose((T @ coarse)[kept], candidates[kept], atol=1e-10)
        gram = T.T @ T
        np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-10)
        P, R, fine = (on_host(C, backend).toarray() for C in (level.P, level.R, level.A))
        np.testing.assert_array_equal(R, P.T)
        expected = P.T @ fine @ P
        vanished = np.diag(gram) < 0.5
        np.testing.assert_allclose(
            on_host(coarser.A, backend).toarray(), expected + np.diag(vanished), atol=1e-9 * abs(expected).max()
        )
        # P is T after one Jacobi step with A itself: the filtered matrix is used for a single candidate only. On other
        # aggregates than that of the node it has this or nothing, and P times the candidates is the same.
        A_b = with_largest_eigenvalue(admit_matrix(level.A).canonical(), b)
        weights = backend.to_host(jacobi_weights(A_b))
        smooth = T - OMEGA * weights[:, None] * (fine @ T)
        is_own = np.kron(labels[:, None] == np.arange(level.T.count), np.ones((b, k), bool))
        np.testing.assert_allclose(P[~is_own & (P != 0)], smooth[~is_own & (P != 0)], atol=1e-10)
        if not vanished.any():
            np.testing.assert_allclose((P @ coarse)[kept], (smooth @ coarse)[kept], atol=1e-9)
        candidates = coarse
    assert len(M.levels) > 1 and M.levels[-1].A.shape[0] <= 10


def test_complexities_and_what_is_printed(to_device):
    M = SmoothedAggregation(to_device(poisson(50, 50)))
    unknowns, entries = zip(*((level.A.shape[0], level.A.nnz) for level in M.levels), strict=True)
    assert M.operator_complexity == sum(entries) / entries[0] < 1.8
    assert M.grid_complexity == sum(unknowns) / unknowns[0] < 1.5
    text = str(M).splitlines()
    assert text[0] == "SmoothedAggregation" and text[1] == f"Number of Levels:     {len(M.levels)}"
    assert text[2].split()[-1] == f"{M.operator_complexity:.3f}" and text[3].split()[-1] == f"{M.grid_complexity:.3f}"
    for number, line in enumerate(text[6:]):
        assert line.split()[:3] == [str(number), str(unknowns[number]), str(entries[number])]
    assert text[6].endswith("Chebyshev, degree 2") and text[-1].split()[-1] == "-"
    assert M.nbytes > 0


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(A=patterns(), dtype=st.sampled_from([np.float32, np.float64, np.complex128]))
def test_levels_always_end(to_device, A, dtype):
    A = spd(A, dtype=dtype)
    M = SmoothedAggregation(to_device(A), max_coarse=0, max_levels=30)
    sizes = [level.A.shape[0] for level in M.levels]
    assert all(coarser < finer for finer, coarser in pairwise(sizes))


# ---- The operator


#: The tolerance for comparing results of cycles, by the argument dtype; with None coarse levels are in float32.
ROUNDING = {"float64": 1e-12, None: 1e-5, "float32": 1e-5}


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("cycle", ["V", "W"])
@pytest.mark.parametrize("smoother", SMOOTHERS)
@pytest.mark.parametrize("sweeps", [1, 2])
def test_is_symmetric_positive_definite(to_device, backend, cycle, smoother, sweeps, dtype):
    A = grid5(12)
    sweeping = {"cycle": cycle, "smoother": smoother, "presweeps": sweeps, "postsweeps": sweeps}
    M = SmoothedAggregation(to_device(A), **sweeping, max_coarse=5, dtype=dtype)
    inverse = dense(M, backend)
    assert len(M.levels) >= 3
    np.testing.assert_allclose(inverse, inverse.T, atol=ROUNDING[dtype])
    values = scipy.linalg.eigvals(inverse @ A.toarray()).real
    assert values.min() > 0 and values.max() < 1 + ROUNDING[dtype]  # so that cycles alone converge


@pytest.mark.parametrize("dtype", [None, "complex64", "complex128"])
def test_hermitian(to_device, backend, dtype):
    A = spd(grid5(12), dtype=np.complex128)
    M = SmoothedAggregation(to_device(A), max_coarse=5, dtype=dtype)
    inverse, near = dense(M, backend), 1e-12 if dtype == "complex128" else 1e-5
    np.testing.assert_allclose(inverse, inverse.conj().T, atol=near)
    assert np.linalg.eigvalsh(inverse).min() > 0
    r = np.exp(1j * np.arange(144.0))
    np.testing.assert_allclose(backend.to_host(M.H @ to_device(r)), inverse.conj().T @ r, atol=10 * near)
    np.testing.assert_allclose(backend.to_host(M.T @ to_device(r)), inverse.T @ r, atol=10 * near)
    assert solved(A, to_device)[0].iterations < 20


def test_a_matrix_is_admitted_once(to_device, monkeypatch):
    """In the constructor, and once more for each update."""
    from mcprecond import matrix

    sizes, csr_form = [], matrix.csr_form

    def counted(A, *args, **kwargs):
        sizes.append(A.nnz)
        return csr_form(A, *args, **kwargs)

    monkeypatch.setattr(matrix, "csr_form", counted)
    A = to_device(grid5(40))
    M = SmoothedAggregation(A)
    assert sizes.count(A.nnz) == 1
    M.update(A)
    assert sizes.count(A.nnz) == 2


def test_one_coarse_level_is_solved_exactly(to_device, backend):
    A = grid5(12)
    np.testing.assert_allclose(dense(SmoothedAggregation(to_device(A)), backend) @ A, np.eye(144), atol=1e-10)


@pytest.mark.parametrize("n", [50, 100, 200])
def test_iterations_do_not_grow_in_two_dimensions(to_device, n):
    assert solved(poisson(n, n), to_device)[0].iterations <= 14


@pytest.mark.parametrize("n", [12, 24, 36])
def test_iterations_do_not_grow_in_three_dimensions(to_device, n):
    assert solved(poisson(n, n, n), to_device)[0].iterations <= 12


@pytest.mark.parametrize("name", FAMILIES)
def test_iterations_are_those_of_pyamg(to_device, name):
    """PyAMG with forward sweeps before and backward sweeps after the correction, as here."""
    pyamg = pytest.importorskip("pyamg")
    A = FAMILIES[name]()
    theta = 0.08 if name in ("jumping", "anisotropic") else 0.0
    sweeps = [("gauss_seidel", {"sweep": sweep}) for sweep in ("forward", "backward")]
    peer = pyamg.smoothed_aggregation_solver(
        A, strength=("symmetric", {"theta": theta}), presmoother=sweeps[0], postsmoother=sweeps[1], max_coarse=300
    )
    x = np.random.default_rng(1).uniform(-1, 1, A.shape[0])
    theirs = pcg(A, A @ x, M=peer.aspreconditioner(), rtol=1e-8)
    assert solved(A, to_device, theta=theta)[0].iterations <= 1.2 * theirs.iterations + 1


def stretched(n, ratio):
    """The Laplacian on a grid whose cells grow by a ratio from row to row and from column to column."""
    h = ratio ** np.arange(n + 1.0)
    mass = sp.diags_array((h[:-1] + h[1:]) / 2)
    second = sp.diags_array([-1 / h[1:-1], 1 / h[:-1] + 1 / h[1:], -1 / h[1:-1]], offsets=[-1, 0, 1])
    return sp.csr_matrix(sp.kron(mass, second) + sp.kron(second, mass))


def flat_elements(n, ratio):
    """The Laplacian by bilinear elements that are flat: couplings along them are positive if the ratio is small."""
    stiffness = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    mass = sp.eye_array(n) - stiffness / 6
    return sp.csr_matrix(sp.kron(stiffness, mass) + ratio * sp.kron(mass, stiffness))


def walks(n):
    """Random walks on an image of squares, some pixels of which are given: Grady's segmentation."""
    rng = np.random.default_rng(0)
    image = np.kron(rng.random((n // 16,) * 2), np.ones((16, 16))) + 0.05 * rng.random((n, n))
    steps = [np.exp(-90 * np.diff(image, axis=axis) ** 2) + 1e-6 for axis in (0, 1)]
    down = sp.diags_array(np.append(steps[0].ravel(), np.zeros(n))[: n * n - n], offsets=n, shape=(n * n, n * n))
    right = sp.diags_array(np.pad(steps[1], ((0, 0), (0, 1))).ravel()[:-1], offsets=1, shape=(n * n, n * n))
    weights = down + right
    weights += weights.T
    given = np.zeros(n * n)
    given[rng.integers(0, n * n, 20)] = 1
    return sp.csr_matrix(sp.diags_array(weights.sum(axis=1) + given) - weights)


def in_direction(n, ratio):
    """``-u_xx - ratio u_yy`` on an n x n grid."""
    second, one = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)), sp.eye_array(n)
    return sp.csr_matrix(sp.kron(one, second) + ratio * sp.kron(second, one))


@pytest.mark.parametrize(
    ("make", "most"),
    [
        *((lambda ratio=ratio: in_direction(120, ratio), 17) for ratio in (0.3, 1e-1, 1e-2, 1e-3, 1e-4)),
        (lambda: stretched(120, 1.05), 17),
        (lambda: flat_elements(120, 1e-1), 16),
        (lambda: flat_elements(120, 1e-3), 25),
        (lambda: walks(128), 16),
        (lambda: jumping(128), 20),
        (lambda: slivers(10000, 1.0), 18),
        (lambda: problems.circuit(100), 32),
    ],
)
def test_iterations_where_connections_differ_in_strength(to_device, make, most):
    assert solved(make(), to_device)[0].iterations <= most


@pytest.mark.parametrize("name", ["2d", "3d", "27 points", "fenl", "elasticity", "near"])
def test_no_loss_by_strength_where_connections_are_alike(to_device, name):
    """Time is about that of the iterations with the entries of all levels."""
    options = {}
    if name == "elasticity":
        A, options = problems.elasticity(10), {"B": to_device(rigid_body_modes(cube_of_nodes(10))), "block_size": 3}
    elif name == "fenl":
        A = problems.fenl(16).jacobian(problems.fenl(16).initial())
    else:
        A = in_direction(120, 0.5) if name == "near" else FAMILIES[name]()
    cost = [
        result.iterations * M.operator_complexity
        for result, M in (solved(A, to_device, **given, **options) for given in ({}, {"theta": 0.0}))
    ]
    assert cost[0] <= 1.3 * cost[1]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10)
@given(degree=st.integers(3, 12), seed=st.integers(0, 99))
@example(degree=3, seed=1)
def test_graphs_without_a_geometry_have_sparse_levels(to_device, backend, degree, seed):
    """A smooth prolongator would make them dense: P is the tentative one there. New values need no other pattern."""
    n, rng = 3000, np.random.default_rng(seed)
    edges = sp.random_array((n, n), density=degree / n, rng=rng)
    graph = edges + edges.T
    A = sp.csr_matrix(sp.diags_array(graph.sum(axis=1) + 0.01) - graph)
    M = SmoothedAggregation(to_device(A))
    assert M.operator_complexity < 2.5
    P = M.levels[0].P
    # Vertices without a strong neighbor are in no aggregate.
    assert len(P.indices) <= n - int((graph.sum(axis=1) == 0).sum())
    assert int(P.indices.min()) >= 0 and int(P.indices.max()) < P.shape[1]
    b = backend.xp.asarray(rng.standard_normal(n))
    assert pcg(to_device(A), b, M=M, rtol=1e-8).iterations <= 15
    M.update(to_device(3 * A))
    assert abs(backend.to_host(M @ b) - backend.to_host(SmoothedAggregation(to_device(3 * A)) @ b)).max() == 0


@pytest.mark.parametrize("name", ["2d", "3d", "27 points", "anisotropic", "triangles"])
def test_prolongators_of_meshes_are_smooth(to_device, name):
    M = SmoothedAggregation(to_device(FAMILIES[name]()))
    assert len(M.levels) > 1 and all(level.interpolation.smooths for level in M.levels[:-1])


def test_cycles_alone(to_device, backend):
    A = poisson(60, 60)
    M = SmoothedAggregation(to_device(A))
    b = np.random.default_rng(0).uniform(-1, 1, A.shape[0])
    before = b.copy()
    result = M.solve(to_device(b), rtol=1e-10)
    x, info = result
    assert info == 0 and result.iterations <= 40 and len(result.residuals) == result.iterations + 1
    assert np.linalg.norm(b - A @ backend.to_host(x)) <= 1e-10 * np.linalg.norm(b)
    np.testing.assert_array_equal(b, before)
    again = M.solve(to_device(b), x0=x, rtol=1e-9)
    assert again.iterations == 0
    assert M.solve(to_device(b), maxiter=1).info == 1
    with pytest.raises(ValueError, match=r"b must have shape"):
        M.solve(to_device(b[1:]))


def test_in_the_library_s_solvers(to_device, backend):
    A = poisson(40, 40)
    M, b = SmoothedAggregation(to_device(A)), to_device(np.ones(1600))
    for solver in (backend.linalg.cg, backend.linalg.gmres):
        _, info = solver(to_device(A), b, M=M, maxiter=100)
        assert info == 0


def test_several_columns_and_other_dtypes(to_device, backend):
    A = grid5(20)
    M = SmoothedAggregation(to_device(A), max_coarse=20, dtype="float64")
    R = np.random.default_rng(0).uniform(-1, 1, (400, 3))
    each = np.stack([backend.to_host(M @ to_device(R[:, c].copy())) for c in range(3)], axis=1)
    # On a GPU the kernel for several columns sums the entries of a row in a different order than that for one vector.
    np.testing.assert_allclose(backend.to_host(M @ to_device(R)), each, rtol=0, atol=1e-12)
    both = R[:, 0] + 1j * R[:, 1]
    np.testing.assert_allclose(backend.to_host(M @ to_device(both)), each[:, 0] + 1j * each[:, 1], rtol=0, atol=1e-12)
    result = pcg(to_device(A), to_device(both), M=M, rtol=1e-8)
    assert result.converged and result.iterations < 20


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_single_precision(to_device, dtype):
    A = poisson(80, 80).astype(dtype)
    M = SmoothedAggregation(to_device(A), dtype=np.float32)
    x = np.random.default_rng(1).uniform(-1, 1, A.shape[0]).astype(dtype)
    result = pcg(to_device(A), to_device(A @ x), M=M, rtol=1e-4 if dtype == np.float32 else 1e-8)
    assert result.converged and result.iterations <= 15


# ---- Ranges of numbers


@pytest.mark.parametrize("smoother", SMOOTHERS)
@pytest.mark.parametrize("dtypes", [(np.float64, np.float32), (np.complex128, np.complex64)])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=8)
@given(exponent=st.integers(-46, -30), unit=st.integers(-250, 250), n=st.integers(20, 40))
def test_what_single_precision_has_no_room_for_from_below_is_zero(to_device, smoother, dtypes, exponent, unit, n):
    """A grid whose lines are coupled by less than it has room for, in any unit."""
    A = (in_direction(n, 10.0**exponent) * 2.0**unit).astype(dtypes[0])
    result, M = solved(A, to_device, smoother=smoother, dtype=dtypes[1], max_coarse=30)
    assert result.iterations <= 25 and len(M.levels) > 1


@pytest.mark.parametrize("smoother", SMOOTHERS)
@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("digits", [10, 25, 100])
def test_a_diagonal_of_any_range_will_do(to_device, backend, smoother, dtype, digits):
    """Where numbers come near the ends of the range of a dtype, levels are those of A with a diagonal of about 1."""
    A, rng = poisson(40, 40), np.random.default_rng(0)
    scale = 2.0 ** np.round(np.log2(10.0) * rng.uniform(-digits, digits, 1600))
    scaled = sp.csr_matrix(sp.diags_array(scale) @ A @ sp.diags_array(scale))
    options = {"smoother": smoother, "dtype": dtype, "coloring": "greedy", "max_coarse": 30}
    plain = SmoothedAggregation(to_device(A), **options)
    M = SmoothedAggregation(to_device(scaled), 1 / to_device(scale), **options)
    r = scale * rng.uniform(-1, 1, 1600)
    expected = backend.to_host(plain @ to_device(r / scale))
    found = backend.to_host(M @ to_device(r)) * scale
    if digits == 100 or dtype != "float64":
        np.testing.assert_allclose(found, expected, atol=10 * ROUNDING[dtype] * abs(expected).max())
    assert np.isfinite(found).all() and len(M.levels) > 2
    plain.update(to_device(scaled))
    assert np.isfinite(backend.to_host(plain @ to_device(r))).all()
    M.update(to_device(A))
    M.update(to_device(scaled))
    np.testing.assert_array_equal(backend.to_host(M @ to_device(r)) * scale, found)


@pytest.mark.parametrize("dtype", ROUNDING)
def test_any_unit_of_r_will_do(to_device, backend, dtype):
    A = poisson(40, 40)
    M = SmoothedAggregation(to_device(A), dtype=dtype, max_coarse=30)
    b = A @ np.random.default_rng(0).uniform(-1, 1, 1600)
    z, expected = backend.to_host(M @ to_device(b)), pcg(to_device(A), to_device(b), M=M, rtol=1e-9)
    for exponent in (-900, -100, 100, 900):
        unit = 2.0**exponent
        np.testing.assert_array_equal(backend.to_host(M @ to_device(unit * b)), unit * z)
        result = pcg(to_device(A), to_device(unit * b), M=M, rtol=1e-9)
        assert result.converged and result.iterations == expected.iterations
        assert M.solve(to_device(unit * b), rtol=1e-9).converged
        matrix = to_device(A * unit)
        other = SmoothedAggregation(matrix, dtype=dtype, max_coarse=30)
        for power in (1.0, unit):
            assert pcg(matrix, to_device(power * b), M=other, rtol=1e-9).iterations == expected.iterations


@pytest.mark.parametrize("penalty", [1e10, 1e30, 1e100, 1e300])
def test_large_numbers_on_the_diagonal(to_device, penalty):
    """As they stand for Dirichlet conditions."""
    A, b = grid5(30).tolil(), np.random.default_rng(0).uniform(-1, 1, 900)
    for row in (0, 37, 250):
        A[row, row] = penalty
    A = to_device(A.tocsr())
    iterations = {}
    for dtype in ("float64", None):
        result = pcg(A, to_device(b), M=SmoothedAggregation(A, max_coarse=20, dtype=dtype), rtol=1e-8)
        assert result.converged
        iterations[dtype] = result.iterations
    assert iterations[None] <= iterations["float64"] + 1 <= 15


@pytest.mark.parametrize("name", [*FAMILIES, "stretched", "nearly singular", "singular", "elasticity", "circuit"])
def test_single_precision_costs_no_iterations(to_device, name):
    options = {}
    if name == "elasticity":
        A, options = problems.elasticity(10), {"B": to_device(rigid_body_modes(cube_of_nodes(10))), "block_size": 3}
    elif name in ("nearly singular", "singular"):
        A = poisson(200, 200)
        shift = 0.0 if name == "singular" else 1e-12
        A = sp.csr_matrix(A - sp.diags_array(np.asarray(A.sum(axis=1)).ravel() - shift))
    else:
        more = {"stretched": lambda: stretched(120, 1.2), "circuit": lambda: problems.circuit(100)}
        A = (FAMILIES | more)[name]()
    for rtol in (1e-8, 1e-12):
        iterations = {dtype: solved(A, to_device, rtol, dtype=dtype, **options)[0].iterations for dtype in ROUNDING}
        assert max(iterations.values()) <= iterations["float64"] + max(1, iterations["float64"] // 50)


def test_which_levels_have_single_precision(to_device):
    A = to_device(poisson(60, 60))
    of = {dtype: SmoothedAggregation(A, dtype=dtype, max_coarse=50) for dtype in ROUNDING}
    dtypes = {dtype: [str(level.dtype) for level in M.levels] for dtype, M in of.items()}
    assert dtypes["float64"] == ["float64"] * 4
    assert dtypes[None] == ["float64", "float32", "float32", "float64"]
    assert dtypes["float32"] == ["float32", "float32", "float32", "float64"]
    assert of["float32"].nbytes <= of[None].nbytes < of["float64"].nbytes
    assert [of[dtype].levels[0].smoother.A.values.dtype for dtype in (None, "float32")] == [np.float32] * 2
    for M in of.values():
        finest, *coarser, coarsest = M.levels
        assert M.dtype == finest.A.dtype == coarsest.A.dtype == np.float64
        assert all(level.A.dtype == level.stored for level in coarser)
        assert all(level.P.dtype == level.R.dtype == level.prolongation.values.dtype for level in M.levels[:-1])
    by_function = SmoothedAggregation(A, smoother=MulticolorSGS, max_coarse=50)
    assert all(level.dtype == np.float64 for level in by_function.levels)


@pytest.mark.parametrize("exponent", [4, 8, 12])
def test_high_contrasts_keep_the_dtype_of_A(to_device, exponent):
    cells = np.random.default_rng(0).integers(0, 2, (60, 60))
    A = sp.csr_matrix(diffusion(cells.shape, 10.0 ** (exponent * cells), (1, 1)))
    by_default, narrow, wide = (
        SmoothedAggregation(to_device(A), dtype=dtype) for dtype in (None, "float32", "float64")
    )
    for level, expected in zip(by_default.levels, (narrow if exponent == 4 else wide).levels, strict=True):
        assert level.stored == expected.stored
    iterations = [solved(A, to_device, 1e-8, dtype=dtype)[0].iterations for dtype in (None, "float64")]
    assert iterations[0] <= 1.2 * iterations[1]


@pytest.mark.parametrize("smoother", SMOOTHERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=8)
@given(share=st.floats(-1, 1), cycle=st.sampled_from("VWK"))
def test_any_unit_of_A_will_do(to_device, backend, smoother, dtype, share, cycle):
    A = poisson(20, 20).astype(dtype)
    unit = int(share * (np.finfo(dtype).maxexp - 6))
    options = {"smoother": smoother, "cycle": cycle, "max_coarse": 20}
    scaled = A * A.data.real.dtype.type(2.0**unit)
    M, other = (SmoothedAggregation(to_device(each), **options) for each in (A, scaled))
    r = to_device(np.random.default_rng(0).uniform(-1, 1, 400).astype(dtype))
    expected = backend.to_host(M @ r).astype(np.complex128 if dtype == np.complex128 else np.float64)
    near = max(1e4 * float(np.finfo(dtype).eps), 1e2 * float(np.finfo(M.narrowest).eps))
    denormal = float(np.finfo(dtype).tiny) * 2.0**unit  # is zero to CuPy's kernels
    np.testing.assert_allclose(
        backend.to_host(other @ r) * 2.0**unit, expected, rtol=near, atol=near * abs(expected).max() + denormal
    )
    b = to_device(scaled @ backend.to_host(r))
    assert other.solve(b, rtol=1e-3).converged
    assert pcg(to_device(scaled), b, M=other, rtol=1e-3).converged
    M.update(to_device(scaled))
    np.testing.assert_array_equal(backend.to_host(M @ r), backend.to_host(other @ r))


@pytest.mark.parametrize("smoother", SMOOTHERS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=8)
@given(shift=st.floats(0.01, 3.9), block_size=st.sampled_from([1, 2]), scale=st.sampled_from([1e-300, 1.0, 1e300]))
def test_an_indefinite_matrix_is_refused_or_served(to_device, backend, smoother, shift, block_size, scale):
    """Helmholtz' equation: the diagonal of A is positive, that of a coarse level may not be."""
    A = sp.csr_matrix(sp.kron(grid5(24) - shift * sp.eye_array(576), sp.eye_array(block_size))) * scale
    message = ""
    try:
        M = SmoothedAggregation(to_device(A), block_size=block_size, smoother=smoother, max_coarse=10)
        assert np.isfinite(backend.to_host(M @ to_device(np.ones(A.shape[0])))).all()
    except ValueError as error:
        message = str(error)
    assert not message or "not positive definite" in message or "is singular" in message


def test_the_level_that_is_not_positive_is_named(to_device):
    with pytest.raises(ValueError, match=r"level 1 has -.* in row \d+, so A is not positive definite; use minres"):
        SmoothedAggregation(to_device(sp.csr_matrix(grid5(30) - 3 * sp.eye_array(900))), max_coarse=300)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pieces_that_are_singular_for_themselves(to_device, dtype):
    """With Neumann conditions each: at last an unknown of a coarse level stands for the constants on a piece."""
    sizes = [3, 5, 8, 13]
    pieces = [sp.csr_matrix(grid5(n) - sp.diags_array(np.asarray(grid5(n).sum(axis=1)).ravel())) for n in sizes]
    A = sp.csr_matrix(sp.block_diag([*pieces, grid5(20)])).astype(dtype)
    M = SmoothedAggregation(to_device(A), max_coarse=0)
    x = np.random.default_rng(1).uniform(-1, 1, A.shape[0]).astype(dtype)
    result = pcg(to_device(A), to_device(A @ x), M=M, rtol=1e-4)
    assert result.converged and result.iterations <= 12


# ---- K cycles


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 99), n=st.sampled_from([2, 7, 300]))
def test_two_steps_are_the_best_in_their_plane(to_device, backend, dtype, seed, n):
    """The residual is orthogonal to both directions; a second one that is close to the first would be left out."""
    rng = np.random.default_rng(seed)
    b, c, d = (np.exp(2j * np.pi * rng.random(n)) if dtype == np.complex128 else rng.normal(size=n) for _ in range(3))
    A = spd(grid5(20)[:n, :n], dtype=dtype).toarray()
    b, c, d = (v.astype(dtype) for v in (b, c, d))
    assume(abs(np.vdot(c, d)) < 0.999 * np.linalg.norm(c) * np.linalg.norm(d))
    own, rest, x = TwoSteps(n, np.dtype(dtype), backend), to_device(b - A @ c), to_device(c.copy())
    product = to_device(b.copy())
    own.first(product, x, rest)
    left = backend.to_host(rest)
    own.second(product, rest, to_device(d), to_device(left - A @ d), x)
    residual, tolerance = b - A @ backend.to_host(x), 1e4 * np.finfo(dtype).eps
    for direction in (c, d):
        assert abs(np.vdot(direction, residual).real) <= tolerance * np.linalg.norm(direction) * np.linalg.norm(b)


def test_a_second_step_that_says_nothing_new_is_left_out(to_device, backend):
    A = grid5(6)
    c = np.random.default_rng(0).uniform(1, 2, 36)
    b = A @ c + 1e-3
    own, rest, x, product = (
        TwoSteps(36, b.dtype, backend),
        to_device(b - A @ c),
        to_device(c.copy()),
        to_device(b.copy()),
    )
    own.first(product, x, rest)
    own.second(product, rest, to_device(2 * c), to_device(backend.to_host(rest) - A @ (2 * c)), x)
    np.testing.assert_allclose(backend.to_host(x), (c @ b) / (c @ (A @ c)) * c, rtol=1e-12)
    for nothing in (np.zeros(36), np.full(36, 1e-200)):  # squares vanish
        own.first(to_device(nothing.copy()), to_device(nothing.copy()), to_device(nothing.copy()))
        assert np.isfinite(backend.to_host(own.scalars[:, 1:])).all()


def flexible(A, b, M, count):
    """The norms of the residuals of flexible CG."""
    r, p, before, norms = b.copy(), 0, None, [np.linalg.norm(b)]
    for _ in range(count):
        z = M(r)
        p = z + (0 if before is None else z @ (r - before[0]) / (before[0] @ before[1]) * p)
        alpha, before = r @ z / (p @ (A @ p)), (r, z)
        r = r - alpha * (A @ p)
        norms.append(np.linalg.norm(r))
    return np.array(norms)


@pytest.mark.parametrize("smoother", SMOOTHERS)
def test_k_cycles_in_flexible_cg(to_device, backend, smoother):
    A = poisson(40, 40)
    M = SmoothedAggregation(to_device(A), cycle="K", smoother=smoother, max_coarse=5)
    assert len(M.levels) >= 4
    b = A @ np.random.default_rng(0).uniform(-1, 1, 1600)
    result = pcg(to_device(A), to_device(b), M=M, rtol=1e-8)
    assert result.converged
    expected = flexible(A, b, lambda r: backend.to_host(M @ to_device(r)), result.iterations)
    np.testing.assert_allclose(result.residuals, expected, rtol=1e-3)
    # Not linear, but what is twice as large gives twice as much.
    np.testing.assert_allclose(backend.to_host(M @ to_device(2 * b)), 2 * backend.to_host(M @ to_device(b)), rtol=1e-12)
    with pytest.raises(TypeError, match="not linear"):
        M.rmatvec(to_device(b))


@pytest.mark.parametrize("name", FAMILIES)
def test_k_cycles_need_about_as_few_iterations(to_device, name):
    """With aggregates along the strong connections, that is: for the jumps theta = 0 gives a poor hierarchy, on which
    the weights depend much on r, and a K cycle takes more iterations than a V cycle."""
    A = FAMILIES[name]()
    iterations = {cycle: solved(A, to_device, cycle=cycle, max_coarse=20)[0].iterations for cycle in "VWK"}
    assert iterations["K"] <= min(iterations["V"], iterations["W"]) + 1


@given(entries=st.lists(st.integers(0, 10**6), min_size=1, max_size=30))
@example(entries=[1000] * 20)
@example(entries=[4**level for level in range(12, 0, -1)])
def test_cycles_read_a_few_times_what_a_v_cycle_reads(entries):
    twice = corrected_twice(entries)
    visits = np.cumprod(1 + np.array(twice, object))
    assert sum(visits * entries) <= MOST_WORK * sum(entries)
    assert not twice[0] and not twice[-1]
    if all(4 * coarser <= finer for finer, coarser in pairwise(entries)):
        assert all(twice[1:-1])


@pytest.mark.parametrize("cycle", ["W", "K"])
def test_levels_that_do_not_shrink_are_visited_seldom(to_device, backend, cycle, monkeypatch):
    """With every level corrected twice the coarsest of these 20 would be visited 262,144 times."""
    pyamg = pytest.importorskip("pyamg")
    ml, seen = pyamg.smoothed_aggregation_solver(grid5(8), max_levels=1), []
    ml.levels = [SimpleNamespace(A=grid5(8), P=sp.eye_array(64), R=sp.eye_array(64)) for _ in range(20)]
    M = from_pyamg(ml, cycle=cycle, device=backend.name)
    solve = Multigrid._solve_coarsest
    monkeypatch.setattr(Multigrid, "_solve_coarsest", lambda *arguments: seen.append(1) or solve(*arguments))
    own, r = M.new_state(), to_device(np.ones(64))
    z = backend.xp.empty_like(r)
    M.enqueue(own, r, z)
    assert 1 < len(seen) <= 80 and np.isfinite(backend.to_host(z)).all()


def test_k_cycles_alone_and_of_other_dtypes(to_device):
    A = poisson(60, 60)
    b = np.random.default_rng(0).uniform(-1, 1, A.shape[0])
    count = {}
    for cycle in "VK":
        count[cycle] = SmoothedAggregation(to_device(A), cycle=cycle, max_coarse=20).solve(to_device(b), rtol=1e-8)
        assert count[cycle].converged
    assert count["K"].iterations <= count["V"].iterations
    assert solved(spd(grid5(30), dtype=np.complex128), to_device, cycle="K", max_coarse=5)[0].iterations < 20
    single = A.astype(np.float32)
    M = SmoothedAggregation(to_device(single), cycle="K", max_coarse=20)
    result = pcg(to_device(single), to_device(single @ b.astype(np.float32)), M=M, rtol=1e-4)
    assert result.converged and result.iterations <= 10
    # A real M for a complex system.
    assert pcg(to_device(A), to_device(b + 1j * b[::-1]), M=M, rtol=1e-6).converged


# ---- The parts of the setup, by their definitions


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pattern=patterns(),
    seed=st.integers(0, 99),
    share=st.floats(0, 1),
    dtype=st.sampled_from([np.float64, np.complex128]),
)
def test_prolongators_are_smoothed_by_the_filtered_matrix(to_device, backend, pattern, seed, share, dtype):
    """Off the diagonal it has the strong entries of A and no others, and times B it is A B."""
    A, rng = spd(pattern, seed, dtype=dtype), np.random.default_rng(seed)
    n, B = A.shape[0], rng.uniform(0.5, 2, (A.shape[0], 1)).astype(dtype)
    entries = sp.coo_array(A)
    strong = (rng.uniform(size=A.nnz) < share) | (entries.row == entries.col)
    kept = sp.csr_array((entries.data[strong], (entries.row[strong], entries.col[strong])), shape=A.shape)
    F = kept.toarray()
    F[np.diag_indices(n)] += ((A @ B - kept @ B) / B).reshape(-1)
    np.testing.assert_allclose(F @ B, A @ B, atol=1e-13 * abs(A).max())
    count = int(rng.integers(1, n + 1))
    labels, Q = rng.integers(-1, count, n).astype(np.int32), rng.uniform(0.5, 2, (n, 1)).astype(dtype)
    T = Q * (labels[:, None] == np.arange(count))
    smooth = T - OMEGA / abs(F).sum(axis=1)[:, None] * (F @ T)
    matrix = admit_matrix(to_device(A)).canonical()
    C = Connections(Graph.of(matrix), to_device(kept.indptr), to_device(kept.indices))
    tentative = Tentative(to_device(labels), count, to_device(Q), to_device(B[:count]), None)
    P = SmoothedInterpolation(matrix, matrix, C, tentative, to_device(B), in_all=lambda entries: -1.0)
    np.testing.assert_allclose(on_host(P.csr, backend).toarray(), smooth, atol=1e-12)
    assert P.longest_row == np.diff(backend.to_host(P.csr.indptr)).max()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    nodes=st.integers(1, 30),
    count=st.integers(1, 8),
    b=st.integers(1, 3),
    k=st.integers(1, 4),
    dtype=st.sampled_from([np.float64, np.complex128]),
    seed=st.integers(0, 99),
)
def test_tentative_prolongators_reproduce_the_candidates(to_device, backend, nodes, count, b, k, dtype, seed):
    """T has orthonormal columns, but for those that stand for nothing, and T B_c = B in all aggregates."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, count + 1, nodes).astype(np.int32)  # the last one is none
    B = rng.uniform(-1, 1, (nodes * b, k)).astype(dtype)
    if np.dtype(dtype).kind == "c":
        B += 1j * rng.uniform(-1, 1, B.shape)
    found = fit_tentative(to_device(np.where(labels < count, labels, -1)), count, to_device(B), b, backend)
    Q, coarse, vanished = found.Q, found.B, found.vanished
    T, kept = np.zeros((nodes * b, count, k), dtype), np.repeat(labels < count, b)
    T[np.flatnonzero(kept), np.repeat(labels, b)[kept]] = backend.to_host(Q)[kept]
    T = T.reshape(nodes * b, count * k)
    stands = np.ones(count * k)
    if vanished is not None:
        stands[backend.to_host(vanished)] = 0
    np.testing.assert_allclose(T.conj().T @ T, np.diag(stands), atol=1e-12)
    np.testing.assert_allclose(T @ backend.to_host(coarse), np.where(kept[:, None], B, 0), atol=1e-12)
    sizes = b * np.bincount(labels, minlength=count)[:count]
    np.testing.assert_array_equal(stands.reshape(count, k).sum(axis=1), np.minimum(sizes, k))


@pytest.mark.parametrize("A", [grid5(3), star(6), stencil27(2)], ids=["grid", "star", "stencil"])
def test_every_entry_without_one_across_is_named(to_device, A):
    """All entries off the diagonal are equal, so that whatever is read in place of the missing one looks right."""
    A = sp.coo_array(A)
    off = A.row != A.col
    rows, columns = (np.append(ends[off], np.arange(A.shape[0])) for ends in (A.row, A.col))
    values = np.append(-np.ones(off.sum()), np.full(A.shape[0], 100.0))
    refuse_unfit(admit_matrix(to_device(sp.csr_matrix((values, (rows, columns)), shape=A.shape))).canonical())
    for k in range(off.sum()):
        others = np.arange(len(values)) != k
        B = sp.csr_matrix((values[others], (rows[others], columns[others])), shape=A.shape)
        with pytest.raises(ValueError, match=f"holds -1.0 in row {columns[k]}, column {rows[k]}, and something else"):
            refuse_unfit(admit_matrix(to_device(B)).canonical())


@pytest.mark.parametrize("n", [8, 40])  # a dense level alone, and several levels
@pytest.mark.parametrize("build", [SmoothedAggregation, ClassicalAMG])
def test_indices_of_64_bits(n, build, backend, to_device):
    A, r = to_device(grid5(n)), to_device(np.random.default_rng(0).uniform(-1, 1, n * n))
    wide = A.copy()
    wide.indptr, wide.indices = A.indptr.astype(np.int64), A.indices.astype(np.int64)
    x, same = (backend.to_host(build(matrix) @ r) for matrix in (A, wide))
    np.testing.assert_array_equal(x, same)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pattern=patterns(), data=st.data())
def test_places_of_diagonal_entries(to_device, backend, pattern, data):
    A = sp.csr_matrix(pattern + sp.eye_array(pattern.shape[0]))
    A.sum_duplicates()
    wanted = data.draw(st.sets(st.integers(0, A.shape[0] - 1)))
    rows = to_device(np.array(sorted(wanted), np.int64))
    found = backend.to_host(diagonal_places(to_device(A), rows, backend))
    expected = [k for k, (i, j) in enumerate(zip(*sp.coo_array(A).coords, strict=True)) if i == j and i in wanted]
    np.testing.assert_array_equal(found, expected)


@given(least=st.sampled_from([1e-50, 1e-40]), sign=st.sampled_from([-1, 1]))
def test_what_vanishes_in_single_precision_is_zero_off_the_diagonal_and_refused_on_it(least, sign):
    A = sp.csr_matrix(np.array([[2.0, sign * least], [sign * least, 2.0]]))
    narrowing = Narrowing(get_backend("cpu"), "so")
    np.testing.assert_array_equal(narrowing.narrow(admit_matrix(A), np.float32, 3).csr.toarray(), 2 * np.eye(2))
    narrowing.refuse_lost()
    A[1, 1] = least
    narrowing.narrow(admit_matrix(A), np.float32, 4)
    with pytest.raises(ValueError, match=r"level 4 holds .* in row 1, column 1, which float32 has no room for, so"):
        narrowing.refuse_lost()


@pytest.mark.parametrize("bits", [1, 2, 5, 8, 11])
def test_the_random_order_is_the_inverse_of_its_hash(bits):
    """The hash that a GPU compares is written here a second time, from aggregation.cu."""
    mask, half, found = (1 << bits) - 1, (bits + 1) // 2, []
    for v in range(1 << bits):
        place = v ^ (v >> half)
        place = (place * SPREAD[0]) & mask
        place ^= place >> half
        place = (place * SPREAD[1]) & mask
        found.append(vertex_at(place ^ (place >> half), bits))
    assert found == list(range(1 << bits))


def test_levels_and_transfers_of_a_small_hierarchy_in_two_dtypes(to_device, backend):
    """r and z may have another dtype than the vectors of the finest level; transfers change from dtype to dtype."""
    A, R = to_device(poisson(8, 8)), to_device(np.random.default_rng(0).uniform(-1, 1, (64, 2)))
    M = SmoothedAggregation(A, max_coarse=20)
    narrow = SmoothedAggregation(A, max_coarse=20, dtype="float32")
    np.testing.assert_allclose(backend.to_host(narrow @ R), backend.to_host(M @ R), atol=1e-5)
    for hierarchy in (M, narrow):
        for level, coarser in pairwise(hierarchy.levels):
            least = min(level.dtype, coarser.dtype, key=lambda dtype: np.dtype(dtype).itemsize)
            assert (level.prolongation.dtype, level.restriction.dtype) == (level.dtype, coarser.dtype)
            assert level.prolongation.values.dtype == level.restriction.values.dtype == least


@pytest.mark.parametrize("exponent", [-600, 600])
@pytest.mark.parametrize("smoother", ["chebyshev", "gauss_seidel"])
def test_a_unit_of_A_far_from_one_changes_no_digit(to_device, backend, smoother, exponent):
    """A power of four, by half of which the levels are scaled."""
    A, r = poisson(8, 8), to_device(np.random.default_rng(0).uniform(-1, 1, 64))
    M, other = (
        SmoothedAggregation(to_device(unit * A), max_coarse=20, smoother=smoother) for unit in (1.0, 2.0**exponent)
    )
    np.testing.assert_allclose(backend.to_host(other @ r), 2.0**-exponent * backend.to_host(M @ r), rtol=1e-4)


# ---- Elasticity


def cube_of_nodes(n):
    """The coordinates of the nodes of `problems.elasticity`."""
    z, y, x = np.meshgrid(*[np.linspace(0, 1, n)] * 3, indexing="ij")
    return np.stack([x.ravel(), y.ravel(), z.ravel()], axis=1)


@pytest.mark.parametrize("d", [2, 3])
def test_rigid_body_modes_have_no_strain(to_device, backend, d):
    """Distances between nodes stay, to first order."""
    X = np.random.default_rng(0).uniform(3, 5, (20, d))
    B = backend.to_host(rigid_body_modes(to_device(X)))
    assert B.shape == (20 * d, 3 if d == 2 else 6) and np.linalg.matrix_rank(B) == B.shape[1]
    for mode in B.T:
        u = mode.reshape(20, d)
        stretching = np.einsum("ijc,ijc->ij", u[:, None] - u[None], X[:, None] - X[None])
        np.testing.assert_allclose(stretching, 0, atol=1e-12)
    assert abs(B).max(axis=0).min() > 0.3 and abs(B).max() <= 1


@pytest.mark.parametrize("coordinates", [np.ones(3), np.ones((3, 4)), np.full((3, 2), np.nan)])
def test_bad_coordinates(to_device, coordinates):
    with pytest.raises(ValueError, match="coordinates"):
        rigid_body_modes(to_device(coordinates))


@pytest.mark.parametrize("n", [8, 14])
def test_rigid_body_modes_beat_one_level_and_translations(to_device, n):
    A, B = problems.elasticity(n), rigid_body_modes(cube_of_nodes(n))
    result, M = solved(A, to_device, B=to_device(B), block_size=3)
    with_rotations = result.iterations
    without = solved(A, to_device, block_size=3)[0].iterations
    x = np.random.default_rng(1).uniform(-1, 1, A.shape[0])
    one_level = pcg(to_device(A), to_device(A @ x), M=MulticolorSGS(to_device(A), block_size=3), rtol=1e-8).iterations
    assert with_rotations <= 13 and with_rotations < without < one_level
    assert M.operator_complexity <= 1.3


def elastic(d, n, moduli=1.0):
    """A body of n^d nodes, clamped on one side, in plane strain if d is 2, whose elements have these moduli; and B."""
    K = element_matrix(1 / (n - 1), "hexahedra", 1.0, 0.3)
    if d == 2:  # displacements that do not depend on z
        K = K.reshape(2, 4, 3, 2, 4, 3).sum(axis=(0, 3))[:, :2, :, :2]
    size, nodes = d * 2**d, np.arange(n**d).reshape((n,) * d)
    corners = [nodes[tuple(slice(c >> a & 1, n - 1 + (c >> a & 1)) for a in reversed(range(d)))] for c in range(2**d)]
    rows = (d * np.stack(corners, axis=-1).reshape(-1, 2**d, 1) + np.arange(d)).reshape(-1, size)
    values = np.broadcast_to(moduli, (n - 1,) * d).reshape(-1, 1, 1) * K.reshape(size, size)
    places = np.repeat(rows, size, axis=1).ravel(), np.tile(rows, size).ravel()
    is_clamped = (np.arange(d * n**d) < d * n ** (d - 1)).astype(float)
    free = sp.diags_array(1 - is_clamped)
    A = sp.csr_matrix(free @ sp.coo_array((values.ravel(), places)).tocsr() @ free + sp.diags_array(is_clamped))
    X = np.stack(np.meshgrid(*[np.linspace(0, 1, n)] * d, indexing="ij")[::-1], axis=-1).reshape(-1, d)
    return A, rigid_body_modes(X)


def checkers(n):
    """Moduli of 1 and 1000 in cubes of four elements."""
    x = np.arange(n - 1) // 4
    return np.where((x + x[:, None] + x[:, None, None]) % 2, 1e3, 1.0)


@pytest.mark.parametrize(
    ("d", "n", "moduli", "iterations", "complexity"),
    [(3, 12, 1.0, 13, 1.4), (3, 20, 1.0, 13, 1.4), (3, 17, checkers(17), 18, 1.65), (2, 80, 1.0, 12, 1.8)],
    ids=["cube", "larger cube", "stiff cubes", "plate"],
)
def test_iterations_on_elastic_bodies(to_device, d, n, moduli, iterations, complexity):
    A, B = elastic(d, n, moduli)
    result, M = solved(A, to_device, B=to_device(B), block_size=d)
    assert result.iterations <= iterations and M.operator_complexity <= complexity


def test_the_elastic_body_is_that_of_the_problems():
    difference = elastic(3, 5)[0] - problems.elasticity(5)
    assert abs(difference).max() <= 1e-12


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_blocks_of_main_aggregates_keep_the_candidates(to_device, backend, dtype):
    """P times the coarse candidates is B - omega D A B, as if no block were left out; after an update, too."""
    (A, B), rng = elastic(3, 9), np.random.default_rng(0)
    turn = sp.diags_array(np.exp(1j * rng.uniform(0, 6, A.shape[0])) if dtype == np.complex128 else np.ones(A.shape[0]))
    scale = sp.diags_array(rng.uniform(1, 2, A.shape[0]))
    A = sp.csr_matrix(turn @ A @ turn.conj()).astype(dtype)
    other = sp.csr_matrix(scale @ A @ scale)
    M = SmoothedAggregation(to_device(A), to_device((turn @ B).astype(dtype)), block_size=3, max_coarse=10, dtype=dtype)
    B = backend.to_host(M._B)  # in other units
    for C in (A, other):
        M.update(to_device(C))
        level = M.levels[0]
        of_A = with_largest_eigenvalue(admit_matrix(to_device(C)).canonical(), 3)
        weights = backend.to_host(jacobi_weights(of_A))
        P, coarse = on_host(level.P, backend), backend.to_host(level.T.B)
        assert level.interpolation.moves and level.T.vanished is None
        inside = np.repeat(backend.to_host(level.T.labels) >= 0, 3)
        smooth = B - OMEGA * weights[:, None] * (C @ B)
        np.testing.assert_allclose((P @ coarse)[inside], smooth[inside], atol=1e-11)
        blocks = len(level.interpolation.pattern[1]) / (A.shape[0] // 3)
        assert 1.5 <= blocks <= 4


def test_nodes_without_coupled_unknowns_take_as_many_iterations_as_one_unknown(to_device):
    """Rotated anisotropy, of two alike systems."""
    A = anisotropic(100)
    alone = solved(A, to_device)[0].iterations
    assert solved(sp.csr_matrix(sp.kron(A, sp.eye_array(2))), to_device, block_size=2)[0].iterations <= alone + 3


# ---- The largest eigenvalue


@pytest.mark.parametrize("build", [lambda: spd(grid5(30), 3), lambda: problems.laplacian((40, 40))])
def test_residuals_of_conjugate_gradients_follow_from_lanczos(build, to_device):
    A = sp.csr_matrix(build())
    diagonal, steps = A.diagonal(), 8
    first = signs(len(diagonal), 1, get_backend("cpu")) * (0.5 + np.arange(len(diagonal)) * GOLDEN % 1)
    b = first * np.sqrt(diagonal)  # the residual whose preconditioned form the method begins with
    x = scipy.sparse.linalg.cg(A, b, rtol=0, maxiter=steps, M=sp.diags_array(1 / diagonal))[0]
    norms = [np.linalg.norm(r / np.sqrt(diagonal)) for r in (b - A @ x, b)]
    found = fall_of_residual(admit_matrix(to_device(A), floats=True, finite=True).canonical(), steps)
    assert found == pytest.approx(norms[0] / norms[1], rel=1e-6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(A=patterns(), dtype=st.sampled_from([np.float32, np.float64, np.complex128]), seed=st.integers(0, 99))
@example(A=grid5(40), dtype=np.float64, seed=0)
@example(A=sp.csr_matrix((1, 1)), dtype=np.float64, seed=0)
def test_the_largest_eigenvalue_is_bounded(to_device, A, dtype, seed):
    """By what is expected of it, and not by much more."""
    A = spd(A, seed=seed, dtype=dtype)
    found = largest_ritz_value(admit_matrix(to_device(A)).canonical())
    root = sp.diags_array(1 / np.sqrt(A.diagonal().real.astype(np.float64)))
    largest = np.linalg.eigvalsh((root @ A @ root).toarray()).max()
    assert largest / SAFETY <= found <= largest * (1 + 100 * float(np.finfo(dtype).eps) ** 0.5)


def test_one_large_eigenvalue_among_many_is_found(to_device):
    """A hundred thousand rows with eigenvalues up to 1.9, and two rows with one of 1.99."""
    n, pair = 100_000, sp.csr_matrix([[1.0, 0.999], [0.999, 1.0]])
    A = sp.csr_matrix(sp.block_diag((sp.diags_array([-0.45, 1.0, -0.45], offsets=[-1, 0, 1], shape=(n, n)), pair)))
    assert largest_ritz_value(admit_matrix(to_device(A)).canonical()) * SAFETY >= 1.999


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=8)
@given(seed=st.integers(0, 99), k=st.integers(0, 3), dtype=st.sampled_from([np.int32, np.float32, np.float64]))
def test_candidates_from_the_host_are_those_of_the_device(to_device, backend, seed, k, dtype):
    """B may be NumPy's array wherever A is, and where the cycles run: k = 0 is a vector."""
    A = grid5(20)
    B = np.random.default_rng(seed).integers(1, 9, (400, k) if k else 400).astype(dtype)
    levels = [SmoothedAggregation(to_device(A), B, max_coarse=20).levels]
    levels.append(SmoothedAggregation(A, B, max_coarse=20, device=backend.name).levels)
    for level, *others in zip(
        SmoothedAggregation(to_device(A), to_device(B), max_coarse=20).levels, *levels, strict=True
    ):
        for other in others:
            np.testing.assert_array_equal(on_host(other.A, backend).toarray(), on_host(level.A, backend).toarray())


def test_candidates_on_the_gpu_do_not_come_to_the_cpu(monkeypatch):
    monkeypatch.setattr("mcprecond.multigrid.smoothed_aggregation.backend_of", lambda B: SimpleNamespace(name="gpu"))
    with pytest.raises(TypeError, match=r"B is on the gpu .* cupy.asnumpy"):
        SmoothedAggregation(grid5(10), np.ones(100))


@pytest.mark.parametrize("smoother", SMOOTHERS)
def test_every_smoother_serves(to_device, smoother):
    assert solved(poisson(80, 80), to_device, smoother=smoother)[0].iterations <= 20
    A = problems.elasticity(8)
    B = to_device(rigid_body_modes(cube_of_nodes(8)))
    assert solved(A, to_device, B=B, block_size=3, smoother=smoother, max_coarse=50)[0].iterations <= 25


# ---- New values


@pytest.mark.parametrize("block_size", [1, 3])
def test_update_equals_a_fresh_build(to_device, backend, block_size):
    if block_size == 1:
        A, options = poisson(40, 40), {}
        scale = sp.diags_array(np.random.default_rng(0).uniform(1, 2, 1600))
        other = sp.csr_matrix(scale @ A @ scale)
    else:
        A, options = problems.elasticity(6), {"block_size": 3, "max_coarse": 30}
        scale, other = np.repeat(np.random.default_rng(0).uniform(1, 2, 216), 3), A.copy()
        other.data = A.data * scale[A.indices] * np.repeat(scale, np.diff(A.indptr))
    M = SmoothedAggregation(to_device(A), coloring="greedy", **options)
    fresh = SmoothedAggregation(to_device(other), coloring="greedy", **options)
    before = dense(M, backend)
    M.update(to_device(other))
    np.testing.assert_array_equal(dense(M, backend), dense(fresh, backend))
    M.update(to_device(A))
    np.testing.assert_array_equal(dense(M, backend), before)


def test_update_refuses_another_pattern_and_changes_nothing(to_device, backend):
    A = poisson(9, 9)
    M = SmoothedAggregation(to_device(A), max_coarse=20)
    before = dense(M, backend)
    other = A.tolil()
    other[0, 5] = other[5, 0] = -1e-3
    with pytest.raises(PatternChangedError, match="in row 0"):
        M.update(to_device(other.tocsr()))
    with pytest.raises(ValueError, match="shape"):
        M.update(to_device(poisson(9, 8)))
    with pytest.raises(ValueError, match=r"dtype float64 and on the .* as before, got .* dtype float32"):
        M.update(to_device(A.astype(np.float32)))
    skew = A.copy()
    skew.data[1] *= 2
    with pytest.raises(ValueError, match="not symmetric"):
        M.update(to_device(skew))
    np.testing.assert_array_equal(dense(M, backend), before)


def bits_of(M, backend):
    """A cycle, a few of them, and the matrices of all levels."""
    b = backend.xp.asarray(np.random.default_rng(0).uniform(-1, 1, M.shape[0]).astype(M.dtype))
    found = [backend.to_host(x) for x in (M @ b, M.solve(b, maxiter=3).x)]
    matrices = [C for level in M.levels for C in (level.A, level.P, level.R) if C is not None]
    return [array.tobytes() for array in (*found, *(backend.to_host(C.data) for C in matrices))]


STEPS = [
    "multigrid.interpolation.SmoothedInterpolation.update",
    "multigrid.galerkin.Galerkin.update",
    "multigrid.hierarchy.Level.replace_transfers",
    "linalg.dense.inverse_of",
    "multigrid.smoothers.GaussSeidel.update",
    "multigrid.smoothers.Correction.update",
    "multigrid.polynomial.Polynomial.update",
    "multigrid.setup.with_largest_eigenvalue",
]


@pytest.mark.parametrize("smoother", ["gauss_seidel", "dilu", "chebyshev"])
@pytest.mark.parametrize("block_size", [1, 3])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(step=st.sampled_from(STEPS), which=st.integers(0, 2), late=st.booleans())
def test_after_an_update_that_fails_anywhere_nothing_is_applied(
    to_device, backend, smoother, block_size, step, which, late
):
    """Before the step or behind it, on any level; until an update succeeds."""
    A = poisson(12, 12) if block_size == 1 else problems.elasticity(3)
    M = SmoothedAggregation(to_device(A), block_size=block_size, smoother=smoother, max_coarse=6, max_levels=4)
    before, count = bits_of(M, backend), 0
    owner, name = f"mcprecond.{step}".rsplit(".", 1)
    original = pkgutil.resolve_name(f"{owner}.{name}")

    def failing(*arguments, **options):
        nonlocal count
        count += 1
        result = None if count > which and not late else original(*arguments, **options)
        if count > which:
            raise ValueError("refused")
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{owner}.{name}", failing)
        try:
            M.update(to_device(2 * A))
        except ValueError:
            with pytest.raises(RuntimeError, match="the last update failed"):
                bits_of(M, backend)
        else:
            assert count <= which
    M.update(to_device(A))
    assert bits_of(M, backend) == before


# ---- Odd matrices


@pytest.mark.parametrize("max_coarse", [0, 300])
@pytest.mark.parametrize(
    "A",
    [
        sp.csr_matrix((0, 0)),
        sp.csr_matrix([[3.0]]),
        sp.csr_matrix(sp.diags_array(np.arange(1.0, 3001))),
        sp.csr_matrix(sp.block_diag([grid5(15)] * 3 + [sp.eye_array(40)] + [sp.csr_matrix([[2.0, -1], [-1, 2]])] * 20)),
        spd(star(700)),
        spd(star(3000)),
    ],
    ids=["empty", "one", "diagonal", "disconnected", "hub", "large hub"],
)
def test_odd_matrices(to_device, A, max_coarse):
    result, M = solved(A, to_device, max_coarse=max_coarse)
    assert result.iterations <= 15
    assert len(M.levels) <= 10


def test_dirichlet_rows_stay_out(to_device, backend):
    A = problems.fenl(8).jacobian(problems.fenl(8).initial())
    M = SmoothedAggregation(to_device(A), max_coarse=20)
    labels = backend.to_host(M.levels[0].T.labels)
    alone = np.diff(sp.csr_matrix(abs(A) > 0).indptr) == 1
    assert alone.sum() == 2 * 81
    np.testing.assert_array_equal(labels < 0, alone)
    assert solved(A, to_device, max_coarse=20)[0].iterations <= 12


def test_a_singular_coarse_level(to_device, backend):
    """Neumann conditions: constants are in the null space, and the coarsest matrix is singular."""
    A = grid5(40)
    A = sp.csr_matrix(A - sp.diags_array(np.asarray(A.sum(axis=1)).ravel()))
    M = SmoothedAggregation(to_device(A))
    b = np.random.default_rng(0).uniform(-1, 1, 1600)
    result = pcg(to_device(A), to_device(b - b.mean()), M=M, rtol=1e-8)
    assert result.converged and result.iterations <= 16


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"B": np.ones(7)}, ValueError, "B must have shape"),
        ({"B": np.ones((100, 10))}, ValueError, "B must have shape"),
        ({"B": np.ones(100) * 1j}, TypeError, "B must hold numbers"),
        ({"B": np.full(100, np.nan)}, ValueError, "B holds NaN"),
        ({"B": np.eye(100)[:, :2] * [1, 0]}, ValueError, "column 1 of B is zero"),
        ({"block_size": 3}, ValueError, "block_size 3 does not divide"),
        ({"block_size": 10}, ValueError, "block_size must be"),
        ({"strength": "evolution"}, ValueError, "strength must be one of"),
        ({"theta": -1}, ValueError, "theta must be"),
        ({"theta": "0"}, TypeError, "theta must be"),
        ({"smoother": "ilu"}, ValueError, "smoother must be one of"),
        ({"presweeps": 0, "postsweeps": 0}, ValueError, "both 0"),
        ({"presweeps": -1}, ValueError, "presweeps must be"),
        ({"cycle": "F"}, ValueError, "cycle must be one of"),
        ({"max_levels": 0}, ValueError, "max_levels must be"),
        ({"max_coarse": 10**6}, ValueError, "max_coarse must be"),
        ({"coloring": "none", "max_coarse": 10}, ValueError, "none"),
        ({"dtype": np.int32}, TypeError, "dtype must be"),
        ({"device": "tpu"}, ValueError, "device must be"),
    ],
)
def test_bad_arguments(to_device, options, error, message):
    options = {name: to_device(value) if name == "B" else value for name, value in options.items()}
    with pytest.raises(error, match=message):
        SmoothedAggregation(to_device(grid5(10)), **options)


def changed(**places):
    """A grid's matrix with another entry."""
    A = grid5(10).tolil()
    for place, value in places.items():
        row, column = map(int, place[1:].split("_"))
        A[row, column] = value
    return A.tocsr()


@pytest.mark.parametrize(
    ("A", "message"),
    [
        (changed(_3_4=-2.0), "not symmetric .*row 3, column 4"),
        (changed(_7_7=0.0), "row 7"),
        (changed(_7_7=-1.0), "positive"),
        (changed(_7_8=np.inf), "row 7, column 8"),
    ],
)
def test_bad_matrices(to_device, A, message):
    with pytest.raises(ValueError, match=message):
        SmoothedAggregation(to_device(A))


@pytest.mark.parametrize("A", [grid5(30), spd(star(899))], ids=["grid", "star"])
def test_an_unsymmetric_cycle_has_an_adjoint(A, to_device, backend):
    M = SmoothedAggregation(to_device(A), postsweeps=0, max_coarse=50)
    with pytest.raises(ValueError, match="M is not symmetric"):
        pcg(to_device(A), to_device(np.ones(900)), M=M)
    expected = dense(M, backend).T
    np.testing.assert_allclose(dense(M.H, backend), expected, atol=1e-6 * abs(expected).max())


@pytest.mark.parametrize(("n", "per_row", "hub"), [(300, 30, 0), (300, 30, 250), (5000, 2, 3000), (20000, 12, 0)])
def test_patterns_of_products_with_much_to_unite(backend, to_device, n, per_row, hub):
    rng = np.random.default_rng(n)
    rows, columns = np.repeat(np.arange(n), per_row), rng.integers(0, n, n * per_row)
    rows, columns = np.append(rows, np.full(hub, 7)), np.append(columns, np.arange(hub))
    A = sp.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(n, n))
    A.sum_duplicates()
    A, right = sp.csr_matrix(A), A[:, : n // 3].tocsr()
    check_pattern_of_product(A, right, backend, to_device)


def check_pattern_of_product(A, B, backend, to_device):
    left = to_device(A.indptr), to_device(A.indices)
    right = Rows.of((to_device(B.indptr.astype(np.int64)), to_device(B.indices)), left[1][:0].astype(np.float64))
    ones = [sp.csr_matrix((np.ones(len(X.indices)), X.indices, X.indptr), shape=X.shape) for X in (A, B)]
    expected = (ones[0] @ ones[1]).tocsr().sorted_indices()
    longest = int(np.diff(A.indptr).max(initial=0))
    pattern, longest = product_pattern(left, right, B.shape[1], backend, longest)
    indptr, columns = map(backend.to_host, pattern)
    assert longest == np.diff(indptr).max(initial=0)
    np.testing.assert_array_equal(indptr, expected.indptr)
    np.testing.assert_array_equal(columns, expected.indices)
    return expected


def check_transpose(indptr, columns, width, backend, to_device):
    of_device = transpose_pattern((to_device(indptr), to_device(columns)), width, backend)
    (offsets, rows), places, longest = of_device[0], *map(backend.to_host, of_device[1:])
    sizes = np.bincount(columns[columns >= 0], minlength=width)
    np.testing.assert_array_equal(backend.to_host(offsets), np.append(0, np.cumsum(sizes)))
    expected = np.argsort(columns, kind="stable")[len(columns) - sizes.sum() :]
    row_of = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    np.testing.assert_array_equal(places[: len(expected)], expected)
    np.testing.assert_array_equal(backend.to_host(rows)[: len(expected)], row_of[expected])
    assert longest == sizes.max(initial=0)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(A=patterns())
def test_transposed_patterns(backend, to_device, A):
    A.sum_duplicates()
    check_transpose(A.indptr.astype(np.int64), A.indices, A.shape[0], backend, to_device)


@pytest.mark.parametrize(("n", "width", "none"), [(0, 0, 0), (5, 3, 1), (3000, 500, 100), (20000, 40, 3000)])
def test_transposed_patterns_with_long_rows(backend, to_device, n, width, none):
    """One column has half of the entries, and some rows have none."""
    rng = np.random.default_rng(n)
    columns = rng.integers(0, max(width, 1), n)
    columns[rng.permutation(n)[: n // 2]] = width // 2
    columns[rng.permutation(n)[:none]] = -1
    check_transpose(np.arange(n + 1), columns.astype(np.int32), width, backend, to_device)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(A=patterns(), B=patterns())
def test_patterns_of_products(backend, to_device, A, B):
    n = min(A.shape[0], B.shape[0])
    A, B = (sp.csr_matrix(X)[:n, :n].astype(float).sorted_indices() for X in (A, B))
    expected = check_pattern_of_product(A, B, backend, to_device)
    pair = [(on_device.indptr.astype(np.int64), on_device.indices) for on_device in map(to_device, (A, B))]
    lengths = np.diff(B.indptr)
    longest = [lengths[row].max(initial=0) for row in np.split(A.indices, A.indptr[1:-1])]
    least = least_entries(*pair, backend)
    assert least == sum(longest)
    assert least <= expected.nnz or not B.has_canonical_format


# ---- Smoothers of the caller


def jacobi_of(A):
    """A smoother that no part of this package has made."""
    backend = get_backend("cpu" if type(A).__module__.startswith("scipy") else "gpu")
    return backend.linalg.aslinearoperator(backend.sparse.diags(0.6 / A.diagonal()).tocsr())


@pytest.mark.parametrize(
    ("build", "most"),
    [
        (MulticolorSGS, 9),
        (partial(MulticolorSGS, omega=1.2), 10),
        (lambda A: MulticolorGS(A, sweep="forward"), 13),
        (ILU0, 9),
        (lambda A: MulticolorSGS(A.astype(np.float32)), 9),
        (jacobi_of, 17),
    ],
)
def test_any_operator_smooths(build, most, to_device, backend):
    """On both sides by adjoints, so that M is symmetric; and new values reach it."""
    A, rng = poisson(60, 60), np.random.default_rng(0)
    b, other = (to_device(v) for v in rng.standard_normal((2, A.shape[0])))
    M = SmoothedAggregation(to_device(A), smoother=build)
    assert pcg(to_device(A), b, M=M, rtol=1e-8).iterations <= most
    one, two = float(other @ (M @ b)), float(b @ (M @ other))
    assert abs(one - two) <= 1e-6 * abs(one)
    M.update(to_device(8 * A))
    fresh = SmoothedAggregation(to_device(8 * A), smoother=build)
    np.testing.assert_array_equal(backend.to_host(M @ b), backend.to_host(fresh @ b))


@pytest.mark.parametrize(
    ("build", "error", "why"),
    [
        (lambda A: 3, TypeError, "returns an operator, got int"),
        (lambda A: MulticolorSGS(A[:9, :9]), ValueError, "of the shape"),
        ("sor", ValueError, "smoother must be one of"),
    ],
)
def test_what_does_not_smooth_is_refused(build, error, why, to_device):
    with pytest.raises(error, match=why):
        SmoothedAggregation(to_device(poisson(8, 8)), smoother=build, max_coarse=10)


@pytest.mark.parametrize(("dtype", "units"), [("float64", [1e160, 1e-200]), ("float32", [1e25, 1e-25, 1e60])])
def test_any_unit_of_candidates_will_do(to_device, dtype, units):
    """Candidates in float64 may be beyond what a float32 matrix has room for; and each has a unit of its own."""
    A = to_device(grid5(30).astype(dtype))
    x = np.linspace(0, 1, 900)
    for B in (np.ones(900), np.stack([np.ones(900), x], 1)):
        expected = SmoothedAggregation(A, to_device(B), max_coarse=50)
        for unit in units:
            found = SmoothedAggregation(A, to_device(B * ([unit, 1][: B.ndim] if B.ndim > 1 else unit)), max_coarse=50)
            sizes = [level.A.shape for level in found.levels]
            assert sizes == [level.A.shape for level in expected.levels] and len(sizes) > 2
            b = to_device(np.random.default_rng(0).standard_normal(900).astype(dtype))
            assert pcg(A, b, M=found).iterations == pcg(A, b, M=expected).iterations


def test_an_imaginary_diagonal_entry_is_shown():
    A = grid5(8).astype(complex).tolil()
    A[5, 5] = 3j
    with pytest.raises(ValueError, match=r"A has 3j on the diagonal in row 5"):
        SmoothedAggregation(A.tocsr())
