"""PETSc's solvers with the package's Python types, on any number of ranks."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg
from distributed import (
    COMM,
    TYPES,
    gathered,
    in_blocks,
    matrix,
    python_type,
    refused,
    solution,
    solver,
    vector,
    viewer_of,
)
from petsc4py import PETSc

import mcprecond
from mcprecond import pcg, problems

CG = "-ksp_type cg -ksp_norm_type unpreconditioned "
POISSON = problems.laplacian((8, 8, 8))
#: Unsymmetric, and with three unknowns a node.
WIND = sp.csr_array(problems.laplacian((24, 24)) + sp.diags_array([-0.4, 0.4], offsets=[-1, 1], shape=(576, 576)))
NODES = sp.csr_array(sp.kron(problems.laplacian((10, 10)), [[4.0, 1, 0], [1, 3, -1], [0, -1, 2]]))


def right_hand_side(A) -> np.ndarray:
    return A @ np.random.default_rng(0).uniform(-1, 1, A.shape[0])


def exact(A, b) -> np.ndarray:
    return scipy.sparse.linalg.spsolve(sp.csc_array(A), b)


def context(ksp):
    """That of the type at the top, or of the first block."""
    pc = ksp.getPC()
    if pc.getType() == "bjacobi":
        pc = pc.getBJacobiSubKSP()[0].getPC()
    return pc.getPythonContext()


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("place", ["top", "bjacobi", "asm"])
def test_options_alone(name, place):
    around = python_type(name) if place == "top" else in_blocks(name, place) + "-pc_asm_type basic "
    b = right_hand_side(POISSON)
    ksp = solver(matrix(POISSON), CG + around + "-mcprecond_coloring greedy")
    np.testing.assert_allclose(solution(ksp, b), exact(POISSON, b), rtol=1e-7, atol=1e-9)
    ksp.destroy()


@pytest.mark.skipif(COMM.size > 1, reason="with several ranks M is another one")
@pytest.mark.parametrize("name", TYPES)
def test_one_rank_iterates_as_pcg_does(name):
    b = right_hand_side(POISSON)
    ksp = solver(matrix(POISSON), CG + in_blocks(name))
    solution(ksp, b)
    ours = pcg(POISSON, b, M=getattr(mcprecond, name)(POISSON), rtol=1e-10)
    assert abs(ksp.getIterationNumber() - ours.iterations) <= 1
    ksp.destroy()


def test_several_blocks_a_rank():
    b = right_hand_side(POISSON)
    ksp = solver(matrix(POISSON), CG + in_blocks("MulticolorSGS") + f"-pc_bjacobi_blocks {2 * COMM.size}")
    np.testing.assert_allclose(solution(ksp, b), exact(POISSON, b), rtol=1e-7, atol=1e-9)
    assert len(ksp.getPC().getBJacobiSubKSP()) == 2
    ksp.destroy()


@pytest.mark.parametrize("smoothing", ["chebyshev", "richardson"])
def test_the_levels_of_gamg_take_as_many_iterations_as_with_sor(smoothing):
    A = problems.laplacian((14, 14, 14))
    b, count = right_hand_side(A), {}
    gamg = f"-pc_type gamg -pc_gamg_threshold 0.01 -pc_gamg_coarse_eq_limit 50 -mg_levels_ksp_type {smoothing} "
    for name, smoother in (("sor", "-mg_levels_pc_type sor"), ("ours", python_type("MulticolorSGS", "mg_levels_"))):
        ksp = solver(matrix(A), CG + gamg + "-mg_levels_esteig_ksp_type cg " + smoother)
        np.testing.assert_allclose(solution(ksp, b), exact(A, b), rtol=1e-7, atol=1e-9)
        count[name] = ksp.getIterationNumber()
        assert ksp.getPC().getMGLevels() > 1
        ksp.destroy()
    assert abs(count["ours"] - count["sor"]) <= 2


@pytest.mark.parametrize("name", TYPES)
def test_values_are_updated_and_patterns_are_built_anew(name):
    ksp = solver(P := matrix(POISSON), CG + python_type(name))
    b = right_hand_side(POISSON)
    M = context(ksp)
    other = sp.csr_array(POISSON + 0.1 * sp.diags_array(np.arange(512.0)))
    P.axpy(1.0, matrix(other - POISSON), structure=PETSc.Mat.Structure.SUBSET_NONZERO_PATTERN)
    solution(ksp, b)
    assert (M.builds, M.updates) == (1, 0)
    P.scale(2.0)
    np.testing.assert_allclose(solution(ksp, b), exact(other, b) / 2, rtol=1e-7, atol=1e-9)
    assert (M.builds, M.updates) == (1, 1)
    solution(ksp, b)
    assert (M.builds, M.updates) == (1, 1)
    wider = sp.csr_array(other + 0.1 * sp.csr_array(other @ other))
    ksp.setOperators(matrix(wider))
    np.testing.assert_allclose(solution(ksp, b), exact(wider, b), rtol=1e-7, atol=1e-9)
    assert (M.builds, M.updates) == (2, 1)
    ksp.destroy()


@pytest.mark.parametrize("name", ["MulticolorGS -mcprecond_sweep forward", "ILU0", "MulticolorDILU"])
def test_the_transpose(name):
    P = matrix(WIND)
    b = right_hand_side(WIND)
    ksp = solver(P, "-ksp_type bicg " + in_blocks(name))
    np.testing.assert_allclose(solution(ksp, b), exact(WIND, b), rtol=1e-6, atol=1e-8)
    ksp.destroy()
    ksp = solver(P, python_type(name))
    ksp.setUp()
    rng = np.random.default_rng(1)
    x, y = (vector(rng.uniform(-1, 1, 576), P) for _ in range(2))
    z, w = x.duplicate(), x.duplicate()
    ksp.getPC().apply(x, z)
    ksp.getPC().applyTranspose(y, w)
    assert z.dot(y) == pytest.approx(x.dot(w), rel=1e-12)
    ksp.destroy()


@pytest.mark.parametrize("of_type", ["aij", "baij", "sbaij"])
@pytest.mark.parametrize("name", ["MulticolorSGS", "MulticolorDILU", "SmoothedAggregation"])
@pytest.mark.parametrize("place", ["top", "bjacobi"])
def test_blocks(name, of_type, place):
    b = right_hand_side(NODES)
    ksp = solver(matrix(NODES, 3, of_type), CG + (python_type(name) if place == "top" else in_blocks(name)))
    np.testing.assert_allclose(solution(ksp, b), exact(NODES, b), rtol=1e-7, atol=1e-9)
    if name == "MulticolorSGS":
        assert context(ksp).M.blocks.block_size == 3
    ksp.destroy()


def test_the_block_size_may_be_another_one():
    b = right_hand_side(NODES)
    ksp = solver(matrix(NODES, 3), CG + python_type("MulticolorSGS") + "-mcprecond_block_size 1")
    np.testing.assert_allclose(solution(ksp, b), exact(NODES, b), rtol=1e-7, atol=1e-9)
    assert context(ksp).M.blocks.block_size == 1
    ksp.destroy()


def test_an_option_with_a_prefix_goes_first():
    ksp = solver(
        matrix(POISSON),
        in_blocks("MulticolorSGS") + "-mcprecond_omega 1.5 -mcprecond_sweeps 2 -sub_mcprecond_omega 1.25",
    )
    ksp.setUp()
    ksp.setUpOnBlocks()
    M = context(ksp).M
    assert (M.omega, M.sweeps) == (1.25, 2)
    ksp.destroy()


def test_levels_have_options_of_their_own():
    ksp = solver(
        matrix(problems.laplacian((30, 30))),
        "-pc_type gamg -pc_gamg_coarse_eq_limit 20 -pc_gamg_threshold 0.01 "
        + python_type("MulticolorGS", "mg_levels_")
        + "-mg_levels_mcprecond_omega 1.1 -mg_levels_1_mcprecond_omega 0.9",
    )
    ksp.setUp()
    pc = ksp.getPC()
    omegas = [pc.getMGSmoother(level).getPC().getPythonContext().M.omega for level in range(1, pc.getMGLevels())]
    assert omegas == [0.9] + [1.1] * (len(omegas) - 1) and len(omegas) > 1
    ksp.destroy()


def test_a_context_made_by_hand_and_an_option_that_changes():
    from mcprecond.interop.petsc import MulticolorSGS

    ksp = solver(matrix(POISSON), CG)
    ksp.getPC().setType("python")
    ksp.getPC().setPythonContext(M := MulticolorSGS(omega=1.2, coloring="greedy"))
    b = right_hand_side(POISSON)
    np.testing.assert_allclose(solution(ksp, b), exact(POISSON, b), rtol=1e-7, atol=1e-9)
    assert M.M.omega == 1.2
    PETSc.Options().setValue("-mcprecond_omega", 0.9)
    ksp.setFromOptions()
    ksp.setOperators(matrix(POISSON))
    solution(ksp, b)
    assert M.M.omega == 0.9 and (M.builds, M.updates) == (2, 0)
    ksp.destroy()


def test_smoothed_aggregation_reads_the_near_null_space():
    A = problems.elasticity(4)
    P = matrix(A, 3)
    line = np.linspace(0, 1, 4)
    z, y, x = np.meshgrid(line, line, line, indexing="ij")
    modes = PETSc.NullSpace().createRigidBody(vector(np.stack([x, y, z], axis=-1).ravel(), P))
    P.setNearNullSpace(modes)
    ksp = solver(P, CG + python_type("SmoothedAggregation"))
    b = right_hand_side(A)
    np.testing.assert_allclose(solution(ksp, b), exact(A, b), rtol=1e-6, atol=1e-8)
    found = context(ksp)._candidates(P)["B"]
    assert found.shape == (P.getLocalSize()[0], 6)
    for column, mode in zip(found.T, modes.getVecs(), strict=True):
        np.testing.assert_array_equal(column, mode.getArray(readonly=True))
    P.setNearNullSpace(PETSc.NullSpace().create(constant=True))
    np.testing.assert_array_equal(context(ksp)._candidates(P)["B"], np.ones((P.getLocalSize()[0], 1)))
    ksp.destroy()


@pytest.mark.parametrize("name", TYPES)
def test_view_says_colors_and_memory(name):
    ksp = solver(matrix(POISSON), python_type(name) + "-mcprecond_coloring greedy")
    with viewer_of(ksp) as viewed:
        assert "not set up" in viewed()
        ksp.setUp()
        text = viewed()
    M = context(ksp).M
    colors = COMM.tompi4py().allgather(M.n_colors or 0)
    total = COMM.tompi4py().allreduce(M.nbytes)
    least, most = min(colors), max(colors)
    assert f"colors {least}, " in text or f"colors {least} to {most}, " in text
    assert f"memory {total / 1e6:.3g} MB" in text and "coloring greedy" in text and "built 1 times" in text
    ksp.destroy()


@pytest.mark.parametrize(
    ("options_", "message"),
    [
        ("-mcprecond_omega fast", "option -mcprecond_omega must be a number, got 'fast'"),
        ("-mcprecond_sweeps 1.5", "option -mcprecond_sweeps must be an integer, got '1.5'"),
        ("-mcprecond_omega 3", "omega must be between 0 and 2, got 3.0"),
        ("-mcprecond_coloring none", "none"),
        ("-mcprecond_block_size 7", "block_size"),
        ("-mcprecond_device tpu", "device must be 'cpu' or 'gpu', got 'tpu'"),
        ("-mcprecond_dtype int8", "dtype must be float32 or float64, got 'int8'"),
    ],
)
def test_wrong_values_are_refused(options_, message):
    with refused() as causes:
        solver(matrix(POISSON), python_type("MulticolorSGS") + options_).setUp()
    (cause,) = causes
    assert isinstance(cause, ValueError | TypeError) and message in str(cause)
    if not message.startswith("option"):
        assert "PC with prefix '': MulticolorSGS" in cause.__notes__[0]


def test_a_matrix_without_entries_is_refused():
    P = PETSc.Mat().createPython(((8, None), (8, None)), context=object())
    P.setUp()
    with refused() as causes:
        solver(P, python_type("MulticolorSGS")).setUp()
    (cause,) = causes
    assert "P must be an assembled AIJ, BAIJ or SBAIJ matrix, got type 'python'" in str(cause)


def test_ranks_take_gpus_in_turn(monkeypatch):
    from mcprecond.interop import petsc, petsc_memory

    runtime = SimpleNamespace(getDeviceCount=lambda: 3)
    monkeypatch.setitem(
        sys.modules, "cupy", SimpleNamespace(cuda=SimpleNamespace(runtime=runtime, Device=lambda k: f"GPU {k}"))
    )
    for module in (petsc, petsc_memory):
        monkeypatch.setattr(module, "gpu_problem", lambda: None)
    assert petsc.on_device("gpu") == f"GPU {COMM.rank % 3}"
    with petsc.on_device("cpu") as nothing:
        assert nothing is None
    assert petsc.MulticolorSGS()._complete(matrix(POISSON))["device"] == "gpu"
    assert petsc.MulticolorSGS(device="cpu")._complete(matrix(POISSON))["device"] == "cpu"


@pytest.mark.skipif(COMM.size == 1, reason="there is one rank")
def test_a_rank_may_have_no_rows():
    A = problems.laplacian((20, 20))
    n = 400 if COMM.rank == 0 else 0
    csr = sp.csr_array(A)[:n]
    P = PETSc.Mat().createAIJ(((n, 400), (n, 400)), csr=(csr.indptr[: n + 1], csr.indices, csr.data))
    for name in TYPES:
        ksp = solver(P, CG + python_type(name))
        x, b = P.createVecs()
        b.set(1.0)
        ksp.solve(b, x)
        np.testing.assert_allclose(gathered(x), exact(A, np.ones(400)), rtol=1e-7)
        ksp.destroy()
