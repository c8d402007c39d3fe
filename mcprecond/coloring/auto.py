"""The choice of a method by degrees alone: few colors first, then time.

In the record of all methods on one GPU (`benchmarks/results/coloring-gpu.json`), among parallel methods that come
within one color of the fewest, first-fit in row order is fastest on numbered meshes whose rows are nearly all of one
length, and ECL-GC is the fastest or not far from it on everything else. So the rule is this table; the first row that
holds decides.

=============================================== ========================= ==========================================
degrees                                         method                    such as
=============================================== ========================= ==========================================
largest at most 2                               "ecl_gc"                  paths and cycles, with at most 3 colors
mean at least 0.9 of the largest, in total at   "greedy"                  finite elements or differences on a grid
least sqrt(n) missing to the largest, and at
most 8 sqrt(n) fronts
otherwise                                       "ecl_gc"                  graphs, unstructured meshes, band matrices
=============================================== ========================= ==========================================

The second condition of the second row asks for a boundary. In a banded matrix only a few rows at both ends are short,
and there fronts follow one another along all n rows.

At distance two "jp" is in place of "ecl_gc", for which the graph of all pairs would have to be built.

How many fronts first-fit has, sets of rows that can be colored at once, is estimated from a sample of rows and the
longest chain of neighbors in row order.

Where this does not tell enough: a periodic grid has no boundary, and a small one is mostly boundary; both get "ecl_gc"
and with it about twice the colors of row order.
"""

from __future__ import annotations

import numpy as np

from mcprecond.coloring.graph import Graph
from mcprecond.coloring.priority.jp import longest_chain

MOSTLY_FULL = 0.9
MOST_FRONTS = 8  # times sqrt(n): on a cube or a square there are fewer
SAMPLED = 64  # rows


def chosen_for(graph: Graph, distance: int = 1) -> str:
    """Return the method for a graph, a name in `COLORINGS`."""
    otherwise = "ecl_gc" if distance == 1 else "jp"
    n, total = graph.n, int(graph.degrees.sum(dtype="int64"))
    if graph.max_degree <= 2 or total < MOSTLY_FULL * n * graph.max_degree or n * graph.max_degree - total < n**0.5:
        return otherwise
    return "greedy" if 0 < fronts_expected(graph) <= MOST_FRONTS * n**0.5 else otherwise


def fronts_expected(graph: Graph, block_size: int = 1) -> int:
    """About how many fronts first-fit in row order has on a numbered mesh; 0 if rows are in no order of that kind.

    On a mesh that is numbered line by line, the distances of a row to its neighbors before it are those along a line,
    from line to line, and from plane to plane. From one of these to the next, and from the last one to the number of
    rows, is the length of a line, of a plane in lines, and so on, and fronts cross all of these lengths. A chain of
    neighbors that follow one another takes as many fronts as it has members. Where nodes have several unknowns, the
    graph is that of the unknowns.
    """
    if graph.n == 0:
        return 0
    found = [_lengths(distances, graph.n, block_size) for distances in _sampled_rows(graph)]
    lengths = sorted(length for length in found if length)
    if 2 * len(lengths) <= len(found):
        return 0
    return max(lengths[len(lengths) // 2], longest_chain(graph) // block_size)


def _sampled_rows(graph: Graph) -> list[np.ndarray]:
    """For some rows, by how much their columns lie before them, on the host."""
    backend, n = graph.backend, graph.n
    rows = np.unique(np.arange(1, SAMPLED + 1) * n // (SAMPLED + 1))
    offsets = backend.to_host(graph.indptr[backend.xp.asarray(np.concatenate([rows, rows + 1]))]).astype(np.int64)
    begins, ends = np.split(offsets, 2)
    places = np.concatenate([np.arange(begin, end) for begin, end in zip(begins, ends, strict=True)])
    columns = backend.to_host(graph.indices[backend.xp.asarray(places)])
    return [row - part for row, part in zip(rows, np.split(columns, np.cumsum(ends - begins)[:-1]), strict=True)]


def _lengths(distances: np.ndarray, n: int, block_size: int) -> int:
    """The sum of the lengths that the distances of a row tell; 0 if its nearest neighbor is no part of its line."""
    distances = np.unique(distances // block_size)
    distances = distances[distances > 0]
    if not len(distances) or int(distances[0]) ** 3 > n:
        return 0
    total, stride = 0, 1
    for distance in distances.tolist():
        if distance >= 2 * stride:
            total += distance // stride
            stride = distance
    return int(total + n // (stride * block_size))
