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

from mcprecond.backends import KernelSet, compile_inlined
from mcprecond.backends.hashing import mix
from mcprecond.linalg.diagonal import Diagonal
from mcprecond.matrix import AdmittedMatrix
from mcprecond.multigrid.galerkin import Product
from mcprecond.multigrid.hierarchy import Level
from mcprecond.multigrid.interpolation import Interpolation
from mcprecond.multigrid.patterns import matrix_of_blocks
from mcprecond.multigrid.products import Arrays, Multiplication, Rows
from mcprecond.multigrid.smoothers import Smoother
from mcprecond.multigrid.splitting import COARSE, FINE, lanes_of

KERNELS = KernelSet(__file__, "OFFSET VALUE LANES")

MOST_NEIGHBORS = 2
CUDA_CONSTANTS = {"MOST_NEIGHBORS": MOST_NEIGHBORS, "COARSE": COARSE, "FINE": FINE}
#: Of the points of a level: if fewer would go, none does.
LEAST_SHARE = 0.2


class ExactPoints(Smoother):
    """What a level with eliminated points has for a smoother: x = inv(D_F) b_F, which completes the correction."""

    is_exact = True
    description = "exact elimination"
    nbytes: int

    def __init__(self, A: AdmittedMatrix, is_fine: Any, dtype: Any) -> None:
        self.shape, self.dtype, self._is_fine = A.shape, np.dtype(dtype), is_fine
        self._dinv = A.backend.xp.zeros(A.shape[0], dtype)
        self.nbytes = self._dinv.nbytes
        self.update(A)
        self._operator = Diagonal(self._dinv, A.backend, 0)

    def update(self, matrix: AdmittedMatrix) -> None:
        xp = matrix.backend.xp
        self._dinv[...] = xp.where(self._is_fine, 1 / matrix.diagonal(), 0)

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
        Canonical, with values and a diagonal.
    is_fine : array of bool, shape (n,)
        Whether each point is eliminated. No two of them are neighbors.
    count : int
        How many points are left.

    Attributes
    ----------
    R : sparse matrix
        Later values go into the same arrays.
    """

    b = k = 1
    empty = None
    longest_row = MOST_NEIGHBORS

    def __init__(self, A: AdmittedMatrix, is_fine: Any, count: int) -> None:
        backend, xp, n = A.backend, A.backend.xp, A.shape[0]
        self.count = count
        #: The number of each point that is left; -1 for others.
        self.numbers = xp.where(is_fine, np.int32(-1), xp.cumsum(~is_fine, dtype=np.int32) - 1)
        counts = xp.zeros((3, n + 1), np.int64)
        pattern = A.indptr, A.indices, self.numbers
        self._kernels(A).count_rows(n, *pattern, *(of_rows[1:] for of_rows in counts))
        of_P, of_R, of_left = offsets = xp.cumsum(counts, axis=1)
        in_P, in_R, in_left = (xp.empty(int(entries), np.int32) for entries in backend.to_host(offsets[:, -1]))
        self.pattern, self.R_pattern = (of_P, in_P), (of_R[: count + 1], in_R)
        self._kernels(A).list_rows(n, *pattern, *self.pattern, *self.R_pattern, of_left, in_left)
        #: The pattern of the rows of A in C, and their values.
        self.rows_left = of_left[: count + 1].astype(A.indptr.dtype), in_left
        self.left = xp.empty(len(in_left), A.dtype)
        self.csr = matrix_of_blocks(self.pattern, 1, 1, count, A.dtype, backend)
        self.R = matrix_of_blocks(self.R_pattern, 1, 1, n, A.dtype, backend)
        self.update(A)

    def _kernels(self, A: AdmittedMatrix) -> Any:
        return A.backend.kernels(KERNELS, OFFSET=A.indptr.dtype, VALUE=A.dtype, LANES=lanes_of(A))

    def update(self, A: AdmittedMatrix) -> None:
        matrix, offsets = (A.indptr, A.indices, A.data, A.diagonal(), self.numbers), self.rows_left[0]
        of_P, of_R = self.pattern[0], self.R_pattern[0]
        self._kernels(A).fill_rows(A.shape[0], *matrix, of_P, self.csr.data, of_R, self.R.data, offsets, self.left)


class SchurComplement(Product):
    """R and the coarse matrix, the Schur complement, of a level with eliminated points."""

    P: ExactInterpolation

    def __init__(self, A: AdmittedMatrix, P: ExactInterpolation) -> None:
        self.P, self.R, backend = P, P.R, A.backend
        self.product = Multiplication(*self._factors(), 1, 1, P.count, backend, A.max_degree + 1)
        self.pattern, values = self.product.in_order(1)
        coarse = matrix_of_blocks(self.pattern, 1, 1, P.count, A.dtype, backend, values)
        self.longest_row = A.max_degree + 1
        self.coarse = AdmittedMatrix.computed(coarse, backend, self.product.longest, is_symmetric=A.is_symmetric)

    def _factors(self) -> tuple[Arrays, Rows]:
        """The rows of A that stay, and P."""
        return (*self.P.rows_left, self.P.left), Rows.of(self.P.pattern, self.P.csr.data)

    def update(self, A: AdmittedMatrix) -> None:
        self.product.compute_into(*self._factors(), self.pattern, 1, self.coarse.data)


def eliminate(level: Level, A: AdmittedMatrix) -> Any:
    """Eliminate points of a canonical matrix with a diagonal, if that pays: A -> F -> P -> pattern of the Schur
    complement. Return whether each point is left, or None if all are.
    """
    n = A.shape[0]
    states = A.backend.xp.empty(n, np.int32)
    run = A.backend.kernels(KERNELS, OFFSET=A.indptr.dtype, VALUE=A.dtype, LANES=1)
    run.find_chains(n, A.indptr, A.indices, A.degrees, states)
    is_fine = states == FINE
    gone = int(is_fine.sum())
    if not LEAST_SHARE * n <= gone < n:
        return None
    P = ExactInterpolation(A, is_fine, n - gone)
    level.interpolation, level.galerkin = P, SchurComplement(A, P)
    level.smoother = ExactPoints(A, is_fine, level.dtype)
    return ~is_fine


# On the CPU.


@KERNELS.per_item
def find_chains(first, end, indptr, indices, degrees, states):
    """Whether each point is eliminated (FINE) or left (COARSE)."""
    for i in range(first, end):
        goes = degrees[i] <= MOST_NEIGHBORS
        if goes:
            mine = mix(i, 0)
            for k in range(indptr[i], indptr[i + 1]):
                j = np.int64(indices[k])
                if j != i and degrees[j] <= MOST_NEIGHBORS:
                    theirs = mix(j, 0)
                    goes &= degrees[i] < degrees[j] or (degrees[i] == degrees[j] and mine < theirs)
        states[i] = FINE if goes else COARSE


@compile_inlined
def is_in_transfer(i, j, numbers):
    """Whether row i of R, if point i stays, or row i of P, if it is eliminated, has an entry made of a_ij."""
    return i == j or numbers[j] < 0 if numbers[i] >= 0 else i != j


@KERNELS.per_item
def count_rows(first, end, indptr, indices, numbers, P_counts, R_counts, left_counts):
    """Count the entries of the rows of P and R, and of the rows of A that stay."""
    for i in range(first, end):
        count = 0
        for k in range(indptr[i], indptr[i + 1]):
            count += is_in_transfer(i, indices[k], numbers)
        if numbers[i] < 0:
            P_counts[i] = count
        else:
            P_counts[i], R_counts[numbers[i]], left_counts[numbers[i]] = 1, count, indptr[i + 1] - indptr[i]


@KERNELS.per_item
def list_rows(
    first, end, indptr, indices, numbers, P_indptr, P_columns, R_indptr, R_columns, left_indptr, left_columns
):
    """List the columns of these entries."""
    for i in range(first, end):
        number, place = numbers[i], P_indptr[i]
        if number >= 0:
            P_columns[place], place = number, R_indptr[number]
        for k in range(indptr[i], indptr[i + 1]):
            j = np.uint32(indices[k])
            if number >= 0:
                left_columns[left_indptr[number] + (k - indptr[i])] = j
            if is_in_transfer(i, j, numbers):
                if number < 0:
                    P_columns[place] = numbers[j]
                else:
                    R_columns[place] = j
                place += 1


@KERNELS.per_item
def fill_rows(first, end, indptr, indices, values, diagonal, numbers, P_indptr, P, R_indptr, R, left_indptr, left):
    """Compute the values of these entries."""
    one = P.dtype.type(1)
    for i in range(first, end):
        number, place = numbers[i], P_indptr[i]
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
