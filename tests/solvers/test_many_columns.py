"""pcg for several right-hand sides at once: each column is what a solve for it alone gives, on both devices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import DTYPES, grid5, laplacian, patterns, random_values, spd, stencil27
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcprecond import (
    ILU0,
    PCG,
    ClassicalAMG,
    MulticolorDILU,
    MulticolorSGS,
    SmoothedAggregation,
    SolveResult,
    pcg,
)
from mcprecond.linalg import csr
from mcprecond.linalg.csr import product_with
from mcprecond.linalg.dense import Dense
from mcprecond.matrix import admit_matrix
from mcprecond.solvers import Reason
from mcprecond.solvers.columns import ColumnsIteration
from mcprecond.solvers.iteration import RUNNING

FIXTURES = [HealthCheck.function_scoped_fixture]


def jacobi(A, backend):
    return backend.sparse.csr_matrix(backend.sparse.diags(1 / A.diagonal()))


PRECONDITIONERS = {
    "none": lambda A, backend: None,
    "Jacobi": jacobi,
    "SGS": lambda A, backend: MulticolorSGS(A, "greedy"),
    "SSOR twice": lambda A, backend: MulticolorSGS(A, "greedy", omega=1.2, sweeps=2),
    "nodes": lambda A, backend: MulticolorSGS(A, "greedy", block_size=3),
    "DILU": lambda A, backend: MulticolorDILU(A, "greedy"),
    "ILU0": lambda A, backend: ILU0(A, coloring="greedy"),
    "multigrid": lambda A, backend: SmoothedAggregation(A, max_coarse=20),
    "classical multigrid": lambda A, backend: ClassicalAMG(A, max_coarse=20),
    "Jacobi smoothing": lambda A, backend: SmoothedAggregation(A, max_coarse=20, smoother="jacobi"),
    "Gauss-Seidel smoothing": lambda A, backend: SmoothedAggregation(A, max_coarse=20, smoother="sgs", cycle="W"),
    "DILU smoothing": lambda A, backend: SmoothedAggregation(A, max_coarse=20, smoother="dilu"),
    "K cycles": lambda A, backend: SmoothedAggregation(A, max_coarse=20, cycle="K"),
    "foreign": lambda A, backend: backend.linalg.aslinearoperator(jacobi(A, backend)),
    "vectors only": lambda A, backend: backend.linalg.LinearOperator(
        A.shape, matvec=lambda r: r.reshape(-1) / A.diagonal(), dtype=A.dtype
    ),
}


def values(n: int, k: int, dtype: type = np.float64, seed: int = 0) -> np.ndarray:
    return random_values(np.random.default_rng(seed), n * k, dtype).astype(dtype).reshape(n, k)


def mixed(A, k: int, dtype: type = np.float64) -> tuple[np.ndarray, np.ndarray]:
    """Right-hand sides and guesses: random ones, an easy one, zero, one that the guess solves, and one far off."""
    n = A.shape[0]
    B, X0 = values(n, k, dtype), values(n, k, dtype, 1)
    B[:, 1] = A @ np.ones(n, dtype)
    B[:, 2] = 0
    B[:, 3] = A @ X0[:, 3]
    X0[:, 4] *= 100
    return B, X0


def check_columns(A, B, X0, M, backend, to_device, *, atol=1e-7, **options) -> SolveResult:
    """Solve for all columns at once and for each of them alone, in the plain form, and compare."""
    options = {"form": "plain"} | options
    result = pcg(A, to_device(B), None if X0 is None else to_device(X0), M=M, **options)
    k, X = B.shape[1], backend.to_host(result.x)
    assert X.shape == B.shape and len(result.reasons) == k
    assert result.residuals.shape == (max(result.iterations) + 1, k)
    for c in range(k):
        guess = None if X0 is None else to_device(X0[:, c].copy())
        alone = pcg(A, to_device(B[:, c].copy()), guess, M=M, **options)
        assert result.reasons[c] is alone.reason
        assert abs(result.iterations[c] - alone.iterations) <= 1
        x = backend.to_host(alone.x)
        np.testing.assert_allclose(X[:, c], x, rtol=0, atol=atol * max(1e-300, abs(x).max()))
        own = result.residuals[:, c]
        assert np.isfinite(own[: result.iterations[c] + 1]).all() and np.isnan(own[result.iterations[c] + 1 :]).all()
        np.testing.assert_allclose(own[0], alone.residuals[0], rtol=1e-5, atol=1e-12 * np.linalg.norm(B[:, c]))
        assert result.residual_norm[c] <= 1.1 * max(alone.residual_norm, options["rtol"] * np.linalg.norm(B[:, c]))
    return result


@pytest.mark.parametrize("guesses", [False, True])
@pytest.mark.parametrize("name", PRECONDITIONERS)
def test_columns_are_solved_as_alone(name, guesses, backend, to_device):
    A = spd(stencil27(6))
    B, X0 = mixed(A, 9)
    on_device = to_device(A)
    M = PRECONDITIONERS[name](on_device, backend)
    result = check_columns(on_device, B, X0 if guesses else None, M, backend, to_device, rtol=1e-9)
    assert result.converged and result.info == 0 and result.reason is Reason.CONVERGED
    assert result.iterations[2] == 0 and not backend.to_host(result.x)[:, 2].any()
    if guesses:
        assert result.iterations[3] == 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["none", "SGS", "nodes", "multigrid", "foreign"])
def test_dtypes(name, dtype, backend, to_device):
    A = spd(stencil27(6), dtype=dtype)
    on_device = to_device(A)
    M = PRECONDITIONERS[name](on_device, backend)
    is_single = np.finfo(dtype).bits == 32
    B = values(216, 5, dtype)
    result = check_columns(
        on_device, B, None, M, backend, to_device, rtol=1e-4 if is_single else 1e-9, atol=1e-3 if is_single else 1e-7
    )
    assert result.converged and result.x.dtype == dtype


@pytest.mark.parametrize("of_A", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["SGS", "multigrid"])
def test_complex_columns_are_pairs_of_real_ones_to_M(name, of_A, backend, to_device):
    A = to_device(spd(stencil27(6), dtype=of_A))
    B = values(216, 3, np.complex128)
    M = PRECONDITIONERS[name](A, backend)
    assert check_columns(A, B, None, M, backend, to_device, rtol=1e-9).x.dtype == np.complex128


def test_eisenstat_s_form_takes_one_column_after_the_other(backend, to_device, monkeypatch):
    """On a grid, whose rows are short; where each row has many entries, all columns share the passes over A."""
    used = []
    load = ColumnsIteration.load
    monkeypatch.setattr(ColumnsIteration, "load", lambda self, *args: used.append(1) or load(self, *args))
    for A, together in ((grid5(12), False), (spd(stencil27(6)), True)):
        A, n = to_device(A), A.shape[0]
        used.clear()
        B, X0, M = to_device(values(n, 8)), to_device(values(n, 8, seed=1)), MulticolorSGS(A, "greedy")
        result = pcg(A, B, X0, M=M, rtol=1e-9)
        assert result.converged and len(result.reasons) == 8 and bool(used) == together
        alone = pcg(A, B[:, 5].copy(), X0[:, 5].copy(), M=M, rtol=1e-9)
        np.testing.assert_allclose(*map(backend.to_host, (result.x[:, 5], alone.x)), rtol=0, atol=1e-7)
        together_in_any_case = pcg(A, B, X0, M=M, rtol=1e-9, form="plain")
        assert used and together_in_any_case.converged
        assert abs(together_in_any_case.iterations - result.iterations).max() <= 1
    B[3, 2] = np.nan
    with pytest.raises(ValueError, match="b holds nan in row 3, column 2"):
        pcg(to_device(grid5(12)), B[:144], M=MulticolorSGS(to_device(grid5(12))))


@settings(suppress_health_check=FIXTURES)
@given(
    pattern=patterns(),
    k=st.integers(2, 12),
    name=st.sampled_from(["none", "Jacobi", "SGS", "multigrid"]),
    order=st.sampled_from("CF"),
)
def test_any_system_and_any_number(backend, to_device, pattern, k, name, order):
    A = spd(pattern)
    solution = values(A.shape[0], k)
    M = PRECONDITIONERS[name](to_device(A), backend)
    result = pcg(to_device(A), to_device(np.asarray(A @ solution, order=order)), rtol=1e-11, M=M)
    assert result.converged
    np.testing.assert_allclose(backend.to_host(result.x), solution, atol=1e-8)


@settings(suppress_health_check=FIXTURES)
@given(
    exponents=st.lists(st.integers(-480, 480), min_size=2, max_size=5),
    of_A=st.sampled_from([-240, 0, 240]),
    name=st.sampled_from(["none", "Jacobi", "SGS", "ILU0", "foreign"]),
    with_guess=st.booleans(),
)
def test_units_of_each_column_change_no_digit(backend, to_device, exponents, of_A, name, with_guess):
    A, k = spd(grid5(7)), len(exponents)
    B, X0, powers = values(49, k), values(49, k, seed=1), np.array(exponents)

    def solve(of_A, powers):
        matrix = to_device(sp.csr_matrix(A * 2.0**of_A))
        guess = to_device(np.ldexp(X0, powers - of_A)) if with_guess else None
        return pcg(matrix, to_device(np.ldexp(B, powers)), guess, M=PRECONDITIONERS[name](matrix, backend), rtol=1e-9)

    plain, other = solve(0, 0 * powers), solve(of_A, powers)
    assert plain.converged and other.converged
    np.testing.assert_array_equal(other.iterations, plain.iterations)
    np.testing.assert_array_equal(other.residuals, np.ldexp(plain.residuals, powers))
    np.testing.assert_array_equal(backend.to_host(other.x), np.ldexp(backend.to_host(plain.x), powers - of_A))


@pytest.mark.parametrize("name", ["none", "SGS", "multigrid"])
def test_a_column_does_not_depend_on_the_others(name, backend, to_device):
    """To the last bit: neither on what they are, nor on how long they take."""
    A = to_device(spd(grid5(20)))
    M, B = PRECONDITIONERS[name](A, backend), values(400, 4)
    other = B.copy()
    other[:, 1:] = 0
    other[0, 2] = 1e200
    for rtol in (1e-2, 1e-10):
        one, two = (pcg(A, to_device(b), M=M, rtol=rtol) for b in (B, other))
        np.testing.assert_array_equal(backend.to_host(one.x)[:, 0], backend.to_host(two.x)[:, 0])
        most = one.iterations[0] + 1
        np.testing.assert_array_equal(one.residuals[:most, 0], two.residuals[:most, 0])


def test_one_column_breaks_down_and_the_others_go_on(backend, to_device):
    """Of a matrix with a negative eigenvalue, whose vector one column has alone."""
    A = sp.block_diag([spd(grid5(8)), sp.csr_matrix([[-1.0]])], format="csr")
    B = np.vstack([values(64, 4), np.zeros((1, 4))])
    B[:, 2] = 0
    B[-1, 2] = 1
    result = check_columns(to_device(A), B, None, None, backend, to_device, rtol=1e-9)
    assert result.reasons[2] is result.reason is Reason.INDEFINITE_A
    assert not result.converged and result.info == -1
    assert [reason is Reason.CONVERGED for reason in result.reasons] == [True, True, False, True]
    assert "3 of 4 columns converged" in repr(result)


def test_an_overflow_in_one_column(backend, to_device):
    A = to_device(sp.csr_matrix(grid5(10) * 1e-200))
    B = np.ones((100, 3))
    B[:, 1] = 1e200
    for M in (None, MulticolorSGS(A)):
        result = pcg(A, to_device(B), M=M, rtol=1e-9)
        assert result.reasons == (Reason.CONVERGED, Reason.NOT_FINITE, Reason.CONVERGED)


def test_a_singular_matrix_that_fits_some_columns(backend, to_device):
    """After a hundred iterations those that do not fit are found out, and do not stop the others."""
    A = grid5(40)
    A = sp.csr_matrix(sp.diags_array(4 - np.asarray(A.sum(axis=1)).ravel()) + A - 4 * sp.eye_array(1600))
    B = values(1600, 3)
    B[:, [0, 2]] -= B[:, [0, 2]].mean(axis=0)
    B[:, 1] += 1
    result = pcg(to_device(A), to_device(B), rtol=1e-9)
    assert result.reasons == (Reason.CONVERGED, Reason.INCONSISTENT, Reason.CONVERGED)
    assert result.reason is Reason.INCONSISTENT


@pytest.mark.parametrize("name", ["none", "Jacobi", "K cycles", "nodes"])
def test_columns_of_a_small_system_are_solved_as_alone(name, backend, to_device):
    A = to_device(spd(grid5(6)))
    B, X0 = mixed(spd(grid5(6)), 5)
    M = PRECONDITIONERS[name](A, backend)
    result = check_columns(A, B, X0, M, backend, to_device, rtol=1e-9)
    assert result.converged and result.iterations[3] == 0
    alone = pcg(A, to_device(B[:, 0].copy()), to_device(X0[:, 0].copy()), M=M, form="plain", rtol=1e-9)
    np.testing.assert_allclose(result.residuals[:4, 0], alone.residuals[:4], rtol=1e-6)  # from the first step on


def test_all_columns_count_as_running_while_one_does(backend, to_device, monkeypatch):
    A, seen, read_state = to_device(spd(grid5(6))), [], ColumnsIteration.read_state

    def noted(self):
        state = read_state(self)
        seen.append((state == RUNNING, [column.state == RUNNING for column in self.columns]))
        return state

    monkeypatch.setattr(ColumnsIteration, "read_state", noted)
    B = to_device(mixed(spd(grid5(6)), 5)[0])
    assert pcg(A, B, rtol=1e-9, callback=lambda X: None).converged  # so that each iteration is read
    assert all(state == any(of_columns) for state, of_columns in seen)
    assert any(of_columns not in ([True] * 5, [False] * 5) for _, of_columns in seen) and not seen[-1][0]


def test_a_column_that_does_not_fit_is_found_after_a_hundred_iterations(backend, to_device):
    """Not at the limit of iterations only, as long as columns run."""
    A, n = to_device(sp.diags([-1.0, -1.0, 2.0, -1.0, -1.0], [-49, -1, 0, 1, 49], (50, 50)).tocsr()), 50
    B = values(n, 2)
    B[:, 0] -= B[:, 0].mean()
    B[:, 1] += 1
    result = pcg(A, to_device(B), rtol=1e-9, maxiter=250)
    assert result.reasons == (Reason.CONVERGED, Reason.INCONSISTENT) and result.iterations[1] < 250


@pytest.mark.parametrize("maxiter", [0, 1, 9])
def test_maxiter_and_own_stops(maxiter, backend, to_device):
    A = to_device(grid5(40))
    B = values(1600, 3)
    B[:, 1] *= 0
    result = pcg(A, to_device(B), rtol=1e-12, maxiter=maxiter)
    assert list(result.iterations) == [maxiter, 0, maxiter] and result.info == max(maxiter, 1)
    assert result.reason is Reason.MAX_ITERATIONS and result.reasons[1] is Reason.CONVERGED


def test_a_guess_far_off_costs_a_restart_of_its_column(backend, to_device):
    A, solution = to_device(grid5(60)), values(3600, 3)
    guess = solution.copy()
    guess[:, 1] += 1000 * values(3600, 1, seed=1)[:, 0]
    result = pcg(A, A @ to_device(solution), to_device(guess), M=MulticolorSGS(A), rtol=1e-13)
    assert result.converged
    np.testing.assert_allclose(backend.to_host(result.x), solution, atol=1e-9)


@pytest.mark.parametrize("guesses", [False, True])
@pytest.mark.parametrize("name", ["none", "SGS", "multigrid", "K cycles"])
def test_null_spaces(name, guesses, backend, to_device):
    A, _ = laplacian(sp.csr_array(grid5(15)))
    B, X0 = values(225, 5) + 3, values(225, 5, seed=1) if guesses else None
    B[:, 2] = 7
    M, options = PRECONDITIONERS[name](to_device(A), backend), {"rtol": 1e-9, "nullspace": "constant", "atol": 1e-6}
    result = check_columns(to_device(A), B, X0, M, backend, to_device, **options)
    assert result.converged and result.iterations[2] == 0
    X = backend.to_host(result.x)
    np.testing.assert_allclose(A @ X, B - B.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-9)


def test_callbacks_and_progress(backend, to_device):
    A, B = to_device(grid5(20)), values(400, 3)
    B[:, 2] = 0
    iterates, told = [], []
    options = {"M": MulticolorSGS(A), "rtol": 1e-8}
    result = pcg(A, to_device(B), callback=lambda X: iterates.append(backend.to_host(X).copy()), **options)
    assert len(iterates) == max(result.iterations) and iterates[0].shape == (400, 3)
    np.testing.assert_array_equal(iterates[-1], backend.to_host(result.x))
    norms = np.linalg.norm(B - grid5(20) @ iterates[3], axis=0)
    np.testing.assert_allclose(result.residuals[4, :2], norms[:2], rtol=1e-8)
    result = pcg(A, to_device(B), progress=lambda *step: told.append(step), **options)
    assert told[-1][0] == max(result.iterations)


def test_one_pcg_for_several_widths(backend, to_device):
    A = to_device(grid5(13))
    for M in (None, MulticolorSGS(A), SmoothedAggregation(A, max_coarse=20)):
        solver = PCG(A, M)
        for k in (3, 1, 5, 3):
            B = to_device(values(169, k, seed=k))
            ours, theirs = solver.solve(B, rtol=1e-9), pcg(A, B, M=M, rtol=1e-9)
            np.testing.assert_array_equal(backend.to_host(ours.x), backend.to_host(theirs.x))
            assert ours.x.shape == ((169,) if k == 1 else (169, k))


def test_later_solves_keep_what_the_first_has_taken(backend, to_device, monkeypatch):
    A, B = to_device(grid5(20)), to_device(values(400, 6))
    for M in (None, MulticolorSGS(A)):
        solver = PCG(A, M)
        solver.solve(B)
        with monkeypatch.context() as patched:
            patched.setattr(ColumnsIteration, "__init__", None)
            patched.setattr(ColumnsIteration, "_loop", None)
            assert solver.solve(2 * B).converged


def test_one_column_is_a_vector(backend, to_device):
    A, B = to_device(grid5(8)), values(64, 1)
    result = pcg(A, to_device(B), M=MulticolorSGS(A))
    assert type(result) is SolveResult and result.x.shape == (64,) and isinstance(result.iterations, int)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"b": np.zeros((25, 0))}, r"b must have at least one column, got shape \(25, 0\)"),
        ({"b": np.zeros((24, 3))}, r"b must have shape \(25,\) or \(25, k\), got \(24, 3\)"),
        ({"b": np.zeros((25, 300))}, r"b must have at most 256 columns, got 300; solve for some at a time"),
        ({"b": np.where(np.arange(75) == 23, np.nan, 1.0).reshape(25, 3)}, "b holds nan in row 7, column 2"),
        ({"x0": np.ones((25, 2))}, r"x0 must have shape \(25, 3\) like b, got \(25, 2\)"),
        ({"x0": np.ones(25)}, r"x0 must have shape \(25, 3\) like b, got \(25,\)"),
        ({"x0": np.where(np.arange(75) == 3, np.inf, 1.0).reshape(25, 3)}, "x0 holds inf in row 1, column 0"),
        ({"form": "eisenstat"}, "form='eisenstat' does not fit several columns: b has 3 columns; use form='plain'"),
    ],
)
def test_refusals(change, message, backend, to_device):
    A = to_device(grid5(5))
    arguments = {"b": np.ones((25, 3))} | change
    moved = {name: to_device(value) if isinstance(value, np.ndarray) else value for name, value in arguments.items()}
    with pytest.raises(ValueError, match=message):
        pcg(A, M=MulticolorSGS(A), **moved)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("longest", [64, 2])
def test_products(dtype, longest, backend, to_device, monkeypatch):
    """Also where rows are cut into pieces, and where a block of rows has many entries."""
    monkeypatch.setattr(csr, "LONG", longest)
    rng, eps = np.random.default_rng(0), np.finfo(dtype).eps
    A = sp.lil_array(sp.random_array((700, 700), density=0.02, rng=rng))
    A[3] = 1
    A[::50, :400] = 2
    A[200:350, :200] = 0.5
    A = sp.csr_array(A).astype(dtype)
    product = product_with(admit_matrix(to_device(A), finite=True))
    for k in (2, 3, 8, 200):
        X, B = values(700, k, dtype), values(700, k, dtype, 1)
        Y, R, state = (to_device(np.zeros_like(X)) for _ in range(2)), None, product.new_state(k)
        Y, R = Y
        bound = 100 * eps * (abs(A) @ abs(X) + abs(B))
        for _ in range(2):  # nothing is left over from the first one
            product.enqueue(state, to_device(X), Y)
            assert (abs(backend.to_host(Y) - A @ X) <= bound).all()
        product.enqueue_sum(state, to_device(X), Y)
        assert (abs(backend.to_host(Y) - 2 * (A @ X)) <= 2 * bound).all()
        product.enqueue_residual(state, to_device(B), to_device(X), R)
        assert (abs(backend.to_host(R) - (B - A @ X)) <= bound).all()


@pytest.mark.parametrize("k", [1, 2, 5, 8, 32, 40])
def test_products_with_a_dense_inverse(k, backend, to_device):
    A = spd(grid5(7))
    dense, X, Y = Dense(to_device(A), backend), values(49, k), to_device(np.zeros((49, k)))
    dense.enqueue(None, to_device(X), Y)
    np.testing.assert_allclose(A @ backend.to_host(Y), X, atol=1e-10)
