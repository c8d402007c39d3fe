"""Color blocks: a permutation that sorts by color, and storage equal to P A Pᵀ."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import DTYPES, grid5, patterns, spd, stencil27
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcprecond import ColorBlocks
from mcprecond.storage import NodeBlocks
from mcprecond.sweeps.vectors import KERNELS as VECTOR_KERNELS


def dense_in_color_order(A, perm: np.ndarray) -> np.ndarray:
    return A.toarray()[np.ix_(perm, perm)]


def check_blocks(A, blocks, backend) -> None:
    n = A.shape[0]
    perm, inverse = backend.to_host(blocks.perm), backend.to_host(blocks.inverse)
    colors = backend.to_host(blocks.coloring.colors)
    np.testing.assert_array_equal(perm, np.argsort(colors, kind="stable"))
    np.testing.assert_array_equal(perm[inverse], np.arange(n))
    assert list(np.diff(blocks.offsets)) == list(np.bincount(colors))
    permuted = blocks.permuted()
    np.testing.assert_array_equal(
        permuted.toarray() if backend.name == "cpu" else permuted.get().toarray(), dense_in_color_order(A, perm)
    )
    assert permuted.has_sorted_indices


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["eb", "ecl_gc", "jpl", "greedy"])
def test_blocks_are_the_permuted_matrix(method, dtype, backend, to_device):
    A = spd(stencil27(6), dtype=dtype)
    check_blocks(A, ColorBlocks(to_device(A), method), backend)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pattern=patterns())
def test_blocks_of_any_pattern(backend, to_device, pattern):
    A = pattern.copy()
    A.data = np.arange(1.0, len(A.data) + 1)
    check_blocks(A, ColorBlocks(to_device(A)), backend)


def test_triangles_are_strict_blocks(backend, to_device):
    blocks = ColorBlocks(to_device(spd(stencil27(5))), "ecl_gc")
    color_of = np.repeat(np.arange(blocks.n_colors), np.diff(blocks.offsets))
    for triangle, sign in ((blocks.lower, 1), (blocks.upper, -1)):
        indptr, indices = backend.to_host(triangle.indptr), backend.to_host(blocks.columns_by_rows(triangle))
        rows = np.repeat(np.arange(125), np.diff(indptr))
        assert (sign * (color_of[rows] - color_of[indices]) > 0).all()


def test_update_takes_new_values(backend, to_device):
    A = spd(stencil27(5), seed=1)
    B = A.copy()
    B.data = np.random.default_rng(2).uniform(1, 2, B.nnz)
    blocks = ColorBlocks(to_device(A), "jpl")
    blocks.update(to_device(B))
    check_blocks(B, blocks, backend)


@pytest.mark.parametrize("dtype", DTYPES)
def test_upper_rows_divided_by_pivots(backend, to_device, dtype):
    """At once and at each update, or afterwards, or never; `permuted` makes up for it."""
    A, B = (spd(stencil27(5), seed, dtype) for seed in range(2))
    accuracy = 8 * np.finfo(dtype).eps
    plain = ColorBlocks(to_device(A), "greedy")
    divided = ColorBlocks(to_device(A), plain.coloring, divides=True)
    afterwards = ColorBlocks(to_device(A), plain.coloring)
    assert plain.pivots is None
    for matrix in (A, B):
        for blocks in (plain, divided, afterwards):
            blocks.update(to_device(matrix))
        afterwards.divide_upper(afterwards.diagonal)
        indptr, diagonal, upper = (
            backend.to_host(array)
            for array in (plain.upper.indptr, plain.diagonal, plain.by_rows(plain.upper, plain.upper.values))
        )
        expected = upper / np.repeat(diagonal, np.diff(indptr))
        for blocks in (divided, afterwards):
            found = backend.to_host(blocks.by_rows(blocks.upper, blocks.upper.values))
            np.testing.assert_allclose(found, expected, rtol=accuracy)
            np.testing.assert_array_equal(*(backend.to_host(b.lower.values) for b in (blocks, plain)))
            np.testing.assert_array_equal(*(backend.to_host(b) for b in (blocks.pivots, plain.diagonal)))
            permuted = [backend.to_host(b.permuted().toarray()) for b in (blocks, plain)]
            np.testing.assert_allclose(*permuted, rtol=accuracy)


@pytest.mark.parametrize("dtype", DTYPES)
def test_blocks_hold_their_matrix_to_the_last_bit(to_device, dtype):
    A = spd(grid5(6), dtype=dtype)
    blocks = ColorBlocks(to_device(A), "greedy")
    assert blocks.compared_with(to_device(A.copy()))()
    parts = A.data.view(np.finfo(dtype).dtype)
    for part in (0, len(parts) - 1):
        kept = parts[part]
        parts[part] = np.nextafter(kept, np.inf)
        assert not blocks.compared_with(to_device(A))()
        parts[part] = kept


def test_update_refuses_another_matrix(to_device, backend):
    A = spd(grid5(6))
    blocks = ColorBlocks(to_device(A), "greedy")
    other = A.tolil()
    other[3, 30] = other[30, 3] = 1.0
    with pytest.raises(ValueError, match="another pattern than before in row 3"):
        blocks.update(to_device(other.tocsr()))
    smaller = A.tolil()
    smaller[8, 9] = 0
    with pytest.raises(ValueError, match="another pattern than before in row 8"):
        blocks.update(to_device(smaller.tocsr()))
    with pytest.raises(ValueError, match="float64"):
        blocks.update(to_device(A.astype(np.float32)))
    with pytest.raises(ValueError, match="shape"):
        blocks.update(to_device(spd(grid5(5))))
    check_blocks(A, blocks, backend)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pattern=patterns(), toggled=st.lists(st.integers(0, 10**6), min_size=1, max_size=3, unique=True))
def test_update_names_the_first_row_of_another_pattern(to_device, pattern, toggled):
    n = pattern.shape[0]
    blocks = ColorBlocks(to_device(pattern), "greedy")
    places = {place % n**2 for place in toggled}
    other = pattern.toarray() != 0
    for place in places:
        other[divmod(place, n)] ^= True
    with pytest.raises(ValueError, match=f"another pattern than before in row {min(places) // n}; build a new object"):
        blocks.update(to_device(sp.csr_matrix(other.astype(pattern.dtype))))


def test_repeated_entries_add_up(backend, to_device):
    A = sp.csr_matrix((np.array([1.0, 2.0, 3.0, 4.0, 5.0]), [0, 0, 1, 1, 0], [0, 3, 5]), shape=(2, 2))
    check_blocks(A, ColorBlocks(to_device(A)), backend)


@pytest.mark.parametrize("make", [ColorBlocks, partial(NodeBlocks, block_size=2)])
def test_repeated_entries_must_not_overflow(make, to_device):
    good = sp.csr_matrix(np.array([[1.0, 2.0], [3.0, 4.0]]))
    bad = sp.csr_matrix((np.array([1.0, 2.0, 1e308, 4.0, 1e308]), [0, 1, 0, 1, 0], [0, 2, 5]), shape=(2, 2))
    blocks = make(to_device(good))
    for refuse in (make, blocks.update, lambda A: blocks.compared_with(A)()):
        with pytest.raises(ValueError, match="A holds inf in row 1, column 0; every value must be finite"):
            refuse(to_device(bad))
    assert blocks.compared_with(to_device(good))()
    assert float(blocks.permuted().sum()) == 10


def test_memory_is_that_of_the_matrix(to_device):
    A = spd(stencil27(12))
    matrix = A.data.nbytes + A.indices.nbytes + A.indptr.nbytes
    vectors = 3 * 8 * A.shape[0]
    assert ColorBlocks(to_device(A)).nbytes <= 1.1 * matrix + vectors


def test_the_blocks_keep_nothing_of_the_matrix():
    A = spd(grid5(5))
    blocks = ColorBlocks(A)
    expected = blocks.permuted().toarray()
    A.data[:] = 7
    np.testing.assert_array_equal(blocks.permuted().toarray(), expected)


def test_vectors_there_and_back(backend):
    xp = backend.xp
    run = backend.kernels(VECTOR_KERNELS, VALUE=np.dtype(np.float64))
    perm = xp.asarray(np.random.default_rng(0).permutation(1000).astype(np.int32))
    inverse = xp.argsort(perm).astype(np.int32)
    x = xp.arange(1000.0)[:, None]
    ordered, back = xp.empty((1000, 1)), xp.empty((1000, 1))
    run.to_color_order(1000, inverse, 1, x, ordered)
    assert (ordered == x[perm]).all()
    run.to_row_order(1000, inverse, ordered, 1, back)
    assert (back == x).all()


@pytest.mark.parametrize(("b", "columns"), [(2, 1), (3, 2)])
def test_vectors_of_nodes_there_and_back(b, columns, backend):
    xp, n = backend.xp, 50
    run = backend.kernels(VECTOR_KERNELS, VALUE=np.dtype(np.float64), RHS=columns, BLOCK_SIZE=b)
    perm = xp.asarray(np.random.default_rng(0).permutation(n).astype(np.int32))
    inverse = xp.argsort(perm).astype(np.int32)
    x = xp.arange(1.0 * n * b * columns).reshape(n, b, columns)
    ordered, back = xp.zeros_like(x), xp.zeros_like(x)
    run.to_color_order(n, inverse, columns, x, ordered)
    assert (ordered == x[perm]).all()
    run.to_row_order(n, inverse, ordered, columns, back)
    assert (back == x).all()


def test_blocks_of_nothing(to_device):
    blocks = ColorBlocks(to_device(sp.csr_matrix((0, 0))))
    assert blocks.shape == blocks.permuted().shape == (0, 0) and blocks.n_colors == 0


def test_memory_is_that_of_all_arrays_of_a_triangle(to_device):
    blocks = ColorBlocks(to_device(spd(stencil27(5))))
    for triangle in (blocks.lower, blocks.upper):
        arrays = (triangle.indptr, triangle.columns, triangle.values, triangle.source)
        assert all(array.nbytes > 0 for array in arrays)
        assert triangle.nbytes == sum(array.nbytes for array in arrays)


@pytest.mark.parametrize("limit", [np.finfo(np.float32).tiny, np.finfo(np.float32).max])
def test_the_limits_of_single_precision_are_taken_and_beyond_is_not(limit, to_device):
    """A magnitude that float32 can just hold is taken by an update, and the next one beyond is refused."""
    A = sp.csr_matrix(np.array([[4.0, 1.0], [1.0, 4.0]]))
    blocks = ColorBlocks(to_device(A), [0, 1], dtype=np.float32)
    A.data[:] = float(limit)
    blocks.update(to_device(A))
    A.data[:] = float(limit) * (0.5 if limit < 1 else 2)
    with pytest.raises(ValueError, match="has no room for"):
        blocks.update(to_device(A))
