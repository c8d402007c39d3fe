"""Colorings at distance two: proper, bounded, and without the graph of all pairs where they say so."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import NAMED, grid5, patterns, stencil27
from hypothesis import HealthCheck, given, settings
from reference.first_fit import serial_first_fit
from reference.proper import all_pairs, within_two

from mcprecond import COLORINGS, color
from mcprecond.coloring import Graph, hubs
from mcprecond.coloring.graph import count_square

#: Methods that go through the rows of their neighbors.
VARIANTS = {
    "eb": ("eb", {}),
    "eb-index": ("eb", {"resolution": "index"}),
    "jp-random": ("jp", {"seed": 2}),
    "jp-natural": ("jp", {"order": "natural"}),
    "jp-ldf": ("jp", {"order": "ldf"}),
    "greedy": ("greedy", {}),
    "greedy-sdl": ("greedy", {"order": "sdl"}),
    "greedy-sd": ("greedy", {"order": "sd"}),
    "greedy-id": ("greedy", {"order": "id"}),
}
#: What colors as it does the graph of all pairs: nothing in it goes by the number of neighbors.
EXACT = {
    "natural": ("greedy", {}),
    "random": ("jp", {"order": "random", "seed": 1}),
    "sd": ("greedy", {"order": "sd"}),
    "id": ("greedy", {"order": "id"}),
    "recolor": ("greedy", {"recolor": 3}),
    "recolor-random": ("jp", {"seed": 3, "recolor": 2}),
}
GRAPHS = [name for name in NAMED if NAMED[name].shape[0]]


@pytest.fixture(params=VARIANTS)
def variant(request):
    return VARIANTS[request.param]


@pytest.fixture
def no_squares(monkeypatch):
    """Whoever builds the graph of all pairs within distance two fails."""

    def refuse(graph):
        raise AssertionError("the squared graph was built")

    monkeypatch.setattr(Graph, "square", refuse)


def check_proper(A, colors: np.ndarray) -> None:
    """Proper at distance two, and from 0 on without gaps."""
    assert all(colors[v] != colors[u] for v, near in enumerate(within_two(A)) for u in near)
    assert len(np.unique(colors)) == max(colors, default=-1) + 1


def check(A, colors: np.ndarray) -> None:
    """And at most one color more than a vertex has others around it."""
    check_proper(A, colors)
    assert max(colors, default=-1) <= max(map(len, within_two(A)), default=-1)


@pytest.mark.parametrize("name", NAMED)
def test_proper_on_named_graphs(name, variant, backend, to_device, no_squares):
    method, options = variant
    coloring = color(to_device(NAMED[name]), method, distance=2, **options)
    check(NAMED[name], backend.to_host(coloring.colors))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(A=patterns())
def test_proper_on_any_pattern(variant, backend, to_device, A):
    method, options = variant
    check(A, backend.to_host(color(to_device(A), method, distance=2, **options).colors))


def test_more_than_one_palette(variant, backend, to_device):
    """Three hubs, one with 150 neighbors, and a grid behind each: some need more than two words of colors."""
    hubs = sp.lil_matrix((400, 400))
    hubs[0, 1:151] = hubs[151, 140:240] = hubs[399, 230:260] = 1
    A = sp.csr_matrix(hubs + grid5(20))
    colors = backend.to_host(color(to_device(A), variant[0], distance=2, **variant[1]).colors)
    check(A, colors)
    assert colors.max() >= 150


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("method", ["jp", "greedy"])
def test_first_fit_is_serial(name, method, backend, to_device):
    A = NAMED[name]
    sequence = np.random.default_rng(3).permutation(A.shape[0])
    colors = backend.to_host(color(to_device(A), method, distance=2, order=sequence).colors)
    np.testing.assert_array_equal(colors, serial_first_fit(all_pairs(A), sequence.tolist()))


def colors_as_all_pairs(A, exact, backend, to_device) -> None:
    method, options = EXACT[exact]
    colors = backend.to_host(color(to_device(A), method, distance=2, **options).colors)
    expected = backend.to_host(color(to_device(all_pairs(A)), method, **options).colors)
    np.testing.assert_array_equal(colors, expected)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("exact", EXACT)
def test_colors_are_those_of_all_pairs(name, exact, backend, to_device, no_squares):
    colors_as_all_pairs(NAMED[name], exact, backend, to_device)


@pytest.mark.parametrize("exact", EXACT)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(A=patterns())
def test_colors_are_those_of_all_pairs_on_any_pattern(exact, backend, to_device, no_squares, A):
    colors_as_all_pairs(A, exact, backend, to_device)


def test_fronts_of_pairs_are_those_of_the_squared_graph(to_device):
    A = to_device(stencil27(6))
    expected = color(A, "jp", order="natural", distance=2)
    squared = Graph.of(A).square()
    np.testing.assert_array_equal(color(_matrix(squared), "jp", order="natural").history, expected.history)


def _matrix(graph: Graph):
    ones = graph.backend.xp.ones(graph.indices.size)
    return graph.backend.sparse.csr_matrix((ones, graph.indices, graph.indptr), shape=(graph.n, graph.n))


def balancing_keeps_the_distance(A, backend, to_device) -> None:
    plain, balanced = (color(to_device(A), "greedy", distance=2, balance=how) for how in (False, True))
    check_proper(A, backend.to_host(balanced.colors))
    assert balanced.n_colors <= plain.n_colors + 1
    assert balanced.sizes.max() <= plain.sizes.max()
    assert balanced.sizes.sum() == A.shape[0]


@pytest.mark.parametrize("name", GRAPHS)
def test_balancing_keeps_the_distance(name, backend, to_device, no_squares):
    balancing_keeps_the_distance(NAMED[name], backend, to_device)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(A=patterns())
def test_balancing_keeps_the_distance_on_any_pattern(backend, to_device, no_squares, A):
    balancing_keeps_the_distance(A, backend, to_device)


def test_balancing_evens_out(to_device):
    A = to_device(grid5(30))
    plain, balanced = (color(A, "greedy", distance=2, balance=how).sizes for how in (False, True))
    assert balanced.max() / balanced.min() < 0.75 * plain.max() / plain.min()


@pytest.mark.parametrize("refinement", [{"recolor": 2}, {"balance": True}, {"recolor": 1, "balance": True}], ids=str)
@pytest.mark.parametrize("method", ["eb", "jpl"])
def test_refinements_keep_the_distance(method, refinement, backend, to_device):
    """Of methods that find pairs as they go, and of those that do not."""
    A = stencil27(6)
    check_proper(A, backend.to_host(color(to_device(A), method, distance=2, **refinement).colors))


def hub_graph(rng, n: int, shares, diagonal: bool) -> sp.csr_matrix:
    """Hubs first, each a neighbor of its share of the others; and a few edges between these."""
    h = len(shares)
    A = sp.random(n, n, 1 / n, random_state=rng, format="lil")
    for hub, share in enumerate(shares):
        A[hub, h + rng.choice(n - h, int(share * (n - h)), replace=False)] = 1
    return sp.csr_matrix(A + A.T + diagonal * sp.eye(n))


HUBS = {
    "star": lambda rng: hub_graph(rng, 90, [1.0], False),
    "diagonal": lambda rng: hub_graph(rng, 150, [1.0], True),
    "shared": lambda rng: hub_graph(rng, 200, [1.0, 1.0, 1.0], False),
    "partly-shared": lambda rng: hub_graph(rng, 300, [0.5, 0.7, 0.3, 0.5], True),
    "apart": lambda rng: sp.block_diag([hub_graph(rng, 300, [0.8], True), grid5(9)], format="csr"),
    "dense": lambda rng: sp.csr_matrix(np.kron([[0, 1], [1, 0]], np.ones((70, 70)))),
}


@pytest.mark.parametrize("name", HUBS)
def test_around_hubs(name, variant, backend, to_device, no_squares, monkeypatch):
    """Proper and bounded, whoever colors hubs and their neighbors; what has an order gives what it gave before."""
    method, options = variant
    A = HUBS[name](np.random.default_rng(5))
    if name == "dense":
        monkeypatch.setattr(hubs, "MOST_LOOKS", dict.fromkeys(("cpu", "gpu"), 0))
    assert hubs.hubs_of(Graph.of(A)) is not None
    coloring = color(to_device(A), method, distance=2, **options)
    check(A, backend.to_host(coloring.colors))
    assert (coloring.history[:, 0] - coloring.history[:, 1]).sum() == A.shape[0]
    if method in ("jp", "greedy"):
        monkeypatch.setattr(hubs, "LEAST_DEGREE", 10**6)
        expected = color(to_device(A), method, distance=2, **options)
        np.testing.assert_array_equal(backend.to_host(coloring.colors), backend.to_host(expected.colors))
        np.testing.assert_array_equal(coloring.history, expected.history)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(A=patterns())
def test_around_hubs_of_any_degree(variant, backend, to_device, A):
    method, options = variant
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hubs, "LEAST_DEGREE", 2)
        patch.setattr(hubs, "SKEWED", 1.2)
        patch.setattr(hubs, "LEAST_SHARE", 0)
        coloring = color(to_device(A), method, distance=2, **options)
        refined = color(to_device(A), method, distance=2, recolor=2, balance=True, **options)
    check(A, backend.to_host(coloring.colors))
    check_proper(A, backend.to_host(refined.colors))
    if method in ("jp", "greedy"):
        expected = color(to_device(A), method, distance=2, **options).colors
        np.testing.assert_array_equal(backend.to_host(coloring.colors), backend.to_host(expected))


@pytest.mark.parametrize("shape", ["complete", "cliques", "bipartite"])
def test_long_rows_are_not_visited_anew_for_every_few_colors(shape, variant, backend, to_device):
    """Rounds times vertices: each visits all pairs of a vertex, whose colors grow with the length of its row."""
    method, options = variant
    for n in (60, 120, 240) if backend.name == "gpu" else (60, 240, 480):
        A = sp.csr_matrix(
            {
                "complete": lambda n: np.ones((n, n)),
                "cliques": lambda n: np.kron(np.eye(3), np.ones((n // 3, n // 3))),
                "bipartite": lambda n: np.kron([[0, 1], [1, 0]], np.ones((n // 2, n // 2))),
            }[shape](n)
        )
        coloring = color(to_device(A), method, distance=2, **options)
        assert coloring.n_colors == (n // 3 if shape == "cliques" else n)
        # In "jp" each vertex comes once, in the front whose turn it is.
        if method != "jp":
            assert coloring.history[:, 0].sum() <= 16 * n


def star(leaves: int) -> sp.csr_matrix:
    """A hub, the first vertex, and its neighbors."""
    A = sp.csr_matrix((np.ones(leaves), (np.zeros(leaves, int), np.arange(1, leaves + 1))), shape=(leaves + 1,) * 2)
    return sp.csr_matrix(A + A.T)


@pytest.mark.parametrize("refinement", [{}, {"recolor": 1}, {"balance": True}], ids=str)
def test_a_star_takes_no_pass_over_the_hubs_row_for_each_leaf(variant, to_device, refinement):
    """10^10 looks at the least would take a minute for each method; 10^15 were a day."""
    method, options = variant
    A = to_device(star(100_000))
    if options.get("order") in ("sd", "id"):
        with pytest.raises(ValueError, match=r"order='\w\w' at distance 2 .* a vertex has 100000 neighbors"):
            color(A, method, distance=2, **options, **refinement)
        return
    coloring = color(A, method, distance=2, **options, **refinement)
    assert coloring.n_colors == 100_001


def test_balancing_many_classes(to_device, backend):
    """A star, whose colors are all different, and a grid of 40,000 vertices, which have nine of these."""
    A = sp.block_diag([star(20_000), grid5(200)], format="csr")
    coloring = color(to_device(A), "greedy", distance=2, balance=True)
    colors = backend.to_host(coloring.colors)
    assert coloring.sizes.max() <= 4 and len(np.unique(colors[:20_001])) == 20_001
    grid = colors[20_001:].reshape(200, 200)
    for x, y in ((0, 1), (1, 0), (1, 1), (2, 0), (0, 2)):
        assert (grid[x:, y:] != grid[: 200 - x, : 200 - y]).all() and (grid[x:, : 200 - y] != grid[: 200 - x, y:]).all()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(A=patterns())
def test_the_squared_graph(backend, to_device, A):
    graph = Graph.of(to_device(A))
    entries = all_pairs(A).nnz + A.shape[0]
    assert set(_edges(graph.square())) == set(_edges(Graph.of(all_pairs(A))))
    assert entries <= graph.paths()
    on_host = (backend.to_host(graph.indptr), backend.to_host(graph.indices))
    assert count_square(*on_host, 10**9) == entries
    assert not entries or entries // 2 < count_square(*on_host, entries // 2) <= entries


def _edges(graph: Graph) -> list[tuple[int, int]]:
    coo = _matrix(graph).tocoo()
    ends = (graph.backend.to_host(array).tolist() for array in (coo.row, coo.col))
    return [edge for edge in zip(*ends, strict=True) if edge[0] != edge[1]]


@pytest.mark.parametrize("method", [name for name, method in COLORINGS.items() if not method.finds_distance_two])
def test_a_square_without_room_is_refused(method, to_device, monkeypatch):
    A = to_device(star(3000))
    monkeypatch.setattr("mcprecond.coloring.graph.available_bytes", lambda backend: 40 * 3001**2 - 1)
    if isinstance(A, sp.csr_matrix):
        monkeypatch.setattr("mcprecond.coloring.graph.available_bytes", lambda backend: 8 * 3001**2 - 1)
    with pytest.raises(MemoryError, match=r"some 9,006,001 entries, .* use a method that .* eb, jp or greedy"):
        color(A, method, distance=2)


def test_a_square_of_10_to_the_12_entries_is_refused(to_device):
    with pytest.raises(MemoryError, match="has no room"):
        color(to_device(star(10**6)), "ecl_gc", distance=2)


def test_many_paths_are_not_many_entries(to_device, monkeypatch):
    """60 x 60 paths join the vertices of each side, and 120^2 entries are all."""
    A = to_device(HUBS["dense"](None))
    if isinstance(A, sp.csr_matrix):
        monkeypatch.setattr("mcprecond.coloring.graph.available_bytes", lambda backend: 8 * 140**2)
    assert color(A, "jpl", distance=2).n_colors == 140
