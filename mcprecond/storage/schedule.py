"""The schedule of the sweeps: the slices in which a color is swept.

On a GPU a slice is a run of at most 32 rows of one color, the work of one warp: with m rows, rounded up to a power of
two, every row has 32 / m threads, its lanes. Large colors have slices of many rows, which reads neighboring rows
together; small ones have slices of few rows, so that all warps have work. A row that is much longer than those around
it is a slice by itself.

A warp would take a millisecond for a row of 10^5 entries, while those that need the row wait. So a row with more than
SWEPT_PIECE entries in a triangle is cut into pieces, each the work of one warp, and the last warp to be done adds up
the sums of all pieces, in the order of the pieces. Then the slices are listed as records of four numbers: the first row
and the end; or the row, minus the number of its pieces, the number of this piece among them, and how many pieces of
earlier rows come before.

How the entries of a slice are stored is the matter of a layout: see storage/layouts.

On the CPU a slice is a whole color, whose rows the threads share.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import Backend, KernelSet
from mcprecond.backends.inputs import count_true

KERNELS = KernelSet(__file__, "OFFSET")

MOST_ROWS = 32  # of a slice
LONG = 64  # entries per lane that make a row a slice by itself
SWEPT_PIECE = 512  # entries of a piece; a row with more is a slice by itself, too
USUAL_ROWS, USUAL_ENTRIES = 4.5, 27  # of a slice where a color has a row per warp, and of such a row
CUDA_CONSTANTS = {"MOST_ROWS": MOST_ROWS, "LONG": LONG, "SWEPT_PIECE": SWEPT_PIECE}


def cut_slices(offsets: np.ndarray, lower_indptr: Any, upper_indptr: Any, backend: Backend, rows: np.ndarray) -> Any:
    """Return where slices begin, and n at the end: int32, on the device.

    Parameters
    ----------
    offsets : numpy.ndarray of int64, shape (n_colors + 1,)
        Where colors begin, in color order.
    lower_indptr, upper_indptr : array of int, shape (n + 1,)
        Row offsets of the triangles, in color order.
    rows : numpy.ndarray of int32, shape (n_colors,)
        How many rows the slices of each color have: a power of two. Not read on the CPU.
    """
    xp, n = backend.xp, len(lower_indptr) - 1
    if not backend.resident_warps:
        return xp.asarray(offsets, dtype=np.int32)
    begins = xp.ones(n + 1, np.bool_)  # the last one stays
    run = backend.kernels(KERNELS, OFFSET=lower_indptr.dtype)
    run.mark_slices(n, len(rows), xp.asarray(offsets), xp.asarray(rows), lower_indptr, upper_indptr, begins)
    return xp.flatnonzero(begins).astype(np.int32)


def cut_long_rows(slices: Any, lower_indptr: Any, upper_indptr: Any, backend: Backend) -> tuple[Any, int]:
    """Return the slices as records, long rows in pieces, and the number of these.

    The last record stands for the end.
    """
    xp, begins = backend.xp, slices.astype(np.int64)
    first, end = begins[:-1], begins[1:]
    lengths = xp.maximum(*(indptr[first + 1] - indptr[first] for indptr in (lower_indptr, upper_indptr)))
    pieces = xp.where(end - first == 1, -(-lengths // SWEPT_PIECE), 1).clip(1)
    ends = xp.cumsum(pieces)
    numbers = xp.arange(int(ends[-1]))
    owner = xp.searchsorted(ends, numbers, side="right")
    of_row, piece = pieces[owner], numbers - (ends - pieces)[owner]
    is_cut = of_row > 1
    before = xp.cumsum(is_cut) - 1 - piece  # means nothing for slices that are not cut
    records = xp.empty((len(numbers) + 1, 4), np.int32)
    records[:-1, 0], records[:-1, 1] = first[owner], xp.where(is_cut, -of_row, end[owner])
    records[:-1, 2], records[:-1, 3] = piece, xp.where(is_cut, before, 0)
    records[-1] = xp.asarray([len(lower_indptr) - 1, len(lower_indptr) - 1, 0, 0], dtype=np.int32)
    return records, count_true(is_cut, xp)


def rows_per_slice(sizes: np.ndarray, entries: float, warps: int) -> np.ndarray:
    """Choose the rows per slice for colors of the given sizes in a matrix with so many entries per row: powers of two.

    Slices have more rows where a color has more rows per warp, and fewer where rows are longer: by powers that were
    measured on FENL matrices of several sizes and on elasticity. A slice gets more rows than that if a row would have
    more lanes than entries in a triangle, and fewer if a lane would have more than half of LONG entries.
    """
    most_lanes = 2.0 ** np.ceil(np.log2(max(entries / 2, 1)))
    least_lanes = 2.0 ** np.ceil(np.log2(max(entries / LONG, 1)))
    wanted = USUAL_ROWS * (sizes / max(warps, 1)) ** (1 / 2) * (USUAL_ENTRIES / max(entries, 1)) ** (1 / 3)
    rows = 2.0 ** np.round(np.log2(np.maximum(wanted, 1)))
    return np.clip(np.clip(rows, MOST_ROWS / most_lanes, MOST_ROWS / least_lanes), 1, MOST_ROWS).astype(np.int32)


@KERNELS.per_item
def mark_slices(first, end, n_colors, offsets, rows_per_slice, lower_indptr, upper_indptr, begins):
    """Where a slice begins: at every so many rows of a color, and at and behind every long row."""
    color = 0
    for i in range(first, end):
        while color + 1 < n_colors and offsets[color + 1] <= i:
            color += 1
        rows = rows_per_slice[color]
        longest = min(LONG * (MOST_ROWS // rows), SWEPT_PIECE)
        begin = (i - offsets[color]) % rows == 0
        for j in range(max(i - 1, 0), i + 1):
            begin |= lower_indptr[j + 1] - lower_indptr[j] > longest or upper_indptr[j + 1] - upper_indptr[j] > longest
        begins[i] = begin
