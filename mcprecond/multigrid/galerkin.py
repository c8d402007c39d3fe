"""The matrix of the coarse level, ``A_c = P^H A P``: patterns once, values again and again.

It adds up in a fixed order, so that equal matrices have equal coarse matrices, to the last bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from mcprecond.backends import Backend, KernelSet, compile_inlined
from mcprecond.backends.cuda_source import BLOCK, WARP
from mcprecond.linalg.csr import lanes_for
from mcprecond.matrix import AdmittedMatrix, rows_of
from mcprecond.multigrid.interpolation import Interpolation
from mcprecond.multigrid.patterns import (
    PARTS,
    Pattern,
    begin_of,
    longest_rows,
    matrix_of_blocks,
    product_pattern,
    take_row,
    transpose_pattern,
)

#: The row offsets, columns and values of a sparse matrix, whose entries are blocks where nodes have several unknowns.
Arrays = tuple[Any, Any, Any]

KERNELS = KernelSet(__file__, "OFFSET VALUE LANES UNKNOWNS CANDIDATES")

# A row of a product is in shared memory where at least so many threads share it. Each of them brings so many bytes for
# numbers, and so many places of a hash table, of which three quarters may be taken.
LEAST_SHARING, NUMBER_BYTES, TABLE_PER_THREAD = 16, 96, 8
#: A product goes over each row of its first factor by one team of threads. On a GPU, if that factor has a row of more
#: than LONG entries, its rows are cut into pieces of at most PIECE entries.
LONG, PIECE = 2048, 512
CUDA_CONSTANTS = {"LEAST_SHARING": LEAST_SHARING, "NUMBER_BYTES": NUMBER_BYTES, "TABLE_PER_THREAD": TABLE_PER_THREAD}


class Product(ABC):
    """R and the coarse matrix of a level: patterns once, values by updates.

    Attributes
    ----------
    P : Interpolation
    R : sparse matrix
        P^H. Later values go into the same arrays.
    coarse : AdmittedMatrix
        R A P, likewise.
    longest_row : int
        The length of the longest row of R.
    """

    P: Interpolation
    R: Any
    coarse: AdmittedMatrix
    longest_row: int

    @abstractmethod
    def update(self, A: AdmittedMatrix) -> None:
        """Compute R and A_c with the values that A and P have now. Launches kernels only."""


class Galerkin(Product):
    """R and the coarse matrix by two products, A P and then R (A P).

    Parameters
    ----------
    nodes : AdmittedMatrix
        With the pattern of the nodes of A; A itself where a node has one unknown.
    P : Interpolation
    """

    def __init__(self, nodes: AdmittedMatrix, P: Interpolation) -> None:
        self.P, backend = P, nodes.backend
        b, k, count, dtype = P.b, P.k, P.count, P.csr.dtype
        self.R_pattern, places = transpose_pattern(P.pattern, count, backend)
        self.places = places.astype(nodes.indptr.dtype)  # P has no more blocks than A
        self.pattern = product_pattern(self.R_pattern, P.AP_pattern, count, backend)
        self.R = matrix_of_blocks(self.R_pattern, k, b, nodes.shape[0], dtype, backend)
        coarse = matrix_of_blocks(self.pattern, k, k, count, dtype, backend)
        of_R, of_coarse = longest_rows(backend, self.R_pattern[0], self.pattern[0])
        self.longest_row = of_R * b
        self.coarse = AdmittedMatrix.computed(coarse, backend, of_coarse * k, is_symmetric=nodes.is_symmetric)
        self.cut_A = self.cut_R = None
        if b == k == 1:
            rows = nodes.indptr, nodes.indices
            self.cut_A = cut_rows(rows, nodes.max_degree + 1, P.pattern, count, backend)
            self.cut_R = cut_rows(self.R_pattern, of_R, P.AP_pattern, count, backend)

    def update(self, A: AdmittedMatrix) -> None:
        """See `Product`. If a column of P is zero, its coarse unknown gets a one on the diagonal."""
        P, backend, b, k, count = self.P, A.backend, self.P.b, self.P.k, self.P.count
        macros = {"OFFSET": A.indptr.dtype, "VALUE": A.dtype, "UNKNOWNS": b, "CANDIDATES": k}
        run = backend.kernels(KERNELS, **macros, LANES=lanes_for(2 * k * row_of(P.pattern)))
        run.take_adjoint(len(self.places), b, k, *self.R_pattern, self.places, *P.pattern, P.csr.data, self.R.data)
        AP = *P.AP_pattern, backend.xp.empty(len(P.AP_pattern[1]) * b * k, A.dtype)
        multiply((A.indptr, A.indices, A.data), (*P.pattern, P.csr.data), AP, P, backend, self.cut_A)
        coarse = *self.pattern, self.coarse.data
        if self.cut_R is not None:
            multiply((*self.R_pattern, self.R.data), AP, coarse, P, backend, self.cut_R)
        else:
            lanes = lanes_that_hold(row_of(self.pattern), k, A.dtype, lanes_for(2 * k * row_of(P.AP_pattern)))
            if count * k * lanes < WARP * backend.resident_warps // 8:  # few rows, to which many are added
                lanes = BLOCK
            run = backend.kernels(KERNELS, **macros, LANES=lanes)
            run.restrict_rows(count * k, b, k, count, *self.R_pattern, self.R.data, *AP, *coarse)
        if P.empty is not None:
            self.coarse.data[diagonal_places(self.coarse.csr, P.empty, backend.xp)] = 1


class CutRows(NamedTuple):
    """The pieces of the rows of a first factor. They are the rows of a matrix with the same columns and values.

    Attributes
    ----------
    offsets : array of int64
        The row offsets of the pieces.
    of_rows : array of int64, shape (n + 1,)
        The number of the first piece of each row.
    pattern : pattern
        Of the product of the pieces with the second factor.
    """

    offsets: Any
    of_rows: Any
    pattern: Pattern


def cut_rows(left: Pattern, longest_row: int, right: Pattern, width: int, backend: Backend) -> CutRows | None:
    """Cut the long rows of a first factor, or return None if it has none."""
    if longest_row <= LONG or not backend.resident_warps:
        return None
    xp = backend.xp
    lengths = xp.diff(left[0])
    of_rows = xp.zeros(len(left[0]), np.int64)
    xp.cumsum(xp.maximum(-(-lengths // PIECE), 1), out=of_rows[1:])
    number = xp.arange(int(of_rows[-1]))
    rows = rows_of(of_rows, number, xp)
    offsets = xp.concatenate((left[0][rows] + PIECE * (number - of_rows[rows]), left[0][-1:])).astype(np.int64)
    return CutRows(offsets, of_rows, product_pattern((offsets, left[1]), right, width, backend))


def multiply(
    left: Arrays, right: Arrays, product: Arrays, P: Interpolation, backend: Backend, cut: CutRows | None = None
) -> None:
    """Compute the values of a product, whose pattern is known.

    The rows of `left` are single ones, the others have the blocks of P. If rows are cut, the product of the pieces
    comes first, and then the sums of the pieces of each row, which are a product as well.
    """
    if cut is not None:
        xp, pieces = backend.xp, len(cut.offsets) - 1
        sums = *cut.pattern, xp.empty(len(cut.pattern[1]), product[2].dtype)
        multiply((cut.offsets, *left[1:]), right, sums, P, backend)
        left, right = (cut.of_rows, xp.arange(pieces, dtype=np.int32), xp.ones(pieces, product[2].dtype)), sums
    b, k, dtype = P.b, P.k, product[2].dtype
    macros = {"OFFSET": left[0].dtype, "VALUE": dtype, "UNKNOWNS": b, "CANDIDATES": k}
    lanes = lanes_that_hold(row_of(product), k, dtype, lanes_for(2 * k * row_of(right)))
    run = backend.kernels(KERNELS, **macros, LANES=min(lanes, WARP) if cut is None else BLOCK)
    run.multiply_rows(len(left[0]) - 1, b, k, P.count, *left, *right, *product)


def row_of(pattern: Pattern | Arrays) -> float:
    """The average length of a row."""
    return len(pattern[1]) / max(len(pattern[0]) - 1, 1)


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


# On the CPU. Each part adds up its rows in an array with a place for every column, which is zero again after each row.


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
