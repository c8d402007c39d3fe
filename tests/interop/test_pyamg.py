"""PyAMG's hierarchies with our smoothers, and our smoothers in PyAMG's solvers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import grid5

from mcprecond import SmoothedAggregation, multigrid, pcg, problems
from mcprecond.interop.pyamg import change_smoothers

pyamg = pytest.importorskip("pyamg")

SOLVERS = ("smoothed_aggregation_solver", "ruge_stuben_solver", "rootnode_solver", "pairwise_solver")


@pytest.mark.parametrize("name", SOLVERS)
def test_hierarchies_of_pyamg(to_device, backend, name):
    A = grid5(60)
    ml = getattr(pyamg, name)(A)
    M = multigrid.from_pyamg(ml, device=backend.name)
    assert len(M.levels) == len(ml.levels)
    assert M.operator_complexity == pytest.approx(ml.operator_complexity())
    x = np.random.default_rng(0).uniform(-1, 1, 3600)
    change_smoothers(ml)
    theirs = pcg(A, A @ x, M=ml.aspreconditioner(), rtol=1e-8)
    result = pcg(to_device(A), to_device(A @ x), M=M, rtol=1e-8)
    assert result.converged and abs(result.iterations - theirs.iterations) <= 1
    assert str(M).startswith("PyAMGHierarchy\n")
    with pytest.raises(TypeError, match="build another"):
        M.update(to_device(A))


def test_a_cycle_is_that_of_pyamg(to_device, backend):
    """With the same smoothers, one cycle gives the same."""
    A = problems.laplacian((30, 30))
    ml = pyamg.smoothed_aggregation_solver(A, max_coarse=20)
    change_smoothers(ml, coloring="greedy")
    M = multigrid.from_pyamg(ml, coloring="greedy", device=backend.name)
    r = np.random.default_rng(0).uniform(-1, 1, 900)
    expected = ml.aspreconditioner() @ r
    np.testing.assert_allclose(backend.to_host(M @ to_device(r)), expected, rtol=1e-10, atol=1e-12)


def test_k_cycles_keep_plain_aggregation_from_growing(to_device, backend):
    """PyAMG's pairwise aggregation does not smooth its prolongators: V cycles take more iterations on finer meshes."""
    counts = {"V": [], "K": []}
    for n in (40, 120):
        A = grid5(n)
        ml, x = pyamg.pairwise_solver(A), np.random.default_rng(0).uniform(-1, 1, n * n)
        for cycle, found in counts.items():
            M = multigrid.from_pyamg(ml, cycle=cycle, device=backend.name)
            found.append(pcg(to_device(A), to_device(A @ x), M=M, rtol=1e-8).iterations)
    assert counts["K"][1] <= counts["K"][0] + 3 and counts["V"][1] > 1.5 * counts["K"][1]


def test_blocks_of_pyamg(to_device, backend):
    A, B = pyamg.gallery.linear_elasticity((20, 20))
    M = multigrid.from_pyamg(pyamg.smoothed_aggregation_solver(A, B), device=backend.name)
    x = np.random.default_rng(0).uniform(-1, 1, A.shape[0])
    A = sp.csr_matrix(A)
    assert pcg(to_device(A), to_device(A @ x), M=M, rtol=1e-8).iterations <= 25
    assert M.n_colors < 10  # of nodes


def test_unsymmetric_hierarchies_are_known_to_be_so(to_device, backend):
    A = sp.csr_matrix(grid5(20) + 0.5 * sp.diags_array([1.0, -1.0], offsets=[1, 0], shape=(400, 400)))
    M = multigrid.from_pyamg(pyamg.ruge_stuben_solver(A, max_coarse=20), device=backend.name)
    assert not M.symmetric
    x, info = backend.linalg.gmres(to_device(A), to_device(np.ones(400)), M=M, maxiter=100)
    assert info == 0
    np.testing.assert_allclose(A @ backend.to_host(x), np.ones(400), atol=1e-3)


def test_smoothers_are_changed_in_place():
    """The convergence factor is about that of PyAMG's own Gauss-Seidel."""
    A = problems.laplacian((100, 100))
    b = np.random.default_rng(0).uniform(-1, 1, 10_000)
    factors = []
    for changes in (False, True):
        own = [("gauss_seidel", {"sweep": sweep}) for sweep in ("forward", "backward")]
        ml = pyamg.smoothed_aggregation_solver(A, presmoother=own[0], postsmoother=own[1])
        if changes:
            change_smoothers(ml)
            assert ml.symmetric_smoothing
        residuals: list[float] = []
        ml.solve(b, tol=1e-10, residuals=residuals)
        factors.append((residuals[-1] / residuals[0]) ** (1 / (len(residuals) - 1)))
    assert factors[1] <= 1.1 * factors[0]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"smoother": "ilu"}, ValueError, "smoother must be"),
        ({"presweeps": 0, "postsweeps": 0}, ValueError, "both 0"),
        ({"cycle": "X"}, ValueError, "cycle must be"),
        ({"dtype": int}, TypeError, "dtype must be"),
        ({"device": "tpu"}, ValueError, "device must be"),
    ],
)
def test_bad_arguments(options, error, message):
    with pytest.raises(error, match=message):
        multigrid.from_pyamg(pyamg.ruge_stuben_solver(grid5(10)), **options)


def test_what_is_no_solver():
    for convert in (multigrid.from_pyamg, change_smoothers):
        with pytest.raises(TypeError, match="ml must be a solver of PyAMG"):
            convert(grid5(10))
    ml = pyamg.ruge_stuben_solver(grid5(20), max_coarse=20)
    with pytest.raises(ValueError, match="sweeps must be"):
        change_smoothers(ml, ("forward", "upward"))
    with pytest.raises(ValueError, match="omega must be"):
        change_smoothers(ml, omega=3)


def test_ours_and_theirs_agree_on_complexity():
    A = problems.laplacian((60, 60))
    ours, theirs = SmoothedAggregation(A), pyamg.smoothed_aggregation_solver(A)
    assert ours.operator_complexity <= 1.2 * theirs.operator_complexity()


@pytest.mark.parametrize(
    ("attribute", "broken", "error", "message"),
    [
        ("P", lambda P: P.tocsr()[:, :3], ValueError, r"P of level 0 must have shape \(900, \d+\)"),
        ("P", lambda P: P.toarray(), TypeError, "P of level 0 must be a sparse matrix of SciPy, got ndarray"),
        ("R", lambda R: None, TypeError, "R of level 0 must be a sparse matrix of SciPy, got NoneType"),
        ("P", lambda P: P * np.nan, ValueError, "P of level 0 holds nan in row 0"),
        ("P", lambda P: P * 1j, TypeError, "P of level 0 holds complex128 and A float64"),
        ("A", lambda A: A * np.inf, ValueError, "A of level 0 holds"),
        ("A", lambda A: A.toarray(), TypeError, "A of level 0 must be a sparse matrix"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_broken_levels_are_named(attribute, broken, error, message):
    ml = pyamg.smoothed_aggregation_solver(grid5(30), max_coarse=20)
    setattr(ml.levels[0], attribute, broken(getattr(ml.levels[0], attribute)))
    with pytest.raises(error, match=message):
        multigrid.from_pyamg(ml)


def test_a_refusal_says_on_which_level_it_is():
    ml = pyamg.smoothed_aggregation_solver(grid5(40), max_coarse=20)
    ml.levels[1].A = ml.levels[1].A.tolil()
    ml.levels[1].A[7, 7] = 0
    ml.levels[1].A = ml.levels[1].A.tocsr()
    with pytest.raises(ValueError, match=r"diagonal entry in row 7.*\(A is the matrix of level 1\)"):
        multigrid.from_pyamg(ml)
