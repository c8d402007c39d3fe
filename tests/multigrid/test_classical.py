"""Classical multigrid: dependences, splitting, interpolation and convergence, on both devices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import DTYPES, grid5, patterns, slivers, spd, star, stencil27
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from reference.classical import coarse_points, dependences, extended

from benchmarks.papers.mesh_families import anisotropic, jumping
from mcprecond import ClassicalAMG, PatternChangedError, pcg, problems
from mcprecond.multigrid.extended import MOST, ExtendedInterpolation
from mcprecond.multigrid.splitting import COARSE, DEPENDS, INTERPOLATES, THETA, classical_strength, split
from mcprecond.preconditioners.setup import admit


def dense_csr(values, indices, indptr, shape, backend):
    arrays = tuple(backend.to_host(array) for array in (values, indices, indptr))
    return sp.csr_matrix(arrays, shape=shape).toarray()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pattern=patterns(), dtype=st.sampled_from(DTYPES), seed=st.integers(0, 3))
@example(pattern=grid5(9), dtype=np.float64, seed=0)
@example(pattern=stencil27(4), dtype=np.float64, seed=1)
@example(pattern=star(60), dtype=np.complex128, seed=0)
def test_points_and_weights_are_those_of_the_formulas(to_device, backend, pattern, dtype, seed):
    A = spd(pattern, seed, dtype)
    matrix, dense, n = admit(to_device(A), finite=True)[0].canonical(), A.toarray(), A.shape[0]
    found = classical_strength(matrix, THETA)
    strong, passes = dependences(dense, THETA)
    flags = dense_csr(found.flags, matrix.indices, matrix.indptr, (n, n), backend)
    assert np.array_equal(flags & DEPENDS > 0, strong) and np.array_equal(flags & INTERPOLATES > 0, passes)
    states = split(matrix, found)
    is_coarse = backend.to_host(states) == COARSE
    assert np.array_equal(is_coarse, coarse_points(dense, strong))
    if not is_coarse.any():
        return
    P = ExtendedInterpolation(matrix, found.flags, states)
    P.update(matrix)
    expected = extended(dense, passes, is_coarse)
    weights = dense_csr(P._weights(matrix), P.reach[1], P.reach[0], expected.shape, backend)
    eps = float(np.finfo(dtype).eps)
    scale = abs(expected).max(initial=1)
    np.testing.assert_allclose(weights, expected, atol=1e3 * eps * scale)
    kept = backend.to_host(P.csr.toarray())
    for row, (all_weights, own) in enumerate(zip(weights, kept, strict=True)):
        assert np.count_nonzero(own) <= MOST
        outside, inside = abs(all_weights[own == 0]), abs(all_weights[own != 0])
        assert outside.max(initial=0) <= 1.001 * inside.min(initial=np.inf), row


FAMILIES = {
    "2d": (lambda: problems.laplacian((120, 120)), 7, 2.5),
    "3d": (lambda: problems.laplacian((24, 24, 24)), 8, 2.9),
    "27 points": (lambda: problems.laplacian((20, 20, 20), points=27), 9, 1.7),
    "jumping": (lambda: jumping(96), 9, 2.5),
    "anisotropic": (lambda: anisotropic(150), 8, 2.7),
    "triangles": (lambda: slivers(8000, 1.0), 30, 2.7),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_iterations_and_complexity(family, to_device):
    make, most, complexity = FAMILIES[family]
    A = sp.csr_matrix(make())
    x = np.random.default_rng(1).uniform(-1, 1, A.shape[0])
    M = ClassicalAMG(to_device(A))
    result = pcg(to_device(A), to_device(A @ x), M=M, rtol=1e-8)
    assert result.converged and result.iterations <= most
    assert M.operator_complexity <= complexity


def test_an_update_is_a_new_hierarchy_with_the_places_of_before(to_device, backend):
    A, rng = sp.csr_matrix(jumping(40)), np.random.default_rng(0)
    M, r = ClassicalAMG(to_device(A), max_coarse=20), to_device(rng.uniform(-1, 1, 1600))
    before = backend.to_host(M @ r)
    D = sp.diags_array(rng.uniform(1, 1.2, 1600))
    other = sp.csr_matrix(D @ A @ D)
    M.update(to_device(other))
    result = pcg(to_device(other), r, M=M, rtol=1e-8)
    assert result.converged and result.iterations <= 12
    M.update(to_device(A))
    np.testing.assert_array_equal(backend.to_host(M @ r), before)
    with pytest.raises(PatternChangedError):
        M.update(to_device(sp.csr_matrix(A + sp.eye_array(1600, k=77) + sp.eye_array(1600, k=-77))))


def test_is_symmetric_positive_definite(to_device, backend):
    A = sp.csr_matrix(jumping(14))
    M = ClassicalAMG(to_device(A), max_coarse=20, dtype=np.float64)
    inverse = backend.to_host(M @ backend.xp.eye(196))
    np.testing.assert_allclose(inverse, inverse.T, atol=1e-10 * abs(inverse).max())
    assert np.linalg.eigvalsh((inverse + inverse.T) / 2).min() > 0


def test_both_devices_have_the_same_points(backend, to_device):
    A = sp.csr_matrix(jumping(50))
    here, there = ClassicalAMG(A), ClassicalAMG(to_device(A))
    for ours, theirs in zip(here.levels[:2], there.levels[:2], strict=True):
        np.testing.assert_array_equal(ours.interpolation.numbers, backend.to_host(theirs.interpolation.numbers))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda A: A + sp.eye_array(25, k=2), "not symmetric"),
        (lambda A: -A, "on the diagonal in row 0"),
        (lambda A: A * np.nan, "row 0"),
    ],
)
def test_bad_matrices(change, message, to_device):
    with pytest.raises(ValueError, match=message):
        ClassicalAMG(to_device(sp.csr_matrix(change(grid5(5)))))


def test_what_is_nearly_diagonal_has_one_level(to_device, backend):
    A = to_device(sp.csr_matrix(sp.diags_array(np.arange(1.0, 400.0))))
    M = ClassicalAMG(A)
    assert len(M.levels) == 1
    b = backend.xp.ones(399)
    np.testing.assert_allclose(backend.to_host(M @ b), 1 / np.arange(1.0, 400.0))
