"""pcg for singular matrices whose null space is known: any b, any M, on both devices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import DTYPES, grid5, laplacian, patterns, spd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcprecond import (
    PCG,
    ClassicalAMG,
    MulticolorSGS,
    SmoothedAggregation,
    pcg,
)
from mcprecond.solvers import Reason

PRECONDITIONERS = {
    "none": lambda A, backend: None,
    "Jacobi": lambda A, backend: backend.sparse.csr_matrix(backend.sparse.diags(1 / A.diagonal())),
    "SGS": lambda A, backend: MulticolorSGS(A, "greedy"),
    "multigrid": lambda A, backend: SmoothedAggregation(A, max_coarse=5),
    "classical multigrid": lambda A, backend: ClassicalAMG(A, max_coarse=5),
    "K cycles": lambda A, backend: SmoothedAggregation(A, cycle="K", max_coarse=5),
    "operator": lambda A, backend: backend.linalg.aslinearoperator(SmoothedAggregation(A, max_coarse=5)),
}


def numbers(n, seed, dtype=np.float64):
    rng = np.random.default_rng(seed)
    b = rng.uniform(-1, 1, n) + 3
    return (b + 1j * rng.uniform(-1, 1, n) if np.dtype(dtype).kind == "c" else b).astype(dtype)


@pytest.mark.parametrize("name", PRECONDITIONERS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=12)
@given(
    pattern=patterns(),
    pieces=st.integers(1, 3),
    dtype=st.sampled_from([np.float64, np.complex128]),
    seed=st.integers(0, 99),
    has_guess=st.booleans(),
)
def test_the_solution_is_that_of_least_norm(to_device, backend, name, pattern, pieces, dtype, seed, has_guess):
    """For graphs of several pieces, with a vector of the null space for each, mixed with one another."""
    L, v = laplacian(sp.csr_array(pattern + sp.eye_array(pattern.shape[0])), seed, dtype)
    if L.shape[0] < 3:
        return
    A = sp.block_diag([L] * pieces, format="csr")
    mixed = np.kron(np.eye(pieces), v[:, None]) @ (np.eye(pieces) + np.triu(np.ones((pieces, pieces)), 1))
    b, guess = (numbers(A.shape[0], seed + k, dtype) for k in (0, 7))
    Q = np.linalg.qr(mixed)[0]
    b_of_range = b - Q @ (Q.conj().T @ b)
    M = PRECONDITIONERS[name](to_device(A), backend)
    result = pcg(
        to_device(A), to_device(b), to_device(guess) if has_guess else None, M=M, rtol=1e-10, nullspace=to_device(mixed)
    )
    x = backend.to_host(result.x)
    assert result.converged
    assert np.linalg.norm(b_of_range - A @ x) <= 1.01e-10 * np.linalg.norm(b_of_range) + 1e-13
    np.testing.assert_allclose(Q.conj().T @ x, 0, atol=1e-12 * max(1, np.linalg.norm(x)))
    expected = np.linalg.lstsq(A.toarray(), b, rcond=1e-10)[0]
    np.testing.assert_allclose(x, expected, atol=1e-6 * max(1, abs(expected).max()))


@pytest.mark.parametrize("name", PRECONDITIONERS)
@pytest.mark.parametrize("n", [40, 120])
def test_pure_neumann_problems(to_device, backend, name, n):
    A, _ = laplacian(sp.csr_array(grid5(n)), 1)
    for b in (numbers(n * n, 0), numbers(n * n, 1) + 1e8):
        result = pcg(
            to_device(A), to_device(b), M=PRECONDITIONERS[name](to_device(A), backend), rtol=1e-10, nullspace="constant"
        )
        assert result.converged and abs(backend.to_host(result.x).mean()) <= 1e-12 * np.linalg.norm(
            backend.to_host(result.x)
        )
        if "multigrid" in name:
            assert result.iterations <= 40


@pytest.mark.parametrize("smoother", ["gauss_seidel", "chebyshev"])
def test_hierarchies_in_single_precision(to_device, smoother):
    """The coarse inverse is as large as 1 / rounding along constants, and what is stored is rounded much more."""
    A, _ = laplacian(sp.csr_array(grid5(100)))
    M = SmoothedAggregation(to_device(A), smoother=smoother, dtype=np.float32)
    result = pcg(to_device(A), to_device(numbers(10_000, 0)), M=M, rtol=1e-10, nullspace="constant")
    assert result.converged and result.iterations <= 40


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=8)
@given(exponent=st.integers(0, 14), seed=st.integers(0, 9))  # from 1 / eps on, rounding leaves nothing else of M r
def test_what_M_makes_of_the_null_space_does_not_matter(to_device, backend, exponent, seed):
    A, v = laplacian(sp.csr_array(grid5(15)), seed)
    M = np.diag(1 / A.diagonal()) + 10.0**exponent * np.outer(v, v) / 225
    M = backend.linalg.aslinearoperator(to_device(M))
    result = pcg(to_device(A), to_device(numbers(225, seed)), M=M, rtol=1e-10, nullspace="constant")
    assert result.converged and result.iterations <= 225


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(to_device, backend, dtype):
    A, v = laplacian(sp.csr_array(grid5(20)), 0, dtype)
    rtol = 1e-4 if dtype in (np.float32, np.complex64) else 1e-10
    b = to_device(numbers(400, 0, dtype))
    for M in (None, MulticolorSGS(to_device(A), "greedy")):
        result = pcg(to_device(A), b, M=M, rtol=rtol, nullspace=v)  # of the host for both devices
        assert result.converged and result.x.dtype == dtype


def test_a_real_M_for_complex_b(to_device, backend):
    A, _ = laplacian(sp.csr_array(grid5(20)))
    result = pcg(
        to_device(A),
        to_device(numbers(400, 0, complex)),
        M=MulticolorSGS(to_device(A)),
        rtol=1e-10,
        nullspace="constant",
    )
    assert result.converged and result.x.dtype == np.complex128


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10)
@given(of_A=st.integers(-300, 300), of_b=st.integers(-300, 300))
def test_any_units(to_device, backend, of_A, of_b):
    A, _ = laplacian(sp.csr_array(grid5(12)))
    b, M = numbers(144, 0), [MulticolorSGS(to_device(scale * A), "greedy") for scale in (1.0, 2.0**of_A)]
    plain = pcg(to_device(A), to_device(b), M=M[0], rtol=1e-10, nullspace="constant")
    other = pcg(to_device(2.0**of_A * A), to_device(2.0**of_b * b), M=M[1], rtol=1e-10, nullspace="constant")
    assert other.converged and other.iterations == plain.iterations
    np.testing.assert_array_equal(backend.to_host(other.x), 2.0 ** (of_b - of_A) * backend.to_host(plain.x))


@pytest.mark.parametrize("dtype", [None, "float32"])
@pytest.mark.parametrize("exponent", [-120, 120])
def test_levels_in_single_precision_get_residuals_of_about_one(to_device, dtype, exponent):
    """Others than that are out of their range, although not out of that of A."""
    A, _ = laplacian(sp.csr_array(grid5(30)))
    M, b = SmoothedAggregation(to_device(A), dtype=dtype, max_coarse=50), numbers(900, 0)
    plain, other = (
        pcg(to_device(A), to_device(f * b), M=M, rtol=1e-10, nullspace="constant") for f in (1.0, 2.0**exponent)
    )
    assert other.converged and other.iterations == plain.iterations


def test_many_right_hand_sides_and_callbacks(to_device, backend):
    A, _ = laplacian(sp.csr_array(grid5(30)))
    solver, seen = PCG(to_device(A), SmoothedAggregation(to_device(A), max_coarse=300), nullspace="constant"), []
    for seed in range(3):
        b = numbers(900, seed)
        before = b.copy()
        result = solver.solve(to_device(b), rtol=1e-10, callback=seen.append)
        assert result.converged and result.iterations <= 20
        np.testing.assert_array_equal(b, before)
        np.testing.assert_allclose(result.residuals[0], np.linalg.norm(b - b.mean()), rtol=1e-12)
        np.testing.assert_allclose(
            result.residual_norm, np.linalg.norm(b - b.mean() - A @ backend.to_host(result.x)), rtol=1e-3, atol=1e-13
        )
    assert len(seen) > 10


@pytest.mark.parametrize("b", [np.zeros(400), np.full(400, 0.1), np.full(400, 1e200), np.full(400, 1e-300)])
def test_what_lies_in_the_null_space_has_the_solution_zero(to_device, backend, b):
    A, _ = laplacian(sp.csr_array(grid5(20)))
    result = pcg(to_device(A), to_device(b), M=MulticolorSGS(to_device(A)), nullspace="constant")
    assert result.converged and result.iterations == 0 and not backend.to_host(result.x).any()


def test_without_it_no_x_solves_the_system(to_device):
    A, _ = laplacian(sp.csr_array(grid5(20)))
    result = pcg(to_device(A), to_device(numbers(400, 0)), M=MulticolorSGS(to_device(A)), rtol=1e-10)
    assert result.reason is Reason.INCONSISTENT and "nullspace" in result.reason.value


def test_an_empty_system_and_one_unknown(to_device, backend):
    empty = to_device(sp.csr_matrix((0, 0)))
    assert pcg(empty, to_device(np.zeros(0)), nullspace="constant").converged
    zero = to_device(sp.csr_matrix(([0.0], ([0], [0])), shape=(1, 1)))
    assert backend.to_host(pcg(zero, to_device(np.ones(1)), nullspace="constant").x) == 0


@pytest.mark.parametrize(
    ("nullspace", "error", "message"),
    [
        ("constants", ValueError, "nullspace must be 'constant', 'detect' or an array, got 'constants'"),
        (3.5, ValueError, r"nullspace must have shape \(100,\) or \(100, k\)"),
        (np.ones(7), ValueError, r"nullspace must have shape .* got \(7,\)"),
        (np.ones((100, 0)), ValueError, "k from 1 to 32"),
        (np.ones((100, 33)), ValueError, "k from 1 to 32"),
        (["a"] * 100, TypeError, "nullspace must be 'constant', 'detect' or an array of numbers"),
        (np.ones(100) * 1j, TypeError, "nullspace holds complex128 and A float64"),
        (np.full(100, np.inf), ValueError, "nullspace holds NaN or infinity"),
        (np.stack([np.ones(100), np.zeros(100)], axis=1), ValueError, "column 1 of nullspace is zero"),
        (np.ones((100, 2)), ValueError, "column 1 of nullspace depends on those before it"),
        (np.arange(100.0), ValueError, r"column 0 of nullspace is not in the null space of A: .*\|\|A v\|\| is 0\.\d"),
    ],
)
def test_bad_null_spaces(to_device, backend, nullspace, error, message):
    A, _ = laplacian(sp.csr_array(grid5(10)))
    with pytest.raises(error, match=message):
        PCG(to_device(A), nullspace=nullspace)


def test_a_definite_matrix_has_no_null_space(to_device):
    with pytest.raises(ValueError, match=r"\|\|A v\|\| is .*leave nullspace out"):
        pcg(to_device(spd(grid5(10))), to_device(np.ones(100)), nullspace="constant")


def test_other_bad_arguments(to_device):
    A, _ = laplacian(sp.csr_array(grid5(10)))
    with pytest.raises(ValueError, match="form='eisenstat' does not fit nullspace"):
        pcg(
            to_device(A), to_device(np.ones(100)), M=MulticolorSGS(to_device(A)), form="eisenstat", nullspace="constant"
        )
    with pytest.raises(ValueError, match=r"b .*row 3"):
        pcg(to_device(A), to_device(np.where(np.arange(100) == 3, np.nan, 1.0)), nullspace="constant")
    guess = to_device(np.where(np.arange(100) == 4, np.inf, 1.0))
    with pytest.raises(ValueError, match=r"x0 .*row 4"):
        pcg(to_device(A), to_device(np.arange(100.0)), guess, nullspace="constant")


@pytest.mark.parametrize("norm", ["residual", "energy", "preconditioned"])
@pytest.mark.parametrize("M", [None, "jacobi", "sgs", "multigrid"])
def test_a_result_is_not_changed_by_the_next_solve(to_device, backend, norm, M):
    """Also not by the solve for the correction of x, after the energy norm: the projected b of a result is its own."""
    A, _ = laplacian(grid5(40), 0)
    b, other = (numbers(A.shape[0], seed) for seed in (0, 1))
    solver = PCG(to_device(A), M, nullspace="constant", norm=norm)
    result = solver.solve(to_device(b), rtol=1e-8)
    solver.solve(to_device(other), rtol=1e-8)
    assert result.converged
    b_of_range = b - b.mean()
    residual = np.linalg.norm(b_of_range - A @ backend.to_host(result.x))
    assert result.residual_norm == pytest.approx(residual, rel=1e-3) and residual <= 1e-7 * np.linalg.norm(b_of_range)
    assert result.backward_error < 1e-7 and result.energy_error < 1e-6
