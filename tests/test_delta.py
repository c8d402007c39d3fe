"""Short columns: lists of two bytes for each entry tell the columns. What goes by them is in test_listed_columns.py."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import slices_of, spd, stencil27
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference.delta import cut, in_slice, largest_shift

from mcprecond import ColorBlocks, color
from mcprecond.backends import get_backend
from mcprecond.storage.layouts import delta
from mcprecond.storage.layouts.delta import (
    FIRST_HEAD,
    HEAD,
    LEAST_SHIFT,
    MOST_SHIFT,
    columns_by_rows,
    list_of_columns,
)


@st.composite
def sliced_triangles(draw: st.DrawFn):
    """Where slices begin, and two triangles: rows with rising columns, some of them near each other."""
    n = draw(st.integers(1, 50))
    cuts = draw(slices_of(n))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    centers, spread = random.integers(0, 2**31 - 4001, draw(st.integers(1, 200))), draw(st.integers(1, 4000))
    triangles = []
    for _ in range(2):
        rows = [random.choice(centers, k) + random.integers(0, spread, k) for k in random.integers(0, 12, n)]
        indptr = np.concatenate([[0], np.cumsum([len(set(row)) for row in rows])]).astype(np.int32)
        triangles.append((indptr, np.concatenate([np.unique(row) for row in rows]).astype(np.int32)))
    return cuts, triangles


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=sliced_triangles())
def test_lists_tell_the_columns(backend, to_device, monkeypatch, case):
    monkeypatch.setattr(delta, "MOST_SHARE", 10**6)
    monkeypatch.setattr(delta, "MOST_CUT", 1)
    cuts, triangles = case
    if not sum(len(columns) for _, columns in triangles):
        return
    patterns = [(to_device(indptr), to_device(columns)) for indptr, columns in triangles]
    slices, lists = list_of_columns(to_device(cuts), patterns, backend)
    cuts = cut(cuts, triangles)
    n_slices = len(cuts) - 1
    assert slices.dtype == np.int32
    np.testing.assert_array_equal(backend.to_host(slices), cuts)
    for numbers, (indptr, columns), pattern in zip(lists, triangles, patterns, strict=True):
        host = backend.to_host(numbers)
        heads = host[FIRST_HEAD : FIRST_HEAD + HEAD * (n_slices + 1)].reshape(-1, HEAD)
        assert host[0] == heads[-1, 0]
        for k in range(n_slices):
            bases = host[heads[k, 0] : heads[k + 1, 0]].tolist()
            assert (heads[k, 1], bases) == largest_shift(in_slice(cuts, indptr, columns, k))
            rows, lengths = cuts[k + 1] - cuts[k], heads[k, 4:].view(np.uint8)
            assert heads[k, 2:4].view(np.int64)[0] == indptr[cuts[k]]
            np.testing.assert_array_equal(lengths[:rows], np.diff(indptr[cuts[k] : cuts[k + 1] + 1]))
            assert not lengths[rows:].any()
        told = columns_by_rows(to_device(cuts), pattern[0], numbers, len(columns), backend)
        np.testing.assert_array_equal(backend.to_host(told), columns)


@pytest.mark.parametrize("shift", range(LEAST_SHIFT, MOST_SHIFT + 1))
def test_as_many_bases_as_there_is_room_for(backend, to_device, monkeypatch, shift):
    """And with one more the next shift, until there is none."""
    monkeypatch.setattr(delta, "MOST_SHARE", 10**6)
    room = 2 ** (16 - shift)
    for count in (room, room + 1):
        columns = (2**MOST_SHIFT * np.arange(count) + 1).astype(np.int32)
        pattern = (to_device(np.array([0, count], np.int32)), to_device(columns))
        empty = (to_device(np.zeros(2, np.int32)), to_device(columns[:0]))
        listed = list_of_columns(to_device(np.array([0, 1], np.int32)), [pattern, empty], backend)
        if count > room and shift == LEAST_SHIFT:
            assert listed is None
        else:
            _, lists = listed
            assert backend.to_host(lists[0])[FIRST_HEAD + 1] == shift - (count > room)
            told = columns_by_rows(to_device(np.array([0, 1], np.int32)), pattern[0], lists[0], count, backend)
            np.testing.assert_array_equal(backend.to_host(told), columns)


def test_only_few_slices_are_cut(backend, to_device):
    """A slice of two rows with too many bases among many that have one: then among few."""
    for others, listed in ((200, True), (20, False)):
        rows = [np.arange(100), *(4096 * np.arange(k, 200, 2) for k in range(2)), *[np.arange(100)] * (2 * others - 1)]
        indptr = to_device(np.arange(0, 100 * len(rows) + 1, 100).astype(np.int32))
        columns = to_device(np.concatenate(rows).astype(np.int32))
        cuts = np.array([0, *range(1, len(rows) + 1, 2)], np.int32)
        found = list_of_columns(to_device(cuts), [(indptr, columns)] * 2, backend)
        assert (found is not None) == listed
        if listed:
            np.testing.assert_array_equal(backend.to_host(found[0]), np.sort([*cuts, 2]))


def test_rows_with_neighbors_near_each_other_pay(backend, to_device):
    """32 rows with ten neighbors in one window, then in random ones."""
    cuts = np.arange(0, 161, 32).astype(np.int32)
    indptr = np.arange(0, 1601, 10).astype(np.int32)
    random = np.random.default_rng(0)
    for largest, pay in ((1000, True), (10**6, False)):
        columns = np.sort([random.choice(largest, 10, replace=False) for _ in range(160)], axis=1)
        pattern = (to_device(indptr), to_device(columns.reshape(-1).astype(np.int32)))
        assert (list_of_columns(to_device(cuts), [pattern, pattern], backend) is not None) == pay


@pytest.mark.gpu
def test_meshes_in_other_orders_have_short_columns(monkeypatch):
    """Where slices have many rows: few bytes more than two for each entry. Random graphs have none."""
    backend = get_backend("gpu")
    A = spd(stencil27(64))
    scattered = np.random.default_rng(0).permutation(A.shape[0])
    mesh, other = (backend.sparse.csr_matrix(matrix) for matrix in (A, A[scattered][:, scattered]))
    colors = [color(matrix, "jpl") for matrix in (mesh, other)]
    monkeypatch.setattr(type(backend), "resident_warps", 64)  # so that these are large
    blocks = ColorBlocks(mesh, colors[0])
    assert blocks.layout.name == "delta"
    columns = sum(triangle.columns.nbytes for triangle in (blocks.lower, blocks.upper))
    assert columns < 0.65 * A.indices.nbytes
    perm = blocks.perm.get()
    expected = A[perm][:, perm]
    expected.sort_indices()
    difference = blocks.permuted().get() - sp.csr_matrix(expected)
    assert difference.nnz == 0 or abs(difference).max() == 0
    assert ColorBlocks(other, colors[1]).layout.name != "delta"
