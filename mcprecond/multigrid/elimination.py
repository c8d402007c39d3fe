"""Points that are eliminated exactly, as the ends and the links of chains and trees: a level without a smoother.

Let F be an independent set of points and C all others. With P = [-inv(D_F) A_FC; I] the coarse matrix P^H A P is the
Schur complement of A in C, and x = P x_C + inv(D_F) b_F solves A x = b if x_C solves the coarse system for P^H b. A
point with at most two neighbors joins no more than these two, so that the Schur complement has fewer entries than A,
where aggregates and interpolation between points would fill it in.

In F are the points with at most two neighbors that come before each such neighbor, by the number of their neighbors and
then by a hash.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_inlined, compile_loop
from mcprecond.backends.hashing import mix
from mcprecond.backends.team.atomics import atomic_add
from mcprecond.linalg.diagonal import Diagonal
from mcprecond.matrix import AdmittedMatrix, canonical_csr
from mcprecond.multigrid.galerkin import Product
from mcprecond.multigrid.hierarchy import Level
from mcprecond.multigrid.interpolation import Interpolation
from mcprecond.multigrid.patterns import matrix_of_blocks
from mcprecond.multigrid.products import Arrays, Multiplication, Rows
from mcprecond.multigrid.smoothers import Smoother
from mcprecond.multigrid.splitting import lanes_of

KERNELS = KernelSet(__file__, "OFFSET VALUE LANES")

MOST_NEIGHBORS = 2
CUDA_CONSTANTS = {"MOST_NEIGHBORS": MOST_NEIGHBORS}
#: Of the points of a level: if fewer would go, none does.
LEAST_SHARE = 0.2


class ExactPoints(Smoother):
    """What a level with eliminated points has for a smoother: x = inv(D_F) b_F, which completes the correction.

    Parameters
    ----------
    P : ExactInterpolation
        It is updated before.
    dtype : dtype
        Of the vectors.
    """

    is_exact = True
    description = "exact elimination"
    nbytes: int

    def __init__(self, A: AdmittedMatrix, P: ExactInterpolation, dtype: Any) -> None:
        self.shape, self.dtype, self._P = A.shape, np.dtype(dtype), P
        self._dinv = P.dinv.astype(dtype)
        self.nbytes = self._dinv.nbytes
        self._operator = Diagonal(self._dinv, A.backend, 0)

    def update(self, matrix: AdmittedMatrix) -> None:
        self._dinv[...] = self._P.dinv

    def adjoint(self) -> ExactPoints:
        return self

    def new_state(self, columns: int = 1) -> None:
        return None

    def enqueue(self, state: None, b: Any, x: Any) -> None:
        self._operator.enqueue(None, b, x)

    def before(self, state: None, b: Any, x: Any, r: Any, sweeps: int) -> None:
        raise NotImplementedError("the correction of a level with eliminated points is exact")

    after = residual = before  # type: ignore[assignment]


class ExactInterpolation(Interpolation):
    """P = [-inv(D_F) A_FC; I], and R = P^H.

    Since (A P)_F is zero, the coarse matrix R A P consists of the rows of A P in C, and only these are computed.

    Parameters
    ----------
    A : AdmittedMatrix
        Canonical, with values, a diagonal and a symmetric pattern.
    states : array of int32, shape (n,)
        -1 for each point that is eliminated, and 0 for others. No two of the former are neighbors. It becomes
        `numbers`.
    gone, entries : int
        How many points are eliminated, and how many entries their rows have.

    Attributes
    ----------
    numbers : array of int32, shape (n,)
        The number of each point that is left; -1 for others.
    points : array of int32, shape (count,)
        The points that are left.
    R : sparse matrix
        P^H; see `Product`.
    dinv : array, shape (n,)
        inv(D_F), and zeros in C.
    """

    b = k = 1
    empty = None
    longest_row = MOST_NEIGHBORS

    def __init__(self, A: AdmittedMatrix, states: Any, gone: int, entries: int) -> None:
        backend, xp, n, offset = A.backend, A.backend.xp, A.shape[0], A.indptr.dtype
        self.count = count = n - gone
        self.numbers, self.points = states, xp.empty(count, np.int32)
        pattern, run = (A.indptr, A.indices, self.numbers), self._kernels(A)
        # `counts` has the lengths of the rows of P, then of R, and then of the rows of A that stay, behind a zero.
        counts = xp.empty(n + 2 * count + 1, np.int64)
        run.count_rows(n, count, *pattern, xp.cumsum(states, dtype=np.int32), self.points, counts)
        offsets = xp.cumsum(counts)
        # A row of P in F has the entries of that of A but for the diagonal one.
        of_P = count + entries - gone
        sizes = (n, of_P), (count, of_P), (count, A.indices.size - entries)
        P, R, left = ((xp.empty(rows + 1, offset), xp.empty(size, np.int32)) for rows, size in sizes)
        run.list_rows(n, count, *pattern, offsets, *P, *R, *left)
        self.pattern = P
        self.csr = canonical_csr(xp.empty(of_P, A.dtype), P[1], P[0], (n, count), backend)
        self.R = canonical_csr(xp.empty(of_P, A.dtype), R[1], R[0], (count, n), backend)
        #: The pattern of the rows of A in C, and their values.
        self.rows_left, self.left = left, xp.empty(len(left[1]), A.dtype)
        self.dinv = xp.empty(n, A.dtype)
        self.update(A)

    def _kernels(self, A: AdmittedMatrix) -> Any:
        return A.backend.kernels(KERNELS, OFFSET=A.indptr.dtype, VALUE=A.dtype, LANES=lanes_of(A))

    def update(self, A: AdmittedMatrix) -> None:
        matrix = A.indptr, A.indices, A.data, A.diagonal(), self.numbers
        transfers = self.csr.indptr, self.csr.data, self.R.indptr, self.R.data
        self._kernels(A).fill_rows(A.shape[0], *matrix, *transfers, self.rows_left[0], self.left, self.dinv)


class SchurComplement(Product):
    """R and the coarse matrix, the Schur complement, of a level with eliminated points."""

    P: ExactInterpolation

    def __init__(self, A: AdmittedMatrix, P: ExactInterpolation) -> None:
        self.P, self.R, backend = P, P.R, A.backend
        self.product = Multiplication(*self._factors(), 1, 1, P.count, backend, A.max_degree + 1)
        self.pattern, values = self.product.in_order(1)
        coarse = matrix_of_blocks(self.pattern, 1, 1, P.count, A.dtype, backend, values)
        self.longest_row = A.max_degree + 1  # R has no more entries in a row than A
        self.coarse = AdmittedMatrix.computed(coarse, backend, self.product.longest, is_symmetric=A.is_symmetric)

    def _factors(self) -> tuple[Arrays, Rows]:
        """The rows of A that stay, and P."""
        return (*self.P.rows_left, self.P.left), Rows.of(self.P.pattern, self.P.csr.data)

    def update(self, A: AdmittedMatrix) -> None:
        self.product.compute_into(*self._factors(), Rows.of(self.pattern, self.coarse.data), 1)


def eliminate(level: Level, A: AdmittedMatrix) -> Any:
    """Eliminate points of a canonical matrix with a diagonal, if that pays: A -> F -> P -> Schur
    complement. Return the points that are left, or None if all are.

    If the pattern is not symmetric, all are: two points of F could be neighbors by an entry on one side only.
    """
    if not A.is_symmetric:
        return None
    n, xp = A.shape[0], A.backend.xp
    states, report = xp.empty(n, np.int32), A.backend.zeros(2, np.int64)
    run = A.backend.kernels(KERNELS, OFFSET=A.indptr.dtype, VALUE=A.dtype, LANES=1)
    run.find_chains(n, A.indptr, A.indices, A.degrees, states, report)
    gone, entries = (int(number) for number in A.backend.to_host(report))
    if not LEAST_SHARE * n <= gone < n:
        return None
    P = ExactInterpolation(A, states, gone, entries)
    level.interpolation, level.galerkin = P, SchurComplement(A, P)
    level.smoother = ExactPoints(A, P, level.dtype)
    return P.points


# On the CPU.


@KERNELS.strided
def find_chains(n, indptr, indices, degrees, states, report):
    """The state of each point, -1 if it is eliminated and 0 if it is left; count those that are eliminated, and the
    entries of their rows.
    """
    find_states(0, n, indptr, indices, degrees, states, report)


@compile_loop
def find_states(first, end, indptr, indices, degrees, states, report):
    """The points of `find_chains`."""
    gone = entries = 0
    for i in range(first, end):
        goes = degrees[i] <= MOST_NEIGHBORS
        if goes:
            mine = mix(i, 0)
            for k in range(indptr[i], indptr[i + 1]):
                j = np.int64(indices[k])
                if j != i and degrees[j] <= MOST_NEIGHBORS:
                    theirs = mix(j, 0)
                    goes &= degrees[i] < degrees[j] or (degrees[i] == degrees[j] and mine < theirs)
        states[i] = -1 if goes else 0
        if goes:
            gone, entries = gone + 1, entries + np.int64(indptr[i + 1]) - np.int64(indptr[i])
    atomic_add(report, 0, np.int64(gone))
    atomic_add(report, 1, np.int64(entries))


@compile_inlined
def is_in_transfer(i, j, numbers):
    """Whether row i of R, if point i stays, or row i of P, if it is eliminated, has an entry made of a_ij."""
    return i == j or numbers[j] < 0 if numbers[i] >= 0 else i != j


@KERNELS.per_item
def count_rows(first, end, left, indptr, indices, numbers, gone, points, counts):
    """Number the points that are left, in the place of their states, and count the entries of the rows of P and R, and
    of the rows of A that stay. `gone` is minus the number of points that are eliminated up to each one.

    Of others, only the sign of a state or number is read, which stays.
    """
    n = len(numbers)
    for i in range(first, end):
        count = 0
        for k in range(indptr[i], indptr[i + 1]):
            count += is_in_transfer(i, indices[k], numbers)
        if i == 0:
            counts[0] = 0
        if numbers[i] < 0:
            counts[i + 1] = count
        else:
            number = i + gone[i]
            numbers[i], points[number], counts[i + 1] = number, i, 1
            counts[n + 1 + number], counts[n + left + 1 + number] = count, indptr[i + 1] - indptr[i]


@KERNELS.per_item
def list_rows(
    first,
    end,
    left,
    indptr,
    indices,
    numbers,
    offsets,
    P_indptr,
    P_columns,
    R_indptr,
    R_columns,
    left_indptr,
    left_columns,
):
    """List the columns of these entries, and the row offsets."""
    n = len(numbers)
    for i in range(first, end):
        number, place = numbers[i], offsets[i]
        P_indptr[i + 1] = offsets[i + 1]
        if i == 0:
            P_indptr[0] = R_indptr[0] = left_indptr[0] = 0
        begin = np.int64(0)
        if number >= 0:
            P_columns[place], place = number, offsets[n + number] - offsets[n]
            R_indptr[number + 1] = offsets[n + number + 1] - offsets[n]
            begin = offsets[n + left + number] - offsets[n + left]
            left_indptr[number + 1] = offsets[n + left + number + 1] - offsets[n + left]
        for k in range(indptr[i], indptr[i + 1]):
            j = np.uint32(indices[k])
            if number >= 0:
                left_columns[begin + (k - indptr[i])] = j
            if is_in_transfer(i, j, numbers):
                if number < 0:
                    P_columns[place] = numbers[j]
                else:
                    R_columns[place] = j
                place += 1


@KERNELS.per_item
def fill_rows(
    first, end, indptr, indices, values, diagonal, numbers, P_indptr, P, R_indptr, R, left_indptr, left, dinv
):
    """Compute the values of these entries, and the inverse diagonal of the points that are eliminated."""
    one = P.dtype.type(1)
    for i in range(first, end):
        number, place = numbers[i], P_indptr[i]
        dinv[i] = one / diagonal[i] if number < 0 else P.dtype.type(0)
        if number >= 0:
            P[place], place = one, R_indptr[number]
        for k in range(indptr[i], indptr[i + 1]):
            j = np.uint32(indices[k])
            if number >= 0:
                left[left_indptr[number] + (k - indptr[i])] = values[k]
            if is_in_transfer(i, j, numbers):
                if number < 0:
                    P[place] = -values[k] / diagonal[i]
                else:
                    R[place] = one if i == j else -values[k] / diagonal[j]
                place += 1
