"""nullspace="detect": connected components whose rows sum to zero, and what a result says of them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import DTYPES, grid5, laplacian, patterns
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcprecond import PCG, MulticolorSGS, SmoothedAggregation, gmres, minres, pcg, solve
from mcprecond.matrix import admit_matrix
from mcprecond.solvers import Reason
from mcprecond.solvers.components import singular_components
from mcprecond.solvers.nullspace import PIECE, MeansProjection


def basin(n=7, fixed=False, seed=0):
    """The Laplacian of a grid with weights; with a fixed value it is definite."""
    A = laplacian(sp.csr_array(grid5(n)), seed)[0].tolil()
    if fixed:
        A[n, n] += 1
    return sp.csr_matrix(A)


def islands(*parts, seed=0):
    """A block for each part, in a random order of rows: "free", "fixed", or "zero" for a row that is zero. Also the
    parts that the rows belong to.
    """
    blocks = [
        sp.csr_matrix((1, 1)) if part == "zero" else basin(fixed=part == "fixed", seed=k)
        for k, part in enumerate(parts)
    ]
    A, numbers = (
        sp.block_diag(blocks, format="csr"),
        np.repeat(np.arange(len(parts)), [len(B.indptr) - 1 for B in blocks]),
    )
    order = np.random.default_rng(seed).permutation(A.shape[0])
    return sp.csr_matrix(A[order][:, order]), numbers[order]


def right_side(n, columns=None, dtype=np.float64):
    rng, shape = np.random.default_rng(3), n if columns is None else (n, columns)
    b = rng.uniform(-1, 1, shape) + 2
    return (b + 1j * rng.uniform(-1, 1, shape) if np.dtype(dtype).kind == "c" else b).astype(dtype)


parts_of_islands = st.lists(st.sampled_from(["free", "fixed", "zero"]), min_size=1, max_size=5)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=parts_of_islands, seed=st.integers(0, 9), dtype=st.sampled_from([np.float64, np.complex128]))
def test_the_solution_is_that_of_least_norm(to_device, backend, parts, seed, dtype):
    A, numbers = islands(*parts, seed=seed)
    A = A.astype(dtype)
    for b in (right_side(A.shape[0], dtype=dtype), right_side(A.shape[0], 3, dtype)):
        result = pcg(to_device(A), to_device(b), rtol=1e-11, nullspace="detect")
        assert result.converged and not result.detail
        expected = np.linalg.lstsq(A.toarray(), b, rcond=1e-10)[0]
        x = backend.to_host(result.x)
        np.testing.assert_allclose(x, expected, atol=1e-7 * max(1, abs(expected).max()))
        assert not x[np.isin(numbers, [k for k, part in enumerate(parts) if part == "zero"])].any()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=parts_of_islands, seed=st.integers(0, 9), pattern=patterns())
def test_components_are_those_of_the_graph(to_device, backend, parts, seed, pattern):
    """Rows of any other pattern, whose rows do not sum to zero, stand beside the islands."""
    A, numbers = islands(*parts, seed=seed)
    other = sp.csr_matrix(abs(pattern + pattern.T) + sp.eye_array(pattern.shape[0]))
    found = singular_components(admit_matrix(to_device(sp.block_diag([A, other], format="csr")), finite=True))
    singular = [k for k, part in enumerate(parts) if part != "fixed"]
    expected = [np.flatnonzero(numbers == k) for k in singular]
    indptr, indices = backend.to_host(found.basis.indptr), backend.to_host(found.basis.indices)
    rows = [indices[i:j] for i, j in pairwise(indptr)]
    assert [list(row) for row in rows] == sorted(map(list, expected))
    data = backend.to_host(found.basis.data)
    np.testing.assert_allclose([sum(data[i:j] ** 2) for i, j in pairwise(indptr)], 1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [1, 3])
def test_means_are_taken_off_sets_of_any_size(to_device, backend, dtype, columns):
    """Also sets of many pieces, and rows of none."""
    n, sizes = 6 * PIECE, [1, 3 * PIECE + 1, PIECE, 2, PIECE - 1]
    order = np.random.default_rng(0).permutation(n)
    sets = np.split(order[: sum(sizes)], np.cumsum(sizes)[:-1])
    indptr, indices = np.append(0, np.cumsum(sizes)), np.concatenate([np.sort(members) for members in sets])
    basis = to_device(sp.csr_matrix((np.ones(len(indices)), indices, indptr), shape=(len(sizes), n)))
    projection = MeansProjection(basis, dtype, backend)
    v = right_side(n, columns, dtype)
    expected = v.astype(np.complex128)
    for members in sets:
        expected[members] -= expected[members].mean(axis=0)
    x = to_device(v if columns > 1 else v[:, 0].copy())
    projection.enqueue(projection.new_state(columns), x, x)
    np.testing.assert_allclose(backend.to_host(x).reshape(n, columns), expected, atol=20 * np.finfo(dtype).eps)


def test_one_component_is_constant(to_device, backend):
    A = basin(20)
    b, M = to_device(right_side(400)), MulticolorSGS(to_device(A), "greedy")
    detected, constant = (pcg(to_device(A), b, M=M, nullspace=nullspace) for nullspace in ("detect", "constant"))
    np.testing.assert_array_equal(backend.to_host(detected.x), backend.to_host(constant.x))


def test_a_regular_matrix_is_solved_as_without_it(to_device, backend):
    """In the same form, and directly where it is small."""
    for A in (islands("fixed", "fixed")[0], grid5(10)):
        b, A = to_device(right_side(A.shape[0])), to_device(A)
        M = MulticolorSGS(A, "greedy")
        plain, detected = (pcg(A, b, M=M, form="eisenstat", nullspace=nullspace) for nullspace in (None, "detect"))
        np.testing.assert_array_equal(backend.to_host(detected.x), backend.to_host(plain.x))
        assert pcg(A, b, M="auto", nullspace="detect").converged
        assert solve(A, b, nullspace="detect").method == solve(A, b).method
    empty = to_device(sp.csr_matrix((0, 0)))
    assert pcg(empty, to_device(np.zeros(0)), nullspace="detect").converged


def test_eisenstats_form_does_not_fit_a_null_space(to_device):
    A, _ = islands("free", "fixed")
    with pytest.raises(ValueError, match="form='eisenstat' does not fit nullspace"):
        pcg(to_device(A), to_device(np.ones(98)), M=MulticolorSGS(to_device(A)), form="eisenstat", nullspace="detect")


@pytest.mark.parametrize("M", [None, "auto", "jacobi", "sgs", "multigrid"])
def test_all_preconditioners_and_methods_take_it(to_device, backend, M):
    A, numbers = islands("free", "fixed", "free")
    b = right_side(len(numbers))
    for solver in (pcg, solve):
        result = solver(to_device(A), to_device(b), M=M, rtol=1e-10, nullspace="detect")
        x = backend.to_host(result.x)
        assert result.converged and result.method == "pcg"
        assert all(abs(x[numbers == k].mean()) <= 1e-12 * abs(x).max() for k in (0, 2))


@pytest.mark.parametrize("parts", [["zero"] * 100_000, ["zero"] * 50_000 + ["free"]])
def test_any_number_of_components(to_device, backend, parts):
    A = sp.block_diag([basin(), sp.csr_matrix((len(parts), len(parts)))], format="csr")
    result = pcg(to_device(A), to_device(right_side(A.shape[0])), rtol=1e-8, nullspace="detect")
    assert result.converged and not backend.to_host(result.x)[49:].any()


def test_an_update_finds_them_again(to_device, backend):
    """A value is fixed in the second island, and then in none."""
    (free, numbers), (one, _) = islands("free", "free"), islands("free", "fixed")
    b = right_side(len(numbers))
    for M in (None, "auto", "sgs"):
        solver = PCG(to_device(free), M, nullspace="detect")
        for A in (free, one, free):
            solver.update(to_device(A))
            result = solver.solve(to_device(b), rtol=1e-10)
            expected = np.linalg.lstsq(A.toarray(), b, rcond=1e-10)[0]
            assert result.converged
            np.testing.assert_allclose(backend.to_host(result.x), expected, atol=1e-6 * abs(expected).max())
    solver = PCG(to_device(islands("fixed", "fixed")[0]), nullspace="detect")
    assert solver.solve(to_device(b)).converged
    solver.update(to_device(free))
    assert solver.solve(to_device(b)).converged


def test_stored_zeros_connect_nothing(to_device):
    A, numbers = islands("free", "free")
    A = A.tocoo()
    i, j = (int(np.flatnonzero(numbers == k)[0]) for k in (0, 1))
    places = np.append(A.row, [i, j]), np.append(A.col, [j, i])
    A = sp.csr_matrix((np.append(A.data, [0.0, 0.0]), places), shape=A.shape)
    assert singular_components(admit_matrix(to_device(A), finite=True)).n_singular == 2
    assert pcg(to_device(A), to_device(right_side(98)), nullspace="detect").converged


@pytest.mark.parametrize(("dtype", "shift"), [(np.float64, 1e-12), (np.float32, 1e-4)])
def test_what_is_more_than_rounding_fixes_a_value(to_device, dtype, shift):
    A = basin(10)
    third = sp.csr_matrix(A / 3).astype(dtype)
    A = sp.csr_matrix(A + shift * sp.eye_array(100)).astype(dtype)
    assert singular_components(admit_matrix(to_device(third), finite=True)).is_constant
    assert singular_components(admit_matrix(to_device(A), finite=True)).n_singular == 0


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (["free"], 'all of its rows sum to zero; pass nullspace="constant" to pcg or solve'),
        (
            ["free", "fixed"],
            "in 1 of the 2 connected components of its graph, that of row {}, all rows sum to zero; pass "
            'nullspace="detect"',
        ),
        (["fixed", "free", "free"], "in 2 of the 3 connected components of its graph, the first that of row {}, all"),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_failure_names_the_null_space(to_device, parts, expected, dtype):
    A, numbers = islands(*parts)
    first = int(np.flatnonzero(np.array(parts)[numbers] == "free")[0])
    b, expected = right_side(len(numbers)).astype(dtype), expected.format(first)
    system = to_device(A.astype(dtype)), to_device(b)
    for result in (pcg(*system), pcg(*system, M="auto"), solve(*system), minres(*system)):
        assert result.reason is Reason.INCONSISTENT and expected in result.detail
    columns = pcg(system[0], to_device(np.stack([b, 0 * b], axis=1)))
    assert columns.reasons == (Reason.INCONSISTENT, Reason.CONVERGED) and expected in columns.detail
    stopped = pcg(*system, maxiter=2)
    assert not stopped.converged and expected in stopped.detail
    assert expected in gmres(*system, maxiter=1, restart=2).detail


def test_constants_alone_are_not_enough_for_two_basins(to_device):
    A, _ = islands("free", "free")
    result = pcg(to_device(A), to_device(right_side(98)), nullspace="constant")
    assert result.reason is Reason.INCONSISTENT and 'nullspace="detect"' in result.detail


def test_nobody_is_asked_for_what_is_not_needed(to_device):
    """b fits, no island is free, the null space is known, or another one is to blame."""
    A, numbers = islands("free", "fixed", "zero", "free")
    b = A @ right_side(len(numbers))
    for result in (pcg(to_device(A), to_device(b)), solve(to_device(A), to_device(b))):
        assert result.converged and not result.detail.startswith("A is singular")
    b, regular = right_side(len(numbers)), islands("fixed", "fixed")[0]
    assert not pcg(to_device(A), to_device(b), nullspace="detect", maxiter=2).detail
    assert not pcg(to_device(regular), to_device(right_side(98)), maxiter=2).detail
    unsymmetric = sp.csr_matrix(sp.diags_array([1.0, -1.0], offsets=[0, 1], shape=(60, 60)))
    assert not pcg(to_device(unsymmetric), to_device(np.ones(60)), maxiter=2).detail


@pytest.mark.parametrize("M", [None, "auto", "jacobi", "sgs", "dilu", "ilu0", "multigrid"])
def test_a_row_that_is_zero_comes_with_its_remedy(to_device, M):
    A = sp.block_diag([grid5(8), sp.csr_matrix((1, 1))], format="csr")
    for solver in (pcg, solve, minres, gmres):
        try:
            message = solver(to_device(A), to_device(np.ones(65)), M=M).detail
        except ValueError as error:
            message = str(error)
        assert "row 64" in message and "drop the row, or put 1 there" in message


def test_smoothed_aggregation_leaves_constants_of_islands_alone(to_device, backend):
    """Levels of several islands are singular, and their coarse inverse may be large along each of the constants."""
    A = sp.block_diag([basin(30, seed=k) for k in range(3)], format="csr")
    result = pcg(
        to_device(A),
        to_device(right_side(2700)),
        M=SmoothedAggregation(to_device(A), max_coarse=20),
        rtol=1e-10,
        nullspace="detect",
    )
    assert result.converged and result.iterations <= 40
