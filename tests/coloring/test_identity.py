"""Each coloring is the one of its name: it runs its own kernels, and finds what a slow definition of it finds.

Where threads race, the race is fixed: one thread takes all in order. Many methods then find the colors of first-fit, so
what tells them apart is asked for as well: how they keep colors, who gives way, what an option changes.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable
from itertools import combinations, pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import NAMED, complete, grid5, neighbors, stencil27
from reference.first_fit import fronts, serial_first_fit
from reference.independent_sets import Rounds, grown_sets, hashed_sets, proposals, serial_reuse, serial_sets, two_sets
from reference.orders import at_random, by_degree, by_weight, largest_first
from reference.speculation import published_edges, ranks

import mcprecond.backends
from mcprecond import COLORINGS, color
from mcprecond.backends.cpu import CpuBackend
from mcprecond.backends.cuda_source import cuda_source
from mcprecond.backends.gpu import compile_options
from mcprecond.backends.hashing import mix
from mcprecond.backends.team import get_threads, set_threads
from mcprecond.coloring import Graph
from mcprecond.coloring.published import vertex_based
from mcprecond.coloring.published.speculation import gives_way

eb = importlib.import_module("mcprecond.coloring.published.eb")

SEED = 3
GRAPHS = {
    "stencil27": stencil27(7),
    "grid5": grid5(12),
    "unsymmetric": NAMED["unsymmetric"],
    "cliques": sp.csr_matrix(sp.block_diag([complete(size) for size in (3, 40, 70)])),
    "path": sp.csr_matrix(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(200, 200))),
}


def sizes(colors: np.ndarray) -> Rounds:
    return [(int(count), 0) for count in np.bincount(colors)]


def by_stretches(A, stretches: int) -> list[int]:
    """The rows as stretches of the pattern have them, one stretch after the other, every other row first."""
    graph, sequence = Graph.of(A), []
    begins = [eb.stretch_begin(t, stretches, graph.n, graph.indptr) for t in range(stretches + 1)]
    for t, (begin, end) in enumerate(pairwise(begins)):
        if end > begin:
            rows = [begin + mix(t, 0) % (end - begin)]
            while len(rows) < end - begin:
                rows.append(eb.next_row(rows[-1], begin, end))
            sequence += rows
    return sequence


def first_fit(A, sequence, *rounds: tuple[int, int]) -> tuple[np.ndarray, Rounds]:
    return serial_first_fit(A, sequence), [(A.shape[0], 0), *rounds]


def natural(A) -> range:
    return range(A.shape[0])


def sets(A) -> tuple[np.ndarray, Rounds]:
    colors = serial_sets(A, SEED)
    return colors, sizes(colors)


#: Colors and history by definition, None where that depends on how visits are divided. Of speculation: in one thread.
DEFINITIONS: dict[str, Any] = {
    "eb": lambda A: first_fit(A, by_stretches(A, max(min(eb.STRETCHES, A.shape[0] // eb.CHUNK), 1))),
    "ecl_gc": lambda A: (serial_first_fit(A, by_degree(A, SEED)), None),
    "jpl": sets,
    "jp": lambda A: (serial_first_fit(A, at_random(A, SEED)), fronts(A, at_random(A, SEED))),
    "ipgc": lambda A: first_fit(A, natural(A)),
    "vb": lambda A: first_fit(A, natural(A)),
    "vb_bit": lambda A: first_fit(A, natural(A)),
    "rig": lambda A: first_fit(A, natural(A), (0, 0)),
    "sirg": lambda A: first_fit(A, natural(A), (0, 0)),
    "gm": lambda A: first_fit(A, natural(A)),
    "chen_topo": lambda A: first_fit(A, natural(A)),
    "chen_wlc": lambda A: first_fit(A, natural(A)),
    "chen_pq": lambda A: first_fit(A, largest_first(A)),
    "cc": lambda A: hashed_sets(A, SEED),
    "is_minmax": lambda A: two_sets(A, SEED),
    "is_hash": lambda A: proposals(A, SEED),
    "is_reduce": sets,
    "graphblas_is": sets,
    "graphblas_mis": lambda A: (serial_first_fit(A, by_weight(A, SEED)), grown_sets(A, SEED)),
    "graphblas_jp": lambda A: (serial_reuse(A, SEED), sizes(serial_sets(A, SEED))),
    "greedy": lambda A: (serial_first_fit(A, natural(A)), None),
}


def renumbered(colors: np.ndarray) -> np.ndarray:
    """Colors without the numbers that have no vertex."""
    return np.unique(colors, return_inverse=True)[1]


@pytest.fixture
def serially(monkeypatch):
    """One thread of a CPU, also where another device stands for it."""
    monkeypatch.setattr(mcprecond.backends, "_CPU", CpuBackend())
    threads = get_threads()
    set_threads(1)
    yield
    set_threads(threads)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("method", COLORINGS)
def test_equals_its_definition(method, name, serially):
    A = GRAPHS[name]
    colors, history = DEFINITIONS[method](A)
    found = color(A, method, seed=SEED)
    np.testing.assert_array_equal(found.colors, renumbered(colors))
    if history is not None:
        assert found.history.tolist() == [list(row) for row in history]


@pytest.mark.parametrize("method", [name for name, method in COLORINGS.items() if method.deterministic])
def test_deterministic_ones_do_on_every_device(method, backend, to_device):
    for A in GRAPHS.values():
        colors, _ = DEFINITIONS[method](A)
        found = backend.to_host(color(to_device(A), method, seed=SEED).colors)
        np.testing.assert_array_equal(found, renumbered(colors))


def test_published_is_for_distance_one(to_device):
    with pytest.raises(ValueError, match="published works at distance 1 only, got distance=2; leave one of them out"):
        color(to_device(grid5(3)), "eb", published=True, distance=2)


@pytest.mark.parametrize("worklist", ["pps", "atomic"])
@pytest.mark.parametrize("resolution", ["index", "degree"])
@pytest.mark.parametrize("name", [*GRAPHS, "star"])
def test_published_eb_is_that_of_the_paper(name, resolution, worklist, serially):
    A = GRAPHS.get(name, NAMED.get(name))
    colors, history = published_edges(A, resolution == "degree")
    found = color(A, "eb", published=True, resolution=resolution, worklist=worklist)
    np.testing.assert_array_equal(found.colors, renumbered(colors))
    assert found.history.tolist() == [list(row) for row in history]
    if resolution == "index":
        default = color(A, "eb", published=True, worklist=worklist)
        np.testing.assert_array_equal(default.colors, found.colors)


@pytest.mark.parametrize(("tentative", "drop_edges"), [(False, True), (True, False), (False, False)])
@pytest.mark.parametrize("name", [*GRAPHS, "star"])
def test_published_eb_without_optimizations(name, tentative, drop_edges, serially):
    """Sections III-B2 and III-B3; dropping edges changes no color."""
    A, options = GRAPHS.get(name, NAMED.get(name)), {"tentative": tentative, "drop_edges": drop_edges}
    colors, history = published_edges(A, **options)
    found = color(A, "eb", published=True, **options)
    np.testing.assert_array_equal(found.colors, renumbered(colors))
    assert found.history.tolist() == [list(row) for row in history]
    np.testing.assert_array_equal(found.colors, color(A, "eb", published=True, tentative=tentative).colors)


def test_published_eb_begins_with_one_color_for_all(backend, to_device):
    """Figure 1: whoever has no neighbor of larger index keeps it, and of any two neighbors one loses it."""
    for A in GRAPHS.values():
        near = neighbors(A)
        first = color(to_device(A), "eb", published=True).history[0]
        assert first[0] == len(near) and first[1] <= sum(max(around, default=-1) > v for v, around in enumerate(near))
        assert first[1] >= len(near) / 3


class Recorded:
    """The kernels of a set; calls are listed by name, with those choices and arguments that are numbers."""

    def __init__(self, kernels: Any, choices: list[Any], calls: list[tuple[str, list[int]]]):
        self.kernels, self.calls = kernels, calls
        self.choices = [value for value in choices if isinstance(value, int)]

    def __getattr__(self, name: str) -> Any:
        def launch(*arguments: Any) -> None:
            getattr(self.kernels, name)(*arguments)
            self.calls.append((name, self.choices + [int(value) for value in arguments if np.ndim(value) == 0]))

        return launch


@pytest.fixture
def recorded(backend, monkeypatch):
    """Color and return what was launched."""

    def record(A, method: str, **options: Any) -> list[tuple[str, list[int]]]:
        calls: list[tuple[str, list[int]]] = []
        kernels = type(backend).kernels
        with monkeypatch.context() as patched:
            patched.setattr(
                type(backend),
                "kernels",
                lambda self, *args, **macros: Recorded(kernels(self, *args, **macros), [*macros.values()], calls),
            )
            color(A, method, seed=SEED, **options)
        return calls

    return record


@pytest.fixture
def prepared(backend, monkeypatch):
    """Color, where `prepare` changes what a kernel is given; returns its arguments by name, as they are afterwards."""

    def record(
        A, method: str, kernel: str, prepare: Callable[[dict[str, Any]], None], **options: Any
    ) -> dict[str, Any]:
        given: dict[str, Any] = {}
        kernels = type(backend).kernels

        def replaced(self: Any, kernel_set: Any, **macros: Any) -> Any:
            found = kernels(self, kernel_set, **macros)
            if kernel not in kernel_set.functions:
                return found
            names, launch = inspect.signature(kernel_set.functions[kernel].function).parameters, getattr(found, kernel)

            def launch_prepared(*arguments: Any) -> None:
                given.update(zip(names, arguments, strict=True))
                prepare(given)
                launch(*given.values())

            return SimpleNamespace(**{kernel: launch_prepared})

        with monkeypatch.context() as patched:
            patched.setattr(type(backend), "kernels", replaced)
            color(A, method, seed=SEED, **options)
        return given

    return record


#: What each method launches on a small grid, and nobody else, where the name of a kernel tells them apart.
OWN_KERNELS = {
    "eb": "color_edges",
    "ecl_gc": "color_in_rounds",
    "jpl": "color_by_sets",
    "jp": "color_fronts",
    "ipgc": "color_in_time",
    "vb": "color_by_flags",
    "vb_bit": "color_by_bits",
    "rig": "color_with_palettes",
    "sirg": "color_with_palettes",
    "gm": "color_and_repair",
    "chen_topo": "color_by_topology",
    "chen_wlc": "color_by_worklist",
    "chen_pq": "color_by_worklist",
    "cc": "color_by_hashes",
    "is_minmax": "color_frontier",
    "is_hash": "color_by_operators",
    "is_reduce": "color_by_segments",
    "graphblas_is": "vxm",
    "graphblas_mis": "vxm",
    "graphblas_jp": "vxm",
    "greedy": "",
}


@pytest.mark.parametrize("method", COLORINGS)
def test_runs_its_own_kernels(method, recorded, to_device):
    names = {name for name, _ in recorded(to_device(grid5(9)), method)}
    others = {own for other, own in OWN_KERNELS.items() if other not in (method, "jp")} - {OWN_KERNELS[method]}
    assert OWN_KERNELS[method] in names | {""}
    assert not names & others


def test_definitions_tell_methods_apart(recorded, to_device):
    """By colors or history on one of the graphs, by kernels, or by the numbers that these are given."""
    found = {}
    for method in COLORINGS:
        defined = [DEFINITIONS[method](A) for A in GRAPHS.values()]
        results = [(renumbered(colors).tolist(), history) for colors, history in defined]
        found[method] = results, recorded(to_device(GRAPHS["cliques"]), method)
    for one, other in combinations(COLORINGS, 2):
        assert found[one] != found[other], f"{one} and {other}"


# ---- How colors that are taken are kept.


def test_flags_lie_in_local_memory_and_the_word_in_a_register():
    """NVRTC, which needs no GPU, says how many bytes of local memory a kernel has."""
    from cupy.cuda import nvrtc

    kernel_set = vertex_based.KERNELS
    options = compile_options(kernel_set.select_macros({"OFFSET": np.int32, "MAXFORBID": vertex_based.MAXFORBID}))
    program = nvrtc.createProgram(cuda_source(kernel_set.source), kernel_set.source.name, [], [])
    nvrtc.compileProgram(program, (*options, "-arch=compute_90"))
    text = nvrtc.getPTX(program).decode()
    nvrtc.destroyProgram(program)
    kernels = {part.split("(")[0]: part for part in text.split(".entry ")[1:]}
    local = {name: re.findall(r"\.local .*\[(\d+)\];", part) for name, part in kernels.items()}
    assert local["color_by_flags"] == [str(vertex_based.MAXFORBID)] and local["color_by_bits"] == []


def test_palettes(recorded, backend, to_device):
    """Section 4 of Sistla and Nandivada: 32 bits a word or 64, which pays from 33 colors on; 256 colors that double.

    By equation (1) there is room for 1024 colors where the degree is 599. One thread of a CPU needs no palette, and so
    asks for no larger one.
    """

    def check(A, expected: list[int], method: str, **options: Any) -> None:
        words = [numbers[-1] for name, numbers in recorded(A, method, **options) if name == "color_with_palettes"]
        assert words == (expected if backend.resident_warps else expected[:1])

    long_rows, short_rows = to_device(complete(600)), to_device(grid5(9))
    check(long_rows, [32], "rig")
    check(long_rows, [32], "sirg", doubling=False, long_words=False)
    check(long_rows, [16], "sirg", doubling=False)
    check(long_rows, [4, 8, 16], "sirg")
    check(long_rows, [8, 16, 32], "sirg", long_words=False)
    check(short_rows, [1], "sirg")


# ---- Who gives way, and what else the options change.


@pytest.mark.parametrize("by_degree", [False, True])
def test_the_end_that_gives_way(by_degree):
    """Section IV-D of Deveci et al.: the smaller index, or the smaller degree. For vertices, edges and rows."""
    for A in GRAPHS.values():
        graph, near = Graph.of(A), neighbors(A)
        rank = ranks(near, by_degree)
        for v, u in ((v, u) for v, around in enumerate(near) for u in around):
            assert gives_way(v, u, by_degree, graph.degrees) == (rank[v] < rank[u])


#: What an option changes in the launch: values of the option, with which the numbers given to the kernels differ.
OPTIONS = {
    ("eb", "worklist"): ("pps", "atomic"),
    ("eb", "resolution"): ("degree", "index"),
    ("eb", "published"): (False, True),
    ("eb", "tentative"): (True, False),
    ("eb", "drop_edges"): (True, False),
    ("ecl_gc", "order"): ("ldf", "ldf_natural"),
    ("ecl_gc", "shortcut1"): (True, False),
    ("ecl_gc", "shortcut2"): (True, False),
    ("ecl_gc", "published"): (False, True),
    ("ipgc", "chunk_size"): (8, 1),
    ("ipgc", "resolution"): ("index", "degree", "random"),
    ("ipgc", "worklist"): ("atomic", "pps"),
    ("vb", "worklist"): ("atomic", "pps"),
    ("vb_bit", "worklist"): ("atomic", "pps"),
    ("vb", "edge_filtering"): (False, True),
    ("vb", "chunk_size"): (8, 1),
    ("vb", "resolution"): ("index", "degree", "random"),
    ("vb", "max_forbid"): (64, 32),
    ("vb_bit", "edge_filtering"): (False, True),
    ("vb_bit", "chunk_size"): (8, 1),
    ("vb_bit", "resolution"): ("index", "degree", "random"),
    ("sirg", "resolution"): ("degree", "index"),
    ("sirg", "doubling"): (True, False),
    ("sirg", "long_words"): (True, False),
    ("sirg", "palettes"): ("threads", "vertices"),
    ("cc", "hashes"): (4, 2),
    ("is_minmax", "two_sets"): (True, False),
    ("is_reduce", "fused"): (False, True),
    ("is_minmax", "atomics"): (False, True),
    ("is_hash", "table_size"): (16, 2),
    ("graphblas_is", "engine"): ("kernels", "suitesparse"),
    ("graphblas_mis", "engine"): ("kernels", "suitesparse"),
    ("graphblas_jp", "engine"): ("kernels", "suitesparse"),
    ("jp", "order"): ("random", "natural"),
    ("greedy", "order"): ("natural", "random"),
}


#: What an option needs beside it.
BESIDE = {("eb", option): {"published": True} for option in ("tentative", "drop_edges")}


def test_every_option_is_tried_here():
    assert OPTIONS.keys() == {(name, option) for name, method in COLORINGS.items() for option in method.options}


@pytest.mark.parametrize(("method", "option"), OPTIONS)
def test_options_reach_the_kernels(method, option, recorded, backend, to_device):
    """And the first value is the default."""
    A = to_device(sp.csr_matrix(sp.block_diag([complete(300), grid5(9)])))
    values = [value for value in OPTIONS[method, option] if value != "suitesparse" or backend.name == "cpu"]
    beside = BESIDE.get((method, option), {})
    # The first launch of each kernel: how many there are may depend on who won a race.
    default, *launched = (
        dict(reversed(recorded(A, method, **beside, **given))) for given in ({}, *({option: value} for value in values))
    )
    assert default == launched[0]
    colors = [backend.to_host(color(A, method, seed=SEED, **beside, **{option: value}).colors) for value in values]
    assert launched[0] != launched[-1] or (colors[0] != colors[-1]).any() or len(values) == 1


def test_who_gives_way_is_what_is_asked_for(recorded, to_device):
    """Of the numbers that kernels are given, one is 0, 1 or 2."""
    A = to_device(grid5(9))
    for method in ("ipgc", "vb", "vb_bit"):
        resolutions = ("index", "degree", "random")
        launched = [dict(reversed(recorded(A, method, resolution=resolution))) for resolution in resolutions]
        assert launched[0].keys() == launched[1].keys() == launched[2].keys()
        given = [some for name in launched[0] for some in zip(*(numbers[name] for numbers in launched), strict=True)]
        assert [some for some in given if len(set(some)) > 1] == [(0, 1, 2)]


#: Gunrock's methods: the options of each, and the reference function that returns its colors and its history.
OPERATORS: dict[str, Any] = {
    "is_reduce": ({}, sets),
    "is_reduce, fused": ({"fused": True}, lambda A: two_sets(A, SEED)),
    "is_minmax": ({}, lambda A: two_sets(A, SEED)),
    "is_minmax, with atomics": ({"atomics": True}, lambda A: two_sets(A, SEED)),
    "is_minmax, one set": ({"two_sets": False}, sets),
    "is_minmax, one set, with atomics": ({"two_sets": False, "atomics": True}, sets),
    "is_hash": ({}, lambda A: proposals(A, SEED)),
    "is_hash, tables of 1": ({"table_size": 1}, lambda A: proposals(A, SEED, 1)),
    "is_hash, tables of 4": ({"table_size": 4}, lambda A: proposals(A, SEED, 4)),
    "is_hash, tables of 63": ({"table_size": 63}, lambda A: proposals(A, SEED, 63)),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_of_gunrock(name, backend, to_device):
    """For rows of a thread, a warp and a block."""
    method, (options, definition) = name.split(",")[0], OPERATORS[name]
    sizes_of_all = sp.csr_matrix(sp.block_diag([complete(300), complete(40), grid5(9)]))
    for A in (*GRAPHS.values(), sizes_of_all):
        colors, history = definition(A)
        found = color(to_device(A), method, seed=SEED, **options)
        np.testing.assert_array_equal(backend.to_host(found.colors), renumbered(colors))
        assert found.history.tolist() == [list(row) for row in history]


@pytest.mark.parametrize("hashes", [1, 2, 7])
def test_hashes_of_cc(hashes, backend, to_device):
    for A in GRAPHS.values():
        colors, history = hashed_sets(A, SEED, hashes)
        found = color(to_device(A), "cc", seed=SEED, hashes=hashes)
        np.testing.assert_array_equal(backend.to_host(found.colors), renumbered(colors))
        assert found.history.tolist() == [list(row) for row in history]


@pytest.mark.parametrize("ranges", [1, 4])
@pytest.mark.parametrize(
    ("method", "kernel", "options"),
    [("vb", "color_by_flags", {}), ("vb", "color_by_flags", {"max_forbid": 56}), ("vb_bit", "color_by_bits", {})],
)
def test_edge_filtering_moves_those_considered_to_the_front(
    method, kernel, options, ranges, prepared, backend, to_device
):
    """Section IV-B: rows, here in no order, get the neighbors of a color range before those of the next one.

    The chunk holds all vertices, so one thread colors them in their order. Filtering also runs where all colors fit
    into one range; a CPU has no ranges, and moves nothing.
    """
    A, size = {1: stencil27(4), 4: complete(200)}[ranges], options.get("max_forbid", 64)
    graph, generator = Graph.of(A), np.random.default_rng(SEED)
    before = [generator.permutation(row) for row in np.split(graph.indices, graph.indptr[1:-1])]

    def rows_after(filtering: bool) -> tuple[list[np.ndarray], np.ndarray]:
        def prepare(given: dict[str, Any]) -> None:
            given["adjacency"] = to_device(np.concatenate(before))

        given = prepared(to_device(A), method, kernel, prepare, edge_filtering=filtering, chunk_size=graph.n, **options)
        adjacency, colors = (backend.to_host(given[name]) for name in ("adjacency", "C"))
        return np.split(adjacency, graph.indptr[1:-1]), colors

    rows, _ = rows_after(False)
    assert all(np.array_equal(*pair) for pair in zip(rows, before, strict=True))
    rows, colors = rows_after(True)
    assert all(np.array_equal(*map(np.sort, pair)) for pair in zip(rows, before, strict=True))
    assert colors.max() // size == ranges - 1
    if not backend.resident_warps:
        assert all(np.array_equal(*pair) for pair in zip(rows, before, strict=True))
        return
    for v, row in enumerate(rows):
        considered = [colors[u] // size if u < v and colors[u] // size <= colors[v] // size else ranges for u in row]
        assert (np.diff(considered) >= 0).all()


@pytest.mark.parametrize("worklist", ["pps", "atomic"])
@pytest.mark.parametrize(
    ("method", "kernel", "lists"),
    [
        ("eb", "color_by_edges", "edges"),
        ("ipgc", "color_in_time", "worklists"),
        ("vb", "color_by_flags", "worklists"),
        ("vb_bit", "color_by_bits", "worklists"),
    ],
)
def test_a_prefix_sum_keeps_the_order(method, kernel, lists, worklist, prepared, backend, to_device):
    """Section IV-A: it marks what stays. An atomic counter, which promises no order, needs no marks, nor does a CPU.

    Each list is a part of the one before, and overwrites the beginning of an older one. So in both halves of the memory
    an entry is less than the one before it at most where a list ends, and there are no more lists than rounds.
    """
    unmarked = 7

    def prepare(given: dict[str, Any]) -> None:
        given["marks"].fill(unmarked)
        given[lists][1:] = 0

    for A in GRAPHS.values():
        published = {"published": True} if method == "eb" else {}
        given = prepared(to_device(A), method, kernel, prepare, worklist=worklist, **published)
        by_marks = worklist == "pps" and backend.resident_warps > 0
        assert ((backend.to_host(given["marks"]) != unmarked) == by_marks).all()
        if by_marks:
            rounds = backend.to_host(given["log"])[0, 0]
            for half in backend.to_host(given[lists]):
                places = half @ [A.shape[0], 1] if half.ndim == 2 else half
                assert np.count_nonzero(np.diff(places) < 0) <= rounds


@pytest.mark.parametrize(
    ("method", "options", "by_degree"),
    [
        ("rig", {}, False),
        ("sirg", {}, True),
        ("sirg", {"resolution": "index"}, False),
    ],
)
def test_who_keeps_its_color_in_rig_and_sirg(method, options, by_degree, prepared, backend, to_device):
    """Figure 4 of Sistla and Nandivada: of two neighbors of one color that of lower priority gets another one.

    The kernel goes on from a coloring in which no others are in conflict than pairs, each with a color of its own. On a
    CPU it begins anew.
    """
    for A in GRAPHS.values():
        near, colors = neighbors(A), serial_first_fit(A, natural(A))
        rank, paired, lost = ranks(near, by_degree), set(), []
        for v, u in ((v, u) for v, around in enumerate(near) for u in around):
            if not {v, u} & paired:
                colors[v] = colors[u] = colors.max() + 1
                paired |= {v, u}
                lost.append(min(v, u, key=rank.__getitem__))

        higher = [sorted(u for u in around if rank[u] > rank[v]) for v, around in enumerate(near)]

        def prepare(given: dict[str, Any], colors: np.ndarray = colors, higher: list[list[int]] = higher) -> None:
            given["C"][:] = to_device(colors)
            given["rounds"], given["worklists"][0] = 2, to_device(np.arange(len(colors)))
            indptr = backend.to_host(given["indptr"])
            conflicting, next_vertices = np.empty(int(indptr[-1]), np.int32), indptr[1:].copy()
            for v, some in enumerate(higher):
                next_vertices[v] -= len(some)
                conflicting[next_vertices[v] : indptr[v + 1]] = some
            given["next_vertices"][:] = to_device(next_vertices)
            if by_degree:
                given["conflicting"][:] = to_device(conflicting)

        given = prepared(to_device(A), method, "color_with_palettes", prepare, **options)
        found = backend.to_host(given["C"])
        if backend.resident_warps:
            np.testing.assert_array_equal(np.flatnonzero(found != colors), sorted(lost))
        else:
            np.testing.assert_array_equal(found, serial_first_fit(A, natural(A)))


def test_chunks_save_conflicts(backend, to_device):
    """Section IV-C: one thread colors a chunk of neighbors one after the other, and on a CPU all vertices."""
    A = to_device(sp.csr_matrix(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(2048, 2048))))
    for method in ("ipgc", "vb", "vb_bit"):
        alone, in_chunks = (color(A, method, chunk_size=size).history[:, 1].sum() for size in (1, 8))
        assert in_chunks < alone if backend.resident_warps else in_chunks == alone == 0
