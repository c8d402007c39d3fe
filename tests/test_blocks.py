"""Colorings of blocks: clusters, validity, the dense formulas in the order of the blocks, and iterations."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import DTYPES, grid5, neighbors, patterns, spd, stencil27
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference import ilu
from reference.dilu import dense
from reference.gauss_seidel import dense_inverse
from test_ilu import applied, dominant, factors_in
from test_rest import parts

from mcprecond import (
    COLORINGS,
    ILU0,
    ColorBlocks,
    Coloring,
    MulticolorDILU,
    MulticolorGS,
    MulticolorSGS,
    color,
    pcg,
    problems,
)
from mcprecond.coloring.blocks import grow
from mcprecond.numbering import compact_order
from mcprecond.storage.schedule import BUNDLE, in_bundles

any_fixture = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def in_order_of_blocks(A, coloring, backend) -> np.ndarray:
    """By definition: sorted by color, then by block, then in row order or that of the coloring."""
    colors, blocks = backend.to_host(coloring.colors), backend.to_host(coloring.blocks)
    n = len(colors)
    when = np.arange(n)
    if coloring.order is not None:
        when[backend.to_host(coloring.order)] = np.arange(n)
    return np.lexsort([when, blocks, colors])


def same_dependencies(A, perm: np.ndarray, order: np.ndarray) -> bool:
    """Whether two orders of the rows have the same one of each two neighbors first."""
    C = sp.coo_matrix(A)
    place, other = np.argsort(perm), np.argsort(order)
    return bool(((place[C.row] < place[C.col]) == (other[C.row] < other[C.col])).all())


@any_fixture
@given(pattern=patterns(), most=st.integers(1, 40), method=st.sampled_from(sorted(COLORINGS)))
def test_neighbors_in_different_blocks_differ_in_color(backend, to_device, pattern, most, method):
    A = to_device(pattern)
    coloring = color(A, method, blocks=most)
    colors, blocks = backend.to_host(coloring.colors), backend.to_host(coloring.blocks)
    for v, near in enumerate(neighbors(pattern)):
        assert all(colors[u] != colors[v] or blocks[u] == blocks[v] for u in near)
    assert coloring.is_valid(A)
    sizes = np.bincount(blocks)
    assert sizes.min(initial=1) >= 1 and sizes.max(initial=0) <= most
    np.testing.assert_array_equal(coloring.sizes, np.bincount(colors, minlength=coloring.n_colors))
    firsts = np.unique(blocks, return_index=True)[1]
    assert (np.diff(firsts) > 0).all()  # blocks are numbered by their first rows
    assert coloring.history[:, 0].sum() - coloring.history[:, 1].sum() == len(sizes)
    np.testing.assert_array_equal(
        backend.to_host(coloring.permutation()), in_order_of_blocks(pattern, coloring, backend)
    )


def test_blocks_of_one_row_are_a_coloring_by_rows(backend, to_device):
    A = to_device(stencil27(5))
    np.testing.assert_array_equal(
        backend.to_host(color(A, "greedy", blocks=1).colors), backend.to_host(color(A, "greedy").colors)
    )


def test_clusters_are_connected_and_grown_from_the_first_row_without_one():
    A = grid5(12)
    labels = grow(A.indptr, A.indices, 9, np.arange(144, dtype=np.int32))
    for label in range(labels.max() + 1):
        rows = np.flatnonzero(labels == label)
        assert sp.csgraph.connected_components(A[rows][:, rows])[0] == 1
    assert (labels == 0).sum() == 9


def test_labels_are_taken_as_they_are(backend, to_device):
    A, labels = to_device(grid5(6)), np.arange(36) % 3 * 7
    coloring = color(A, "greedy", blocks=to_device(labels))
    np.testing.assert_array_equal(backend.to_host(coloring.blocks), np.arange(36) % 3)
    assert repr(coloring) == f"<Coloring of 36 vertices in 3 blocks in {coloring.n_colors} colors by greedy>"


def test_validity_knows_blocks(backend, to_device):
    A = to_device(grid5(4))
    colors, blocks = (to_device(array) for array in (np.zeros(16, np.int32), np.zeros(16, np.int32)))
    assert Coloring(colors, np.array([16]), "user", blocks=blocks).is_valid(A)
    assert not Coloring(colors, np.array([16]), "user").is_valid(A)
    two = to_device((np.arange(16) // 8).astype(np.int32))
    assert not Coloring(colors, np.array([16]), "user", blocks=two).is_valid(A)
    assert not Coloring(two, np.array([8, 8]), "user", blocks=blocks).is_valid(A)


BAD = {
    "a size": ({"blocks": 0}, ValueError, "blocks must be"),
    "no number": ({"blocks": 2.5}, TypeError, "blocks must be a number of rows or an array of integers"),
    "too few labels": ({"blocks": [0, 1]}, ValueError, r"blocks must have shape \(16,\) to match A, got \(2,\)"),
    "a negative label": ({"blocks": [0] * 15 + [-1]}, ValueError, "blocks gives row 15 the label -1"),
    "distance two": ({"blocks": 2, "distance": 2}, ValueError, "blocks are colored at distance 1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_blocks_are_refused(name, to_device):
    options, error, said = BAD[name]
    with pytest.raises(error, match=said):
        color(to_device(grid5(4)), "greedy", **options)


def test_a_bad_coloring_of_blocks_is_refused(backend, to_device):
    A, xp = to_device(spd(grid5(4))), backend.xp
    one, halves = xp.zeros(16, np.int32), to_device((np.arange(16) // 8).astype(np.int32))
    with pytest.raises(ValueError, match="coloring gives the neighbors 4 and 8 the same color 0"):
        MulticolorSGS(A, Coloring(one, np.array([16]), "user", blocks=halves))
    with pytest.raises(ValueError, match="blocks of a coloring must be numbered from 0 on"):
        MulticolorSGS(A, Coloring(one, np.array([16]), "user", blocks=2 * halves))
    with pytest.raises(ValueError, match="of one block the colors"):
        MulticolorSGS(A, Coloring(halves, np.array([8, 8]), "user", blocks=one))
    with pytest.raises(ValueError, match=r"order of a coloring must be a permutation of 0\.\.15, got 0 twice"):
        MulticolorSGS(A, Coloring(one, np.array([16]), "user", blocks=one, order=one))
    with pytest.raises(ValueError, match="coloring: blocks must be of 16 vertices, got 3"):
        Coloring(one, np.array([16]), "user", blocks=one[:3])
    with pytest.raises(TypeError, match="coloring: blocks must be a vector of integers"):
        Coloring(one, np.array([16]), "user", blocks=xp.zeros(16))


@any_fixture
@given(pattern=patterns(), most=st.integers(2, 30), reverse=st.booleans())
def test_operators_equal_the_formulas_in_the_order_of_the_blocks(backend, to_device, pattern, most, reverse):
    A = spd(pattern)
    coloring = color(to_device(A), "greedy", blocks=most)
    if reverse:
        backwards = backend.xp.arange(A.shape[0], dtype=np.int32)[::-1]
        coloring = Coloring(coloring.colors, coloring.sizes, "user", blocks=coloring.blocks, order=backwards)
    order = in_order_of_blocks(A, coloring, backend)
    on_device = to_device(A)
    for sweep in ("forward", "backward", "symmetric"):
        M = MulticolorGS(on_device, coloring, sweep=sweep, omega=1.2)
        assert same_dependencies(A, backend.to_host(M.blocks.perm), order)
        np.testing.assert_allclose(applied(M, backend), dense_inverse(A, order, sweep, 1.2), atol=1e-12)
        np.testing.assert_allclose(applied(M.T, backend), applied(M, backend).T, atol=1e-12)
    dilu = np.linalg.inv(dense(A, order))
    np.testing.assert_allclose(applied(MulticolorDILU(on_device, coloring), backend), dilu, atol=1e-12)


@any_fixture
@given(pattern=patterns(), most=st.integers(2, 30))
def test_factors_of_ilu0_are_those_of_the_reference(backend, to_device, pattern, most):
    A = dominant(pattern)
    coloring = color(to_device(A), "greedy", blocks=most)
    order = in_order_of_blocks(A, coloring, backend)
    M = ILU0(to_device(A), coloring=coloring)
    expected = ilu.factors(A, order)
    inverse = np.empty_like(expected[0])
    inverse[np.ix_(order, order)] = np.linalg.inv(expected[0] @ expected[1])
    np.testing.assert_allclose(applied(M, backend), inverse, atol=1e-12)
    np.testing.assert_allclose(applied(M.T, backend), inverse.T, atol=1e-12)
    for ours, theirs in zip(factors_in(order, M, backend), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12 * max(abs(theirs).max(), 1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", [MulticolorSGS, MulticolorDILU, ILU0])
def test_both_forms_of_pcg_agree(kind, dtype, backend, to_device):
    A = spd(grid5(30), dtype=dtype)
    on_device, b = to_device(A), to_device(A @ np.ones(900, dtype))
    M = kind(on_device, coloring=color(on_device, "greedy", blocks=16))
    rtol = 1e-4 if np.dtype(dtype).itemsize in (4, 8) and np.dtype(dtype).name in ("float32", "complex64") else 1e-10
    plain, eisenstat = (pcg(on_device, b, M=M, rtol=rtol, form=form) for form in ("plain", "eisenstat"))
    assert plain.converged and eisenstat.converged and abs(plain.iterations - eisenstat.iterations) <= 1
    np.testing.assert_allclose(backend.to_host(eisenstat.x), 1, atol=30 * rtol)


def test_updates_and_repeats_give_the_same(backend, to_device):
    A, other = (spd(stencil27(7), seed) for seed in range(2))
    r = to_device(np.random.default_rng(0).standard_normal(343))
    coloring = color(to_device(A), "greedy", blocks=20)
    for kind in (MulticolorSGS, MulticolorDILU, ILU0):
        M = kind(to_device(A), coloring=coloring)
        fresh = kind(to_device(other), coloring=coloring)
        M.update(to_device(other))
        np.testing.assert_array_equal(backend.to_host(M @ r), backend.to_host(fresh @ r))


@pytest.mark.parametrize("sweeps", [1, 3])
def test_smoothing_takes_blocks(sweeps, backend, to_device):
    A = spd(grid5(9))
    rng = np.random.default_rng(0)
    x, b = rng.standard_normal((2, 81))
    coloring = color(to_device(A), "greedy", blocks=7)
    order = in_order_of_blocks(A, coloring, backend)
    M = MulticolorGS(to_device(A), coloring, sweep="forward", sweeps=sweeps)
    smoothed = backend.to_host(M.smooth(to_device(x), to_device(b)))
    for _ in range(sweeps):
        for i in order:
            x[i] += (b[i] - A[[i]] @ x)[0] / A[i, i]
    np.testing.assert_allclose(smoothed, x, atol=1e-12)


def test_nodes_and_columns(backend, to_device):
    """Nodes of several unknowns are colored in blocks; several right-hand sides give what one gives."""
    A = problems.elasticity(4)
    on_device = to_device(A)
    of_nodes = sp.bsr_matrix(A, blocksize=(3, 3))
    nodes = sp.csr_matrix((np.ones(len(of_nodes.indices)), of_nodes.indices, of_nodes.indptr))
    coloring = color(to_device(nodes), "greedy", blocks=10)
    M = MulticolorSGS(on_device, coloring, block_size=3)
    inverse = applied(M, backend)
    np.testing.assert_allclose(inverse, inverse.T, atol=1e-12 * abs(inverse).max())
    assert np.linalg.eigvalsh(inverse).min() > 0
    R = np.random.default_rng(0).standard_normal((A.shape[0], 5))
    np.testing.assert_allclose(backend.to_host(M @ to_device(R)), inverse @ R, atol=1e-12 * abs(inverse).max() * 10)


def test_a_rest_beside_blocks(backend, to_device):
    A = spd(stencil27(6))
    on_device = to_device(A)
    coloring = color(on_device, "greedy", blocks=5)
    M = MulticolorSGS(on_device, coloring, max_colors=3)
    assert M.n_colors == 3 < coloring.n_colors
    _, D, _, E = parts(A.toarray(), M, backend)
    order = backend.to_host(M.blocks.perm)
    remaining = A.toarray() - E
    expected = dense_inverse(sp.csr_matrix(remaining), order, "symmetric", 1.0)
    np.testing.assert_allclose(applied(M, backend), expected, atol=1e-12)
    np.testing.assert_allclose(np.diag(D), np.diag(remaining), atol=1e-12)


@given(
    sizes=st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=11), min_size=1, max_size=3),
)
def test_bundles_take_turns(sizes):
    """Each bundle has so many blocks of a color at most, their rows in turns; a block keeps the order of its rows."""
    counts = [size for of_color in sizes for size in of_color]
    blocks = np.repeat(np.arange(len(counts)), counts).astype(np.int32)
    of_block = np.repeat(np.arange(len(sizes)), [len(of_color) for of_color in sizes])
    colors, n = of_block[blocks].astype(np.int32), len(blocks)
    perm, begins = in_bundles(np.arange(n, dtype=np.int32), colors, blocks)
    np.testing.assert_array_equal(np.sort(perm), np.arange(n))
    assert begins[n] == n and (begins[:n] >= np.arange(n)).all()
    starts = np.flatnonzero(begins[:n] == np.arange(n))
    np.testing.assert_array_equal(begins[:n], np.r_[starts, n][np.searchsorted(starts, np.arange(n))])
    for first, end in zip(starts, [*starts[1:], n], strict=True):
        rows = perm[first:end]
        inside = np.unique(blocks[rows])
        assert len(inside) <= BUNDLE and len(np.unique(colors[rows])) == 1
        turns = np.empty(len(rows), int)
        for block in inside:
            mine = rows[blocks[rows] == block]
            assert (np.diff(mine) > 0).all() and len(mine) == counts[block]
            turns[blocks[rows] == block] = np.arange(len(mine))
        assert (np.diff(turns) >= 0).all()


def test_blocks_take_fewer_iterations(backend, to_device):
    """On a grid, a coloring by rows takes 1.4 times the iterations of row order; one in blocks wins most of it back."""
    A = problems.laplacian((80, 80))
    on_device, b = to_device(A), to_device(A @ np.random.default_rng(0).standard_normal(6400))

    def iterations(M) -> int:
        return pcg(on_device, b, M=M, rtol=1e-8).iterations

    by_rows, *by_blocks = (
        iterations(MulticolorSGS(on_device, color(on_device, "greedy", blocks=k))) for k in (1, 8, 64)
    )
    assert max(by_blocks) < 0.85 * by_rows
    of_factors = [iterations(ILU0(on_device, coloring=color(on_device, "greedy", blocks=k))) for k in (1, 64)]
    assert of_factors[1] < 0.75 * of_factors[0]


def test_clusters_follow_a_compact_order_where_the_numbering_is_bad():
    A = sp.csr_matrix(grid5(200))
    shuffle = np.random.default_rng(0).permutation(A.shape[0])
    A = A[shuffle][:, shuffle].sorted_indices()
    coloring = color(A, "greedy", blocks=64)
    np.testing.assert_array_equal(coloring.order, compact_order(A.indptr, A.indices, A.dtype.itemsize, True))
    assert coloring.is_valid(A)
    blocks = ColorBlocks(spd(A), coloring)
    assert same_dependencies(A, blocks.perm, coloring.permutation())
