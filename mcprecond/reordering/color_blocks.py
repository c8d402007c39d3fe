"""Color blocks: a matrix in color order, split into its strict triangles and its diagonal.

In color order the diagonal blocks of the matrix are diagonal, so a triangular solve goes color by color, all rows of a
color at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numba import prange

from mcprecond.backends import KernelSet, compile_inlined, compile_part, unsigned
from mcprecond.backends.arguments import flag
from mcprecond.backends.hashing import mix64
from mcprecond.coloring import Coloring
from mcprecond.matrix import AdmittedMatrix, PatternChangedError, admitted, csr_form, place_of, stored_dtype
from mcprecond.reordering import diagonals, short_columns
from mcprecond.reordering.color_order import swept_coloring
from mcprecond.reordering.slices import (
    LEAST_ROWS,
    LEAST_SLICES,
    Patterns,
    cut_slices,
    interleaved,
    rows_per_slice,
)

KERNELS = KernelSet(__file__)


@dataclass
class Triangle:
    """A strict triangle of the matrix in color order.

    Attributes
    ----------
    indptr : array of int32 or int64, shape (n + 1,)
        Row offsets.
    columns : array of int32, shape (entries,), (pairs, 2) or (numbers,)
        The column of each entry; or the diagonals that they lie on (see reordering/diagonals.py); or a list of columns
        in two bytes each (see reordering/short_columns.py).
    values : array, shape (entries,)
        The entries, interleaved inside of slices (see reordering/slices.py); on a GPU by rising column in all but long
        rows, otherwise in the order that A has.
    source : array of uint8, uint16 or int32, shape (entries,)
        Which entry of its row in A each one is, so that new values are just fetched.
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


class Digests(NamedTuple):
    """What one pass over a matrix tells of it.

    Attributes
    ----------
    pattern, all : int
        Hashes of the pattern, and of the pattern with the values.
    not_finite : int
        How many values are not.
    no_pivots : int
        How many entries of the diagonal, or blocks of it, have no inverse. Counted where values are taken.
    largest, smallest : int
        The largest magnitude of a value, or of a part of a complex one, as the bits of a double; and the smallest one
        but zero, as how far its bits lie below those of infinity. 0 if there is none, and where nobody asks: it is only
        where storage has fewer bytes than values.
    """

    pattern: int
    all: int
    not_finite: int
    no_pivots: int
    largest: int
    smallest: int

    @property
    def magnitudes(self) -> tuple[float, float]:
        """The smallest one but zero, and the largest one."""
        smallest, largest = np.array([INFINITY - self.smallest, self.largest], np.int64).view(np.float64).tolist()
        return smallest, largest


#: How many updates share one fill with zeros.
UPDATES_PER_FILL = 16
#: Where they are in the array that kernels write.
PATTERN, ALL, NOT_FINITE, NO_PIVOTS, LARGEST, SMALLEST = range(len(Digests._fields))
INFINITY = 0x7FF0000000000000  # the bits of an infinite double
#: The bits of the largest and of the smallest normal float32, as doubles: what fits into short values.
LARGEST_FLOAT, SMALLEST_FLOAT = (
    int(np.float64(number).view(np.int64)) for number in (np.finfo(np.float32).max, np.finfo(np.float32).tiny)
)


class ColorBlocks:
    """The permutation of a coloring, and the matrix P A Pᵀ stored as lower + diagonal + upper.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, shape (n, n)
        Real or complex floats, any format; repeated entries add up. It is not changed and not referred to afterwards.
    coloring : str, Coloring or array of int, shape (n,)
        A method of `color`, whose colors are then put into the order that promises the fewest iterations (see
        `in_best_order`); or a coloring of A, which is checked, its colors in the order of their numbers.
    dtype : dtype, optional
        Of the stored triangles; that of A by default. The diagonal keeps the dtype of A.
    divides : bool
        Whether rows of the upper triangle are stored divided by their diagonal entries.

    Attributes
    ----------
    coloring : Coloring
    perm, inverse : array of int32, shape (n,)
        New number -> old number, sorted by color and stable inside a color; and back.
    offsets : numpy.ndarray of int64, shape (n_colors + 1,)
        Color c has the new numbers offsets[c]..offsets[c + 1] - 1. On the host.
    slices : array of int32, shape (n_slices + 1,)
        Where the pieces begin in which colors are swept.
    in_diagonals, in_two_bytes : bool
        Whether the columns of the triangles are stored as diagonals, or in two bytes each; only on a GPU, where that
        pays.
    lower, upper : Triangle
        Entries whose column has a smaller, or a larger, color than their row.
    pivots : array, shape (n,), or None
        What rows of the upper triangle are divided by, in color order.
    diagonal, dinv : array, shape (n,)
        In color order; 0 where A stores none. And its inverse; a factorization puts that of its pivots there.

    Raises
    ------
    TypeError, ValueError
        If A is not a square sparse matrix of finite floats, or the coloring is not one of A.

    Examples
    --------
    >>> import scipy.sparse
    >>> from mcprecond import ColorBlocks
    >>> A = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> blocks = ColorBlocks(A, [0, 1, 0, 1])
    >>> blocks.perm
    array([0, 2, 1, 3], dtype=int32)
    >>> blocks.permuted().toarray()
    array([[ 2.,  0., -1.,  0.],
           [ 0.,  2., -1., -1.],
           [-1., -1.,  2.,  0.],
           [ 0., -1.,  0.,  2.]])
    """

    #: Unknowns per row of the blocks; `NodeBlocks` has more.
    block_size = 1

    def __init__(
        self, A: Any, coloring: str | Coloring | Any = "eb", *, dtype: Any = None, divides: bool = False
    ) -> None:
        matrix = admitted(A, floats=True).canonical()
        self._build(matrix, matrix, coloring, dtype, flag(divides, "divides"))

    def _build(
        self, matrix: AdmittedMatrix, graph: AdmittedMatrix, coloring: Any, dtype: Any, divides: bool
    ) -> None:  # fmt: skip
        """Store a matrix in the order of a coloring of `graph`, whose entries are those of the triangles.

        Both are canonical.
        """
        self.backend, self.shape, self.dtype = matrix.backend, matrix.shape, matrix.dtype
        self._stored = stored_dtype(dtype, self.dtype)
        backend = matrix.backend
        xp, n, entries = backend.xp, graph.shape[0], graph.indices.size
        self.coloring = swept_coloring(graph, coloring)
        self.offsets = np.concatenate([[0], np.cumsum(self.coloring.sizes)])
        self.perm = self.coloring.permutation()
        self.inverse = xp.empty(n, np.int32)
        self.inverse[self.perm] = xp.arange(n, dtype=np.int32)

        self._offset = matrix.indptr.dtype
        longest = int(xp.diff(graph.indptr).max()) if n else 0
        self._narrows = self._stored.itemsize < self.dtype.itemsize
        source = np.min_scalar_type(longest)  # unsigned
        lanes = 32 if entries > 32 * n else 8 if entries > 8 * n else 2
        kernels = partial(
            backend.kernels, KERNELS, OFFSET=self._offset, VALUE=self.dtype, STORED=self._stored,
            SOURCE=source, LANES=lanes,
        )  # fmt: skip
        # Rows of this length at most are sorted: neighboring rows then read neighboring values, and first those that
        # are there first. On the CPU that does not pay.
        sorted_length = min(8 * lanes, 255) if backend.resident_warps else 0
        patterns, sources = self._split(graph, kernels(), sorted_length, source)
        self.slices, lists = self._cut(patterns, longest <= sorted_length)
        self.lower, self.upper = (
            self._triangle(*pattern, part, listed)
            for pattern, part, listed in zip(patterns, sources, lists, strict=True)
        )
        self.diagonal, self.dinv = (self._new_values(n, self.dtype) for _ in range(2))
        self._divides, self.pivots = divides, self.diagonal if divides else None
        self._run = kernels(**self._order_macros)
        self._zeros: list[Any] = []
        self._exponent: int | None = None
        self._expected = self._digest(matrix)
        self._told = self._filled(matrix, self._expected)
        self._refuse_values(matrix, self._told)

    def _split(self, graph: Any, run: Any, sorted_length: int, source: Any) -> tuple[Patterns, list[Any]]:
        """Row offsets and columns of both triangles in color order, row by row, and which entry of its row each is."""
        xp, n = self.backend.xp, graph.shape[0]
        indptr, indices = map(unsigned, self.pattern_of(graph))
        counts = [xp.zeros(n + 1, self._offset) for _ in range(2)]
        run.count_entries(n, indptr, indices, self.inverse, *(count[1:] for count in counts))
        offsets = [xp.cumsum(count, dtype=self._offset) for count in counts]
        totals = [int(ends[-1]) for ends in offsets]
        columns, sources = ([xp.empty(total, dtype) for total in totals] for dtype in (np.int32, source))
        self._diagonal_source = xp.full(n, np.iinfo(source).max, source)
        parts = [part for triangle in zip(offsets, columns, sources, strict=True) for part in triangle]
        run.fill_columns(
            n, indptr, indices, self.perm, self.inverse, sorted_length, *parts, self._diagonal_source
        )  # fmt: skip
        return list(zip(offsets, columns, strict=True)), sources

    def _cut(self, patterns: Patterns, rows_are_sorted: bool) -> tuple[Any, list[Any]]:
        """Cut the colors into slices; list the diagonals of both triangles, or short columns, where that pays, or None
        for each.
        """
        n, sizes, backend = len(self.perm), np.diff(self.offsets), self.backend
        (lower_indptr, lower), (upper_indptr, upper) = patterns
        rows = rows_per_slice(sizes, (len(lower) + len(upper)) / max(n, 1), backend.resident_warps)
        colors = self.coloring.colors[self.perm]
        slices = cut_slices(self.offsets, colors, lower_indptr, upper_indptr, backend, rows)
        self.in_diagonals = self.in_two_bytes = False
        n_slices, least = len(slices) - 1, LEAST_SLICES * backend.resident_warps * len(sizes)
        # Blocks of nodes have many bytes for each column anyway.
        pays = self.block_size == 1 and rows_are_sorted and n >= LEAST_ROWS * n_slices and n_slices >= least
        if backend.resident_warps and n and pays:
            if lists := diagonals.list_of_diagonals(slices, patterns, backend):
                self.in_diagonals = True
                return slices, lists
            if listed := short_columns.list_of_columns(slices, patterns, backend):
                self.in_two_bytes = True
                return listed
        return slices, [None, None]

    @property
    def n_colors(self) -> int:
        """The number of colors, and of blocks."""
        return self.coloring.n_colors

    @property
    def nbytes(self) -> int:
        """Memory of triangles, diagonal with inverse, and permutations in bytes."""
        arrays = (
            self.lower, self.upper, self.diagonal, self.dinv, self._diagonal_source, self.perm, self.inverse,
            self.slices,
        )  # fmt: skip
        return sum(array.nbytes for array in arrays)

    @property
    def exponent(self) -> int:
        """2^exponent is about the largest magnitude on the diagonal, which is that of a positive definite matrix."""
        if self._exponent is None:
            largest = float(abs(self.diagonal).max()) if self.diagonal.size else 0.0
            self._exponent = math.frexp(largest)[1] if math.isfinite(largest) else 0
        return self._exponent

    @property
    def vector_shape(self) -> tuple[int, ...]:
        """Of the vectors in color order."""
        return self.shape[:1]

    @property
    def macros(self) -> dict[str, int]:
        """What kernels that go through the triangles have to know of how these are stored."""
        return (
            ({"BLOCK_SIZE": self.block_size} if self.block_size > 1 else {})
            | ({"COMPRESSED_COLUMNS": 1} if self.in_two_bytes else {})
            | self._order_macros
        )

    @property
    def _order_macros(self) -> dict[str, int]:
        """What the order of the entries depends on."""
        return {"SLICED_DIA": 1} if self.in_diagonals else {}

    @cached_property
    def color_slices(self) -> np.ndarray:
        """The number of the first slice of each color, and how many slices there are at the end. On the host."""
        xp = self.backend.xp
        return self.backend.to_host(xp.searchsorted(self.slices, xp.asarray(self.offsets, dtype=np.int32)))

    def rows_of(self, c: int) -> tuple[int, int]:
        """Return how many rows color c has, and the new number of the first."""
        first, end = self.offsets[c], self.offsets[c + 1]
        return int(end - first), int(first)

    def refuse_singular_diagonal(self) -> None:
        """Raise ValueError if an entry of the diagonal is zero, missing, or too small to divide by; names a row."""
        if not self._told.no_pivots:
            return
        xp = self.backend.xp
        singular = (self.diagonal == 0) | ~xp.isfinite(self.dinv)
        if bool(singular.any()):
            row = int(self.perm[singular].min())
            value = self.diagonal[int(self.inverse[row])].item()
            raise ValueError(
                f"A has a zero or missing diagonal entry in row {row}; Gauss-Seidel divides by it" if value == 0
                else f"A holds {value} on the diagonal in row {row}, whose inverse overflows in {self.dtype}; scale A"
            )  # fmt: skip
        rows = self._rows_of(self.upper)[~xp.isfinite(self.by_rows(self.upper, self.upper.values))]
        row = int(self.perm[rows].min())
        raise ValueError(f"row {row} of A, divided by its diagonal entry, overflows in {self._stored}; scale A")

    def compared_with(self, A: Any) -> Callable[[], bool]:
        """Begin to compare, and return a function that waits and says whether the blocks are those of A: the same
        entries in the same places, told by 64-bit hashes.

        A must be what `csr_form` returns, of the blocks' shape, dtype and device. If it is theirs, its pattern needs no
        other check. If its pattern is another one, it is refused if `admitted` refuses it.
        """
        digests = self._digest(A)

        def are_those_of_A() -> bool:
            _, told = self._matched(A, lambda csr: self._read(digests if csr is A else self._digest(csr)))
            return told.pattern == self._told.pattern and told.all == self._told.all

        return are_those_of_A

    def update(self, A: Any) -> Any:
        """Take new values from a matrix with the same pattern; coloring and storage stay.

        Returns
        -------
        CSR matrix
            A, or its canonical form if that is what the blocks store.

        Raises
        ------
        TypeError, ValueError
            If A differs in shape, pattern (then a PatternChangedError), dtype or device from the matrix of the blocks,
            or is not finite, or holds what they cannot store. They then stay as they are.
        """
        csr, backend = (A.csr, A.backend) if isinstance(A, AdmittedMatrix) else csr_form(A, floats=True)
        if backend.name != self.backend.name or csr.dtype != self.dtype or csr.shape != self.shape:
            raise ValueError(
                f"A must be of shape {self.shape}, dtype {self.dtype} and on the {self.backend.name} as before, "
                f"got shape {csr.shape}, dtype {csr.dtype} on the {backend.name}"
            )
        csr, told = self._matched(csr, lambda csr: self._filled(csr, self._digest(csr, self._next_zeros())))
        if told.pattern != self._told.pattern:
            where = self._where_other(csr)
            raise PatternChangedError(
                f"A has another pattern than before {where}; build a new object for a new pattern"
            )
        self._refuse_values(csr, told)
        self._told, self._exponent = told, None
        return csr

    def divide_upper(self, pivots: Any) -> None:
        """Divide rows of the upper triangle, which are not yet, by pivots whose inverses are in `dinv`."""
        self._run.divide_rows(
            len(self.slices) - 1, self.slices, self.upper.indptr, self.upper.columns, self.upper.values, self.dinv
        )  # fmt: skip
        self.pivots = pivots

    def permuted(self) -> Any:
        """Return P A Pᵀ as a CSR matrix with sorted rows, on the device of A; every row has a diagonal entry.

        What was divided by pivots is multiplied by them, so that it is as in A up to rounding.
        """
        xp, n = self.backend.xp, self.shape[0]
        indptr = self.lower.indptr + self.upper.indptr + xp.arange(n + 1, dtype=self.lower.indptr.dtype)
        indices = xp.empty(int(indptr[-1]), np.int32)
        values = xp.empty(len(indices), self.dtype)
        lower, upper = (self.by_rows(triangle, triangle.values) for triangle in (self.lower, self.upper))
        if self.pivots is not None:
            upper *= self.pivots[self._rows_of(self.upper)]
        self._run.join(
            n, self.lower.indptr, self.columns_by_rows(self.lower), lower, self.upper.indptr,
            self.columns_by_rows(self.upper), upper, self.diagonal, indptr, indices, values,
        )  # fmt: skip
        matrix = self.backend.sparse.csr_matrix((values, indices, indptr), shape=self.shape)
        matrix.sort_indices()
        return matrix

    def _new_values(self, entries: int, dtype: Any) -> Any:
        return self.backend.xp.empty(entries, dtype)

    def pattern_of(self, csr: Any) -> tuple[Any, Any]:
        """Row offsets and column indices of a matrix with the pattern of the blocks, as kernels take them."""
        xp = self.backend.xp
        return xp.asarray(csr.indptr, dtype=self._offset), xp.asarray(csr.indices, dtype=np.int32)

    def by_rows(self, triangle: Triangle, entries: Any) -> Any:
        """Return what is stored for each entry of a triangle, such as its value, row by row."""
        return self._interleaved(triangle.indptr, triangle.columns, entries, back=True)

    def columns_by_rows(self, triangle: Triangle) -> Any:
        """Return the column of each entry of a triangle, row by row."""
        if not self.in_diagonals and not self.in_two_bytes:
            return self.by_rows(triangle, triangle.columns)
        list_columns = (diagonals if self.in_diagonals else short_columns).columns_by_rows
        return list_columns(self.slices, triangle.indptr, triangle.columns, len(triangle.values), self.backend)

    def _interleaved(self, indptr: Any, columns: Any, entries: Any, back: bool = False) -> Any:
        result = self.backend.xp.empty_like(entries)
        return interleaved(self.slices, indptr, columns, entries, result, self.backend, back, **self._order_macros)

    def _triangle(self, indptr: Any, columns: Any, source: Any, listed: Any) -> Triangle:
        """Store the columns and the sources of a triangle, or a list in place of the columns."""
        values = self._new_values(len(columns), self._stored)
        if not self.backend.resident_warps:  # row by row, as they are
            return Triangle(indptr, columns, values, source)
        stored = self._interleaved(indptr, columns, columns) if listed is None else listed
        return Triangle(indptr, stored, values, self._interleaved(indptr, stored, source))

    def _filled(self, csr: Any, digests: Any) -> Digests:
        """Take the values of a matrix if these are finite, can be stored, and are in the places expected, which the
        device decides by the digests: so the host waits once, at the end.
        """
        self._fill_values(csr, digests)
        return self._read(digests)

    def _refuse_values(self, A: Any, told: Digests) -> None:
        """Raise ValueError, naming a row, if a value of A, whose pattern is that of the blocks, was not taken."""
        if told.not_finite:
            admitted(A.csr if isinstance(A, AdmittedMatrix) else A, finite=True)  # raises and says where
        if not self._narrows:
            return
        smallest, largest = told.magnitudes
        least, most = (float(limit) for limit in (np.finfo(np.float32).tiny, np.finfo(np.float32).max))
        if largest > most or smallest < least:
            parts = A.data.view(np.float64)
            bad = (abs(parts) > most) | ((abs(parts) < least) & (parts != 0))
            k = int(bad.argmax())
            row, column = place_of(A, k * len(A.data) // len(parts), self.backend)
            raise ValueError(
                f"A holds {parts[k].item()} in row {row}, column {column}, which {self._stored} has no room for: its "
                f"magnitudes are from {least:.3g} to {most:.3g}; scale A, or leave out dtype"
            )

    def _fill_values(self, csr: Any, digests: Any) -> None:
        """Into the same arrays again: they may be part of a captured application."""
        lower, upper = ((part.indptr, part.columns, part.source, part.values) for part in (self.lower, self.upper))
        self._run.fetch_values(
            len(self.slices) - 1, self.slices, self.perm, self.pattern_of(csr)[0], csr.data, *lower, *upper,
            self._diagonal_source, self.diagonal, self.dinv, int(self._divides), self._expected, digests,
        )  # fmt: skip

    def _rows_of(self, triangle: Triangle) -> Any:
        """The row of each entry of a triangle, row by row, in color order."""
        xp = self.backend.xp
        return xp.searchsorted(triangle.indptr, xp.arange(len(triangle.values)), side="right").astype(np.int32) - 1

    def _where_other(self, csr: Any) -> str:
        """Where the pattern of a canonical matrix is not that of the blocks."""
        return f"in row {self._first_other(csr)}"

    def _first_other(self, graph: Any) -> int | None:
        """The first row of a canonical matrix that has other columns than the blocks."""
        host, perm, n = self.backend.to_host, self.backend.to_host(self.perm), len(self.perm)
        source = host(self._diagonal_source)
        diagonal = np.flatnonzero(source < np.iinfo(source.dtype).max)
        rows, columns = [diagonal], [diagonal]
        for triangle in (self.lower, self.upper):
            rows.append(host(self._rows_of(triangle)))
            columns.append(host(self.columns_by_rows(triangle)))
        before = np.sort(perm[np.concatenate(rows)] * np.int64(n) + perm[np.concatenate(columns)])
        now = np.repeat(np.arange(n), np.diff(host(graph.indptr))) * n + host(graph.indices)
        before, now = (np.append(places, n * n) for places in (before, now))  # behind all rows
        both = min(len(before), len(now))
        other = before[:both] != now[:both]
        k = int(other.argmax())
        return int(min(before[k], now[k])) // n if other.any() else None

    def _matched(self, csr: Any, look: Callable[[Any], Digests]) -> tuple[Any, Digests]:
        """Return csr, or its canonical form if that is needed for the pattern of the blocks, and what a look tells."""
        told = look(csr)
        if told.pattern == self._told.pattern or (mended := admitted(csr).canonical().csr) is csr:
            return csr, told
        return mended, look(mended)

    def _digest(self, csr: Any, zeros: Any = None) -> Any:
        """The digests of a matrix, on its device, in place of zeros."""
        digests = self.backend.xp.zeros(len(Digests._fields), np.int64) if zeros is None else zeros
        self._run.digest(csr.indices.size, self.shape[0], *self.pattern_of(csr), csr.data, digests)
        if self._narrows:
            self._run.find_range(csr.indices.size, csr.data, digests)
        return digests

    def _next_zeros(self) -> Any:
        """Zeros for the digests of an update: many by one fill, which takes as long as a launch.

        Not for a comparison, which may be asked for on another stream than the fill.
        """
        if not self._zeros:
            self._zeros = list(self.backend.xp.zeros((UPDATES_PER_FILL, len(Digests._fields)), np.int64))
        return self._zeros.pop()

    def _read(self, digests: Any) -> Digests:
        return Digests(*self.backend.to_host(digests).tolist())


# In color order two neighbors never have the same color, so the new numbers alone tell the triangle: an entry in row i
# is lower if its column's new number is smaller than i.


@KERNELS.twin
def count_entries(n, indptr, indices, inverse, lower_counts, upper_counts):
    """Entries of each triangle per row of the color order."""
    for v in prange(n):
        i, lower, upper = inverse[v], 0, 0
        for k in range(indptr[v], indptr[v + 1]):
            j = inverse[indices[k]]
            lower += j < i
            upper += j > i
        lower_counts[i] = lower
        upper_counts[i] = upper


@compile_inlined
def place_entry(
    i, j, number, lower, lower_columns, lower_source, upper, upper_columns, upper_source, diagonal_source
):  # fmt: skip
    """Put the next entry of row i where it belongs; where the one after it in either triangle would go."""
    if j < i:
        lower_columns[lower], lower_source[lower] = j, number
        return lower + 1, upper
    if j > i:
        upper_columns[upper], upper_source[upper] = j, number
        return lower, upper + 1
    diagonal_source[i] = number
    return lower, upper


@KERNELS.twin
def fill_columns(
    n, indptr, indices, perm, inverse, sorted_length, lower_indptr, lower_columns, lower_source, upper_indptr,
    upper_columns, upper_source, diagonal_source,
):  # fmt: skip
    """The columns of both triangles; which entries of their rows in A these, and those of the diagonal, are."""
    for v in prange(n):
        i = inverse[v]
        lower, upper, columns = lower_indptr[i], upper_indptr[i], indices[indptr[v] : indptr[v + 1]]
        if len(columns) <= sorted_length:
            for number in np.argsort(inverse[columns], kind="mergesort"):
                lower, upper = place_entry(
                    i, inverse[columns[number]], number, lower, lower_columns, lower_source, upper, upper_columns,
                    upper_source, diagonal_source,
                )  # fmt: skip
        else:
            for number in range(len(columns)):
                lower, upper = place_entry(
                    i, inverse[columns[number]], number, lower, lower_columns, lower_source, upper, upper_columns,
                    upper_source, diagonal_source,
                )  # fmt: skip


@compile_part
def to_be_taken(expected, digests, narrows):
    """Whether values are taken: they are finite, in the places that the blocks expect, and where storage narrows them
    within its range.
    """
    if digests[PATTERN] != expected[PATTERN] or digests[NOT_FINITE] != 0:
        return False
    return not narrows or (digests[LARGEST] <= LARGEST_FLOAT and INFINITY - digests[SMALLEST] >= SMALLEST_FLOAT)


@KERNELS.strided_twin
def fetch_values(
    n_slices, slices, perm, indptr, values, lower_indptr, lower_columns, lower_source, lower, upper_indptr,
    upper_columns, upper_source, upper, diagonal_source, diagonal, dinv, divides, expected, digests,
):  # fmt: skip
    """The values of row i: entries of row perm[i] of A, the upper ones divided if so asked; count rows that cannot be
    divided: what comes out is not finite.
    """
    if not to_be_taken(expected, digests, lower.itemsize < values.itemsize):
        return
    no_pivots = 0
    for i in prange(slices[n_slices]):
        row, number = values[indptr[perm[i]] : indptr[perm[i] + 1]], diagonal_source[i]
        for e in range(lower_indptr[i], lower_indptr[i + 1]):
            lower[e] = row[lower_source[e]]
        pivot = row[number] if number < len(row) else values.dtype.type(0)
        inverse = 1 / pivot if pivot != 0 else values.dtype.type(np.inf)
        diagonal[i], dinv[i] = pivot, inverse
        factor = inverse if divides else values.dtype.type(1)
        check = 0 * abs(dinv[i])  # is NaN as soon as something is not finite
        for e in range(upper_indptr[i], upper_indptr[i + 1]):
            quotient = factor * row[upper_source[e]]
            upper[e] = quotient
            check += 0 * abs(upper[e])
        no_pivots += check != 0
    digests[NO_PIVOTS] = no_pivots


@KERNELS.strided_twin
def divide_rows(n_slices, slices, indptr, columns, values, dinv):
    """The entries of row i times dinv[i]."""
    for i in prange(slices[n_slices]):
        for e in range(indptr[i], indptr[i + 1]):
            values[e] *= dinv[i]


@compile_part
def bits(x):
    """The bits of a real number as a double, which tells floats apart, too."""
    return np.float64(x).view(np.uint64)


@KERNELS.strided_twin
def digest(entries, n, indptr, indices, values, digests):
    """Hash the pattern, and the pattern with the values; count what is not finite."""
    pattern, both, not_finite = np.uint64(0), np.uint64(0), 0
    for i in prange(n + 1):
        pattern += mix64(mix64(np.uint64(i)) ^ np.uint64(indptr[i]))
    for k in prange(entries):
        entry = mix64((np.uint64(k) << np.uint64(32)) ^ np.uint64(indices[k]))
        pattern += entry
        entry = mix64(entry ^ bits(values[k].real))
        if np.iscomplexobj(values):
            entry = mix64(entry ^ bits(values[k].imag))
        both += entry
        not_finite += not np.isfinite(values[k])
    digests[PATTERN] = np.int64(pattern)
    digests[ALL] = np.int64(pattern + both)
    digests[NOT_FINITE] = not_finite


@KERNELS.strided_twin
def find_range(entries, values, digests):
    """The range of the magnitudes of values, as `Digests` has it."""
    largest, smallest = 0.0, np.inf
    for k in prange(entries):
        low, high = np.float64(abs(values[k].real)), np.float64(abs(values[k].imag))
        largest = max(largest, max(low, high))
        smallest = min(smallest, min(low if low > 0 else np.inf, high if high > 0 else np.inf))
    digests[LARGEST] = np.float64(largest).view(np.int64)
    digests[SMALLEST] = INFINITY - np.float64(smallest).view(np.int64)


@KERNELS.twin
def join(n, lower_indptr, lower_columns, lower, upper_indptr, upper_columns, upper, diagonal, indptr, indices, values):
    """Put lower, diagonal and upper back into one CSR matrix."""
    for i in prange(n):
        place = indptr[i]
        for k in range(lower_indptr[i], lower_indptr[i + 1]):
            indices[place] = lower_columns[k]
            values[place] = lower[k]
            place += 1
        indices[place] = i
        values[place] = diagonal[i]
        place += 1
        for k in range(upper_indptr[i], upper_indptr[i + 1]):
            indices[place] = upper_columns[k]
            values[place] = upper[k]
            place += 1
