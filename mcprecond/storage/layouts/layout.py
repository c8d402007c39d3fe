"""What storage and kernels know of a layout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mcprecond.backends import Backend

#: Row offsets and columns of a triangle, row by row.
Pattern = tuple[Any, Any]


@dataclass(frozen=True)
class Layout:
    """One way to store columns.

    Attributes
    ----------
    name : str
    stored : function of (slices, patterns, backend)
        Returns the slices, perhaps cut into smaller ones, and what stands for the columns of each triangle; None where
        this layout does not pay. ``slices`` is an array of int32 that says where slices begin, and n at the end;
        ``patterns`` has row offsets and columns of both triangles.
    columns_by_rows : function of (slices, indptr, columns, entries, backend)
        Returns the column of each entry of a triangle, row by row: int32, shape (entries,).
    macros, order_macros : dict of str to int
        What kernels that read columns are compiled with; and those on which the order of the entries depends.
    """

    name: str
    stored: Callable[[Any, list[Pattern], Backend], tuple[Any, list[Any]] | None]
    columns_by_rows: Callable[[Any, Any, Any, int, Backend], Any]
    macros: dict[str, int]
    order_macros: dict[str, int]
