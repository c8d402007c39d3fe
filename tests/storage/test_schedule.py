"""Slices: the order of a slice's entries is the one that the definition says, on both devices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.interleaved import interleaved

from mcprecond.storage import schedule
from mcprecond.storage.layouts.interleaved import KERNELS
from mcprecond.storage.schedule import MOST_ROWS, rows_per_slice


@st.composite
def sliced_rows(draw: st.DrawFn):
    """Row lengths and where slices begin."""
    lengths = draw(st.lists(st.integers(0, 70), min_size=1, max_size=80))
    cuts = [0]
    while cuts[-1] < len(lengths):
        cuts.append(min(cuts[-1] + draw(st.integers(1, MOST_ROWS)), len(lengths)))
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return np.array(cuts, np.int32), indptr


def run_interleave(backend, cuts, indptr, entries, back):
    xp = backend.xp
    cuts, indptr, entries = (xp.asarray(array) for array in (cuts, indptr, entries))
    result = xp.empty_like(entries)
    run = backend.kernels(KERNELS, OFFSET=np.int32, ENTRY=entries.dtype, LANES=32)
    run.interleave(
        len(cuts) - 1, cuts, indptr, indptr, entries, result, back
    )  # without diagonals, columns do not matter
    return backend.to_host(result)


@pytest.mark.parametrize("dtype", [np.int32, np.float64])
def test_order_of_entries(dtype, backend):
    @given(case=sliced_rows())
    def check(case):
        cuts, indptr = case
        entries = np.arange(indptr[-1]).astype(dtype)
        stored = run_interleave(backend, cuts, indptr, entries, 0)
        np.testing.assert_array_equal(stored, interleaved(cuts, indptr))
        np.testing.assert_array_equal(run_interleave(backend, cuts, indptr, stored, 1), entries)

    check()


@given(case=sliced_rows(), rows=st.sampled_from([1, 2, 4, 8, 16, 32]), data=st.data())
def test_slices_stay_inside_colors_and_long_rows_alone(case, rows, data):
    _, indptr = case
    n = len(indptr) - 1
    bounds = sorted(data.draw(st.sets(st.integers(0, n), max_size=4)) | {0, n})
    offsets = np.array(bounds, np.int64)
    begins, nothing = np.empty(n, np.bool_), np.zeros(n + 1, np.int32)
    wanted = np.full(len(offsets) - 1, rows, np.int32)
    schedule.mark_slices(0, n, len(wanted), offsets, wanted, indptr, nothing, begins)
    cuts = np.append(np.flatnonzero(begins), n)
    assert set(bounds) <= set(cuts.tolist())
    assert np.diff(cuts).max() <= rows
    for i in np.flatnonzero(np.diff(indptr) > schedule.LONG * (MOST_ROWS // rows)):
        assert i in cuts and i + 1 in cuts


@given(sizes=st.lists(st.integers(1, 10**7), min_size=1, max_size=30), entries=st.floats(0, 500))
def test_rows_per_slice_are_powers_of_two(sizes, entries):
    rows = rows_per_slice(np.array(sizes), entries, 4224)
    assert set(rows.tolist()) <= {1, 2, 4, 8, 16, 32}
    assert (np.diff(rows[np.argsort(sizes, kind="stable")]) >= 0).all()
    assert (rows_per_slice(np.array(sizes), 2 * entries, 4224) <= rows).all()
