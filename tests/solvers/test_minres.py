"""MINRES, for symmetric and Hermitian systems that need not be definite."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as scipys
from graphs import patterns
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcprecond import MulticolorGS, MulticolorSGS, SmoothedAggregation, minres, pcg, problems
from mcprecond.solvers import Reason

DTYPES = ["float32", "float64", "complex64", "complex128"]
for_each_device = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])


def random_vector(n: int, dtype="float64", seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(n) + (1j * rng.standard_normal(n) if np.dtype(dtype).kind == "c" else 0)).astype(dtype)


def indefinite(n: int, dtype="float64", seed: int = 0) -> np.ndarray:
    """A Hermitian matrix with eigenvalues of both signs and magnitudes from 1 to 3."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(random_vector(n * n, dtype, seed).reshape(n, n).astype(np.complex128))[0]
    Q = Q if np.dtype(dtype).kind == "c" else np.linalg.qr(Q.real)[0]
    A = (Q * (rng.uniform(1, 3, n) * rng.choice([-1, 1], n))) @ Q.conj().T
    return ((A + A.conj().T) / 2).astype(dtype)


def definite(n: int, dtype="float64", seed: int = 0) -> np.ndarray:
    """A Hermitian positive definite matrix."""
    B = random_vector(n * n, dtype, seed).reshape(n, n)
    return (B @ B.conj().T / n + np.eye(n)).astype(dtype)


def relative_residual(A, x, b) -> float:
    return float(np.linalg.norm(b - A @ x) / np.linalg.norm(b))


def helmholtz(n: int, sigma: float) -> sp.csr_matrix:
    return sp.csr_matrix(problems.laplacian((n, n)) - sigma * sp.eye_array(n * n))


def saddle_point(n: int, dtype="float64") -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """A block of n^2 unknowns with constraints, and the inverse of a diagonal matrix in the place of A."""
    A = problems.laplacian((n, n))
    B = sp.csr_array(sp.kron(sp.diags_array([1.0, -1.0], offsets=[0, 1], shape=(n - 1, n)), sp.eye_array(n)))
    K = sp.block_array([[A, B.T], [B, None]], format="csr").astype(dtype)
    M = sp.diags_array(np.r_[1 / A.diagonal(), np.full(B.shape[0], 2.0)]).astype(dtype)
    return sp.csr_matrix(K), sp.csr_matrix(M)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("preconditioned", [False, True])
@for_each_device
@given(n=st.integers(1, 30), seed=st.integers(0, 10**6), has_guess=st.booleans())
def test_solves_to_the_tolerance(dtype, preconditioned, n, seed, has_guess, backend, to_device):
    A, b = indefinite(n, dtype, seed), random_vector(n, dtype, seed + 1)
    rtol = 1e-4 if np.finfo(dtype).bits == 32 else 1e-10
    M = to_device(definite(n, dtype, seed + 2)) if preconditioned else None
    x0 = to_device(random_vector(n, dtype, seed + 3)) if has_guess else None
    result = minres(to_device(A), to_device(b), x0, M=M, rtol=rtol)
    assert result.converged and result.x.dtype == dtype and len(result.residuals) == result.iterations + 1
    x = backend.to_host(result.x)
    assert relative_residual(A.astype(np.complex128), x, b) <= 1.01 * rtol
    np.testing.assert_allclose(x, np.linalg.solve(A.astype(np.complex128), b), atol=10 * rtol * np.linalg.norm(b))


@for_each_device
@given(pattern=patterns(), seed=st.integers(0, 2**16), shift=st.sampled_from([0.0, 0.5, -3.0]))
def test_any_symmetric_pattern(pattern, seed, shift, backend, to_device):
    """With eigenvalues that are far from zero, of both signs."""
    rng = np.random.default_rng(seed)
    A = sp.csr_array(pattern, dtype=float)
    A.data[:] = rng.uniform(-1, 1, A.nnz)
    A = sp.csr_array(sp.triu(A, 1) + sp.triu(A, 1).T)
    sizes = abs(A).sum(axis=1) + 0.1
    A = sp.csr_array(A + sp.diags_array(sizes * rng.choice([-1, 1], A.shape[0])))
    b, M = rng.standard_normal(A.shape[0]), sp.csr_matrix(sp.diags_array(1 / sizes))
    shifted = A + shift * sp.eye_array(A.shape[0])
    for preconditioner in (None, to_device(M)):
        result = minres(to_device(sp.csr_array(shifted)), to_device(b), M=preconditioner, shift=shift, rtol=1e-9)
        assert result.converged and relative_residual(A, backend.to_host(result.x), b) <= 1.01e-9


def counts_of_scipy(A, b, rtol, **options) -> int:
    """After how many iterations the residual of SciPy's method is small."""
    norms: list[float] = []
    scipys.minres(A, b, rtol=1e-15, callback=lambda x: norms.append(relative_residual(A, x, b)), **options)
    return next(k for k, norm in enumerate(norms, 1) if norm <= rtol)


@pytest.mark.parametrize("sigma", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("name", ["none", "SGS"])
def test_helmholtz_takes_the_iterations_of_scipy(sigma, name, backend, to_device):
    A, b = helmholtz(24, sigma), random_vector(576)
    on_host, on_device = (MulticolorSGS(matrix, "jp") if name == "SGS" else None for matrix in (A, to_device(A)))
    result = minres(to_device(A), to_device(b), M=on_device, rtol=1e-8)
    assert result.converged and abs(result.iterations - counts_of_scipy(A, b, 1e-8, M=on_host)) <= 4


@pytest.mark.parametrize("kind", ["matrix", "operator"])
def test_a_saddle_point_takes_the_iterations_of_scipy(kind, backend, to_device):
    A, M = saddle_point(10)
    b = random_vector(A.shape[0])
    on_device = to_device(M)
    if kind == "operator":
        on_device = backend.linalg.aslinearoperator(on_device)
    result = minres(to_device(A), to_device(b), M=on_device, rtol=1e-8)
    assert result.converged and abs(result.iterations - counts_of_scipy(A, b, 1e-8, M=M)) <= 2


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_saddle_point_in_each_dtype(dtype, backend, to_device):
    A, M = saddle_point(8, dtype)
    if np.dtype(dtype).kind == "c":  # a change of the phases of unknowns
        phases = sp.diags_array(np.exp(1j * np.arange(A.shape[0])))
        A = sp.csr_matrix((phases @ A @ phases.conj()).astype(dtype))
    b, rtol = random_vector(A.shape[0], dtype), 1e-5 if np.finfo(dtype).bits == 32 else 1e-10
    result = minres(to_device(A), to_device(b), M=to_device(M), rtol=rtol)
    assert result.converged and result.x.dtype == dtype
    assert relative_residual(A.astype(np.complex128), backend.to_host(result.x), b) <= 1.01 * rtol


def test_residuals_are_the_smallest_of_each_space(backend, to_device):
    """In the norm of M: the Krylov space of M A, whose basis is built here by QR."""
    A, b, scale = helmholtz(6, 0.5).toarray(), random_vector(36), np.linspace(0.5, 2, 36)
    seen = []
    M = to_device(sp.csr_matrix(sp.diags_array(scale)))
    minres(to_device(A), to_device(b), M=M, rtol=1e-13, maxiter=12, callback=lambda x: seen.append(backend.to_host(x)))
    roots, basis, expected = np.sqrt(scale), [scale * b], []
    for _ in range(12):
        K = np.linalg.qr(np.stack(basis, axis=1))[0]
        images = roots[:, None] * (A @ K)
        expected.append(np.linalg.norm(roots * b - images @ np.linalg.lstsq(images, roots * b, rcond=None)[0]))
        basis.append(scale * (A @ K[:, -1]))
    np.testing.assert_allclose([np.linalg.norm(roots * (b - A @ x)) for x in seen], expected, rtol=1e-8)
    assert (np.diff(expected) <= 0).all()


def test_residuals_are_those_of_x(backend, to_device):
    A, seen = helmholtz(20, 0.3), []
    b = random_vector(400)
    M = MulticolorSGS(to_device(A))
    result = minres(
        to_device(A), to_device(b), M=M, rtol=1e-8, callback=lambda x: seen.append(backend.to_host(x)), maxiter=60
    )
    np.testing.assert_allclose([np.linalg.norm(b - A @ x) for x in seen], result.residuals[1:], rtol=1e-6)


#: The test multiplies A by 2^p and b by 2^q for each pair (p, q). It leaves out (400, -701), since x would underflow.
UNITS = *((of_A, of_b) for of_A in (1, 61, -401) for of_b in (0, -701, 300)), (400, 0), (400, 300)


@pytest.mark.parametrize(("of_A", "of_b"), [(2.0**of_A, 2.0**of_b) for of_A, of_b in UNITS])
@pytest.mark.parametrize("preconditioned", [False, True])
def test_units_change_no_digit(of_A, of_b, preconditioned, backend, to_device):
    A, b = helmholtz(10, 0.3), random_vector(100)
    x0 = random_vector(100, seed=1)

    def solve(of_A, of_b):
        matrix = to_device(of_A * A)
        M = MulticolorSGS(matrix, "jp") if preconditioned else None
        return minres(matrix, to_device(of_b * b), to_device(of_b / of_A * x0), M=M, rtol=1e-9)

    expected, scaled = solve(1.0, 1.0), solve(of_A, of_b)
    assert scaled.converged and scaled.iterations == expected.iterations
    np.testing.assert_array_equal(backend.to_host(scaled.x), backend.to_host(expected.x) / of_A * of_b)


def test_shifts_of_matrices_and_of_operators(backend, to_device):
    A, b = problems.laplacian((12, 12)), random_vector(144)
    on_device = to_device(A)
    expected = backend.to_host(minres(to_device(helmholtz(12, 0.3)), to_device(b), rtol=1e-10).x)
    for matrix in (on_device, on_device.tocsc(), to_device(A.toarray()), backend.linalg.aslinearoperator(on_device)):
        result = minres(matrix, to_device(b), shift=0.3, rtol=1e-10)
        assert result.converged
        np.testing.assert_allclose(backend.to_host(result.x), expected, rtol=1e-7, atol=1e-7)
    single = minres(to_device(A.astype("float32")), to_device(b.astype("float32")), shift=0.3)
    assert single.x.dtype == "float32" and single.converged
    with pytest.raises(TypeError, match="shift must be a real number"):
        minres(on_device, to_device(b), shift=1j)


def neumann(n: int) -> sp.csr_matrix:
    """The Laplacian of a chain, whose null space is that of constants."""
    A = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)).tolil()
    A[0, 0] = A[n - 1, n - 1] = 1
    return sp.csr_matrix(A)


@pytest.mark.parametrize("n", [5, 40, 300])
def test_a_singular_system(n, backend, to_device):
    A, b = neumann(n), random_vector(n)
    fits = minres(to_device(A), to_device(b - b.mean()), rtol=1e-8)
    assert fits.converged and abs(backend.to_host(fits.x).mean()) < 1e-6
    result = minres(to_device(A), to_device(b), rtol=1e-8)
    assert result.reason is Reason.INCONSISTENT and result.info == -1
    if n < 128:  # a longer solve ends when it is examined
        assert result.residual_norm == pytest.approx(np.sqrt(n) * abs(b.mean()), rel=1e-6)  # of least squares
    assert np.linalg.norm(backend.to_host(result.x)) <= 1e6


@for_each_device
@given(n=st.integers(2, 30), seed=st.integers(0, 10**6), rank=st.integers(1, 3))
def test_a_null_space_that_nobody_knows(n, seed, rank, backend, to_device):
    """The solution is one of least squares."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    eigenvalues = rng.uniform(1, 2, n) * rng.choice([-1, 1], n)
    eigenvalues[: min(rank, n - 1)] = 0
    A, b = (Q * eigenvalues) @ Q.T, rng.standard_normal(n)
    A = (A + A.T) / 2
    result = minres(to_device(A), to_device(b), rtol=1e-8)
    assert result.reason in (Reason.INCONSISTENT, Reason.NO_PROGRESS, Reason.MAX_ITERATIONS)
    least = np.linalg.norm(Q.T[: min(rank, n - 1)] @ b)
    assert result.residual_norm <= 1.001 * least + 1e-6
    assert minres(to_device(A), to_device(A @ b), rtol=1e-8).converged


@pytest.mark.parametrize("is_complex", [False, True])
def test_a_matrix_that_is_not_hermitian(is_complex, backend, to_device):
    A = np.diag(np.linspace(1.0, 2, 30)) + np.diag(np.full(29, 0.9), 1)
    A = A + 0.5j * np.diag(np.ones(29), -1) if is_complex else A
    result = minres(to_device(A), to_device(np.ones(30, A.dtype)), rtol=1e-10)
    assert result.reason is Reason.UNSYMMETRIC_A and "MINRES" in result.reason.value
    with pytest.raises(ValueError, match=r"A is not symmetric .*: it holds .*0\.9.* in row 0, column 1, and .* across"):
        minres(to_device(A), to_device(np.ones(30, A.dtype)), check=True)


def test_what_is_checked(backend, to_device):
    A, b = helmholtz(6, 0.3), to_device(random_vector(36))
    lower = to_device(sp.csr_matrix(sp.tril(A)))
    with pytest.raises(ValueError, match=r"M is not symmetric .*: it holds -1\.0 in row 1, column 0, and 0\.0 across"):
        minres(to_device(A), b, M=lower, check=True)
    assert minres(to_device(A), b, M=to_device(sp.csr_matrix(sp.eye_array(36))), check=True).converged
    assert minres(backend.linalg.aslinearoperator(to_device(A)), b, check=True).converged


def test_what_M_has_to_be(backend, to_device):
    A = problems.laplacian((12, 12))
    on_device, b = to_device(A), to_device(random_vector(144))
    with pytest.raises(ValueError, match="M is not symmetric, which MINRES needs; use sweep='symmetric'"):
        minres(on_device, b, M=MulticolorGS(on_device, sweep="forward"))
    with pytest.raises(ValueError, match="M is not linear, which MINRES needs"):
        minres(on_device, b, M=SmoothedAggregation(on_device, max_coarse=20, cycle="K"))
    for M in (-1.0 * sp.eye_array(144), sp.diags_array(np.r_[np.ones(143), -1])):
        result = minres(on_device, b, M=to_device(sp.csr_matrix(M)), rtol=1e-12)
        assert result.reason is Reason.INDEFINITE_M and result.info == -1
    assert minres(on_device, b, M="multigrid", rtol=1e-8).iterations < 20


def test_multigrid_of_the_laplacian_for_helmholtz(backend, to_device):
    A, b = to_device(helmholtz(40, 0.05)), to_device(random_vector(1600))
    M = SmoothedAggregation(to_device(problems.laplacian((40, 40))), max_coarse=50)
    assert minres(A, b, M=M, rtol=1e-8).iterations < minres(A, b, rtol=1e-8).iterations / 4


def test_pcg_says_that_minres_may_help(backend, to_device):
    A, b = to_device(helmholtz(20, 0.3)), to_device(random_vector(400))
    result = pcg(A, b, rtol=1e-8)
    assert result.reason is Reason.INDEFINITE_A and "minres" in result.reason.value
    assert minres(A, b, rtol=1e-8).converged


def test_zeros(backend, to_device):
    A = to_device(helmholtz(6, 0.3))
    result = minres(A, to_device(np.zeros(36)), to_device(np.ones(36)))
    assert result.converged and not backend.to_host(result.x).any()
    assert minres(A, to_device(random_vector(36)[:, None])).converged
    assert minres(to_device(np.zeros((0, 0))), to_device(np.zeros(0))).converged
    zero = minres(to_device(np.zeros((3, 3))), to_device(np.ones(3)))
    assert zero.reason is Reason.INCONSISTENT and not backend.to_host(zero.x).any()
    # A zero row and column, as of an unknown that nothing depends on.
    A = sp.block_diag([helmholtz(6, 0.3), sp.csr_matrix((1, 1))]).tocsr()
    assert minres(to_device(A), to_device(np.r_[random_vector(36), 0]), rtol=1e-8).converged


@pytest.mark.parametrize("maxiter", [0, 1, 3])
def test_maxiter(maxiter, backend, to_device):
    result = minres(to_device(helmholtz(20, 0.3)), to_device(random_vector(400)), maxiter=maxiter, rtol=1e-12)
    assert result.reason is Reason.MAX_ITERATIONS and result.iterations == maxiter and result.info == max(maxiter, 1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_residual_that_is_rounding_ends_a_solve(dtype, backend, to_device):
    A, b = indefinite(40, dtype), random_vector(40, dtype)
    result = minres(to_device(A), to_device(b), rtol=0)
    assert result.reason is Reason.STAGNATED and result.iterations < 200
    assert relative_residual(A.astype(np.complex128), backend.to_host(result.x), b) <= 20 * np.finfo(dtype).eps


def test_five_iterations_for_each_row_by_default(backend, to_device):
    A = to_device(np.diag(np.logspace(0, 12, 20) * np.resize([1, -1], 20)))
    result = minres(A, to_device(np.ones(20)), rtol=1e-15)
    assert result.iterations <= 100


def test_results_are_repeatable(backend, to_device):
    A, b = to_device(helmholtz(20, 0.3)), to_device(random_vector(400))
    one, other = (minres(A, b, M=MulticolorSGS(A), rtol=1e-9) for _ in range(2))
    np.testing.assert_array_equal(backend.to_host(one.x), backend.to_host(other.x))
    np.testing.assert_array_equal(one.residuals, other.residuals)


def test_the_result_is_shown(backend, to_device, capsys):
    result = minres(to_device(np.eye(3)), to_device(np.ones(3)), show=True)
    assert capsys.readouterr().out == f"{result}\n" and "1 iterations" in repr(result)


@pytest.mark.parametrize("scale", [1.0, 100.0, -1.0])
def test_auto_is_jacobi_where_that_is_definite_and_pays(scale, to_device):
    """The last row of A in other units, or with another sign."""
    A, b = helmholtz(6, 0.3), random_vector(36)
    D = np.ones(36)
    D[-1] = abs(scale)
    A = sp.csr_matrix(sp.diags_array(D) @ A @ sp.diags_array(D))
    if scale < 0:
        A[35, 35] = -4.0
    name = "jacobi" if scale == 100 else None
    results = [minres(to_device(A), to_device(b), M=M, rtol=1e-8) for M in ("auto", name)]
    assert results[0].converged and results[0].iterations == results[1].iterations
    assert minres(scipys.aslinearoperator(A), b, M="auto", rtol=1e-8).iterations == minres(A, b, rtol=1e-8).iterations


@pytest.mark.parametrize("M", [None, "jacobi"])
@pytest.mark.parametrize("eigenvalue", [0.0, 1e-6, 1e-9, 1e-12])
def test_only_singular_systems_are_inconsistent(backend, eigenvalue, M):
    """Another solve refines the residual, so that it tells a null vector from one with a small eigenvalue."""
    random = np.random.default_rng(0)
    Q = np.linalg.qr(random.standard_normal((60, 60)))[0]
    sizes = np.concatenate([[eigenvalue], np.linspace(0.1, 1, 30), -np.linspace(0.1, 1, 29)])
    scales = np.ones(60) if M is None else 10.0 ** random.uniform(-1, 1, 60)
    A = scales[:, None] * ((Q * sizes) @ Q.T) * scales
    A, b = backend.xp.asarray((A + A.T) / 2), backend.xp.asarray(random.standard_normal(60))
    inverse = None if M is None else backend.sparse.diags(1 / backend.xp.asarray(scales) ** 2).tocsr()
    result = minres(A, b, M=inverse, rtol=1e-10, maxiter=3000)
    assert (result.reason is Reason.INCONSISTENT) == (eigenvalue == 0)
