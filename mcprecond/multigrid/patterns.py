"""Patterns of sparse matrices: transposes, rows that are put one behind the other, and matrices of blocks.

A pattern is a pair of arrays: row offsets in int32 or int64, and the sorted columns of each row in int32. Where
unknowns come in nodes it is a pattern of nodes, and an entry stands for a dense block.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import Backend, KernelSet, compile_inlined, compile_loop, offset_type
from mcprecond.backends.sorting import sort_in_place
from mcprecond.backends.team.arithmetic import trailing_zeros
from mcprecond.linalg.csr import lanes_for
from mcprecond.matrix import canonical_csr

KERNELS = KernelSet(__file__, "OFFSET LANES")

Pattern = tuple[Any, Any]
#: On the CPU rows are done in so many parts at once, each of which has an array with a place for every column.
PARTS = 64
CLOSE = 8  # words of 64 bits to go over take as long as sorting a column
#: A thread goes over so many entries while a block finds those of a column.
ENTRIES_OF_THREAD = 8
#: So many threads note the row of each entry of a row.
OF_ROW = 4
CUDA_CONSTANTS = {"ENTRIES_OF_THREAD": ENTRIES_OF_THREAD, "OF_ROW": OF_ROW}


def in_one_dtype(*offsets: Any) -> tuple[Any, ...]:
    """Row offsets in the widest of their dtypes, as a kernel takes them. Others are copied, which is rare."""
    widest = np.result_type(*(own.dtype for own in offsets))
    return tuple(own if own.dtype == widest else own.astype(widest) for own in offsets)


def gather_rows(begins: Any, counts: Any, found: Any, backend: Backend, entries: int | None = None) -> Pattern:
    """Return rows that lie apart, one behind the other: their offsets, in the dtype of `begins`, and their entries.

    Parameters
    ----------
    begins : array of int, shape (n + 1,)
        Where rows begin in `found`; the last number is its length.
    counts : array of int, shape (n + 1,)
        How many entries each row has there, behind a 0.
    found : array of int32
    entries : int, optional
        How many entries all rows have; the host waits for it if it is not given.
    """
    if entries == len(found):
        return begins, found
    n, room = len(begins) - 1, len(found) if entries is None else entries
    indptr, columns = backend.xp.empty(n + 1, begins.dtype), backend.xp.empty(room, np.int32)
    run = backend.kernels(KERNELS, OFFSET=begins.dtype, LANES=max(lanes_for(room / max(n, 1), 4), 4))
    run.gather(max(n, 1), n, begins, counts, found, indptr, columns, new_control(backend))
    if entries is None:
        entries = int(indptr[-1])
        columns = columns if entries == room else columns[:entries].copy()
    return indptr, columns


def least_entries(left: Pattern, right: Pattern, backend: Backend) -> int:
    """Return a lower bound of the entries of a product of two matrices: a row of it is at least as long as the longest
    row that it adds up, if all columns of the second matrix are there.
    """
    rows = len(left[0]) - 1
    lengths = backend.xp.empty(rows, np.int64)
    offsets, of_lists = in_one_dtype(left[0], right[0])
    run = backend.kernels(KERNELS, OFFSET=offsets.dtype, LANES=lanes_for(len(left[1]) / max(rows, 1)))
    run.find_longest_lists(rows, offsets, left[1], of_lists, lengths)
    return int(lengths.sum())


def transpose_pattern(pattern: Pattern, width: int, backend: Backend) -> tuple[Pattern, Any, Any]:
    """Return the pattern of the transpose, where each of its entries is in the pattern itself, and the length of its
    longest row, which the host does not wait for.

    Entries in column -1 are none: they are behind the others, outside of all rows, and not set. Without row offsets
    (None) each row has one entry.
    """
    xp, (indptr, columns) = backend.xp, pattern
    entries, offset = len(columns), offset_type(len(columns))
    n = 0 if indptr is None else len(indptr) - 1
    offsets, places, found = (xp.empty(size, offset) for size in (width + 1, entries, entries))
    rows, (numbers, rows_of_entries) = xp.empty(entries, np.int32), xp.empty((2, entries), np.int32)
    indptr = offsets if indptr is None else indptr.astype(offset, copy=False)
    control = new_control(backend)
    run = backend.kernels(KERNELS, OFFSET=offset, LANES=lanes_for(entries / max(width, 1)))
    threads = max(entries, width, 1)
    run.transpose(
        threads, entries, n, width, indptr, columns, offsets, rows, places, numbers, rows_of_entries, found, control
    )
    return (offsets, rows), places, control[1:2]


def new_control(backend: Backend) -> Any:
    """What a grid needs to scan: zeros for a counter, the length of the longest list, and a number for each block."""
    return backend.zeros(backend.most_blocks + 2, np.int64)


def matrix_of_blocks(
    pattern: Pattern, rows: int, columns: int, width: int, dtype: Any, backend: Backend, values: Any = None
) -> Any:
    """Return a CSR matrix whose entries are full blocks of `rows` x `columns`, with these values, or with some that are
    not set yet.

    Row r of node v begins at ``columns (rows indptr[v] + r length)``, where the node has so many blocks.

    Raises
    ------
    ValueError
        If it had 2^31 rows or columns, or more.
    """
    xp, (offsets, blocks) = backend.xp, pattern
    nodes, entries = len(offsets) - 1, len(blocks) * rows * columns
    if max(nodes * rows, width * columns) >= 2**31:
        raise ValueError("a level has more unknowns than indices of 32 bits have room for")
    offset = offset_type(entries)
    offsets = offsets.astype(offset, copy=False)
    if rows == columns == 1:
        indptr, indices = offsets, blocks
    else:
        indptr, indices = xp.empty(nodes * rows + 1, offset), xp.empty(entries, np.int32)
        run = backend.kernels(KERNELS, OFFSET=offset, LANES=1)
        run.list_blocks(len(indptr), rows, columns, offsets, blocks, indptr, indices)
    values = xp.empty(entries, dtype) if values is None else values
    return canonical_csr(values, indices, indptr, (nodes * rows, width * columns), backend)


# On the CPU.


@compile_inlined
def sort_columns(columns, begin, end, words):
    """Sort some columns, each of which is there once: where they are close together, by a bit for each number from the
    least to the largest one. `words` has room for the bits of all columns, and is zero before and afterwards.
    """
    least, most = np.int32(2**31 - 1), np.int32(0)
    for k in range(begin, end):
        least, most = min(least, columns[k]), max(most, columns[k])
    if (most - least) // 64 >= CLOSE * (end - begin):
        sort_in_place(columns, begin, end)
        return
    for k in range(begin, end):
        bit = np.uint32(columns[k] - least)
        words[bit // np.uint32(64)] |= np.uint64(1) << np.uint64(bit % np.uint32(64))
    place = begin
    for w in range((most - least) // 64 + 1):
        word, words[w] = words[w], 0
        while word:
            columns[place] = least + 64 * w + trailing_zeros(word)
            word &= word - np.uint64(1)
            place += 1


@KERNELS.resident
def transpose(
    threads, entries, n, width, indptr, columns, offsets, rows, places, numbers, rows_of_entries, found, control
):
    """Rows and places of the entries of each column, in order; the length of the longest column."""
    offsets[:] = 0
    for e in range(entries):
        if columns[e] >= 0:
            offsets[columns[e]] += 1
    before = longest = 0
    for c in range(width):
        count, offsets[c] = offsets[c], before
        before, longest = before + count, max(longest, count)
    for v in range(n or entries):
        for e in range(indptr[v] if n else v, indptr[v + 1] if n else v + 1):
            c = columns[e]
            if c >= 0:
                p = offsets[c]
                offsets[c] += 1
                rows[p], places[p] = v, e
    for c in range(width, 0, -1):
        offsets[c] = offsets[c - 1]
    offsets[0] = 0
    control[1] = longest


@KERNELS.resident
def gather(threads, n, begins, counts, found, indptr, columns, control):
    """Find where each row begins, and copy rows, one behind the other."""
    indptr[0] = 0
    for i in range(n):
        indptr[i + 1] = indptr[i] + counts[i + 1]
    copy_rows(0, n, begins, found, indptr, columns)


@compile_loop(offsets="indptr")
def copy_rows(first, end, begins, found, indptr, columns):
    """Copy some rows."""
    for i in range(first, end):
        for t in range(indptr[i + 1] - indptr[i]):
            columns[indptr[i] + t] = found[begins[i] + t]


@KERNELS.per_item
def find_longest_lists(first, end, indptr, members, list_indptr, lengths):
    """The length of the longest list among those of the members of each row."""
    for v in range(first, end):
        longest = np.int64(0)
        for e in range(indptr[v], indptr[v + 1]):
            longest = max(longest, list_indptr[members[e] + 1] - list_indptr[members[e]])
        lengths[v] = longest


@KERNELS.per_item
def list_blocks(first, end, rows, columns, indptr, blocks, result_indptr, result):
    """Row offsets and columns of a matrix of blocks. Behind the last row there is an empty one."""
    for i in range(first, end):
        v = i // rows
        before, length = indptr[v], indptr[min(v + 1, len(indptr) - 1)] - indptr[v]
        begin = (before * rows + (i - v * rows) * length) * columns
        result_indptr[i] = begin
        for t in range(length):
            for c in range(columns):
                result[begin + t * columns + c] = blocks[before + t] * columns + c
