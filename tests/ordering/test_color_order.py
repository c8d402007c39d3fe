"""The order of the colors: the same classes, fewer neighbors behind strongly coupled ones, fewer iterations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import NAMED, complete, grid5, patterns, spd, stencil27
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcprecond import ILU0, ColorBlocks, MulticolorDILU, MulticolorSGS, color, pcg, problems
from mcprecond.coloring import Coloring
from mcprecond.matrix import admit_matrix
from mcprecond.ordering import in_best_order
from mcprecond.ordering.color_order import (
    LARGE,
    MOST_COLORS,
    SAMPLED,
    WAITING,
    best_order,
    couplings_of,
    remainder_of_order,
    waiting,
    with_large_last,
)

METHODS = ("greedy", "ecl_gc", "jpl")


def table_of(A, colors):
    """Entries from color to color, the slow way."""
    coo = sp.coo_matrix(A)
    table = np.zeros((colors.max() + 1,) * 2, np.int64)
    off = coo.row != coo.col
    np.add.at(table, (colors[coo.row[off]], colors[coo.col[off]]), 1)
    return table


def remainder(order, table):
    """What the order of a table's colors leaves: later neighbors squared over all neighbors."""
    ordered = table[np.ix_(order, order)]
    return float((np.triu(ordered, 1).sum(axis=1) ** 2 / np.maximum(ordered.sum(axis=1), 1)).sum())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(A=patterns(), method=st.sampled_from(METHODS))
def test_the_classes_stay(to_device, backend, A, method):
    given_order = color(to_device(A), method)
    ordered = in_best_order(to_device(A), given_order)
    assert (ordered.n_colors, ordered.method) == (given_order.n_colors, method)
    assert ordered.history is given_order.history
    old, new = (backend.to_host(coloring.colors) for coloring in (given_order, ordered))
    assert len({*zip(old.tolist(), new.tolist(), strict=True)}) == given_order.n_colors
    np.testing.assert_array_equal(np.bincount(new, minlength=ordered.n_colors), ordered.sizes)
    assert ordered.is_valid(to_device(A))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(A=patterns(), method=st.sampled_from(METHODS))
def test_entries_are_counted_from_color_to_color(to_device, backend, A, method):
    A = A.tocsr()
    A.sum_duplicates()
    coloring = color(to_device(A), method)
    if 0 < coloring.n_colors <= MOST_COLORS:
        counted = couplings_of(admit_matrix(to_device(A)), coloring)
        np.testing.assert_array_equal(counted, table_of(A, backend.to_host(coloring.colors)))


def test_many_rows_are_sampled_the_same_on_both_devices(to_device, backend):
    A = stencil27(24)
    assert A.shape[0] > SAMPLED
    coloring = color(A, "greedy")
    counted = couplings_of(admit_matrix(A), coloring)
    on_device = Coloring(backend.xp.asarray(coloring.colors), coloring.sizes, "greedy")
    np.testing.assert_array_equal(couplings_of(admit_matrix(to_device(A)), on_device), counted)
    exact = table_of(A, coloring.colors)
    np.testing.assert_allclose(counted / counted.sum(), exact / exact.sum(), atol=0.002)
    order, share = best_order(counted)
    assert share == pytest.approx(remainder(order, exact) / remainder(range(8), exact), rel=0.03)


@given(seed=st.integers(0, 10**6), n_colors=st.integers(3, 6))
def test_the_search_finds_the_best_of_all_orders_or_nearly(seed, n_colors):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 100, (n_colors, n_colors))
    table += table.T
    np.fill_diagonal(table, 0)
    order, share = best_order(table)
    assert sorted(order) == list(range(n_colors))
    own = remainder(range(n_colors), table)
    assert remainder(order, table) == pytest.approx(share * own)
    edges, edges_of = table.astype(float), np.maximum(table.sum(axis=1), 1.0)
    assert remainder_of_order(order, edges, edges_of) == pytest.approx(remainder(order, table))

    def cost(order):
        return remainder(order, table) / own + 2 * WAITING * waiting(np.array(order), edges) / edges.sum()

    assert cost(order) <= 1.01 * min(map(cost, itertools.permutations(range(n_colors))))


def test_colors_that_follow_each_other_wait():
    """On a path of three colors all edges lead to the color just before, unless the middle one is at an end."""
    edges = np.array([[0.0, 6.0, 0.0], [6.0, 0.0, 6.0], [0.0, 6.0, 0.0]])
    assert waiting(np.array([0, 1, 2]), edges) == 12
    assert waiting(np.array([0, 2, 1]), edges) == 6


@given(sizes=st.lists(st.integers(1, 1000), min_size=3, max_size=12), seed=st.integers(0, 100))
def test_the_last_color_is_large(sizes, seed):
    """One color moves at most, and not the first one."""
    rows, order = np.array(sizes), np.random.default_rng(seed).permutation(len(sizes))
    moved = with_large_last(order, rows)
    assert moved[0] == order[0]
    assert rows[moved[-1]] >= LARGE * rows[moved[1:]].max()
    if rows[order[-1]] >= LARGE * rows[order[1:]].max():
        np.testing.assert_array_equal(moved, order)
    else:
        assert rows[moved[-1]] == rows[order[1:]].max()
        np.testing.assert_array_equal(moved[:-1], order[order != moved[-1]])


@pytest.mark.parametrize("method", ["eb", "ecl_gc", "jpl"])
def test_colorings_with_small_last_colors_end_with_a_large_one(method, to_device):
    A = to_device(stencil27(12))
    coloring = color(A, method)
    assert coloring.sizes[-1] < LARGE * coloring.sizes[1:].max()
    ordered = in_best_order(A, coloring)
    assert ordered.is_valid(A)
    for sizes in (ordered.sizes, np.diff(ColorBlocks(A, method).offsets)):
        assert sizes[-1] >= LARGE * sizes[1:].max()


def test_tables_without_entries():
    order, share = best_order(np.zeros((5, 5), np.int64))
    assert sorted(order) == list(range(5)) and share == 0


def test_the_order_found_stays():
    A = stencil27(9)
    ordered = in_best_order(A, color(A, "greedy"))
    assert in_best_order(A, ordered) is ordered


@pytest.mark.parametrize("A", [grid5(12), complete(MOST_COLORS + 1), NAMED["isolated"]], ids=["two", "many", "one"])
def test_where_the_order_does_not_matter_it_stays(A, to_device):
    coloring = color(to_device(A), "greedy")
    assert in_best_order(to_device(A), coloring) is coloring


@pytest.mark.parametrize("block_size", [1, 3])
def test_fewer_iterations_on_elasticity(block_size, to_device, backend):
    A = problems.elasticity(16)
    b = to_device(A @ np.random.default_rng(0).uniform(-1, 1, A.shape[0]))
    chosen = MulticolorSGS(to_device(A), "greedy", block_size=block_size)
    colors = backend.to_host(chosen.coloring.colors)
    x, y, z = np.unravel_index(np.arange(len(colors)) // (3 // block_size), (16, 16, 16))
    given_numbers = (4 * (x % 2) + 2 * (y % 2) + z % 2) * (3 // block_size) + np.arange(len(colors)) % (3 // block_size)
    assert len({*zip(colors.tolist(), given_numbers.tolist(), strict=True)}) == chosen.n_colors
    in_rows = MulticolorSGS(to_device(A), given_numbers, block_size=block_size)
    few, many = (pcg(to_device(A), b, M=M, rtol=1e-8).iterations for M in (chosen, in_rows))
    assert few <= 0.9 * many


@pytest.mark.parametrize(
    "build",
    [MulticolorSGS, MulticolorDILU, lambda A, coloring: ILU0(A, coloring=coloring)],
    ids=["sgs", "dilu", "ilu"],
)
def test_fewer_iterations_on_fenl(build, to_device):
    problem = problems.fenl(30)
    A = problem.jacobian(problem.exact())
    b = to_device(A @ np.random.default_rng(0).uniform(-1, 1, A.shape[0]))
    A = to_device(A)
    few, many = (pcg(A, b, M=build(A, c), rtol=1e-8).iterations for c in ("greedy", color(A, "greedy")))
    assert few <= 0.95 * many


def test_names_are_ordered_and_colorings_stay_as_they_are(to_device, backend):
    A = to_device(spd(stencil27(6)))
    coloring = color(A, "greedy")
    ordered = backend.to_host(in_best_order(A, coloring).colors)
    assert not np.array_equal(ordered, backend.to_host(coloring.colors))
    for blocks in (ColorBlocks(A, "greedy"), MulticolorDILU(A, "greedy").blocks):
        np.testing.assert_array_equal(backend.to_host(blocks.coloring.colors), ordered)
    for numbered in (coloring, coloring.colors):
        kept = ColorBlocks(A, numbered).coloring.colors
        np.testing.assert_array_equal(backend.to_host(kept), backend.to_host(coloring.colors))


def test_bad_colorings_are_refused():
    A = stencil27(4)
    with pytest.raises(ValueError, match="coloring must be of 64 vertices to match A, got 27"):
        in_best_order(A, color(stencil27(3), "greedy"))
    with pytest.raises(TypeError, match="A must be a sparse matrix"):
        in_best_order(np.eye(3), color(A, "greedy"))


@pytest.mark.gpu
def test_colorings_of_the_other_device_are_refused():
    import cupyx.scipy.sparse

    A = stencil27(4)
    on_gpu = cupyx.scipy.sparse.csr_matrix(A)
    with pytest.raises(TypeError, match="coloring must be on the gpu like A"):
        in_best_order(on_gpu, color(A, "greedy"))
    with pytest.raises(TypeError, match="coloring must be on the cpu like A"):
        in_best_order(A, color(on_gpu, "greedy"))
