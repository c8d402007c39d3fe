"""Layouts: how the columns of a triangle are stored, and in which order its entries lie.

Sweeps over large matrices take as long as it takes to read the matrix. So a GPU stores columns in fewer bytes where
that pays: as diagonals. Kernels are compiled for the layout by its macros.
"""

from __future__ import annotations

from typing import Any

from mcprecond.backends import Backend
from mcprecond.storage.layouts import csr
from mcprecond.storage.layouts.csr import CSR, CSR_IN_PIECES
from mcprecond.storage.layouts.dia import DIA, list_of_diagonals
from mcprecond.storage.layouts.interleaved import interleave_entries
from mcprecond.storage.layouts.layout import LAYOUT_CHOICES, Layout, Pattern

__all__ = ["CSR", "CSR_IN_PIECES", "DIA", "LAYOUT_CHOICES", "Layout", "Pattern", "choose_layout", "interleave_entries"]

# Columns are stored in fewer bytes only where slices have so many rows on average, and colors so many slices per warp:
# with less, reading columns is not what a sweep spends its time on.
LEAST_ROWS, LEAST_SLICES = 12, 0.25


def choose_layout(
    slices: Any, patterns: list[Pattern], n_colors: int, rows_are_sorted: bool, backend: Backend
) -> tuple[Layout, list[Any]]:
    """Choose a layout for both triangles, and store their columns.

    Parameters
    ----------
    slices : array of int32, shape (n_slices + 1,) or (n_slices + 1, 4)
        Where slices begin, and n at the end; or records where long rows are cut.
    patterns : list of two pairs of arrays
        Row offsets and columns of the lower and of the upper triangle, row by row.
    n_colors : int
    rows_are_sorted : bool
        Whether the columns of every row rise, and rows have at most 255 entries: only such rows go into fewer bytes.

    Returns
    -------
    layout : Layout
    columns : list of two arrays
        What the layout stores in place of columns.
    """
    if slices.ndim == 2:
        return CSR_IN_PIECES, csr.store_columns(slices, patterns, backend, **CSR_IN_PIECES.macros)
    n, n_slices, warps = len(patterns[0][0]) - 1, len(slices) - 1, backend.resident_warps
    pays = rows_are_sorted and n >= LEAST_ROWS * n_slices and n_slices >= LEAST_SLICES * warps * n_colors
    if warps and n and pays and (lists := list_of_diagonals(slices, patterns, backend)):
        return DIA, lists
    return CSR, csr.store_columns(slices, patterns, backend)
