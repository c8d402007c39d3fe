"""What a result says is true of the x that it has: CONVERGED, the norm of the residual, and that x is the best one."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference import residual as reference

from mcprecond import (
    ILU0,
    PCG,
    ClassicalAMG,
    MulticolorSGS,
    SmoothedAggregation,
    bicgstab,
    gmres,
    minres,
    pcg,
    problems,
)
from mcprecond.linalg.accurate import find_accurate_residual
from mcprecond.linalg.csr import product_with
from mcprecond.matrix import admit_matrix
from mcprecond.solvers import Reason

for_each_device = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
DTYPES = ["float32", "float64", "complex64", "complex128"]
SOLVERS = {"pcg": pcg, "minres": minres, "bicgstab": bicgstab, "gmres": gmres}
solvers = pytest.mark.parametrize("solve", SOLVERS.values(), ids=SOLVERS)
#: Whatever finds residuals in its own way.
WAYS = {
    **SOLVERS,
    "Eisenstat": lambda A, b, x0, **options: pcg(A, b, x0, M=MulticolorSGS(A), form="eisenstat", **options),
    "SGS": lambda A, b, x0, **options: pcg(A, b, x0, M=MulticolorSGS(A), form="plain", **options),
    "float32": lambda A, b, x0, **options: pcg(A, b, x0, M=MulticolorSGS(A, dtype="float32"), **options),
    "multigrid": lambda A, b, x0, **options: pcg(A, b, x0, M=SmoothedAggregation(A, max_coarse=20), **options),
    "classical multigrid": lambda A, b, x0, **options: pcg(A, b, x0, M=ClassicalAMG(A, max_coarse=20), **options),
    "cycles": lambda A, b, x0, **options: SmoothedAggregation(A, max_coarse=20).solve(b, x0, **options),
    "auto": lambda A, b, x0, **options: pcg(A, b, x0, M="auto", **options),
    "constants": lambda A, b, x0, **options: pcg(A, b, x0, nullspace="constant", **options),
}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def neumann(n: int, seed: int = 0) -> sp.csr_array:
    """A chain with random weights, whose rows sum to zero but for rounding."""
    weights = np.random.default_rng(seed).uniform(0.5, 2, n - 1)
    diagonal = np.r_[weights, 0] + np.r_[0, weights]
    return sp.diags_array([-weights, diagonal, -weights], offsets=[-1, 0, 1]).tocsr()


def random_vector(n: int, dtype="float64", seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(n) + (1j * rng.standard_normal(n) if np.dtype(dtype).kind == "c" else 0)).astype(dtype)


def assert_true(A, b, result, backend, rtol: float = 1e-5) -> None:
    """A result that says that it converged has, and the norm is that of its x."""
    x = backend.to_host(result.x)
    norm = reference.norm(reference.residual(A, b, x))
    if result.converged:
        assert norm <= 1.001 * rtol * reference.norm(b)
    if norm > 0:
        assert result.residual_norm > 0
    rounding = 1e-15 * reference.norm(abs(A) @ abs(x))
    assert result.residual_norm == pytest.approx(norm, rel=1e-4, abs=rounding)


@pytest.mark.parametrize("dtype", DTYPES)
@for_each_device
@given(seed=st.integers(0, 10**6), exponent=st.integers(0, 30), n=st.integers(1, 40))
def test_an_accurate_residual_is_right_to_the_last_digits(dtype, seed, exponent, n, backend, to_device):
    """Where b is A x but for rounding, so that sums in double precision leave nothing or noise."""
    rng = np.random.default_rng(seed)
    A = sp.csr_array(sp.random_array((n, n), density=0.4, rng=rng)).astype(dtype)
    A.data *= random_vector(A.nnz, dtype, seed)
    x = random_vector(n, dtype, seed + 1) * np.ldexp(1.0, exponent).astype(np.dtype(dtype).type(0).real.dtype)
    b = (A @ x).astype(dtype)
    x_there, b_there, r = (to_device(v) for v in (x, b, np.empty_like(b)))
    matrix = admit_matrix(to_device(A), finite=True)
    find_accurate_residual(product_with(matrix), x_there, b_there, r, backend)
    eps = np.finfo(dtype).eps
    size = abs(A) @ abs(x)
    error = abs(backend.to_host(r) - reference.residual(A, b, x))
    assert (error <= 4 * eps * abs(reference.residual(A, b, x)) + 200 * np.finfo(float).eps ** 2 * size).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_accurate_residual_is_right_in_long_rows(dtype, backend, to_device):
    n = 3000
    hub = sp.csr_array(random_vector(n, dtype)[None])
    A = sp.csr_array(sp.vstack([sp.eye_array(n - 1, n, dtype=dtype), hub]))
    x = random_vector(n, dtype, 1)
    b = (A @ x).astype(dtype)
    r, matrix = to_device(np.empty_like(b)), admit_matrix(to_device(A), finite=True)
    find_accurate_residual(product_with(matrix), to_device(x), to_device(b), r, backend)
    expected, eps = reference.residual(A, b, x), np.finfo(dtype).eps
    size = abs(A) @ abs(x)
    assert (abs(backend.to_host(r) - expected) <= 4 * eps * abs(expected) + 1e4 * np.finfo(float).eps ** 2 * size).all()
    assert abs(expected).max() > 0


@ways
@for_each_device
@given(of_b=st.integers(-16, 0), of_x0=st.integers(0, 8), seed=st.integers(0, 100))
def test_a_large_guess_does_not_absorb_b(way, of_b, of_x0, seed, backend, to_device):
    """As a pressure of 1e5 everywhere, where A x0 is zero but for rounding that is far above b."""
    A, b = neumann(60, seed), random_vector(60, seed=seed)
    b, x0 = 10.0**of_b * (b - b.mean()), np.full(60, 1.01325 * 10.0**of_x0)
    result = way(to_device(A), to_device(b), to_device(x0), maxiter=300)
    if way is not WAYS["constants"]:  # b is replaced by its projection
        assert_true(A, b, result, backend)
    start = reference.norm(reference.residual(A, b, x0))
    norm = reference.norm(reference.residual(A, b, backend.to_host(result.x)))
    assert norm <= 1.001 * start + 1e-15 * reference.norm(abs(A) @ abs(x0))


def test_columns_do_not_lose_b_either(backend, to_device):
    A, b = neumann(60), random_vector(60)
    B = np.stack([1e-12 * (b - b.mean()), b - b.mean(), 0 * b], 1)
    X0 = np.full(B.shape, 101325.0)
    result = pcg(to_device(A), to_device(B), to_device(X0), maxiter=300)
    for k in range(3):
        norm = reference.norm(reference.residual(A, B[:, k], backend.to_host(result.x)[:, k]))
        assert norm <= 1e-5 * reference.norm(B[:, k]) or result.reasons[k] not in (Reason.CONVERGED,)
        assert result.residual_norm[k] == pytest.approx(norm, rel=1e-3, abs=1e-9)
    assert not backend.to_host(result.x)[:, 2].any()


@solvers
@pytest.mark.parametrize(
    ("dtype", "of_b", "of_x0"), [("float64", -200, 200), ("float64", -160, 160), ("float32", -20, 25)]
)
def test_a_guess_whose_units_have_no_room_for_b_is_left_out(dtype, of_b, of_x0, solve, backend, to_device):
    A = sp.diags_array([1.0, 1.5, 2.0]).tocsr().astype(dtype)
    b, x0 = (np.array([1, 2, 3]) * 10.0**of_b).astype(dtype), np.full(3, 10.0**of_x0).astype(dtype)
    result = solve(to_device(A), to_device(b), to_device(x0))
    assert result.converged
    np.testing.assert_allclose(backend.to_host(result.x), b / A.diagonal(), rtol=1e-4)


@solvers
def test_the_norm_is_that_of_the_x_that_has_lost_digits(solve, backend, to_device):
    """The solution underflows in the caller's units, and no iteration can do anything about it."""
    A = sp.diags_array([1.0, 2.0, 3.0]).tocsr().astype("f4") * np.float32(1e25)
    b = np.array([1, 2, 3], "f4") * np.float32(1e-18)
    result = solve(to_device(A), to_device(b), rtol=0, maxiter=30)
    norm = reference.norm(reference.residual(A, b, backend.to_host(result.x)))
    assert not result.converged and result.residual_norm == pytest.approx(norm, rel=1e-3)


@solvers
@for_each_device
@given(seed=st.integers(0, 10**6), n=st.integers(2, 40), maxiter=st.integers(0, 60), scale=st.integers(-8, 8))
def test_no_x_is_worse_than_the_guess(solve, seed, n, maxiter, scale, backend, to_device):
    """Whatever A is, and however a solve ends."""
    rng = np.random.default_rng(seed)
    A = sp.csr_array(sp.random_array((n, n), density=0.3, rng=rng))
    A.data = rng.standard_normal(A.nnz) * 10.0 ** rng.integers(-4, 4, A.nnz)
    A = sp.csr_array(A + A.T) if seed % 2 else A
    b, x0 = random_vector(n, seed=seed), 10.0**scale * random_vector(n, seed=seed + 1)
    for guess in (None, x0):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = solve(to_device(A), to_device(b), None if guess is None else to_device(guess), maxiter=maxiter)
        start = np.zeros(n) if guess is None else guess
        limit = reference.norm(reference.residual(A, b, start))
        norm = reference.norm(reference.residual(A, b, backend.to_host(result.x)))
        assert norm <= 1.001 * limit + 1e-13 * reference.norm(abs(A) @ abs(start))
        assert np.isfinite(backend.to_host(result.x)).all()


def test_bicgstab_starts_over_in_another_way_after_a_breakdown(backend, to_device):
    """The inner product of r and A r is zero, so that the usual shadow residual fails at once."""
    A, b = sp.diags_array([-1.5, 2.5, -0.5], offsets=[-1, 0, 1], shape=(30, 30)).tolil(), np.zeros(30)
    A[3, 3], b[3] = 0, 1
    A = A.tocsr()
    result = bicgstab(to_device(A), to_device(b), rtol=1e-8)
    assert result.converged
    assert np.linalg.norm(b - A @ backend.to_host(result.x)) <= 1e-8


@solvers
def test_a_row_of_zeros_is_named(solve, backend, to_device):
    A = sp.block_diag([problems.laplacian((20, 20)), sp.csr_array((1, 1))]).tocsr()
    b = np.ones(401)
    b[400] = 3.0
    result = solve(to_device(A), to_device(b), rtol=1e-8)
    assert (
        result.reason is Reason.INCONSISTENT
        and "row 400 of A is zero, and b is 3.0 there; drop the row, or put 1 there" in result.detail
    )
    assert result.detail in repr(result) and result.residual_norm <= 1.001 * np.linalg.norm(b)


def test_the_row_of_zeros_of_a_column_is_named(to_device):
    A = sp.block_diag([problems.laplacian((10, 10)), sp.csr_array((1, 1))]).tocsr()
    B = np.ones((101, 2))
    B[100, 0] = 0
    result = pcg(to_device(A), to_device(B), rtol=1e-8)
    assert result.reasons == (Reason.CONVERGED, Reason.INCONSISTENT)
    assert result.detail.startswith("column 1: row 100 of A is zero, and b is 1.0 there; drop the row, or put 1 there")


def test_a_residual_that_grows_for_ever_ends_a_solve(backend, to_device):
    """A x = b has no solution, and nothing else is known of it: the norm ends below overflow, after few iterations."""
    A = backend.linalg.aslinearoperator(to_device(sp.diags_array([1.0, 0.0, 2.0]).tocsr()))
    result = pcg(A, to_device(np.ones(3)), maxiter=10_000)
    assert not result.converged and result.reason is not Reason.NOT_FINITE and result.iterations < 200
    assert result.residual_norm <= np.sqrt(3)


@pytest.mark.parametrize("of_x0", [0, 60, 200])
def test_callbacks_of_gmres_get_the_relative_norm_in_any_units(of_x0, backend, to_device):
    rng = np.random.default_rng(0)
    A = sp.csr_array(np.diag(np.linspace(1, 50, 30)) + np.triu(rng.standard_normal((30, 30))) * 0.3)
    b, got = rng.standard_normal(30), []
    x0 = to_device(np.full(30, 10.0**of_x0))
    result = gmres(to_device(A), to_device(b), x0, rtol=1e-10, restart=10, callback=got.append, callback_type="pr_norm")
    np.testing.assert_allclose(got, result.residuals[1:] / np.linalg.norm(b), rtol=1e-12)


def test_an_unknown_kind_of_callback_is_refused_without_a_callback():
    with pytest.raises(ValueError, match="callback_type must be one of legacy, pr_norm, x, got 'y'"):
        gmres(sp.eye_array(3).tocsr(), np.ones(3), callback_type="y")


@solvers
def test_tolerances_may_be_none_or_beyond_all_floats(solve):
    A, b = sp.eye_array(3).tocsr(), np.ones(3)
    assert solve(A, b, atol=None).converged
    assert solve(A, b, rtol=10**400).converged and solve(A, b, atol=10**400).iterations == 0


def test_solves_of_one_solver_at_once_keep_their_stages_apart():
    """The second solve begins within the first one."""
    A = problems.laplacian((80, 80))
    d = 10 ** np.random.default_rng(1).uniform(-1, 1, A.shape[0])
    A, b = (sp.diags_array(d) @ A @ sp.diags_array(d)).tocsr(), random_vector(A.shape[0])
    alone, solver, inner = PCG(A, "auto").solve(b, rtol=1e-8), PCG(A, "auto"), []
    outer = solver.solve(b, rtol=1e-8, callback=lambda x: inner or inner.append(solver.solve(b, rtol=1e-8)))
    assert [stage.name for stage in outer.stages] == [stage.name for stage in alone.stages]
    assert len(inner) == 1 and inner[0].converged


def test_the_column_with_the_largest_residual_chooses_for_all():
    A = problems.laplacian((200, 200))
    b = random_vector(A.shape[0])
    few = pcg(A, np.stack([b, 0 * b], 1), M="auto", rtol=1e-8).iterations.max()
    assert pcg(A, np.stack([0 * b, b], 1), M="auto", rtol=1e-8).iterations.max() == few
    X0 = np.stack([ILU0(A) @ b, 0 * b], 1)
    assert pcg(A, np.stack([b, b], 1), X0, M="auto", rtol=1e-8).converged


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x0": [[1.0, 1.0]] * 40}, "x0 must have shape"),
        ({"x0": np.ones(40)}, "x0 must have shape"),
        ({"x0": 3.0}, "x0 must have shape"),
        ({"maxiter": "3"}, "maxiter must be an integer"),
        ({"maxiter": True}, "maxiter must be an integer"),
        ({"rtol": -1}, "rtol must be a number at least 0"),
    ],
)
def test_arguments_go_through_the_door_before_a_preconditioner_is_chosen(arguments, message):
    A = sp.diags_array([-1.0, 2.01, -1.0], offsets=[-1, 0, 1], shape=(40, 40)).tocsr()
    with pytest.raises((TypeError, ValueError), match=message):
        pcg(A, np.ones((40, 3)), M="auto", **arguments)
