"""``solve(A, b)``: the method fits what A is, and the residual is what the result says."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import grid5, patterns, spd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.flows import advection
from mcprecond import MulticolorGS, MulticolorSGS, problems, solve, systems
from mcprecond.multigrid import rigid_body_modes

RTOL = 1e-8


def residual_of(A, x, b):
    return float(np.linalg.norm(b - A @ x) / np.linalg.norm(b))


def laplacian(*shape):
    return sp.csr_matrix(problems.laplacian(shape))


def shifted(A, shift):
    return sp.csr_matrix(A - shift * sp.eye_array(A.shape[0]))


def saddle(n):
    """The saddle point problem of a grid with as many constraints as unknowns: its diagonal has zeros."""
    A, identity = laplacian(n, n), sp.eye_array(n * n)
    return sp.csr_matrix(sp.block_array([[A, identity], [identity, None]]))


SYSTEMS = {
    "small": (lambda: laplacian(15, 15), "direct"),
    "banded": (lambda: sp.diags_array([1, -4, 6.1, -4, 1], offsets=range(-2, 3), shape=(50_000,) * 2), "direct"),
    "plane": (lambda: laplacian(200, 200), "pcg"),
    "space": (lambda: laplacian(24, 24, 24), "pcg"),
    "shifted": (lambda: shifted(laplacian(120, 120), 0.01), "minres"),
    "saddle": (lambda: saddle(40), "minres"),
    "flow": (lambda: advection(150, 1e-4, "vortex"), "bicgstab"),
    "small flow": (lambda: advection(20, 1e-4, "vortex"), "direct"),
    "complex": (lambda: laplacian(60, 60) + 1j * sp.eye_array(3600), "bicgstab"),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_each_kind_of_system_gets_its_method(name, to_device, backend):
    make, method = SYSTEMS[name]
    A = sp.csr_matrix(make())
    b = A @ np.random.default_rng(0).uniform(-1, 1, A.shape[0])
    result = solve(to_device(A), to_device(b))
    assert result.converged and result.info == 0
    if backend.name == "cpu":  # on a GPU a direct solver is chosen more often
        assert result.method == method
    x = backend.to_host(result.x)
    assert residual_of(A, x, b) <= 1.01 * RTOL
    assert result.relative_residual == pytest.approx(residual_of(A, x, b), rel=0.1, abs=1e-14)
    assert result.norm_of_b == pytest.approx(np.linalg.norm(b))
    assert len(result.residuals) == result.iterations + 1
    printed = repr(result)
    assert "\n" not in printed and "relative residual" in printed and result.method in printed


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pattern=patterns(),
    dtype=st.sampled_from([np.float64, np.complex128]),
    seed=st.integers(0, 99),
    kind=st.sampled_from(["definite", "indefinite", "unsymmetric"]),
    is_direct=st.booleans(),
)
def test_what_is_called_converged_is_solved(to_device, backend, pattern, dtype, seed, kind, is_direct):
    """Small systems of all kinds, directly and by iterations; b and x0 stay as they are."""
    rng, A = np.random.default_rng(seed), spd(pattern, seed, dtype)
    sizes = A.diagonal().real
    if kind == "indefinite":
        A = sp.csr_matrix(A + sp.diags_array(2 * sizes * rng.choice([-1.0, 1.0], A.shape[0]))).astype(dtype)
    elif kind == "unsymmetric":
        A = sp.csr_matrix(A + sp.triu(A, 1) / 2)
    x = rng.uniform(-1, 1, A.shape[0])
    b, x0 = A @ x, rng.uniform(-1, 1, A.shape[0])
    on_device, guess = to_device(b), to_device(x0)
    options = {} if is_direct else {"callback": lambda x: None}
    result = solve(to_device(A), on_device, guess, **options)
    assert np.array_equal(backend.to_host(on_device), b) and np.array_equal(backend.to_host(guess), x0)
    assert (result.method == "direct") <= is_direct
    if result.converged:
        assert residual_of(A, backend.to_host(result.x), b) <= 1.01 * RTOL
    assert result.converged or kind == "indefinite"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pattern=patterns(),
    dtype=st.sampled_from([np.float32, np.complex64, np.float64]),
    seed=st.integers(0, 99),
    rtol=st.sampled_from([1e-5, 1e-8, 1e-12]),
    exponent=st.sampled_from([0, -80, 80]),
)
def test_a_direct_solution_counts_by_its_residual_in_double_precision(
    to_device, backend, pattern, dtype, seed, rtol, exponent
):
    """In single precision rounding x alone may leave more than rtol; squares of b may be out of range."""
    A = spd(pattern, seed, dtype)
    b = (A @ np.random.default_rng(seed).uniform(-1, 1, A.shape[0])).astype(dtype) * dtype(2.0**exponent)
    result = solve(to_device(A), to_device(b), rtol=rtol)
    x, wide = backend.to_host(result.x).astype(complex), A.astype(complex)
    residual = np.linalg.norm((b.astype(complex) - wide @ x) * 2.0**-exponent)
    norm = np.linalg.norm(b.astype(complex) * 2.0**-exponent)
    assert residual <= (1.01 * rtol * norm if result.converged else norm)
    assert result.norm_of_b == pytest.approx(norm * 2.0**exponent, rel=1e-5)
    assert result.converged or dtype != np.float64


def test_what_fails_goes_on_by_the_next_method(to_device, backend, monkeypatch):
    """CG meets an indefinite matrix with a positive diagonal; BiCGSTAB breaks down on a permutation."""
    monkeypatch.setattr(systems, "direct_is_faster", lambda *system: False)
    A = shifted(laplacian(60, 60), 0.05)
    b = A @ np.ones(3600)
    result = solve(to_device(A), to_device(b))
    assert result.method == "minres" and "not positive definite" in result.detail
    assert result.stages[-1].name == "minres" and sum(stage.iterations for stage in result.stages) == result.iterations
    assert residual_of(A, backend.to_host(result.x), b) <= 1.01 * RTOL
    n = 40
    P = sp.csr_matrix((np.ones(n), (np.arange(n), (np.arange(n) + 1) % n)))
    b = np.eye(n)[0]
    result = solve(to_device(P), to_device(b), M=None)
    assert result.converged and result.method == "gmres" and result.stages[-1].name == "gmres"
    assert solve(to_device(P), to_device(b), M=None, maxiter=3).iterations <= 3


def with_hubs(rng, n):
    """The Laplacian of a graph with three hubs, a little more on its diagonal, in units that span two decades."""
    units, weights = 10.0 ** rng.uniform(-1, 1, n), np.zeros((n, n))
    for hub in rng.choice(n, 3, replace=False):
        others = rng.choice(n, 25, replace=False)
        weights[hub, others] = weights[others, hub] = rng.uniform(1, 8, 25)
    np.fill_diagonal(weights, 0)
    A = (np.diag(weights.sum(axis=1) + 0.01) - weights) * np.outer(units, units)
    return sp.csr_matrix((A + A.T) / 2)


@pytest.mark.parametrize("rtol", [0.3, 0.1, 0.03])
def test_a_small_error_in_the_energy_norm_does_not_hide_a_large_residual(rtol, to_device, backend):
    """The norm of the residual may grow while the energy norm of the error falls, since units of rows differ."""
    for seed in range(60, 140):
        rng = np.random.default_rng(seed)
        A, b = with_hubs(rng, 38), rng.standard_normal(38)
        result = solve(to_device(A), to_device(b), rtol=rtol, M=None)
        assert result.converged and residual_of(A, backend.to_host(result.x), b) <= (1 + 1e-6) * rtol


def test_a_singular_system_is_not_solved_directly(to_device, backend):
    A = laplacian(12, 12)
    A = sp.csr_matrix(A - sp.diags_array(np.asarray(A.sum(axis=1)).ravel()))
    b = np.random.default_rng(0).uniform(-1, 1, 144)
    result = solve(to_device(A), to_device(b), nullspace="constant")
    assert result.converged and result.method == "pcg"
    np.testing.assert_allclose(A @ backend.to_host(result.x), b - b.mean(), atol=1e-7 * np.linalg.norm(b))
    assert not solve(to_device(A), to_device(b)).converged


def test_operators_and_dense_arrays(to_device, backend):
    A = laplacian(30, 30)
    b = A @ np.ones(900)
    operator = backend.linalg.aslinearoperator(to_device(A))
    result = solve(operator, to_device(b))
    assert result.method == "gmres" and residual_of(A, backend.to_host(result.x), b) <= 1.01 * RTOL
    result = solve(backend.xp.asarray(A.toarray()), to_device(b))
    assert result.converged and residual_of(A, backend.to_host(result.x), b) <= 1.01 * RTOL


def test_m_and_what_is_known_of_nodes_go_to_the_method(to_device, backend):
    n = 8
    A = problems.elasticity(n)
    z, y, x = np.meshgrid(*[np.linspace(0, 1, n)] * 3, indexing="ij")
    B = rigid_body_modes(np.stack([x.ravel(), y.ravel(), z.ravel()], axis=1))
    b = A @ np.ones(A.shape[0])
    known = solve(to_device(A), to_device(b), M="multigrid", B=to_device(B), block_size=3)
    unknown = solve(to_device(A), to_device(b), M="multigrid")
    assert known.converged and known.iterations < unknown.iterations
    sgs = MulticolorSGS(to_device(A))
    assert solve(to_device(A), to_device(b), M=sgs).method == "pcg"
    assert solve(to_device(A), to_device(b), M=MulticolorGS(to_device(A), sweep="forward")).method == "bicgstab"


def test_several_columns(to_device, backend):
    for A in (laplacian(40, 40), advection(40, 1e-2, "vortex"), saddle(28)):
        b = A @ np.random.default_rng(0).uniform(-1, 1, (A.shape[0], 3))
        result = solve(to_device(A), to_device(b))
        assert result.converged and result.x.shape == b.shape
        np.testing.assert_allclose(A @ backend.to_host(result.x), b, atol=1e-7 * np.linalg.norm(b))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"b": np.ones(35)}, ValueError, "b must have shape"),
        ({"b": np.full(36, np.nan)}, ValueError, "b holds nan in row 0"),
        ({"rtol": -1.0}, ValueError, "rtol"),
        ({"maxiter": 2.5}, TypeError, "maxiter"),
        ({"callback": 3}, TypeError, "callback"),
        ({"M": "magic"}, ValueError, "M must be"),
        ({"B": np.ones(5)}, ValueError, "B must have shape"),
        ({"block_size": 5}, ValueError, "block_size 5 does not divide"),
        ({"device": "tpu"}, ValueError, "device must be"),
        ({"nullspace": "linear"}, ValueError, "nullspace"),
        ({"A": np.ones((3, 4))}, ValueError, "A must be square"),
        ({"A": "A"}, TypeError, "A must be a sparse matrix"),
    ],
)
def test_bad_arguments_are_refused_by_name(options, error, message):
    options = {"A": grid5(6), "b": np.ones(36)} | options
    with pytest.raises(error, match=message):
        solve(options.pop("A"), options.pop("b"), **options)


def test_what_needs_a_hermitian_matrix_is_refused_for_others():
    A, b = advection(6, 1e-2, "vortex"), np.ones(36)
    for given_ in ({"nullspace": "constant"}, {"block_size": 2}, {"B": b}):
        with pytest.raises(ValueError, match=f"{next(iter(given_))} needs a symmetric or Hermitian A"):
            solve(A, b, **given_)
