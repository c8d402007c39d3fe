"""Classical multigrid for matrices that are not symmetric, on both devices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.flows import FLOWS, advection
from mcprecond import ClassicalAMG, SmoothedAggregation, bicgstab, gmres, pcg, problems
from mcprecond.linalg.dense import general_inverse
from mcprecond.multigrid import fitting_multigrid
from mcprecond.multigrid.polynomial import DampedJacobi
from mcprecond.preconditioners.setup import admit


def dense(M, backend):
    return backend.to_host(M @ backend.xp.eye(M.shape[0], dtype=M.dtype))


def with_reaction(A, dtype):
    """A, or for complex numbers A with an absorption of its own in each cell."""
    if np.dtype(dtype).kind != "c":
        return A.astype(dtype)
    rates = np.random.default_rng(3).uniform(0, 0.01, A.shape[0])
    return sp.csr_matrix(A + sp.diags_array(1j * rates)).astype(dtype)


def relative(found, expected):
    return abs(found - expected).max() / abs(expected).max()


@pytest.mark.parametrize("diffusion", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("flow", FLOWS)
def test_iterations_do_not_depend_on_the_flow(flow, diffusion, to_device):
    """Nor much on the size, for upwind differences."""
    counts = []
    for n in (48, 96):
        A = advection(n, diffusion, flow)
        x = np.random.default_rng(1).uniform(-1, 1, n * n)
        matrix, b = to_device(A), to_device(A @ x)
        M = ClassicalAMG(matrix, max_coarse=100)
        assert len(M.levels) >= 3 and M.operator_complexity < 5
        of_bicgstab, of_gmres = (solve(matrix, b, M=M, rtol=1e-8, maxiter=60) for solve in (bicgstab, gmres))
        assert of_bicgstab.converged and of_gmres.converged
        counts.append((of_bicgstab.iterations, of_gmres.iterations))
    assert max(counts)[0] <= 12 and max(count for _, count in counts) <= 22, counts


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.complex64])
def test_dtypes_and_columns(dtype, to_device, backend):
    A = with_reaction(advection(40, 1e-3, "cells"), dtype)
    matrix, rng = to_device(A), np.random.default_rng(0)
    M = ClassicalAMG(matrix, max_coarse=50)
    assert M.dtype == dtype and not M.symmetric and M.linear
    R = to_device(rng.uniform(-1, 1, (1600, 3)).astype(dtype))
    together = backend.to_host(M @ R)
    for column in range(3):
        assert relative(backend.to_host(M @ R[:, column].copy()), together[:, column]) < 1e-5
    b = to_device((A @ rng.uniform(-1, 1, 1600)).astype(dtype))
    assert bicgstab(matrix, b, M=M, rtol=1e-4, maxiter=10).converged


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize(
    "options",
    [{}, {"presweeps": 2}, {"postsweeps": 0}, {"cycle": "W"}, {"smoother": "jacobi"}, {"smoother": "chebyshev"}],
    ids=str,
)
def test_the_adjoint_is_that_of_the_matrix(options, dtype, to_device, backend):
    """Also after an update."""
    A = with_reaction(advection(24, 1e-3, "closed"), dtype)
    M = ClassicalAMG(to_device(A), max_coarse=50, dtype=dtype, **options)
    adjoint, transposed = M.H, M.T
    assert len(M.levels) > 2 and adjoint.H is M
    for scale in (1.0, 0.5):
        other = A.copy()
        other.data[::3] *= scale
        M.update(to_device(other))
        expected = dense(M, backend)
        assert relative(dense(adjoint, backend), expected.conj().T) < 1e-12
        assert relative(dense(transposed, backend), expected.T) < 1e-12
        v = to_device(np.arange(A.shape[0], dtype=dtype))
        assert relative(backend.to_host(M.rmatvec(v)), expected.conj().T @ np.arange(A.shape[0])) < 1e-12


def test_sweeps_have_an_adjoint_only_where_there_is_one(to_device):
    M = ClassicalAMG(to_device(advection(24, 1e-3, "closed")), smoother="gauss_seidel", max_coarse=50)
    with pytest.raises(TypeError, match="not available with this smoother"):
        M.T  # noqa: B018


@pytest.mark.parametrize("smoother", ["gauss_seidel", "sgs", "dilu", "jacobi", "damped_jacobi"])
def test_every_smoother_that_fits_serves(smoother, to_device):
    A = advection(40, 1e-2, "vortex")
    matrix, b = to_device(A), to_device(A @ np.random.default_rng(0).uniform(-1, 1, 1600))
    M = ClassicalAMG(matrix, smoother=smoother, max_coarse=50)
    assert gmres(matrix, b, M=M, rtol=1e-8, maxiter=30).iterations <= 20


def test_an_update_is_a_fresh_setup(to_device, backend):
    A = advection(40, 1e-3, "vortex")
    M = ClassicalAMG(to_device(A), max_coarse=50)
    before = dense(M, backend)
    M.update(to_device(advection(40, 1e-2, "vortex")))
    assert relative(dense(M, backend), before) > 0.1
    M.update(to_device(A))
    np.testing.assert_array_equal(dense(M, backend), before)


def test_a_symmetric_hierarchy_refuses_unsymmetric_values(to_device, backend):
    A = problems.laplacian((20, 20))
    M = ClassicalAMG(to_device(A), max_coarse=50)
    before, other = dense(M, backend), sp.csr_matrix(A)
    other.data[1] *= 2
    with pytest.raises(ValueError, match="not symmetric"):
        M.update(to_device(other))
    np.testing.assert_array_equal(dense(M, backend), before)


def test_what_is_refused(to_device):
    A = advection(20, 1e-2, "vortex")
    with pytest.raises(ValueError, match="use ClassicalAMG"):
        SmoothedAggregation(to_device(A))
    with pytest.raises(ValueError, match="cycle 'K' takes steps of CG"):
        ClassicalAMG(to_device(A), cycle="K")
    with pytest.raises(ValueError, match="cycle 'K' takes steps of CG"):
        ClassicalAMG(to_device(A)).aspreconditioner("K")
    with pytest.raises(ValueError, match=r"on the diagonal in row 0; multigrid needs a positive diagonal"):
        ClassicalAMG(to_device(-A))
    with pytest.raises(ValueError, match="gmres or bicgstab if A is not symmetric"):
        pcg(to_device(A), to_device(np.ones(400)), M=ClassicalAMG(to_device(A)))
    for solve in (gmres, bicgstab):
        with pytest.raises(ValueError, match="M must be"):
            solve(to_device(A), to_device(np.ones(400)), M="magic")


@pytest.mark.parametrize("solve", [gmres, bicgstab])
def test_solvers_know_it_by_its_name(solve, to_device):
    A = advection(40, 1e-3, "cells")
    matrix, b = to_device(A), to_device(A @ np.ones(1600))
    M = fitting_multigrid(matrix)
    assert type(M) is ClassicalAMG and M.reason == "A is not symmetric"
    named, built = (solve(matrix, b, M=each, rtol=1e-8) for each in ("multigrid", M))
    assert named.converged and named.iterations == built.iterations <= 12


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 100), positive=st.booleans(), n=st.integers(1, 60))
def test_random_matrices_are_solved(to_device, seed, positive, n):
    """Rows are dominated by the diagonal, with entries of both signs."""
    rng = np.random.default_rng(seed)
    A = sp.random_array((n, n), density=min(1.0, 5 / n), rng=rng, data_sampler=lambda size: rng.uniform(-1, 1, size))
    A = abs(A) if positive else A
    A = sp.csr_matrix(A + sp.diags_array(abs(A).sum(axis=1) + 0.1))
    matrix, b = to_device(A), to_device(A @ rng.uniform(-1, 1, n))
    M = ClassicalAMG(matrix, max_coarse=5)
    assert gmres(matrix, b, M=M, rtol=1e-8, maxiter=60).converged


def test_weights_of_damped_jacobi(to_device, backend):
    """Rows with large entries beside the diagonal are damped more."""
    A = sp.csr_matrix(np.array([[2.0, -1.0, 1.0], [3.0, 2.0, -3.0], [0.0, 0.0, 4.0]]))
    smoother = DampedJacobi(admit(to_device(A), finite=True)[0].canonical())
    np.testing.assert_allclose(backend.to_host(smoother.dinv), [1 / 2, 1 / 4, 1 / 4])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
def test_inverses_of_any_matrix(dtype, to_device, backend):
    rng = np.random.default_rng(0)
    A = rng.uniform(-1, 1, (30, 30)).astype(dtype)
    if A.dtype.kind == "c":
        A = A + 1j * rng.uniform(-1, 1, (30, 30)).astype(dtype)
    singular = A.copy()
    singular[:, 4] = singular[:, 3]
    for matrix in (A, singular):
        found = backend.to_host(general_inverse(to_device(sp.csr_matrix(matrix)), backend))
        expected = np.linalg.pinv(matrix.astype(np.complex128 if A.dtype.kind == "c" else np.float64), rcond=1e-4)
        assert found.dtype == dtype and relative(found, expected) < (1e-3 if dtype == np.float32 else 1e-9)
