"""Interpolation from the coarse level: the tentative prolongator T, smoothed.

A step of Jacobi makes the columns of T smooth: ``P = T - omega D F T`` with the filtered matrix F. A row of P has all k
columns of the aggregates of its node and of the strong neighbors of that, zeros too: so its pattern stays, and new
values of A take the numeric phase only.

Departing from the paper, D has the inverse sums of the magnitudes of the rows of F. In the paper it is the inverse
diagonal over the spectral radius, which takes ten products with A to find, and is the same in a row of an M-matrix
whose sum is zero. And P is T where A P would have several times as many entries as A. On graphs without a geometry, as
those of circuits and of networks, a smooth prolongator makes coarse levels dense.

Vanek, Mandel, Brezina: Algebraic Multigrid by Smoothed Aggregation for Second and Fourth Order Elliptic Problems,
Computing 56, 1996, Algorithm 5.1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from mcprecond.backends import KernelSet
from mcprecond.linalg.csr import lanes_for
from mcprecond.matrix import AdmittedMatrix
from mcprecond.multigrid.filtered import FilteredMatrix, inverse_row_sums
from mcprecond.multigrid.patterns import PARTS, Pattern, begin_of, matrix_of_blocks, product_pattern, take_row
from mcprecond.multigrid.strength import Connections
from mcprecond.multigrid.tentative import Tentative

KERNELS = KernelSet(__file__, "OFFSET VALUE LANES UNKNOWNS CANDIDATES")

#: The damping factor of the Jacobi step. 4/3 minimizes the bound in the paper. With 3/2, CG took fewer iterations on
#: many of the matrices of benchmarks/robustness.py, and more on none.
OMEGA = 3 / 2

#: P is smoothed unless A P would have more than this many times the entries of A.
MOST_GROWTH = 2.5


class Interpolation(ABC):
    """P of a level: its pattern once, its values again and again.

    Attributes
    ----------
    b, k : int
        Unknowns of a node, and of a node of the coarse level.
    count : int
        Nodes of the coarse level.
    pattern, AP_pattern : pattern
        Of P and of A P, by nodes.
    csr : sparse matrix
        P. Later values go into the same arrays.
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
    pattern: Pattern
    AP_pattern: Pattern
    csr: Any
    longest_row: int
    empty: Any

    @abstractmethod
    def update(self, A: AdmittedMatrix) -> None:
        """Compute the values of P for those of A. Launches kernels only."""


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
    B : array, shape (n, k)
        The candidates.
    in_all : function
        Returns the sum of a number over all processes that share the level: they decide together whether to smooth P.

    Attributes
    ----------
    smooths : bool
        Whether P is smoothed.
    """

    def __init__(
        self,
        A: AdmittedMatrix,
        nodes: AdmittedMatrix,
        C: Connections,
        T: Tentative,
        B: Any,
        in_all: Callable[[float], float] = lambda entries: entries,
    ) -> None:
        backend, xp = A.backend, A.backend.xp
        n, self.count, self.k = nodes.shape[0], T.count, T.Q.shape[1]
        self.b = A.shape[0] // n if n else 1
        filters = self.b == self.k == 1  # adding to the diagonal keeps one candidate only
        self.filtered = FilteredMatrix(A, *((C.indptr, C.indices) if filters else (A.indptr, A.indices)), B)
        all_neighbors, own = (nodes.indptr, nodes.indices), T.pattern(xp)
        strong = all_neighbors if self.b > 1 else (self.filtered.indptr, self.filtered.indices)
        self.pattern = product_pattern(strong, own, self.count, backend)
        self.AP_pattern = product_pattern(all_neighbors, self.pattern, self.count, backend)
        growth = len(self.AP_pattern[1]) * self.k - MOST_GROWTH * len(nodes.indices) * self.b
        self.smooths = in_all(growth) <= 0
        if not self.smooths:  # P is T, whose pattern leaves out the nodes that are in no aggregate
            identity = xp.arange(n + 1, dtype=nodes.indptr.dtype), xp.arange(n, dtype=np.int32)
            self.pattern = product_pattern(identity, own, self.count, backend)
            self.AP_pattern = product_pattern(all_neighbors, self.pattern, self.count, backend)
            self.remark = ", P not smoothed"
        self.csr = matrix_of_blocks(self.pattern, self.b, self.k, self.count, A.dtype, backend)
        self.longest_row = (nodes.max_degree + 1) * self.k
        self.take(T, B)

    def take(self, T: Tentative, B: Any) -> None:
        """Take another T with the same aggregates, and its candidates; the values of P follow by an update."""
        self.T, self.empty = T, T.vanished
        self.filtered.take_candidate(B)

    def update(self, A: AdmittedMatrix) -> None:
        backend, n, b, k = A.backend, A.shape[0], self.b, self.k
        if self.smooths:
            values = self.filtered.values(A)
            smoothing = self.filtered.indptr, self.filtered.indices, values
            dinv = inverse_row_sums(self.filtered.indptr, values, backend)
        else:
            smoothing = backend.xp.zeros_like(A.indptr), A.indices[:0], A.data[:0]
            dinv = backend.xp.zeros(n, A.dtype)
        per_row = len(self.pattern[1]) / max(len(self.pattern[0]) - 1, 1)
        macros = {"OFFSET": A.indptr.dtype, "VALUE": A.dtype, "UNKNOWNS": b, "CANDIDATES": k}
        run = backend.kernels(KERNELS, **macros, LANES=lanes_for(2 * k * per_row))
        own = self.T.labels, self.T.Q.reshape(-1)
        run.smooth_rows(n, b, k, self.count, *smoothing, OMEGA, dinv, *own, *self.pattern, self.csr.data)


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
