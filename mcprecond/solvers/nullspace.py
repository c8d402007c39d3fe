"""CG for a singular A: b, x and every preconditioned residual are projected onto the complement of its null space.

Let the rows of V be an orthonormal basis of the null space, and P = I - V'V. CG on A x = P b with P M P for M stays in
the range of P: there A is definite, and rounding does not let the part of x in the null space grow. Nor does it matter
how M acts on the null space: the inverse on the coarsest level of a hierarchy may be as large there as 1 / rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from mcprecond.backends import NUMBERS, Backend, KernelSet, backend_of, compile_loop
from mcprecond.backends.arguments import describe
from mcprecond.backends.cuda_source import BLOCK
from mcprecond.backends.inputs import any_of, first_place
from mcprecond.linalg.csr import Csr, columns_of, product_with
from mcprecond.linalg.operator import Operator
from mcprecond.linalg.sums import norm, total
from mcprecond.matrix import AdmittedMatrix
from mcprecond.solvers.cg import ConjugateGradients
from mcprecond.solvers.columns import MOST_PARTS, ColumnsIteration, parts_of, total_of
from mcprecond.solvers.components import singular_components
from mcprecond.solvers.iteration import inner

KERNELS = KernelSet(__file__, "VALUE")

MOST = 32  # vectors, each of which is one more kernel in an iteration
PIECE = 512  # numbers of a set of rows that are added up in one sum
MOST_BLOCKS = 2**14  # of a grid, each of which leaves a number
#: Limits in units of rounding, relative to a vector before its projection. If at most DEPENDENT of a column is left, it
#: depends on the columns before it. If at most NOTHING of b is left, the rest is rounding, and counts as zero.
DEPENDENT, NOTHING = 100, 8


def is_detected(nullspace: Any) -> bool:
    """Whether the package is to find the null space."""
    return isinstance(nullspace, str) and nullspace == "detect"


def null_space_basis(nullspace: Any, matrix: AdmittedMatrix) -> Any:
    """Return an orthonormal basis of a null space in double precision, shape (k, n), on the device of a matrix.

    For "detect" it is a sparse matrix in CSR form, unless all rows are one component, and has no row if A has no
    singular components.

    Raises
    ------
    TypeError, ValueError
        If `nullspace` is neither "constant" nor "detect" nor an array of k <= 32 finite, linearly independent columns
        that fit the matrix, with A times each of them about zero.
    """
    if is_detected(nullspace):
        components = singular_components(matrix)
        if not components.is_constant:
            return components.basis
        nullspace = "constant"
    xp, n = matrix.backend.xp, matrix.shape[0]
    wide = np.complex128 if matrix.dtype.kind == "c" else np.float64
    if isinstance(nullspace, str):
        if nullspace != "constant":
            raise ValueError(f"nullspace must be 'constant', 'detect' or an array, got {nullspace!r}")
        given = xp.ones((n, 1), matrix.dtype)
    else:
        given = admit_vectors(nullspace, matrix)
    basis = xp.ascontiguousarray(given.T.astype(wide))
    least = DEPENDENT * float(np.finfo(given.dtype if given.dtype.kind in "fc" else wide).eps)
    for j, v in enumerate(basis):
        v /= abs(v).max() if n else 1
        v /= norm(v, matrix.backend) if n else 1
        for _ in range(2):
            for before in basis[:j]:
                v -= total(before.conj() * v, matrix.backend) * before
        rest = float(norm(v, matrix.backend)) if n else 1.0
        if rest <= least:
            raise ValueError(f"column {j} of nullspace depends on those before it; leave it out")
        v /= rest
    refuse_others(basis, matrix)
    return basis


def admit_vectors(nullspace: Any, matrix: AdmittedMatrix) -> Any:
    """Return a user's vectors as an array of shape (n, k) on the device of a matrix."""
    origin, n = backend_of(nullspace), matrix.shape[0]
    if origin.name == "gpu" != matrix.backend.name:
        raise TypeError("nullspace is on the gpu and must be on the cpu like A; move it with cupy.asnumpy(nullspace)")
    array = origin.xp.asarray(nullspace)
    if array.dtype.kind not in "fiubc":
        raise TypeError(f"nullspace must be 'constant', 'detect' or an array of numbers, got {describe(nullspace)}")
    if array.dtype.kind == "c" and matrix.dtype.kind != "c":
        raise TypeError(f"nullspace holds {array.dtype} and A {matrix.dtype}; give real vectors, or A.astype(complex)")
    shape = array.shape
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[0] != n or not 1 <= array.shape[1] <= MOST:
        raise ValueError(f"nullspace must have shape ({n},) or ({n}, k) with k from 1 to {MOST}, got {shape}")
    if first_place(~origin.xp.isfinite(array).reshape(-1), origin.xp) is not None:
        raise ValueError("nullspace holds NaN or infinity; every value must be finite")
    zero = (array == 0).all(axis=0)
    if n and any_of(zero):
        raise ValueError(f"column {int(zero.argmax())} of nullspace is zero; leave it out")
    return matrix.backend.xp.asarray(array)


def refuse_others(basis: Any, matrix: AdmittedMatrix) -> None:
    """Raise ValueError unless A times each vector is zero, but for what rounding of A and of the vector may leave."""
    backend, (k, n) = matrix.backend, basis.shape
    if not n:
        return
    A, magnitudes = product_with(matrix), matrix.magnitudes()
    tolerance = float(np.sqrt(np.finfo(matrix.dtype).eps))
    for j in range(k):
        v, product = basis[j].astype(matrix.dtype), backend.xp.empty(n, matrix.dtype)
        A.enqueue(A.new_state(), v, product)
        with np.errstate(all="ignore"):
            largest, size = float(abs(product).max()), float((magnitudes @ abs(v)).max())
        if not largest <= tolerance * size:
            norm = largest * float(backend.xp.linalg.norm(product / largest))
            raise ValueError(
                f"column {j} of nullspace is not in the null space of A: for this v, orthogonal to those before it and "
                f"of norm 1, ||A v|| is {norm:.3g}, and |A| |v| has entries up to {size:.3g}; leave nullspace out if A "
                "is not singular"
            )


class DenseProjection(Operator):
    """P = I - V'V for a few dense rows of V. The result may be written over the argument.

    Parameters
    ----------
    basis : array, shape (k, n)
        V: orthonormal, of the dtype of vectors or wider.
    dtype : dtype
        Of the vectors.
    backend : Backend
    """

    def __init__(self, basis: Any, dtype: Any, backend: Backend) -> None:
        self.dtype, self._backend = np.dtype(dtype), backend
        basis = basis.astype(self.dtype)
        # A complex span is a real one, of the vectors and of i times them.
        both = self.dtype.kind == "c"
        self._columns = backend.xp.concatenate([basis, 1j * basis]).astype(self.dtype) if both else basis
        self.shape = (basis.shape[1], basis.shape[1])
        self._run = backend.kernels(KERNELS, VALUE=self.dtype)

    def new_state(self, columns: int = 1) -> Any:
        """See `Operator`: the parts, and the workspace of sums."""
        xp, (m, n) = self._backend.xp, self._columns.shape
        blocks = max(MOST_PARTS, min(MOST_BLOCKS, n * columns // BLOCK + 1))
        return xp.empty((m, columns)), xp.empty(blocks * columns), xp.zeros(1, np.int32)

    def enqueue(self, state: Any, x: Any, y: Any) -> None:
        parts, *reduction = state
        (m, n), k = self._columns.shape, columns_of(x)
        x, y = x.reshape(n, k), y.reshape(n, k)
        for j in range(m):
            self._run.find_part(x.size, k, self._columns[j], x, parts[j], *reduction)
        self._run.take_off(x.size, k, m, self._columns, parts, x, y)


class MeansProjection(Operator):
    """Takes off the mean in each of some disjoint sets of rows. The result may be written over the argument.

    The numbers of a set are added up in pieces of some hundreds, and then the sums of its pieces, by products with
    sparse matrices of ones: there may be any number of sets, and many threads share a large one.

    Parameters
    ----------
    basis : sparse matrix in CSR form, shape (k, n)
        A row for each set, whose columns are its members.
    dtype : dtype
        Of the vectors.
    backend : Backend
    """

    def __init__(self, basis: Any, dtype: Any, backend: Backend) -> None:
        (k, n), members, offsets = basis.shape, backend.to_host(basis.indices), backend.to_host(basis.indptr)
        self.dtype, self.shape, self._backend = np.dtype(dtype), (n, n), backend
        sizes = np.diff(offsets)
        pieces = -(-sizes // PIECE)  # how many pieces a set has
        of_sets = np.append(0, np.cumsum(pieces))
        numbers = np.arange(of_sets[-1]) - np.repeat(of_sets[:-1], pieces)  # of pieces in their sets
        of_pieces = np.append(np.repeat(offsets[:-1], pieces) + numbers * PIECE, len(members))
        ones, count = np.ones(len(members)), len(numbers)
        order, of_rows = np.argsort(members), np.append(0, np.cumsum(np.bincount(members, minlength=n)))
        owners, shares = np.repeat(np.arange(k), sizes)[order], np.repeat(1 / sizes, sizes)[order]
        self._sums = self._matrix(ones, members, of_pieces, (count, n))
        self._sums_of_sums = self._matrix(ones[:count], np.arange(count), of_sets, (k, count))
        self._means = self._matrix(shares, owners, of_rows, (n, k))

    def _matrix(self, values: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> Csr:
        longest, to = int(np.diff(indptr).max()), self._backend.xp.asarray
        arrays = to(values.astype(self.dtype)), to(indices.astype(np.int32)), to(indptr.astype(np.int32))
        return Csr(self._backend.sparse.csr_matrix(arrays, shape=shape), self._backend, longest_row=longest)

    def new_state(self, columns: int = 1) -> Any:
        """See `Operator`: the sums of pieces and of sets, and the states of the products."""
        matrices = self._sums, self._sums_of_sums, self._means
        sums = [self._backend.xp.empty((matrix.rows, columns), self.dtype) for matrix in matrices[:2]]
        return sums, [matrix.new_state(columns) for matrix in matrices]

    def enqueue(self, state: Any, x: Any, y: Any) -> None:
        (of_pieces, of_sets), (first, second, third) = state
        self._sums.enqueue(first, x, of_pieces)
        self._sums_of_sums.enqueue(second, of_pieces, of_sets)
        self._means.enqueue_residual(third, x, of_sets, y)


class Projected(Operator):
    """P M P: M, but for vectors and results without parts in a null space. M is None for the identity.

    Parameters
    ----------
    M : Operator or None
    basis : array or sparse matrix in CSR form, shape (k, n)
        As `null_space_basis` returns it.
    dtype : dtype
        Of the vectors.
    backend : Backend
    """

    def __init__(self, M: Operator | None, basis: Any, dtype: Any, backend: Backend) -> None:
        self.dtype, projection = np.dtype(dtype), MeansProjection if hasattr(basis, "indptr") else DenseProjection
        self._projection: Operator = projection(basis, dtype, backend)
        self.M, self.shape, self.backend = M, self._projection.shape, backend
        if M is not None:
            self.captures, self.takes_long, self.linear = M.captures, M.takes_long, M.linear

    @property
    def exponent(self) -> int | None:
        return 0 if self.M is None else self.M.exponent

    @property
    def narrowest(self) -> np.dtype[Any]:
        return self.dtype if self.M is None else self.M.narrowest

    def new_state(self, columns: int = 1) -> Any:
        """See `Operator`: the state of M, a vector, and the state of the projection."""
        return self._state(None if self.M is None else self.M.new_state(columns), columns)

    @contextmanager
    def lend_state(self, columns: int = 1) -> Iterator[Any]:
        if self.M is None:
            yield self.new_state(columns)
            return
        with self.M.lend_state(columns) as of_M:
            yield self._state(of_M, columns)

    def _state(self, of_M: Any, columns: int) -> Any:
        xp, n = self.backend.xp, self.shape[0]
        projected = None if self.M is None else xp.empty((n, columns) if columns > 1 else n, self.dtype)
        return of_M, projected, self._projection.new_state(columns)

    def enqueue(self, state: Any, x: Any, y: Any) -> None:
        of_M, projected, _ = state
        if self.M is None:
            self.project(state, x, y)
            return
        self.project(state, x, projected)
        self.M.enqueue(of_M, projected, y)
        self.project(state, y, y)

    def project(self, state: Any, x: Any, y: Any) -> None:
        """y = P x, by kernels only. x may be y."""
        self._projection.enqueue(state[2], x, y)


class InRange:
    """Methods for CG in the range of P, with P M P for M, that project b and x; to be inherited before an iteration."""

    b: Any
    x: Any

    def load(self, b: Any, x0: Any) -> None:
        """See `Iteration`; b and x0 without their parts in the null space, which may have been all."""
        super().load(b, x0)  # type: ignore[misc]
        before = self._largest(self.b)
        self._project(self.b)
        rounding = NOTHING * float(np.finfo(self.b.dtype).eps) * before
        nothing = (self._largest(self.b) <= rounding) & (rounding < np.inf)
        for column in np.flatnonzero(nothing):
            self.b.reshape(len(self.b), columns_of(self.b))[:, int(column)] = 0
        if x0 is not None:
            self._project(self.x)
            for iteration in (self, *getattr(self, "columns", ())):
                iteration.guess = None  # they begin with the projected guess

    def find_residual(self, accurately: bool = False) -> None:
        """See `Iteration`; x is projected first, so that a solution is orthogonal to the null space."""
        self._project(self.x)
        super().find_residual(accurately)  # type: ignore[misc]

    def _project(self, v: Any) -> None:
        """Project twice: the rest may be as small as the rounding of the part that was taken out."""
        for _ in range(2):
            self.M.project(self._of_M, v, v)  # type: ignore[attr-defined]

    def _largest(self, v: Any) -> Any:
        """The largest magnitude in each column, on the host."""
        largest = abs(v.reshape(len(v), columns_of(v))).max(axis=0) if v.size else np.zeros(columns_of(v))
        return backend_of(v).to_host(largest)


class ProjectedConjugateGradients(InRange, ConjugateGradients):
    """CG in the range of P."""

    M: Projected


class ProjectedColumns(InRange, ColumnsIteration):
    """CG in the range of P for several columns."""

    M: Projected


# The kernels on the CPU, for vectors of shape (n, k).


@KERNELS.strided
def find_part(size, k, column, v, part, partials, arrivals):
    """The coefficients of a vector of the basis in the columns of v."""
    sums = parts_of(len(v), k, partials)
    multiply_part(0, len(sums), column, v, sums)
    for c in range(k):
        part[c] = total_of(sums, c)


@compile_loop(grain=1)
def multiply_part(first, end, column, v, sums):
    """Some parts of the rows of `find_part`."""
    n = len(v)
    for part in range(first, end):
        sums[part] = 0
        for i in range(part * n // len(sums), (part + 1) * n // len(sums)):
            for c in range(v.shape[1]):
                sums[part, c] += inner(v[i, c], column[i])


@KERNELS.per_item_driver
def take_off(size, k, m, columns, parts, x, y):
    """y = x less its parts in the basis."""
    take_off_rows(0, len(x), columns, parts, x, y)


@compile_loop(grain=NUMBERS)
def take_off_rows(first, end, columns, parts, x, y):
    """The rows of `take_off`."""
    for i in range(first, end):
        for c in range(x.shape[1]):
            y[i, c] = x[i, c]
    for j in range(len(columns)):
        for c in range(x.shape[1]):
            part = y.real.dtype.type(parts[j, c])
            for i in range(first, end):
                y[i, c] -= part * columns[j, i]
