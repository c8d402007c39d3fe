"""A sparse matrix on vectors, and on a GPU pieces of its long rows, which many warps multiply at once.

One warp walks a row of 10^5 entries for a millisecond, while all others wait. So rows beyond a length are cut into
pieces. The last warp to finish a piece of a row adds up what was found for all of them, in their order: results do not
depend on which warp that is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mcprecond.backends import Backend, KernelSet, offset_type, unsigned
from mcprecond.matrix import AdmittedMatrix

KERNELS = KernelSet(__file__, "OFFSET VALUE STORED LANES")

PIECE = 1024  # entries
LONG = 32  # entries for each of the threads of a row, from which on it is cut
CUDA_CONSTANTS = {"PIECE": PIECE}


class Csr:
    """A sparse matrix on vectors. It only launches kernels once it is made, so that products can be captured.

    Parameters
    ----------
    csr : sparse matrix of SciPy or CuPy
        Its values are referred to where they are stored as they are.
    backend : Backend
    dtype : dtype, optional
        Of the vectors; that of the values by default.
    stored : dtype, optional
        In which values are stored; that of the vectors by default.
    longest_row : int, optional
        The length of the longest row, or more. Without it no row is cut into pieces. With it, one product at a time
        may run, since pieces have a place for their sums.
    per_lane : int
        Entries of a row for each of the threads that share it.
    """

    def __init__(
        self,
        csr: Any,
        backend: Backend,
        *,
        dtype: Any = None,
        stored: Any = None,
        longest_row: int = 0,
        per_lane: int = 2,
    ) -> None:
        xp, entries = backend.xp, csr.indices.size
        self.dtype = np.dtype(dtype or csr.dtype)
        self.rows, self.offset = csr.shape[0], offset_type(entries)
        self.indptr = xp.asarray(csr.indptr, dtype=self.offset)
        self.indices = xp.asarray(csr.indices, dtype=np.int32)
        self.values = csr.data.astype(stored or self.dtype, copy=False)
        self.lanes = lanes_for(entries / max(self.rows, 1), per_lane)
        self.long_rows = long_rows(self.indptr, longest_row, self.lanes, backend)
        macros = {"OFFSET": self.offset, "VALUE": self.dtype, "STORED": self.values.dtype, "LANES": self.lanes}
        self._run = backend.kernels(KERNELS, **macros)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """As kernels take them. Views that were kept would come out of a pickle as copies."""
        return unsigned(self.indptr), unsigned(self.indices), self.values, *self.long_rows

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self.indptr.nbytes + self.indices.nbytes + self.values.nbytes

    def replace(self, csr: Any) -> None:
        """Take the values of a matrix with the same pattern, into the same arrays."""
        if self.values is not csr.data:
            self.values[...] = csr.data

    def apply(self, x: Any, y: Any, *, adds: bool = False) -> None:
        """y = A x, or y += A x."""
        self._run.multiply(self.rows, *self.arrays, x, int(adds), y)


def product_with(matrix: AdmittedMatrix) -> Csr:
    """A on vectors, its long rows in pieces."""
    return Csr(matrix.csr, matrix.backend, longest_row=matrix.max_degree + 1)


def lanes_for(per_row: float, per_lane: int = 2) -> int:
    """How many threads of a GPU share a row of so many entries."""
    lanes = 1
    while lanes < 32 and lanes < per_row / per_lane:
        lanes *= 2
    return lanes


class LongRows(NamedTuple):
    """The long rows, as kernels take them.

    Attributes
    ----------
    longest : int
        How many entries the longest row has that is not cut.
    n_rows, n_pieces : int
    plan : array of int32
        For each piece the number of its row among the long ones; for each long row, its row; where its pieces begin.
    work : array of float64
        For each long row what it adds to the inner product, and how many of its pieces are done; for each piece its
        sum, of two numbers at most.
    """

    longest: int
    n_rows: int
    n_pieces: int
    plan: Any
    work: Any


def long_rows(indptr: Any, longest_row: int, lanes: int, backend: Backend) -> LongRows:
    """Cut the rows of a matrix that are too long for so many threads.

    Parameters
    ----------
    indptr : array, shape (n + 1,)
        Row offsets.
    longest_row : int
        The length of the longest row, or more.
    lanes : int
        How many threads share a row.
    """
    xp, longest = backend.xp, LONG * lanes
    if not backend.resident_warps or longest_row <= longest:
        return LongRows(2**62, 0, 0, xp.zeros(1, np.int32), xp.zeros(1, np.float64))
    lengths = xp.diff(indptr.astype(np.int64))
    rows = xp.flatnonzero(lengths > longest)
    firsts = xp.zeros(len(rows) + 1, np.int64)
    xp.cumsum(-(-lengths[rows] // PIECE), out=firsts[1:])
    pieces = int(firsts[-1])
    owners = xp.searchsorted(firsts, xp.arange(pieces), side="right") - 1
    plan = xp.concatenate([owners, rows, firsts]).astype(np.int32)
    return LongRows(longest, len(rows), pieces, plan, xp.zeros(2 * (len(rows) + pieces), np.float64))


@KERNELS.per_item
def multiply(first, end, indptr, indices, values, longest, n_long, n_pieces, plan, work, x, adds, y):
    """y = A x, or y += A x."""
    for i in range(first, end):
        total = y.dtype.type(0)
        for k in range(indptr[i], indptr[i + 1]):
            total += values[k] * x[indices[k]]
        y[i] = y[i] + total if adds else total
