"""``mcprecond.interop.petsc.solve``: distributed systems by one call, on any number of ranks."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
import scipy.sparse as sp
from distributed import COMM, matrix
from petsc4py import PETSc
from systems_of_ranks import POISSON, SCALAR, SYSTEMS, right_hand_side

from mcprecond import ClassicalAMG, pcg, problems
from mcprecond.interop.petsc import solve
from mcprecond.multigrid import fitting_multigrid
from mcprecond.solvers.result import Reason

MPI_COMM = COMM.tompi4py()
#: Convection along the last axis, by upwind differences.
FLOW = sp.csr_array(POISSON + sp.diags_array([np.ones(4096), -np.ones(4095)], offsets=[0, -1]))


def rows_of(n: int, block_size: int = 1) -> slice:
    """Those of this rank."""
    layout = PETSc.Vec().createMPI(n, bsize=block_size)
    return slice(*layout.getOwnershipRange())


def whole(v: np.ndarray) -> np.ndarray:
    return np.concatenate(MPI_COMM.allgather(v))


@pytest.mark.parametrize("M", ["auto", "jacobi", "sgs", "dilu", "ilu0", "multigrid"])
@pytest.mark.parametrize("name", SYSTEMS)
def test_solutions(name, M):
    A, block_size, B = SYSTEMS[name]()
    b, own = right_hand_side(A), rows_of(A.shape[0], block_size)
    candidates = B[own] if B is not None and M in ("auto", "multigrid") else None
    given = {"B": candidates, "block_size": block_size if M in ("auto", "sgs", "multigrid") else 1}
    before = b.copy()
    result = solve(sp.csr_array(A)[own], b[own], MPI_COMM, M=M, rtol=1e-9, device="cpu", **given)
    residual = b - A @ whole(result.x)
    assert result.converged and result.method == "pcg" and np.array_equal(b, before)
    assert np.linalg.norm(residual) == pytest.approx(result.residual_norm, rel=1e-3)
    assert result.residual_norm <= 1e-9 * np.linalg.norm(b) and result.norm_of_b == pytest.approx(np.linalg.norm(b))
    assert len(result.residuals) == result.iterations + 1 and result.stages[0].iterations == result.iterations
    assert M == "auto" or result.stages[0].name == M
    assert MPI_COMM.allgather(result.iterations) == COMM.size * [result.iterations]


@pytest.mark.parametrize("name", SCALAR)
def test_multigrid_is_the_one_that_fits(name):
    """As on one device, and with about the iterations that one process takes."""
    A, _, _ = SCALAR[name]()
    b, own = right_hand_side(A), rows_of(A.shape[0])
    result = solve(sp.csr_array(A)[own], b[own], M="multigrid", device="cpu")
    fitting = fitting_multigrid(A)
    ours = pcg(A, b, M=fitting, rtol=1e-8)
    assert result.M.by_points == isinstance(fitting, ClassicalAMG)
    assert ("by points" in str(result.M)) == result.M.by_points
    assert result.converged and result.iterations <= max(1.25 * ours.iterations, ours.iterations + 2)


def test_iterations_are_those_of_one_process():
    b, own = right_hand_side(POISSON), rows_of(4096)
    found = solve(POISSON[own], b[own], M="jacobi", device="cpu")
    ours = pcg(POISSON, b, M="jacobi", rtol=1e-8)
    assert found.iterations == ours.iterations
    np.testing.assert_allclose(found.residuals, ours.residuals, rtol=1e-6)


def test_sweeps_take_few_iterations_more_than_those_of_one_process():
    A = problems.laplacian((48, 24, 24), points=27)
    b, own = right_hand_side(A), rows_of(A.shape[0])
    result, ours = solve(sp.csr_array(A)[own], b[own], M="sgs", device="cpu"), pcg(A, b, M="sgs", rtol=1e-8)
    assert result.iterations <= (1.15 if COMM.size <= 2 else 1.25) * ours.iterations


@pytest.mark.parametrize("M", ["auto", "jacobi", "sgs", "dilu", "ilu0"])
def test_flows(M):
    b, own = right_hand_side(FLOW), rows_of(4096)
    result = solve(FLOW[own], b[own], M=M, device="cpu")
    assert result.converged and result.method == "bicgstab" and result.stages[0].name == ("ilu0" if M == "auto" else M)
    assert np.linalg.norm(b - FLOW @ whole(result.x)) <= 1e-8 * np.linalg.norm(b)


def test_guesses_tolerances_and_limits():
    b, own = right_hand_side(POISSON), rows_of(4096)
    A = POISSON[own]
    solution = solve(A, b[own], rtol=1e-12, M="multigrid", device="cpu").x
    again = solve(A, b[own], x0=solution, rtol=1e-8, device="cpu")
    assert again.iterations == 0 and again.converged and np.array_equal(again.x, solution)
    few = solve(A, b[own], maxiter=5, M="jacobi", device="cpu")
    assert few.reason is Reason.MAX_ITERATIONS and few.iterations == 5 and few.info == 5
    assert few.residual_norm == pytest.approx(np.linalg.norm(b - POISSON @ whole(few.x)))
    loose = solve(A, b[own], atol=0.1 * np.linalg.norm(b), M="jacobi", device="cpu")
    assert loose.converged and 0 < loose.iterations < 20
    zero = solve(A, 0 * b[own], device="cpu")
    assert zero.converged and zero.iterations == 0 and not zero.x.any()
    unreachable = solve(A, b[own], rtol=0.0, M="sgs", maxiter=2000, device="cpu")
    assert unreachable.reason is Reason.STAGNATED and unreachable.residual_norm <= 1e-13 * np.linalg.norm(b)


@pytest.mark.parametrize("of_type", ["aij", "baij", "sbaij"])
def test_matrices_of_petsc(of_type):
    nodes = sp.csr_array(sp.kron(problems.laplacian((12, 12)), [[4.0, 1, 0], [1, 3, -1], [0, -1, 2]]))
    b, own = right_hand_side(nodes), rows_of(432, 3)
    result = solve(matrix(nodes, 3, of_type), b[own], M="sgs", block_size=3, device="cpu")
    assert result.converged
    np.testing.assert_allclose(nodes @ whole(result.x), b, atol=1e-6 * abs(b).max())


def test_indefinite_matrices_are_named():
    A = sp.csr_array(POISSON - 0.5 * sp.eye_array(4096))
    b, own = right_hand_side(A), rows_of(4096)
    result = solve(A[own], b[own], M="jacobi", device="cpu")
    assert result.reason is Reason.INDEFINITE_A and not result.converged


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"M": "amg"}, ValueError, "M must be"),
        ({"rtol": -1.0}, ValueError, "rtol"),
        ({"maxiter": 1.5}, TypeError, "maxiter"),
        ({"block_size": 10}, ValueError, "block_size"),
        ({"device": "tpu"}, ValueError, "device"),
        ({"b": np.ones(3)}, ValueError, "b must have shape"),
        ({"b": np.nan}, ValueError, "b"),
        ({"x0": np.inf}, ValueError, "x0"),
        ({"b": 1j * np.ones(4096)}, TypeError, "b has complex numbers"),
        ({"maxiter": 7}, ValueError, "all ranks must pass the same arguments"),
        ({"B": np.ones((2, 1))}, ValueError, "B must have a row for each"),
        ({"A": np.ones((4, 4))}, TypeError, "A must be a matrix of PETSc"),
        ({"A": sp.csr_array(np.ones((5, 3)))}, ValueError, "A must have all columns"),
        ({"A": "nan"}, ValueError, "A"),
        ({"A": "complex"}, TypeError, "complex"),
    ],
)
def test_what_the_last_rank_gives_wrong_all_ranks_refuse(change, error, message):
    own = rows_of(4096)
    given = {"A": POISSON[own], "b": np.ones(own.stop - own.start), "device": "cpu"}
    if COMM.size == 1 and "maxiter" in change and error is ValueError:
        pytest.skip("there are no other ranks")
    if COMM.rank == COMM.size - 1:
        for name, value in change.items():
            if np.ndim(value) == 1 and len(value) == 4096:
                value = value[own]
            if name in ("b", "x0") and np.ndim(value) == 0:
                value = np.append(given["b"][1:], value)
            if name == "A" and isinstance(value, str):
                A = given["A"].astype(complex if value == "complex" else float)
                A.data[0] = 1j if value == "complex" else np.nan
                value = A
            given[name] = value
    with pytest.raises(error, match=message):
        solve(given.pop("A"), given.pop("b"), **given)


def test_multigrid_needs_a_symmetric_matrix_and_all_columns():
    own = rows_of(4096)
    with pytest.raises(ValueError, match="A is not symmetric"):
        solve(FLOW[own], np.ones(own.stop - own.start), M="multigrid", device="cpu")
    if COMM.size > 1:
        with pytest.raises(ValueError, match="as many as all ranks have rows"):
            solve(sp.eye_array(7, format="csr"), np.ones(7), device="cpu")


@pytest.mark.parametrize(("A", "M"), [(POISSON, "jacobi"), (POISSON, "multigrid"), (FLOW, "ilu0")])
@pytest.mark.parametrize("exponent", [-900, -3, 900])
def test_units_of_b_change_no_digit(A, M, exponent):
    b, own = right_hand_side(A), rows_of(4096)
    usual = solve(A[own], b[own], M=M, device="cpu")
    other = solve(A[own], np.ldexp(b[own], exponent), M=M, device="cpu")
    assert other.iterations == usual.iterations and other.converged
    np.testing.assert_array_equal(other.x, np.ldexp(usual.x, exponent))
    assert other.residual_norm == np.ldexp(usual.residual_norm, exponent)


@pytest.mark.parametrize("M", ["auto", "jacobi", "sgs", "ilu0", "multigrid"])
def test_a_rank_may_have_no_rows(M):
    """All of them are those of the last rank."""
    own = slice(0, 4096 if COMM.rank == COMM.size - 1 else 0)
    b = right_hand_side(POISSON)
    result = solve(POISSON[own], b[own], M=M, device="cpu")
    assert result.converged
    np.testing.assert_allclose(POISSON @ whole(result.x), b, atol=1e-7 * np.linalg.norm(b))


@pytest.mark.skipif(COMM.size > 1, reason="there are several ranks")
def test_the_example_of_the_docstring():
    """It is skipped where petsc4py is missing, and so are its lines for pytest."""
    (example,) = doctest.DocTestFinder().find(solve, "solve", module=False, globs={})
    for line in example.examples:
        line.options.clear()
    found = doctest.DocTestRunner().run(example)
    assert found.failed == 0 and found.attempted == 6
