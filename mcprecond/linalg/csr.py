"""Products of a sparse matrix and a vector. On a GPU many warps share each long row.

Each block of threads multiplies some neighboring rows. Its threads load the entries of all these rows in the order of
memory, and add them up row by row in shared memory, so that short rows are read as fast as long ones. This is the
algorithm CSR-Stream, except that every block has the same number of rows and no plan of the rows is needed.

Greathouse, Daga: Efficient Sparse Matrix-Vector Multiplication on GPUs Using the CSR Storage Format, SC 2014.

One warp walks a row of 10^5 entries for a millisecond, while all others wait. So rows beyond a length are cut into
pieces. The last warp to finish a piece of a row adds up the sums of all pieces in their order: results do not depend on
which warp is last.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mcprecond.backends import Backend, KernelSet, compile_inlined, offset_type, unsigned
from mcprecond.backends.cuda_source import WARP
from mcprecond.linalg.columns import KERNELS as COLUMN_KERNELS
from mcprecond.linalg.columns import PIECE
from mcprecond.linalg.operator import Operator
from mcprecond.matrix import AdmittedMatrix, rows_of, transpose

KERNELS = KernelSet(__file__, "OFFSET VALUE STORED ARGUMENT LANES LONG_ROWS=0")

PER_LANE = 7  # most entries per thread in a row of average length
LOADS = 9  # entries that a thread loads in a round: more than PER_LANE, since some blocks have longer rows
MOST_ROUNDS = 8  # most rounds in which a block loads the entries of its rows together
LONG = 64  # a row is cut if it has more entries than this for each of the threads that share it
CUDA_CONSTANTS = {"PIECE": PIECE, "LOADS": LOADS, "MOST_ROUNDS": MOST_ROUNDS}


class Csr(Operator):
    """A sparse matrix as an operator.

    Parameters
    ----------
    csr : sparse matrix of SciPy or CuPy
        Its values are referred to where they are stored as they are.
    backend : Backend
    stored : dtype, optional
        The dtype in which values are stored; by default their own.
    dtype, argument : dtype, optional
        `dtype` is the dtype of the products, by default that of the values. `argument` is the dtype of the vectors that
        the matrix is applied to, by default `dtype`; rows are summed in it.
    longest_row : int, optional
        The length of the longest row, or more. Without it no row is cut into pieces.
    exponent : int, optional
        See `Operator`.
    copies : bool
        Whether to copy values in any case.
    """

    def __init__(
        self,
        csr: Any,
        backend: Backend,
        *,
        stored: Any = None,
        dtype: Any = None,
        argument: Any = None,
        longest_row: int = 0,
        exponent: int | None = None,
        copies: bool = False,
    ) -> None:
        entries = csr.indices.size
        self.shape, self._backend, self._exponent = csr.shape, backend, exponent
        self.dtype = np.dtype(dtype or csr.dtype)
        self.rows, self.offset, self.longest_row = csr.shape[0], offset_type(entries), longest_row
        self.indptr = csr.indptr.astype(self.offset, copy=False)
        self.indices = csr.indices.astype(np.int32, copy=False)
        self.values = csr.data.astype(stored or csr.dtype, copy=copies)
        self.lanes = lanes_for(entries / max(self.rows, 1), PER_LANE)
        self._long_rows = long_rows(self.indptr, longest_row, self.lanes, backend)
        # The choices of every kernel that multiplies rows, and further ones of kernels that read the stored values.
        self.macros = {"OFFSET": self.offset, "VALUE": self.dtype, "LANES": self.lanes}
        self.own_macros = {"STORED": self.values.dtype, "LONG_ROWS": int(self.cuts_rows)}
        argument = np.dtype(argument or self.dtype)
        self._run = backend.kernels(KERNELS, **self.macros, **self.own_macros, ARGUMENT=argument)
        # Loaded where several columns are wanted.
        self.macros_of_columns = {"OFFSET": self.offset, "VALUE": self.dtype}
        of_products = self.macros_of_columns | self.own_macros | {"ARGUMENT": argument}
        self._columns_run = partial(backend.kernels, COLUMN_KERNELS, **of_products)

    @property
    def exponent(self) -> int | None:
        return self._exponent

    @property
    def cuts_rows(self) -> bool:
        """Whether it has rows that are cut into pieces, which is the case on a GPU only."""
        return self._long_rows.n_rows > 0

    @property
    def lanes_of_longest(self) -> int:
        """How many threads share a row in kernels that do not cut long rows: a warp if there are any."""
        return WARP if self.cuts_rows else self.lanes

    def times(self, v: Any) -> Any:
        """The product with a vector, as a new one."""
        product = self._backend.xp.empty(self.rows, self.dtype)
        self.enqueue(self.new_state(), v, product)
        return product

    def adjoint(self) -> Csr:
        """The conjugate transpose, with values of the same dtype, for vectors of the same dtype."""
        parts = self.values.conj(), self.indices, self.indptr
        csr = transpose(self._backend.sparse.csr_matrix(parts, shape=self.shape), self._backend)
        longest = int((csr.indptr[1:] - csr.indptr[:-1]).max()) if self.shape[1] else 0
        return Csr(csr, self._backend, dtype=self.dtype, longest_row=longest, exponent=self._exponent)

    def diagonal_magnitudes(self) -> Any:
        """The magnitudes of the diagonal entries: of one of them where they are repeated, 0 where there is none."""
        xp = self._backend.xp
        rows = rows_of(self.indptr, self.indices, xp)
        places = xp.flatnonzero(rows == self.indices)
        magnitudes = xp.zeros(self.rows, np.float64)
        magnitudes[rows[places]] = abs(self.values[places])
        return magnitudes

    def sizes_of(self, v: Any) -> Any:
        """For each row the sum of the magnitudes of the terms of its product with a vector."""
        magnitudes = abs(self.values).astype(np.float64), self.indices, self.indptr
        return self._backend.sparse.csr_matrix(magnitudes, shape=self.shape) @ abs(v).astype(np.float64)

    def new_state(self, columns: int = 1) -> Any:
        """See `Operator`: the sums of the pieces of long rows, of one column after another; 0 if there are none."""
        if columns > 1:
            self._columns_run()  # nothing may be compiled while kernels are captured
        size = columns * self._long_rows.work_size
        return self._backend.xp.zeros(size, np.float64) if size else 0

    def arrays(self, state: Any) -> tuple[Any, ...]:
        """As kernels take them, in CUDA as a `Matrix`. Views that were kept would come out of a pickle as copies."""
        rows, cut = (unsigned(self.indptr), unsigned(self.indices), self.values), self._long_rows
        return self._backend.record(rows, (cut.longest, cut.n_rows, cut.n_pieces, cut.plan, state, cut.work_size))

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self.indptr.nbytes + self.indices.nbytes + self.values.nbytes

    def replace(self, csr: Any) -> None:
        """Take the values of a matrix with the same pattern, into the same arrays."""
        if self.values is not csr.data:
            self.values[...] = csr.data

    def enqueue(self, state: Any, x: Any, y: Any) -> None:
        """See `Operator`: y = A x."""
        self._multiply(state, x, 0, y)

    def enqueue_sum(self, state: Any, x: Any, y: Any) -> None:
        """y += A x, like `enqueue`."""
        self._multiply(state, x, 1, y)

    def _multiply(self, state: Any, x: Any, adds: int, y: Any) -> None:
        if (k := columns_of(x)) > 1:
            self._columns_run().multiply(y.size, k, *self.arrays(state), x, adds, y)
        else:
            self._run.multiply(self.rows, *self.arrays(state), x.reshape(-1), adds, y.reshape(-1))

    def enqueue_residual(self, state: Any, b: Any, x: Any, r: Any) -> None:
        """r = b - A x."""
        if (k := columns_of(x)) > 1:
            self._columns_run().residual(r.size, k, *self.arrays(state), b, x, r)
        else:
            self._run.residual(self.rows, *self.arrays(state), *(v.reshape(-1) for v in (b, x, r)))


def columns_of(x: Any) -> int:
    """How many columns a vector of shape (n,) or (n, k) has."""
    return 1 if x.ndim == 1 else int(x.shape[1])


def product_with(matrix: AdmittedMatrix, **options: Any) -> Csr:
    """Return an admitted matrix as an operator that cuts its long rows; `options` are further arguments of `Csr`."""
    exponent = None if matrix.largest is None else matrix.exponent
    return Csr(matrix.csr, matrix.backend, longest_row=matrix.max_degree + 1, exponent=exponent, **options)


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
        The length of the longest row that is not cut.
    n_rows, n_pieces : int
    plan : array of int32, or 0
        For each piece the number of its row among the long ones; for each long row its number in the matrix, and where
        its pieces begin. 0 if there are none.
    """

    longest: int
    n_rows: int
    n_pieces: int
    plan: Any

    @property
    def work_size(self) -> int:
        """How many numbers of float64 a product needs, zero at first: for each long row what it adds to the inner
        product, and how many of its pieces are done; for each piece its sum, of two numbers at most.
        """
        return 2 * (self.n_rows + self.n_pieces)


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
        return LongRows(2**62, 0, 0, 0)
    lengths = xp.diff(indptr.astype(np.int64))
    rows = xp.flatnonzero(lengths > longest)
    firsts = xp.zeros(len(rows) + 1, np.int64)
    xp.cumsum(-(-lengths[rows] // PIECE), out=firsts[1:])
    pieces = int(firsts[-1])
    owners = xp.searchsorted(firsts, xp.arange(pieces), side="right") - 1
    plan = xp.concatenate([owners, rows, firsts]).astype(np.int32)
    return LongRows(longest, len(rows), pieces, plan)


@compile_inlined
def row_product(i, indptr, indices, values, x):
    """Row i of A times x."""
    total = x.dtype.type(0)
    for k in range(indptr[i], indptr[i + 1]):
        total += values[k] * x[indices[k]]
    return total


@KERNELS.per_item
def multiply(first, end, indptr, indices, values, x, adds, y):
    """y = A x, or y += A x."""
    for i in range(first, end):
        total = y.dtype.type(row_product(i, indptr, indices, values, x))
        y[i] = y[i] + total if adds else total


@KERNELS.per_item
def residual(first, end, indptr, indices, values, b, x, r):
    """r = b - A x."""
    for i in range(first, end):
        r[i] = b[i] - row_product(i, indptr, indices, values, x)
