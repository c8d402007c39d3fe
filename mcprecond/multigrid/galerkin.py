"""The prolongator, its adjoint and the matrix of the coarse level: their patterns once, their values again and again.

A step of Jacobi makes the columns of the tentative prolongator T smooth: ``P = T - omega D F T`` with the filtered
matrix F. The coarse matrix is ``P^H A P``. A row of P has all k columns of the aggregates of its node and of the strong
neighbors of that, zeros too: so all patterns stay, and new values of A take the numeric phase only. It adds up in a
fixed order, so that equal matrices have equal coarse matrices, to the last bit.

Departing from the paper, D has the inverse sums of the magnitudes of the rows of F. In the paper it is the inverse
diagonal over the spectral radius, which takes ten products with A to find, and is the same in a row of an M-matrix
whose sum is zero. And P is T where A P would have several times as many entries as A. On graphs without a geometry, as
those of circuits and of networks, a smooth prolongator makes coarse levels dense.

Vanek, Mandel, Brezina: Algebraic Multigrid by Smoothed Aggregation for Second and Fourth Order Elliptic Problems,
Computing 56, 1996, Algorithm 5.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_inlined
from mcprecond.backends.cuda_source import BLOCK, WARP
from mcprecond.linalg.csr import lanes_for
from mcprecond.matrix import AdmittedMatrix, rows_of
from mcprecond.multigrid.filtered import FilteredMatrix, inverse_row_sums
from mcprecond.multigrid.patterns import (
    PARTS,
    Pattern,
    longest_rows,
    matrix_of_blocks,
    product_pattern,
    transposed_pattern,
)

KERNELS = KernelSet(__file__, "OFFSET VALUE LANES UNKNOWNS CANDIDATES")

# A row of a product is in shared memory where at least so many threads share it. Each of them brings so many bytes for
# numbers, and so many places of a hash table, of which three quarters may be taken.
LEAST_SHARING, NUMBER_BYTES, TABLE_PER_THREAD = 16, 96, 8
CUDA_CONSTANTS = {"LEAST_SHARING": LEAST_SHARING, "NUMBER_BYTES": NUMBER_BYTES, "TABLE_PER_THREAD": TABLE_PER_THREAD}

#: The damping factor of the Jacobi step. 4/3 minimizes the bound in the paper. With 3/2, CG took fewer iterations on
#: many of the matrices of benchmarks/robustness.py, and more on none.
OMEGA = 3 / 2

#: P is smoothed unless A P would have more than this many times the entries of A.
MOST_GROWTH = 2.5


class GalerkinProduct:
    """P, R and the coarse matrix of a level.

    Parameters
    ----------
    matrix : AdmittedMatrix
        A, canonical.
    nodes : AdmittedMatrix
        With the pattern of its nodes; A itself where a node has one unknown.
    filtered : FilteredMatrix
    labels : array of int32, shape (n / block_size,)
        The aggregate of each node, or -1.
    T_pattern : pattern
        See `tentative`.
    count : int
        How many aggregates there are.
    Q : array, shape (n, k)
        The rows of T, see `tentative`.
    vanished : array of int, or None
        Unknowns of the coarse level that stand for nothing. They get ones on the diagonal.
    in_all : function
        The sum of a number over all processes that share the level, which decide together whether P is smoothed.

    Attributes
    ----------
    P, R : sparse matrices
        Later values go into the same arrays.
    coarse : AdmittedMatrix
        R A P, likewise.
    longest_rows : (int, int)
        At least the lengths of the longest rows of P and R.
    smooths : bool
        Whether P is smoothed; otherwise it is T.
    """

    def __init__(
        self,
        matrix: AdmittedMatrix,
        nodes: AdmittedMatrix,
        filtered: FilteredMatrix,
        labels: Any,
        T_pattern: Pattern,
        count: int,
        Q: Any,
        vanished: Any,
        in_all: Callable[[float], float] = lambda entries: entries,
    ) -> None:
        backend, xp, dtype = matrix.backend, matrix.backend.xp, matrix.dtype
        self.labels, self.filtered = labels, filtered
        self.b = matrix.shape[0] // nodes.shape[0] if nodes.shape[0] else 1
        self.k, self.count = Q.shape[1], count
        pattern = nodes.indptr, nodes.indices
        strong = pattern if self.b > 1 else (filtered.indptr, filtered.indices)
        self.P_pattern = product_pattern(strong, T_pattern, count, backend)
        self.AP_pattern = product_pattern(pattern, self.P_pattern, count, backend)
        self.smooths = in_all(len(self.AP_pattern[1]) * self.k - MOST_GROWTH * len(nodes.indices) * self.b) <= 0
        if not self.smooths:  # P is T, whose pattern leaves out the nodes that are in no aggregate
            n = nodes.shape[0]
            identity = xp.arange(n + 1, dtype=nodes.indptr.dtype), xp.arange(n, dtype=np.int32)
            self.P_pattern = product_pattern(identity, T_pattern, count, backend)
            self.AP_pattern = product_pattern(pattern, self.P_pattern, count, backend)
        self.R_pattern, places = transposed_pattern(self.P_pattern, count, backend)
        self.places = places.astype(matrix.indptr.dtype)  # P has no more blocks than A
        self.Ac_pattern = product_pattern(self.R_pattern, self.AP_pattern, count, backend)
        self.P = matrix_of_blocks(self.P_pattern, self.b, self.k, count, dtype, backend)
        self.R = matrix_of_blocks(self.R_pattern, self.k, self.b, nodes.shape[0], dtype, backend)
        coarse = matrix_of_blocks(self.Ac_pattern, self.k, self.k, count, dtype, backend)
        of_R, of_Ac = longest_rows(backend, self.R_pattern[0], self.Ac_pattern[0])
        self.longest_rows = (nodes.max_degree + 1) * self.k, of_R * self.b
        self.coarse = AdmittedMatrix.computed(coarse, backend, of_Ac * self.k, is_symmetric=nodes.is_symmetric)
        self.take_tentative(Q, vanished, xp)

    def take_tentative(self, Q: Any, vanished: Any, xp: Any) -> None:
        """Take the rows of T, and which unknowns stand for nothing."""
        self.Q = Q.reshape(-1)
        self._ones = None if vanished is None else diagonal_places(self.coarse.csr, vanished, xp)

    def compute(self, matrix: AdmittedMatrix) -> None:
        """P, R and R A P for a matrix with the same pattern. Launches kernels only."""
        backend, n, b, k = matrix.backend, matrix.shape[0], self.b, self.k
        macros = {"OFFSET": matrix.indptr.dtype, "VALUE": matrix.dtype, "UNKNOWNS": b, "CANDIDATES": k}
        AP = backend.xp.empty(len(self.AP_pattern[1]) * b * k, matrix.dtype)
        A, P = (matrix.indptr, matrix.indices, matrix.data), self.P.data
        if self.smooths:
            values = self.filtered.values(matrix)
            smoothing = self.filtered.indptr, self.filtered.indices, values
            dinv = inverse_row_sums(self.filtered.indptr, values, backend)
        else:
            smoothing, dinv = (backend.xp.zeros_like(A[0]), A[1][:0], A[2][:0]), backend.xp.zeros(n, matrix.dtype)
        per_P, per_AP, per_Ac = (
            len(columns) / max(len(indptr) - 1, 1)
            for indptr, columns in (self.P_pattern, self.AP_pattern, self.Ac_pattern)
        )
        run = backend.kernels(KERNELS, **macros, LANES=lanes_for(2 * k * per_P))
        run.smooth_rows(n, b, k, self.count, *smoothing, OMEGA, dinv, self.labels, self.Q, *self.P_pattern, P)
        run.take_adjoint(len(self.places), b, k, *self.R_pattern, self.places, *self.P_pattern, P, self.R.data)
        lanes = lanes_that_hold(per_AP, k, matrix.dtype, lanes_for(2 * k * per_P))
        run = backend.kernels(KERNELS, **macros, LANES=min(lanes, WARP))
        run.multiply_rows(n, b, k, self.count, *A, *self.P_pattern, P, *self.AP_pattern, AP)
        lanes = lanes_that_hold(per_Ac, k, matrix.dtype, lanes_for(2 * k * per_AP))
        if self.count * k * lanes < WARP * backend.resident_warps // 8:  # few rows, to which many are added
            lanes = BLOCK
        run = backend.kernels(KERNELS, **macros, LANES=lanes)
        product = *self.AP_pattern, AP, *self.Ac_pattern, self.coarse.data
        run.restrict_rows(self.count * k, b, k, self.count, *self.R_pattern, self.R.data, *product)
        if self._ones is not None:
            self.coarse.data[self._ones] = 1


def lanes_that_hold(columns: float, width: int, dtype: Any, least: int) -> int:
    """How many threads share a product's row of so many blocks on average; where they hold it, rows 1.5 times as long
    fit as well.
    """
    lanes = least
    if lanes < LEAST_SHARING:
        return lanes
    numbers, places = columns * width * dtype.itemsize / NUMBER_BYTES, columns / (TABLE_PER_THREAD * 3 / 4)
    while lanes < 1.5 * max(numbers, places) and lanes < BLOCK:
        lanes = 2 * lanes if lanes < WARP else BLOCK
    return lanes


def diagonal_places(csr: Any, rows: Any, xp: Any) -> Any:
    """Where a CSR matrix has the diagonal entries of some rows."""
    wanted = xp.zeros(csr.shape[0], bool)
    wanted[rows] = True
    return xp.flatnonzero((rows_of(csr.indptr, csr.indices, xp) == csr.indices) & wanted[csr.indices])


# On the CPU. Row r of node v begins at ``k (b indptr[v] + r length)`` in a matrix of b x k blocks. Each part adds up
# its rows in an array with a place for every column, which is zero again after each row.


@compile_inlined
def begin_of(v, r, rows, columns, indptr):
    """Where row r of node v begins in a matrix of blocks."""
    return (indptr[v] * rows + r * (indptr[v + np.uint32(1)] - indptr[v])) * columns


@compile_inlined
def add_row(factor, u, begin, k, indptr, columns, values, sums):
    """sums += factor times a row of blocks of node u."""
    if k == 1:
        for t in range(np.uint64(indptr[u]), np.uint64(indptr[u + np.uint32(1)])):
            sums[np.uint32(columns[t])] += factor * values[np.uint64(begin)]
            begin += 1
        return
    for t in range(np.uint64(indptr[u]), np.uint64(indptr[u + np.uint32(1)])):
        place = np.uint32(columns[t]) * k
        for c in range(k):
            sums[np.uint64(place + c)] += factor * values[np.uint64(begin + c)]
        begin += k


@compile_inlined
def take_row(v, begin, k, indptr, columns, sums, values):
    """Move the sums of a row of node v to where it begins."""
    for t in range(indptr[v], indptr[v + 1]):
        place = np.uint32(columns[t]) * k
        for c in range(k):
            values[np.uint64(begin + c)] = sums[np.uint64(place + c)]
            sums[np.uint64(place + c)] = 0
        begin += k


@KERNELS.in_parts(PARTS)
def smooth_rows(
    first_part, end_part, n, b, k, count, indptr, indices, values, factor, dinv, labels, Q, P_indptr, P_columns, P
):
    """P = T - factor diag(dinv) A T."""
    nodes = n // b
    for part in range(first_part, end_part):
        sums = np.zeros(count * k, P.dtype)
        for v in range(part * nodes // PARTS, (part + 1) * nodes // PARTS):
            for r in range(b):
                i = v * b + r
                scale = dinv.real.dtype.type(factor) * dinv[i]
                for e in range(indptr[i], indptr[i + 1]):
                    j = indices[e]
                    label = labels[j if b == 1 else j // b]
                    if label >= 0:
                        a = scale * values[e]
                        for c in range(k):
                            sums[label * k + c] -= a * Q[j * k + c]
                if labels[v] >= 0:
                    for c in range(k):
                        sums[labels[v] * k + c] += Q[i * k + c]
                take_row(v, begin_of(v, r, b, k, P_indptr), k, P_indptr, P_columns, sums, P)


@KERNELS.per_item
def take_adjoint(first, end, b, k, R_indptr, R_columns, places, P_indptr, P_columns, P, R):
    """R = P^H, by the blocks of R."""
    if b == k == 1:
        for e in range(first, end):
            R[e] = np.conj(P[places[e]])
        return
    for e in range(first, end):
        v, a = R_columns[e], P_columns[places[e]]
        for c in range(k):
            for r in range(b):
                own = begin_of(v, r, b, k, P_indptr) + (places[e] - P_indptr[v]) * k + c
                R[begin_of(a, c, k, b, R_indptr) + (e - R_indptr[a]) * b + r] = np.conj(P[own])


@KERNELS.in_parts(PARTS)
def multiply_rows(
    first_part, end_part, n, b, k, count, indptr, indices, values, P_indptr, P_columns, P, AP_indptr, AP_columns, AP
):
    """A P."""
    nodes = n // b
    for part in range(first_part, end_part):
        sums = np.zeros(count * k, AP.dtype)
        for v in range(part * nodes // PARTS, (part + 1) * nodes // PARTS):
            for r in range(b):
                i = v * b + r
                for e in range(indptr[i], indptr[i + 1]):
                    j = np.uint32(indices[e])
                    u = j if b == 1 else np.uint32(j // b)
                    begin = begin_of(u, j - u * b, b, k, P_indptr)
                    add_row(values[e], u, begin, k, P_indptr, P_columns, P, sums)
                take_row(v, begin_of(v, r, b, k, AP_indptr), k, AP_indptr, AP_columns, sums, AP)


@KERNELS.in_parts(PARTS)
def restrict_rows(
    first_part, end_part, n, b, k, count, R_indptr, R_columns, R, AP_indptr, AP_columns, AP, Ac_indptr, Ac_columns, Ac
):
    """R A P."""
    for part in range(first_part, end_part):
        sums = np.zeros(count * k, Ac.dtype)
        for a in range(part * count // PARTS, (part + 1) * count // PARTS):
            for c in range(k):
                place = begin_of(a, c, k, b, R_indptr)
                for e in range(R_indptr[a], R_indptr[a + 1]):
                    v = np.uint32(R_columns[e])
                    for r in range(b):
                        begin = begin_of(v, r, b, k, AP_indptr)
                        add_row(R[place], v, begin, k, AP_indptr, AP_columns, AP, sums)
                        place += 1
                take_row(a, begin_of(a, c, k, k, Ac_indptr), k, Ac_indptr, Ac_columns, sums, Ac)
