"""How many steps largest degree first takes with and without ECL-GC's shortcuts, on a machine of unlimited width, and
which vertices the shortcuts color.

    python benchmarks/experiments/coloring_steps.py            # a few minutes on one core
    python benchmarks/experiments/coloring_steps.py --small

writes benchmarks/results/coloring-steps.json or coloring-steps-small.json (or where --output says): Table 4 of
Alabandi, Powers, Burtscher (2020), "in an architecture-agnostic way". In a step every vertex sees what its neighbors
were before the step, and all vertices that need not wait any longer get their colors. Nothing is timed, so the figures
are those of any machine. Sets of possible colors are exact here; the code in the paper keeps ranges for degrees from 32
on. The colors of both ways are asserted to be the same.

`colored` and `colored_with_shortcuts` are the vertices of each step, Figures 6 and 7. `at_first`, `by_shortcut` and
`conventionally` are Figure 8: who waits for nobody, who is colored while a neighbor of higher priority is not, and all
others.
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

from mcprecond.backends import compile_loop, compile_part
from mcprecond.coloring import COLORINGS, Graph
from mcprecond.coloring.orders import by_keys, random_keys

WORD = 64
FAMILIES = ["grid2d_1024", "delaunay20", "rgg20", "rmat16", "rmat20", "random20", "road22", "fenl_50", "mycielskian15"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=FAMILIES)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    small = arguments.small
    cases = []
    for name in arguments.families:
        graph = Graph.of(GRAPHS[name](small))
        cases.append({"name": name, "vertices": graph.n, "entries": graph.indices.size} | steps_of(graph))
        print(cases[-1], flush=True)
        output = arguments.output or RESULTS / f"coloring-steps{'-small' if small else ''}.json"
        save(record("coloring-steps", "cpu", cases, COLORING, seed=SEED, small=small), output)


def steps_of(graph: Graph) -> dict[str, Any]:
    """The steps without shortcuts, which are the fronts of JP, and with both."""
    order = largest_degree_first(graph)
    colors, log = COLORINGS["jp"](graph, order=order)
    colors_by_shortcuts, colored, kinds = with_shortcuts(graph, order)
    assert np.array_equal(colors, colors_by_shortcuts), "shortcuts changed a color"
    steps = int(log[0, 0])
    return {
        "colors": int(colors.max()) + 1,
        "steps": steps,
        "steps_with_shortcuts": len(colored),
        **dict(zip(("at_first", "by_shortcut", "conventionally"), kinds, strict=True)),
        "colored": log[1 : steps + 1, 0].tolist(),
        "colored_with_shortcuts": colored,
    }


def largest_degree_first(graph: Graph) -> np.ndarray:
    """Largest degree first, ties at random."""
    keys = np.empty(graph.n, np.uint32)
    random_keys(0, graph.n, SEED, keys)
    shuffled = by_keys(keys, np)
    return shuffled[by_keys((graph.max_degree - graph.degrees)[shuffled], np)]


def with_shortcuts(graph: Graph, order: np.ndarray) -> tuple[np.ndarray, list[int], list[int]]:
    """Color in an order with both shortcuts; return the colors, how many vertices each step has colored, and how many
    were colored in each of the three ways.
    """
    n = graph.n
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n)
    preceding = np.empty(n, np.int64)
    count_preceding(0, n, graph.indptr, graph.indices, rank, preceding)
    start = np.zeros(n + 1, np.int64)
    np.cumsum(preceding // WORD + 1, out=start[1:])
    possible = np.full(start[-1], 2**WORD - 1, np.uint64)
    open_sets(0, n, start, preceding, possible)
    after = possible.copy()
    colors, chosen = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    shortened = np.zeros(n, np.bool_)
    left, colored = np.arange(n), []
    while len(left):
        look(0, len(left), left, graph.indptr, graph.indices, rank, start, possible, after, colors, chosen, shortened)
        settle(0, len(left), left, start, possible, after, colors, chosen)
        before, left = len(left), left[colors[left] < 0]
        colored.append(before - len(left))
    at_first, by_shortcut = int((preceding == 0).sum()), int(shortened.sum())
    return colors, colored, [at_first, by_shortcut, n - at_first - by_shortcut]


@compile_loop
def count_preceding(first, end, indptr, indices, rank, preceding):
    for v in range(first, end):
        count = 0
        for k in range(indptr[v], indptr[v + 1]):
            count += rank[indices[k]] < rank[v]
        preceding[v] = count


@compile_part
def overlap(u, v, start, possible):
    for w in range(min(start[u + 1] - start[u], start[v + 1] - start[v])):
        if possible[start[u] + w] & possible[start[v] + w]:
            return True
    return False


@compile_part
def keep_best(words, count):
    """Keep so many of the lowest bits, clear the others; return the lowest."""
    best = -1
    for w in range(len(words)):
        kept, rest = np.uint64(0), words[w]
        while rest and count:
            lowest = rest & (~rest + np.uint64(1))
            if best < 0:
                best = w * WORD
                while lowest >> np.uint64(best % WORD) != 1:
                    best += 1
            kept |= lowest
            rest ^= lowest
            count -= 1
        words[w] = kept
    return best


@compile_loop
def open_sets(first, end, start, preceding, possible):
    """With k neighbors to wait for, a vertex can get the colors 0..k."""
    for v in range(first, end):
        keep_best(possible[start[v] : start[v + 1]], preceding[v] + 1)


@compile_loop
def look(first, end, left, indptr, indices, rank, start, possible, after, colors, chosen, shortened):
    """Every vertex that is left finds out what is still possible, and whether it may take the best of it."""
    for i in range(first, end):
        v = left[i]
        words = after[start[v] : start[v + 1]]
        waiting = uncolored = 0
        for k in range(indptr[v], indptr[v + 1]):
            u = indices[k]
            if rank[u] < rank[v]:
                uncolored += colors[u] < 0
                if colors[u] >= 0:
                    if colors[u] // WORD < len(words):
                        words[colors[u] // WORD] &= ~(np.uint64(1) << np.uint64(colors[u] % WORD))
                elif overlap(u, v, start, possible):  # shortcut 2: otherwise no need to wait for u
                    waiting += 1
        best = keep_best(words, waiting + 1)
        chosen[v] = best
        if waiting:
            word, bit = best // WORD, np.uint64(best % WORD)
            for k in range(indptr[v], indptr[v + 1]):
                u = indices[k]
                considers = word < start[u + 1] - start[u] and (possible[start[u] + word] >> bit) & np.uint64(1)
                if rank[u] < rank[v] and colors[u] < 0 and considers:
                    chosen[v] = -1  # no shortcut 1
        shortened[v] = chosen[v] >= 0 and uncolored > 0


@compile_loop
def settle(first, end, left, start, possible, after, colors, chosen):
    """The step is over: what was found out becomes what the others see."""
    for i in range(first, end):
        v = left[i]
        colors[v] = chosen[v]
        possible[start[v] : start[v + 1]] = after[start[v] : start[v + 1]]


if __name__ == "__main__":
    main()
