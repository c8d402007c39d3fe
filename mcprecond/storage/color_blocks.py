"""Color blocks: a matrix in color order, split into its strict triangles and its diagonal.

In color order the diagonal blocks of the matrix are diagonal, so a triangular solve goes color by color, all rows of a
color at once.

Other modules do the work: split.py finds where each entry goes, schedule.py cuts colors into slices, layouts/ stores
the columns, values.py the values, and fingerprint.py tells whether a matrix is the one that is stored.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from mcprecond.backends.arguments import flag, stored_dtype
from mcprecond.backends.updates import UpdateLock, one_at_a_time
from mcprecond.coloring import Coloring
from mcprecond.matrix import AdmittedMatrix, PatternChangedError, admit_matrix, csr_form
from mcprecond.ordering.color_order import swept_coloring
from mcprecond.storage import layouts
from mcprecond.storage.diagnosis import first_other_row, refuse_singular, refuse_values
from mcprecond.storage.fingerprint import Fingerprint, Fingerprints
from mcprecond.storage.schedule import SWEPT_PIECE, cut_long_rows, cut_slices, rows_per_slice
from mcprecond.storage.split import TrianglePattern, split
from mcprecond.storage.triangle import Triangle
from mcprecond.storage.values import KERNELS as VALUE_KERNELS
from mcprecond.storage.values import are_taken
from mcprecond.typing import ColoringMethod, Integers, Matrix, StoredDType

SUM_ALIGNMENT = 16  # bytes, of what kernels put into `_new_sums`


class ColorBlocks:
    """The permutation of a coloring, and the matrix P A Pᵀ stored as lower + diagonal + upper.

    Updates from several threads run one after the other.

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
        New number -> old number, sorted by color, and back.
    offsets : numpy.ndarray of int64, shape (n_colors + 1,)
        Color c has the new numbers offsets[c]..offsets[c + 1] - 1. On the host.
    slices : array of int32, shape (n_slices + 1,) or (n_slices + 1, 4)
        The pieces in which colors are swept, see schedule.py: where they begin, or records where rows are cut.
    layout : Layout
        How the triangles are stored; its name is "csr", or on a GPU "dia".
    lower, upper : Triangle
        Entries whose column has a smaller, or a larger, color than their row.
    longest_row : int
        At least the length of the longest row of A.
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
    #: Whether an update ended, by an error or by Ctrl-C, when some values had been replaced, or by values that do not
    #: fit. Nothing can be computed with the blocks until another update succeeds.
    is_halfway = False

    def __init__(
        self,
        A: Matrix | AdmittedMatrix,
        coloring: ColoringMethod | Coloring | Integers = "auto",
        *,
        dtype: StoredDType | None = None,
        divides: bool = False,
    ) -> None:
        matrix = admit_matrix(A, floats=True).canonical()
        if not (isinstance(A, AdmittedMatrix) and isinstance(coloring, Coloring)):  # which is known to be one of A
            coloring = swept_coloring(matrix, coloring)
        self._store(matrix, matrix, coloring, dtype, flag(divides, "divides"))

    def __repr__(self) -> str:
        n, width = self.shape
        return f"<{type(self).__name__} of {n} x {width}, {self.dtype}, in {self.n_colors} colors>"

    def _store(
        self, matrix: AdmittedMatrix, graph: AdmittedMatrix, coloring: Coloring, dtype: Any, divides: bool
    ) -> None:
        """Store a canonical matrix in the order of a coloring; `graph` has the entries that the triangles get."""
        self.backend, self.shape, self.dtype = matrix.backend, matrix.shape, matrix.dtype
        self._updating = UpdateLock()
        self._stored = stored_dtype(dtype, self.dtype)
        backend = matrix.backend
        xp, n = backend.xp, graph.shape[0]
        self.coloring = coloring
        self.offsets = np.concatenate([[0], np.cumsum(self.coloring.sizes)])
        self.perm = self._permutation(graph)
        self.inverse = xp.empty(n, np.int32)
        self.inverse[self.perm] = xp.arange(n, dtype=np.int32)

        self._offset = matrix.indptr.dtype
        self._narrows = self._stored.itemsize < self.dtype.itemsize
        longest = graph.max_degree + 1  # one more than the longest row, if that row stores no diagonal entry
        self.longest_row = longest * self.block_size
        lower, upper, self._diagonal_source, is_sorted = split(
            self.pattern_of(graph), self.perm, self.inverse, longest, backend
        )
        entries_per_row = (len(lower.columns) + len(upper.columns)) / max(n, 1)
        rows = rows_per_slice(self.coloring.sizes, entries_per_row, backend.resident_warps)
        slices = cut_slices(self.offsets, lower.indptr, upper.indptr, backend, rows)
        self._n_pieces = 0
        if backend.resident_warps and longest > SWEPT_PIECE and self.block_size == 1:
            slices, self._n_pieces = cut_long_rows(slices, lower.indptr, upper.indptr, backend)
        self.slices = slices
        self.layout, columns = layouts.choose_layout(
            slices, [lower[:2], upper[:2]], self.n_colors, is_sorted and self.block_size == 1, backend
        )
        self.lower, self.upper = (
            Triangle(part.indptr, listed, self._new_values(len(part.columns), self._stored), self._place(part, listed))
            for part, listed in zip((lower, upper), columns, strict=True)
        )
        self.diagonal, self.dinv = (self._new_values(n, self.dtype) for _ in range(2))
        self._divides, self.pivots = divides, self.diagonal if divides else None
        self._exponent: int | None = None
        self._fingerprints = Fingerprints(backend, self._offset, self.dtype, ranges=self._narrows)
        self._expected = self._enqueue_fingerprint(matrix)
        self._fingerprint = self._fill(matrix, self._expected)
        refuse_values(self, matrix, self._fingerprint)
        self.is_halfway = False

    @property
    def n_colors(self) -> int:
        """The number of colors."""
        return self.coloring.n_colors

    def _permutation(self, graph: AdmittedMatrix) -> Any:
        """Return the rows sorted by color; within a color in breadth-first order where their own numbering is bad."""
        order = graph.compact_order
        if order is None:
            return self.coloring.permutation()
        return order[np.argsort(self.coloring.colors[order], kind="stable")].astype(np.int32)

    def _place(self, pattern: TrianglePattern, columns: Any) -> Any:
        """The sources of a triangle in the order of its layout."""
        if not self.backend.resident_warps:  # row by row, as they are
            return pattern.source
        return self._interleave(pattern.indptr, columns, pattern.source)

    @property
    def n_slices(self) -> int:
        """The number of slices."""
        return len(self.slices) - 1

    def schedule(self, columns: int = 1) -> tuple[int, Any, Any]:
        """Return the number of slices, the slices, and a workspace for the sums of long rows, which a GPU cuts."""
        return self.n_slices, self.slices, self._new_sums(columns)

    @property
    def free_rows(self) -> tuple[int, int]:
        """How many rows at the beginning are known to have no entries in the lower triangle, and from which row on none
        are in the upper one: the rows of the first and of the last color.
        """
        return self.offsets[:2][-1], self.offsets[-2:][0]

    def _new_sums(self, columns: int = 1) -> Any:
        """Return zeros: the workspace in which a kernel adds up long rows that are cut into pieces.

        For each piece it has room for two elements of a vector with so many right-hand sides, and for a counter of the
        pieces that are done.
        """
        element = self.dtype.itemsize * columns * math.prod(self.vector_shape[1:])
        bytes_each = SUM_ALIGNMENT + -(-2 * element // SUM_ALIGNMENT) * SUM_ALIGNMENT
        return self.backend.xp.zeros(self._n_pieces * bytes_each, np.uint8)

    @property
    def nbytes(self) -> int:
        """Memory of triangles, diagonal with inverse, and permutations in bytes."""
        arrays = (
            self.lower,
            self.upper,
            self.diagonal,
            self.dinv,
            self._diagonal_source,
            self.perm,
            self.inverse,
            self.slices,
        )
        return sum(array.nbytes for array in arrays)

    @property
    def exponent(self) -> int:
        """2^exponent is about the largest magnitude on the diagonal: of the whole matrix if it is positive definite."""
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
        """The macros of kernels that go through the triangles."""
        return ({"BLOCK_SIZE": self.block_size} if self.block_size > 1 else {}) | self.layout.macros

    @cached_property
    def _run(self) -> Any:
        """The kernels that go through the values."""
        return self.backend.kernels(
            VALUE_KERNELS,
            OFFSET=self._offset,
            VALUE=self.dtype,
            STORED=self._stored,
            SOURCE=self.lower.source.dtype,
            LANES=32,
            **self.layout.macros,
        )

    @cached_property
    def color_slices(self) -> np.ndarray:
        """The number of the first slice of each color, and how many slices there are at the end. On the host."""
        xp = self.backend.xp
        first_rows = self.slices if self.slices.ndim == 1 else xp.ascontiguousarray(self.slices[:, 0])
        return self.backend.to_host(xp.searchsorted(first_rows, xp.asarray(self.offsets, dtype=np.int32)))

    def refuse_singular_diagonal(self) -> None:
        """Raise ValueError if an entry of the diagonal is zero, missing, or too small to divide by; names a row."""
        if self._fingerprint.no_pivots:
            refuse_singular(self)

    def compared_with(self, A: Any) -> Callable[[], bool]:
        """Begin to compare, and return a function that waits and says whether the blocks store A: the same entries
        in the same places, by fingerprints.

        A must be what `csr_form` returns, of the blocks' shape, dtype and device. If the fingerprints agree, the
        pattern of A needs no other check. An A of another pattern is refused if `admit_matrix` refuses it.
        """
        of_A = self._enqueue_fingerprint(A)

        self.refuse_halfway()

        def are_those_of_A() -> bool:
            read, expected = self._fingerprints.read, self._fingerprint
            _, fingerprint = self._match(A, lambda csr: read(of_A if csr is A else self._enqueue_fingerprint(csr)))
            return (fingerprint.pattern, fingerprint.all) == (expected.pattern, expected.all)

        return are_those_of_A

    @one_at_a_time
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
            or is not finite, or holds values that the blocks cannot store. Then the blocks stay as they are.
        """
        csr = self.take(A)
        self.is_halfway = False
        return csr

    @one_at_a_time
    def take(self, A: Any) -> Any:
        """Take new values as `update` does, but stay halfway, for a caller who has to judge or factorize them."""
        csr, backend = (A.csr, A.backend) if isinstance(A, AdmittedMatrix) else csr_form(A, floats=True)
        if backend.name != self.backend.name or csr.dtype != self.dtype or csr.shape != self.shape:
            raise ValueError(
                f"A must be of shape {self.shape}, dtype {self.dtype} and on the {self.backend.name} as before, "
                f"got shape {csr.shape}, dtype {csr.dtype} on the {backend.name}"
            )
        self._own_arrays()
        zeros = self._fingerprints.zeros
        csr, fingerprint = self._match(csr, lambda csr: self._fill(csr, self._enqueue_fingerprint(csr, zeros())))
        if fingerprint.pattern != self._fingerprint.pattern:
            where = self._where_other(csr)
            raise PatternChangedError(
                f"A has another pattern than before {where}; build a new object for a new pattern"
            )
        refuse_values(self, csr, fingerprint)
        self._fingerprint, self._exponent = fingerprint, None
        return csr

    def refuse_halfway(self) -> None:
        """Raise RuntimeError if the last update has left values that nothing can be computed with."""
        if self.is_halfway:
            raise RuntimeError("the last update failed when it had replaced values; update once more before any use")

    def _own_arrays(self) -> None:
        """Replace all arrays by copies if those to be written are read-only, as where joblib has mapped them."""
        written = self.lower.values, self.upper.values, self.diagonal, self.dinv
        if self.backend.name == "cpu" and not all(array.flags.writeable for array in written):
            self.__dict__.update(copy.deepcopy(self.__dict__) | {"_updating": self._updating})

    def divide_upper(self, pivots: Any) -> None:
        """Divide the rows of the upper triangle, so far undivided, by the pivots whose inverses are in `dinv`."""
        self._run.divide_rows(
            self.n_slices, self.slices, self.upper.indptr, self.upper.columns, self.upper.values, self.dinv
        )
        self.pivots = pivots

    def permuted(self) -> Any:
        """Return P A Pᵀ as a CSR matrix with sorted rows, on the device of A; every row has a diagonal entry.

        Rows that are stored divided by pivots are multiplied by them, so that entries are as in A up to rounding.
        """
        self.refuse_halfway()
        xp, n = self.backend.xp, self.shape[0]
        indptr = self.lower.indptr + self.upper.indptr + xp.arange(n + 1, dtype=self.lower.indptr.dtype)
        indices = xp.empty(int(indptr[-1]), np.int32)
        values = xp.empty(len(indices), self.dtype)
        lower, upper = (self.by_rows(triangle, triangle.values) for triangle in (self.lower, self.upper))
        if self.pivots is not None:
            upper *= self.pivots[self.upper.rows_of_entries(xp)]
        self._run.join(
            n,
            self.lower.indptr,
            self.columns_by_rows(self.lower),
            lower,
            self.upper.indptr,
            self.columns_by_rows(self.upper),
            upper,
            self.diagonal,
            indptr,
            indices,
            values,
        )
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
        """Return an array with something for each entry of a triangle, such as its value, row by row."""
        return self._interleave(triangle.indptr, triangle.columns, entries, back=True)

    def columns_by_rows(self, triangle: Triangle) -> Any:
        """Return the column of each entry of a triangle, row by row."""
        entries = len(triangle.values)
        return self.layout.columns_by_rows(self.slices, triangle.indptr, triangle.columns, entries, self.backend)

    def _interleave(self, indptr: Any, columns: Any, entries: Any, back: bool = False) -> Any:
        result, macros = self.backend.xp.empty_like(entries), self.layout.macros
        return layouts.interleave_entries(self.slices, indptr, columns, entries, result, self.backend, back, **macros)

    def _fill(self, csr: Any, words: Any) -> Fingerprint:
        """Take the values of a matrix if these are finite, can be stored, and are in the places expected, which the
        device decides by the fingerprint: so the host waits once, at the end.
        """
        before, self.is_halfway = self.is_halfway, True
        self._fill_values(csr, words)
        read = self._fingerprints.read(words)
        expected = self.__dict__.get("_fingerprint", read)
        # If the device has refused the new values, the blocks still hold the old ones.
        self.is_halfway = before or are_taken.py_func(expected, read, self._narrows)
        return read

    def _fill_values(self, csr: Any, words: Any) -> None:
        """Fetch the values into the same arrays again, which may be part of a captured application."""
        lower, upper = ((part.indptr, part.columns, part.source, part.values) for part in (self.lower, self.upper))
        self._run.fetch_values(
            self.n_slices,
            self.slices,
            self.perm,
            self.pattern_of(csr)[0],
            csr.data,
            *lower,
            *upper,
            self._diagonal_source,
            self.diagonal,
            self.dinv,
            int(self._divides),
            self._expected,
            words,
        )

    def _where_other(self, csr: Any) -> str:
        """Say in which row the pattern of a canonical matrix differs from the pattern of the blocks."""
        return f"in row {first_other_row(self, csr)}"

    def _match(self, csr: Any, taken: Callable[[Any], Fingerprint]) -> tuple[Any, Fingerprint]:
        """Return csr, or its canonical form if the blocks need that to have the same pattern, and the fingerprint."""
        fingerprint = taken(csr)
        if fingerprint.pattern == self._fingerprint.pattern or (canonical := admit_matrix(csr).canonical().csr) is csr:
            return csr, fingerprint
        return canonical, taken(canonical)

    def _enqueue_fingerprint(self, csr: Any, words: Any = None) -> Any:
        return self._fingerprints.enqueue(self.shape[0], *self.pattern_of(csr), csr.data, words)
