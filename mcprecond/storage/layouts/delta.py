"""Base and offset: the columns of a triangle in two bytes each, as offsets from a few bases of their slice.

The rows of a slice are near each other, and mostly so are their neighbors of each color. So the columns of a slice lie
in few windows of equal width, each of which begins at a base: by rising column, the first base is the first column,
and the next one the first column behind the window. A column is stored as a code of 16 bits, the number of its base
times the width, plus how far it is behind the base. The width is a power of two, the largest one for which a slice has
no more bases than the code has room for; its logarithm is the shift.

The list of a triangle is an array of int32. It begins with where its codes are and three numbers without meaning; a
head for each slice and one more: where its bases begin, its shift, its first entry as an int64, and in a byte for each
of 32 rows how many entries these have. Then come the bases, and then the codes, two in each number, in the order in
which the entries are stored. Places are counted from the beginning of the array. Who goes through the columns of a
slice needs no row offsets.

A slice with too many bases is cut in two, if there are few of them. Short columns pay where sweeps take as long as it
takes to read the matrix, so for slices of many rows, and where bases are few.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import Backend, KernelSet, compile_part
from mcprecond.storage.layouts.interleaved import interleaved
from mcprecond.storage.layouts.layout import Layout, Pattern

KERNELS = KernelSet(__file__)

MOST_SHARE = 1 / 5  # of the bytes that codes save, for bases and where they begin
MOST_CUT = 1 / 50  # of the slices, each time
LEAST_SHIFT, MOST_SHIFT = 9, 12
NO_SHIFT = LEAST_SHIFT - 1  # there are too many bases for any
FIRST_HEAD, HEAD = 4, 12  # where heads are, and what one takes, in numbers
CUDA_CONSTANTS = {"LEAST_SHIFT": LEAST_SHIFT, "MOST_SHIFT": MOST_SHIFT, "FIRST_HEAD": FIRST_HEAD, "HEAD": HEAD}


def stored(slices: Any, patterns: list[Pattern], backend: Backend) -> tuple[Any, list[Any]] | None:
    """Return slices, some cut in two, and the list of each triangle, int32, or None where they do not pay."""
    return list_of_columns(slices, patterns, backend)


def columns_by_rows(slices: Any, indptr: Any, numbers: Any, entries: int, backend: Backend) -> Any:
    """Return the column of each entry of a triangle, row by row: int32, shape (entries,)."""
    columns, codes = backend.xp.empty(entries, np.int32), backend.xp.empty(entries, np.uint16)
    stored = codes_of(numbers, int(numbers[0]), entries)
    interleaved(slices, indptr, numbers, stored, codes, backend, back=True)
    run = backend.kernels(KERNELS, OFFSET=indptr.dtype, LANES=32)
    run.list_columns(len(slices) - 1, slices, indptr, numbers, codes, columns)
    return columns


#: The layout for slices whose columns are near a few bases.
DELTA = Layout("delta", stored, columns_by_rows, {"COMPRESSED_COLUMNS": 1}, {})


def list_of_columns(slices: Any, patterns: list[Pattern], backend: Backend) -> tuple[Any, list[Any]] | None:
    """Return slices and the list of each triangle, arrays of int32, or None where short columns do not pay.

    Parameters
    ----------
    slices : array of int32, shape (n_slices + 1,)
        Where slices begin, and n at the end; there is at least one. Those returned are the same or pieces of them.
    patterns : list of two pairs of arrays
        Row offsets and columns of the lower and of the upper triangle. Rows are sorted, and have at most 255 entries.
    """
    xp = backend.xp
    entries = sum(len(indices) for _, indices in patterns)
    run = backend.kernels(KERNELS, OFFSET=patterns[0][0].dtype, LANES=32)
    while True:
        n_slices = len(slices) - 1
        shifts, counts = xp.empty(2 * n_slices, np.int32), xp.zeros(2 * n_slices + 1, np.int64)
        run.count_bases(n_slices, slices, *patterns[0], *patterns[1], shifts, counts[1:])
        ends = xp.cumsum(counts)
        begins = slices[:-1][(shifts.reshape(2, -1) == NO_SHIFT).any(axis=0)]
        totals = backend.to_host(ends[::n_slices]).tolist()
        if 4 * totals[-1] + 16 * n_slices > MOST_SHARE * 2 * entries or len(begins) > MOST_CUT * n_slices:
            return None
        if len(begins) == 0:
            break
        following = slices[xp.searchsorted(slices, begins) + 1]
        middles = begins + (following - begins) // 2
        if bool((middles == begins).any()):
            return None  # a row by itself
        slices = xp.sort(xp.concatenate([slices, middles]))
    lists = []
    for t, (indptr, indices) in enumerate(patterns):
        begin = FIRST_HEAD + HEAD * (n_slices + 1) + totals[t + 1] - totals[t]
        numbers = xp.empty(begin + (len(indices) + 1) // 2, np.int32)
        codes = xp.empty(len(indices), np.uint16)
        run.list_bases(n_slices, slices, indptr, indices, shifts[t * n_slices :], ends[t * n_slices :], numbers, codes)
        interleaved(slices, indptr, indices, codes, codes_of(numbers, begin, len(codes)), backend, back=False)
        lists.append(numbers)
    return slices, lists


def codes_of(numbers: Any, begin: int, entries: int) -> Any:
    """The codes in a list, where they begin at a number."""
    return numbers[begin:].view(np.uint16)[:entries]


@compile_part
def bases_of(columns, shift):
    """The bases of columns, for windows of width 2 ** shift."""
    rising = np.sort(columns)
    bases = rising[:0].copy()
    while len(rising):
        bases = np.append(bases, rising[0])
        rising = rising[np.searchsorted(rising, np.int64(rising[0]) + (1 << shift)) :]
    return bases


@KERNELS.per_item_driver
def count_bases(n_slices, slices, lower_indptr, lower_indices, upper_indptr, upper_indices, shifts, counts):
    """The largest shift of each slice for which there is room for its bases, and how many these are: none, else 0."""
    for k in range(n_slices):
        first, end = slices[k], slices[k + 1]
        for t in range(2):
            if t == 0:
                columns = lower_indices[lower_indptr[first] : lower_indptr[end]]
            else:
                columns = upper_indices[upper_indptr[first] : upper_indptr[end]]
            shift, place = MOST_SHIFT, t * n_slices + k
            count = len(bases_of(columns, shift))
            while shift >= LEAST_SHIFT and count > 1 << (16 - shift):
                shift -= 1
                count = len(bases_of(columns, shift))
            shifts[place], counts[place] = shift, count if shift > NO_SHIFT else 0


@KERNELS.per_item_driver
def list_bases(n_slices, slices, indptr, indices, shifts, ends, numbers, codes):
    """Heads, bases, and codes row by row; ends[k] - ends[0] is the number of bases of the slices before k."""
    first_base = FIRST_HEAD + HEAD * (n_slices + 1)
    heads = numbers[FIRST_HEAD:first_base].reshape(-1, HEAD)
    numbers[0] = first_base + ends[n_slices] - ends[0]
    for k in range(n_slices + 1):
        place = first_base + ends[k] - ends[0]
        heads[k, 0] = place
        if k < n_slices:
            shift = heads[k, 1] = shifts[k]
            first, end = indptr[slices[k]], indptr[slices[k + 1]]
            heads[k, 2:4].view(np.int64)[0] = first
            lengths = heads[k, 4:].view(np.uint8)
            lengths[:] = 0
            for i in range(slices[k], slices[k + 1]):
                lengths[i - slices[k]] = indptr[i + 1] - indptr[i]
            bases = bases_of(indices[first:end], shift)
            numbers[place : place + len(bases)] = bases
            for e in range(first, end):
                number = np.searchsorted(bases, indices[e], side="right") - 1
                codes[e] = (number << shift) + (indices[e] - bases[number])


@KERNELS.per_item_driver
def list_columns(n_slices, slices, indptr, numbers, codes, columns):
    """The columns of each row, from its slice's bases and its codes."""
    heads = numbers[FIRST_HEAD : FIRST_HEAD + HEAD * (n_slices + 1)].reshape(-1, HEAD)
    for k in range(n_slices):
        first, shift = heads[k, 0], heads[k, 1]
        for e in range(indptr[slices[k]], indptr[slices[k + 1]]):
            number = np.int64(codes[e]) >> shift
            columns[e] = numbers[first + number] + np.int64(codes[e]) - (number << shift)
