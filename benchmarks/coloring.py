"""Every coloring method on every graph family, beside cuSPARSE's csrcolor in the same run.

    python benchmarks/coloring.py gpu            # all families at the papers' sizes
    python benchmarks/coloring.py cpu --small    # the same families, small, on this machine

writes benchmarks/results/coloring-gpu.json or coloring-cpu-small.json (or where --output says). Times
are medians of wall times of the method alone, on a graph that is on the device already, as the papers measure it;
csrcolor gets the same matrix. Each call has another seed, and every coloring is checked: colors and rounds are medians,
with the least, the most and the mean beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from cases import GRAPHS
from measure import COLORING, measure_each, parser_of, timed_row, wall_ms

from mcprecond.backends import get_backend
from mcprecond.coloring import COLORINGS, Graph, finish
from mcprecond.studies.compare import size_of
from mcprecond.studies.measure import count_columns

#: What is colored.
FAMILIES = [
    "fenl_50",
    "fenl_100",
    "fenl_180",
    "grid2d_1024",
    "delaunay20",
    "rgg20",
    "rmat20",
    "rmat22",
    "mycielskian15",
    "elasticity48",
    "road22",
]
#: Row of the results -> method and options.
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "eb": ("eb", {}),
    "eb atomic": ("eb", {"worklist": "atomic"}),
    "vb ef": ("vb", {"edge_filtering": True}),
    "vb_bit ef": ("vb_bit", {"edge_filtering": True}),
    "ecl_gc": ("ecl_gc", {}),
    "ecl_gc, shortcut 1": ("ecl_gc", {"shortcut2": False}),
    "ecl_gc, shortcut 2": ("ecl_gc", {"shortcut1": False}),
    "ecl_gc, no shortcut": ("ecl_gc", {"shortcut1": False, "shortcut2": False}),
    "jp ldf": ("jp", {"order": "ldf"}),
    "jp natural": ("jp", {"order": "natural"}),
    "jp": ("jp", {}),
    **{name: (name, {}) for name in COLORINGS if name not in ("eb", "ecl_gc", "jp", "greedy")},
    "greedy": ("greedy", {}),
}
#: Not run: is_hash goes through a neighborhood for every proposal, which takes too long where some are huge, and gm
#: repairs its conflicts serially. On the largest graph two more took seven seconds a call.
TOO_LONG = {("is_hash", family) for family in ("rmat20", "rmat22", "mycielskian15")}
TOO_LONG |= {("gm", family) for family in ("rmat20", "rmat22")}
TOO_LONG |= {(method, "rmat22") for method in ("is_reduce", "graphblas_jp")}


def main() -> None:
    parser = parser_of(__doc__, repeats=10)
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=FAMILIES)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    arguments = parser.parse_args()
    small, device, repeats = arguments.small, arguments.device, arguments.repeats

    def measure(family: str) -> dict[str, Any]:
        methods = [row for row in arguments.methods if small or (row, family) not in TOO_LONG]
        return measure_matrix(GRAPHS[family](small), device, methods, repeats)

    measure_each("coloring", arguments, {name: partial(measure, name) for name in arguments.families}, COLORING)


def measure_matrix(matrix: Any, device: str, methods: list[str], repeats: int) -> dict[str, Any]:
    """Move a matrix to the device and color it by each method; on a GPU by csrcolor first."""
    backend = get_backend(device)
    A = backend.sparse.csr_matrix(matrix)
    graph = Graph.of(A)
    case: dict[str, Any] = {
        **size_of(A, graph),
        "pattern_ms": wall_ms(lambda: Graph.of(A), backend.synchronize, repeats),
        "methods": {},
    }
    if device == "gpu":
        from papers.csrcolor import CsrColor

        csrcolor = CsrColor()
        counts = [csrcolor(A)[1]]
        row = timed_row(lambda: counts.append(csrcolor(A)[1]), backend.synchronize, repeats)
        case["methods"]["csrcolor"] = row | count_columns("colors", counts[1:])
    for name in methods:
        case["methods"][name] = color_often(*METHODS[name], graph, A, repeats)
    return case


def color_often(method: str, options: dict[str, Any], graph: Graph, A: Any, repeats: int) -> dict[str, Any]:
    """Times, colors and rounds of so many calls, each with another seed, after one to warm up."""
    found: list[tuple[Any, Any]] = []

    def run() -> None:
        found.append(COLORINGS[method](graph, **({"seed": len(found)} | options)))

    run()
    row = timed_row(run, graph.backend.synchronize, repeats)
    colorings = [finish(colors, log, method, graph.backend) for colors, log in found[1:]]
    assert all(coloring.is_valid(A) for coloring in colorings), f"{method} {options} is improper"
    row |= count_columns("colors", [coloring.n_colors for coloring in colorings])
    return row | count_columns("rounds", [coloring.rounds for coloring in colorings])


def checked(method: str, options: dict[str, Any], graph: Graph, A: Any) -> tuple[Callable[[], Any], dict[str, Any]]:
    """The call to time, after one whose coloring was checked, and what that found."""

    def run() -> tuple[Any, Any]:
        return COLORINGS[method](graph, **options)

    colors, log = run()
    coloring = finish(colors, log, method, graph.backend)
    assert coloring.is_valid(A), f"{method} {options} is improper"
    return run, {"colors": coloring.n_colors, "rounds": coloring.rounds}


if __name__ == "__main__":
    main()
