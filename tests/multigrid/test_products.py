"""Products of sparse matrices in one pass: columns and numbers, with any room for them, again with other numbers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcprecond.multigrid import products
from mcprecond.multigrid.products import Multiplication, Rows

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def random_matrix(rng, rows, columns, per_row, dtype, long_row=0):
    """Some rows may be empty; row 0 has `long_row` entries more."""
    of_rows = rng.integers(0, 2 * per_row + 1, rows)
    i, j = np.repeat(np.arange(rows), of_rows), rng.integers(0, columns, of_rows.sum())
    i, j = np.append(i, np.zeros(long_row, int)), np.append(j, rng.permutation(columns)[:long_row])
    A = sp.csr_matrix((np.ones(len(i)), (i, j)), shape=(rows, columns))
    A.sum_duplicates()
    A.data = new_numbers(rng, A.nnz, dtype)
    return A


def new_numbers(rng, count, dtype):
    numbers = rng.uniform(-1, 1, count)
    return (numbers + 1j * rng.uniform(-1, 1, count) if np.dtype(dtype).kind == "c" else numbers).astype(dtype)


def expand(pattern, numbers, sharing, k, width):
    """The matrix whose entries have k numbers each, in as many columns, as SciPy has it."""
    indptr, columns, begin, lists = *pattern, 0, []
    for v in range(len(indptr) - 1):
        own = columns[indptr[v] : indptr[v + 1]]
        for _ in range(sharing):
            lists.append((own[:, None] * k + np.arange(k)).reshape(-1))
    lengths = [len(own) for own in lists]
    begin = np.append(0, np.cumsum(lengths))
    return sp.csr_matrix((numbers, np.concatenate(lists or [np.empty(0, int)]), begin), shape=(len(lists), width * k))


def check_product(rng, n, nodes, width, per_row, sharing, k, dtype, backend, to_device, long_row=0, offset=np.int32):
    A = random_matrix(rng, n, nodes * sharing, per_row, dtype, long_row)
    pattern = random_matrix(rng, nodes, width, per_row, np.float64, min(long_row, width))
    of_P = pattern.indptr.astype(offset), pattern.indices
    longest = int(np.diff(A.indptr).max(initial=0))
    product = results = None
    for _ in range(2):
        P = new_numbers(rng, pattern.nnz * sharing * k, dtype)
        left = tuple(to_device(array) for array in (A.indptr, A.indices, A.data))
        right = Rows.of(tuple(map(to_device, of_P)), to_device(P))
        expected = A.astype(np.complex128) @ expand(of_P, P, sharing, k, width)
        if product is None:
            product = Multiplication(left, right, sharing, k, width, backend, longest)
            results = product.in_order(1)
            other = Multiplication(left, right, sharing, k, width, backend, longest)
            first = other.take()
            again = other.compute(left, right)
            for begin, end in zip(*map(backend.to_host, first[:2]), strict=True):
                for own, theirs, m in ((first.columns, again.columns, 1), (first.numbers, again.numbers, k)):
                    np.testing.assert_array_equal(*(backend.to_host(x[begin * m : end * m]) for x in (own, theirs)))
        else:
            product.compute_into(left, right, Rows.of(*results), 1)
        found_pattern = tuple(map(backend.to_host, results[0]))
        found = expand(found_pattern, backend.to_host(results[1]), 1, k, width)
        ones = sp.csr_matrix((np.ones(A.nnz), A.indices // sharing, A.indptr), shape=(n, nodes))
        there = (ones @ abs(sp.csr_matrix((np.ones(pattern.nnz), *of_P[::-1]), shape=(nodes, width)))).sorted_indices()
        np.testing.assert_array_equal(found_pattern[0], there.indptr)
        np.testing.assert_array_equal(found_pattern[1], there.indices)
        assert product.entries == there.nnz and product.longest == np.diff(there.indptr).max(initial=0)
        eps = np.finfo(dtype).eps
        np.testing.assert_allclose(found.toarray(), expected.toarray(), rtol=0, atol=40 * eps * (1 + longest))
        A.data = new_numbers(rng, A.nnz, dtype)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(0, 60),
    nodes=st.integers(1, 30),
    width=st.integers(1, 40),
    per_row=st.integers(0, 6),
    sharing=st.sampled_from([1, 3]),
    k=st.sampled_from([1, 2, 6]),
    dtype=st.sampled_from(DTYPES),
    offset=st.sampled_from([np.int32, np.int64]),
)
def test_products(seed, n, nodes, width, per_row, sharing, k, dtype, offset, backend, to_device):
    rng = np.random.default_rng(seed)
    check_product(rng, n, nodes, width, per_row, sharing, k, dtype, backend, to_device, offset=offset)


@pytest.mark.parametrize("k", [1, 6])
@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_products_with_long_rows(k, dtype, backend, to_device):
    """Longer than what a warp has room for."""
    check_product(np.random.default_rng(k), 90, 400, 700, 2, 1, k, dtype, backend, to_device, long_row=300)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("limit", [2**31, 2000])
def test_products_that_have_more_entries_than_expected(k, limit, backend, to_device, monkeypatch):
    """Also more than row offsets of 32 bits have room for."""
    monkeypatch.setattr("mcprecond.backends.kernels.INT32_LIMIT", limit)
    monkeypatch.setattr(products, "GROWTH", 0.1)
    monkeypatch.setattr(products, "LEAST_ROOM", 1)
    check_product(np.random.default_rng(k), 300, 200, 300, 5, 1, k, np.float64, backend, to_device)


def test_products_with_more_entries_than_wanted_are_not_kept(backend, to_device):
    A = random_matrix(np.random.default_rng(0), 50, 50, 4, np.float64)
    left = tuple(map(to_device, (A.indptr, A.indices, A.data)))
    right = Rows.of(tuple(map(to_device, (A.indptr.astype(np.int64), A.indices))), left[2])
    entries = (abs(A) @ abs(A)).nnz
    assert Multiplication(left, right, 1, 1, 50, backend, 50, entries).rows is not None
    refused = Multiplication(left, right, 1, 1, 50, backend, 50, entries - 1)
    assert refused.rows is None and refused.entries == entries
