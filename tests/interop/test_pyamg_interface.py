"""PyAMG's interface: its arguments and methods, and libraries that call PyAMG with one line changed."""

from __future__ import annotations

import subprocess
import sys
from functools import wraps

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import grid5

from mcprecond import SmoothedAggregation, problems
from mcprecond.interop.pyamg import from_pyamg, ruge_stuben_solver, smoothed_aggregation_solver

pyamg = pytest.importorskip("pyamg")
A = grid5(50)
B = np.random.default_rng(0).uniform(-1, 1, 2500)


@pytest.fixture
def counted(monkeypatch):
    """Put a function of ours where a module has PyAMG's; returns the hierarchies that it has built."""

    def put(module, name, ours):
        built = []

        @wraps(ours)
        def called(*args, **kwargs):
            built.append(ours(*args, **kwargs))
            return built[-1]

        monkeypatch.setattr(module, name, called)
        return built

    return put


@pytest.mark.parametrize("new", [smoothed_aggregation_solver, ruge_stuben_solver])
@pytest.mark.parametrize("accel", [None, "cg"])
def test_solve_returns_x(to_device, backend, new, accel):
    ml, residuals, b = new(to_device(A)), [], to_device(A @ B)
    assert ml.operator_complexity() == ml.operator_complexity >= 1 and ml.grid_complexity() > 1
    x = ml.solve(b, None, 1e-9, 60, "V", accel, None, residuals)
    assert len(residuals) < 60 and residuals[-1] <= 1e-9 * residuals[0]
    np.testing.assert_allclose(A @ backend.to_host(x), A @ B, atol=1e-7)
    near = backend.to_host(ml.solve(b))  # without any argument, too
    assert np.linalg.norm(A @ near - A @ B) <= 1e-5 * np.linalg.norm(A @ B)
    x, info = ml.solve(b, x0=to_device(B), return_info=True)
    assert info == 0
    assert ml.solve(b, rtol=1e-9).converged


def test_complexities_are_those_of_pyamg():
    """For levels that PyAMG has built."""
    theirs = pyamg.smoothed_aggregation_solver(A)
    ours = from_pyamg(theirs)
    assert ours.operator_complexity == pytest.approx(theirs.operator_complexity())
    assert ours.grid_complexity == pytest.approx(theirs.grid_complexity())
    for cycle in ("V", "W", "AMLI"):
        assert ours.cycle_complexity(cycle) == pytest.approx(theirs.cycle_complexity(cycle))
    assert ours.cycle_complexity("K") == ours.cycle_complexity("W") and len(ours.levels) > 2
    one = from_pyamg(pyamg.smoothed_aggregation_solver(A, max_levels=1))
    assert one.cycle_complexity() == 1.0


def test_arguments_of_pyamg():
    """Those that mean something here are taken."""
    sweeps = ("block_gauss_seidel", {"sweep": "symmetric", "iterations": 2})
    ml = smoothed_aggregation_solver(
        A,
        None,
        None,
        "symmetric",
        ("symmetric", {"theta": 0.25}),
        "standard",
        "jacobi",
        sweeps,
        sweeps,
        None,
        max_levels=3,
        max_coarse=20,
        coarse_solver="splu",
    )
    assert (ml.theta, ml.smoother, ml.presweeps, ml.postsweeps, ml.max_levels) == (0.25, "sgs", 2, 2, 3)
    assert isinstance(ml, SmoothedAggregation) and len(ml.levels) == 3
    assert smoothed_aggregation_solver(A, strength=None).theta == 0.0
    both = ("gauss_seidel", {"sweep": "forward"}), ("gauss_seidel", {"sweep": "backward"})
    assert smoothed_aggregation_solver(A, presmoother=both[0], postsmoother=both[1]).smoother == "gauss_seidel"
    assert smoothed_aggregation_solver(A, presmoother="jacobi", postsmoother="jacobi").smoother == "jacobi"


def test_blocks_are_nodes_and_candidates_are_taken():
    elastic, modes = pyamg.gallery.linear_elasticity((20, 20))
    ml = smoothed_aggregation_solver(elastic, modes)
    assert ml.block_size == 2 and ml.levels[1].A.shape[0] % 3 == 0
    b, residuals = elastic @ np.random.default_rng(0).uniform(-1, 1, elastic.shape[0]), []
    ml.solve(b, tol=1e-8, accel="cg", residuals=residuals)
    assert len(residuals) <= 25


def test_aggregates_are_kept(to_device, backend):
    ml = smoothed_aggregation_solver(to_device(A), max_coarse=20, keep=True)
    for level, coarser in zip(ml.levels, ml.levels[1:], strict=False):
        members = sp.csr_array(backend.to_host(level.AggOp.toarray()))
        assert members.shape == (level.A.shape[0], coarser.A.shape[0])
        assert (members.sum(axis=1) <= 1).all() and (members.sum(axis=0) >= 1).all()
    assert ml.levels[-1].AggOp is None


@pytest.mark.parametrize(
    "argument",
    [
        {"strength": ("evolution", {"epsilon": 4.0})},
        {"smooth": ("energy", {"maxiter": 4})},
        {"aggregate": "lloyd"},
        {"improve_candidates": [("block_gauss_seidel", {"iterations": 4}), None]},
        {"diagonal_dominance": True},
        {"coarse_solver": "gauss_seidel"},
        {"presmoother": "jacobi_ne", "postsmoother": "jacobi_ne"},
        {"presmoother": "jacobi", "postsmoother": "chebyshev"},
        {"presmoother": ("gauss_seidel", {"sweep": "backward"}), "postsmoother": "gauss_seidel"},
        {"presmoother": ("jacobi", {"omega": 1.0}), "postsmoother": "jacobi"},
    ],
)
def test_what_is_only_in_pyamg_is_left_out_with_a_warning(argument):
    with pytest.warns(UserWarning, match=f"{next(iter(argument))}.*has no counterpart in mcprecond") as warned:
        ml = smoothed_aggregation_solver(A, **argument)
    assert len(warned) == 1 and warned[0].filename == __file__
    assert ml.solve(A @ B, tol=1e-8, accel="cg", return_info=True)[1] == 0


def test_what_cannot_be_left_out_is_refused():
    with pytest.raises(ValueError, match="symmetry must be 'hermitian' or 'symmetric', got 'nonsymmetric'"):
        smoothed_aggregation_solver(A, symmetry="nonsymmetric")
    with pytest.raises(TypeError, match="keep must be"):
        smoothed_aggregation_solver(A, keep="yes")


def test_random_walker_of_scikit_image(counted):
    from skimage.segmentation import random_walker

    module = sys.modules["skimage.segmentation.random_walker_segmentation"]
    rng = np.random.default_rng(0)
    inside = np.hypot(*np.mgrid[-1:1:40j, -1:1:40j]) < 0.6
    markers = np.zeros((40, 40), int)
    markers[20, 20], markers[2, 2] = 1, 2
    image = inside + 0.1 * rng.standard_normal((40, 40))
    theirs = random_walker(image, markers, mode="cg_mg", tol=1e-8, return_full_prob=True)
    built = counted(module, "ruge_stuben_solver", ruge_stuben_solver)
    ours = random_walker(image, markers, mode="cg_mg", tol=1e-8, return_full_prob=True)
    assert len(built) == 1
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    assert ((ours[0] > 0.5) == inside).mean() > 0.95


def test_spectral_clustering_of_scikit_learn(counted):
    from sklearn.cluster import SpectralClustering

    # A grid whose halves hardly hang together.
    column = np.arange(800) % 40
    graph = sp.coo_array(sp.csr_array(abs(problems.laplacian((20, 40))) - 4 * sp.eye_array(800)))
    of = column >= 20
    graph.data[of[graph.row] != of[graph.col]] = 0.01
    graph = sp.csr_matrix(graph)
    graph.eliminate_zeros()
    built = counted(pyamg, "smoothed_aggregation_solver", smoothed_aggregation_solver)
    found = SpectralClustering(2, eigen_solver="amg", affinity="precomputed", random_state=0).fit_predict(graph)
    assert len(built) == 1
    assert max((found == of).mean(), (found != of).mean()) == 1.0


def test_demonstration_of_pyamg(counted, capsys, monkeypatch):
    from pyamg.gallery import demo

    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # it would open a window
    built = counted(sys.modules[demo.__module__], "smoothed_aggregation_solver", smoothed_aggregation_solver)
    demo()
    printed = capsys.readouterr().out
    assert len(built) == 1 and "SmoothedAggregation" in printed and "convergence factor" in printed


#: Its suite of SciPy imports PyAMG's function.
FIPY = """
import pyamg
from mcprecond.interop import pyamg as ours
pyamg.smoothed_aggregation_solver = ours.smoothed_aggregation_solver
import fipy
mesh = fipy.Grid2D(nx=40, ny=40)
phi = fipy.CellVariable(mesh=mesh, hasOld=True)
phi.constrain(1.0, mesh.facesLeft)
phi.constrain(0.0, mesh.facesRight)
module = sys.modules[fipy.SmoothedAggregationPreconditioner.__module__]
assert module.smoothed_aggregation_solver is ours.smoothed_aggregation_solver
solver = fipy.LinearCGSolver(tolerance=1e-12, precon=fipy.SmoothedAggregationPreconditioner())
(fipy.TransientTerm() == fipy.DiffusionTerm()).solve(var=phi, dt=1e9, solver=solver)
print(float(abs(phi.value - (1 - mesh.x.value / 40)).max()))
"""


def test_fipy_with_its_suite_of_scipy():
    pytest.importorskip("fipy")
    code = "import os, sys; os.environ['FIPY_SOLVERS'] = 'scipy'" + FIPY
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    assert float(ran.stdout.split()[-1]) < 1e-4
