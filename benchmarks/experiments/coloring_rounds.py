"""How many rounds vertex-based coloring takes when a GPU's threads color their vertices at the same time.

    python benchmarks/experiments/coloring_rounds.py           # a few minutes on one core
    python benchmarks/experiments/coloring_rounds.py --small

writes benchmarks/results/coloring-rounds.json or coloring-rounds-small.json (or where --output says): Sections IV-C and
IV-D of Deveci, Boman, Devine, Rajamanickam (2016), chunks of consecutive vertices, and resolution by index, by degree
and by random numbers. A machine has so many threads, those of the paper's K20X by default. All of them color a vertex
of their chunk at the same time, seeing the colors before that, then the next one, then they take other chunks.
Conflicts are detected when all vertices have a color. Nothing is timed, so the figures are those of any computer that
runs this; a real GPU's threads do not stay together for so long. Colors are checked.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(1, str(Path(__file__).resolve().parent.parent))  # where the benchmarks are

from cases import GRAPHS, SEED
from measure import COLORING, RESULTS, record, save

from mcprecond.backends import compile_loop
from mcprecond.coloring import Graph
from mcprecond.coloring.published.speculation import gives_way

WORD = 64
K20X = 14 * 2048  # threads that it holds
CHUNKS = (1, 2, 4, 8, 16, 32)
RESOLUTIONS = ("index", "degree", "random")
FAMILIES = ["fenl_50", "delaunay20", "rgg20", "road22", "random20", "rmat20", "mycielskian15", "grid2d_1024"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=FAMILIES)
    parser.add_argument("--threads", type=int, default=K20X)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    small, cases = arguments.small, []
    for name in arguments.families:
        graph = Graph.of(GRAPHS[name](small))
        case: dict[str, Any] = {"name": name, "vertices": graph.n, "entries": graph.indices.size, "rounds": []}
        for resolution in RESOLUTIONS:
            for chunk in CHUNKS:
                colors, left = color_in_step(graph, arguments.threads, chunk, resolution)
                assert is_proper(graph, colors), "a conflict was left"
                facts = {"resolution": resolution, "chunk_size": chunk, "colors": int(colors.max()) + 1}
                case["rounds"].append(facts | {"rounds": len(left), "colored_again": sum(left)})
                print(name, case["rounds"][-1], flush=True)
        cases.append(case)
        output = arguments.output or RESULTS / f"coloring-rounds{'-small' if small else ''}.json"
        facts = {"seed": SEED, "small": small, "threads": arguments.threads}
        save(record("coloring-rounds", "cpu", cases, COLORING, **facts), output)


def color_in_step(graph: Graph, threads: int, chunk: int, resolution: str) -> tuple[np.ndarray, list[int]]:
    """Return the colors, and how many vertices each round has left in conflict."""
    ranks = np.random.default_rng(SEED).permutation(graph.n) if resolution == "random" else graph.degrees
    colors, chosen = np.full(graph.n, -1, np.int32), np.empty(threads, np.int32)
    worklist, left = np.arange(graph.n), []
    while len(worklist):
        for first in range(0, len(worklist), threads * chunk):
            some = worklist[first : first + threads * chunk]
            for step in range(chunk):
                at_once = some[step::chunk]
                choose(0, len(at_once), at_once, graph.indptr, graph.indices, colors, chosen)
                colors[at_once] = chosen[: len(at_once)]
        lost = np.zeros(len(worklist), np.bool_)
        detect(0, len(worklist), worklist, graph.indptr, graph.indices, ranks, resolution != "index", colors, lost)
        worklist = worklist[lost]
        left.append(len(worklist))
    return colors, left


def is_proper(graph: Graph, colors: np.ndarray) -> bool:
    """Whether no two neighbors have the same color."""
    rows = np.repeat(np.arange(graph.n), np.diff(graph.indptr))
    edges = rows != graph.indices
    return bool((colors[rows[edges]] != colors[graph.indices[edges]]).all() and (colors >= 0).all())


@compile_loop
def choose(first, end, vertices, indptr, indices, colors, chosen):
    """First-fit for each, by the colors of now; a vertex in conflict has kept its color, which forbids it to others."""
    for i in range(first, end):
        v = vertices[i]
        words = np.zeros((indptr[v + 1] - indptr[v]) // WORD + 1, np.uint64)
        for k in range(indptr[v], indptr[v + 1]):
            color = colors[indices[k]]
            if indices[k] != v and 0 <= color < WORD * len(words):
                words[color // WORD] |= np.uint64(1) << np.uint64(color % WORD)
        color = 0
        while (words[color // WORD] >> np.uint64(color % WORD)) & np.uint64(1):
            color += 1
        chosen[i] = color


@compile_loop
def detect(first, end, worklist, indptr, indices, ranks, by_rank, colors, lost):
    """Of two neighbors with one color that of smaller number is colored again, or first that of smaller rank."""
    for i in range(first, end):
        v = worklist[i]
        for k in range(indptr[v], indptr[v + 1]):
            u = indices[k]
            if colors[u] == colors[v] and gives_way(v, u, by_rank, ranks):
                lost[i] = True


if __name__ == "__main__":
    main()
