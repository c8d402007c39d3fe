"""Vectors and matrices of PETSc on a GPU are used in place: for a PETSc with CUDA, on a machine with a GPU."""

from __future__ import annotations

import numpy as np
import pytest
from distributed import COMM, TYPES, in_blocks, matrix, python_type, solution, solver
from petsc4py import PETSc
from systems_of_ranks import AGGREGATES, POINTS, conductances

from mcprecond import problems
from mcprecond.backends import gpu_problem
from mcprecond.interop.petsc import solve

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        bool(gpu_problem()) or not PETSc.Sys.hasExternalPackage("cuda"), reason="no PETSc with CUDA here"
    ),
]
CG = "-ksp_type cg -ksp_norm_type unpreconditioned "
POISSON = problems.laplacian((12, 12, 12))
ON_GPU = 2  # PETSC_OFFLOAD_GPU: what the host has is out of date


def on_gpu(A, block_size: int = 1) -> PETSc.Mat:
    return matrix(A, block_size).convert("aijcusparse", PETSc.Mat())


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("place", ["top", "bjacobi"])
def test_iterations_are_those_of_host_vectors(name, place):
    options = CG + (python_type(name) if place == "top" else in_blocks(name))
    b, found = POISSON @ np.random.default_rng(0).uniform(-1, 1, 1728), []
    for P in (matrix(POISSON), on_gpu(POISSON)):
        ksp = solver(P, options)
        x = solution(ksp, b)
        np.testing.assert_allclose(POISSON @ x, b, atol=1e-7)
        found.append(ksp.getIterationNumber())
        ksp.destroy()
    assert abs(found[0] - found[1]) <= 1


@pytest.mark.parametrize("name", TYPES)
def test_nothing_is_copied(name):
    P = on_gpu(POISSON)
    ksp = solver(P, CG + python_type(name))
    ksp.setUp()
    assert P.getDiagonalBlock().getType() == "seqaijcusparse"
    r, z = P.createVecs()
    for value in (1.0, 2.0, 3.0):  # the first launches kernels, later ones a graph
        r.set(value)
        ksp.getPC().apply(r, z)
        assert r.getOffloadMask() == z.getOffloadMask() == ON_GPU
    first = z.copy()
    r.set(1.0)
    ksp.getPC().apply(r, z)
    first.axpy(-3.0, z)
    assert first.norm() <= 1e-12 * z.norm()
    ksp.destroy()


def test_new_values_and_patterns():
    P = on_gpu(POISSON)
    ksp = solver(P, CG + python_type("MulticolorSGS"))
    b = POISSON @ np.ones(1728)
    x = solution(ksp, b)
    P.scale(2.0)
    ksp.setOperators(P)
    np.testing.assert_allclose(2 * solution(ksp, b), x, rtol=1e-6)
    context = ksp.getPC().getPythonContext()
    assert (context.builds, context.updates) == (1, 1)
    if COMM.size == 1:
        other = problems.laplacian((12, 144))
        ksp.setOperators(on_gpu(other))
        solution(ksp, other @ np.ones(1728))
        assert (context.builds, context.updates) == (2, 1)
    ksp.destroy()


def test_sweeps_on_the_host_if_wanted():
    ksp = solver(on_gpu(POISSON), CG + python_type("MulticolorSGS") + "-mcprecond_device cpu ")
    b = POISSON @ np.ones(1728)
    np.testing.assert_allclose(solution(ksp, b), np.ones(1728), rtol=1e-6)
    ksp.destroy()


@pytest.mark.parametrize("smoother", ["chebyshev", "sgs"])
@pytest.mark.parametrize("kind", [AGGREGATES, POINTS])
def test_levels_across_ranks_are_those_of_host_matrices(kind, smoother):
    """With other values, too."""
    options = CG + python_type(kind) + "-mcprecond_max_coarse 50 -mcprecond_max_whole 200 "
    b, found = POISSON @ np.random.default_rng(0).uniform(-1, 1, 1728), []
    for P in (matrix(POISSON), on_gpu(POISSON)):
        ksp = solver(P, options + f"-mcprecond_smoother {smoother} ")
        for factor in (1.0, 2.0):
            P.scale(factor)
            ksp.setOperators(P)
            np.testing.assert_allclose(POISSON @ solution(ksp, b) * factor, b, atol=1e-7)
        context = ksp.getPC().getPythonContext()
        assert (context.builds, context.updates) == (1, 1) and len(context.M.sizes) > 2
        norms = [float(abs(rows.whole.data).sum()) for rows in context.M.rows]
        found.append((ksp.getIterationNumber(), context.M.sizes, norms))
        ksp.destroy()
    assert abs(found[0][0] - found[1][0]) <= 1 and found[0][1] == found[1][1]
    np.testing.assert_allclose(found[0][2], found[1][2], rtol=1e-12)


def test_points_where_coefficients_jump():
    import cupy

    A = conductances(40)
    P, exact = on_gpu(A), np.random.default_rng(0).uniform(-1, 1, 1600)
    first, end = P.getOwnershipRange()
    result = solve(P, cupy.asarray((A @ exact)[first:end]), M="multigrid", rtol=1e-10)
    assert result.converged and result.M.by_points
    np.testing.assert_allclose(result.x.get(), exact[first:end], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("M", ["jacobi", "sgs", "multigrid"])
def test_solves_across_gpus(M):
    """With arrays of CuPy, and twice: the graph of the first solve is not that of the second one."""
    import cupy

    P, exact = on_gpu(POISSON), np.random.default_rng(0).uniform(-1, 1, 1728)
    first, end = P.getOwnershipRange()
    for factor in (1.0, 3.0):
        result = solve(P, cupy.asarray(factor * (POISSON @ exact)[first:end]), M=M, rtol=1e-10)
        assert result.converged and isinstance(result.x, cupy.ndarray) and result.stages[0].name == M
        np.testing.assert_allclose(result.x.get(), factor * exact[first:end], rtol=1e-6, atol=1e-8)
