"""The schedule of the sweeps: the slices in which a color is swept.

On a GPU a slice is a run of at most 32 rows of one color, the work of one warp: with m rows, rounded up to a power of
two, every row has 32 / m threads, its lanes. Large colors have slices of many rows, which reads neighboring rows
together; small ones have slices of few rows, so that all warps have work. A row that is much longer than those around
it is a slice by itself.

How the entries of a slice are stored is the matter of a layout: see storage/layouts.

On the CPU a slice is a whole color.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from mcprecond.backends import Backend, KernelSet

KERNELS = KernelSet(__file__)

MOST_ROWS = 32  # of a slice
LONG = 64  # entries per lane that make a row a slice by itself
USUAL_ROWS, USUAL_ENTRIES = 4.5, 27  # of a slice where a color has a row per warp, and of such a row
CUDA_CONSTANTS = {"MOST_ROWS": MOST_ROWS, "LONG": LONG}


def cut_slices(
    offsets: np.ndarray, colors: Any, lower_indptr: Any, upper_indptr: Any, backend: Backend, rows: np.ndarray
) -> Any:
    """Return where slices begin, and n at the end: int32, on the device.

    Parameters
    ----------
    offsets : numpy.ndarray of int64, shape (n_colors + 1,)
        Where colors begin, in color order.
    colors : array of int32, shape (n,)
        The color of each row, in color order.
    lower_indptr, upper_indptr : array of int, shape (n + 1,)
        Row offsets of the triangles, in color order.
    rows : numpy.ndarray of int32, shape (n_colors,)
        How many rows the slices of each color have: a power of two. The CPU does not ask.
    """
    xp, n = backend.xp, len(colors)
    if not backend.resident_warps:
        return xp.asarray(offsets, dtype=np.int32)
    begins = xp.ones(n + 1, np.bool_)  # the last one stays
    run = backend.kernels(KERNELS, OFFSET=lower_indptr.dtype)
    run.mark_slices(n, colors, xp.asarray(offsets), xp.asarray(rows), lower_indptr, upper_indptr, begins)
    return xp.flatnonzero(begins).astype(np.int32)


def rows_per_slice(sizes: np.ndarray, entries: float, warps: int) -> np.ndarray:
    """Choose the rows per slice for colors of the given sizes in a matrix with so many entries per row: powers of two.

    The more rows a color has per warp, the more a slice gets, and the fewer, the longer these are: by powers that were
    measured on FENL matrices of several sizes and on elasticity. But more if a row had more lanes than entries in a
    triangle, and fewer if a lane had more than half of LONG.
    """
    most_lanes = 2.0 ** np.ceil(np.log2(max(entries / 2, 1)))
    least_lanes = 2.0 ** np.ceil(np.log2(max(entries / LONG, 1)))
    wanted = USUAL_ROWS * (sizes / max(warps, 1)) ** (1 / 2) * (USUAL_ENTRIES / max(entries, 1)) ** (1 / 3)
    rows = 2.0 ** np.round(np.log2(np.maximum(wanted, 1)))
    return np.clip(np.clip(rows, MOST_ROWS / most_lanes, MOST_ROWS / least_lanes), 1, MOST_ROWS).astype(np.int32)


@KERNELS.twin
def mark_slices(n, colors, offsets, rows_per_slice, lower_indptr, upper_indptr, begins):
    """Where a slice begins: at every so many rows of a color, and at and behind every long row."""
    for i in prange(n):
        color = colors[i]
        rows = rows_per_slice[color]
        longest = LONG * (MOST_ROWS // rows)
        begin = (i - offsets[color]) % rows == 0
        for j in range(max(i - 1, 0), i + 1):
            begin |= lower_indptr[j + 1] - lower_indptr[j] > longest or upper_indptr[j + 1] - upper_indptr[j] > longest
        begins[i] = begin
