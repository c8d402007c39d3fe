"""Gauss-Seidel preconditioners: the dense formulas, symmetry, definiteness, and use in SciPy's and CuPy's solvers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg
from graphs import DTYPES, NAMED, grid5, patterns, spd, star, stencil27
from hypothesis import HealthCheck, given, settings
from reference.gauss_seidel import dense_inverse

from mcprecond import MulticolorGS, MulticolorSGS, color, pcg
from mcprecond.backends import get_backend
from mcprecond.sweeps.substitution import Substitution

TOLERANCE = dict(zip(DTYPES, (2e-5, 1e-13, 2e-5, 1e-13), strict=True))


def applied(M, backend) -> np.ndarray:
    """The dense matrix of an operator."""
    return backend.to_host(M @ backend.xp.eye(M.shape[0], dtype=M.dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("omega", [1.0, 0.6, 1.5])
@pytest.mark.parametrize("sweep", ["forward", "backward", "symmetric"])
@pytest.mark.parametrize("method", ["eb", "jpl"])
def test_equals_the_dense_formula(method, sweep, omega, dtype, backend, to_device):
    A = spd(stencil27(4), dtype=dtype)
    M = MulticolorGS(to_device(A), method, sweep=sweep, omega=omega)
    assert M.dtype == dtype and M.shape == A.shape
    expected = dense_inverse(A, backend.to_host(M.blocks.perm), sweep, omega)
    np.testing.assert_allclose(applied(M, backend), expected, atol=TOLERANCE[dtype] * abs(expected).max())


@pytest.mark.parametrize("name", [name for name in NAMED if NAMED[name].shape[0]])
def test_equals_the_dense_formula_on_every_pattern(name, backend, to_device):
    pattern = sp.csr_matrix(NAMED[name])
    pattern = pattern[:200, :200]
    A = sp.csr_matrix(pattern + sp.diags_array(np.full(pattern.shape[0], 50.0)))
    M = MulticolorSGS(to_device(A), "jp")
    expected = dense_inverse(A, backend.to_host(M.blocks.perm), "symmetric", 1.0)
    np.testing.assert_allclose(applied(M, backend), expected, rtol=1e-9, atol=1e-12 * abs(expected).max())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pattern=patterns())
def test_symmetric_positive_definite_for_spd_matrices(backend, to_device, pattern):
    dense = applied(MulticolorSGS(to_device(spd(pattern)), omega=1.2), backend)
    np.testing.assert_allclose(dense, dense.T, atol=1e-13)
    assert np.linalg.eigvalsh(dense).min() > 0


def test_rows_longer_than_a_warp(backend, to_device):
    A = spd(star(700))
    M = MulticolorSGS(to_device(A))
    expected = dense_inverse(A, backend.to_host(M.blocks.perm), "symmetric", 1.0)
    np.testing.assert_allclose(applied(M, backend), expected, atol=1e-13)


@pytest.mark.parametrize("sweep", ["forward", "backward", "symmetric"])
def test_several_sweeps_are_the_stationary_iteration(sweep, backend, to_device):
    A = spd(stencil27(4))
    once, thrice = (MulticolorGS(to_device(A), "ecl_gc", sweep=sweep, omega=1.1, sweeps=k) for k in (1, 3))
    one, dense, z = applied(once, backend), A.toarray(), np.zeros(A.shape)
    for _ in range(3):
        z = z + one @ (np.eye(len(dense)) - dense @ z)
    np.testing.assert_allclose(applied(thrice, backend), z, atol=1e-14)


@pytest.mark.parametrize("sweep", ["forward", "backward", "symmetric"])
def test_transpose(sweep, backend, to_device):
    rng = np.random.default_rng(3)
    A = sp.csr_matrix(sp.random_array((60, 60), density=0.1, rng=rng) + 8 * sp.eye_array(60))
    M = MulticolorGS(to_device(A), sweep=sweep, omega=0.9)
    dense = applied(M, backend)
    np.testing.assert_allclose(applied(M.T, backend), dense.T, atol=1e-14)
    r = rng.uniform(size=60)
    np.testing.assert_allclose(backend.to_host(M.rmatvec(to_device(r))), dense.T @ r, atol=1e-14)


def test_is_the_operator_of_its_library(backend, to_device):
    M = MulticolorSGS(to_device(spd(grid5(5))))
    assert isinstance(M, scipy.sparse.linalg.LinearOperator)
    assert isinstance(M, MulticolorSGS) and isinstance(M, MulticolorGS)
    r = backend.xp.ones(25)
    before = r.copy()
    z = M @ r
    assert type(z) is type(r) and z is not M @ r
    np.testing.assert_array_equal(backend.to_host(r), backend.to_host(before))
    np.testing.assert_array_equal(backend.to_host(M.matvec(r)), backend.to_host(z))
    np.testing.assert_array_equal(backend.to_host(M.matmat(r.reshape(-1, 1))[:, 0]), backend.to_host(z))
    assert M.nbytes > 0 and M.n_colors == M.coloring.n_colors


def test_speeds_up_cg_of_the_library(backend, to_device):
    A = to_device(grid5(40))
    b = to_device(np.random.default_rng(0).uniform(-1, 1, 1600))
    counts = {}
    for name, M in (("none", None), ("sgs", MulticolorSGS(A))):
        steps = []
        x, info = backend.linalg.cg(A, b, M=M, rtol=1e-8, callback=steps.append)
        assert info == 0
        assert float(backend.xp.linalg.norm(b - A @ x)) <= 1.01e-8 * float(backend.xp.linalg.norm(b))
        counts[name] = len(steps)
    assert counts["sgs"] < 0.6 * counts["none"]


def test_unsymmetric_system_by_gmres(backend, to_device):
    A = to_device(sp.csr_matrix(grid5(20) + 0.7 * sp.diags_array([1.0, -1.0], offsets=[1, -1], shape=(400, 400))))
    b = backend.xp.ones(400)
    x, info = backend.linalg.gmres(A, b, M=MulticolorGS(A, sweep="forward"), maxiter=400, restart=50)
    assert info == 0
    assert float(backend.xp.linalg.norm(b - A @ x)) <= 1e-4 * float(backend.xp.linalg.norm(b))


def test_update_equals_a_new_preconditioner(backend, to_device):
    A, B = spd(stencil27(5), seed=1), spd(stencil27(5), seed=2)
    M = MulticolorSGS(to_device(A), "ecl_gc")
    applied(M, backend)  # so that a captured application exists
    M.update(to_device(B))
    np.testing.assert_array_equal(applied(M, backend), applied(MulticolorSGS(to_device(B), "ecl_gc"), backend))


def test_coloring_can_be_given(backend, to_device):
    A = spd(grid5(6))
    on_device = to_device(A)
    coloring = color(on_device, "greedy")
    first = MulticolorSGS(on_device, coloring)
    second = MulticolorSGS(on_device, to_device(np.indices((6, 6)).sum(axis=0).ravel() % 2))
    assert first.n_colors == second.n_colors == 2
    np.testing.assert_array_equal(applied(first, backend), applied(second, backend))


def test_float32_storage(backend, to_device):
    A = to_device(spd(stencil27(6)))
    exact, rounded = MulticolorSGS(A, "ecl_gc"), MulticolorSGS(A, "ecl_gc", dtype="float32")
    assert rounded.dtype == np.float64 and rounded.nbytes < 0.8 * exact.nbytes
    difference = abs(applied(exact, backend) - applied(rounded, backend)).max()
    assert 0 < difference < 1e-6
    r = backend.xp.asarray(np.random.default_rng(0).uniform(-1, 1, A.shape[0]))
    expected = backend.to_host(rounded @ r)
    for scale in (1e-200, 1e200):  # vectors have the range of float64
        np.testing.assert_allclose(backend.to_host(rounded @ (scale * r)) / scale, expected, rtol=0, atol=2e-6)
    b = A @ r
    iterations = [pcg(A, b, rtol=1e-8, M=M).iterations for M in (exact, rounded)]
    assert abs(iterations[1] - iterations[0]) <= 1


@pytest.mark.gpu
def test_numpy_vectors_with_sweeps_on_the_gpu():
    A = spd(stencil27(6))
    M = MulticolorSGS(A, "ecl_gc", device="gpu")
    assert isinstance(M, scipy.sparse.linalg.LinearOperator)
    r = np.random.default_rng(0).uniform(size=216)
    np.testing.assert_allclose(M @ r, MulticolorSGS(A, "ecl_gc") @ r, rtol=1e-12)
    np.testing.assert_allclose(M.T @ r, M @ r, rtol=1e-12)
    M.update(2 * A)
    np.testing.assert_allclose(M @ r, MulticolorSGS(2 * A, "ecl_gc") @ r, rtol=1e-12)
    _, info = scipy.sparse.linalg.cg(A, r, M=M)
    assert info == 0


@pytest.mark.gpu
def test_devices_agree():
    from mcprecond.backends import get_backend

    gpu = get_backend("gpu")
    A = spd(stencil27(12))
    r = np.random.default_rng(0).uniform(size=A.shape[0])
    on_gpu = MulticolorSGS(gpu.sparse.csr_matrix(A), "ecl_gc") @ gpu.xp.asarray(r)
    np.testing.assert_allclose(gpu.to_host(on_gpu), MulticolorSGS(A, "ecl_gc") @ r, rtol=1e-11)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"sweep": "sideways"}, ValueError, "sweep must be one of forward, backward, symmetric"),
        ({"omega": 2.0}, ValueError, "omega must be between 0 and 2, both excluded, got 2.0"),
        ({"omega": "1"}, TypeError, "omega must be a real number between 0 and 2, got .1. .str."),
        ({"sweeps": 0}, ValueError, "sweeps must be at least 1, got 0"),
        ({"omega": 1 + 0j}, TypeError, "omega must be a real number"),
        ({"sweeps": True}, TypeError, "sweeps must be an integer"),
        ({"device": 3}, ValueError, "device must be .cpu. or .gpu., got 3"),
        ({"dtype": np.int32}, TypeError, "dtype must be float32 or float64"),
        ({"device": "tpu"}, ValueError, "device must be 'cpu' or 'gpu'"),
        ({"coloring": np.zeros(16, int)}, ValueError, "the neighbors 0 and 1 the same color 0"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        MulticolorGS(grid5(4), **arguments)


@pytest.mark.parametrize("stored", [True, False], ids=["zero", "missing"])
def test_diagonal_zero_or_missing(stored, to_device):
    A = grid5(4).tolil()
    A[11, 11] = 0
    A = A.tocsr()
    if stored:
        A = sp.csr_matrix(A)
        row = A[11].tocoo()
        full = grid5(4)
        full.data[full.indptr[11] + int(np.flatnonzero(full.indices[full.indptr[11] : full.indptr[12]] == 11)[0])] = 0
        assert row.nnz == full.indptr[12] - full.indptr[11] - 1
        A = full
    with pytest.raises(ValueError, match="zero or missing diagonal entry in row 11"):
        MulticolorSGS(to_device(A))


@pytest.mark.parametrize("block_size", [1, 3])
def test_kernels_know_what_the_cache_holds(block_size, monkeypatch):
    """A matrix of points is large where its triangles have more bytes than the cache, if there is a cache."""
    blocks = MulticolorSGS(spd(stencil27(6)), "greedy", block_size=block_size).blocks
    backend, macros = blocks.backend, {}
    kernels = type(backend).kernels
    monkeypatch.setattr(
        type(backend), "kernels", lambda self, *args, **chosen: macros.update(chosen) or kernels(self, *args, **chosen)
    )
    entries = sum(triangle.values.nbytes + triangle.columns.nbytes for triangle in (blocks.lower, blocks.upper))
    vectors = 4 * blocks.diagonal.shape[0] * block_size * 8
    assert vectors < entries - 1
    for cache, large_matrix, large_vectors in (
        (0, False, False),
        (1, True, True),
        (vectors, True, False),
        (entries - 1, True, False),
        (entries, False, False),
    ):
        monkeypatch.setattr(type(backend), "shared_cache", cache)
        macros.clear()
        Substitution(blocks)
        assert macros["LARGE_MATRIX"] == (large_matrix and block_size == 1)
        assert macros["LARGE_VECTORS"] == large_vectors


@pytest.mark.gpu
@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize(("block_size", "sweeps"), [(1, 1), (1, 2), (3, 1), (3, 2)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_more_than_the_cache_holds(dtype, block_size, sweeps, listed, listed_columns, monkeypatch):
    """Vectors that leave L2, and a matrix that does, give the same but for last bits, which say what is there: 20 are
    left of float32.
    """
    import cupy

    backend = get_backend("gpu")
    A = backend.sparse.csr_matrix(spd(stencil27(6), dtype=complex if dtype == "complex128" else float))
    r = cupy.asarray(np.random.default_rng(0).uniform(-1, 1, (A.shape[0], 2))).astype(A.dtype)
    if listed:
        listed_columns()
    M = MulticolorSGS(A, "greedy", block_size=block_size, sweeps=sweeps, dtype=dtype)
    expected = M @ r
    monkeypatch.setattr(type(backend), "shared_cache", 1)
    passing = MulticolorSGS(A, M.coloring, block_size=block_size, sweeps=sweeps, dtype=dtype)
    if listed and block_size == 1:
        assert passing.blocks.layout.name == "dia"
    for columns in (slice(None), 0, slice(None), 0):
        found = passing @ cupy.ascontiguousarray(r[:, columns])
        difference = float(abs(found - expected[:, columns]).max() / abs(expected).max())
        assert difference < (2**-18 if dtype == "float32" else 2**-50)
