"""What storage and kernels know of a layout: a record here, and a type Slice in CUDA, for which slices.cuh says what it
needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mcprecond.backends import Backend

#: The choices of all kernel sets that go through the slices of a triangle: the macros of the layouts.
LAYOUT_CHOICES = "SLICED_DIA=0 CUT_ROWS=0"
#: Row offsets and columns of a triangle, row by row.
Pattern = tuple[Any, Any]


@dataclass(frozen=True)
class Layout:
    """One way to store columns.

    Attributes
    ----------
    name : str
    columns_by_rows : function of (slices, indptr, columns, entries, backend)
        Returns the column of each entry of a triangle, row by row: int32, shape (entries,).
    macros : dict of str to int
        Macros for kernels that read columns, or go by the order of the entries.
    """

    name: str
    columns_by_rows: Callable[[Any, Any, Any, int, Backend], Any]
    macros: dict[str, int]
