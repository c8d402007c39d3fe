"""The rows of a rank, and those around them that other ranks have, as a matrix of their own.

What a rank computes for its rows, such as a part of a coarse matrix, is then what one process would compute: it has all
rows that this depends on. Ranks compute for the rows in the overlap, too, and do not use that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import offset_type
from mcprecond.interop.petsc_halo import Halo
from mcprecond.interop.petsc_matrix import Rows
from mcprecond.matrix import canonical_csr
from mcprecond.preconditioners.setup import admit

#: How far rows are fetched from. A row of the coarse matrix adds up rows of A P at distance 1, to which rows of P at
#: distance 2 contribute. These need whole rows of A, and the diagonal and the length of the rows at distance 3, by
#: which it is decided what is strong.
LAYERS = 3


class Overlap:
    """The matrix of a rank's rows and of those around them, in nodes of some unknowns.

    The unknowns of this rank come first, then layers of those of other ranks: the neighbors of its rows, their
    neighbors, and so on. The last layer is of unknowns whose rows are not known: these have what mirrors the rows
    before, and ones on the diagonal.

    Parameters
    ----------
    rows : Rows
    b : int
        Unknowns of a node.

    Attributes
    ----------
    numbers : array of int64
        The global numbers of the unknowns that follow those of this rank.
    rows : Rows
    matrix : AdmittedMatrix
        With the values of these rows.
    """

    def __init__(self, rows: Rows, b: int) -> None:
        self.n, self.first, self.backend = rows.n, rows.first, rows.backend
        self.alone, xp = rows.ranks.comm.size == 1, self.backend.xp
        self.layers: list[Any] = []
        self.numbers = xp.empty(0, np.int64)
        if self.alone:
            self._take(rows, None)
            return
        layer, parts = whole_nodes(xp.asarray(rows.ghosts), b, xp), []
        for _ in range(LAYERS):
            self.layers.append(self.backend.to_host(layer))
            parts.append(rows.fetch(self.layers[-1]))
            self.numbers = xp.concatenate((self.numbers, layer))
            columns = whole_nodes(parts[-1][1], b, xp)
            outside = columns[(columns < self.first) | (columns >= self.first + self.n)]
            layer = outside[~xp.isin(outside, self.numbers)]
        self.numbers = xp.concatenate((self.numbers, layer))
        self._order = xp.argsort(self.numbers)
        lengths, columns, values = (xp.concatenate(part) for part in zip(*parts, strict=True))
        self._find_pattern(rows, lengths, columns)
        # The halo has its numbers in ascending order.
        self._halo = Halo(rows.ranks, self.first, self.n, self.backend.to_host(self.numbers[self._order]), np.float64)
        self._take(rows, values)

    def _find_pattern(self, rows: Rows, lengths: Any, column: Any) -> None:
        """Where the entries of the whole matrix are, and which of the given ones goes where; see `Rows.fetch`."""
        xp, known = self.backend.xp, len(lengths)
        row = xp.searchsorted(xp.cumsum(lengths), xp.arange(len(column)), side="right")
        column = self._local(column)
        # Of what is fetched, behind a one.
        source = xp.arange(1, len(row) + 1)
        outermost, new = xp.flatnonzero(column >= self.n + known), xp.arange(known, len(self.numbers))
        row, column, source = (
            xp.concatenate(triple)
            for triple in (
                (row, column[outermost] - self.n, new),
                (column, row[outermost] + self.n, self.n + new),
                (source, source[outermost], xp.zeros(len(new), np.int64)),
            )
        )
        size = self.n + len(self.numbers)
        order = xp.argsort(row * size + column)
        self._source = source[order]
        of_rows = xp.concatenate((xp.arange(self.n), self._local(xp.asarray(rows.ghosts)))).astype(np.int32)
        self.indices = xp.concatenate((of_rows[rows.whole.indices], column[order].astype(np.int32)))
        behind = rows.entries + xp.cumsum(xp.bincount(row, minlength=len(self.numbers)))
        self.indptr = xp.concatenate((rows.whole.indptr, behind)).astype(offset_type(len(self.indices)), copy=False)

    def _local(self, columns: Any) -> Any:
        """The numbers here of columns by their global numbers."""
        xp = self.backend.xp
        mine = (columns >= self.first) & (columns < self.first + self.n)
        place = xp.searchsorted(self.numbers[self._order], columns)
        return xp.where(mine, columns - self.first, self.n + xp.append(self._order, 0)[place])

    def take(self, rows: Rows) -> None:
        """Take the values of these rows, in the same pattern. Collective."""
        values = None if self.alone else self.backend.xp.concatenate([rows.fetch(layer)[2] for layer in self.layers])
        self._take(rows, values)

    def _take(self, rows: Rows, fetched_values: Any) -> None:
        self.rows = rows
        if self.alone:
            self.matrix, _ = admit(rows.whole, finite=True)
            return
        xp = self.backend.xp
        around = xp.concatenate((xp.ones(1, rows.dtype), fetched_values))
        values = xp.concatenate((rows.whole.data, around[self._source]))
        shape = (len(self.indptr) - 1,) * 2
        self.matrix, _ = admit(canonical_csr(values, self.indices, self.indptr, shape, self.backend), finite=True)

    def extend(self, values: Any) -> Any:
        """An array with what each rank has for its unknowns, shape (n, m), and what others have behind. Collective."""
        if self.alone:
            return values
        extended = self.backend.xp.empty((self.n + len(self.numbers), values.shape[1]), values.dtype)
        for column, of_ours in zip(extended.T, values.T, strict=True):
            x = self._halo.new_vector()
            x[: self.n] = of_ours
            self._halo.fill(x)
            column[: self.n], column[self.n + self._order] = of_ours, x[self.n :]
        return extended


def whole_nodes(numbers: Any, b: int, xp: Any) -> Any:
    """The unknowns of all nodes that have some of these unknowns, ascending."""
    return (xp.unique(numbers.astype(np.int64) // b)[:, None] * b + xp.arange(b)).reshape(-1)
