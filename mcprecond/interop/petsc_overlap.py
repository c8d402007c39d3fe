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
#: which it is decided what is strong. By points, rows of A P at distance 2 are added up, to which rows of P at distance
#: 3 contribute. The ranks that have these rows of P send them.
LAYERS = 3


class Overlap:
    """The matrix of a rank's rows and of those around them, in nodes of some unknowns.

    The unknowns of this rank come first. Behind them, in ascending order, are those of other ranks in some layers: the
    neighbors of its rows, their neighbors, and so on. The rows of the last layer are not known: these have what mirrors
    the other rows, and ones on the diagonal.

    Parameters
    ----------
    rows : Rows
    b : int
        Unknowns of a node.

    Attributes
    ----------
    numbers : array of int64
        The global numbers of the unknowns that follow those of this rank.
    layers : list of array of int64, on the host
        For each layer of known rows, the global numbers of its unknowns.
    places : array of int64
        The row in the matrix of each of these unknowns, layer by layer.
    rows : Rows
    matrix : AdmittedMatrix
        With the values of these rows.
    """

    def __init__(self, rows: Rows, b: int) -> None:
        self.n, self.first, self.backend = rows.n, rows.first, rows.backend
        xp, self.layers = self.backend.xp, list[Any]()
        self.numbers = xp.empty(0, np.int64)
        layer, parts = whole_nodes(xp.asarray(rows.ghosts), b, xp), []
        for _ in range(LAYERS):
            self.layers.append(self.backend.to_host(layer))
            parts.append(rows.fetch(self.layers[-1]))
            self.numbers = xp.concatenate((self.numbers, layer))
            columns = whole_nodes(parts[-1][1], b, xp)
            outside = columns[(columns < self.first) | (columns >= self.first + self.n)]
            layer = outside[~xp.isin(outside, self.numbers)]
        known = self.numbers
        self.numbers = xp.sort(xp.concatenate((known, layer)))
        self.places = self.n + xp.searchsorted(self.numbers, known)
        lengths, columns, values = (xp.concatenate(part) for part in zip(*parts, strict=True))
        self._find_pattern(rows, lengths, columns)
        self._halo = Halo(rows.ranks, self.first, self.n, self.backend.to_host(self.numbers), np.float64)
        self._take(rows, values)

    def _find_pattern(self, rows: Rows, lengths: Any, columns: Any) -> None:
        """Where the entries of the whole matrix are, and which of the given ones goes where; see `Rows.fetch`."""
        xp, behind = self.backend.xp, len(self.numbers)
        row, column = self.rows_of_fetched(lengths), self._local(columns)
        # Of what is fetched, behind a one.
        source = xp.arange(1, len(row) + 1)
        is_known = xp.zeros(self.n + behind, bool)
        is_known[: self.n] = is_known[self.places] = True
        outermost, new = xp.flatnonzero(~is_known[column]), xp.flatnonzero(~is_known)
        row, column, source = (
            xp.concatenate(triple)
            for triple in (
                (row, column[outermost], new),
                (column, row[outermost], new),
                (source, source[outermost], xp.zeros(len(new), np.int64)),
            )
        )
        order = xp.argsort(row * (self.n + behind) + column)
        self._source = source[order]
        of_rows = xp.concatenate((xp.arange(self.n), self._local(xp.asarray(rows.ghosts)))).astype(np.int32)
        self.indices = xp.concatenate((of_rows[rows.whole.indices], column[order].astype(np.int32)))
        ends = rows.entries + xp.cumsum(xp.bincount(row - self.n, minlength=behind))
        self.indptr = xp.concatenate((rows.whole.indptr, ends)).astype(offset_type(len(self.indices)), copy=False)

    def rows_of_fetched(self, lengths: Any) -> Any:
        """Return the row in the matrix of each entry of the fetched rows, which have these lengths."""
        xp, ends = self.backend.xp, self.backend.xp.cumsum(lengths)
        entries = int(ends[-1]) if len(ends) else 0
        return self.places[xp.searchsorted(ends, xp.arange(entries), side="right")]

    def _local(self, columns: Any) -> Any:
        """The numbers here of columns by their global numbers."""
        xp = self.backend.xp
        mine = (columns >= self.first) & (columns < self.first + self.n)
        return xp.where(mine, columns - self.first, self.n + xp.searchsorted(self.numbers, columns))

    def take(self, rows: Rows) -> None:
        """Take the values of these rows, in the same pattern. Collective."""
        self._take(rows, self.backend.xp.concatenate([rows.fetch(layer)[2] for layer in self.layers]))

    def _take(self, rows: Rows, fetched_values: Any) -> None:
        self.rows = rows
        xp = self.backend.xp
        around = xp.concatenate((xp.ones(1, rows.dtype), fetched_values))
        values = xp.concatenate((rows.whole.data, around[self._source]))
        shape = (len(self.indptr) - 1,) * 2
        self.matrix, _ = admit(canonical_csr(values, self.indices, self.indptr, shape, self.backend), finite=True)

    def extend(self, values: Any) -> Any:
        """An array with what each rank has for its unknowns, shape (n, m), and what others have behind. Collective."""
        extended = self.backend.xp.empty((self.n + len(self.numbers), values.shape[1]), values.dtype)
        for column, of_ours in zip(extended.T, values.T, strict=True):
            x = self._halo.new_vector()
            x[: self.n] = of_ours
            self._halo.fill(x)
            column[...] = x
        return extended


def whole_nodes(numbers: Any, b: int, xp: Any) -> Any:
    """The unknowns of all nodes that have some of these unknowns, ascending."""
    return (xp.unique(numbers.astype(np.int64) // b)[:, None] * b + xp.arange(b)).reshape(-1)
