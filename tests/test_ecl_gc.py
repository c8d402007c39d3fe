"""ECL-GC: in every order and with every choice of shortcuts it colors as a serial first-fit does."""

from __future__ import annotations

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from graphs import NAMED, complete, grid5, neighbors, patterns, stencil27
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcprecond import color
from mcprecond.backends.hashing import mix
from mcprecond.coloring import Graph
from mcprecond.coloring.history import new_log
from mcprecond.coloring.priority.ecl_gc import ORDERS, ROW_ORDER, color_by_priority

SEED = 5
SHORTCUTS = [{"shortcut1": first, "shortcut2": second} for first in (True, False) for second in (True, False)]


def serial_first_fit(A: sp.sparray, order: str) -> np.ndarray:
    """The definition: by falling priority, each vertex takes the smallest color that no neighbor has."""
    adjacency = neighbors(A)
    priority = {
        "ldf": lambda v: (-len(adjacency[v]), -mix(v, SEED)),
        "ldf_natural": lambda v: (-len(adjacency[v]), v),
        "natural": lambda v: v,
    }[order]
    colors = np.full(A.shape[0], -1, np.int32)
    for v in sorted(range(A.shape[0]), key=priority):
        taken = {colors[u] for u in adjacency[v]}
        colors[v] = next(c for c in range(len(taken) + 1) if c not in taken)
    return colors


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
    expected = serial_first_fit(GRAPHS[name], order)
    for shortcuts in SHORTCUTS:
        coloring = color(to_device(GRAPHS[name]), "ecl_gc", order=order, seed=SEED, **shortcuts)
        np.testing.assert_array_equal(backend.to_host(coloring.colors), expected)
        assert coloring.history[:, 0].sum() == len(expected) and not coloring.history[:, 1].any()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(A=patterns(), order=st.sampled_from(ORDERS), shortcuts=st.sampled_from(SHORTCUTS))
def test_equals_serial_first_fit_on_any_pattern(backend, to_device, A, order, shortcuts):
    colors = color(to_device(A), "ecl_gc", order=order, seed=SEED, **shortcuts).colors
    np.testing.assert_array_equal(backend.to_host(colors), serial_first_fit(A, order))


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
    np.testing.assert_array_equal(colors, serial_first_fit(A, "natural"))
    return log[0, 0]


def test_shortcuts_save_rounds():
    """The ablation of Table 5, in rounds."""
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        for A in (mixed_degrees(2000, 20000), stencil27(12)):
            both, first, second, none = (rounds_of(A, **shortcuts) for shortcuts in SHORTCUTS)
            assert both <= first < none and both < second <= none
    finally:
        numba.set_num_threads(threads)


def test_unknown_order_is_refused(to_device):
    with pytest.raises(ValueError, match="order of ecl_gc must be one of ldf, ldf_natural, natural, got 'sdl'"):
        color(to_device(grid5(3)), "ecl_gc", order="sdl")
    for order in ([0, 1, 2], np.arange(9), 3):
        with pytest.raises(TypeError, match="order of ecl_gc must be a string, one of ldf"):
            color(to_device(grid5(3)), "ecl_gc", order=order)
