"""A strict triangle of the matrix in color order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mcprecond.backends import unsigned


@dataclass
class Triangle:
    """A strict triangle of the matrix in color order.

    Attributes
    ----------
    indptr : array of int32 or int64, shape (n + 1,)
        Row offsets.
    columns : array of int32, shape (entries,), (pairs, 2) or (numbers,)
        The column of each entry, or what the layout stores in place of columns: see storage/layouts.
    values : array, shape (entries,)
        The entries in the order of the layout; on a GPU by rising column in all but long rows, otherwise in the order
        that A has.
    source : array of uint8, uint16 or uint32, shape (entries,)
        Which entry of its row in A each one is, so that an update only fetches values.
    """

    indptr: Any
    columns: Any
    values: Any
    source: Any

    @property
    def rows(self) -> tuple[Any, Any, Any]:
        """Row offsets, columns and values, as sweeps take them."""
        return unsigned(self.indptr), unsigned(self.columns), self.values

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self.indptr.nbytes + self.columns.nbytes + self.values.nbytes + self.source.nbytes

    def rows_of_entries(self, xp: Any) -> Any:
        """The row of each entry, row by row, in color order."""
        return xp.searchsorted(self.indptr, xp.arange(len(self.values)), side="right").astype(np.int32) - 1
