"""Blocks: clusters of neighboring rows that a coloring colors as one, and that are swept row by row inside.

A coloring of single rows puts about half of a row's neighbors behind it wherever it can, but with few colors it cannot:
of two colors, the first one has all of its neighbors behind it. Where a block is swept in row order, most of its rows
have some neighbors before them and some behind, as in the order of all rows, and CG takes fewer iterations.

Clusters are grown breadth first, each from the first row that has none yet. Their graph, the quotient, has an edge
wherever the matrix has an entry between two of them.

Iwashita, Nakashima, Takahashi: Algebraic Block Multi-Color Ordering Method for Parallel Multi-Threaded Sparse
Triangular Solver in ICCG Method, IPDPS 2012. There, a cluster that runs out of neighbors goes on with the next row that
has no cluster; here it stays smaller.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import Backend, compile_part, compile_row
from mcprecond.backends.arguments import integer
from mcprecond.backends.inputs import integers
from mcprecond.backends.sorting import sort_in_place
from mcprecond.coloring.graph import Graph

LARGEST_LABEL = 2**31 - 1


def clustered(graph: Graph, blocks: Any, sequence: Any | None = None) -> tuple[Graph, Any]:
    """Return the quotient graph of a clustering, and the number of each row's cluster: int32, on the graph's device.

    Clusters are grown, and the quotient is found, on the host, by one thread.

    Parameters
    ----------
    graph : Graph
    blocks : int or array of int, shape (n,)
        How many rows a cluster has at most; or a label for each row: equal ones are a cluster.
    sequence : array of int32, shape (n,), optional
        In which order rows begin clusters: which one comes when; row order by default.

    Raises
    ------
    TypeError, ValueError
        If it is neither a positive integer nor one non-negative label per row.
    """
    backend, xp = graph.backend, graph.backend.xp
    indptr, indices = backend.to_host(graph.indptr), backend.to_host(graph.indices)
    if isinstance(blocks, int | np.integer):
        seeds = np.arange(graph.n, dtype=np.int32) if sequence is None else backend.to_host(sequence)
        labels = grow(indptr, indices, min(integer(blocks, "blocks", 1), max(graph.n, 1)), seeds)
    else:
        labels = numbered(backend.to_host(labels_of(blocks, backend, graph.n)))
    n_blocks = int(labels.max(initial=-1)) + 1
    ends, neighbors = quotient(indptr, indices, labels, n_blocks)
    degrees = np.diff(ends).astype(np.int32)
    of_blocks = Graph(
        xp.asarray(ends), xp.asarray(neighbors), xp.asarray(degrees), n_blocks, int(degrees.max(initial=0)), backend
    )
    return of_blocks, xp.asarray(labels)


def labels_of(blocks: Any, backend: Backend, n: int) -> Any:
    """Return labels as a vector of integers, one for each row."""
    labels = integers(blocks, backend, "blocks must be a number of rows or an array of integers")
    if labels.shape != (n,):
        raise ValueError(f"blocks must have shape ({n},) to match A, got {labels.shape}")
    if n and not 0 <= int(labels.min()) <= int(labels.max()) <= LARGEST_LABEL:
        row = int(labels.argmin() if int(labels.min()) < 0 else labels.argmax())
        raise ValueError(f"blocks gives row {row} the label {int(labels[row])}; labels lie from 0 to {LARGEST_LABEL}")
    return labels


def numbered(labels: np.ndarray) -> np.ndarray:
    """Number the clusters by their first rows: int32."""
    _, first, which = np.unique(labels, return_index=True, return_inverse=True)
    numbers = np.empty(len(first), np.int32)
    numbers[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return numbers[which]


@compile_part
def grow(indptr, indices, most, seeds):
    """The number of each row's cluster, of at most so many rows, in the order of the seeds."""
    n = len(indptr) - 1
    labels, members = np.full(n, -1, np.int32), np.empty(most, np.int32)
    label = 0
    for seed in seeds:
        if labels[seed] >= 0:
            continue
        labels[seed], members[0] = label, seed
        size, done = 1, 0
        while done < size < most:
            row = members[done]
            for k in range(indptr[row], indptr[row + 1]):
                if labels[indices[k]] < 0:
                    labels[indices[k]], members[size] = label, indices[k]
                    size += 1
                    if size == most:
                        break
            done += 1
        label += 1
    return labels


@compile_part
def rows_by_label(labels, n_blocks):
    """Where the rows of each cluster begin, and the rows."""
    ends = np.zeros(n_blocks + 1, np.int64)
    for label in labels:
        ends[label + 1] += 1
    ends = np.cumsum(ends)
    place, rows = ends.copy(), np.empty(len(labels), np.int32)
    for row in range(len(labels)):
        rows[place[labels[row]]] = row
        place[labels[row]] += 1
    return ends, rows


@compile_row
def list_neighbors(label, begin, end, rows, indptr, indices, labels, seen, found, count):
    """Append the neighbors of a cluster to those found so far, and return how many there are then."""
    seen[label] = label
    for m in range(begin, end):
        for k in range(indptr[rows[m]], indptr[rows[m] + 1]):
            other = labels[indices[k]]
            if seen[other] != label:
                seen[other] = label
                found[count] = other
                count += 1
    return count


@compile_part
def quotient(indptr, indices, labels, n_blocks):
    """The neighbors of each cluster, sorted: row offsets and columns."""
    begins, rows = rows_by_label(labels, n_blocks)
    entries = np.zeros(n_blocks, np.int64)
    for row in range(len(labels)):
        entries[labels[row]] += indptr[row + 1] - indptr[row]
    ends, seen = np.zeros(n_blocks + 1, indptr.dtype), np.full(n_blocks, -1, np.int32)
    found, count = np.empty(4 * n_blocks, np.int32), 0
    for label in range(n_blocks):
        room = count + min(entries[label], n_blocks)
        if room > len(found):
            more = np.empty(2 * room, np.int32)
            more[:count] = found[:count]
            found = more
        first = count
        count = list_neighbors(
            label, begins[label], begins[label + 1], rows, indptr, indices, labels, seen, found, count
        )
        sort_in_place(found, first, count)
        ends[label + 1] = count
    return ends, found[:count].copy()


def rank_of_blocks(colors: Any, blocks: Any, xp: Any) -> Any:
    """Return which block comes when: sorted by color, and inside a color by their numbers."""
    colors_of = xp.zeros(int(blocks.max()) + 1, np.int64)
    colors_of[blocks] = colors
    rank = xp.empty(len(colors_of), np.int64)
    rank[xp.argsort(colors_of, kind="stable")] = xp.arange(len(rank))
    return rank
