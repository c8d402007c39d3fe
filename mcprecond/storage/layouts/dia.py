"""Sliced DIA: the columns of a triangle as diagonals, each stored once for all rows of a slice that lie on it.

On a structured mesh in natural order, consecutive rows of a color have consecutive rows of another color as neighbors,
so that the columns of a slice lie on few diagonals. With the rows of a slice numbered from 0, a diagonal consists of a
shift and of the set of rows that have an entry in column shift + row. It takes 8 bytes, where plain columns take 4 for
each entry, and sweeps over large matrices take as long as it takes to read the matrix.

A slice's values are stored diagonal by diagonal, by rising shift, without padding. Lane l of each row, of at most 4,
takes the entries on diagonals l, l + lanes, l + 2 lanes, ...; neighboring threads have neighboring rows.

The list of a triangle is an array of pairs of int32. It begins with a head for each slice and one more, of two pairs:
the first row; the first diagonal, counted in pairs from the beginning of the array; and as an int64 the first value.
Then come the diagonals: the shift, and the rows as the bits of an unsigned number. The last diagonals of a slice may
have no rows. While a warp works on one slice it prefetches the head and the diagonals of its next one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import Backend, KernelSet, compile_part
from mcprecond.storage.layouts.layout import Layout, Pattern

KERNELS = KernelSet(__file__, "OFFSET (LANES)")

#: A slice of diagonals has rows x diagonals places. Diagonals pay if there are on average at most USUAL_PLACES for each
#: entry; counting stops at a slice that has more than MOST_PLACES.
USUAL_PLACES, MOST_PLACES = 2, 4
PAIRS_OF_HEAD = 2
CUDA_CONSTANTS = {"PAIRS_OF_HEAD": PAIRS_OF_HEAD}


def columns_by_rows(slices: Any, indptr: Any, pairs: Any, entries: int, backend: Backend) -> Any:
    """Return the column of each entry of a triangle, row by row: int32, shape (entries,)."""
    columns = backend.xp.empty(entries, np.int32)
    run = backend.kernels(KERNELS, OFFSET=indptr.dtype, LANES=32)
    run.list_columns(len(slices) - 1, slices, indptr, pairs, columns)
    return columns


#: The layout for slices whose rows lie on few diagonals.
DIA = Layout("dia", columns_by_rows, {"SLICED_DIA": 1})


def list_of_diagonals(slices: Any, patterns: list[Pattern], backend: Backend) -> list[Any] | None:
    """Return the list of each triangle, int32 arrays of shape (pairs, 2), or None where diagonals do not pay.

    Parameters
    ----------
    slices : array of int32, shape (n_slices + 1,)
        Where slices begin, and n at the end; there is at least one.
    patterns : list of two pairs of arrays
        Row offsets and columns of the lower and of the upper triangle. Rows are sorted.
    """
    xp, n_slices = backend.xp, len(slices) - 1
    n, entries = len(patterns[0][0]) - 1, sum(len(indices) for _, indices in patterns)
    run = backend.kernels(KERNELS, OFFSET=patterns[0][0].dtype, LANES=32)
    counts = xp.zeros(2 * n_slices + 1, np.int64)
    run.count_diagonals(n_slices, slices, *patterns[0], *patterns[1], MOST_PLACES, counts[1:])
    ends = xp.cumsum(counts)
    totals = backend.to_host(ends[::n_slices]).tolist()
    if totals[-1] * n > USUAL_PLACES * entries * n_slices:
        return None
    lists = []
    for t, (indptr, indices) in enumerate(patterns):
        pairs = xp.zeros((PAIRS_OF_HEAD * (n_slices + 1) + totals[t + 1] - totals[t], 2), np.int32)
        run.list_diagonals(n_slices, slices, indptr, indices, ends[t * n_slices : (t + 1) * n_slices + 1], pairs)
        lists.append(pairs)
    return lists


@compile_part
def shifts_of(first, end, indptr, indices):
    """The shift of each entry of a slice, row by row."""
    shifts = indices[indptr[first] : indptr[end]].copy()
    for i in range(first, end):
        shifts[indptr[i] - indptr[first] : indptr[i + 1] - indptr[first]] -= i - first
    return shifts


@KERNELS.per_item_driver
def count_diagonals(n_slices, slices, lower_indptr, lower_indices, upper_indptr, upper_indices, most_places, counts):
    """Count the diagonals of each slice; for slices with very many, the number of entries stands for it."""
    for k in range(n_slices):
        first, end = slices[k], slices[k + 1]
        for t in range(2):
            if t == 0:
                shifts = shifts_of(first, end, lower_indptr, lower_indices)
            else:
                shifts = shifts_of(first, end, upper_indptr, upper_indices)
            n_diagonals = len(np.unique(shifts))
            few = n_diagonals < most_places * len(shifts) // (end - first)
            counts[t * n_slices + k] = n_diagonals if few else len(shifts)


@KERNELS.per_item_driver
def list_diagonals(n_slices, slices, indptr, indices, ends, pairs):
    """List heads and diagonals; ends[k] - ends[0] is the number of diagonals of the slices before k."""
    heads = pairs.reshape(-1)[: 4 * (n_slices + 1)].reshape(-1, 4)
    values = heads.reshape(-1).view(np.int64)
    for k in range(n_slices + 1):
        heads[k, 0] = slices[k]
        heads[k, 1] = PAIRS_OF_HEAD * (n_slices + 1) + ends[k] - ends[0]
        values[2 * k + 1] = indptr[slices[k]]
        if k < n_slices:
            first, end = slices[k], slices[k + 1]
            diagonals = pairs[heads[k, 1] :]
            shifts = np.unique(shifts_of(first, end, indptr, indices))
            for number in range(len(shifts)):
                diagonals[number, 0] = shifts[number]
            for i in range(first, end):
                for e in range(indptr[i], indptr[i + 1]):
                    number = np.searchsorted(shifts, indices[e] - (i - first))
                    diagonals[number, 1] |= np.int32(1) << np.int32(i - first)


@KERNELS.per_item_driver
def list_columns(n_slices, slices, indptr, pairs, columns):
    """The columns of each row, from its slice's diagonals."""
    heads = pairs.reshape(-1)[: 4 * (n_slices + 1)].reshape(-1, 4)
    for k in range(n_slices):
        for i in range(slices[k], slices[k + 1]):
            row, e = np.int32(i - slices[k]), indptr[i]
            for d in range(heads[k, 1], heads[k + 1, 1]):
                if pairs[d, 1] >> row & 1:
                    columns[e] = pairs[d, 0] + row
                    e += 1
