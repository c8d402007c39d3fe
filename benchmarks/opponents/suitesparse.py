"""Colorings by SuiteSparse:GraphBLAS on the CPU beside ours in the same run.

    python benchmarks/opponents/suitesparse.py            # graphs of about 2^20 vertices, two threads
    python benchmarks/opponents/suitesparse.py --small

writes benchmarks/results/opponents/graphblas-cpu.json (or where --output says). The algorithms are those of Osama et
al., from their listings, in operations that SuiteSparse:GraphBLAS carries out or our own kernels; colors are the same.
Times are medians of wall times of the coloring alone, in which SuiteSparse copies the graph into its matrix first; the
methods take turns. The load of the machine before each graph is recorded.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(1, str(Path(__file__).resolve().parent.parent))  # where the benchmarks are

from cases import GRAPHS, SEED
from coloring import checked
from measure import COLORING, RESULTS, record, save, timed_in_turns

from mcprecond.backends import get_backend
from mcprecond.backends.team import set_threads
from mcprecond.coloring import Graph

FAMILIES = ["fenl_50", "grid2d_1024", "delaunay20", "rgg20", "rmat16"]
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    f"{name}, {who}": (name, {"engine": engine})
    for name in ("graphblas_is", "graphblas_mis", "graphblas_jp")
    for who, engine in (("SuiteSparse", "suitesparse"), ("our kernels", "kernels"))
}
METHODS |= {"ecl_gc": ("ecl_gc", {}), "greedy": ("greedy", {})}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", nargs="+", choices=list(GRAPHS), default=FAMILIES)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", type=Path, default=RESULTS / "opponents" / "graphblas-cpu.json")
    arguments = parser.parse_args()
    import graphblas
    import suitesparse_graphblas

    set_threads(arguments.threads)
    graphblas.ss.config["nthreads"] = arguments.threads
    opponents = {"suitesparse-graphblas": suitesparse_graphblas.__version__, "python-graphblas": graphblas.__version__}
    cases: list[dict[str, Any]] = []
    for name in arguments.families:
        case = {"name": name, "load": os.getloadavg()[0]}
        cases.append(case | measured(GRAPHS[name](arguments.small), arguments.repeats, arguments.small))
        print(cases[-1], flush=True)
        document = record("graphblas-cpu", "cpu", cases, COLORING, seed=SEED, small=arguments.small)
        save(document | {"versions": document["versions"] | opponents}, arguments.output)


def measured(A: Any, repeats: int, small: bool) -> dict[str, Any]:
    """A graph colored by all methods in turns."""
    graph = Graph.of(A)
    calls = {row: checked(name, options, graph, A) for row, (name, options) in METHODS.items()}
    times = timed_in_turns({row: run for row, (run, _) in calls.items()}, repeats, get_backend("cpu"), small=small)
    rows = {row: times[row] | found for row, (_, found) in calls.items()}
    return {"vertices": graph.n, "entries": int(A.nnz), "max_degree": graph.max_degree, "methods": rows}


if __name__ == "__main__":
    main()
