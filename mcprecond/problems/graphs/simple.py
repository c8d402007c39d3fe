"""Simple graphs as symmetric matrices: from a list of edges, or from the lengths of rows."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from mcprecond.backends import compile_loop, compile_part, offset_type
from mcprecond.backends.arguments import integer
from mcprecond.backends.team.atomics import atomic_add

#: Rows are dealt out to so many parts, row v to part v % PARTS: R-MAT graphs have their long rows at the low numbers
#: and, as they look alike at every scale, at regular distances. A prime evens that out.
PARTS = 1021


def size_of(value: int, name: str, least: int, dimensions: int = 1) -> int:
    """Return a number of nodes along an edge, or of vertices: of all together at most 2^40, which no memory holds."""
    return integer(value, name, least, round(2 ** (40 / dimensions)))


def seed_of(seed: int) -> int:
    """Return a seed, if it is one."""
    return integer(seed, "seed", 0, 2**63 - 1)


def offsets_of(counts: np.ndarray, n: int) -> np.ndarray:
    """Row offsets from row lengths; SciPy wants indices of their dtype, and copies them otherwise."""
    ends = np.cumsum(counts, dtype=np.int64)
    indptr: np.ndarray = np.zeros(n + 1, offset_type(max(n, int(ends[-1]))))
    indptr[1:] = ends
    return indptr


def matrix_of(values: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> sp.csr_matrix:
    """The square matrix of sorted rows without repeated entries."""
    n = len(indptr) - 1
    A = sp.csr_matrix((values, indices, indptr), shape=(n, n))
    A.has_canonical_format = True
    return A


def simple_graph(n: int, rows: np.ndarray, columns: np.ndarray) -> sp.csr_matrix:
    """The undirected graph of a list of edges; loops are dropped, repeated edges kept once."""
    lengths = np.zeros(n, np.int64)
    _count_ends(0, len(rows), rows, columns, lengths)
    start = np.cumsum(lengths) - lengths
    total, place = int(lengths.sum()), start.copy()
    ends = np.empty(total, offset_type(n))
    _place_ends(0, len(rows), rows, columns, place, ends)
    _sort_rows(0, PARTS, n, start, lengths, ends)
    indptr = offsets_of(lengths, n)
    if int(indptr[-1]) == total:
        indices = ends.astype(indptr.dtype, copy=False)
    else:
        indices = np.empty(int(indptr[-1]), indptr.dtype)
        _pack_rows(0, PARTS, n, start, lengths, ends, indptr, indices)
    return matrix_of(np.ones(len(indices)), indices, indptr)


@compile_loop
def _count_ends(first, end, rows, columns, lengths):
    for e in range(first, end):
        if rows[e] != columns[e]:
            atomic_add(lengths, rows[e], np.int64(1))
            atomic_add(lengths, columns[e], np.int64(1))


@compile_loop
def _place_ends(first, end, rows, columns, place, ends):
    for e in range(first, end):
        if rows[e] != columns[e]:
            ends[atomic_add(place, rows[e], np.int64(1))] = columns[e]
            ends[atomic_add(place, columns[e], np.int64(1))] = rows[e]


@compile_loop(grain=1)
def _sort_rows(first, end, n, start, lengths, ends):
    """Sort each row and move its repeated entries out of it; sorting undoes the random order of the threads."""
    for part in range(first, end):
        for v in range(part, n, PARTS):
            lengths[v] = sort_row(ends[start[v] : start[v] + lengths[v]])


@compile_part
def sort_row(row):
    """Sort in place, keep each value once, and return how many there are."""
    row.sort()
    kept = min(1, len(row))
    for k in range(1, len(row)):
        if row[k] != row[kept - 1]:
            row[kept] = row[k]
            kept += 1
    return kept


@compile_loop(grain=1)
def _pack_rows(first, end, n, start, lengths, ends, indptr, indices):
    for part in range(first, end):
        for v in range(part, n, PARTS):
            for k in range(lengths[v]):
                indices[indptr[v] + k] = ends[start[v] + k]
