"""The numbering of rows: bad ones are found, and solves in another one are right."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import grid5, spd, stencil27

from benchmarks.families import random_regular
from mcprecond import ILU0, ColorBlocks, MulticolorDILU, MulticolorGS, MulticolorSGS, color, numbering, pcg, problems
from mcprecond.matrix import admit_matrix
from mcprecond.problems import graphs


def shuffled(A):
    order = np.random.default_rng(3).permutation(A.shape[0])
    return sp.csr_matrix(A[order][:, order]).sorted_indices()


def order_of(A, **options):
    return numbering.compact_order(A.indptr, A.indices, 8, True, **options)


@pytest.fixture
def nothing_is_cached(monkeypatch):
    monkeypatch.setattr(numbering, "CACHED", 0)


@pytest.mark.parametrize(("build", "size"), [(grid5, 60), (stencil27, 14), (graphs.fenl, 14)])
def test_meshes_are_numbered_well_and_shuffled_ones_are_not(build, size, nothing_is_cached):
    A = build(size)
    assert order_of(sp.csr_matrix(A)) is None
    bad = shuffled(A)
    order = order_of(bad)
    np.testing.assert_array_equal(np.sort(order), np.arange(A.shape[0]))
    before, after = (numbering.share_near(bad.indptr, bad.indices, o) for o in (np.arange(A.shape[0]), order))
    assert before < 0.3 < 0.7 < after


def test_all_components_are_in_the_order(nothing_is_cached):
    A = shuffled(sp.block_diag([grid5(30)] * 7 + [sp.eye(5)], format="csr"))
    np.testing.assert_array_equal(np.sort(order_of(A)), np.arange(A.shape[0]))


def test_none_is_better_on_random_graphs_or_needed_where_vectors_are_cached(nothing_is_cached, monkeypatch):
    assert order_of(random_regular(20_000, 8)) is None
    monkeypatch.undo()
    assert order_of(shuffled(grid5(60))) is None


@pytest.mark.parametrize("kind", ["unsymmetric", "unsorted", "empty rows", "float32"])
def test_any_matrix(kind, nothing_is_cached):
    A = shuffled(spd(grid5(40)))
    if kind == "unsymmetric":
        A = sp.csr_matrix(sp.tril(A) + sp.diags_array(np.full(1600, 9.0)))
    elif kind == "unsorted":
        A.indices, A.data = A.indices.copy(), A.data.copy()
        row = slice(*A.indptr[5:7])
        A.indices[row], A.data[row] = A.indices[row][::-1].copy(), A.data[row][::-1].copy()
        A.has_sorted_indices = False
    elif kind == "empty rows":
        A = sp.csr_matrix(sp.diags_array(np.where(np.arange(1600) % 3, 1.0, 0)) @ A + sp.eye(1600))
    else:
        A = A.astype(np.float32)
    order = admit_matrix(A).compact_order
    assert order is None or len(np.unique(order)) == 1600
    M = MulticolorGS(A, sweep="forward")
    r = np.random.default_rng(0).standard_normal(1600).astype(A.dtype)
    P = M.blocks.perm
    expected = np.empty_like(r)
    expected[P] = sp.linalg.spsolve_triangular(sp.tril(A[P][:, P], format="csr").astype(float), r[P].astype(float))
    np.testing.assert_allclose(M @ r, expected, rtol=2e-4 if kind == "float32" else 1e-10)


@pytest.mark.parametrize("kind", [MulticolorSGS, MulticolorDILU, ILU0])
def test_preconditioners_are_the_same_but_for_rounding(kind, monkeypatch):
    A = shuffled(spd(stencil27(14)))
    coloring, r = color(A, "jp"), np.random.default_rng(1).standard_normal(A.shape[0])
    expected = kind(A, coloring=coloring)
    monkeypatch.setattr(numbering, "CACHED", 0)
    M = kind(A, coloring=coloring)
    assert not np.array_equal(M.blocks.perm, expected.blocks.perm)
    np.testing.assert_allclose(M @ r, expected @ r, rtol=1e-12, atol=1e-12)
    M.update(2 * A)
    np.testing.assert_allclose(M @ r, expected @ r / 2, rtol=1e-12, atol=1e-12)


def test_fewer_colors_and_the_same_solution(nothing_is_cached):
    A = shuffled(problems.laplacian((50, 50)))
    b = A @ np.random.default_rng(0).standard_normal(2500)
    M = MulticolorSGS(A)
    assert M.n_colors == 2 < color(A, "greedy").n_colors
    result = pcg(A, b, M=M, rtol=1e-10)
    assert result.converged and np.linalg.norm(b - A @ result.x) <= 1e-10 * np.linalg.norm(b)
    blocks = ColorBlocks(A, "jp")
    assert (np.diff(blocks.coloring.colors[blocks.perm]) >= 0).all()
    assert (abs(blocks.permuted() - A[blocks.perm][:, blocks.perm])).nnz == 0


def test_in_blocks(nothing_is_cached):
    A = problems.elasticity(6).tocsr()
    nodes = np.random.default_rng(0).permutation(A.shape[0] // 3)
    order = (3 * nodes[:, None] + np.arange(3)).ravel()
    A = A[order][:, order].sorted_indices()
    b = A @ np.ones(A.shape[0])
    result = pcg(A, b, M=MulticolorSGS(A, block_size=3), rtol=1e-10)
    assert result.converged and np.linalg.norm(b - A @ result.x) <= 1e-10 * np.linalg.norm(b)
