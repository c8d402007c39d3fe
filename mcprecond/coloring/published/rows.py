"""Rows that threads share, and stretches of them with the same work, for the first round of EB (rows.cuh)."""

from __future__ import annotations

import numpy as np

from mcprecond.backends import compile_row
from mcprecond.coloring.graph import Graph

LONG_ROW = 1024


def lanes_for(graph: Graph, distance: int) -> int:
    """How many threads share a row: many where a few rows are very long."""
    if graph.max_degree >= LONG_ROW:
        return 32
    if distance == 2:
        return 4 if graph.indices.size > 8 * graph.n else 2
    lanes = 2
    while lanes < 16 and 4 * lanes * graph.n < graph.indices.size:  # a thread loads four entries at once
        lanes *= 2
    return lanes


@compile_row
def stretch_begin(t, stretches, n, indptr):
    """Where a stretch begins, if they share the rows, and the entries in them, evenly."""
    low, high = 0, n
    target = t * (n + np.int64(indptr[n])) // stretches
    while low < high:
        middle = (low + high) // 2
        if middle + indptr[middle] < target:
            low = middle + 1
        else:
            high = middle
    return low


@compile_row
def next_row(v, begin, end):
    """Go around a stretch: to the next row but one, from the last one to the first of those passed over."""
    return v + 2 if end - v > 2 else begin + (v - begin + 1) % 2
