"""Sliced CSR: a column of four bytes for each entry."""

from __future__ import annotations

from typing import Any

from mcprecond.backends import Backend
from mcprecond.storage.layouts.interleaved import interleave_entries
from mcprecond.storage.layouts.layout import Layout, Pattern

IN_PIECES = {"CUT_ROWS": 1}


def store_columns(slices: Any, patterns: list[Pattern], backend: Backend, **macros: int) -> list[Any]:
    """Return the columns of each triangle in the order of its entries."""
    if not backend.resident_warps:  # row by row, as they are
        return [columns for _, columns in patterns]
    return [
        interleave_entries(slices, indptr, columns, columns, backend.xp.empty_like(columns), backend, False, **macros)
        for indptr, columns in patterns
    ]


def columns_by_rows(slices: Any, indptr: Any, columns: Any, entries: int, backend: Backend) -> Any:
    """Return the column of each entry of a triangle, row by row: int32, shape (entries,)."""
    macros = IN_PIECES if slices.ndim == 2 else {}
    return interleave_entries(slices, indptr, columns, columns, backend.xp.empty_like(columns), backend, True, **macros)


#: The layout that serves any matrix.
CSR = Layout("csr", columns_by_rows, {})
#: CSR where slices are records, since long rows are cut.
CSR_IN_PIECES = Layout("csr", columns_by_rows, IN_PIECES)
