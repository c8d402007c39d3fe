"""BiCGSTAB and GMRES with M by name and M="auto", with several right-hand sides, and cycles that grow."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.flows import advection, streamline
from mcprecond import MulticolorDILU, bicgstab, gmres, minres, pcg, problems
from mcprecond.matrix import admit_matrix
from mcprecond.solvers import Reason, automatic_general
from mcprecond.solvers.named import BUILDERS, GENERAL_NAMES
from mcprecond.tuning.features import Features, features_of
from mcprecond.tuning.forecast import SPENT, Forecast, Prediction, digits_of
from mcprecond.tuning.general import IN_SPACE, expected_iterations, side_of

SOLVERS = {"bicgstab": bicgstab, "gmres": gmres}
solvers = pytest.mark.parametrize("solve", SOLVERS.values(), ids=SOLVERS)


def numbers(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, n)


def relative_residual(A, x, b) -> float:
    return float(np.linalg.norm(b - A @ x) / np.linalg.norm(b))


def dominant(n: int = 900) -> sp.csr_array:
    """As of a small step in time, with diagonal entries that differ."""
    flow = sp.csr_array(advection(int(n**0.5), 1e-2, "vortex"))
    scale = 3 * abs(flow).sum(axis=1).max()
    return sp.csr_array(flow + sp.diags_array(scale * (1 + 4 * np.arange(n) / n)))


@solvers
@pytest.mark.parametrize("name", GENERAL_NAMES)
def test_names_of_preconditioners(name, solve, backend, to_device):
    A = advection(30, 1e-2, "cells")
    b = numbers(900)
    if name == "spilu" and backend.name == "gpu":
        with pytest.raises(ValueError, match="for A on the CPU"):
            solve(to_device(A), to_device(b), M=name)
        return
    result = solve(to_device(A), to_device(b), M=name, rtol=1e-9)
    assert result.converged and relative_residual(A, backend.to_host(result.x), b) <= 1.01e-9
    assert bool(result.stages) == (name == "auto")


def test_names_that_are_not_known(to_device):
    A, b = to_device(advection(5, 1.0, "cells")), to_device(np.ones(25))
    for solve in SOLVERS.values():
        with pytest.raises(ValueError, match="M must be one of auto, jacobi, sgs, dilu, ilu0, multigrid, spilu"):
            solve(A, b, M="ilu")


def test_jacobi_names_the_row_without_an_inverse(to_device, backend):
    A = sp.csr_matrix(sp.diags_array([[2.0, 0.0, -3.0], [1.0, 1.0]], offsets=[0, 1]))
    with pytest.raises(ValueError, match=r"A has 0\.0 on the diagonal in row 1"):
        gmres(to_device(A), to_device(np.ones(3)), M="jacobi")
    tiny = to_device(sp.csr_matrix(np.diag([2.0, 1.0, 1e-310])))
    with pytest.raises(ValueError, match="A has 1e-310 on the diagonal in row 2"):
        gmres(tiny, to_device(np.ones(3)), M="jacobi")
    for solve in (pcg, gmres):
        assert float(solve(tiny, to_device(np.array([2.0, 1.0, 0.0])), M="auto").x[0]) == pytest.approx(1.0)
    jacobi = BUILDERS["jacobi"](admit_matrix(to_device(sp.csr_matrix(np.diag([2.0, -4.0]))), finite=True))
    np.testing.assert_array_equal(backend.to_host(jacobi @ to_device(np.ones(2))), [0.5, -0.25])


def test_spilu_serves_a_system_in_a_wider_dtype():
    A = sp.csr_matrix(sp.diags_array([-1.0, 3.0, -0.5], offsets=[-1, 0, 1], shape=(50, 50))).astype(np.float32)
    result = gmres(A, np.ones(50), M="spilu", rtol=1e-10)
    assert result.converged and result.x.dtype == np.float64 and result.iterations < 10


@pytest.mark.parametrize(("solve", "method"), [(pcg, "CG"), (minres, "MINRES")])
def test_methods_for_symmetric_matrices_refuse_multigrid_before_it_is_built(solve, method, to_device, monkeypatch):
    monkeypatch.setitem(BUILDERS, "multigrid", lambda matrix: pytest.fail("multigrid is built"))
    with pytest.raises(ValueError, match=rf"A is not symmetric \(or Hermitian\), which {method} needs; use gmres"):
        solve(to_device(advection(10, 1e-2, "cells")), to_device(np.ones(100)), M="multigrid")
    with pytest.raises(pytest.fail.Exception):
        solve(to_device(problems.laplacian((10, 10))), to_device(np.ones(100)), M="multigrid")


@solvers
@pytest.mark.parametrize("diffusion", [1.0, 1e-2, 1e-4])
def test_auto_solves_flows(diffusion, solve, backend, to_device):
    A = advection(60, diffusion, "closed")
    b = numbers(3600)
    result = solve(to_device(A), to_device(b), M="auto", rtol=1e-8)
    assert result.converged and relative_residual(A, backend.to_host(result.x), b) <= 1.01e-8
    assert result.iterations == sum(stage.iterations for stage in result.stages) == len(result.residuals) - 1
    again = solve(to_device(A), to_device(b), M="auto", rtol=1e-8)
    assert again.stages == result.stages
    np.testing.assert_array_equal(backend.to_host(again.x), backend.to_host(result.x))


@solvers
def test_a_dominant_diagonal_is_enough(solve, backend, to_device):
    A = dominant()
    result = solve(to_device(A), to_device(numbers(900)), M="auto", rtol=1e-8)
    assert result.converged and [stage.name for stage in result.stages] == ["Jacobi"] and result.iterations < 20


def test_a_matrix_without_a_diagonal_is_solved(backend, to_device):
    """Multigrid, ILU0 and DILU cannot be built for it."""
    A = sp.csr_matrix(np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 3.0], [4.0, 0.0, 0.0]]))
    result = gmres(to_device(A), to_device(np.ones(3)), M="auto", rtol=1e-10)
    assert result.converged and result.stages[-1].name in ("none", "spilu")
    np.testing.assert_allclose(backend.to_host(result.x), [1 / 4, 1 / 2, 1 / 3])


def predict(monkeypatch, predicted: dict[str, Prediction], weakest: float = 1e3) -> None:
    """Let these be the candidates, and an iteration with the weakest one take so many seconds."""

    def forecast(times, features, plain, device, products):
        made = forecast_general(times, features, plain, device, products)
        return replace(made, predicted={plain: Prediction(0.0, weakest)} | predicted)

    forecast_general = automatic_general.forecast_general
    monkeypatch.setattr(automatic_general, "forecast_general", forecast)


@solvers
def test_a_stage_that_fails_is_followed_by_another(solve, backend, to_device, monkeypatch):
    """The first preconditioner is zero, and its solve ends without progress or breaks down."""
    A, b = advection(30, 1e-2, "vortex"), numbers(900)
    zero = to_device(sp.csr_matrix(sp.diags_array(np.zeros(900))))
    monkeypatch.setitem(BUILDERS, "multigrid", lambda matrix: zero)
    predict(monkeypatch, {"multigrid": Prediction(0.0, 1e-9), "DILU": Prediction(0.0, 1e-4)}, weakest=1.0)
    result = solve(to_device(A), to_device(b), M="auto", rtol=1e-8, maxiter=400)
    assert result.converged and [stage.name for stage in result.stages] == ["multigrid", "DILU"]
    assert isinstance(result.M, MulticolorDILU)


@solvers
def test_a_slow_stage_goes_on_where_the_next_one_fails(solve, backend, to_device, monkeypatch):
    A, b = advection(30, 1e-2, "vortex"), numbers(900)
    slow, zero = (to_device(sp.csr_matrix(sp.diags_array(np.full(900, value)))) for value in (1.0, 0.0))
    monkeypatch.setitem(BUILDERS, "multigrid", lambda matrix: slow)
    monkeypatch.setitem(BUILDERS, "dilu", lambda matrix: zero)
    predicted = {"multigrid": Prediction(0.0, 1.0), "DILU": Prediction(100.0, 1e-6)}
    predict(monkeypatch, predicted)
    result = solve(to_device(A), to_device(b), M="auto", rtol=1e-8)
    names = [stage.name for stage in result.stages]
    assert result.converged and names == ["multigrid", "DILU", "multigrid"] and result.M is slow


def test_a_stage_that_maxiter_would_end_is_left(backend, to_device, monkeypatch):
    """DILU would take fewer seconds up to `maxiter` than multigrid takes for its setup, but would not converge."""
    A, b = to_device(advection(100, 1e-2, "vortex")), to_device(numbers(10**4))
    predicted = {"DILU": Prediction(0.0, 1.0), "multigrid": Prediction(250.0, 1.0)}
    predict(monkeypatch, predicted)
    assert not bicgstab(A, b, M="dilu", rtol=1e-8, maxiter=150).converged
    result = bicgstab(A, b, M="auto", rtol=1e-8, maxiter=150)
    assert result.converged and [stage.name for stage in result.stages] == ["DILU", "multigrid"]


@solvers
def test_no_candidate_is_begun_more_than_twice(solve, backend, to_device):
    """No preconditioner helps where rounding is the limit."""
    A = advection(12, 1e-2, "cells")
    result = solve(to_device(A), to_device(numbers(144)), M="auto", rtol=0.0, atol=1e-300)
    names = [stage.name for stage in result.stages]
    assert not result.converged and max(names.count(name) for name in names) <= 2
    assert result.residual_norm < 1e-11 * result.residuals[0]


@solvers
def test_maxiter_is_that_of_all_stages(solve, backend, to_device):
    A = to_device(advection(40, 1e-4, "closed"))
    result = solve(A, to_device(numbers(1600)), M="auto", rtol=1e-14, maxiter=1)
    assert result.reason is Reason.MAX_ITERATIONS and result.info == 1
    none = solve(A, to_device(numbers(1600)), M="auto", maxiter=0)
    assert none.iterations == 0 and none.reason is Reason.MAX_ITERATIONS


@solvers
def test_trivial_systems(solve, backend, to_device):
    A = to_device(advection(5, 1.0, "cells"))
    assert solve(A, to_device(np.zeros(25)), M="auto").iterations == 0
    assert solve(to_device(sp.csr_matrix((0, 0))), to_device(np.zeros(0)), M="auto").converged
    operator = backend.linalg.aslinearoperator(A)
    assert solve(operator, to_device(np.ones(25)), M="auto").converged


@solvers
@pytest.mark.parametrize("M", [None, "auto", "ilu0"])
def test_several_columns_are_those_of_single_solves(M, solve, backend, to_device):
    A = to_device(advection(20, 1e-2, "vortex"))
    B = numbers(1200).reshape(400, 3)
    x0 = numbers(1200, 1).reshape(400, 3)
    result = solve(A, to_device(B), to_device(x0), M=M, rtol=1e-9)
    assert result.converged and len(result.reasons) == 3 and result.x.shape == (400, 3)
    for column in range(3):
        alone = solve(A, to_device(B[:, column].copy()), to_device(x0[:, column].copy()), M=M, rtol=1e-9)
        if M != "auto":  # later columns begin with the stage that the first one has ended with
            np.testing.assert_array_equal(backend.to_host(result.x[:, column]), backend.to_host(alone.x))
            assert alone.iterations == result.iterations[column]
        x = backend.to_host(result.x[:, column])
        assert relative_residual(backend.to_host(A.toarray()), x, B[:, column]) <= 1.01e-9
    few = solve(A, to_device(B), M=M, rtol=1e-15, maxiter=1)
    if solve is bicgstab:
        assert few.cycles is None and few.iterations.tolist() == [1, 1, 1]
    else:
        assert few.cycles.tolist() == [1, 1, 1]


def ring(n: int, links: float) -> sp.csr_array:
    """The matrix that moves each number on by one place, up to small entries: GMRES wins nothing before n steps."""
    shift = sp.csr_array((np.ones(n), (np.arange(n), np.arange(-1, n - 1) % n)), shape=(n, n))
    return sp.csr_array(shift + links * sp.eye_array(n))


@pytest.mark.parametrize("links", [0.0, 0.01])
def test_cycles_grow_where_they_win_little(links, backend, to_device):
    A, b = to_device(ring(100, links)), to_device(np.eye(100)[0])
    fixed = gmres(A, b, restart=30, rtol=1e-8, maxiter=20)
    assert not fixed.converged and fixed.residual_norm > 0.5
    adaptive = gmres(A, b, rtol=1e-8, maxiter=20)
    assert adaptive.converged and adaptive.cycles < 10 and adaptive.iterations > 30 * adaptive.cycles
    np.testing.assert_array_equal(adaptive.residuals[:31], fixed.residuals[:31])
    twice = gmres(A, to_device(np.eye(100)[:, :2].copy()), rtol=1e-8, maxiter=20)
    np.testing.assert_array_equal(backend.to_host(twice.x[:, 0]), backend.to_host(adaptive.x))


def test_cycles_do_not_grow_without_memory(backend, to_device, monkeypatch):
    monkeypatch.setattr(sys.modules["mcprecond.solvers.gmres"], "available_bytes", lambda backend: 0)
    A, b = to_device(ring(100, 0.01)), to_device(np.eye(100)[0])
    adaptive, fixed = (gmres(A, b, rtol=1e-8, maxiter=20, restart=restart) for restart in (None, 30))
    np.testing.assert_array_equal(adaptive.residuals, fixed.residuals)


FEATURES = Features(n=10**4, entries=5 * 10**4, growth=1.9, products=0.25)
PREDICTED = {"none": Prediction(0.0, 1.0), "ILU0": Prediction(1.0, 3.0), "multigrid": Prediction(50.0, 12.0)}


@given(digits=st.floats(0.5, 15), side=st.integers(10, 10**4), name=st.sampled_from(["none", "Jacobi", "DILU", "ILU0"]))
def test_iterations_grow_with_the_grid_unless_the_diagonal_dominates(digits, side, name):
    small, large = (replace_features(n=n, entries=5 * n) for n in (side**2, 4 * side**2))
    few, many = (expected_iterations(name, digits, features, 2) for features in (small, large))
    assert few <= many <= 2 * few + 1e-9
    dominant = [expected_iterations(name, digits, one._replace(surplus=1.5), 2) for one in (small, large)]
    assert dominant[0] <= dominant[1] <= max(8 * digits, 1.0)
    of_gmres = expected_iterations(name, digits, small, 1)
    assert of_gmres == pytest.approx(2 * few)


def replace_features(**changes):
    return FEATURES._replace(**changes)


@given(dropped=st.floats(0, 1), less=st.floats(0, 1), digits=st.floats(0.5, 15))
def test_iterations_of_ilu0_fall_with_what_it_drops(dropped, less, digits):
    of_laplace, more, fewer = (
        expected_iterations("ILU0", digits, replace_features(products=part), 2)
        for part in (0.25, dropped, less * dropped)
    )
    assert fewer <= more <= of_laplace
    assert expected_iterations("ILU0", digits, replace_features(products=0.0), 2) <= 2 * digits


@given(positive=st.floats(0, 1), less=st.floats(0, 1), digits=st.floats(0.5, 15))
def test_iterations_of_multigrid_alone_grow_with_positive_entries(positive, less, digits):
    few, many = (replace_features(positive=part) for part in (less * positive, positive))
    assert expected_iterations("multigrid", digits, few, 2) <= expected_iterations("multigrid", digits, many, 2)
    for name in ("none", "DILU", "ILU0", "spilu"):
        assert expected_iterations(name, digits, few, 2) == expected_iterations(name, digits, many, 2)


@given(left=st.floats(0, 1e6), done=st.integers(1, 1000), digits=st.floats(0.1, 15))
def test_a_stage_is_left_only_for_what_is_faster(left, done, digits):
    expected = partial(expected_iterations, features=FEATURES, products=2)
    forecast = Forecast(PREDICTED, expected, ("multigrid",), True, margin=1.2, most_slower=2.0, patience=0.5)
    name = forecast.next_stage("multigrid", done, left, digits, ("multigrid",))
    seconds = forecast.seconds(forecast.fastest(digits, ("multigrid",)), digits)
    if name is not None:
        assert left * PREDICTED["multigrid"].iteration > seconds
        assert done * PREDICTED["multigrid"].iteration > SPENT * seconds
    assert forecast.next_stage("multigrid", done, left, digits, PREDICTED) is None
    assert forecast.next_stage("multigrid", done, 0.0, digits, ("multigrid",)) is None


def test_digits():
    assert digits_of(1e-8) == pytest.approx(8) and digits_of(0.0) == pytest.approx(15) and digits_of(np.inf) == 1


def test_the_side_of_a_grid():
    """In a plane and in space, whatever the order of the rows."""
    plane, space = problems.laplacian((30, 30)), problems.laplacian((20, 20, 20))
    order = np.random.default_rng(0).permutation(20**3)
    for A, side in ((plane, 30), (space, IN_SPACE * 20), (sp.csr_array(space)[order][:, order], IN_SPACE * 20)):
        assert side_of(features_of(admit_matrix(sp.csr_matrix(A), finite=True))) == pytest.approx(side)


def renumbered(A: sp.csr_matrix, order: np.ndarray) -> sp.csr_matrix:
    return sp.csr_matrix(sp.csr_array(A)[order][:, order])


@solvers
def test_ilu0_begins_where_the_order_of_the_rows_follows_the_flow(solve):
    """Or where the reverse order does. In an order by two colors half of the entries of each row lead upstream."""
    flow = advection(100, 1e-5, "diagonal")
    rows, b = np.arange(10**4), numbers(10**4)
    checkered = np.argsort((rows // 100 + rows) % 2, kind="stable")
    for order, begins in ((rows, True), (rows[::-1], True), (checkered, False)):
        result = solve(renumbered(flow, order), b, M="auto", rtol=1e-8)
        assert result.converged and (result.stages[0].name == "ILU0") is begins
        assert not begins or (len(result.stages) == 1 and result.iterations <= 10)


@solvers
def test_spilu_begins_where_streamlines_are_closed_and_entries_are_positive(solve):
    b = numbers(3600)
    result = solve(streamline(60, 1e-6, "closed"), b, M="auto", rtol=1e-8)
    assert result.converged and [stage.name for stage in result.stages] == ["spilu"] and result.iterations <= 10
