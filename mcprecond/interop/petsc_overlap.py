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

    The unknowns of this rank come first. Behind them are those of other ranks, layer by layer: the neighbors of its
    rows, their neighbors, and so on; in each layer they are in ascending order. The rows of the last layer are not
    known: these have what mirrors the other rows, and ones on the diagonal.

    Parameters
    ----------
    rows : Rows
    b : int
        Unknowns of a node.

    Attributes
    ----------
    requests : list of Request
        For the unknowns of each layer.
    numbers : array of int64
        Their global numbers.
    ends : list of int
        ``ends[k]`` is the number of rows of this rank and of the first k layers around it.
    rows : Rows
    matrix : AdmittedMatrix
        With the values of these rows.
    """

    def __init__(self, rows: Rows, b: int) -> None:
        self.rows, self.n, self.first, self.backend = rows, rows.n, rows.first, rows.backend
        xp, to_host, parts = self.backend.xp, self.backend.to_host, []
        layers = [whole_nodes(xp.asarray(rows.ghosts), b, xp)]
        self.requests = [rows.request(to_host(layers[0]))]
        for _ in range(LAYERS):
            parts.append(rows.fetch(self.requests[-1]))
            columns = parts[-1][1]
            outside = whole_nodes(columns[(columns < self.first) | (columns >= self.first + self.n)], b, xp)
            layers.append(outside[~xp.isin(outside, xp.concatenate(layers))])
            self.requests.append(rows.request(to_host(layers[-1])))
        self.numbers = xp.concatenate(layers)
        self.ends = [self.n, *(self.n + np.cumsum([len(layer) for layer in layers])).tolist()]
        lengths, columns, values = (xp.concatenate(part) for part in zip(*parts, strict=True))
        self._find_pattern(rows, lengths, columns)
        self._halo = Halo(rows.ranks, self.n, self.requests, np.float64)
        self._take(values)

    def _find_pattern(self, rows: Rows, lengths: Any, columns: Any) -> None:
        """Where the entries of the whole matrix are, and which of the given ones goes where; see `Rows.fetch`."""
        xp, known, end = self.backend.xp, self.ends[LAYERS], self.ends[-1]
        row = self.n + xp.searchsorted(xp.cumsum(lengths), xp.arange(len(columns)), side="right")
        column = self._local(columns)
        # Of what is fetched, behind a one.
        source = xp.arange(1, len(row) + 1)
        outermost, new = xp.flatnonzero(column >= known), xp.arange(known, end)
        row, column, source = (
            xp.concatenate(triple)
            for triple in (
                (row, column[outermost], new),
                (column, row[outermost], new),
                (source, source[outermost], xp.zeros(len(new), np.int64)),
            )
        )
        order = xp.argsort(row * end + column)
        self._source = source[order]
        of_rows = xp.concatenate((xp.arange(self.n), self._local(xp.asarray(rows.ghosts)))).astype(np.int32)
        self.indices = xp.concatenate((of_rows[rows.whole.indices], column[order].astype(np.int32)))
        ends = rows.entries + xp.cumsum(xp.bincount(row - self.n, minlength=end - self.n))
        self.indptr = xp.concatenate((rows.whole.indptr, ends)).astype(offset_type(len(self.indices)), copy=False)

    def _local(self, columns: Any) -> Any:
        """The numbers here of columns by their global numbers."""
        xp, places = self.backend.xp, columns - self.first
        outside = xp.flatnonzero((places < 0) | (places >= self.n))
        places[outside] = self.n + places_among(self.numbers, columns[outside], xp)
        return places

    def take(self, rows: Rows) -> None:
        """Take the values of these rows, in the same pattern. Collective."""
        self.rows = rows
        self._take(self.fetch()[2])

    def _take(self, fetched_values: Any) -> None:
        xp, rows = self.backend.xp, self.rows
        around = xp.concatenate((xp.ones(1, rows.dtype), fetched_values))
        values = xp.concatenate((rows.whole.data, around[self._source]))
        shape = (len(self.indptr) - 1,) * 2
        self.matrix, _ = admit(canonical_csr(values, self.indices, self.indptr, shape, self.backend), finite=True)

    def fetch(self, whole: Any = None, columns: Any = None) -> tuple[Any, Any, Any]:
        """Fetch the rows of all layers but the last; see `Rows.fetch`. Collective."""
        parts = [self.rows.fetch(request, whole, columns) for request in self.requests[:LAYERS]]
        lengths, columns, values = (self.backend.xp.concatenate(part) for part in zip(*parts, strict=True))
        return lengths, columns, values

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


def places_among(numbers: Any, wanted: Any, xp: Any) -> Any:
    """Where the wanted ones of some numbers are, which are in any order."""
    order = xp.argsort(numbers)
    return order[xp.searchsorted(numbers[order], wanted)]
