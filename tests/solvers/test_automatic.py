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

from mcprecond import PCG, MulticolorSGS, SmoothedAggregation, pcg, problems
from mcprecond.solvers import Reason, automatic, named
from mcprecond.solvers import solver as solver_module
from mcprecond.tuning.cost_model import MEASURED
from mcprecond.tuning.stages import OF_JACOBI, Prediction, Progress, expected_rate, next_stage, predictions

seconds = st.floats(1e-6, 1.0)


def right_hand_side(A, seed=0, k=None):
    return A @ np.random.default_rng(seed).uniform(-1, 1, A.shape[0] if k is None else (A.shape[0], k))


@pytest.fixture
def eager(monkeypatch):
    """Let setups count as nothing, so that small systems change their preconditioners, too."""

    def free(*args):
        found = predictions(*args)
        cheap = {"none": 1.0, "Jacobi": 1.0, "SGS": 1.2, "multigrid": 5.0}
        return {name: Prediction(1e-9, cheap[name]) for name in found}

    monkeypatch.setattr(automatic, "predictions", free)


@given(setup=seconds, first=seconds, other=seconds, done=st.integers(1, 1000), left=st.floats(1, 1e6))
def test_nothing_changes_before_a_quarter_of_the_setup_is_spent(setup, first, other, done, left):
    predicted = {"Jacobi": Prediction(0.0, first), "SGS": Prediction(setup, other)}
    found = next_stage("Jacobi", left, 6.0, {"Jacobi": Progress(done, 0.1)}, predicted)
    total = setup + OF_JACOBI * left * other
    if found is not None:
        assert found == "SGS" and done * first >= 0.25 * setup and left * first > 1.1 * total
    elif done * first >= setup:
        assert left * first <= 1.1 * total


@given(setup=seconds, first=seconds, other=seconds, iterations=st.integers(1, 10**5), share=st.floats(0.05, 1))
def test_a_solve_takes_at_most_twice_as_long_as_the_best(setup, first, other, iterations, share):
    """Where the predictions are right, but for one more iteration: those of the first stage, and of the other one."""
    predicted = {"Jacobi": Prediction(0.0, first), "SGS": Prediction(setup, other * share)}
    spent = 0
    while spent < iterations:
        spent += 1
        if next_stage("Jacobi", iterations - spent, 6.0, {"Jacobi": Progress(spent, 0.1)}, predicted):
            break
    left = iterations - spent
    taken = spent * first + (setup + OF_JACOBI * left * other * share if left else 0.0)
    best = min(iterations * first, setup + OF_JACOBI * iterations * other * share)
    assert taken <= 2.2 * best + first


def test_what_was_left_is_returned_to_if_it_was_faster():
    predicted = {"Jacobi": Prediction(0.0, 1.0), "multigrid": Prediction(10.0, 5.0)}
    progress = {"Jacobi": Progress(50, 0.04), "multigrid": Progress(60, 0.005)}
    assert next_stage("multigrid", 800, 4.0, progress, predicted) == "Jacobi"
    progress["multigrid"] = Progress(8, 0.005)  # 40 seconds, fewer than those of Jacobi
    assert next_stage("multigrid", 800, 4.0, progress, predicted) is None
    progress["multigrid"] = Progress(20, 0.2)
    assert next_stage("multigrid", 20, 4.0, progress, predicted) is None


@given(rate=st.floats(0.01, 1), count=st.integers(8, 100))
def test_the_later_half_tells_the_rate(rate, count):
    assert expected_rate([10.0 ** (-rate * k) for k in range(count)]) == pytest.approx(rate, rel=1e-6)
    assert expected_rate([1.0] * count) == expected_rate([2.0**k for k in range(count)]) == 0
    assert expected_rate([1.0, 0.0, 1e-3]) == 0  # with rtol=0 a solve goes on from zero


@given(power=st.floats(0.5, 4), count=st.integers(32, 500))
def test_a_rate_that_falls_goes_on_falling(power, count):
    """As long as residuals fall by a power of the iterations, twice as many of these win as much as before."""
    residuals = [(k + 1.0) ** -power for k in range(count)]
    won = math.log10(residuals[count // 2] / residuals[-1])
    assert expected_rate(residuals) == pytest.approx(won / count, rel=0.15)


@pytest.mark.parametrize("limit", [0.0, 1e-8])
@pytest.mark.parametrize("last", [1e-20, 1e-16, 1e-9, 1e-3, 1.5])
def test_digits_that_are_left_are_those_above_rounding_and_the_limit(last, limit):
    """None where the residual is that small already: no iterations are left, and no negative number of them."""
    residuals = list(np.geomspace(1.0, last, 12))
    iteration = SimpleNamespace(residuals=residuals, limit=limit, dtype=np.float64)
    left, digits = automatic.left_of(iteration, expected_rate(residuals))
    assert digits == max(0.0, math.log10(residuals[-1] / max(limit, np.finfo(float).eps))) and left >= 0


@pytest.mark.parametrize("device", MEASURED)
def test_large_systems_pay_for_more(device):
    """A grid of 1000^2 nodes and one of 20^2, if all iterations of Jacobi are left."""
    for n, left, expected in ((10**6, 1500, "multigrid"), (400, 60, None)):
        predicted = predictions(n, 5 * n, 8, 2, MEASURED[device])
        assert next_stage("none", left, 8.0, {"none": Progress(left, 0.1)}, predicted) == expected


def test_a_large_grid_goes_on_with_multigrid(backend, to_device):
    A = grid5({"cpu": 300, "gpu": 1000}[backend.name])
    b = right_hand_side(A)
    result = pcg(to_device(A), to_device(b), M="auto", rtol=1e-8)
    assert result.converged and np.linalg.norm(b - A @ backend.to_host(result.x)) <= 1.01e-8 * np.linalg.norm(b)
    names = [stage.name for stage in result.stages]
    assert names[0] == "none" and names[-1] == "multigrid" and len(names) <= 3
    assert isinstance(result.M, SmoothedAggregation)
    assert result.iterations == sum(stage.iterations for stage in result.stages) == len(result.residuals) - 1
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
