"""Color blocks: a matrix in color order, split into its strict triangles and its diagonal.

In color order the diagonal blocks of the matrix are diagonal, so a triangular solve goes color by color, all rows of a
color at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import prange

from mcprecond.backends import KernelSet, compile_part
from mcprecond.backends.inputs import csr_system
from mcprecond.coloring import Coloring, coloring_of
from mcprecond.reordering.slices import cut_slices, interleaved

KERNELS = KernelSet(__file__)

ODD = 0x1E3779B97F4A7C15  # any odd number whose bits look random


@dataclass
class Triangle:
    """A strict triangle of the matrix in color order.

    Attributes
    ----------
    indptr : array of int32 or int64, shape (n + 1,)
        Row offsets.
    indices, values : array, shape (entries,)
        The entries of each row, interleaved inside of slices (see reordering/slices.py); on a GPU by rising column in
        all but long rows, otherwise in the order that A has.
    """

    indptr: Any
    indices: Any
    values: Any

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self.indptr.nbytes + self.indices.nbytes + self.values.nbytes


class ColorBlocks:
    """The permutation of a coloring, and the matrix P A Pᵀ stored as lower + diagonal + upper.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, shape (n, n)
        Real or complex floats, any format. It is not changed and not referred to afterwards.
    coloring : str, Coloring or array of int, shape (n,)
        A method of `color`, or a coloring of A, which is checked.
    dtype : dtype, optional
        Of the stored triangles; that of A by default. The diagonal keeps the dtype of A.

    Attributes
    ----------
    coloring : Coloring
    perm, inverse : array of int32, shape (n,)
        New number -> old number, sorted by color and stable inside a color; and back.
    offsets : numpy.ndarray of int64, shape (n_colors + 1,)
        Color c has the new numbers offsets[c]..offsets[c + 1] - 1. On the host.
    slices : array of int32, shape (n_slices + 1,)
        Where the pieces begin in which colors are swept.
    lower, upper : Triangle
        Entries whose column has a smaller, or a larger, color than their row.
    diagonal : array, shape (n,)
        In color order; 0 where A stores none.

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

    def __init__(self, A: Any, coloring: str | Coloring | Any = "eb", *, dtype: Any = None) -> None:
        csr, self.backend = csr_system(A)
        xp, n = self.backend.xp, csr.shape[0]
        self.shape = csr.shape
        self.dtype = csr.dtype
        self.coloring = coloring_of(csr, coloring)
        self.offsets = np.concatenate([[0], np.cumsum(self.coloring.sizes)])
        self.perm = self.coloring.permutation()
        self.inverse = xp.empty(n, np.int32)
        self.inverse[self.perm] = xp.arange(n, dtype=np.int32)

        offset = np.int32 if csr.indices.size < 2**31 else np.int64
        self._stored = self.dtype if dtype is None else np.dtype(dtype)
        lanes = 8 if csr.indices.size > 8 * n else 2
        # Rows of this length at most are sorted: neighboring rows then read neighboring values, and first those that
        # are there first. On the CPU that does not pay.
        self._sorted_length = 8 * lanes if self.backend.resident_warps else 0
        bits = np.dtype(f"i{min(self.dtype.itemsize, 8)}")
        self._run = self.backend.kernels(
            KERNELS, OFFSET=offset, VALUE=self.dtype, STORED=self._stored, BITS=bits, LANES=lanes
        )
        indptr, indices = self._pattern(csr)
        lower_counts, upper_counts = xp.zeros(n + 1, offset), xp.zeros(n + 1, offset)
        self._run.count_entries(n, indptr, indices, self.perm, self.inverse, lower_counts[1:], upper_counts[1:])
        lower_indptr, upper_indptr = (xp.cumsum(counts, dtype=offset) for counts in (lower_counts, upper_counts))
        colors = self.coloring.colors[self.perm]
        self.slices = cut_slices(self.offsets, colors, lower_indptr, upper_indptr, self.backend)
        lower_indices, upper_indices = (xp.empty(int(ends[-1]), np.int32) for ends in (lower_indptr, upper_indptr))
        self._run.fill_indices(
            n, indptr, indices, self.perm, self.inverse, self._sorted_length, lower_indptr, lower_indices, upper_indptr,
            upper_indices,
        )  # fmt: skip
        self.lower, self.upper = (
            Triangle(indptr, self._interleaved(indptr, indices), xp.empty(len(indices), self._stored))
            for indptr, indices in ((lower_indptr, lower_indices), (upper_indptr, upper_indices))
        )
        self.diagonal = xp.empty(n, self.dtype)
        self._row_keys, self._digest = self._keys(csr)
        self._fill_values(csr)

    @property
    def n_colors(self) -> int:
        """The number of colors, and of blocks."""
        return self.coloring.n_colors

    @property
    def nbytes(self) -> int:
        """Memory of triangles, diagonal, permutations and row keys in bytes."""
        arrays = (self.lower, self.upper, self.diagonal, self.perm, self.inverse, self.slices, self._row_keys)
        return sum(array.nbytes for array in arrays)

    def rows_of(self, c: int) -> tuple[int, int]:
        """Return how many rows color c has, and the new number of the first."""
        first, end = self.offsets[c], self.offsets[c + 1]
        return int(end - first), int(first)

    def holds(self, A: Any) -> bool:
        """Whether the blocks are those of A: the same entries in the same places, told by 64-bit hashes.

        A must be CSR and of the blocks' shape, dtype and device.
        """
        return self._keys(A)[1] == self._digest

    def update(self, A: Any) -> None:
        """Take new values from a matrix with the same pattern; coloring and storage stay.

        Raises
        ------
        TypeError, ValueError
            If A differs in shape, pattern, dtype or device from the matrix of the blocks (which then stay as they are).
        """
        csr, backend = csr_system(A)
        if backend.name != self.backend.name or csr.dtype != self.dtype or csr.shape != self.shape:
            raise ValueError(
                f"A must be of shape {self.shape}, dtype {self.dtype} and on the {self.backend.name} as before, "
                f"got shape {csr.shape}, dtype {csr.dtype} on the {backend.name}"
            )
        row_keys, digest = self._keys(csr)
        differing = row_keys != self._row_keys
        if bool(differing.any()):
            row = int(differing.argmax())
            raise ValueError(f"A has another pattern than before in row {row}; build a new object for a new pattern")
        self._digest = digest
        self._fill_values(csr)

    def permuted(self) -> Any:
        """Return P A Pᵀ as a CSR matrix with sorted rows, on the device of A; every row has a diagonal entry."""
        xp, n = self.backend.xp, self.shape[0]
        indptr = self.lower.indptr + self.upper.indptr + xp.arange(n + 1, dtype=self.lower.indptr.dtype)
        indices = xp.empty(int(indptr[-1]), np.int32)
        values = xp.empty(len(indices), self.dtype)
        rows = (
            self._interleaved(triangle.indptr, entries, back=True)
            for triangle in (self.lower, self.upper)
            for entries in (triangle.indices, triangle.values)
        )
        lower_indices, lower, upper_indices, upper = rows
        self._run.join(
            n, self.lower.indptr, lower_indices, lower, self.upper.indptr, upper_indices, upper, self.diagonal, indptr,
            indices, values,
        )  # fmt: skip
        matrix = self.backend.sparse.csr_matrix((values, indices, indptr), shape=self.shape)
        matrix.sort_indices()
        return matrix

    def _pattern(self, csr: Any) -> tuple[Any, Any]:
        xp = self.backend.xp
        offset = np.int32 if csr.indices.size < 2**31 else np.int64
        return xp.asarray(csr.indptr, dtype=offset), xp.asarray(csr.indices, dtype=np.int32)

    def _interleaved(self, indptr: Any, entries: Any, back: bool = False) -> Any:
        return interleaved(
            self.slices, indptr, entries, self.backend.xp.empty_like(entries), self.backend, back=back
        )  # fmt: skip

    def _fill_values(self, csr: Any) -> None:
        """Into the same arrays again: they may be part of a captured application."""
        lower, upper = (self.backend.xp.empty_like(triangle.values) for triangle in (self.lower, self.upper))
        self._run.fill_values(
            self.shape[0], *self._pattern(csr), csr.data, self.perm, self.inverse, self._sorted_length,
            self.lower.indptr, lower, self.upper.indptr, upper, self.diagonal,
        )  # fmt: skip
        for triangle, values in ((self.lower, lower), (self.upper, upper)):
            interleaved(self.slices, triangle.indptr, values, triangle.values, self.backend)

    def _keys(self, csr: Any) -> tuple[Any, int]:
        """A hash of the pattern of each row of A (int64), and one of the whole matrix with its values."""
        xp, n = self.backend.xp, self.shape[0]
        keys, digest = xp.empty(n, np.int64), xp.zeros(1, np.int64)
        bits = csr.data.view(f"i{min(self.dtype.itemsize, 8)}")
        if len(bits) > len(csr.data):
            bits = bits[::2] * ODD + bits[1::2]  # of real and imaginary part
        self._run.row_keys(n, *self._pattern(csr), bits, keys, digest)
        return keys, int(digest[0])


# In color order two neighbors never have the same color, so the new numbers alone tell the triangle: an entry in row i
# is lower if its column's new number is smaller than i.


@KERNELS.twin
def count_entries(n, indptr, indices, perm, inverse, lower_counts, upper_counts):
    """Entries of each triangle per row of the color order."""
    for i in prange(n):
        lower = upper = 0
        for k in range(indptr[perm[i]], indptr[perm[i] + 1]):
            lower += inverse[indices[k]] < i
            upper += inverse[indices[k]] > i
        lower_counts[i] = lower
        upper_counts[i] = upper


@compile_part
def order_of_row(i, indptr, indices, perm, inverse, sorted_length):
    """The entries of row i of the color order, in the order in which they are stored."""
    entries = np.arange(indptr[perm[i]], indptr[perm[i] + 1])
    if len(entries) > sorted_length:
        return entries
    return entries[np.argsort(inverse[indices[entries]], kind="mergesort")]


@KERNELS.twin
def fill_indices(
    n, indptr, indices, perm, inverse, sorted_length, lower_indptr, lower_indices, upper_indptr, upper_indices
):  # fmt: skip
    """The column indices of both triangles."""
    for i in prange(n):
        lower, upper = lower_indptr[i], upper_indptr[i]
        for k in order_of_row(i, indptr, indices, perm, inverse, sorted_length):
            j = inverse[indices[k]]
            if j < i:
                lower_indices[lower] = j
                lower += 1
            elif j > i:
                upper_indices[upper] = j
                upper += 1


@KERNELS.twin
def fill_values(
    n, indptr, indices, values, perm, inverse, sorted_length, lower_indptr, lower, upper_indptr, upper, diagonal
):  # fmt: skip
    """The values of both triangles and of the diagonal; repeated diagonal entries add up."""
    for i in prange(n):
        next_lower, next_upper = lower_indptr[i], upper_indptr[i]
        own = values.dtype.type(0)
        for k in order_of_row(i, indptr, indices, perm, inverse, sorted_length):
            j = inverse[indices[k]]
            if j < i:
                lower[next_lower] = values[k]
                next_lower += 1
            elif j > i:
                upper[next_upper] = values[k]
                next_upper += 1
            else:
                own += values[k]
        diagonal[i] = own


@compile_part
def mix64(x):
    """Mix the bits of a 64-bit number well."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@KERNELS.strided_twin
def row_keys(n, indptr, indices, bits, keys, digest):
    """Hash what is where: a key for the columns of each row, and the sum of those of columns and values for all."""
    total = np.uint64(0)
    for i in prange(n):
        key, with_values = np.uint64(0), mix64(np.uint64(i))
        for k in range(indptr[i], indptr[i + 1]):
            entry = mix64((np.uint64(k - indptr[i]) << np.uint64(32)) + np.uint64(indices[k]))
            key += entry
            with_values += mix64(entry ^ mix64(np.uint64(bits[k])))
        keys[i] = np.int64(key)
        total += mix64(with_values)
    digest[0] = np.int64(total)


@KERNELS.twin
def join(n, lower_indptr, lower_indices, lower, upper_indptr, upper_indices, upper, diagonal, indptr, indices, values):
    """Put lower, diagonal and upper back into one CSR matrix."""
    for i in prange(n):
        place = indptr[i]
        for k in range(lower_indptr[i], lower_indptr[i + 1]):
            indices[place] = lower_indices[k]
            values[place] = lower[k]
            place += 1
        indices[place] = i
        values[place] = diagonal[i]
        place += 1
        for k in range(upper_indptr[i], upper_indptr[i + 1]):
            indices[place] = upper_indices[k]
            values[place] = upper[k]
            place += 1
