"""Colorings: proper on every pattern, within their bounds, equal to a slow serial definition where deterministic."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import scipy.sparse as sp
from colorings import VARIANTS, check, check_history, is_bounded
from graphs import NAMED, complete, grid5, neighbors, patterns, stencil27
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference.first_fit import serial_first_fit
from reference.independent_sets import serial_sets
from reference.orders import at_random, by_degree, largest_first

from benchmarks.families import mycielskian, random_geometric, random_regular, road_like
from mcprecond import COLORINGS, Coloring, color, problems
from mcprecond.backends import get_backend
from mcprecond.backends.kernels import CpuFunction
from mcprecond.coloring import Graph, coloring_of
from mcprecond.coloring.auto import fronts_expected
from mcprecond.coloring.coloring import finish
from mcprecond.coloring.history import log_round
from mcprecond.coloring.published import color_sets
from mcprecond.coloring.published.color_sets import ALL_FORBIDDEN
from mcprecond.matrix import admit_matrix
from mcprecond.problems import graphs

#: The module, which its function of the same name hides.
eb = importlib.import_module("mcprecond.coloring.published.eb")


@pytest.fixture(params=VARIANTS)
def variant(request):
    return VARIANTS[request.param]


@pytest.mark.parametrize("name", NAMED)
def test_proper_on_named_graphs(name, variant, backend, to_device):
    method, options = variant
    A = to_device(NAMED[name])
    coloring = color(A, method, **options)
    check(NAMED[name], coloring, backend.to_host(coloring.colors), is_bounded(method, options))
    assert coloring.is_valid(A)
    assert coloring.method == method


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(A=patterns())
def test_proper_on_any_pattern(variant, backend, to_device, A):
    method, options = variant
    coloring = color(to_device(A), method, **options)
    check(A, coloring, backend.to_host(coloring.colors), is_bounded(method, options))


@pytest.mark.parametrize("name", [name for name in NAMED if NAMED[name].shape[0]])
@pytest.mark.parametrize("seed", [0, 1, 2**32 + 7])
def test_ecl_gc_is_serial_largest_degree_first(name, seed, backend, to_device):
    A = NAMED[name]
    expected = serial_first_fit(A, by_degree(A, seed & 0xFFFFFFFF))
    np.testing.assert_array_equal(backend.to_host(color(to_device(A), "ecl_gc", seed=seed).colors), expected)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(A=patterns())
def test_ecl_gc_is_serial_on_any_pattern(backend, to_device, A):
    expected = serial_first_fit(A, by_degree(A, 3))
    np.testing.assert_array_equal(backend.to_host(color(to_device(A), "ecl_gc", seed=3).colors), expected)


def test_ecl_gc_mixes_high_and_low_degrees(backend, to_device):
    rng = np.random.default_rng(4)
    weights = rng.pareto(1.2, 2000) + 1
    ends = rng.choice(2000, size=(2, 20000), p=weights / weights.sum())
    A = sp.csr_matrix((np.ones(20000), ends), shape=(2000, 2000))
    degrees = np.array([len(near) for near in neighbors(A)])
    assert degrees.max() > 200 and (degrees < 32).sum() > 500
    expected = serial_first_fit(A, by_degree(A, 0))
    np.testing.assert_array_equal(backend.to_host(color(to_device(A), "ecl_gc").colors), expected)


@pytest.mark.parametrize("name", [name for name in NAMED if NAMED[name].shape[0]])
def test_greedy_is_first_fit_in_the_given_order(name, backend, to_device):
    A = NAMED[name]
    n = A.shape[0]
    orders = {
        "natural": range(n),
        "random": at_random(A, 0),
        "ldf": largest_first(A),
    }
    for order, sequence in orders.items():
        expected = serial_first_fit(A, list(sequence))
        for method in ("greedy", "jp"):
            colors = backend.to_host(color(to_device(A), method, order=order).colors)
            np.testing.assert_array_equal(colors, expected)
    backwards = np.arange(n)[::-1].copy()
    colors = backend.to_host(color(to_device(A), "greedy", order=backwards.tolist()).colors)
    np.testing.assert_array_equal(colors, serial_first_fit(A, list(backwards)))


@pytest.mark.parametrize("name", [name for name in NAMED if NAMED[name].shape[0]])
def test_jpl_colors_are_levels_of_the_random_order(name, backend, to_device):
    A = NAMED[name]
    coloring = color(to_device(A), "jpl", seed=9)
    np.testing.assert_array_equal(backend.to_host(coloring.colors), serial_sets(A, 9))
    assert coloring.rounds == coloring.n_colors


def test_seeds_change_random_priorities(backend, to_device):
    A = to_device(stencil27(8))
    for method in ("ecl_gc", "jpl"):
        first, second = (backend.to_host(color(A, method, seed=seed).colors) for seed in (0, 1))
        assert (first != second).any()


def test_known_color_counts(backend, to_device):
    """What the papers and the design say of the 27-point pattern: 8 in natural order, about 18 by EB, more by JPL."""
    A = to_device(stencil27(20))
    assert color(A, "greedy").n_colors == 8
    assert 8 < color(A, "eb").n_colors <= 20
    assert 8 < color(A, "ecl_gc").n_colors <= 20
    assert color(A, "jpl").n_colors > 30
    assert color(to_device(grid5(30)), "greedy").n_colors == 2


def test_racing_colorings_stay_proper(backend, to_device):
    A = stencil27(14)
    on_device = to_device(A)
    for method, options in VARIANTS.values():
        deterministic = COLORINGS[method].deterministic
        for _ in range(0 if deterministic else 20):
            assert color(on_device, method, **options).is_valid(on_device)


@pytest.mark.parametrize("name", [*NAMED, "complete300"])
@pytest.mark.parametrize("options", [{}, {"worklist": "atomic"}, {"resolution": "index"}])
def test_eb_repairs_a_poor_first_round(name, options, monkeypatch, backend, to_device):
    """Many conflicts: on the CPU all vertices intend the same color, on a GPU as many rows as can be go at once."""
    monkeypatch.setattr(eb, "CHUNK", 1)
    on_cpu = not backend.resident_warps
    if on_cpu:
        monkeypatch.setattr(eb, "first_numbers", intend_the_same)
        monkeypatch.setitem(eb.KERNELS.functions, "color_edges", CpuFunction(eb.color_edges.py_func, "resident"))
    A = complete(300) if name == "complete300" else NAMED[name]
    coloring = color(to_device(A), "eb", **options)
    check(A, coloring, backend.to_host(coloring.colors), True)
    if on_cpu:
        waves = eb_waves(A)
        edges_of_others = any(waves[v] == waves[u] == -1 for v, near in enumerate(neighbors(A)) for u in near)
        assert coloring.history[:, 1].any() or not edges_of_others


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(length=st.integers(0, 300), seed=st.integers(0, 99))
def test_eb_keeps_the_edges_that_are_not_used_up(length, seed, monkeypatch):
    """In order by prefix sums, in any order by a counter, which begins anew; and both note the same colors."""
    rng = np.random.default_rng(seed)
    E, C, CS = (rng.integers(0, most, shape) for most, shape in ((40, (length, 2)), (3, 40), (2, 40)))
    E, C, CS = E.astype(np.int32), C.astype(np.int32), CS.astype(np.int32)
    VF, expected = np.zeros(40, np.int32), []
    for u, v in E.tolist():
        if color_sets.forbid_color(u, v, C, CS, VF):
            expected.append((u, v))
    for way in ("prefix sum", "counter"):
        own, kept, counter = np.zeros(40, np.int32), np.full_like(E, -1), np.zeros(1, np.int64)
        if way == "counter":
            color_sets.keep_scattered(0, length, E.copy(), C, CS, own, kept, counter)
            count = counter[0]
        else:
            count = color_sets.keep_in_order(length, E.copy(), C, CS, own, kept)
        found = [tuple(edge) for edge in kept[:count].tolist()]
        assert found == expected if way == "prefix sum" else sorted(found) == sorted(expected)
        np.testing.assert_array_equal(own, VF)


@pytest.mark.parametrize("shape", [(12, 7), (5, 30), (6, 5, 7)])
def test_a_grid_has_as_many_fronts_as_its_sides_are_long(shape, to_device):
    graph = Graph.of(to_device(problems.laplacian(shape)))
    assert fronts_expected(graph) == sum(shape)
    assert fronts_expected(Graph.of(to_device(problems.laplacian(shape)[::-1, ::-1]))) == sum(shape)


def test_eb_has_edges_left_in_several_rounds(monkeypatch):
    """All vertices of a complete graph intend the same color. The list has no room for the edges of all rounds."""
    monkeypatch.setattr(eb, "CHUNK", 1)
    monkeypatch.setattr(eb, "first_numbers", intend_the_same)
    monkeypatch.setitem(eb.KERNELS.functions, "color_edges", CpuFunction(eb.color_edges.py_func, "resident"))
    for worklist, n in (("pps", 33), ("atomic", 100)):
        coloring = color(complete(n), "eb", worklist=worklist)
        assert coloring.rounds > 2 and sorted(coloring.colors) == list(range(n))


def intend_the_same(first, last, n, indptr, indices, stretches, number):
    number[number < 0] = number.max(initial=-1) + 1


def eb_waves(A) -> np.ndarray:
    """Of which class of hubs each vertex is; -1 for the others."""
    highest, lowest = eb.hub_classes(Graph.of(A))
    classes = np.array([len(near).bit_length() - 1 for near in neighbors(A)], np.int64)
    return np.where((classes >= lowest) & (classes <= highest), classes, -1)


def check_waves(A, history: np.ndarray) -> None:
    """A wave begins with all its vertices, when the one before has ended."""
    begins = [row for row in range(len(history)) if row == 0 or history[row - 1, 1] == 0]
    sizes = np.unique_counts(-eb_waves(A)).counts
    np.testing.assert_array_equal(history[begins, 0], sizes)
    within = np.setdiff1d(np.arange(len(history)), begins)
    np.testing.assert_array_equal(history[within, 0], history[within - 1, 1])


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("worklist", ["pps", "atomic"])
def test_eb_takes_hubs_first_on_named_graphs(name, worklist, to_device):
    check_waves(NAMED[name], color(to_device(NAMED[name]), "eb", worklist=worklist).history)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(A=patterns())
def test_eb_takes_hubs_first(to_device, A):
    check_waves(A, color(to_device(A), "eb").history)


def test_eb_has_hubs_on_skewed_graphs_only():
    meshes = (
        graphs.fenl(6),
        graphs.grid2d(20),
        graphs.grid2d(20, 9),
        graphs.grid3d(8),
        graphs.delaunay(2000),
        random_geometric(2000),
        road_like(2000),
        graphs.elasticity_pattern(4),
        random_regular(500, 6),
    )
    for A in meshes:
        assert (eb_waves(A) == -1).all()
    for A in (graphs.rmat(11), mycielskian(11), NAMED["star"]):
        assert (eb_waves(A) >= 0).any() and (eb_waves(A) == -1).mean() > 0.3


def numbers_at_once(first, last, n, indptr, indices, stretches, number):
    before = number.copy()
    for v in np.flatnonzero(before < 0):
        number[v] = eb.smallest_free_color(v, 1, indptr, indices, before)


def tentative_colors_at_once(first, length, E, C, CS, VF, TVF):
    def available(forbidden):
        return ~forbidden & (forbidden + 1) & ALL_FORBIDDEN

    low, high = E[:length].T
    low, high = (ends[(CS[low] == CS[high]) & (C[low] == 0) & (C[high] == 0)] for ends in (low, high))
    intended = available(VF[high])
    C[high] = -intended
    np.bitwise_or.at(TVF, low, intended)


@pytest.mark.parametrize("worklist", ["pps", "atomic"])
@pytest.mark.parametrize("name", ["mycielskian11", "mycielskian12", "rmat11", "rmat12"])
def test_eb_colors_skewed_graphs_as_few_as_largest_degree_first(name, worklist, monkeypatch, backend, to_device):
    """Also where all of a wave speculate at the same moment, as on a GPU: on the CPU that is enacted."""
    family, size = {"mycielskian": mycielskian, "rmat": graphs.rmat}[name[:-2]], int(name[-2:])
    A = family(size)
    if not backend.resident_warps:
        monkeypatch.setattr(eb, "first_numbers", numbers_at_once)
        monkeypatch.setattr(eb, "tentative_colors", tentative_colors_at_once)
        monkeypatch.setitem(eb.KERNELS.functions, "color_edges", CpuFunction(eb.color_edges.py_func, "resident"))
    coloring = color(to_device(A), "eb", worklist=worklist)
    assert coloring.is_valid(to_device(A))
    assert coloring.n_colors <= 1.1 * color(A, "greedy", order="ldf").n_colors + 1


def test_eb_takes_up_every_row_of_a_stretch_once():
    for rows in range(1, 10):
        for v in range(5, 5 + rows):
            visited = [v]
            while len(visited) < rows:
                visited.append(eb.next_row(visited[-1], 5, 5 + rows))
            assert sorted(visited) == list(range(5, 5 + rows))


@pytest.mark.parametrize("name", [name for name in NAMED if NAMED[name].shape[0]])
@pytest.mark.parametrize("stretches", [1, 2, 7])
def test_eb_shares_out_all_rows(name, stretches):
    n, indptr = NAMED[name].shape[0], sp.csr_matrix(NAMED[name]).indptr
    begins = [eb.stretch_begin(t, stretches, n, indptr) for t in range(stretches + 1)]
    assert begins[0] == 0 and begins[-1] == n and sorted(begins) == begins


@pytest.mark.parametrize("method", ["gm", "chen_topo", "chen_wlc", "chen_pq"])
def test_rows_for_whole_blocks(method, backend, to_device):
    """Rows of three sizes: 70 hubs, which need more than one word of colors, their neighbors, and a grid."""
    hubs = sp.vstack([np.ones((70, 1500)), sp.csr_matrix((100, 1500))])
    A = sp.csr_matrix(sp.block_diag([sp.vstack([hubs, sp.csr_matrix((1330, 1500))]), grid5(20)]))
    coloring = color(to_device(A), method)
    check(A, coloring, backend.to_host(coloring.colors), True)
    assert coloring.n_colors >= 71


def test_is_valid_tells_a_conflict(backend, to_device):
    A = to_device(grid5(6))
    colors = backend.xp.zeros(36, np.int32)
    assert not Coloring(colors, np.array([36]), "user").is_valid(A)


def test_permutation_is_a_stable_sort(backend, to_device):
    coloring = color(to_device(stencil27(7)), "ecl_gc")
    expected = np.argsort(backend.to_host(coloring.colors), kind="stable")
    np.testing.assert_array_equal(backend.to_host(coloring.permutation()), expected)


@pytest.mark.gpu
@pytest.mark.parametrize("name", VARIANTS)
def test_deterministic_methods_agree_on_both_devices(name):

    method, options = VARIANTS[name]
    deterministic = COLORINGS[method].deterministic
    gpu = get_backend("gpu")
    for A in (stencil27(12), grid5(40), NAMED["star"], NAMED["complete100"], NAMED["dense rows"]):
        on_cpu, on_gpu = color(A, method, **options), color(gpu.sparse.csr_matrix(A), method, **options)
        if deterministic:
            np.testing.assert_array_equal(gpu.to_host(on_gpu.colors), on_cpu.colors)
            if method not in ("ecl_gc", "greedy"):  # which count their rounds differently
                np.testing.assert_array_equal(on_gpu.history, on_cpu.history)
        else:
            assert on_gpu.n_colors <= max(map(len, neighbors(A))) + 1 or not is_bounded(method, options)


def test_history_of_sets_is_their_sizes(to_device):
    A = to_device(stencil27(9))
    for method in ("jpl", "is_reduce", "graphblas_is"):
        coloring = color(A, method)
        np.testing.assert_array_equal(coloring.history[:, 0], coloring.sizes)


def test_history_of_speculation_repeats_conflicts(to_device):
    """A round colors what the one before found in conflict; RIG colors it at once and looks again, SIRG after a full
    palette, too.
    """
    A = to_device(complete(300))
    for method in ("ipgc", "vb", "vb_bit", "eb"):
        history = color(A, method).history
        assert history[0, 0] == 300 and history[-1, 1] == 0
        np.testing.assert_array_equal(history[1:, 0], history[:-1, 1])
    for method in ("rig", "sirg"):
        coloring = color(A, method)
        check_history(coloring, 300)
        history = coloring.history
        assert history[0].tolist() == [300, 0] and history[-1].tolist() == [0, 0]
        np.testing.assert_array_equal(history[1:, 0], history[1:, 1])


def test_long_histories(to_device):
    """Fronts along a path in natural order: more rounds than are read at once."""
    A = sp.csr_matrix(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(500, 500)))
    coloring = color(to_device(A), "jp", order="natural")
    assert coloring.rounds == 500
    np.testing.assert_array_equal(coloring.history, [[1, 0]] * 500)


def test_rounds_without_room_go_into_the_last_row():
    log = np.zeros((4, 2), np.int32)
    for _ in range(5):
        log_round(log, 10, 1)
    history = finish(np.zeros(1, np.int32), log, "some", get_backend("cpu")).history
    np.testing.assert_array_equal(history, [[10, 1], [10, 1], [30, 3]])


def test_refinements_keep_the_history(to_device):
    A = to_device(stencil27(6))
    plain = color(A, "jpl")
    for options in ({"recolor": 2}, {"balance": True}):
        np.testing.assert_array_equal(color(A, "jpl", **options).history, plain.history)
    np.testing.assert_array_equal(coloring_of(admit_matrix(A), plain).history, plain.history)


def test_more_sets_per_round_save_rounds(to_device):
    A = to_device(stencil27(16))
    rounds = [color(A, method).rounds for method in ("jpl", "is_minmax", "cc")]
    assert rounds == sorted(rounds, reverse=True)
    assert color(A, "is_hash").n_colors <= color(A, "is_minmax").n_colors


def test_user_colorings(backend, to_device):
    A = to_device(grid5(4))
    checkerboard = np.indices((4, 4)).sum(axis=0).ravel() % 2
    coloring = coloring_of(admit_matrix(A), 3 * checkerboard + 1)
    assert coloring.n_colors == 2 and coloring.method == "user"
    assert coloring.rounds == 0 and coloring.history.shape == (0, 2)
    np.testing.assert_array_equal(backend.to_host(coloring.colors), checkerboard)
    assert coloring_of(admit_matrix(A), color(A, "ecl_gc")).method == "ecl_gc"


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (np.zeros(15, int), ValueError, r"coloring must have shape \(16,\)"),
        (np.zeros(16), TypeError, "array of integers"),
        (np.full(16, -2), ValueError, "row 0 the color -2"),
        (np.full(16, 2**30), ValueError, "below"),
        (np.arange(16) % 2, ValueError, "the neighbors 0 and 4 the same color 0"),
        ("fastest", ValueError, "unknown coloring method 'fastest'; known are eb, ecl_gc, jpl"),
    ],
)
def test_bad_colorings_are_refused(bad, error, message, to_device):
    with pytest.raises(error, match=message):
        coloring_of(admit_matrix(to_device(grid5(4))), bad)


def test_bad_options_are_refused(to_device):
    A = to_device(grid5(4))
    with pytest.raises(TypeError, match="'eb' has no option 'order'; it has worklist"):
        color(A, "eb", order="natural")
    with pytest.raises(ValueError, match="worklist must be one of pps, atomic, got 'list'"):
        color(A, "eb", worklist="list")
    with pytest.raises(ValueError, match="hashes must be between 1 and 32, got 0"):
        color(A, "cc", hashes=0)
    with pytest.raises(ValueError, match="table_size must be between 1 and 63, got 64"):
        color(A, "is_hash", table_size=64)
    with pytest.raises(ValueError, match="chunk_size must be between 1 and 2147483647, got 0"):
        color(A, "vb", chunk_size=0)
    with pytest.raises(ValueError, match="resolution must be one of index, degree, random, got 'coin'"):
        color(A, "ipgc", resolution="coin")
    with pytest.raises(ValueError, match="resolution must be one of index, degree, got 'random'"):
        color(A, "sirg", resolution="random")
    with pytest.raises(ValueError, match="order must be one of natural, random, ldf"):
        color(A, "greedy", order="upside down")
    with pytest.raises(ValueError, match=r"permutation of 0\.\.15"):
        color(A, "greedy", order=[0] * 16)


def test_the_matrix_is_not_changed():
    A = NAMED["messy"].copy()
    before = (A.indptr.copy(), A.indices.copy(), A.data.copy())
    for method in COLORINGS:
        color(A, method)
    for array, old in zip((A.indptr, A.indices, A.data), before, strict=True):
        np.testing.assert_array_equal(array, old)


def test_long_indices():
    A = stencil27(5)
    B = sp.csr_matrix(A)
    B.indptr, B.indices = B.indptr.astype(np.int64), B.indices.astype(np.int64)
    np.testing.assert_array_equal(color(B, "ecl_gc").colors, color(A, "ecl_gc").colors)


def test_column_out_of_range():
    A = grid5(3)
    A.indices[2] = 9
    with pytest.raises(ValueError, match=r"A has an entry in row 0, column 9, but its columns are 0\.\.8"):
        color(A)


@pytest.mark.parametrize("method", COLORINGS)
@pytest.mark.parametrize("name", [name for name in NAMED if NAMED[name].shape[0]])
def test_recoloring_never_needs_more_colors(name, method, backend, to_device):
    A = to_device(NAMED[name])
    deterministic = COLORINGS[method].deterministic
    coloring = color(A, method, recolor=3)
    check(NAMED[name], coloring, backend.to_host(coloring.colors), True)
    if deterministic:
        assert coloring.n_colors <= color(A, method).n_colors


def test_recoloring_pays(to_device):
    A = to_device(stencil27(20))
    assert color(A, "jpl", recolor=2).n_colors < color(A, "jpl").n_colors / 2
    assert color(to_device(grid5(30)), "jpl", recolor=4).n_colors < color(to_device(grid5(30)), "jpl").n_colors


@pytest.mark.parametrize("method", COLORINGS)
@pytest.mark.parametrize("name", [name for name in NAMED if NAMED[name].shape[0]])
def test_balancing_stays_proper(name, method, backend, to_device):
    A = to_device(NAMED[name])
    coloring = color(A, method, balance=True)
    check(NAMED[name], coloring, backend.to_host(coloring.colors), False)


def test_balancing_evens_out(to_device):
    A = to_device(stencil27(20))
    plain, balanced = color(A, "ecl_gc"), color(A, "ecl_gc", balance=True)
    assert plain.sizes.max() > 2 * plain.sizes.min()
    assert balanced.sizes.max() <= 1.3 * balanced.sizes.min()
    assert balanced.n_colors <= plain.n_colors + 1


@pytest.mark.parametrize("method", COLORINGS)
def test_distance_two(method, backend, to_device):
    for A in (grid5(12), stencil27(5), NAMED["star"], NAMED["messy"]):
        coloring = color(to_device(A), method, distance=2)
        colors = backend.to_host(coloring.colors)
        near = neighbors(A)
        for v in range(A.shape[0]):
            around = [v, *near[v]]
            assert len({int(colors[u]) for u in around}) == len(around)


def test_bad_refinements_are_refused(to_device):
    A = to_device(grid5(4))
    with pytest.raises(ValueError, match="distance must be 1 or 2, got 3"):
        color(A, distance=3)
    with pytest.raises(ValueError, match="recolor must be at least 0, got -1"):
        color(A, recolor=-1)
    with pytest.raises(TypeError, match="'auto' has no option 'order'"):
        color(A, order="ldf")


def test_a_plot_shows_the_sizes_of_all_colors(backend, to_device):
    pytest.importorskip("matplotlib")
    coloring = color(to_device(NAMED["complete100"]), "jpl")
    ax = coloring.plot()
    np.testing.assert_array_equal(ax.patches[0].get_data().values, coloring.sizes)
    assert ax.get_title() == "100 vertices in 100 colors by jpl" and coloring.plot(ax) is ax


def test_long_reports_are_cut(to_device):
    report = color(to_device(NAMED["complete100"])).report()
    assert "100 colors" in report
    assert "... and 60 more" in report
    rounds = color(to_device(NAMED["complete100"]), "jpl").report().splitlines()[1:10]
    assert rounds[0] == "round    1:        1 colored,        0 conflicts"
    assert rounds[8] == "the others:       92 colored,        0 conflicts"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pattern=patterns(), missing=st.integers(0, 10**6))
def test_graph_has_both_directions(backend, to_device, pattern, missing):
    """Also where a single entry of a symmetric pattern is missing."""
    symmetric = sp.csr_matrix(pattern + pattern.T)
    symmetric.sum_duplicates()
    almost = symmetric.copy()
    if almost.nnz:
        almost.data[missing % almost.nnz] = 0
        almost.eliminate_zeros()
    for A in (pattern, symmetric, almost):
        graph = Graph.of(to_device(A))
        indptr, indices = backend.to_host(graph.indptr), backend.to_host(graph.indices)
        rows = [set(indices[indptr[v] : indptr[v + 1]].tolist()) - {v} for v in range(graph.n)]
        assert rows == neighbors(A)
        assert graph.max_degree == max(map(len, rows))
        np.testing.assert_array_equal(backend.to_host(graph.degrees), [len(row) for row in rows])


@pytest.mark.parametrize("hubs", [1, 40])
@pytest.mark.parametrize("flaw", ["none", "one entry too few", "one entry too many", "two in the wrong order"])
def test_patterns_with_long_rows_are_checked(backend, to_device, hubs, flaw):
    """A few rows with all columns, which a block of a GPU looks at together."""
    n = 3000
    ones = np.ones((hubs, n))
    A = sp.lil_array((n, n))
    A[:hubs, :], A[:, :hubs] = ones, ones.T
    A = sp.csr_matrix(A)
    if flaw == "one entry too few":
        A.data[n - 1] = 0
        A.eliminate_zeros()
    elif flaw == "one entry too many":
        A = sp.csr_matrix(A + sp.csr_matrix(([1.0], ([hubs + 5], [hubs + 9])), shape=(n, n)))
    elif flaw == "two in the wrong order":
        A.indices[[2000, 2001]] = A.indices[[2001, 2000]]
        A.has_sorted_indices = False
    graph = Graph.of(to_device(A))
    whole = sp.csr_matrix(A + A.T)
    whole.sum_duplicates()
    whole.setdiag(0)
    whole.eliminate_zeros()
    np.testing.assert_array_equal(backend.to_host(graph.degrees), np.diff(whole.indptr))
    assert graph.max_degree == np.diff(whole.indptr).max() == n - 1
    indptr, indices = backend.to_host(graph.indptr), backend.to_host(graph.indices)
    assert all((np.diff(indices[indptr[v] : indptr[v + 1]]) > 0).all() for v in range(hubs))
