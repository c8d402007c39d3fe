"""pcg: SciPy's answers and stopping rule, honest reasons, the same on both devices."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg
from graphs import DTYPES, grid5, patterns, random_values, spd, stencil27
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from mcprecond import (
    PCG,
    MulticolorDILU,
    MulticolorGS,
    MulticolorSGS,
    SmoothedAggregation,
    SolveResult,
    bicgstab,
    gmres,
    minres,
    pcg,
)
from mcprecond.backends import get_backend
from mcprecond.backends.cuda_source import BLOCK
from mcprecond.linalg.operator import operator_for
from mcprecond.solvers import Reason
from mcprecond.solvers.cg import ConjugateGradients
from mcprecond.solvers.driver import choose_units, solution_of
from mcprecond.solvers.eisenstat import EisenstatIteration
from mcprecond.solvers.target import Target


def random_vector(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, n)


def preconditioner(name: str, A, backend):
    if name == "sparse":
        return backend.sparse.csr_matrix(backend.sparse.diags(1 / A.diagonal()))
    if name == "operator":
        inverse = 1 / A.diagonal()
        return backend.linalg.LinearOperator(A.shape, matvec=lambda r: inverse * r, dtype=A.dtype)
    return {"none": lambda: None, "sgs": lambda: MulticolorSGS(A, "ecl_gc")}[name]()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["none", "sparse", "operator", "sgs"])
def test_solves_to_the_tolerance(name, dtype, backend, to_device):
    A = spd(stencil27(8), dtype=dtype)
    solution = random_values(np.random.default_rng(0), A.shape[0], dtype).astype(dtype)
    on_device = to_device(A)
    b = on_device @ to_device(solution)
    rtol = 1e-4 if dtype in (np.float32, np.complex64) else 1e-10
    result = pcg(on_device, b, rtol=rtol, M=preconditioner(name, on_device, backend))
    assert result.reason is Reason.CONVERGED and result.info == 0
    x = backend.to_host(result.x)
    assert x.dtype == dtype
    residual = np.linalg.norm(backend.to_host(b) - A @ x)
    assert residual <= 1.01 * rtol * np.linalg.norm(backend.to_host(b))
    np.testing.assert_allclose(result.residual_norm, residual, rtol=0.02)
    assert len(result.residuals) == result.iterations + 1
    np.testing.assert_allclose(x, solution, atol=50 * rtol)


@pytest.mark.parametrize("solver", [pcg, minres, bicgstab, gmres])
def test_a_failure_is_examined_without_sorting_the_rows_of_A(solver, backend, to_device):
    """CuPy's products sort them in place, and do not move the values that another matrix has."""
    n = 40
    A = sp.csr_matrix(sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)))
    A.data[[0, -1]] = 1  # constants are in the null space
    for begin, end in itertools.pairwise(A.indptr):
        A.indices[begin:end], A.data[begin:end] = A.indices[begin:end][::-1].copy(), A.data[begin:end][::-1].copy()
    moved = to_device(A)
    result = solver(moved, to_device(np.ones(n)), maxiter=10 * n)
    assert result.reason is Reason.INCONSISTENT
    np.testing.assert_array_equal(backend.to_host(moved.indices), A.indices)
    np.testing.assert_array_equal(backend.to_host(moved.data), A.data)
    if solver is pcg:
        pcg(moved, to_device(random_vector(n)), nullspace="constant")
        np.testing.assert_array_equal(backend.to_host(moved.indices), A.indices)


@pytest.mark.parametrize("name", ["none", "sparse", "sgs"])
def test_iterates_are_those_of_scipy(name, backend, to_device):
    A = grid5(25)
    b = random_vector(625)
    on_device = to_device(A)
    ours: list[np.ndarray] = []
    theirs: list[np.ndarray] = []
    result = pcg(
        on_device,
        to_device(b),
        rtol=1e-8,
        M=preconditioner(name, on_device, backend),
        callback=lambda x: ours.append(backend.to_host(x).copy()),
    )
    scipy.sparse.linalg.cg(
        A, b, rtol=1e-8, M=preconditioner(name, A, _cpu()), callback=lambda x: theirs.append(x.copy())
    )
    assert result.iterations == len(ours)
    assert abs(len(ours) - len(theirs)) <= 1
    for k in range(min(len(ours), len(theirs), 20)):
        np.testing.assert_allclose(ours[k], theirs[k], atol=1e-10)
        np.testing.assert_allclose(result.residuals[k + 1], np.linalg.norm(b - A @ ours[k]), rtol=1e-8)


def _cpu():
    return get_backend("cpu")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pattern=patterns())
def test_solves_any_positive_definite_system(backend, to_device, pattern):
    A = spd(pattern)
    solution = random_vector(A.shape[0], 1)
    on_device = to_device(A)
    result = pcg(on_device, to_device(A @ solution), rtol=1e-11, M=MulticolorSGS(on_device))
    assert result.converged
    np.testing.assert_allclose(backend.to_host(result.x), solution, atol=1e-8)


@pytest.mark.parametrize("form", ["plain", "eisenstat"])
def test_a_guess_of_zero_is_no_guess(form, backend, to_device):
    A, b = to_device(grid5(12)), to_device(random_vector(144))
    M = MulticolorSGS(A, "greedy")
    result, guessed = (pcg(A, b, x0=x0, M=M, form=form) for x0 in (None, to_device(np.zeros(144))))
    assert result.iterations == guessed.iterations
    np.testing.assert_allclose(result.residuals, guessed.residuals, rtol=1e-10)


def test_sgs_halves_the_iterations(backend, to_device):
    A = to_device(grid5(50))
    b = to_device(random_vector(2500))
    plain, sgs = (pcg(A, b, rtol=1e-8, M=M).iterations for M in (None, MulticolorSGS(A)))
    assert sgs < 0.6 * plain


def test_convergence_rate_is_bounded_by_the_condition_number(backend, to_device):
    """The energy norm of the error falls at least as ((sqrt k - 1) / (sqrt k + 1))^m."""
    A = grid5(15)
    eigenvalues = np.linalg.eigvalsh(A.toarray())
    root = np.sqrt(eigenvalues[-1] / eigenvalues[0])
    solution = random_vector(225)
    errors = [solution]
    pcg(
        to_device(A),
        to_device(A @ solution),
        rtol=1e-10,
        callback=lambda x: errors.append(backend.to_host(x) - solution),
    )
    energy = np.array([np.sqrt(e @ (A @ e)) for e in errors])
    steps = np.arange(len(energy))
    assert (energy <= 2 * energy[0] * ((root - 1) / (root + 1)) ** steps + 1e-9).all()


def test_initial_guess(backend, to_device):
    A = to_device(grid5(20))
    solution = to_device(random_vector(400))
    b = A @ solution
    guess = solution.copy()
    exact = pcg(A, b, guess)
    assert exact.converged and exact.iterations == 0
    guess[0] += 1e-3
    before = guess.copy()
    close = pcg(A, b, guess, rtol=1e-8)
    assert close.converged and 0 < close.iterations < pcg(A, b, rtol=1e-8).iterations
    np.testing.assert_array_equal(backend.to_host(guess), backend.to_host(before))


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_a_guess_for_a_linear_operator(dtype, backend, to_device):
    """Which has no rows, so that the residual is a difference of vectors."""
    A, rng = spd(grid5(8), 1, dtype), np.random.default_rng(0)
    b, guess = (random_values(rng, 64, dtype) for _ in range(2))
    operator = backend.linalg.aslinearoperator(to_device(A))
    result = pcg(operator, to_device(b), to_device(guess), rtol=1e-10)
    np.testing.assert_allclose(result.residuals[0], np.linalg.norm(b - A @ guess), rtol=1e-12)
    assert result.converged
    np.testing.assert_allclose(np.linalg.norm(b - A @ backend.to_host(result.x)), result.residual_norm, atol=1e-14)


def test_a_block_has_a_whole_number_of_teams_where_A_has_no_rows(backend, to_device):
    """The kernels that multiply rows are compiled all the same."""
    A = operator_for(backend.linalg.aslinearoperator(to_device(grid5(3))), np.dtype(np.float64), backend)
    assert BLOCK % ConjugateGradients(A, backend).macros["LANES"] == 0


@pytest.mark.parametrize(
    ("name", "form"), [("none", "plain"), ("SGS", "plain"), ("SGS", "eisenstat"), ("multigrid", "plain")]
)
def test_what_memory_held_before_does_not_matter(name, form, backend, to_device, monkeypatch):
    """New arrays are full of NaN here, and so is whatever is read before it is written."""
    A, b = to_device(spd(grid5(6))), to_device(np.ones(36))
    make = {"none": lambda A: None, "SGS": lambda A: MulticolorSGS(A, "greedy")}
    make["multigrid"] = lambda A: SmoothedAggregation(A, max_coarse=5)
    expected = pcg(A, b, M=make[name](A), form=form, rtol=1e-10)
    empty, empty_like = backend.xp.empty, backend.xp.empty_like

    def poisoned(array):
        if array.dtype.kind in "fc":
            array.fill(np.nan)
        return array

    monkeypatch.setattr(backend.xp, "empty", lambda *args, **options: poisoned(empty(*args, **options)))
    monkeypatch.setattr(backend.xp, "empty_like", lambda *args, **options: poisoned(empty_like(*args, **options)))
    found = pcg(A, b, M=make[name](A), form=form, rtol=1e-10)
    monkeypatch.undo()
    assert found.converged
    np.testing.assert_array_equal(backend.to_host(found.x), backend.to_host(expected.x))


@given(of_A=st.integers(-900, 900), of_b=st.integers(-900, 900), of_guess=st.integers(-90, 90), knows=st.booleans())
def test_units_follow_the_larger_part_of_the_first_residual(of_A, of_b, of_guess, knows):
    """That is b or A times the guess, whose exponent is asked for where the units of A or of that are far from 1.

    But the guess is left out if nothing of b would be left in its units.
    """
    chosen, product, x = [], 17, np.ones(1)
    sizes = iter([(0.75, of_b), (2.0**8, of_guess)])
    iteration = SimpleNamespace(b=x, x=x, shift=0, dtype=np.float64, size=lambda v: next(sizes))
    iteration.choose_units = lambda *exponents: chosen.append(exponents)
    iteration.is_near = lambda *exponents: max(map(abs, exponents)) <= 128
    iteration.home_of = lambda of_A, exponent: exponent if iteration.is_near(of_A, exponent) else of_A // 3
    choose_units(iteration, x, "guess", of_A, None, (lambda: product) if knows else None)
    of_product = of_A + 9 + of_guess
    expected = product if knows and max(abs(of_A), abs(of_product)) > 128 else of_product
    of_residual = max(of_b, expected)
    if of_b + iteration.home_of(of_A, of_residual) - of_residual < -970:
        assert chosen == [(of_A, of_b)] and x == 0
    elif of_b + iteration.home_of(of_A, of_residual) - of_residual > -960:
        assert chosen == [(of_A, of_residual)] and x == 1


@given(limit=st.floats(1e-3, 1e3), share=st.sampled_from([0.5, 1.0, 1.5]))
def test_a_solution_that_loses_digits_converged_if_its_residual_is_at_the_limit(limit, share):
    """As without another unit: at the limit is converged, beyond it is not."""
    iteration = SimpleNamespace(
        shift=900, backend=get_backend("cpu"), target=Target(), limit=limit, taken=[], best_norm=math.inf, best=None
    )
    iteration.is_iterate = lambda x: False
    iteration.norm_in_units = lambda norm: norm
    iteration.solution = lambda: np.array([1.0, 0.0])
    iteration.iterate = lambda: np.array([2.0**900, 2.0**-900])
    iteration.replace_iterate = iteration.taken.append
    iteration.measure_residual = lambda: setattr(iteration, "true_residual_norm", share * limit)
    *_, reason = solution_of(iteration, Reason.CONVERGED, None)
    assert len(iteration.taken) == 1 and reason is (Reason.CONVERGED if share <= 1 else Reason.STAGNATED)


def test_zero_right_hand_side(backend, to_device):
    result = pcg(to_device(grid5(5)), backend.xp.zeros(25))
    assert result.converged and result.iterations == 0
    assert not backend.to_host(result.x).any()


def test_absolute_tolerance(backend, to_device):
    A, b = grid5(20), random_vector(400)
    result = pcg(to_device(A), to_device(b), rtol=0, atol=0.5)
    assert result.converged and 0.05 < np.linalg.norm(b - A @ backend.to_host(result.x)) <= 0.5


@pytest.mark.parametrize("maxiter", [0, 1, 7, 100])
def test_maxiter(maxiter, backend, to_device):
    A = to_device(grid5(60))
    result = pcg(A, to_device(random_vector(3600)), rtol=1e-14, maxiter=maxiter)
    assert result.reason is Reason.MAX_ITERATIONS
    assert result.iterations == maxiter == len(result.residuals) - 1
    assert result.info == max(maxiter, 1)


def test_indefinite_matrix(backend, to_device):
    A = sp.csr_matrix(sp.diags_array(np.concatenate([np.ones(10), -np.ones(10)])))
    result = pcg(to_device(A), backend.xp.ones(20))
    assert result.reason is Reason.INDEFINITE_A and result.info == -1


@pytest.mark.parametrize("seed", range(30))
def test_rounding_does_not_make_a_definite_matrix_indefinite(seed, backend, to_device):
    """The pivots of M are far apart, so that p'A p of Eisenstat's form has no digit left in some of these systems."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.standard_normal((3, 3)))
    A = Q * [1e-10, 1e-10, 1] @ Q.T
    A = to_device(sp.csr_matrix((A + A.T) / 2))
    result = pcg(A, to_device(rng.standard_normal(3)), M=MulticolorDILU(A, pivot="shift"), form="eisenstat")
    assert result.reason not in (Reason.INDEFINITE_A, Reason.INCONSISTENT)


def test_indefinite_preconditioner(backend, to_device):
    A = to_device(grid5(10))
    result = pcg(A, to_device(random_vector(100)), M=-1.0 * preconditioner("sparse", A, backend))
    assert result.reason is Reason.INDEFINITE_M and result.info == -1


def test_overflow_is_told(backend, to_device):
    """The solution is about 1e400, which no double is."""
    A = grid5(10)
    A.data *= 1e-200
    result = pcg(to_device(A), 1e200 * backend.xp.ones(100))
    assert result.reason is Reason.NOT_FINITE and result.info == -1


def test_overflow_on_an_unsymmetric_matrix_is_told_as_asymmetry(backend, to_device):
    A = sp.csr_matrix(sp.diags_array([np.full(20, 1.0), np.full(19, 1e200)], offsets=[0, 1]))
    result = pcg(to_device(A), 1e150 * backend.xp.ones(20))
    assert result.reason is Reason.UNSYMMETRIC_A


def test_stagnation_is_told(backend, to_device):
    A = spd(grid5(40), dtype=np.float32)
    result = pcg(to_device(A), to_device(random_vector(1600).astype(np.float32)), rtol=1e-12)
    assert result.reason in (Reason.STAGNATED, Reason.MAX_ITERATIONS)
    assert not result.converged and result.residual_norm > 0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("form", ["plain", "eisenstat"])
def test_a_guess_far_off_costs_a_restart_not_the_solution(form, seed, backend, to_device):
    """The residual that both forms update stops at the rounding of the first one, here far above the limit."""
    A, solution = to_device(grid5(60)), random_vector(3600, 2 * seed)
    guess = to_device(1000 * random_vector(3600, 2 * seed + 1))
    result = pcg(A, A @ to_device(solution), guess, M=MulticolorSGS(A), rtol=1e-13, form=form)
    assert result.converged and result.iterations < 300
    np.testing.assert_allclose(backend.to_host(result.x), solution, atol=1e-9)


@pytest.mark.parametrize("form", ["plain", "eisenstat"])
def test_without_a_limit_it_stops_at_rounding(form, backend, to_device):
    A = to_device(grid5(20))
    b = to_device(random_vector(400))
    result = pcg(A, b, M=MulticolorSGS(A), rtol=0, form=form)
    assert result.reason is Reason.STAGNATED
    assert result.residual_norm <= 1e-14 * np.linalg.norm(backend.to_host(b))


def neumann(n: int) -> sp.csr_matrix:
    """The Laplacian of n x n nodes with no boundary values: constants are its null space."""
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)).tolil()
    line[0, 0] = line[-1, -1] = 1.0
    return sp.csr_matrix(sp.kron(line, sp.eye_array(n)) + sp.kron(sp.eye_array(n), line))


def scaled(A, seed: int = 0) -> sp.csr_matrix:
    S = sp.diags_array(np.random.default_rng(seed).uniform(0.2, 5, A.shape[0]))
    return sp.csr_matrix(S @ A @ S)


SINGULAR = {
    "Neumann": lambda: neumann(30),
    "two parts": lambda: sp.block_diag([neumann(16), neumann(20)], format="csr"),
    "scaled": lambda: scaled(neumann(16)),
    "Gram": lambda: sp.csr_matrix((B := sp.random(300, 280, 0.05, random_state=2)) @ B.T),
    "zero": lambda: sp.csr_matrix((20, 20)),
    "free body": lambda: free_body(),
}


def free_body() -> sp.csr_matrix:
    """Bars between the points of a lattice in the plane, which nothing holds."""
    points = np.stack(np.meshgrid(np.arange(12.0), np.arange(12.0)), -1).reshape(-1, 2)
    A = np.zeros((288, 288))
    for i, j in itertools.combinations(range(144), 2):
        bar = points[j] - points[i]
        if np.abs(bar).max() == 1:
            ends = np.r_[2 * i, 2 * i + 1, 2 * j, 2 * j + 1]
            A[np.ix_(ends, ends)] += np.kron([[1, -1], [-1, 1]], np.outer(bar, bar) / (bar @ bar))
    return sp.csr_matrix(A)


FORMS_OF_SINGULAR = [
    (name, form)
    for name, make in SINGULAR.items()
    for form in (["none", "plain", "eisenstat"] if (make().diagonal() > 0).all() else ["none"])
]


@pytest.mark.parametrize(("name", "form"), FORMS_OF_SINGULAR)
def test_a_singular_matrix_and_a_b_that_does_not_fit(name, form, backend, to_device):
    A = SINGULAR[name]()
    n, rng = A.shape[0], np.random.default_rng(3)
    M = None if form == "none" else MulticolorSGS(to_device(A))
    options = {"M": M, "form": "plain" if form == "none" else form, "rtol": 1e-8}
    result = pcg(to_device(A), to_device(rng.standard_normal(n)), **options)
    assert result.reason is Reason.INCONSISTENT and result.info == -1, result
    assert result.iterations <= 3200 and "b - b.mean()" in repr(result)
    fits = pcg(to_device(A), to_device(A @ rng.standard_normal(n)), **options)
    assert fits.converged
    if name == "Neumann":
        assert result.iterations <= 164  # on a GPU the host reads now and then
        b = rng.standard_normal(n)
        assert pcg(to_device(A), to_device(b - b.mean()), **options).converged


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    pattern=patterns(),
    seed=st.integers(0, 99),
    dtype=st.sampled_from(["float32", "float64", "complex64", "complex128"]),
    power=st.sampled_from([-30, 0, 30]),
)
def test_graph_laplacians_say_whether_b_fits(backend, to_device, pattern, seed, dtype, power):
    """With weights, in all dtypes and units. Constants are their null space."""
    W = abs(spd(pattern, seed))
    W.setdiag(0)
    A = sp.csr_matrix(sp.diags_array(np.asarray(W.sum(axis=1)).ravel()) - W).astype(dtype) * 2.0**power
    n, rng = A.shape[0], np.random.default_rng(seed)
    b = (rng.standard_normal(n) + 1).astype(dtype)
    assume(abs(b.sum()) > 0.1 * n)
    result = pcg(to_device(A.astype(dtype)), to_device(b))
    assert result.reason is Reason.INCONSISTENT
    fits = pcg(to_device(A.astype(dtype)), to_device((A @ rng.standard_normal(n)).astype(dtype)), rtol=1e-3)
    assert fits.converged


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e20])
@pytest.mark.parametrize("M", ["none", "SGS"])
def test_an_unsymmetric_matrix_is_noticed_after_a_hundred_iterations(M, scale, dtype, backend, to_device):
    A = sp.csr_matrix(neumann(40) + 1e-2 * sp.eye_array(1600) + 0.3 * sp.eye_array(1600, k=1))
    A = to_device((scale * A).astype(dtype))
    b = to_device(random_vector(1600).astype(dtype))
    result = pcg(A, b, M=None if M == "none" else MulticolorSGS(A), rtol=1e-6 if M == "none" else 1e-30)
    assert result.reason is Reason.UNSYMMETRIC_A and result.iterations <= 200


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("more", [1e-2, 1e-1, 1.0])
def test_an_unsymmetric_matrix_is_noticed_where_residuals_first_fall(more, columns, to_device):
    """They are small after 100 iterations, and then stagnate. There are 36,000 iterations at most."""
    A = sp.csr_matrix(neumann(60) + more * sp.eye_array(3600) + (0.2 if more == 1 else 0.1) * sp.eye_array(3600, k=1))
    b = A @ np.stack([random_vector(3600, seed) for seed in range(columns)], axis=1)
    result = pcg(to_device(A), to_device(b[:, 0] if columns == 1 else b), rtol=1e-14)
    residuals = result.residuals.reshape(len(result.residuals), -1)
    assert (residuals[100] < 1e-3 * residuals[0]).all()
    assert result.reason is Reason.UNSYMMETRIC_A and np.max(result.iterations) <= 800


@pytest.mark.parametrize("size", [1e-4, 1e-3, 1e-2])
def test_an_unsymmetric_matrix_that_cg_can_solve_is_solved(size, to_device):
    A = sp.csr_matrix(neumann(60) + 1e-3 * sp.eye_array(3600) + size * sp.eye_array(3600, k=1))
    result = pcg(to_device(A), to_device(A @ random_vector(3600)), rtol=1e-12)
    assert result.converged and result.iterations > 200


@pytest.mark.parametrize("size", [0, 1e-12])
def test_systems_that_converge_are_let_go_on(size, backend, to_device):
    """An ill-conditioned one, which takes many iterations, and one that is symmetric to rounding only."""
    A = scaled(sp.csr_matrix(neumann(30) + 1e-7 * sp.eye_array(900)))
    A = sp.csr_matrix(A + size * sp.eye_array(900, k=1))
    result = pcg(to_device(A), to_device(A @ random_vector(900)), rtol=1e-9)
    assert result.converged and result.iterations > 200
    smooth = pcg(to_device(A), backend.xp.ones(900), rtol=1e-6)
    assert smooth.converged and smooth.iterations > 100


def test_the_check_of_symmetry_costs_a_symmetric_matrix_no_transpose(backend, to_device, monkeypatch):
    from mcprecond.solvers import diagnosis

    def refuse(*arguments):
        raise AssertionError("a matrix that is symmetric was transposed")

    monkeypatch.setattr(diagnosis, "is_hermitian", refuse)
    A = to_device(scaled(sp.csr_matrix(neumann(30) + 1e-4 * sp.eye_array(900))))
    assert pcg(A, to_device(random_vector(900)), rtol=1e-10).iterations > 100


def test_result_reads_well(backend, to_device):
    result = pcg(to_device(grid5(5)), backend.xp.ones(25))
    assert isinstance(result, SolveResult)
    x, info = result
    assert x is result.x and info == 0
    assert "converged" in repr(result)
    assert result.setup_seconds > 0 and result.solve_seconds > 0


def test_repeated_solves_are_equal(backend, to_device):
    A = to_device(spd(stencil27(10)))
    b = to_device(random_vector(1000))
    M = MulticolorSGS(A, "ecl_gc")
    first, second = (pcg(A, b, M=M, rtol=1e-9) for _ in range(2))
    np.testing.assert_array_equal(first.residuals, second.residuals)
    np.testing.assert_array_equal(backend.to_host(first.x), backend.to_host(second.x))


@pytest.mark.parametrize("omega", [1.0, 0.7, 1.4])
@pytest.mark.parametrize("method", ["ecl_gc", "greedy"])
def test_eisenstat_form_has_the_iterates_of_the_plain_form(method, omega, backend, to_device):
    A = to_device(spd(stencil27(7)) if method == "greedy" else grid5(30))
    b = to_device(random_vector(A.shape[0]))
    guess = to_device(random_vector(A.shape[0], 1))
    M = MulticolorSGS(A, method, omega=omega)
    iterates: dict[str, list[np.ndarray]] = {"plain": [], "eisenstat": []}
    results = {}
    for form, seen in iterates.items():
        results[form] = pcg(
            A, b, guess, M=M, rtol=1e-9, form=form, callback=lambda x, seen=seen: seen.append(backend.to_host(x).copy())
        )
    plain, eisenstat = results["plain"], results["eisenstat"]
    assert plain.converged and eisenstat.converged
    assert abs(plain.iterations - eisenstat.iterations) <= 1
    for a, e in zip(*iterates.values(), strict=False):
        np.testing.assert_allclose(e, a, atol=1e-9)
    shared = min(len(plain.residuals), len(eisenstat.residuals))
    np.testing.assert_allclose(eisenstat.residuals[:shared], plain.residuals[:shared], rtol=1e-5)
    residual = np.linalg.norm(backend.to_host(b - A @ eisenstat.x))
    np.testing.assert_allclose(eisenstat.residual_norm, residual, rtol=1e-4)


@pytest.mark.parametrize("block_size", [1, 3, 4])
def test_first_color_without_a_residual(block_size, backend, to_device):
    """Two numbers stand for the first color in Eisenstat's form; without a residual they have nothing to go by."""
    A = spd(stencil27(6))
    M = MulticolorSGS(to_device(A), "greedy", block_size=block_size)
    b = random_vector(216)
    first = backend.to_host(M.coloring.colors) == 0
    b[np.repeat(first, block_size)] = 0
    plain, eisenstat = (pcg(to_device(A), to_device(b), M=M, rtol=1e-11, form=form) for form in ("plain", "eisenstat"))
    assert plain.converged and eisenstat.converged
    assert abs(plain.iterations - eisenstat.iterations) <= 1
    np.testing.assert_allclose(backend.to_host(eisenstat.x), backend.to_host(plain.x), atol=1e-9)


def test_no_iteration_leaves_the_guess(backend, to_device):
    A = to_device(grid5(12))
    guess = random_vector(144)
    result = pcg(A, to_device(random_vector(144, 1)), to_device(guess), M=MulticolorSGS(A), maxiter=0, form="eisenstat")
    np.testing.assert_array_equal(backend.to_host(result.x), guess)


def test_restarts_from_the_true_residual(backend, to_device):
    """The first color's unknowns are found from the others before the residual is; after that they stay."""
    A, b = to_device(grid5(30)), to_device(random_vector(900))
    iteration = EisenstatIteration(A, MulticolorSGS(A), backend)
    iteration.load(b, None)
    norm = iteration.dot(b) ** 0.5
    iteration.start(1e-12 * norm, 1000, norm, is_zero=True)
    found = [norm]
    for _ in range(3):
        iteration.enqueue(12)
        iteration.read_state()
        iteration.measure_residual()
        found.append(iteration.true_residual_norm)
        x = backend.to_host(iteration.solution())
        np.testing.assert_allclose(found[-1], np.linalg.norm(backend.to_host(b - A @ iteration.solution())), rtol=1e-9)
        iteration.start_over()
        np.testing.assert_array_equal(backend.to_host(iteration.solution()), x)
    assert found[3] < 0.5 * found[2] < 0.25 * found[1] < 0.25 * found[0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_eisenstat_form_on_every_kind_of_row(dtype, backend, to_device):
    """Dense rows, isolated unknowns, a single color."""
    dense = np.zeros((60, 60))
    dense[0] = dense[:, 0] = 1
    for pattern in (sp.csr_matrix(dense), sp.csr_matrix((9, 9)), sp.eye_array(5), sp.csr_matrix(np.ones((40, 40)))):
        A = spd(pattern, dtype=dtype)
        solution = random_values(np.random.default_rng(0), A.shape[0], dtype).astype(dtype)
        on_device = to_device(A)
        result = pcg(
            on_device, on_device @ to_device(solution), rtol=1e-5, M=MulticolorSGS(on_device), form="eisenstat"
        )
        assert result.converged
        np.testing.assert_allclose(backend.to_host(result.x), solution, atol=2e-3)


def test_eisenstat_form_is_used_where_it_fits(backend, to_device, monkeypatch):
    used, start = [], EisenstatIteration.start
    monkeypatch.setattr(EisenstatIteration, "start", lambda self, *args: used.append(args) or start(self, *args))
    A = to_device(spd(grid5(8)))
    b = backend.xp.ones(64)
    M = MulticolorSGS(A)
    pcg(A, b, M=M)
    assert len(used) == 1
    for unfit in (None, preconditioner("sparse", A, backend), MulticolorSGS(A, sweeps=2), MulticolorSGS(2 * A)):
        assert pcg(A, b, M=unfit).converged
    pcg(A, b, M=M, form="plain")
    assert len(used) == 1
    M.update(2 * A)
    assert pcg(A, b, M=M).converged
    assert len(used) == 1


def test_forms_that_do_not_fit_are_refused(backend, to_device):
    A, b = to_device(grid5(5)), backend.xp.ones(25)
    for M, why in (
        (None, "no preconditioner of this package"),
        (MulticolorSGS(A, sweeps=2), "several sweeps"),
        (MulticolorSGS(A.astype(np.float32)), "another dtype"),
        (MulticolorSGS(2 * A), "another matrix"),
    ):
        with pytest.raises(ValueError, match=why):
            pcg(A, b, M=M, form="eisenstat")
    with pytest.raises(ValueError, match="form must be one of auto, plain, eisenstat, got 'fast'"):
        pcg(A, b, form="fast")


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"b": np.ones(24)}, ValueError, r"b must have shape \(25,\)"),
        ({"b": np.full(25, np.nan)}, ValueError, "b holds nan in row 0"),
        ({"callback": 3}, TypeError, "callback must be a function of one array or None, got 3"),
        ({"rtol": "1e-5"}, ValueError, "rtol must be a number at least 0"),
        ({"atol": np.nan}, ValueError, "atol must be a number at least 0"),
        ({"x0": np.ones((5, 5))}, ValueError, r"x0 must have shape \(25,\)"),
        ({"x0": np.r_[np.zeros(24), np.inf]}, ValueError, "x0 holds inf in row 24"),
        ({"rtol": -1e-3}, ValueError, "rtol must be a number at least 0, got -0.001"),
        ({"maxiter": 2.5}, TypeError, "maxiter must be an integer at least 0"),
    ],
)
def test_bad_arguments(change, error, message, to_device):
    arguments = {"b": np.ones(25)} | change
    moved = {name: to_device(value) if isinstance(value, np.ndarray) else value for name, value in arguments.items()}
    with pytest.raises(error, match=message):
        pcg(to_device(grid5(5)), **moved)


def test_more_than_double_precision_is_refused():
    """Only NumPy has such numbers."""
    with pytest.raises(TypeError, match=r"b must hold .* of at most double precision"):
        pcg(grid5(5), np.ones(25, np.longdouble))


def test_bad_preconditioners(backend, to_device):
    A, b = to_device(grid5(5)), backend.xp.ones(25)
    with pytest.raises(ValueError, match=r"M must have the shape of A, \(25, 25\), got \(16, 16\)"):
        pcg(A, b, M=MulticolorSGS(to_device(grid5(4))))
    with pytest.raises(TypeError, match="M must be a preconditioner, a sparse matrix or a LinearOperator, got int"):
        pcg(A, b, M=3)
    with pytest.raises(
        ValueError, match="M is not symmetric, which CG needs; use sweep='symmetric', or another solver"
    ):
        pcg(A, b, M=MulticolorGS(A, sweep="forward"))


@pytest.mark.gpu
def test_array_on_the_wrong_device():
    A = get_backend("gpu").sparse.csr_matrix(grid5(5))
    with pytest.raises(TypeError, match="b is on the cpu and must be on the gpu"):
        pcg(A, np.ones(25))


def test_progress_is_told_iterations_and_residuals(to_device):
    A = to_device(sp.csr_matrix(spd(grid5(20))))
    ones, told = A.diagonal() * 0 + 1, []
    result = pcg(A, A @ ones, M=MulticolorSGS(A), progress=lambda *step: told.append(step))
    assert told[-1] == (result.iterations, result.residuals[-1])
    assert all(norm == result.residuals[count] for count, norm in told)
    with pytest.raises(TypeError, match="progress must be a function"):
        pcg(A, ones, progress=3)


def same(backend, ours: SolveResult, theirs: SolveResult) -> bool:
    """Whether two results are the same to the last bit."""
    x, y = backend.to_host(ours.x), backend.to_host(theirs.x)
    return (
        x.tobytes() == y.tobytes()
        and x.dtype == y.dtype
        and (ours.reason, ours.residual_norm) == (theirs.reason, theirs.residual_norm)
        and np.array_equal(ours.residuals, theirs.residuals)
    )


@pytest.mark.parametrize("name", ["none", "sparse", "operator", "sgs", "multigrid"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10)
@given(
    solves=st.lists(
        st.tuples(
            st.sampled_from(DTYPES[:2]),
            st.booleans(),
            st.sampled_from([1e-3, 1e-8]),
            st.sampled_from([0.0, 1.0, 1e250]),
        ),
        min_size=2,
        max_size=5,
    )
)
def test_one_pcg_for_many_solves(backend, to_device, name, solves):
    """Whatever the vectors, their units and dtypes: the results of `pcg`, and those before are left alone."""
    A = to_device(grid5(13))
    M = SmoothedAggregation(A, max_coarse=20) if name == "multigrid" else preconditioner(name, A, backend)
    solver, found = PCG(A, M), []
    for number, (dtype, guesses, rtol, unit) in enumerate(solves):
        unit = min(unit, 1e30) if dtype == np.float32 else unit
        b = to_device((unit * random_vector(169, number)).astype(dtype))
        x0 = to_device(random_vector(169, 99).astype(dtype)) if guesses else None
        found.append((solver.solve(b, x0, rtol=rtol), pcg(A, b, x0, M=M, rtol=rtol)))
    assert all(same(backend, ours, theirs) for ours, theirs in found)


def test_solves_take_new_values_after_an_update(backend, to_device):
    host = grid5(13)
    A, b = to_device(host.copy()), to_device(random_vector(169))
    for make in (MulticolorSGS, lambda A: MulticolorSGS(A, omega=1.3), SmoothedAggregation):
        A.data[:] = to_device(host).data
        M = make(A)
        solver = PCG(A, M)
        solver.solve(b)
        A.data *= 2
        A.data[:9] *= 1 + 2.0**-20
        A.data[...] = (A + A.T).tocsr().data
        M.update(A)
        assert same(backend, solver.solve(b, rtol=1e-9), pcg(A, b, M=make(A), rtol=1e-9))


def test_a_solve_that_was_broken_off_leaves_nothing_behind(backend, to_device):
    A, b = to_device(grid5(13)), to_device(random_vector(169))

    def stop(x):
        raise KeyboardInterrupt

    for M in (None, MulticolorSGS(A)):
        solver = PCG(A, M)
        first = solver.solve(b, rtol=1e-8)
        with pytest.raises(KeyboardInterrupt):
            solver.solve(b, callback=stop)
        again = solver.solve(b, rtol=1e-8)
        solver.release()
        assert same(backend, first, again) and same(backend, first, solver.solve(b, rtol=1e-8))


def test_later_solves_keep_what_the_first_has_taken(backend, to_device, monkeypatch):
    A, b = to_device(grid5(20)), to_device(random_vector(400))
    for M in (None, MulticolorSGS(A)):
        solver = PCG(A, M)
        solver.solve(b)
        with monkeypatch.context() as patched:
            patched.setattr("mcprecond.solvers.iteration.Iteration.__init__", None)
            patched.setattr("mcprecond.solvers.iteration.Iteration._loop", None)
            assert solver.solve(2 * b).converged


@pytest.mark.parametrize("cycle", ["V", "K"])
def test_M_is_applied_once_an_iteration(monkeypatch, cycle):
    A = spd(grid5(30))
    M, applied = SmoothedAggregation(A, cycle=cycle), []
    enqueue = type(M).enqueue
    monkeypatch.setattr(type(M), "enqueue", lambda *arguments: (applied.append(1), enqueue(*arguments)))
    for maxiter in (0, 1, 1000):
        applied.clear()
        result = pcg(A, np.ones(900), M=M, maxiter=maxiter, rtol=1e-10)
        assert result.converged == (maxiter == 1000)
        assert len(applied) == result.iterations
