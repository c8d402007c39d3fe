"""ILU(0): the entries of a slow reference in the same order, levels, pivots, and use in CG."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg
from factors import applied, check, factors_in
from graphs import DTYPES, NAMED, complete, dominant, grid5, neighbors, patterns, spd, star, stencil27
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcprecond import ILU0, AutoColoring, MulticolorSGS, color, pcg, problems
from mcprecond.preconditioners import Shifts
from mcprecond.preconditioners.elimination import MOST_BYTES, MOST_ENTRIES, TRIANGLES, list_matches, list_nothing


@pytest.mark.parametrize("ordering", ["color", "natural", "given"])
@pytest.mark.parametrize("name", [name for name in NAMED if NAMED[name].shape[0]])
def test_factors_are_those_of_the_reference(name, ordering, backend, to_device):
    pattern = sp.csr_matrix(NAMED[name])[:150, :150]
    A, n = dominant(pattern), pattern.shape[0]
    order = {"color": None, "natural": np.arange(n), "given": np.random.default_rng(0).permutation(n)}[ordering]
    check(A, backend, to_device, to_device(order) if ordering == "given" else ordering, order)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pattern=patterns())
def test_factors_of_any_pattern(backend, to_device, pattern):
    A = dominant(pattern)
    check(A, backend, to_device, "color")
    check(A, backend, to_device, "natural", np.arange(A.shape[0]))


@pytest.mark.parametrize("ordering", ["color", "natural"])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_factors_of_long_rows(share, ordering, backend, to_device):
    """On a CPU the columns of rows are marked there, and otherwise searched for."""
    A = dominant(sp.random_array((150, 150), density=share, rng=0, format="csr"))
    check(A, backend, to_device, ordering, np.arange(150) if ordering == "natural" else None)


@pytest.mark.parametrize("ordering", ["color", "natural"])
@pytest.mark.parametrize("pattern", [stencil27(4), complete(30), star(40)], ids=["stencil", "complete", "star"])
def test_symmetric_for_symmetric_matrices(pattern, ordering, backend, to_device):
    dense = applied(ILU0(to_device(spd(pattern)), ordering=ordering), backend)
    np.testing.assert_allclose(dense, dense.T, atol=1e-14)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(pattern=patterns(), seed=st.integers(0, 99), dtype=st.sampled_from([np.float64, np.complex128]))
def test_symmetric_is_true_of_the_factors(backend, to_device, pattern, seed, dtype):
    other, A = (with_entries_on_one_side(spd(pattern, seed, dtype), seed, size) for size in (0.1, 0.0))
    for ordering in ("color", "natural"):
        M = ILU0(to_device(other), ordering=ordering, coloring="ecl_gc", pivot="shift")
        M.update(to_device(A))  # the pattern stays that of an unsymmetric matrix
        inverse = applied(M, backend)
        error = abs(inverse - inverse.conj().T).max() / abs(inverse).max()
        assert M.symmetric == (error < 1e-7) or 1e-10 < error < 1e-5
        if not M.symmetric:
            with pytest.raises(ValueError, match=r"M is not symmetric, which CG needs; use MulticolorDILU\(A\)"):
                pcg(to_device(A), backend.xp.ones(A.shape[0], A.dtype), M=M)
        A_diagonal = A.copy()
        A_diagonal.data = np.where(A.indices == np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)), A.data, 0)
        M.update(to_device(A_diagonal))
        assert M.symmetric


def with_entries_on_one_side(A, seed: int, size: float) -> sp.csr_matrix:
    """The matrix and some entries, of so many times the largest diagonal entry, in places of their own."""
    n, rng, A = A.shape[0], np.random.default_rng(seed), A.tocoo()
    rows, columns = rng.integers(0, n, (2, n))
    values = size * abs(A.diagonal()).max(initial=0) * rng.uniform(-1, 1, n)
    places = np.r_[A.row, rows], np.r_[A.col, columns]
    return sp.csr_matrix(sp.coo_matrix((np.r_[A.data, values], places), shape=A.shape))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    pattern=patterns(),
    seed=st.integers(0, 99),
    dtype=st.sampled_from([np.float64, np.complex128]),
    size=st.sampled_from([0.0, 1e-17, 1e-12]),
    ordering=st.sampled_from(["color", "natural"]),
)
def test_rounding_is_no_asymmetry(backend, to_device, pattern, seed, dtype, size, ordering):
    """Entries whose transposed ones are not stored, as scikit-fem's `condense` leaves them."""
    A = with_entries_on_one_side(spd(pattern, seed, dtype), seed, size)
    b = backend.xp.ones(A.shape[0], A.dtype)
    M = ILU0(to_device(A), ordering=ordering)
    for scale in (1, 3):
        A = scale * A
        inverse = applied(M, backend)
        assert M.symmetric and abs(inverse - inverse.conj().T).max() <= 1e-7 * abs(inverse).max()
        assert pcg(to_device(A), b, M=M).converged
        np.testing.assert_allclose(applied(M.T, backend), inverse.T, atol=1e-12 * abs(inverse).max())
        M.update(to_device(3 * A))
    changed = sp.csr_matrix((A.shape[0], A.shape[0])) if A.nnz else sp.eye_array(A.shape[0], format="csr")
    if A.shape[0] and A.nnz:
        with pytest.raises(ValueError):
            M.update(to_device(changed.astype(A.dtype)))


def test_levels_are_longest_chains(backend, to_device):
    A = stencil27(6)
    order = np.random.default_rng(1).permutation(216)
    M = ILU0(to_device(spd(A)), ordering=to_device(order))
    levels, adjacency = np.full(216, -1), neighbors(A)
    for v in order:
        levels[v] = 1 + max((levels[u] for u in adjacency[v]), default=-1)
    np.testing.assert_array_equal(backend.to_host(M.coloring.colors), levels)
    np.testing.assert_array_equal(M.levels, np.bincount(levels))
    sizes, counts = M.level_histogram()
    assert (sizes * counts).sum() == 216 and counts.sum() == len(M.levels) == M.n_colors


def test_levels_of_the_example_of_naumov(backend, to_device):
    """Figures 4 and 5 of Naumov, Castonguay and Cohen: three levels, and in the order of two colors two of them."""
    ends = np.array([(1, 4), (1, 5), (2, 6), (3, 7), (4, 8), (4, 9), (5, 9)]).T - 1
    half = sp.coo_array((np.full(7, -1.0), ends), shape=(9, 9))
    A = sp.csr_matrix(half + half.T + 4 * sp.eye_array(9))
    assert ILU0(to_device(A), ordering="natural").levels.tolist() == [3, 4, 2]
    found = color(to_device(A), "greedy")
    order = backend.to_host(found.permutation())
    assert (order + 1).tolist() == [1, 2, 3, 8, 9, 4, 5, 6, 7]
    assert ILU0(to_device(A), coloring=found).levels.tolist() == [5, 4]
    assert ILU0(to_device(sp.csr_matrix(A[order][:, order])), ordering="natural").levels.tolist() == [5, 4]


def test_color_order_has_no_more_levels_than_colors(to_device):
    A = to_device(spd(stencil27(8)))
    coloring = color(A)
    assert len(ILU0(A, coloring=coloring).levels) <= coloring.n_colors
    assert len(ILU0(A, ordering="natural").levels) == 7 + 2 * 7 + 4 * 7 + 1


def test_natural_order_of_a_tridiagonal_matrix_is_exact(backend, to_device):
    A = dominant(sp.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(80, 80)))
    np.testing.assert_allclose(
        applied(ILU0(to_device(A), ordering="natural"), backend) @ A.toarray(), np.eye(80), atol=1e-13
    )


def test_rows_longer_than_those_that_blocks_sort(backend, to_device):
    check(dominant(complete(100)), backend, to_device, "color")
    check(dominant(star(300)), backend, to_device, "natural", np.arange(300))
    check(dominant(star(300)), backend, to_device, to_device(np.arange(300)[::-1].copy()), np.arange(300)[::-1])


def test_without_triangles_nothing_but_the_diagonal_changes(backend, to_device):
    A = spd(grid5(9))
    M = ILU0(to_device(A))
    assert M.is_dilu
    blocks = M.blocks.permuted().toarray()
    perm = backend.to_host(M.blocks.perm)
    np.testing.assert_allclose(backend.to_host(blocks), A.toarray()[np.ix_(perm, perm)], rtol=1e-14)
    assert not ILU0(to_device(spd(stencil27(3)))).is_dilu


def sorted_patterns(M) -> tuple:
    """Row offsets and sorted columns of both triangles."""
    (lower, _), (upper, _) = (M._sorted_pattern(triangle) for triangle in (M.blocks.lower, M.blocks.upper))
    return M.blocks.lower.indptr, lower, M.blocks.upper.indptr, upper


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pattern=patterns())
def test_matches_are_common_columns(backend, to_device, pattern):
    M = ILU0(to_device(dominant(pattern)), coloring="ecl_gc")
    found = backend.xp.zeros(3, np.int32)
    lists = list_matches(M._run, M._pieces, sorted_patterns(M), np.uint8, found, backend.xp)
    firsts, matches = (backend.to_host(array) for array in lists)
    lower_indptr, lower, upper_indptr, upper = (backend.to_host(array) for array in sorted_patterns(M))
    expected, off_diagonal = [], 0
    for i in range(M.shape[0]):
        begin, end = lower_indptr[i : i + 2]
        row = np.r_[lower[begin:end], i, upper[upper_indptr[i] : upper_indptr[i + 1]]]
        assert firsts[i] == len(expected)
        for e in range(end - begin):
            other = upper[upper_indptr[row[e]] : upper_indptr[row[e] + 1]].tolist()
            expected += [other.index(column) if column in other else 255 for column in row[e + 1 :]]
            off_diagonal += len(set(row[e + 1 :]) & set(other) - {i})
    np.testing.assert_array_equal(matches, expected)
    assert bool(found[TRIANGLES]) == (off_diagonal > 0)


def test_matches_of_long_rows_are_not_listed(backend, to_device):
    """Lists have at most MOST_BYTES for an entry of the row, of rows of at most MOST_ENTRIES."""
    found = backend.xp.zeros(3, np.int32)
    M = ILU0(to_device(dominant(complete(MOST_ENTRIES + 1))), ordering="natural")
    firsts, matches = list_matches(M._run, M._pieces, sorted_patterns(M), np.uint8, found, backend.xp)
    assert len(matches) == int(firsts[-1]) == 0
    M = ILU0(to_device(dominant(complete(2 * MOST_BYTES + 9))), ordering="natural")
    for match_type in (np.uint8, np.uint16):
        firsts, _ = list_matches(M._run, M._pieces, sorted_patterns(M), match_type, found, backend.xp)
        n, row = M.shape[0], np.arange(M.shape[0])  # row i has i lower entries
        pairs = row * n - row * (row + 1) // 2
        expected = np.where(pairs * np.dtype(match_type).itemsize <= MOST_BYTES * n, pairs, 0)
        assert 0 < np.count_nonzero(expected) < n - 1
        np.testing.assert_array_equal(np.diff(backend.to_host(firsts)), expected)


@pytest.mark.parametrize("listing", [list_matches, list_nothing])
@pytest.mark.parametrize("ordering", ["color", "natural"])
@pytest.mark.parametrize("pattern", [stencil27(5), complete(100), grid5(9)], ids=["stencil", "complete", "grid"])
def test_factors_do_not_depend_on_what_is_listed(pattern, ordering, listing, backend, to_device):
    A = to_device(dominant(pattern))
    M = ILU0(A, ordering=ordering)
    before, patterns_of_M = applied(M, backend), sorted_patterns(M)
    M._matches = listing(M._run, M._pieces, patterns_of_M, np.uint8, M._flags, backend.xp)
    M._rows = tuple((columns, places) for columns, (_, places) in zip(patterns_of_M[1::2], M._rows, strict=True))
    M.update(A)
    np.testing.assert_allclose(applied(M, backend), before, rtol=1e-13, atol=1e-14)


def test_update_equals_a_new_factorization(backend, to_device):
    A, B = dominant(stencil27(5), 1), dominant(stencil27(5), 2)
    M = ILU0(to_device(A), coloring="ecl_gc")
    applied(M, backend)  # so that a captured application exists
    M.update(to_device(B))
    expected = applied(ILU0(to_device(B), coloring="ecl_gc"), backend)
    np.testing.assert_allclose(applied(M, backend), expected, atol=1e-15)
    with pytest.raises(ValueError, match="another pattern than before"):
        M.update(to_device(dominant(sp.csr_matrix(np.ones((125, 125))))))


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype, backend, to_device):
    A = dominant(stencil27(4), dtype=dtype)
    single, double = ("complex64", "complex128") if A.dtype.kind == "c" else ("float32", "float64")
    M = ILU0(to_device(A), coloring="ecl_gc")
    stored = ILU0(to_device(A), coloring="ecl_gc", dtype=single)
    exact = ILU0(to_device(A.astype(double)), coloring="ecl_gc")
    assert M.dtype == stored.dtype == dtype and stored.nbytes <= M.nbytes
    for rounded in (M, stored):
        np.testing.assert_allclose(applied(rounded, backend), applied(exact, backend), atol=1e-6)


def test_zero_pivot(backend, to_device):
    A = sp.csr_matrix(np.array([[4.0, 2, 0, 0], [2, 1, 0, 1], [0, 0, 3, 0], [0, 1, 0, 5]]))
    with pytest.raises(ValueError, match="pivot of row 1 of A is zero, tiny or not finite; pass pivot='shift'"):
        ILU0(to_device(A), ordering="natural", pivot="raise")
    M = ILU0(to_device(A), ordering="natural", pivot="shift")
    assert isinstance(M.shifted, Shifts)
    np.testing.assert_array_equal(M.shifted.rows, [1])
    np.testing.assert_allclose(M.shifted.amounts, [2.0])
    L, U = factors_in(np.arange(4), M, backend)
    np.testing.assert_allclose((L @ U) - A.toarray(), np.diag([0, 2.0, 0, 0]), atol=1e-15)
    assert len(ILU0(to_device(spd(grid5(4))), pivot="shift").shifted.rows) == 0


def test_pivot_that_is_not_stored(backend, to_device):
    A = sp.csr_matrix(([1.0, 2.0, 3.0, 4.0], ([0, 0, 1, 2], [0, 1, 0, 2])), shape=(3, 3))
    with pytest.raises(ValueError, match="A stores no diagonal entry in row 1"):
        ILU0(to_device(A))
    M = ILU0(to_device(A), ordering="natural", pivot="shift")
    assert len(M.shifted.rows) == 0  # elimination has put -6 there
    np.testing.assert_allclose(applied(M, backend), np.linalg.inv(A.toarray()), atol=1e-15)
    empty = ILU0(to_device(sp.csr_matrix((2, 2))), pivot="shift")
    np.testing.assert_array_equal(applied(empty, backend), np.eye(2))


def test_fewer_iterations_than_gauss_seidel(backend, to_device):
    problem = problems.fenl(10, device=backend.name)
    J = problem.jacobian(problem.exact())
    b = J @ to_device(np.random.default_rng(0).uniform(-1, 1, problem.unknowns))
    M = ILU0(J, ordering="natural")
    sgs, ilu = (pcg(J, b, M=preconditioner, rtol=1e-8) for preconditioner in (MulticolorSGS(J, M.coloring), M))
    assert sgs.converged and ilu.converged
    assert ilu.iterations < sgs.iterations


def rotated_anisotropy(n: int) -> sp.csr_matrix:
    """-div(D grad u) with conductivities 1 and 0.001 along the diagonals of n x n nodes: the stencils of PyAMG's
    `diffusion_stencil_2d`.
    """
    side = sp.eye_array(n, k=1)
    d2, average, across = side + side.T - 2 * sp.eye_array(n), sp.eye_array(n), side - side.T
    mixed = sp.kron(across, across) / 4
    D = 0.5005, 0.4995
    return sp.csr_matrix(-D[0] * (sp.kron(d2, average) + sp.kron(average, d2)) - 2 * D[1] * mixed)


def test_the_default_is_row_order_on_a_cpu_and_colors_on_a_gpu(backend, to_device):
    A = to_device(rotated_anisotropy(60))
    M, by_rows, by_colors = ILU0(A), ILU0(A, ordering="natural"), ILU0(A, ordering="color")
    on_gpu = backend.name == "gpu"
    assert M.ordering == M.T.ordering == ("color" if on_gpu else "natural")
    np.testing.assert_array_equal(M.levels, (by_colors if on_gpu else by_rows).levels)
    assert f"the default on a {backend.name.upper()}" in repr(M)
    assert "default" not in repr(by_rows) and "default" not in repr(by_colors)
    b = A @ backend.xp.ones(A.shape[0])
    rows, colors = (pcg(A, b, M=one, rtol=1e-8).iterations for one in (by_rows, by_colors))
    assert 2 * rows < colors


@pytest.mark.parametrize("coloring", ["greedy", AutoColoring(), np.arange(16)])
def test_a_coloring_that_is_given_means_the_order_of_colors(coloring, backend, to_device):
    A = to_device(spd(grid5(4)))
    M = ILU0(A, coloring=to_device(coloring) if isinstance(coloring, np.ndarray) else coloring)
    assert M.ordering == "color" and ILU0(A, ordering=to_device(np.arange(16))).ordering == "given"
    assert backend.name == "gpu" or "a coloring was given" in repr(M)


def test_levels_can_be_plotted():
    M = ILU0(spd(grid5(5)), ordering="natural")
    ax = M.plot_levels()
    assert M.plot_levels(ax) is ax and ax.get_title() == "9 levels"


@pytest.mark.gpu
def test_numpy_vectors_with_factors_on_the_gpu():
    A = dominant(stencil27(6))
    r = np.random.default_rng(0).uniform(size=216)
    M, here = ILU0(A, coloring="ecl_gc", device="gpu"), ILU0(A, coloring="ecl_gc")
    assert isinstance(M, scipy.sparse.linalg.LinearOperator)
    np.testing.assert_allclose(M @ r, here @ r, rtol=1e-11)
    np.testing.assert_allclose(M.T @ r, here.T @ r, rtol=1e-11)
    M.update(2 * A)
    np.testing.assert_allclose(M @ r, here @ r / 2, rtol=1e-11)


@pytest.mark.gpu
@pytest.mark.parametrize("ordering", ["color", "natural"])
def test_devices_agree(ordering):
    from mcprecond.backends import get_backend

    gpu = get_backend("gpu")
    problem = problems.fenl(24, advection=3.0)
    A = problem.jacobian(problem.initial())
    r = np.random.default_rng(0).uniform(size=A.shape[0])
    there = ILU0(gpu.sparse.csr_matrix(A), ordering=ordering, coloring="ecl_gc")
    here = ILU0(A, ordering=ordering, coloring="ecl_gc")
    np.testing.assert_array_equal(gpu.to_host(there.coloring.colors), here.coloring.colors)
    np.testing.assert_allclose(gpu.to_host(there @ gpu.xp.asarray(r)), here @ r, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"ordering": "random"}, ValueError, "ordering must be one of auto, color, natural, got 'random'"),
        ({"ordering": np.zeros(16, int)}, ValueError, "a permutation of 0..15"),
        ({"pivot": "ignore"}, ValueError, "pivot must be one of positive, raise, shift, got 'ignore'"),
        ({"dtype": np.int32}, TypeError, "dtype must be float32 or float64"),
        ({"coloring": np.zeros(16, int)}, ValueError, "the neighbors 0 and 1 the same color 0"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        ILU0(grid5(4), **arguments)
