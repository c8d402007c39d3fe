"""method="auto" of `color`: the method with few colors first, then the least time, by the degrees alone.

"auto" always chooses between two methods: first-fit in row order ("greedy"), which has few colors where rows are
numbered line by line, and ECL-GC. What decides is what the coloring is for. Here nobody knows, so that the number of
colors decides, and the choice is the same on every device. A preconditioner is made for a solve. So its
``coloring="auto"`` is another rule under a name of its own, `mcprecond.tuning.least_time`: the coloring with which a
solve is predicted to take least on this device. Both count fronts by `fronts_expected`.

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

At distance two it picks "jp" instead of "ecl_gc", which would have to build the graph of all pairs.

How many fronts first-fit has, sets of rows that can be colored at once, is estimated from a sample of rows and the
longest chain of neighbors in row order.

Where this does not tell enough: a periodic grid has no boundary, and a small one is mostly boundary; both get "ecl_gc"
and with it about twice the colors of row order.
"""

from __future__ import annotations

import numpy as np

from mcprecond.backends import KernelSet
from mcprecond.coloring.graph import Graph
from mcprecond.typing import MethodName

KERNELS = KernelSet(__file__, "OFFSET (LANES)")

MOSTLY_FULL = 0.9
MOST_FRONTS = 8  # times sqrt(n): on a cube or a square there are fewer
SAMPLED = 64  # rows
PART = 512  # rows that a warp goes through
CUDA_CONSTANTS = {"PART": PART}


def choose_method(graph: Graph, distance: int = 1) -> MethodName:
    """Return the method for a graph, a name in `COLORINGS`."""
    otherwise: MethodName = "ecl_gc" if distance == 1 else "jp"
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
    n, backend, samples = graph.n, graph.backend, min(SAMPLED, graph.n)
    if n == 0:
        return 0
    parts, offset = -(-n // PART), graph.indptr.dtype
    found = backend.xp.empty(samples + 3 * parts, np.int32)
    run, pattern = backend.kernels(KERNELS, OFFSET=offset, LANES=32), (graph.indptr, graph.indices)
    run.add_lengths(samples, n, block_size, *pattern, found)
    run.find_breaks(parts, n, *pattern, found[samples:])
    lengths, breaks = np.split(backend.to_host(found), [samples])
    lengths = np.sort(lengths[lengths > 0])
    if 2 * len(lengths) <= samples:
        return 0
    return max(int(lengths[len(lengths) // 2]), longest_chain(breaks.reshape(parts, 3), n) // block_size)


def longest_chain(breaks: np.ndarray, n: int) -> int:
    """The length of the longest chain in row order, from the breaks in each part of the rows."""
    first, last, longest = breaks[breaks[:, 0] >= 0].T
    between = np.append(first[1:], n) - last
    return int(max(longest.max(), between.max()))


# On the CPU.


@KERNELS.per_item(grain=SAMPLED)
def add_lengths(first, end, n, block_size, indptr, indices, lengths):
    """The sum of the lengths that the distances of a row tell; 0 if its nearest neighbor is no part of its line."""
    samples = len(lengths)
    for sample in range(first, end):
        row = (sample + 1) * n // (samples + 1)
        total, stride = 0, 0
        for k in range(indptr[row + 1] - 1, indptr[row] - 1, -1):
            distance = (row - indices[k]) // block_size
            if distance <= 0:
                continue
            if stride == 0:
                if distance**3 > n:
                    break
                stride = 1
            if distance >= 2 * stride:
                total += distance // stride
                stride = distance
        lengths[sample] = total + n // (stride * block_size) if stride else 0


@KERNELS.per_item(grain=1)
def find_breaks(begin, end, n, indptr, indices, breaks):
    """In each part of the rows, the first and the last row that is no neighbor of the one before it, and the longest
    way from one of them to the next; -1, -1 and 0 if there is none.
    """
    for part in range(begin, end):
        first, last, longest = -1, -1, 0
        for row in range(part * PART, min((part + 1) * PART, n)):
            columns = indices[indptr[row] : indptr[row + 1]]
            place = np.searchsorted(columns, row - 1)
            if row > 0 and place < len(columns) and columns[place] == row - 1:
                continue
            if last >= 0:
                longest = max(longest, row - last)
            else:
                first = row
            last = row
        breaks[3 * part], breaks[3 * part + 1], breaks[3 * part + 2] = first, last, longest
