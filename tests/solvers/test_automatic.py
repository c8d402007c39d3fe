"""pcg(M="auto"): when a stage is left, and what comes of it."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import grid5, spd, stencil27
from hypothesis import given
from hypothesis import strategies as st

from mcprecond import PCG, MulticolorSGS, PatternChangedError, SmoothedAggregation, pcg, problems
from mcprecond.solvers import Reason, automatic, automatic_cg, named
from mcprecond.solvers import solver as solver_module
from mcprecond.solvers.preconditioned import PreconditionedCG
from mcprecond.tuning.forecast import Forecast, Prediction, expected_rate

seconds = st.floats(1e-6, 1.0)
EXPECTED = {"Jacobi": 100.0, "SGS": 50.0, "multigrid": 9.0}


def right_hand_side(A, seed=0, k=None):
    return A @ np.random.default_rng(seed).uniform(-1, 1, A.shape[0] if k is None else (A.shape[0], k))


class Eager(Forecast):
    """Goes on with the first candidate that has not been tried."""

    def first_question(self, current, digits, tried):
        return 8

    def next_stage(self, current, done, left, digits, tried):
        return next((name for name in self.predicted if name not in tried), None) if left > 1 else None


@pytest.fixture
def eager(monkeypatch):
    """Let solves begin with the weakest preconditioner, and leave it soon for SGS, and SGS for multigrid."""

    def forecast(times, features, plain, device, *, has_candidates):
        predicted = {name: Prediction(0.0, seconds) for seconds, name in enumerate((plain, "SGS", "multigrid"), 1)}
        return Eager(predicted, lambda name, digits: 1.0, (), False, margin=1.0, most_slower=2.0, patience=0.5)

    monkeypatch.setattr(automatic_cg, "forecast_cg", forecast)


def forecast_of(setup, first, other):
    predicted = {"Jacobi": Prediction(0.0, first), "SGS": Prediction(setup, other)}
    rule = {"margin": 2.0, "most_slower": 2.0, "patience": 0.5}
    return Forecast(predicted, lambda name, digits: EXPECTED[name] * digits / 8, (), False, **rule)


@given(setup=seconds, first=seconds, other=seconds, done=st.integers(1, 1000), left=st.floats(1, 1e6))
def test_a_stage_is_left_only_for_what_is_faster_by_the_margin(setup, first, other, done, left):
    forecast = forecast_of(setup, first, other)
    found = forecast.next_stage("Jacobi", done, left, 6.0, ("Jacobi",))
    if found is not None:
        assert found == "SGS" and left * first > 2.0 * (setup + 37.5 * other)
    elif left * first > 2.0 * (setup + max(left / 75, 1) * 37.5 * other):
        assert done * first <= 0.2 * (setup + max(left / 75, 1) * 37.5 * other)


@given(setup=seconds, first=seconds, other=seconds, left=st.floats(1, 1e6))
def test_no_stage_is_left_before_the_first_question_unless_it_is_trusted(setup, first, other, left):
    """Half of the 37.5 iterations that are expected go without a question."""
    forecast = forecast_of(setup, first, other)
    before = math.ceil(forecast.first_question("Jacobi", 3.0, ("Jacobi",))) - 1
    assert before >= 18 and (before == 18 or forecast.next_stage("Jacobi", before, left, 6.0, ("Jacobi",)) is None)
    assert forecast.first_question("Jacobi", 3.0, ("Jacobi", "SGS")) == math.inf


@given(setup=seconds, first=seconds, other=seconds, digits=st.floats(1, 15))
def test_the_fastest_begins(setup, first, other, digits):
    forecast = forecast_of(setup, first, other)
    best = forecast.fastest(digits)
    assert all(forecast.seconds(best, digits) <= forecast.seconds(name, digits) for name in forecast.predicted)
    assert forecast.fastest(digits, ("Jacobi", "SGS")) is None


@given(rate=st.floats(0.01, 1), count=st.integers(8, 100))
def test_the_later_half_tells_the_rate(rate, count):
    assert expected_rate([10.0 ** (-rate * k) for k in range(count)], 3.0) == pytest.approx(rate, rel=1e-6)
    assert expected_rate([1.0] * count, 3.0) == expected_rate([2.0**k for k in range(count)], 3.0) == 0
    assert expected_rate([1.0, 0.0, 1e-3], 3.0) == 0  # with rtol=0 a solve goes on from zero


@given(power=st.floats(0.5, 4), count=st.integers(32, 500))
def test_a_rate_that_falls_goes_on_falling(power, count):
    """As long as residuals fall by a power of the iterations, twice as many of these win as much as before."""
    residuals = [(k + 1.0) ** -power for k in range(count)]
    won = math.log10(residuals[count // 2] / residuals[-1])
    assert expected_rate(residuals, 3.0) == pytest.approx(won / count, rel=0.15)


@pytest.mark.parametrize("limit", [0.0, 1e-8])
@pytest.mark.parametrize("last", [1e-20, 1e-16, 1e-9, 1e-3, 1.5])
def test_digits_that_are_left_are_those_above_rounding_and_the_limit(last, limit):
    """None where the residual is that small already: no iterations are left, and no negative number of them."""
    residuals = list(np.geomspace(1.0, last, 12))
    iteration = SimpleNamespace(residuals=residuals, aim=limit, dtype=np.float64)
    left, digits = automatic.left_of(iteration, expected_rate(residuals, 3.0))
    assert digits == max(0.0, math.log10(residuals[-1] / max(limit, np.finfo(float).eps))) and left >= 0


def test_a_large_grid_begins_with_multigrid(backend, to_device):
    A = grid5({"cpu": 300, "gpu": 1000}[backend.name])
    b = right_hand_side(A)
    result = pcg(to_device(A), to_device(b), M="auto", rtol=1e-8)
    assert result.converged and np.linalg.norm(b - A @ backend.to_host(result.x)) <= 1.01e-8 * np.linalg.norm(b)
    assert [stage.name for stage in result.stages] == ["multigrid"] and isinstance(result.M, SmoothedAggregation)
    assert result.iterations == result.stages[0].iterations == len(result.residuals) - 1
    again = pcg(to_device(A), to_device(b), M="auto", rtol=1e-8)
    assert again.stages == result.stages
    np.testing.assert_array_equal(backend.to_host(again.x), backend.to_host(result.x))


def test_small_systems_stay_with_the_first(backend, to_device):
    A = spd(stencil27(6))
    result = pcg(to_device(A), to_device(right_hand_side(A)), M="auto", rtol=1e-8)
    assert result.converged and [stage.name for stage in result.stages] == ["Jacobi"]
    jacobi = to_device(sp.csr_matrix(sp.diags_array(1 / A.diagonal())))
    alone = pcg(to_device(A), to_device(right_hand_side(A)), M=jacobi, rtol=1e-8)
    np.testing.assert_array_equal(backend.to_host(result.x), backend.to_host(alone.x))
    r = backend.xp.arange(216.0)
    np.testing.assert_array_equal(backend.to_host(result.M @ r), backend.to_host(jacobi @ r))
    info = backend.linalg.cg(to_device(A), to_device(right_hand_side(A)), M=backend.linalg.aslinearoperator(result.M))[
        1
    ]
    assert info == 0


def test_later_solves_begin_where_the_last_one_ended(backend, to_device, eager):
    A = grid5(60)
    solver = PCG(to_device(A), "auto")
    first = solver.solve(to_device(right_hand_side(A)), rtol=1e-8)
    last = first.stages[-1].name
    assert len(first.stages) > 1
    second = solver.solve(to_device(right_hand_side(A, 1)), rtol=1e-8)
    assert second.converged and second.stages[0].name == last
    solver.release()


def test_several_right_hand_sides(backend, to_device, eager):
    A = grid5(40)
    B = right_hand_side(A, k=3)
    result = pcg(to_device(A), to_device(B), M="auto", rtol=1e-9)
    assert result.converged and len(result.stages) > 1 and result.M is not None
    residual = np.linalg.norm(B - A @ backend.to_host(result.x), axis=0)
    assert (residual <= 1.01e-9 * np.linalg.norm(B, axis=0)).all()


def test_a_singular_system(backend, to_device, eager):
    A = problems.laplacian((30, 30))
    A = sp.csr_matrix(A - sp.diags_array(A @ np.ones(900)))
    b = np.random.default_rng(0).uniform(-1, 1, 900)
    result = pcg(to_device(A), to_device(b), M="auto", nullspace="constant", rtol=1e-9)
    x = backend.to_host(result.x)
    assert result.converged and len(result.stages) > 1 and abs(x.mean()) < 1e-10
    np.testing.assert_allclose(A @ x, b - b.mean(), atol=1e-6)


def refuse(A):
    raise ValueError("A is not suited")


def test_what_cannot_be_built_is_left_out(backend, to_device, monkeypatch, eager):
    monkeypatch.setitem(named.BUILDERS, "multigrid", refuse)
    monkeypatch.setitem(named.BUILDERS, "sgs", refuse)
    A = grid5(30)
    result = pcg(to_device(A), to_device(right_hand_side(A)), M="auto", rtol=1e-8)
    assert result.converged and [stage.name for stage in result.stages] == ["none"]


def test_a_preconditioner_that_fails_is_left(backend, to_device, monkeypatch, eager):
    """As a hierarchy may that is not positive definite."""
    A = grid5(30)
    negative = to_device(sp.csr_matrix(-sp.eye_array(900)))
    monkeypatch.setitem(named.BUILDERS, "multigrid", lambda matrix: negative)
    monkeypatch.setitem(named.BUILDERS, "sgs", refuse)
    result = pcg(to_device(A), to_device(right_hand_side(A)), M="auto", rtol=1e-8)
    assert result.converged and [stage.name for stage in result.stages] == ["none", "multigrid", "none"]


def test_what_no_preconditioner_reaches_is_told(backend, to_device, eager):
    """Each stage stagnates at the rounding of r; the last one tells, and no stage is begun again."""
    A = grid5(30)
    result = pcg(to_device(A), to_device(right_hand_side(A)), M="auto", rtol=0.0, atol=1e-300)
    assert result.reason is Reason.STAGNATED and 1 < len(result.stages) <= 5
    assert result.residual_norm < 1e-12 * result.residuals[0]


def test_no_stage_that_is_left_is_examined(backend, to_device, monkeypatch, eager):
    """Whether A is symmetric takes as long to find out as many iterations."""
    A, asked = grid5(40), []
    monkeypatch.setattr(solver_module, "is_hermitian", lambda matrix: asked.append(matrix) or True)
    result = pcg(to_device(A), to_device(right_hand_side(A)), M="auto", rtol=1e-8)
    assert result.converged and len(result.stages) > 1 and not asked
    limited = pcg(to_device(A), to_device(right_hand_side(A)), M="auto", rtol=1e-8, maxiter=5)
    assert limited.reason is Reason.MAX_ITERATIONS and len(asked) == 1


def test_callbacks_count_on(backend, to_device, eager):
    A, seen, told = grid5(40), [], []
    result = pcg(
        to_device(A),
        to_device(right_hand_side(A)),
        M="auto",
        rtol=1e-8,
        callback=lambda x: seen.append(x.shape),
        progress=lambda count, norm: told.append(count),
    )
    assert len(result.stages) > 1 and seen == [(1600,)] * result.iterations
    assert told == sorted(told) and told[-1] == result.iterations
    limited = pcg(to_device(A), to_device(right_hand_side(A)), M="auto", rtol=1e-8, maxiter=9)
    assert limited.reason is Reason.MAX_ITERATIONS and limited.iterations == 9


def test_trivial_systems(backend, to_device):
    A = to_device(grid5(5))
    assert pcg(A, to_device(np.zeros(25)), M="auto").iterations == 0
    assert pcg(to_device(sp.csr_matrix((0, 0))), to_device(np.zeros(0)), M="auto").converged
    operator = backend.linalg.aslinearoperator(A)
    assert pcg(operator, to_device(np.ones(25)), M="auto").converged
    unsymmetric = sp.csr_matrix(sp.diags_array([-1.5, 3, -1], offsets=[-1, 0, 1], shape=(25, 25)))
    assert pcg(to_device(unsymmetric), to_device(np.ones(25)), M="auto", maxiter=2).reason is Reason.UNSYMMETRIC_A
    with pytest.raises(ValueError, match="M must be one of auto, jacobi, sgs, dilu, ilu0, multigrid, got 'best'"):
        pcg(A, to_device(np.ones(25)), M="best")


def test_M_is_for_use_again(backend, to_device, eager):
    A = grid5(40)
    M = pcg(to_device(A), to_device(right_hand_side(A)), M="auto", rtol=1e-8).M
    assert isinstance(M, SmoothedAggregation | MulticolorSGS)
    assert pcg(to_device(A), to_device(right_hand_side(A, 1)), M=M, rtol=1e-8).converged


@pytest.mark.parametrize("M", ["auto", "sgs", "jacobi", "multigrid", None])
def test_updates_take_new_values(M, backend, to_device, eager):
    """The result is that of a solver that begins with the preconditioner that the solve before has ended with."""
    A = sp.csr_matrix(grid5(40) + sp.diags_array(np.linspace(0, 1, 1600)))
    other = sp.csr_matrix(A + sp.diags_array(np.linspace(2, 0, 1600)))
    b = to_device(right_hand_side(A))
    solver = PCG(to_device(A), M)
    last = solver.solve(b, rtol=1e-9)
    solver.update(to_device(other))
    result = solver.solve(b, rtol=1e-9)
    assert result.converged and result.stages[:1] == result.stages
    x, residual = backend.to_host(result.x), backend.to_host(b)
    assert np.linalg.norm(residual - other @ x) <= 1.01e-9 * np.linalg.norm(residual)
    if M == "auto":
        assert len(last.stages) > 1 and result.stages[0].name == last.stages[-1].name
        assert result.M is last.M
    else:
        fresh = backend.to_host(pcg(to_device(other), b, M=M, rtol=1e-9).x)
        if M == "multigrid":  # which keeps its aggregates
            np.testing.assert_allclose(x, fresh, atol=1e-6)
        else:
            np.testing.assert_array_equal(x, fresh)
    solver.release()


def test_a_stage_in_single_precision_is_left_at_once(backend, to_device, monkeypatch, eager):
    """Double precision completes solves that single precision fails, but not those that another stage completes."""
    monkeypatch.setattr(named, "narrow_is_faster", lambda A: True)
    monkeypatch.setattr(PreconditionedCG, "_wide_solver", lambda self, dtype: pytest.fail("is built for nothing"))
    A = problems.laplacian((40, 40))
    result = pcg(to_device(A), to_device(right_hand_side(A)), M="auto", rtol=1e-10)
    assert result.converged and [stage.name for stage in result.stages] == ["none", "SGS", "multigrid"]


def test_updates_that_are_refused_change_nothing(backend, to_device):
    A = grid5(20)
    b = to_device(right_hand_side(A))
    solver = PCG(to_device(A), "sgs")
    before = solver.solve(b)
    with pytest.raises(PatternChangedError, match="A has another pattern than before in row 0"):
        solver.update(to_device(sp.csr_matrix(sp.eye_array(400))))
    bad = A.copy()
    bad.data[A.indptr[3]] = np.nan
    with pytest.raises(ValueError, match="row 3"):
        solver.update(to_device(bad))
    with pytest.raises(ValueError, match="shape"):
        solver.update(to_device(grid5(10)))
    with pytest.raises(TypeError, match="operator"):
        PCG(backend.linalg.aslinearoperator(to_device(A))).update(to_device(A))
    np.testing.assert_array_equal(backend.to_host(solver.solve(b).x), backend.to_host(before.x))


def test_updates_of_a_singular_system(to_device, backend, eager):
    L = problems.laplacian((20, 20))
    L = sp.csr_matrix(L - sp.diags_array(L @ np.ones(400)))
    b = np.random.default_rng(0).uniform(-1, 1, 400)
    solver = PCG(to_device(L), "auto", nullspace="constant")
    first = backend.to_host(solver.solve(to_device(b), rtol=1e-10).x)
    solver.update(to_device(sp.csr_matrix(2 * L)))
    np.testing.assert_allclose(2 * backend.to_host(solver.solve(to_device(b), rtol=1e-10).x), first, atol=1e-7)
    with pytest.raises(ValueError, match="nullspace"):
        solver.update(to_device(sp.csr_matrix(L + sp.eye_array(400))))
