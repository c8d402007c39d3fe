"""A solve has converged if the norm that was asked for is small. Here dense matrices tell that norm."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import laplacian, patterns, random_values, spd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcprecond import PCG, MulticolorSGS, pcg
from mcprecond.solvers import Reason

NORMS = ["residual", "energy", "preconditioned"]
NARROW = {np.float64: np.float32, np.complex128: np.complex64}


def relative_norm(norm, A, b, x, apply):
    """Return the norm by which a solve ends, relative to that of b or of the solution, and how large rounding of x and
    of A x may make it.
    """
    dtype = np.result_type(x, np.float64)
    eps, A, b, wide = np.finfo(x.dtype).eps, A.toarray().astype(dtype), b.astype(dtype), x.astype(dtype)
    r, rounding = b - A @ wide, eps * (abs(A) @ abs(wide))
    if norm == "residual":
        squares = (np.vdot(v, v) for v in (r, rounding, b))
    elif norm == "energy":
        inverse = np.linalg.pinv(A, rcond=1e3 * eps, hermitian=True)
        squares = (np.vdot(v, inverse @ v) for v in (r, rounding, b))
    else:
        squares = (np.vdot(v, apply(v)) for v in (r, rounding, b))
    of_x, of_rounding, whole = (np.sqrt(abs(square)) for square in squares)
    return of_x / whole, of_rounding / whole


def assert_norm_is_small(backend, to_device, A, b, M=None, x0=None, null_vector=None, **options):
    """Solve, and compute the norm of each column."""
    rtol, norm = options["rtol"], options["norm"]
    own_A, x0 = to_device(A), None if x0 is None else to_device(x0)
    if M == "narrow":
        M = MulticolorSGS(own_A, "greedy", dtype=NARROW.get(A.dtype.type))
    nullspace = None if null_vector is None else to_device(null_vector)
    solver = PCG(own_A, M, norm=norm, form=options.get("form", "auto"), nullspace=nullspace)
    result = solver.solve(to_device(b), x0, rtol=rtol)
    assert result.converged, result

    def apply(v):
        if solver.M is None:
            return v
        size = np.linalg.norm(v) or 1.0  # in single precision squares of v might be 0
        return size * backend.to_host(solver.M @ to_device((v / size).astype(A.dtype)))

    x = backend.to_host(result.x)
    for b_of_column, x_of_column in zip(np.atleast_2d(b.T), np.atleast_2d(x.T), strict=True):
        if null_vector is not None:
            v = null_vector / np.linalg.norm(null_vector)
            b_of_column = b_of_column - v * np.vdot(v, b_of_column)
        found, of_rounding = relative_norm(norm, A, b_of_column, x_of_column, apply)
        assert found <= 1.01 * rtol + 2 * of_rounding


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pattern=patterns(),
    is_singular=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64, np.complex64, np.complex128]),
    M=st.sampled_from([None, "jacobi", "sgs", "dilu", "ilu0", "narrow"]),
    columns=st.sampled_from([(), (3,)]),
    has_guess=st.booleans(),
    form=st.sampled_from(["auto", "plain"]),
    norm=st.sampled_from(NORMS),
    digits=st.floats(1, 11),
)
def test_the_norm_is_small(backend, to_device, pattern, is_singular, dtype, M, columns, has_guess, form, norm, digits):
    A, v = laplacian(pattern, dtype=dtype) if is_singular else (spd(pattern, dtype=dtype), None)
    shape, random = (A.shape[0], *columns), np.random.default_rng(0)
    b, x0 = (random_values(random, np.prod(shape), dtype).astype(dtype).reshape(shape) for _ in range(2))
    rtol = max(10**-digits, 1e3 * float(np.finfo(dtype).eps))
    options = {"null_vector": v, "rtol": rtol, "norm": norm, "form": form}
    assert_norm_is_small(backend, to_device, A, b, M, x0 if has_guess else None, **options)


@pytest.mark.parametrize("M", [None, "jacobi", "sgs", "dilu"])
def test_a_residual_below_the_rounding_of_the_recurrence(M, backend, to_device):
    """CG ends after as many steps as there are eigenvalues. Its recurrence has nearly 0 then, and r = b - A x is
    rounding, which is small enough.
    """
    for seed in range(5):
        A, b = spd(sp.csr_matrix((2, 2)), seed, np.float32), random_values(np.random.default_rng(seed), 2, np.float32)
        assert_norm_is_small(backend, to_device, A, b.astype(np.float32), M, rtol=1e-4, norm="preconditioned")


@pytest.mark.parametrize("digits", [8, 10, 12])
def test_single_precision_knows_little_of_the_preconditioned_norm(digits, backend, to_device):
    """After one step in single precision z is 0 in Eisenstat's form, but r is not."""
    A, b = sp.csr_matrix(1.1 * sp.eye(20)), random_values(np.random.default_rng(0), 20)
    assert_norm_is_small(backend, to_device, A, b, "narrow", rtol=10.0**-digits, norm="preconditioned")


@pytest.mark.parametrize("M", [None, "sgs", "dilu", "ilu0"])
def test_few_unknowns_and_a_null_space(M, backend, to_device):
    """CG finds the error by a few steps more than it takes to the solution. Products of rounding have any sign, which
    does not mean that A or M is indefinite.
    """
    for seed in range(20):
        A, v = laplacian(sp.csr_matrix((4, 4)), seed)
        b = random_values(np.random.default_rng(seed), 4)
        assert_norm_is_small(backend, to_device, A, b, M, null_vector=v, rtol=1e-3, norm="energy")


def test_an_indefinite_M_has_no_norm(to_device):
    """r'M r is 0 for an r that is not 0."""
    A, M = sp.csr_matrix(sp.eye(2)), sp.csr_matrix(np.array([[0.0, 1.0], [1.0, 0.0]]))
    for norm in NORMS:
        result = pcg(to_device(A), to_device(np.array([1.0, 0.0])), M=to_device(M), norm=norm)
        assert result.reason is Reason.INDEFINITE_M
