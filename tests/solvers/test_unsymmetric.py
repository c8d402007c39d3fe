"""BiCGSTAB and GMRES, and what all Krylov solvers take for A, M and x0."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from graphs import patterns
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcprecond import ILU0, MulticolorDILU, MulticolorGS, SmoothedAggregation, bicgstab, gmres, minres, pcg, problems
from mcprecond.solvers import Reason

SOLVERS = {"bicgstab": bicgstab, "gmres": gmres}
DTYPES = ["float32", "float64", "complex64", "complex128"]
solvers = pytest.mark.parametrize("solve", SOLVERS.values(), ids=SOLVERS)


def advection(n: int = 8, strength: float = 5.0) -> sp.csr_array:
    """The Jacobian of FENL with advection."""
    problem = problems.fenl(n, advection=strength)
    return sp.csr_array(problem.jacobian(problem.initial()))


def right_hand_side(n: int, dtype="float64", seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    b = rng.standard_normal(n) + (1j * rng.standard_normal(n) if np.dtype(dtype).kind == "c" else 0)
    return b.astype(dtype)


def relative_residual(A, x, b) -> float:
    return float(np.linalg.norm(b - A @ x) / np.linalg.norm(b))


PRECONDITIONERS = {
    "none": lambda A, backend: None,
    "sparse": lambda A, backend: backend.sparse.diags(1 / A.diagonal()).tocsr(),
    "operator": lambda A, backend: backend.linalg.aslinearoperator(backend.sparse.diags(1 / A.diagonal()).tocsr()),
    "dense": lambda A, backend: backend.xp.diag(1 / A.diagonal()),
    "gs": lambda A, backend: MulticolorGS(A),
    "dilu": lambda A, backend: MulticolorDILU(A),
    "ilu0": lambda A, backend: ILU0(A, ordering="natural"),
    "ilu0 by color": lambda A, backend: ILU0(A, ordering="color"),
    "multigrid": lambda A, backend: SmoothedAggregation(symmetric_part(A), max_coarse=50),
    "K cycles": lambda A, backend: SmoothedAggregation(symmetric_part(A), max_coarse=50, cycle="K"),
}


def symmetric_part(A):
    return ((A + A.conj().T) / 2).tocsr()


@solvers
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PRECONDITIONERS)
def test_solves_to_the_tolerance(name, dtype, solve, backend, to_device):
    A = advection().astype(dtype)
    if A.dtype.kind == "c":
        A = (A + 0.05j * sp.eye_array(A.shape[0])).tocsr().astype(dtype)
    b, rtol = right_hand_side(A.shape[0], dtype), 1e-4 if A.dtype.char in "fF" else 1e-10
    on_device = to_device(A)
    result = solve(on_device, to_device(b), M=PRECONDITIONERS[name](on_device, backend), rtol=rtol)
    assert result.converged, result
    wide = A.astype(np.complex128)
    assert relative_residual(wide, backend.to_host(result.x), b) <= 1.01 * rtol
    assert result.x.dtype == dtype and len(result.residuals) == result.iterations + 1


def reference_bicgstab(A, b, steps):
    """Norms of residuals, from the method's definition with alpha, omega and beta written out."""
    r, p, norms = b.copy(), b.copy(), [np.linalg.norm(b)]
    shadow = b.copy()
    for _ in range(steps):
        v = A @ p
        rho = np.vdot(shadow, r)
        alpha = rho / np.vdot(shadow, v)
        s = r - alpha * v
        t = A @ s
        omega = np.vdot(t, s) / np.vdot(t, t)
        r = s - omega * t
        p = r + np.vdot(shadow, r) / rho * alpha / omega * (p - omega * v)
        norms.append(np.linalg.norm(r))
    return np.array(norms)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_bicgstab_has_the_residuals_of_its_definition(dtype, backend, to_device):
    A = (advection() + (0.1j * sp.eye_array(729) if dtype == "complex128" else 0 * sp.eye_array(729))).tocsr()
    b = right_hand_side(729, dtype)
    result = bicgstab(to_device(A), to_device(b), rtol=1e-14, maxiter=8)
    np.testing.assert_allclose(result.residuals, reference_bicgstab(A, b, 8), rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gmres_finds_the_smallest_residual_of_each_space(dtype, backend, to_device):
    """The Krylov space of A M, whose basis is built here by QR."""
    A = (advection(5) + (0.1j * sp.eye_array(216) if dtype == "complex128" else 0 * sp.eye_array(216))).tocsr()
    b, steps = right_hand_side(216, dtype), 12
    scale = np.linspace(0.5, 2, 216)
    result = gmres(
        to_device(A),
        to_device(b),
        M=to_device(sp.csr_matrix(sp.diags_array(scale))),
        rtol=1e-14,
        restart=steps,
        maxiter=1,
    )
    basis, norms = [b / np.linalg.norm(b)], [np.linalg.norm(b)]
    for _ in range(steps):
        K = np.linalg.qr(np.stack(basis, axis=1))[0]
        images = A @ (scale[:, None] * K)
        norms.append(np.linalg.norm(b - images @ np.linalg.lstsq(images, b, rcond=None)[0]))
        basis.append(A @ (scale * K[:, -1]))
    assert result.iterations == steps and result.cycles == 1 and result.info == 1
    np.testing.assert_allclose(result.residuals, norms, rtol=1e-8)


@solvers
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pattern=patterns(), seed=st.integers(0, 2**16))
def test_any_dominant_system_is_solved(solve, backend, to_device, pattern, seed):
    rng = np.random.default_rng(seed)
    A = sp.csr_array(pattern, dtype=float)
    A.data[:] = rng.uniform(-1, 1, A.nnz)
    A = sp.csr_array(A + sp.diags_array(abs(A).sum(axis=1) + 0.1))
    b = rng.standard_normal(A.shape[0])
    for M in (None, MulticolorGS(to_device(A)), ILU0(to_device(A))):
        result = solve(to_device(A), to_device(b), M=M, rtol=1e-9)
        assert result.converged and relative_residual(A, backend.to_host(result.x), b) <= 1.01e-9


@solvers
def test_units_change_no_digit(solve, backend, to_device):
    A, b = advection(4), right_hand_side(125)
    x = backend.to_host(solve(to_device(A), to_device(b), rtol=1e-9).x)
    for of_A, of_b in ((2.0**60, 1.0), (1.0, 2.0**-700), (2.0**-400, 2.0**300)):
        scaled = solve(to_device(of_A * A), to_device(of_b * b), rtol=1e-9)
        assert scaled.converged
        np.testing.assert_array_equal(backend.to_host(scaled.x), x / of_A * of_b)


@solvers
def test_results_are_repeatable(solve, backend, to_device):
    A, b = to_device(advection()), to_device(right_hand_side(729))
    one, other = (solve(A, b, M=ILU0(A), rtol=1e-9) for _ in range(2))
    np.testing.assert_array_equal(backend.to_host(one.x), backend.to_host(other.x))
    np.testing.assert_array_equal(one.residuals, other.residuals)


def shift(n: int) -> sp.csr_array:
    """The matrix that moves each number on by one place, and the last one to the front."""
    return sp.csr_array((np.ones(n), (np.arange(n), np.arange(-1, n - 1) % n)), shape=(n, n))


def test_a_cycle_without_progress_is_told(backend, to_device):
    A, b = to_device(shift(30)), to_device(np.eye(30)[0])
    result = gmres(A, b, restart=10)
    assert result.reason is Reason.NO_PROGRESS and result.iterations == 10 and result.info == -1
    assert "restart" in result.reason.value
    whole = gmres(A, b, restart=40, rtol=1e-12)
    assert whole.converged and whole.iterations == 30
    np.testing.assert_allclose(backend.to_host(whole.x), np.eye(30)[-1], atol=1e-12)


def test_a_breakdown_is_told(backend, to_device):
    """b'A b = 0, so that the first alpha would be a division by zero."""
    A, b = to_device(sp.csr_array([[0.0, 1.0], [-1.0, 0.0]])), to_device(np.array([1.0, 0.0]))
    result = bicgstab(A, b)
    assert result.reason is Reason.BREAKDOWN and result.info == -1 and "gmres" in result.reason.value
    np.testing.assert_array_equal(backend.to_host(result.x), [0, 0])
    assert gmres(A, b).converged


@solvers
def test_a_singular_system(solve, backend, to_device):
    """Advection around a ring; b has a part that no x gives, or has none."""
    n = 60
    A = to_device(sp.csr_array(1.5 * sp.eye_array(n) - 1.25 * shift(n) - 0.25 * shift(n).T))
    b = right_hand_side(n)
    result = solve(A, to_device(b), rtol=1e-8, maxiter=300)
    assert not result.converged and np.isfinite(backend.to_host(result.x)).all()
    assert result.reason is Reason.INCONSISTENT
    assert solve(A, to_device(b - b.mean()), rtol=1e-8).converged


@solvers
def test_rows_may_have_the_sum_zero(solve, backend, to_device):
    """Constants are in the null space of A, but not in that of its adjoint: b need not be orthogonal to them."""
    n = 400
    A = sp.diags_array([-1.5, 2.0, -0.5], offsets=[-1, 0, 1], shape=(n, n)).tolil()
    A[0, 0], A[n - 1, n - 1] = 0.5, 1.5
    A = sp.csr_array(A)
    b = A @ np.random.default_rng(0).uniform(-1, 1, n)
    assert abs(A @ np.ones(n)).max() == 0 and abs(b.sum()) > 0.1
    result = solve(to_device(A), to_device(b), rtol=1e-8)
    assert result.converged and result.iterations > 100


@solvers
@pytest.mark.parametrize("maxiter", [0, 1, 3])
def test_maxiter(maxiter, solve, backend, to_device):
    A, b = to_device(advection()), to_device(right_hand_side(729))
    options = {"restart": 4} if solve is gmres else {}
    result = solve(A, b, maxiter=maxiter, rtol=1e-12, **options)
    assert result.reason is Reason.MAX_ITERATIONS and result.info == max(maxiter, 1)
    assert result.iterations == maxiter * (4 if solve is gmres else 1)


def test_callbacks(backend, to_device):
    A, b, seen = to_device(advection()), to_device(right_hand_side(729)), []
    result = bicgstab(A, b, rtol=1e-8, callback=lambda x: seen.append(float(backend.xp.linalg.norm(b - A @ x))))
    np.testing.assert_allclose(seen, result.residuals[1:], rtol=1e-3)
    seen.clear()
    result = gmres(A, b, rtol=1e-8, callback=seen.append, callback_type="pr_norm")
    np.testing.assert_allclose(seen, result.residuals[1:] / result.residuals[0])
    seen.clear()
    result = gmres(A, b, rtol=1e-8, restart=6, callback=lambda x: seen.append(x.copy()), callback_type="x")
    assert len(seen) == result.cycles > 1
    np.testing.assert_array_equal(backend.to_host(seen[-1]), backend.to_host(result.x))
    with pytest.warns(DeprecationWarning, match="without specifying `callback_type`"):
        assert gmres(A, b, rtol=1e-8, maxiter=3, callback=seen.append).info == 3


ALL = {**SOLVERS, "minres": minres, "pcg": pcg}


@pytest.mark.parametrize("solve", ALL.values(), ids=ALL)
@pytest.mark.parametrize("kind", ["dense", "operator", "csc"])
def test_what_A_may_be(kind, solve, backend, to_device):
    S = sp.csr_array(sp.diags_array([-1, 4, -1], offsets=[-1, 0, 1], shape=(40, 40), dtype=int))
    b = right_hand_side(40)
    A = to_device(S.astype(float))
    if kind == "dense":
        A = to_device(S.toarray())  # of integers
    elif kind == "operator":
        A = backend.linalg.aslinearoperator(A)
    elif kind == "csc":
        A = A.tocsc()
    M = to_device(sp.csr_matrix(sp.diags_array(1 / S.diagonal())))
    for options in ({}, {"M": M}, {"M": M, "x0": "Mb"}, {"x0": to_device(right_hand_side(40, seed=1))}):
        result = solve(A, to_device(b), rtol=1e-10, **options)
        assert result.converged and relative_residual(S, backend.to_host(result.x), b) <= 1.01e-10
    assert solve(A, to_device(b), rtol=np.inf).iterations == 0


@pytest.mark.parametrize("solve", ALL.values(), ids=ALL)
def test_a_perfect_guess_takes_no_iteration(solve, backend, to_device):
    A, M = to_device(np.diag(np.arange(1.0, 9))), to_device(np.diag(1 / np.arange(1.0, 9)))
    result = solve(A, to_device(np.ones(8)), M=M, x0="Mb")
    assert result.converged and result.iterations == 0


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"x0": "M"}, ValueError, "x0 must be an array or 'Mb', got 'M'"),
        ({"A": np.ones((2, 3))}, ValueError, "A must be square, got shape"),
        ({"A": "A"}, TypeError, "A must be a sparse matrix"),
        ({"A": np.full((40, 40), np.nan)}, ValueError, "A holds nan in row 0"),
        ({"M": np.ones((3, 3))}, ValueError, "M must have the shape of A"),
        ({"atol": "legacy"}, ValueError, "atol must be a number at least 0"),
        ({"b": np.full(40, np.inf)}, ValueError, "b holds inf in row 0"),
        ({"b": np.ones(41)}, ValueError, "b must have shape"),
    ],
)
@pytest.mark.parametrize("solve", ALL.values(), ids=ALL)
def test_bad_arguments(solve, change, error, message, to_device):
    arguments = {"A": np.eye(40), "b": np.ones(40)} | change
    moved = {name: to_device(value) if isinstance(value, np.ndarray) else value for name, value in arguments.items()}
    with pytest.raises(error, match=message):
        solve(moved.pop("A"), moved.pop("b"), **moved)


def test_bad_arguments_of_gmres(to_device):
    A, b = to_device(np.eye(4)), to_device(np.ones(4))
    with pytest.raises(ValueError, match="restart must be at least 1"):
        gmres(A, b, restart=0)
    with pytest.raises(ValueError, match="callback_type must be one of"):
        gmres(A, b, callback=print, callback_type="r")


def test_triangles_are_solved_at_once(backend, to_device):
    """By a sweep, which is exact then: in one iteration."""
    A = to_device(sp.csr_array(scipy.linalg.toeplitz([3.0, -1, -1] + [0] * 27, [3.0] + [0] * 29)))
    b = to_device(right_hand_side(30))
    M = ILU0(A, ordering="natural")
    assert bicgstab(A, b, M=M, rtol=1e-12).iterations == gmres(A, b, M=M, rtol=1e-12).iterations == 1
