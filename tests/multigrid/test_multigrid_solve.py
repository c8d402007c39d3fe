"""Solves by a hierarchy, called in this package's way and in PyAMG's."""

from __future__ import annotations

import copy
import pickle
import time

import numpy as np
import pytest
import scipy.sparse.linalg
from graphs import grid5, patterns, spd, stencil27
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcprecond import SmoothedAggregation, SolveResult, pcg
from mcprecond.multigrid.acceleration import METHODS

N = 900
A = grid5(30)


def right_hand_side(seed=0, n=N):
    return np.random.default_rng(seed).uniform(-1, 1, n)


def relative(A, x, b):
    return np.linalg.norm(b - A @ x) / np.linalg.norm(b)


@pytest.fixture
def M(to_device):
    return SmoothedAggregation(to_device(A), max_coarse=20)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=8)
@given(
    pattern=patterns(),
    cycle=st.sampled_from([None, "V", "w", "K", "amli"]),
    accel=st.sampled_from([None, "cg", "minres", "bicgstab", pcg]),
    seed=st.integers(0, 9),
    has_guess=st.booleans(),
)
def test_any_system_by_any_names(to_device, backend, pattern, cycle, accel, seed, has_guess):
    if cycle in ("K", "amli") and accel in ("bicgstab", "minres"):
        cycle = "V"  # which is linear
    S = spd(pattern)
    b, guess = (right_hand_side(seed + k, S.shape[0]) for k in (0, 50))
    M, residuals, seen = SmoothedAggregation(to_device(S), max_coarse=5), [7.0], []
    x, info = M.solve(
        to_device(b),
        to_device(guess) if has_guess else None,
        tol=1e-8,
        maxiter=300,
        cycle=cycle,
        accel=accel,
        callback=seen.append,
        residuals=residuals,
        return_info=True,
    )
    x = backend.to_host(x)
    assert info == 0 and relative(S, x, b) <= 2e-8
    start = b - S @ guess if has_guess else b
    np.testing.assert_allclose(residuals[0], np.linalg.norm(start), rtol=1e-10)
    assert len(residuals) - 1 - len(seen) in ((0, 1) if accel == "bicgstab" else (0,))
    assert residuals[-1] <= 2e-8 * np.linalg.norm(b)


def test_the_names_decide_what_comes_back(M, to_device, backend):
    b = to_device(right_hand_side())
    result = M.solve(b, rtol=1e-8)
    assert isinstance(M.solve(b), SolveResult) and isinstance(M.solve(b, maxiter=2, callback=print), SolveResult)
    assert isinstance(result, SolveResult)
    for options in ({"tol": 1e-8}, {"accel": "cg", "tol": 1e-8}, {"cycle": "V"}, {"residuals": []}):
        x = M.solve(b, **options)
        assert x.shape == (N,) and isinstance(x, backend.xp.ndarray)
        assert isinstance(M.solve(b, return_info=False, **options), backend.xp.ndarray)
    np.testing.assert_array_equal(backend.to_host(M.solve(b, tol=1e-8)), backend.to_host(result.x))
    np.testing.assert_array_equal(backend.to_host(M.solve(b, None, 1e-8)), backend.to_host(result.x))
    x, info = M.solve(b, return_info=True)
    assert info == 0
    residuals = []
    assert M.solve(b, tol=1e-14, maxiter=3, residuals=residuals, return_info=True)[1] == 3 and len(residuals) == 4
    np.testing.assert_array_equal(residuals, result.residuals[:4])


@pytest.mark.parametrize("accel", METHODS)
def test_methods_by_name(M, to_device, backend, accel):
    b, residuals = right_hand_side(), []
    if not hasattr(backend.linalg, accel):
        with pytest.raises(ValueError, match="accel must be one of cg, "):
            M.solve(to_device(b), accel=accel)
        return
    # CuPy's gmres applies M to the sum of all corrections, so what M rounds in single precision stays.
    tol = 1e-6 if accel == "gmres" and backend.name == "gpu" else 1e-8
    x, info = M.solve(to_device(b), tol=tol, accel=accel, residuals=residuals, return_info=True)
    assert info == 0 and relative(A, backend.to_host(x), b) < 1e-5  # minres has a rule of its own
    assert len(residuals) > 1 and residuals[-1] < 1e-5 * residuals[0]


def test_cg_is_pcg_and_a_guess_is_kept(M, to_device, backend):
    b, guess = to_device(right_hand_side()), to_device(right_hand_side(1))
    before, residuals = guess.copy(), []
    x = M.solve(b, guess, tol=1e-8, accel="cg", residuals=residuals)
    result = pcg(to_device(A), b, guess, M=M, rtol=1e-8)
    np.testing.assert_array_equal(backend.to_host(x), backend.to_host(result.x))
    np.testing.assert_array_equal(residuals, result.residuals)
    np.testing.assert_array_equal(backend.to_host(guess), backend.to_host(before))


def test_functions_are_called_as_pyamg_calls_them(M, to_device, backend):
    seen = {}

    def of_pyamg(A, b, x0=None, tol=1e-5, maxiter=None, M=None, callback=None, residuals=None):
        seen.update(locals())
        residuals.append(3.0)
        return b, 17

    def of_scipy(A, b, x0=None, *, rtol=1e-5, atol=1.0, maxiter=None, M=None, callback=None):
        seen.update(locals())
        callback(b)
        return b, 18

    b, residuals = to_device(np.ones(N)), []
    assert M.solve(b, tol=0.25, accel=of_pyamg, residuals=residuals, return_info=True)[1] == 17
    assert seen["tol"] == 0.25 and seen["M"] is M and seen["maxiter"] == 100 and residuals == [3.0]
    assert M.solve(b, tol=0.5, maxiter=None, accel=of_scipy, residuals=residuals, return_info=True)[1] == 18
    assert (seen["rtol"], seen["atol"], seen["maxiter"]) == (0.5, 0.0, None)
    assert residuals == pytest.approx([30.0, np.linalg.norm(np.ones(N) - A @ np.ones(N))])


def test_vectors_of_the_host_for_levels_on_the_device(backend):
    """As with device="gpu", whose vectors are NumPy's."""
    M = SmoothedAggregation(A, max_coarse=20, dtype="float64", device=backend.name)  # which the gmres of CuPy needs
    b, seen = right_hand_side(), []
    for options in ({}, {"accel": "cg"}, {"accel": "bicgstab"}, {"accel": "gmres"}, {"accel": "cg", "cycle": "K"}):
        x = M.solve(b, tol=1e-8, callback=seen.append, **options)
        assert isinstance(x, np.ndarray) and relative(A, x, b) < 1e-7
    assert all(isinstance(x, np.ndarray) or np.isscalar(x) for x in seen)


def test_zero_and_what_is_out_of_range(M, to_device, backend):
    """As with PyAMG the tolerance is absolute where b = 0."""
    guess = right_hand_side()
    x = backend.to_host(M.solve(to_device(np.zeros(N)), to_device(guess), tol=1e-3))
    assert 0 < np.linalg.norm(A @ x) <= 1e-3
    assert not backend.to_host(M.solve(to_device(np.zeros(N)), tol=1e-3)).any()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=8)
@given(own=st.sampled_from("VWK"), other=st.sampled_from("VWK"), seed=st.integers(0, 9))
def test_another_cycle_is_that_of_a_hierarchy_built_with_it(to_device, backend, own, other, seed):
    S, r = spd(stencil27(7)), to_device(right_hand_side(seed, 343))
    M, expected = (SmoothedAggregation(to_device(S), cycle=cycle, max_coarse=10) for cycle in (own, other))
    N = M.aspreconditioner(other)
    assert (N is M) == (own == other) and M.aspreconditioner() is M and N.aspreconditioner(own).cycle == own
    assert (N.cycle, N.linear, N.symmetric, N.captures) == (other, other != "K", True, M.captures)
    z = backend.to_host(N @ r)
    np.testing.assert_array_equal(z, backend.to_host(expected @ r))
    for again in (copy.copy(N), pickle.loads(pickle.dumps(N))):
        np.testing.assert_array_equal(backend.to_host(again @ r), z)
    for update in (M.update, N.update):
        update(to_device(4 * S))
        np.testing.assert_allclose(4 * backend.to_host(N @ r), z, rtol=1e-10, atol=1e-12)
        update(to_device(S))
    assert pcg(to_device(S), r, M=N, rtol=1e-8).converged


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"tol": 1e-8, "rtol": 1e-8}, TypeError, "rtol and tol are both given"),
        ({"accel": "cg", "atol": 1e-8}, TypeError, "atol and accel are both given"),
        ({"tol": -1.0}, ValueError, "tol must be"),
        ({"tol": "small"}, TypeError, "tol must be"),
        ({"accel": "qr"}, ValueError, "accel must be one of cg, .*got 'qr'"),
        ({"accel": 3}, TypeError, "accel must be a name or a function"),
        ({"cycle": "F"}, ValueError, "cycle must be one of V, W, K"),
        ({"cycle": 3}, TypeError, "cycle must be a string"),
        ({"residuals": ()}, TypeError, "residuals must be a list"),
        ({"return_info": 1}, TypeError, "return_info must be True or False"),
        ({"callback": 3}, TypeError, "callback must be a function"),
        ({"maxiter": None, "tol": 1.0}, TypeError, "maxiter must be an integer"),
        ({"maxiter": -1, "accel": "bicgstab"}, ValueError, "maxiter must be"),
    ],
)
def test_bad_arguments(M, to_device, options, error, message):
    with pytest.raises(error, match=message):
        M.solve(to_device(np.ones(N)), **options)


@pytest.mark.parametrize("accel", [None, "cg", "bicgstab", scipy.sparse.linalg.cg])
def test_bad_vectors(M, to_device, accel):
    with pytest.raises(ValueError, match="b must have shape"):
        M.solve(to_device(np.ones(7)), tol=1e-8, accel=accel)
    with pytest.raises(ValueError, match=r"x0 .*row 3"):
        M.solve(to_device(np.ones(N)), to_device(np.where(np.arange(N) == 3, np.nan, 1.0)), tol=1e-8, accel=accel)
    with pytest.raises(ValueError, match=r"b .*row 5"):
        M.solve(to_device(np.where(np.arange(N) == 5, np.inf, 1.0)), tol=1e-8, accel=accel)


def test_what_a_result_says_of_residuals_and_time(M, to_device, backend):
    b = right_hand_side()
    started = time.perf_counter()
    result = M.solve(to_device(b), rtol=1e-8)
    seconds = time.perf_counter() - started
    assert result.residual_norm == pytest.approx(result.residuals[-1], rel=1e-6)
    assert result.residual_norm <= 1e-8 * result.residuals[0]
    np.testing.assert_allclose(result.residual_norm, np.linalg.norm(b - A @ backend.to_host(result.x)), rtol=1e-5)
    assert min(result.setup_seconds, result.solve_seconds) >= 0
    assert result.setup_seconds + result.solve_seconds <= seconds


def test_code_for_pyamg_runs_unchanged():
    pyamg = pytest.importorskip("pyamg")
    b = right_hand_side()
    found = []
    for ml in (pyamg.smoothed_aggregation_solver(A, max_coarse=20), SmoothedAggregation(A, max_coarse=20)):
        residuals = []
        x = ml.solve(b, tol=1e-8, accel="cg", residuals=residuals)
        y = ml.solve(b, np.zeros(N), 1e-8, 100, "V", "bicgstab")
        z, info = ml.solve(b, tol=1e-8, maxiter=200, cycle="W", accel=pyamg.krylov.fgmres, return_info=True)
        assert info == 0 and all(relative(A, v, b) <= 2e-8 for v in (x, y, z))
        found.append(residuals)
        pyamg.krylov.cg(A, b, M=ml.aspreconditioner(cycle="V"), tol=1e-8)
    theirs, ours = found
    assert ours[0] == pytest.approx(theirs[0]) and len(ours) <= 2 * len(theirs)
