"""Diagonals: they tell the columns of a triangle. What goes by them is in test_listed_columns.py."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import slices_of, spd, stencil27
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference.dia import diagonals

from mcprecond import ILU0, ColorBlocks, color, problems
from mcprecond.backends import get_backend
from mcprecond.storage.layouts import dia
from mcprecond.storage.layouts.dia import columns_by_rows, list_of_diagonals
from mcprecond.storage.layouts.interleaved import interleave_entries


@st.composite
def sliced_triangles(draw: st.DrawFn):
    """Where slices begin, and two triangles: rows with rising columns, those of neighboring rows alike."""
    n = draw(st.integers(1, 50))
    cuts = draw(slices_of(n))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    triangles = []
    for _ in range(2):
        shifts, kept = random.integers(0, 400, draw(st.integers(0, 12))), draw(st.floats(0.1, 1))
        rows = [np.unique(i + shifts[random.uniform(size=len(shifts)) < kept]) for i in range(n)]
        indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int32)
        triangles.append((indptr, np.concatenate(rows).astype(np.int32)))
    return cuts, triangles


def unpacked(pairs, n_slices):
    """The same from a list."""
    begins = pairs.reshape(-1)[1 : 4 * (n_slices + 1) : 4]
    return [
        {int(shift): {r for r in range(32) if int(rows) >> r & 1} for shift, rows in pairs[first:end] if rows}
        for first, end in pairwise(begins)
    ]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=sliced_triangles())
def test_lists_tell_the_columns(backend, to_device, monkeypatch, case):
    monkeypatch.setattr(dia, "USUAL_PLACES", 10**6)
    cuts, triangles = case
    patterns = [(to_device(indptr), to_device(columns)) for indptr, columns in triangles]
    if not sum(len(columns) for _, columns in triangles):
        return
    lists = list_of_diagonals(to_device(cuts), patterns, backend)
    for pairs, (indptr, columns), pattern in zip(lists, triangles, patterns, strict=True):
        assert unpacked(backend.to_host(pairs), len(cuts) - 1) == diagonals(cuts, indptr, columns)
        told = columns_by_rows(to_device(cuts), pattern[0], pairs, len(columns), backend)
        np.testing.assert_array_equal(backend.to_host(told), columns)


def test_rows_that_agree_pay(backend, to_device):
    """32 rows with the same three neighbors each, then random ones."""
    cuts = np.arange(0, 161, 32).astype(np.int32)
    indptr = np.arange(0, 3 * 160 + 1, 3).astype(np.int32)
    alike = (np.arange(160)[:, None] + [200, 300, 400]).reshape(-1).astype(np.int32)
    other = np.sort(np.random.default_rng(0).choice(10**6, (160, 3)), axis=1).reshape(-1).astype(np.int32)
    for columns, pay in ((alike, True), (other, False)):
        pattern = (to_device(indptr), to_device(columns))
        lists = list_of_diagonals(to_device(cuts), [pattern, pattern], backend)
        assert (lists is not None) == pay
    pairs, _ = list_of_diagonals(to_device(cuts), [(to_device(indptr), to_device(alike))] * 2, backend)
    assert pairs.shape == (2 * 6 + 5 * 3, 2)


@pytest.mark.gpu
@pytest.mark.parametrize("rows", [1, 4, 16, 32])
def test_values_go_by_diagonals(listed_columns, rows):
    """The order of a slice: by diagonal and row."""
    listed_columns(rows)
    backend = get_backend("gpu")
    A = spd(stencil27(7))
    blocks = ColorBlocks(backend.sparse.csr_matrix(A), "greedy")
    assert blocks.layout.name == "dia"
    for triangle in (blocks.lower, blocks.upper):
        indptr, cuts = backend.to_host(triangle.indptr), backend.to_host(blocks.slices)
        columns = backend.to_host(blocks.columns_by_rows(triangle))
        keys = []
        for k, (first, end) in enumerate(pairwise(cuts)):
            shifts = list(diagonals([first, end], indptr, columns)[0])
            for i in range(first, end):
                for e in range(indptr[i], indptr[i + 1]):
                    number = shifts.index(columns[e] - (i - first))
                    keys.append((k, number, i - first, e))
        expected = [key[-1] for key in sorted(keys)]
        entries = backend.xp.arange(len(columns), dtype=np.int32)
        parts = (blocks.slices, triangle.indptr, triangle.columns)
        stored = interleave_entries(*parts, entries, backend.xp.empty_like(entries), backend, back=False, SLICED_DIA=1)
        np.testing.assert_array_equal(backend.to_host(stored), expected)
        np.testing.assert_array_equal(backend.to_host(blocks.by_rows(triangle, stored)), np.arange(len(columns)))


@pytest.mark.gpu
def test_thin_levels_have_a_column_for_each_entry():
    """Though their slices have many rows, as those of a color have, and these lie on few diagonals."""
    A = get_backend("gpu").sparse.csr_matrix(spd(problems.graphs.grid2d(300)))
    blocks = ILU0(A, ordering="natural").blocks
    assert blocks.shape[0] > 14 * (len(blocks.slices) - 1)
    assert blocks.layout.name == "csr"


@pytest.mark.gpu
def test_structured_meshes_in_natural_order_have_diagonals():
    """By less memory than the matrix itself has; a random order has none."""
    A = get_backend("gpu").sparse.csr_matrix(spd(problems.graphs.grid2d(512)))
    natural = ColorBlocks(A, color(A, "jp", order="natural"))
    assert natural.layout.name == "dia"
    assert ColorBlocks(A, color(A, "jpl")).layout.name != "dia"
    columns = sum(triangle.columns.nbytes for triangle in (natural.lower, natural.upper))
    assert columns < 0.5 * A.indices.nbytes
    perm = natural.perm.get()
    expected = A.get()[perm][:, perm]
    expected.sort_indices()
    difference = natural.permuted().get() - sp.csr_matrix(expected)
    assert difference.nnz == 0 or abs(difference).max() == 0
