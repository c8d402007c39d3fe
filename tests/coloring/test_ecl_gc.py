"""ECL-GC: in every order and with every choice of shortcuts it colors as a serial first-fit does."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import NAMED, complete, grid5, neighbors, patterns, stencil27
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference.first_fit import serial_first_fit
from reference.orders import by_degree, largest_first

from mcprecond import color
from mcprecond.backends import get_backend
from mcprecond.backends.hashing import mix
from mcprecond.backends.team import get_threads, set_threads
from mcprecond.coloring import Graph
from mcprecond.coloring.ecl_gc import color_by_priority, visit_low
from mcprecond.coloring.history import new_log
from mcprecond.coloring.priorities import LDF, LDF_NATURAL, ORDERS, ROW_ORDER
from mcprecond.coloring.published import visits

SEED = 5
SEQUENCES = {"ldf": lambda A: by_degree(A, SEED), "ldf_natural": largest_first, "natural": lambda A: range(A.shape[0])}
SHORTCUTS = [{"shortcut1": first, "shortcut2": second} for first in (True, False) for second in (True, False)]


def mixed_degrees(n: int, edges: int) -> sp.csr_matrix:
    """Degrees from 0 to hundreds, numbered at random, so that in row order high and low ones wait for each other."""
    rng = np.random.default_rng(4)
    weights = rng.pareto(1.2, n) + 1
    ends = rng.choice(n, size=(2, edges), p=weights / weights.sum())
    return sp.csr_matrix((np.ones(edges), ends), shape=(n, n))


def hubs() -> sp.csr_matrix:
    """Rows of 40 to 300 entries: cliques of several sizes, joined in a ring, with a grid hanging on each."""
    parts = [sp.block_array([[complete(size), None], [None, grid5(9)]]) for size in (40, 128, 129, 130, 300, 60)]
    A = sp.lil_array(sp.block_diag(parts))
    starts = np.cumsum([0] + [part.shape[0] for part in parts[:-1]])
    for i, j in zip(starts, np.roll(starts, 1), strict=True):
        A[i, j] = A[i + 50, j] = A[i + 1, j + 60] = 1
    return sp.csr_matrix(A)


GRAPHS = {
    **{name: A for name, A in NAMED.items() if A.shape[0]},
    "mixed": mixed_degrees(1500, 15000),
    "sparse": mixed_degrees(1500, 4000),
    "hubs": hubs(),
    "more colors than a palette": complete(1100),
    "low and high degrees": sp.csr_matrix(sp.block_diag([complete(size) for size in (30, 31, 32, 33)])),
    "long chain": sp.csr_matrix(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(3000, 3000))),
    "blocks": sp.csr_matrix(sp.kron(stencil27(5), np.ones((3, 3)))),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", GRAPHS)
def test_equals_serial_first_fit(name, order, backend, to_device):
    expected = serial_first_fit(GRAPHS[name], SEQUENCES[order](GRAPHS[name]))
    for shortcuts in SHORTCUTS:
        for published in (False,) if order == "natural" else (False, True):
            coloring = color(
                to_device(GRAPHS[name]), "ecl_gc", order=order, seed=SEED, published=published, **shortcuts
            )
            np.testing.assert_array_equal(backend.to_host(coloring.colors), expected)
            assert coloring.history[:, 0].sum() == len(expected) and not coloring.history[:, 1].any()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(A=patterns(), order=st.sampled_from(ORDERS), shortcuts=st.sampled_from(SHORTCUTS), published=st.booleans())
def test_equals_serial_first_fit_on_any_pattern(backend, to_device, A, order, shortcuts, published):
    published = published and order != "natural"
    colors = color(to_device(A), "ecl_gc", order=order, seed=SEED, published=published, **shortcuts).colors
    np.testing.assert_array_equal(backend.to_host(colors), serial_first_fit(A, SEQUENCES[order](A)))


@pytest.mark.parametrize("order", ["ldf_natural", "natural"])
def test_orders_are_those_of_jp(order, backend, to_device):
    """Also where there are more vertices than a GPU has threads for at once."""
    for A in (stencil27(30), mixed_degrees(30000, 200000), grid5(400)):
        A = to_device(A)
        expected = color(A, "jp", order=order.removesuffix("_natural"))
        coloring = color(A, "ecl_gc", order=order)
        np.testing.assert_array_equal(backend.to_host(coloring.colors), backend.to_host(expected.colors))


def test_more_vertices_than_threads(backend, to_device):
    """Short rows, largest degree first, where a GPU's warps have more vertices each than shared memory has room for."""
    A = grid5(1800 if backend.name == "gpu" else 600)
    hashes = np.array([mix(v, SEED) for v in range(A.shape[0])], np.int64)
    by_priority = np.lexsort((-hashes, -np.diff(A.indptr)))
    expected = color(A, "greedy", order=by_priority).colors
    np.testing.assert_array_equal(backend.to_host(color(to_device(A), "ecl_gc", seed=SEED).colors), expected)


def rounds_of(A: sp.csr_matrix, *, shortcut1: bool, shortcut2: bool) -> int:
    """In row order, where nobody sees what others do in the same round: those of low priority are visited first."""
    graph = Graph.of(A)
    n = graph.n
    colors, possible, waiting = (np.empty(n, np.int32) for _ in range(3))
    dag = np.empty(graph.indices.size, np.int32)
    worklist, log = np.arange(n, dtype=np.int32)[::-1].copy(), new_log(graph)
    color_by_priority(
        n,
        graph.indptr,
        graph.indices,
        graph.degrees,
        ROW_ORDER,
        0,
        int(shortcut1),
        int(shortcut2),
        graph.max_degree,
        colors,
        possible,
        worklist,
        waiting,
        dag,
        log,
    )
    np.testing.assert_array_equal(colors, serial_first_fit(A, range(A.shape[0])))
    return log[0, 0]


def test_shortcuts_save_rounds(one_thread):
    """The ablation of Table 5, in rounds."""
    for A in (mixed_degrees(2000, 20000), stencil27(12)):
        both, first, second, none = (rounds_of(A, **shortcuts) for shortcuts in SHORTCUTS)
        assert both <= first < none and both < second <= none


def published_rounds(A, backend, to_device, worklist: np.ndarray, *, shortcut1: bool, shortcut2: bool) -> np.ndarray:
    """The history of the published rounds, largest degree first and ties in row order.

    One thread visits the vertices in the order of the worklist.
    """
    graph = Graph.of(to_device(A))
    xp, n, nnz = backend.xp, graph.n, graph.indices.size
    colors, possible, waiting = (xp.empty(n, np.int32) for _ in range(3))
    worklists, log = xp.empty((2, n), np.int32), new_log(graph)
    worklists[0] = xp.asarray(worklist, np.int32)
    backend.kernels(visits.KERNELS, OFFSET=graph.indptr.dtype).color_by_visits(
        n,
        graph.indptr,
        graph.indices,
        graph.degrees,
        LDF_NATURAL,
        0,
        int(shortcut1),
        int(shortcut2),
        colors,
        possible,
        waiting,
        xp.empty(nnz, np.int32),
        xp.empty(nnz // 32 + n + 1, np.uint32),
        worklists,
        xp.zeros(8, np.int32),
        log,
    )
    np.testing.assert_array_equal(backend.to_host(colors), serial_first_fit(A, largest_first(A)))
    log = backend.to_host(log)
    return log[1 : 1 + log[0, 0], 0]


@pytest.fixture
def one_thread():
    threads = get_threads()
    set_threads(1)
    yield
    set_threads(threads)


#: The graph of the paper's Figure 1, its vertices in alphabetic order: the figures' colors and degrees leave no other.
FIGURE_1 = sp.csr_matrix(np.triu(np.ones((7, 7)), 1))
for ends in ("AC", "BF", "DG", "EG", "FG"):
    FIGURE_1["ABCDEFG".index(ends[0]), "ABCDEFG".index(ends[1])] = 0
FIGURE_1.eliminate_zeros()


def test_the_papers_example(backend, to_device, one_thread):
    """Figures 1, 2 and 5: a start and three steps with shortcuts, a start and five steps without.

    Where nobody sees what others do in the same step, vertices of low priority being visited first, it takes as many.
    """
    assert [len(near) for near in neighbors(FIGURE_1)] == [5, 5, 5, 5, 5, 4, 3]
    np.testing.assert_array_equal(serial_first_fit(FIGURE_1, largest_first(FIGURE_1)), [0, 1, 0, 2, 3, 1, 2])
    backwards = np.arange(7)[::-1]
    with_both = published_rounds(FIGURE_1, backend, to_device, backwards, **SHORTCUTS[0])
    without = published_rounds(FIGURE_1, backend, to_device, backwards, **SHORTCUTS[-1])
    if backend.resident_warps:  # threads see more than that
        assert len(with_both) <= 4 and len(without) <= 6
    else:
        assert with_both.tolist() == [1, 1, 3, 2] and without.tolist() == [1, 1, 1, 2, 1, 1]


SETS = [mask for mask in range(1, 32) if mask & (mask - 1)]  # at least two of five colors, which are possible


def after_a_visit(published: bool, own: int, others: tuple[int, ...], shortcut1: bool, shortcut2: bool) -> int:
    """The possible colors of a vertex after a visit, where it waits for neighbors with the possible colors `others`.

    If a single one is left, the vertex has that color.
    """
    v = len(others)
    degrees, possible = np.array([9] * v + [v]), np.array([*others, own], np.int32)
    colors, row, indptr = np.full(v + 1, -1, np.int32), np.arange(v, dtype=np.int32), np.array([0] * (v + 1) + [v])
    if published:
        visits.visit_low(v, indptr, shortcut1, shortcut2, colors, possible, np.full(v + 1, v), row)
    else:
        visit_low(v, indptr, row, degrees, LDF, 0, shortcut1, shortcut2, colors, possible)
    left = int(possible[v])
    assert colors[v] == (left.bit_length() - 1 if left.bit_count() == 1 else -1)
    return left


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("shortcuts", SHORTCUTS)
def test_shortcuts_are_those_of_table_1(published, shortcuts):
    """All sets of possible colors below 5 of a vertex, which waits for one or two neighbors, and of these.

    Two of the 16 intersections are shortcuts in Section 3.1. In the first row C(v) and C(n) have nothing in common: the
    edge goes, and with it the worst color. In the 13th B(v), the best color, and U(v), all colors that neighbors
    consider, have nothing in common: v gets its best color. All other sets stay as they are; so B(v) and C(n) with
    nothing in common, the fifth row, do not suffice.
    """
    for own in (own for own in SETS if own.bit_count() <= 3):
        for others in product(SETS, repeat=own.bit_count() - 1):
            expected, union = own, 0
            for theirs in others:
                if shortcuts["shortcut2"] and not theirs & (expected if published else own):
                    expected ^= 1 << (expected.bit_length() - 1)
                else:
                    union |= theirs
            best = own & -own
            if shortcuts["shortcut1"] and not best & union:
                expected = best
            assert after_a_visit(published, own, others, **shortcuts) == expected


LENGTH, COPIES = 8, 32


def two_chains() -> tuple[sp.csr_matrix, np.ndarray]:
    """Two chains of hubs, one after the other unless the first vertex of the second sees that it need not wait.

    In the order of priority: three hubs that are neighbors, a chain of which each waits for the one before, and the
    second chain. That is joined to the three, which take the colors 0, 1 and 2, and begins with a vertex that
    is joined to the last of the first chain, of which the worst possible color is 1. Leaves make all degrees equal.
    There are as many copies as a warp has threads, and a list of all vertices, those of low priority first.
    """
    hubs, first, second = range(3), range(3, 3 + LENGTH), range(3 + LENGTH, 4 + 2 * LENGTH)
    edges = [
        (0, 1),
        (0, 2),
        (1, 2),
        *((v, v + 1) for v in range(3, second[-1])),
        *((h, v) for h in hubs for v in second),
    ]
    n, degree = second[-1] + 1, 40
    joined = sp.coo_array((np.ones(len(edges)), np.array(edges).T), shape=(n, n))
    leaves = degree - np.bincount(np.ravel(edges), minlength=n)
    assert first and (leaves > 8).all()
    ends = np.repeat(np.arange(n), leaves)
    pairs = np.vstack([np.column_stack([joined.row, joined.col]), np.column_stack([ends, n + np.arange(len(ends))])])
    size = n + len(ends)
    graph = sp.coo_array((np.ones(len(pairs)), pairs.T), shape=(size, size))
    A = sp.csr_matrix(sp.kron(graph, sp.eye_array(COPIES)))  # the copies of a vertex follow each other
    return A, np.arange(A.shape[0])[::-1]


def test_published_shortcut_1_knows_the_worst_color_of_high_degrees(backend, to_device, one_thread):
    """Otherwise the chains take one after the other."""
    A, backwards = two_chains()
    rounds = len(published_rounds(A, backend, to_device, backwards, shortcut1=True, shortcut2=True))
    assert rounds <= 6 + LENGTH
    without = len(published_rounds(A, backend, to_device, backwards, shortcut1=False, shortcut2=True))
    assert backend.resident_warps or without >= 2 * LENGTH


def test_published_shortcuts_save_rounds(one_thread):
    """The ablation of Table 5, in rounds; on a GPU these depend on who comes first."""
    for A in (mixed_degrees(2000, 20000), stencil27(12)):
        adjacency = neighbors(A)
        backwards = sorted(range(A.shape[0]), key=lambda v: (len(adjacency[v]), -v))
        both, first, second, none = (
            len(published_rounds(A, get_backend("cpu"), lambda A: A, backwards, **shortcuts)) for shortcuts in SHORTCUTS
        )
        assert both <= first < none and both <= second <= none


def test_published_row_order_is_refused(to_device):
    with pytest.raises(ValueError, match="published ecl_gc colors the largest degree first, got order='natural'"):
        color(to_device(grid5(3)), "ecl_gc", order="natural", published=True)


def test_unknown_order_is_refused(to_device):
    with pytest.raises(ValueError, match="order of ecl_gc must be one of ldf, ldf_natural, natural, got 'sdl'"):
        color(to_device(grid5(3)), "ecl_gc", order="sdl")
    for order in ([0, 1, 2], np.arange(9), 3):
        with pytest.raises(TypeError, match="order of ecl_gc must be a string, one of ldf"):
            color(to_device(grid5(3)), "ecl_gc", order=order)
