"""Interpolation from the coarse level: the tentative prolongator T, smoothed.

A step of Jacobi makes the columns of T smooth: ``P = T - omega D F T`` with the filtered matrix F. A row of P has all k
columns of the aggregates of its node and of the strong neighbors of that, zeros too: so its pattern stays, and new
values of A take the numeric phase only. F is A without weak entries, and still with its near-null space: a weak entry
a_ij goes to the diagonal as ``a_ij B_j / B_i``, so that F B is A B. Then prolongators reach along strong connections
only, and coarse matrices stay sparse. The paper has it for a constant B, eq. (6). Where nodes have several unknowns, or
T has several candidates, F is A, and P has the blocks of the main aggregates only, see `main_aggregates`.

In the paper, D is the inverse diagonal divided by the spectral radius of D^-1 A. This is used where nodes have several
unknowns. Elsewhere D has the inverse sums of the magnitudes of the rows of F, which take no products with A to find,
and are the same in a row of an M-matrix whose sum is zero. Another departure is that P is T where A P would have
several times as many entries as A. On graphs without a geometry, as those of circuits and of networks, a smooth
prolongator makes coarse levels dense.

Vanek, Mandel, Brezina: Algebraic Multigrid by Smoothed Aggregation for Second and Fourth Order Elliptic Problems,
Computing 56, 1996, Algorithm 5.1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_inlined
from mcprecond.backends.sorting import lower_bound
from mcprecond.linalg.csr import lanes_for
from mcprecond.matrix import AdmittedMatrix
from mcprecond.multigrid.main_aggregates import main_aggregates
from mcprecond.multigrid.patterns import PARTS, Pattern, least_entries, matrix_of_blocks
from mcprecond.multigrid.products import Multiplication, Rows, place_of, product_pattern, take_row
from mcprecond.multigrid.spectrum import jacobi_weights
from mcprecond.multigrid.strength import Connections
from mcprecond.multigrid.tentative import Tentative, rows_of_labels

KERNELS = KernelSet(__file__, "OFFSET VALUE LANES UNKNOWNS CANDIDATES")

#: The damping factor of the Jacobi step. 4/3 minimizes the bound in the paper. With 3/2, CG took fewer iterations on
#: many of the matrices of benchmarks/robustness.py, and more on none.
OMEGA = 3 / 2

#: P is smoothed unless A P would have more than this many times the entries of A.
MOST_GROWTH = 2.5


class Interpolation(ABC):
    """P of a level: its pattern once, its values for the A that it is made with, and for others by updates.

    Attributes
    ----------
    b, k : int
        Unknowns of a node, and of a node of the coarse level.
    count : int
        Nodes of the coarse level.
    csr : sparse matrix
        P. Between updates, its values may be stored in a narrower dtype than those of A; see `Level`.
    pattern : pattern
        Of P, by nodes.
    AP : Multiplication
        A P, with the blocks of a row of P in a row.
    longest_row : int
        At least the length of the longest row of P.
    empty : array of int, or None
        Columns of P that are zero.
    """

    #: What `print` says of a P that is plainer than usual, so that levels do not become dense.
    remark = ""
    b: int
    k: int
    count: int
    csr: Any
    pattern: Pattern
    AP: Multiplication
    longest_row: int
    empty: Any

    @abstractmethod
    def update(self, A: AdmittedMatrix) -> None:
        """Compute the values of P for those of A. Launches kernels only."""


def product_with(A: AdmittedMatrix, P: Interpolation, most: float = np.inf) -> Multiplication:
    """Compute A P, but keep it only if it does not have more than so many entries, each of a row of a block of P."""
    factors = (A.indptr, A.indices, A.data), Rows.of(P.pattern, P.csr.data)
    product = Multiplication(*factors, P.b, P.k, P.count, A.backend, A.max_degree + 1, most)
    product.shrink()
    return product


class SmoothedInterpolation(Interpolation):
    """T after a step of Jacobi with the filtered matrix, or T itself.

    Parameters
    ----------
    A : AdmittedMatrix
        Canonical.
    nodes : AdmittedMatrix
        With the pattern of its nodes; A itself where a node has one unknown.
    C : Connections
        Its strong connections.
    T : Tentative
        Without the candidates of the coarse level all blocks of P stay.
    B : array, shape (n, k)
        The candidates.
    smooths : bool
        Whether P is to be smooth if A P is not too dense.
    in_all : function, optional
        Returns the sum of a number over all processes that share the level: they decide together whether to smooth P.

    Attributes
    ----------
    smooths : bool
        Whether P is smoothed.
    moves : bool
        Whether P has the blocks of main aggregates only.
    """

    def __init__(
        self,
        A: AdmittedMatrix,
        nodes: AdmittedMatrix,
        C: Connections,
        T: Tentative,
        B: Any,
        smooths: bool = True,
        in_all: Callable[[float], float] | None = None,
    ) -> None:
        backend, xp, total = A.backend, A.backend.xp, in_all or float
        n, self.count, self.k = nodes.shape[0], T.count, T.Q.shape[1]
        self.b = A.shape[0] // n if n else 1
        filters = self.b == self.k == 1  # adding to the diagonal keeps one candidate only
        self.moves = not filters and T.B is not None
        strong, all_neighbors, longest = (C.indptr, C.indices), (nodes.indptr, nodes.indices), nodes.max_degree + 1
        #: The pattern of the filtered matrix, where it is one.
        self._strong = strong if filters else None
        self._is_whole = len(C.indices) == A.indices.size
        self.take(T, B)
        self.smooths = False
        if smooths:
            pattern, most_blocks = self._neighbors_of(strong if filters else all_neighbors, A, longest)
            if self.moves:
                pattern = main_aggregates(pattern, strong, T.labels, backend)
            most = MOST_GROWTH * A.indices.size / self.k
            # Where the lengths of rows vary much, A P may take long to compute, only to be found too dense: so a lower
            # bound of its entries comes first. Where they vary little, the bound is always below the limit.
            varies = n * longest * self.b > most
            least = least_entries(all_neighbors, pattern, backend) * self.b if varies else 0
            if total(least - most) <= 0:
                self.smooths = True
                self._multiply(A, pattern, most_blocks, most if in_all is None else np.inf)
                self.smooths = total(self.AP.entries - most) <= 0
        if not self.smooths:  # P is T, whose pattern leaves out the nodes that are in no aggregate
            identity = xp.arange(n + 1, dtype=nodes.indptr.dtype), xp.arange(n, dtype=np.int32)
            self._multiply(A, *self._neighbors_of(identity, A, 1))
            self.remark = ", P not smoothed"

    def _neighbors_of(self, pattern: Pattern, A: AdmittedMatrix, longest_row: int) -> tuple[Pattern, int]:
        """The aggregates of the neighbors that a pattern lists for each node, and how many one has at most."""
        own = rows_of_labels(self.T.labels, A.data, A.backend)
        return product_pattern(pattern, own, self.count, A.backend, longest_row)

    def _multiply(self, A: AdmittedMatrix, pattern: Pattern, most_blocks: int, most: float = np.inf) -> None:
        """Take a pattern, whose longest row has so many blocks at most, and compute P and A P."""
        self.pattern, self.longest_row = pattern, most_blocks * self.k
        self.csr = matrix_of_blocks(pattern, self.b, self.k, self.count, A.dtype, A.backend)
        self.update(A)
        self.AP = product_with(A, self, most)

    def take(self, T: Tentative, B: Any) -> None:
        """Take another T with the same aggregates, and its candidates; the values of P follow by an update."""
        self.T, self.empty = T, T.vanished
        needs_B = self.moves if self._strong is None else not self._is_whole
        self._B = B.reshape(-1) if needs_B else None

    def update(self, A: AdmittedMatrix) -> None:
        backend, n, b, k = A.backend, A.shape[0], self.b, self.k
        offsets, columns = self.pattern
        per_row, Q = len(columns) / max(n // b, 1), self.T.Q.reshape(-1)
        result = offsets.astype(A.indptr.dtype, copy=False), columns, self.csr.data
        macros = {"OFFSET": A.indptr.dtype, "VALUE": A.dtype, "UNKNOWNS": b, "CANDIDATES": k}
        run = backend.kernels(KERNELS, **macros, LANES=lanes_for(2 * k * per_row))
        matrix = A.indptr, A.indices, A.data
        if self.smooths and self._strong is not None:
            B = Q if self._B is None else self._B
            run.smooth_filtered(n, self.count, *matrix, *self._strong, OMEGA, self.T.labels, Q, B, *result)
            return
        dinv = jacobi_weights(A) if self.smooths else backend.xp.zeros(n, A.dtype)
        if not self.smooths:
            matrix = backend.xp.zeros_like(A.indptr), A.indices[:0], A.data[:0]
        candidates = (1, self._B, self.T.B.reshape(-1)) if self.moves else (0, Q, Q)
        run.smooth_rows(n, b, k, self.count, *matrix, OMEGA, dinv, self.T.labels, Q, *candidates, *result)


@compile_inlined
def solve_upper(x, R, begin):
    """x becomes x R^-1 for the upper triangle that begins there; numbers that stand for nothing become zero."""
    k = len(x)
    for c in range(k):
        for d in range(c):
            x[c] -= x[d] * R[begin + d * k + c]
        pivot = R[begin + c * k + c]
        x[c] = x[c] / pivot if pivot != 0 else x.dtype.type(0)


@KERNELS.in_parts(PARTS, "indptr")
def smooth_rows(
    first, end, n, b, k, count, indptr, indices, values, factor, dinv, labels, Q, moves, B, R, P_indptr, columns, P
):
    """P = T - factor diag(dinv) A T; blocks that P does not have move to that of the node's own aggregate."""
    nodes, sums, moved = n // b, np.zeros(count * k, P.dtype), np.zeros(k, P.dtype)
    for v in range(first * nodes // PARTS, end * nodes // PARTS):
        own, begin, stop = labels[v], P_indptr[v], P_indptr[v + 1]
        for r in range(b):
            i = v * b + r
            scale, last, goes = dinv.real.dtype.type(factor) * dinv[i], -1, False
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                u = j if b == 1 else j // b
                label = labels[u]
                if moves and u != last:
                    place = lower_bound(columns, begin, stop, label)
                    last, goes = u, label >= 0 and not (place < stop and columns[place] == label)
                if label >= 0:
                    a = scale * values[e]
                    for c in range(k):
                        if goes:
                            moved[c] -= a * B[j * k + c]
                        else:
                            sums[label * k + c] -= a * Q[j * k + c]
            if own >= 0:
                if moves:
                    solve_upper(moved, R, own * k * k)
                for c in range(k):
                    sums[own * k + c] += Q[i * k + c]
                    if moves:
                        sums[own * k + c] += moved[c]
                        moved[c] = 0
            take_row(begin, stop, place_of(i, v, b, k, begin, stop), k, columns, sums, P)


@KERNELS.in_parts(PARTS, "indptr")
def smooth_filtered(
    first, end, n, count, indptr, indices, values, strong_indptr, strong, factor, labels, Q, B, P_indptr, columns, P
):
    """P = T - factor D F T, where nodes have one unknown and T has one candidate. D has the inverse sums of the
    magnitudes of the rows of F.
    """
    sums = np.zeros(count, P.dtype)
    for i in range(first * n // PARTS, end * n // PARTS):
        next, stop, diagonal, size = strong_indptr[i], strong_indptr[i + 1], P.dtype.type(0), 0.0
        for k in range(indptr[i], indptr[i + 1]):
            j = np.uint32(indices[k])
            is_strong = next < stop and strong[next] == j
            next += is_strong
            if is_strong and j != i:
                size += abs(values[k])
                if labels[j] >= 0:
                    sums[labels[j]] += values[k] * Q[j]
            elif j == i:
                diagonal += values[k]
            elif B[i] != 0:
                diagonal += values[k] * (B[j] / B[i])
        size += abs(diagonal)
        scale = P.real.dtype.type(factor / size if size > 0 else 0.0)
        for place in range(P_indptr[i], P_indptr[i + 1]):
            label = columns[place]
            if label == labels[i]:
                P[place] = Q[i] - scale * (sums[label] + diagonal * Q[i])
            else:
                P[place] = -scale * sums[label]
            sums[label] = 0
