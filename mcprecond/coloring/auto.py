"""The choice of a method by degrees alone: few colors first, then time.

In the record of all methods on one GPU (`benchmarks/results/coloring-gpu.json`), among parallel methods that come
within one color of the fewest, first-fit in row order is fastest on numbered meshes whose rows are nearly all of one
length, and ECL-GC is the fastest or not far from it on everything else. So the rule is this table; the first row that
holds decides.

=============================================== ========================= ==========================================
degrees                                         method                    such as
=============================================== ========================= ==========================================
largest at most 2                               "ecl_gc"                  paths and cycles, with at most 3 colors
mean at least 0.9 of the largest, and in total  "jp", ``order="natural"`` finite elements or differences on a grid
at least sqrt(n) missing to the largest
otherwise                                       "ecl_gc"                  graphs, unstructured meshes, band matrices
=============================================== ========================= ==========================================

The second condition of the second row asks for a boundary. In a banded matrix only a few rows at both ends are short,
and there fronts follow one another along all n rows.

Where degrees do not tell enough. A long and thin grid has fronts along all of its length, and "jp" takes them one by
one. A grid whose rows are numbered at random gets no fewer colors from "jp" than from "ecl_gc". A periodic grid has no
boundary, and a small one is mostly boundary; both get "ecl_gc" and with it about twice the colors of row order.
"""

from __future__ import annotations

from typing import Any

from mcprecond.coloring.graph import Graph

MOSTLY_FULL = 0.9


def chosen_for(graph: Graph) -> tuple[str, dict[str, Any]]:
    """Return the method for a graph, a name in `COLORINGS`, and its options."""
    return chosen_by_degrees(graph.n, graph.max_degree, int(graph.degrees.sum(dtype="int64")))


def chosen_by_degrees(n: int, max_degree: int, degree_sum: int) -> tuple[str, dict[str, Any]]:
    """The table above."""
    missing = n * max_degree - degree_sum
    if max_degree <= 2:
        return "ecl_gc", {}
    if degree_sum >= MOSTLY_FULL * n * max_degree and missing >= n**0.5:
        return "jp", {"order": "natural"}
    return "ecl_gc", {}
