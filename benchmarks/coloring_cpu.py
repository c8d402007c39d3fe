"""Colorings on the CPU beside PyAMG's vertex_coloring and NetworkX's greedy_color in the same run.

    python benchmarks/coloring_cpu.py            # graphs of about 2^20 vertices, two threads
    python benchmarks/coloring_cpu.py --small

writes benchmarks/results/coloring-cpu.json or coloring-cpu-small.json (or where --output says). Times are medians of
wall times of the coloring alone; the methods take turns. Our methods get the checked graph, PyAMG the CSR matrix,
NetworkX its own graph object. PyAMG is compiled and serial, ours runs on as many threads as --threads says. NetworkX is
pure Python and would take minutes on a million vertices, so it runs on a small graph of each family. The load before
each graph is recorded.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from cases import GROWING, SEED
from coloring import checked
from measure import COLORING, measure_each, parser_of, timed_in_turns, wall_ms

from mcprecond.backends import get_backend
from mcprecond.backends.team import set_threads
from mcprecond.coloring import Graph, user_coloring
from mcprecond.matrix import admit_matrix
from mcprecond.studies.compare import size_of

FAMILIES = ["grid2d", "delaunay", "rgg", "rmat", "fenl"]
SCALE, NETWORKX_SCALE, SMALL_SCALE = 20, 14, 10
METHODS = ["eb", "jp", "ecl_gc", "greedy"]
PYAMG = ["JP", "LDF", "MIS"]


def main() -> None:
    parser = parser_of(__doc__, device=False)
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=FAMILIES)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    set_threads(arguments.threads)

    def measure(family: str, scale: int) -> dict[str, Any]:
        case = {"family": family, "load": os.getloadavg()[0]}
        A, small = GROWING[family](scale), arguments.small
        return case | measure_matrix(A, arguments.repeats, scale <= NETWORKX_SCALE, small)

    scales = [SMALL_SCALE] if arguments.small else [SCALE, NETWORKX_SCALE]
    cases = {f"{family}{scale}": partial(measure, family, scale) for family in arguments.families for scale in scales}
    measure_each("coloring", arguments, cases, COLORING, peers=("pyamg", "networkx"))


def measure_matrix(A: Any, repeats: int, with_networkx: bool, small: bool) -> dict[str, Any]:
    """Color a matrix by PyAMG's, by NetworkX's where it is small enough, and by ours."""
    graph = Graph.of(A)
    case: dict[str, Any] = {**size_of(A, graph)}
    case["pattern_ms"] = wall_ms(lambda: Graph.of(A), graph.backend.synchronize, repeats)
    calls = {f"PyAMG {method}": pyamg_checked(A, method) for method in PYAMG}
    if with_networkx:
        calls["NetworkX greedy"] = networkx_checked(A)
    calls |= {method: checked(method, {}, graph, A) for method in METHODS}
    times = timed_in_turns({row: run for row, (run, _) in calls.items()}, repeats, get_backend("cpu"), small=small)
    return case | {"methods": {row: times[row] | found for row, (_, found) in calls.items()}}


def pyamg_checked(A: Any, method: str) -> tuple[Callable[[], Any], dict[str, Any]]:
    from pyamg.graph import vertex_coloring

    def run() -> np.ndarray:
        return vertex_coloring(A, method)

    np.random.seed(SEED)  # noqa: NPY002 - PyAMG draws its weights from the old generator
    return run, {"colors": user_coloring(run(), admit_matrix(A)).n_colors}


def networkx_checked(A: Any) -> tuple[Callable[[], Any], dict[str, Any]]:
    import networkx

    G = networkx.from_scipy_sparse_array(A)
    G.remove_edges_from(list(networkx.selfloop_edges(G)))

    def run() -> dict[int, int]:
        return networkx.greedy_color(G, strategy="largest_first")

    colors = run()
    in_row_order = np.array([colors[v] for v in range(A.shape[0])])
    return run, {"colors": user_coloring(in_row_order, admit_matrix(A)).n_colors}


if __name__ == "__main__":
    main()
