"""Multigrid across ranks: one hierarchy, with about the iterations that one process takes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg
from distributed import COMM, gathered, matrix, python_type, refused, solution, solver, vector, viewer_of
from petsc4py import PETSc
from systems_of_ranks import AGGREGATES, HIERARCHIES, POINTS, POISSON, SCALAR, SYSTEMS, right_hand_side

from mcprecond import ClassicalAMG, SmoothedAggregation, pcg, problems
from mcprecond.interop.petsc_cycle import LevelAcross
from mcprecond.interop.petsc_halo import Halo
from mcprecond.interop.petsc_matrix import DistributedMatrix
from mcprecond.multigrid.named_smoothers import POLYNOMIALS

CG = "-ksp_type cg -ksp_norm_type unpreconditioned "
OURS = python_type(AGGREGATES)
of_any = pytest.mark.parametrize("kind", [AGGREGATES, POINTS])
of_systems = pytest.mark.parametrize(("kind", "name"), HIERARCHIES)
#: By type.
OF_PROCESS = {AGGREGATES: SmoothedAggregation, POINTS: ClassicalAMG}


def distributed(A, block_size=1, B=None) -> PETSc.Mat:
    P = matrix(A, block_size)
    if B is not None:
        P.setNearNullSpace(PETSc.NullSpace().create(vectors=[vector(column, P) for column in B.T.copy()]))
    return P


def system(name: str) -> tuple:
    """Matrix, block size, candidates."""
    return (SYSTEMS | SCALAR)[name]()


def exact(A, b) -> np.ndarray:
    return scipy.sparse.linalg.spsolve(sp.csc_array(A), b)


def context(ksp):
    return ksp.getPC().getPythonContext()


def sizes(ksp) -> list[int]:
    return [unknowns for unknowns, _ in context(ksp).M.sizes]


@pytest.mark.parametrize("max_whole", [100, 2000])
@pytest.mark.parametrize("smoother", ["auto", "sgs", "gauss_seidel"])
@of_systems
def test_iterations_are_at_most_a_quarter_more_than_those_of_one_process(kind, name, smoother, max_whole):
    """Whether ranks share one level or more."""
    A, block_size, B = system(name)
    options = f"-mcprecond_smoother {smoother} -mcprecond_max_whole {max_whole}"
    ksp = solver(distributed(A, block_size, B), CG + python_type(kind) + options)
    b = right_hand_side(A)
    x = solution(ksp, b)
    assert np.linalg.norm(A @ x - b) < 1e-9 * np.linalg.norm(b)
    nodes = {"B": B, "block_size": block_size} if kind == AGGREGATES else {}
    ours = pcg(A, b, M=OF_PROCESS[kind](A, **nodes, smoother=smoother), rtol=1e-10)
    # Sweeps do not see what other ranks do meanwhile; four ranks have two to four layers of nodes each.
    most = 1.25 if COMM.size <= 2 or smoother == "auto" else 1.6
    assert ksp.getIterationNumber() <= max(most * ours.iterations, ours.iterations + 2)
    M = context(ksp).M
    assert len(sizes(ksp)) > 1 and len(M.steps) == len(M.rows) - 1
    if COMM.size > 1 and name == "7 points" and kind == AGGREGATES:
        assert len(M.steps) == (1 if max_whole == 2000 else 2)
    ksp.destroy()


def fill(level, x) -> None:
    """Fill a vector of a level with what the prolongator from it reads."""
    if isinstance(level, LevelAcross):
        level.halo.fill(x)
    else:
        all_x = np.concatenate(COMM.tompi4py().allgather(x[: level.n]))
        x[:] = all_x[level._places]


@of_systems
def test_coarse_matrices_are_galerkin_products(kind, name):
    """With the prolongators and the restrictions that cycles apply, and in single precision as they read them."""
    A, block_size, B = system(name)
    ksp = solver(distributed(A, block_size, B), python_type(kind) + "-mcprecond_max_whole 100")
    ksp.setUp()
    M, rng = context(ksp).M, np.random.default_rng(COMM.rank)
    cycle = M.cycle
    for number, level in enumerate(cycle.levels):
        coarser = cycle._level_below(number)
        v, c, w = np.zeros_like(coarser.x), np.zeros_like(coarser.b), level.halo.new_vector()
        fine = DistributedMatrix(M.rows[number])
        u = fine.halo.new_vector()
        v[: coarser.n] = rng.uniform(-1, 1, coarser.n)
        fill(coarser, v)
        product = np.zeros(level.P.operator.rows)
        level.P.enqueue(v, product)
        u[: level.n] = product[: level.n]
        fine.enqueue(u, w[: level.n])
        level.halo.fill(w)
        level.R.enqueue(w, c)
        coarse = DistributedMatrix(M.rows[number + 1])
        x, product = coarse.halo.new_vector(), np.empty(coarser.n)
        x[: coarser.n] = v[: coarser.n]
        coarse.enqueue(x, product)
        there = c[: coarser.n] != 0  # where it is zero, all candidates vanish, and the diagonal has been filled
        assert np.count_nonzero(~there) <= 0.02 * coarser.n
        least = 1e-5 * abs(product).max(initial=0)
        np.testing.assert_allclose(c[: coarser.n][there], product[there], rtol=1e-4, atol=least)
    assert COMM.size == 1 or len(cycle.levels) > 0
    ksp.destroy()


@pytest.mark.skipif(COMM.size > 1, reason="there are several ranks")
@of_systems
def test_one_rank_has_the_levels_of_one_process(kind, name):
    A, block_size, B = system(name)
    ksp = solver(distributed(A, block_size, B), CG + python_type(kind))
    ksp.setUp()
    ours = OF_PROCESS[kind](A, **({"B": B, "block_size": block_size} if kind == AGGREGATES else {}))
    assert context(ksp).M.sizes == [(level.A.shape[0], level.A.nnz) for level in ours.levels]
    ksp.destroy()


@pytest.mark.parametrize("cycle", ["V", "W"])
@pytest.mark.parametrize("smoother", ["chebyshev", "jacobi", "sgs", "gauss_seidel"])
@of_any
def test_the_cycle_is_symmetric_and_positive(kind, smoother, cycle):
    options = (
        f"-mcprecond_smoother {smoother} -mcprecond_cycle {cycle} -mcprecond_dtype float64 -mcprecond_max_whole 100"
    )
    ksp = solver(P := matrix(POISSON), python_type(kind) + options)
    ksp.setUp()
    pc, rng = ksp.getPC(), np.random.default_rng(0)
    x, y = (vector(rng.uniform(-1, 1, 4096), P) for _ in range(2))
    z, w = x.duplicate(), x.duplicate()
    pc.apply(x, z)
    pc.applyTranspose(y, w)
    assert z.dot(y) == pytest.approx(w.dot(x), rel=1e-10) and z.dot(x) > 0
    ksp.destroy()


@pytest.mark.parametrize("sweeps", [1, 2])
@pytest.mark.parametrize("cycle", ["V", "W"])
@pytest.mark.parametrize("smoother", ["chebyshev", "jacobi", "sgs", "gauss_seidel"])
@of_any
def test_cycles_read_what_ranks_have_computed_or_got(kind, smoother, cycle, sweeps):
    """Numbers of other ranks that were there before change nothing."""
    options = f"-mcprecond_smoother {smoother} -mcprecond_cycle {cycle} -mcprecond_max_whole 100 "
    options += f"-mcprecond_presweeps {sweeps} -mcprecond_postsweeps {sweeps}"
    ksp = solver(matrix(POISSON), python_type(kind) + options)
    ksp.setUp()
    found = context(ksp).M.cycle
    b = np.random.default_rng(COMM.rank).uniform(-1, 1, context(ksp).M.rows[0].n)
    before, after = np.empty_like(b), np.empty_like(b)
    found.enqueue(b, before)
    for level in found.levels:
        vectors = [level.b, level.x, level.r]
        vectors += [level.smoother.d, level.smoother.other] if smoother in POLYNOMIALS else [level.smoother.r]
        for v in vectors:
            v.fill(np.nan)
    found.enqueue(b, after)
    np.testing.assert_array_equal(after, before)
    ksp.destroy()


@pytest.mark.parametrize("max_whole", [100, 2000])
@of_any
def test_a_level_takes_one_message_down_and_one_up(kind, max_whole, monkeypatch):
    ksp = solver(matrix(POISSON), python_type(kind) + f"-mcprecond_max_whole {max_whole}")
    ksp.setUp()
    M, fills = context(ksp).M, []
    b = np.ones(M.rows[0].n)
    monkeypatch.setattr(Halo, "fill", lambda halo, x: fills.append(halo.room))
    M.cycle.enqueue(b, np.empty_like(b))
    shared = len(M.cycle.levels)
    assert len(fills) == max(2 * shared - 1, 0)  # the level below is on all ranks
    assert shared == 0 if COMM.size == 1 else shared >= 1
    ksp.destroy()


def test_a_cycle_with_other_sweeps_after_the_correction_is_not_symmetric():
    ksp = solver(P := matrix(POISSON), OURS + "-mcprecond_presweeps 2")
    ksp.setUp()
    x, y = P.createVecs()
    x.set(1.0)
    with refused() as causes:
        ksp.getPC().applyTranspose(x, y)
    assert "M is not symmetric" in str(causes[0])
    ksp.destroy()


def cycle_of_ones(ksp) -> float:
    """The sum of what a cycle makes of ones."""
    x, y = ksp.getOperators()[0].createVecs()
    x.set(1.0)
    ksp.getPC().apply(x, y)
    return y.sum()


@pytest.mark.parametrize("smoother", ["chebyshev", "sgs"])
def test_values_are_updated_and_patterns_are_built_anew(smoother):
    ksp = solver(P := matrix(POISSON), CG + OURS + f"-mcprecond_smoother {smoother}")
    b, M = right_hand_side(POISSON), context(ksp)
    solution(ksp, b)
    assert (M.builds, M.updates) == (1, 0)
    cycle, first = M.M.cycle, cycle_of_ones(ksp)
    other = sp.csr_array(POISSON + 0.1 * sp.diags_array(np.arange(4096.0) % 7))
    P.axpy(1.0, matrix(other - POISSON), structure=PETSc.Mat.Structure.SUBSET_NONZERO_PATTERN)
    np.testing.assert_allclose(solution(ksp, b), exact(other, b), rtol=1e-7, atol=1e-9)
    assert (M.builds, M.updates) == (1, 1)
    assert M.M.cycle is cycle and cycle_of_ones(ksp) < 0.99 * first
    again = solver(matrix(other), CG + OURS + f"-mcprecond_smoother {smoother}")
    solution(again, b)
    assert abs(again.getIterationNumber() - ksp.getIterationNumber()) <= 1
    again.destroy()
    ksp.setOperators(matrix(2 * other))  # another matrix of the same pattern
    np.testing.assert_allclose(solution(ksp, b), exact(other, b) / 2, rtol=1e-7, atol=1e-9)
    assert (M.builds, M.updates) == (1, 2)
    solution(ksp, b)
    assert (M.builds, M.updates) == (1, 2)
    wider = sp.csr_array(other + 0.01 * sp.csr_array(other @ other))
    ksp.setOperators(matrix(wider))
    np.testing.assert_allclose(solution(ksp, b), exact(wider, b), rtol=1e-7, atol=1e-9)
    assert (M.builds, M.updates) == (2, 2)
    ksp.destroy()
    assert M.M is None


@pytest.mark.parametrize("smoother", ["chebyshev", "gauss_seidel"])
@of_systems
def test_cycles_come_back_with_the_values(kind, name, smoother):
    """Other values, and then the first ones again."""
    A, block_size, B = system(name)
    options = f"-mcprecond_max_whole 100 -mcprecond_smoother {smoother}"
    ksp = solver(P := distributed(A, block_size, B), python_type(kind) + options)
    ksp.setUp()
    pc, M = ksp.getPC(), context(ksp)
    x, first = P.createVecs()
    x.setArray(np.random.default_rng(COMM.rank).uniform(-1, 1, x.getLocalSize()))
    pc.apply(x, first)
    for shift, is_first in ((0.1, False), (-0.1, True)):
        P.shift(shift)
        pc.setUp()
        y = x.duplicate()
        pc.apply(x, y)
        y.axpy(-1.0, first)
        assert (y.norm() < 1e-6 * first.norm()) == is_first
    assert (M.builds, M.updates) == (1, 2)
    ksp.destroy()


@pytest.mark.parametrize("of_type", ["baij", "sbaij"])
def test_other_types_of_matrices(of_type):
    nodes = sp.csr_array(sp.kron(problems.laplacian((20, 20)), [[4.0, 1, 0], [1, 3, -1], [0, -1, 2]]))
    b = right_hand_side(nodes)
    ksp = solver(P := matrix(nodes, 3, of_type), CG + OURS)
    np.testing.assert_allclose(solution(ksp, b), exact(nodes, b), rtol=1e-7, atol=1e-9)
    assert len(sizes(ksp)) > 1 and sizes(ksp)[1] % 3 == 0
    P.scale(2.0)
    np.testing.assert_allclose(solution(ksp, b), exact(nodes, b) / 2, rtol=1e-7, atol=1e-9)
    assert context(ksp).updates == 1
    ksp.destroy()


@pytest.mark.parametrize("rows", ["none", "few"])
@of_any
def test_a_rank_may_have_no_rows_or_few(kind, rows):
    """All ranks but the first one have none, or one or two each."""
    n, own = 400, np.full(COMM.size, 0 if rows == "none" else 2)
    own[0] = n - own[1:].sum()
    A = problems.laplacian((20, 20))
    first, end = own[: COMM.rank].sum(), own[: COMM.rank + 1].sum()
    csr = sp.csr_array(A)[first:end]
    P = PETSc.Mat().createAIJ(((end - first, n), (end - first, n)), csr=(csr.indptr, csr.indices, csr.data))
    for smoother in ("chebyshev", "gauss_seidel"):
        options = f"-mcprecond_max_coarse 20 -mcprecond_max_whole 50 -mcprecond_smoother {smoother}"
        ksp = solver(P, CG + python_type(kind) + options)
        x, b = P.createVecs()
        b.set(1.0)
        ksp.solve(b, x)
        np.testing.assert_allclose(gathered(x), exact(A, np.ones(n)), rtol=1e-7)
        assert ksp.getIterationNumber() <= 14 and len(sizes(ksp)) > 2
        ksp.destroy()


def test_a_small_matrix_is_solved_at_once():
    A = problems.laplacian((5, 5))
    ksp = solver(matrix(A), CG + OURS)
    b = right_hand_side(A)
    np.testing.assert_allclose(solution(ksp, b), exact(A, b), rtol=1e-9)
    assert len(sizes(ksp)) == 1 and ksp.getIterationNumber() == 1
    ksp.destroy()


@of_any
def test_all_ranks_stop_where_levels_hardly_shrink(kind):
    """A diagonal matrix has no aggregates; with no smaller level a large one is smoothed."""
    for n in (500, 3000):
        A = sp.csr_array(sp.diags_array(np.arange(1.0, n + 1)))
        ksp = solver(matrix(A), CG + python_type(kind))
        np.testing.assert_allclose(solution(ksp, np.ones(n)), 1 / np.arange(1.0, n + 1), rtol=1e-7)
        assert sizes(ksp) == [n]
        ksp.destroy()


def test_candidates_that_depend_on_others_are_left_out():
    A = sp.csr_array(sp.kron(problems.laplacian((20, 20)), np.eye(2)))
    B = np.column_stack([np.ones(800), np.ones(800), np.tile([1.0, -1], 400)])
    ksp = solver(distributed(A, 2, B), CG + OURS)
    b = right_hand_side(A)
    np.testing.assert_allclose(solution(ksp, b), exact(A, b), rtol=1e-6, atol=1e-8)
    assert ksp.getIterationNumber() <= 15
    ksp.destroy()


def test_a_singular_matrix_with_a_consistent_right_hand_side():
    A = sp.csr_array(POISSON - sp.diags_array(POISSON @ np.ones(4096)))  # no conditions at the boundary
    P = matrix(A)
    P.setNullSpace(PETSc.NullSpace().create(constant=True))
    ksp = solver(P, CG + OURS)
    b = right_hand_side(A)
    x = solution(ksp, b)
    assert np.linalg.norm(A @ x - b) < 1e-8 * np.linalg.norm(b) and ksp.getIterationNumber() <= 20
    ksp.destroy()


def test_options_for_levels():
    options = (
        "-my_pc_type none -mcprecond_theta 0.1 -mcprecond_smoother sgs -mcprecond_coloring greedy "
        "-mcprecond_max_coarse 50 -mcprecond_max_whole 300 -mcprecond_cycle W -mcprecond_postsweeps 2 "
    )
    ksp = solver(matrix(POISSON), CG + OURS + options)
    b = right_hand_side(POISSON)
    np.testing.assert_allclose(solution(ksp, b), exact(POISSON, b), rtol=1e-7, atol=1e-9)
    M = context(ksp).M
    assert not M.symmetric and sizes(ksp)[-1] <= 50 and M.cycle.whole.M.shape[0] <= (300 if COMM.size > 1 else 4096)
    for level in M.cycle.levels:
        assert level.smoother.M.coloring.method == "greedy"
    ksp.destroy()


def test_view_says_levels_and_entries():
    ksp = solver(matrix(POISSON), OURS)
    with viewer_of(ksp) as viewed:
        assert "not set up" in viewed()
        ksp.setUp()
        text = viewed()
    M = context(ksp).M
    entries = sum(entries for _, entries in M.sizes)
    assert f"levels {len(M.sizes)}, operator complexity {entries / POISSON.nnz:.3g}" in text
    assert f"level 0: unknowns 4096, entries {POISSON.nnz}" in text and f"level 1: unknowns {sizes(ksp)[1]}" in text
    assert "built 1 times, updated 0 times" in text
    ksp.destroy()


def with_entry(row: int, column: int, value: float) -> sp.csr_array:
    """The matrix of Poisson's equation with another entry."""
    A = sp.lil_array(POISSON)
    A[row, column] = value
    return sp.csr_array(A)


@pytest.mark.parametrize(
    ("A", "options", "message"),
    [
        (POISSON, "-mcprecond_theta fast", "option -mcprecond_theta must be a number, got 'fast'"),
        (POISSON, "-mcprecond_theta 2", "theta must be between 0 and 1, got 2.0"),
        (POISSON, "-mcprecond_cycle K", "cycle must be"),
        (POISSON, "-mcprecond_smoother ilu", "smoother must be"),
        (POISSON, "-mcprecond_presweeps 0", "presweeps"),
        (POISSON, "-mcprecond_block_size 3", "block_size 3 does not divide"),
        (POISSON, "-mcprecond_device tpu", "device must be one of cpu, gpu, got 'tpu'"),
        (with_entry(4000, 4000, -6.0), "", "no positive diagonal entry in row 4000"),
        (with_entry(10, 4000, 1.0), "", "A is not symmetric"),
        (with_entry(7, 8, -1.001), "", "A is not symmetric"),
        (with_entry(9, 9, np.nan), "", "A holds NaN or infinity"),
        (POISSON - 4 * sp.eye_array(4096), "", "so A is not positive definite"),
    ],
)
def test_wrong_values_are_refused_by_all_ranks(A, options, message):
    with refused() as causes:
        solver(matrix(A), OURS + options).setUp()
    (cause,) = causes
    assert isinstance(cause, ValueError) and message in str(cause)
    if not message.startswith("option"):
        assert "PC with prefix '': DistributedSmoothedAggregation" in cause.__notes__[0]


def test_a_matrix_without_entries_is_refused():
    P = PETSc.Mat().createPython(((8, None), (8, None)), context=object())
    P.setUp()
    with refused() as causes:
        solver(P, OURS).setUp()
    (cause,) = causes
    assert "P must be an assembled AIJ, BAIJ or SBAIJ matrix, got type 'python'" in str(cause)
