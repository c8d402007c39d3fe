"""Diagonals: they tell the columns of a triangle, and everything that goes through the triangles goes by them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import DTYPES, patterns, spd, stencil27
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcprecond import ILU0, ColorBlocks, MulticolorDILU, MulticolorGS, MulticolorSGS, color, pcg, problems
from mcprecond.backends import get_backend
from mcprecond.reordering import color_blocks, diagonals
from mcprecond.reordering.diagonals import columns_by_rows, list_of_diagonals


@st.composite
def sliced_triangles(draw: st.DrawFn):
    """Where slices begin, and two triangles: rows with rising columns, those of neighboring rows alike."""
    n = draw(st.integers(1, 50))
    cuts = sorted(draw(st.sets(st.integers(1, n), max_size=n)) | {0, n})
    cuts = [c for a, b in pairwise(cuts) for c in range(a, b, 32)] + [n]
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    triangles = []
    for _ in range(2):
        shifts, kept = random.integers(0, 400, draw(st.integers(0, 12))), draw(st.floats(0.1, 1))
        rows = [np.unique(i + shifts[random.uniform(size=len(shifts)) < kept]) for i in range(n)]
        indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int32)
        triangles.append((indptr, np.concatenate(rows).astype(np.int32)))
    return np.array(cuts, np.int32), triangles


def by_hand(cuts, indptr, columns):
    """The diagonals of each slice: shift -> rows."""
    result = []
    for first, end in pairwise(cuts):
        found: dict[int, set[int]] = {}
        for i in range(first, end):
            for column in columns[indptr[i] : indptr[i + 1]]:
                found.setdefault(int(column) - (i - first), set()).add(i - first)
        result.append(dict(sorted(found.items())))
    return result


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
    monkeypatch.setattr(diagonals, "USUAL_PLACES", 10**6)
    cuts, triangles = case
    patterns = [(to_device(indptr), to_device(columns)) for indptr, columns in triangles]
    if not sum(len(columns) for _, columns in triangles):
        return
    lists = list_of_diagonals(to_device(cuts), patterns, backend)
    for pairs, (indptr, columns), pattern in zip(lists, triangles, patterns, strict=True):
        assert unpacked(backend.to_host(pairs), len(cuts) - 1) == by_hand(cuts, indptr, columns)
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


@pytest.fixture
def forced(monkeypatch):
    """Diagonals wherever rows are sorted, and slices of so many rows that they have several lanes."""
    monkeypatch.setattr(diagonals, "USUAL_PLACES", 10**6)
    monkeypatch.setattr(color_blocks, "LEAST_ROWS", 1)

    def force(rows: int) -> None:
        monkeypatch.setattr(color_blocks, "rows_per_slice", lambda sizes, *_: np.full(len(sizes), rows, np.int32))

    return force


@pytest.mark.gpu
@pytest.mark.parametrize("rows", [1, 4, 16, 32])
def test_values_go_by_diagonals(forced, rows):
    """The order of a slice: by diagonal and row."""
    forced(rows)
    backend = get_backend("gpu")
    A = spd(stencil27(7))
    blocks = ColorBlocks(backend.sparse.csr_matrix(A), "greedy")
    assert blocks.in_diagonals
    for triangle in (blocks.lower, blocks.upper):
        indptr, cuts = backend.to_host(triangle.indptr), backend.to_host(blocks.slices)
        columns = backend.to_host(blocks.columns_by_rows(triangle))
        keys = []
        for k, (first, end) in enumerate(pairwise(cuts)):
            shifts = list(by_hand([first, end], indptr, columns)[0])
            for i in range(first, end):
                for e in range(indptr[i], indptr[i + 1]):
                    number = shifts.index(columns[e] - (i - first))
                    keys.append((k, number, i - first, e))
        expected = [key[-1] for key in sorted(keys)]
        entries = backend.xp.arange(len(columns), dtype=np.int32)
        stored = blocks.by_slices(triangle, entries)
        np.testing.assert_array_equal(backend.to_host(stored), expected)
        np.testing.assert_array_equal(backend.to_host(blocks.by_rows(triangle, stored)), np.arange(len(columns)))


OPERATORS = {
    "SGS": lambda A, colors, dtype: MulticolorSGS(A, colors, dtype=dtype),
    "GS, two sweeps": lambda A, colors, dtype: MulticolorGS(A, colors, sweep="backward", sweeps=2, dtype=dtype),
    "DILU": lambda A, colors, dtype: MulticolorDILU(A, colors, dtype=dtype),
    "ILU0": lambda A, colors, dtype: ILU0(A, coloring=colors, dtype=dtype),
}


@pytest.mark.gpu
@pytest.mark.parametrize("rows", [1, 2, 8, 32])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("make", OPERATORS.values(), ids=OPERATORS)
def test_operators_go_by_diagonals(forced, make, dtype, rows):
    forced(rows)
    A = spd(stencil27(6), dtype=dtype)
    on_gpu = get_backend("gpu").sparse.csr_matrix(A)
    colors = color(A, "greedy").colors
    M, twin = (make(matrix, colors, dtype) for matrix in (on_gpu, A))
    assert M.blocks.in_diagonals and not twin.blocks.in_diagonals
    R = np.random.default_rng(0).uniform(-1, 1, (216, 4)).astype(dtype)
    xp = get_backend("gpu").xp
    accuracy = 1e2 * np.finfo(dtype).eps
    for right in (R[:, 0].copy(), R):
        expected = twin @ right
        np.testing.assert_allclose((M @ xp.asarray(right)).get(), expected, rtol=0, atol=accuracy * abs(expected).max())
    B = A.copy()
    B.data *= 2
    M.update(get_backend("gpu").sparse.csr_matrix(B))
    expected = twin @ R / 2
    np.testing.assert_allclose((M @ xp.asarray(R)).get(), expected, rtol=0, atol=accuracy * abs(expected).max())


@pytest.mark.gpu
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pattern=patterns(), rows=st.sampled_from([1, 4, 32]))
def test_blocks_of_any_pattern_in_diagonals(forced, pattern, rows):
    forced(rows)
    A = pattern.copy()
    A.data = np.arange(1.0, len(A.data) + 1)
    blocks = ColorBlocks(get_backend("gpu").sparse.csr_matrix(A))
    perm = blocks.perm.get()
    np.testing.assert_array_equal(blocks.permuted().get().toarray(), A.toarray()[np.ix_(perm, perm)])


@pytest.mark.gpu
@pytest.mark.parametrize("form", ["plain", "eisenstat"])
@pytest.mark.parametrize("rows", [1, 4, 32])
def test_pcg_goes_by_diagonals(forced, form, rows):
    A = spd(stencil27(8))
    b = A @ np.random.default_rng(0).uniform(-1, 1, 512)
    colors = color(A, "greedy").colors
    expected = pcg(A, b, M=MulticolorSGS(A, colors), form=form)
    forced(rows)
    backend = get_backend("gpu")
    on_gpu = backend.sparse.csr_matrix(A)
    M = MulticolorSGS(on_gpu, colors)
    assert M.blocks.in_diagonals
    found = pcg(on_gpu, backend.xp.asarray(b), M=M, form=form)
    assert found.iterations == expected.iterations
    np.testing.assert_allclose(found.x.get(), expected.x, rtol=1e-6)


@pytest.mark.gpu
def test_structured_meshes_in_natural_order_have_diagonals():
    """By less memory than the matrix itself has; a random order has none."""
    A = get_backend("gpu").sparse.csr_matrix(spd(problems.graphs.grid2d(512)))
    natural = ColorBlocks(A, color(A, "jp", order="natural"))
    assert natural.in_diagonals
    assert not ColorBlocks(A, color(A, "jpl")).in_diagonals
    columns = sum(triangle.columns.nbytes for triangle in (natural.lower, natural.upper))
    assert columns < 0.5 * A.indices.nbytes
    perm = natural.perm.get()
    expected = A.get()[perm][:, perm]
    expected.sort_indices()
    difference = natural.permuted().get() - sp.csr_matrix(expected)
    assert difference.nnz == 0 or abs(difference).max() == 0
