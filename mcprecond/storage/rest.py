"""The rest: the rows of all colors beyond those that are kept, which relax by l1-Jacobi as the last block of a sweep.

In color order let A = L + D' + U + E. E has the entries of the rest's rows in its columns. Off the diagonal these are
those of A, which are in neither triangle. D' has more on the diagonal than A in these rows, and E has the difference
with a minus: for row i half of the sum of |a_ij| + |a_ji| over all other rows j of the rest, in the direction of a_ii.
So A and its transpose have the same D', and E is negative semidefinite where A is Hermitian with a positive diagonal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import Backend, KernelSet, compile_loop
from mcprecond.storage.fingerprint import NO_PIVOTS
from mcprecond.storage.values import are_taken

KERNELS = KernelSet(__file__, "OFFSET VALUE STORED (LANES)")


class Rest:
    """E of a pattern, and what an update needs.

    Parameters
    ----------
    pattern : tuple of two arrays
        Row offsets and columns of A, which is canonical.
    rows : array of int32, shape (n_rows,)
        The rows of A that are the rest, in color order.
    inverse : array of int32, shape (n,)
        Old number -> new number; the rest has the last ones.
    dtype, stored : dtype
        Of the values of A, and of those that are stored.

    Attributes
    ----------
    indptr : array of int32 or int64, shape (n_rows + 1,)
        Row offsets.
    columns : array of int32, shape (entries,)
        Rows of A; the diagonal is there where A has it.
    values : array, shape (entries,)
    """

    def __init__(
        self, pattern: tuple[Any, Any], rows: Any, inverse: Any, dtype: Any, stored: Any, backend: Backend
    ) -> None:
        xp, (indptr, indices) = backend.xp, pattern
        self._backend, self.rows, self._inverse = backend, rows, inverse
        # All entries of these rows: in which of them, and where in A; then those whose columns are of the rest, too.
        ends, behind = xp.cumsum(indptr[rows + 1] - indptr[rows]), indptr[rows + 1]
        row = xp.searchsorted(ends, xp.arange(int(ends[-1])), side="right")
        places = xp.arange(len(row)) + (behind - ends)[row]
        column = inverse[indices[places]] - (len(inverse) - len(rows))
        row, column, places = (of_all[column >= 0] for of_all in (row, column, places))
        by_column, each = xp.argsort(column, kind="stable"), xp.arange(len(rows) + 1)
        offset = indptr.dtype
        self.indptr, self._places = xp.searchsorted(row, each).astype(offset), places.astype(offset)
        self._transposed_indptr = xp.searchsorted(column[by_column], each).astype(offset)
        self._transposed_places = self._places[by_column]
        self.columns, self.values = rows[column], xp.empty(len(places), stored)
        self._run = backend.kernels(KERNELS, OFFSET=offset, VALUE=dtype, STORED=stored, LANES=32)

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        arrays = self.rows, self.indptr, self.columns, self.values, self._places
        return sum(array.nbytes for array in (*arrays, self._transposed_indptr, self._transposed_places))

    def fetch(self, values: Any, diagonal: Any, dinv: Any, expected: Any, found: Any) -> None:
        """Take the values of A, and make D' and its inverse of the diagonal of A, under the conditions of values.py."""
        own = self.indptr, self.columns, self._places, self._transposed_indptr, self._transposed_places
        first = len(diagonal) - len(self.rows)
        self._run.fetch_rest(
            len(self.rows), self.rows, *own, values, self.values, diagonal[first:], dinv[first:], expected, found
        )

    def subtract(self, x: Any, b: Any, pitch: int) -> None:
        """b -= E x, in the order of A, for right-hand sides that are some of so many columns."""
        own = self.rows, self.indptr, self.columns, self.values
        self._run.subtract_rest(len(self.rows), *own, x.shape[1], pitch, x, b)

    def permuted(self) -> Any:
        """Return E in color order, as a CSR matrix."""
        xp, n = self._backend.xp, len(self._inverse)
        indptr = xp.concatenate([xp.zeros(n - len(self.rows), self.indptr.dtype), self.indptr])
        return self._backend.sparse.csr_matrix((self.values, self._inverse[self.columns], indptr), shape=(n, n))

    def places(self) -> tuple[Any, Any]:
        """Return the rows and columns, of A, of the entries off the diagonal, on the host."""
        host = self._backend.to_host
        rows, columns = np.repeat(host(self.rows), np.diff(host(self.indptr))), host(self.columns)
        off = rows != columns
        return rows[off], columns[off]


@KERNELS.per_item_driver
def fetch_rest(
    n_rows,
    rows,
    indptr,
    columns,
    places,
    transposed_indptr,
    transposed_places,
    values,
    rest,
    diagonal,
    dinv,
    expected,
    found,
):
    """The values of E, D' in place of D, and its inverse; count what is not finite."""
    if not are_taken(expected, found, rest.itemsize < values.itemsize):
        return
    found[NO_PIVOTS] += fetch_rest_rows(
        0, n_rows, rows, indptr, columns, places, transposed_indptr, transposed_places, values, rest, diagonal, dinv
    )


@compile_loop
def fetch_rest_rows(
    first, end, rows, indptr, columns, places, transposed_indptr, transposed_places, values, rest, diagonal, dinv
):
    """The rows of `fetch_rest`."""
    no_pivots = 0
    for i in range(first, end):
        total = abs(values.dtype.type(0))
        for e in range(indptr[i], indptr[i + 1]):
            value = values[places[e]]
            rest[e] = value
            if columns[e] != rows[i]:
                total += abs(value)
        for e in range(transposed_indptr[i], transposed_indptr[i + 1]):
            total += abs(values[transposed_places[e]])
        pivot = diagonal[i]
        if pivot == 0:
            continue
        size = abs(pivot)
        more = (total - size) / 2 / size * pivot  # the transpose has the diagonal, too
        for e in range(indptr[i], indptr[i + 1]):
            if columns[e] == rows[i]:
                rest[e] = -more
        diagonal[i] = pivot + more
        dinv[i] = 1 / diagonal[i]
        no_pivots += 0 * abs(diagonal[i]) + 0 * abs(dinv[i]) != 0
    return no_pivots


@KERNELS.per_item
def subtract_rest(first, end, rows, indptr, columns, values, n_columns, pitch, x, b):
    """b -= E x."""
    for i in range(first, end):
        for c in range(n_columns):
            total = x.dtype.type(0)
            for e in range(indptr[i], indptr[i + 1]):
                total += values[e] * x[columns[e], c]
            b[rows[i], c] -= total
