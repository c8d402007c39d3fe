"""From one level to the next, in the steps of the book: strength, aggregates, T, P, R and A_c.

Vanek, Mandel, Brezina: Algebraic Multigrid by Smoothed Aggregation for Second and Fourth Order Elliptic Problems,
Computing 56, 1996, Algorithm 2.1 and Section 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mcprecond.backends import Backend
from mcprecond.matrix import AdmittedMatrix
from mcprecond.multigrid.aggregation import aggregates
from mcprecond.multigrid.filtered import FilteredMatrix
from mcprecond.multigrid.galerkin import GalerkinProduct
from mcprecond.multigrid.patterns import Pattern, longest_rows
from mcprecond.multigrid.strength import strong_connections
from mcprecond.multigrid.transfer import tentative
from mcprecond.multigrid.units import refuse_indefinite
from mcprecond.storage.node_blocks import node_pattern

MOST_KEPT = 0.8  # of the unknowns of a level: with more on the next one coarsening has stalled


def coarsen(A: AdmittedMatrix, B: Any, block_size: int, theta: float | None) -> Coarsening | None:
    """Find the aggregates of a level and all patterns that follow; None where the next level would hardly be smaller.

    Parameters
    ----------
    A : AdmittedMatrix
        Canonical.
    B : array, shape (n, k)
        Near-null-space candidates.
    block_size : int
        Unknowns of a node.
    theta : float or None
        See `strong_connections`.
    """
    backend, xp, k, nodes = A.backend, A.backend.xp, B.shape[1], nodes_of(A, block_size)
    for limit in (theta, 0.0):  # where strong neighbors are few, all of them count
        strong = strong_connections(A, nodes, limit)
        labels, count = aggregates(strong.graph)
        if count * k <= MOST_KEPT * A.shape[0]:
            break
    else:
        return None
    if count == 0:
        return None
    T_pattern = tentative_pattern(labels, count, xp)
    T, B_c, vanished = tentative(T_pattern, count, B, block_size, backend)
    filters = block_size == k == 1  # adding to the diagonal keeps one candidate only
    filtered = FilteredMatrix(A, *((strong.indptr, strong.indices) if filters else (A.indptr, A.indices)), B)
    return Coarsening(labels, B_c, GalerkinProduct(A, nodes, filtered, labels, T_pattern, count, T, vanished))


def nodes_of(A: AdmittedMatrix, block_size: int) -> AdmittedMatrix:
    """Return A with the pattern of its nodes; A itself where a node has one unknown."""
    if block_size == 1:
        return A
    pattern = node_pattern(A, block_size)
    longest = longest_rows(A.backend, pattern.indptr)[0]
    return AdmittedMatrix.computed(pattern, A.backend, longest, is_symmetric=A.is_symmetric)


@dataclass
class Coarsening:
    """The transfers between a level and the next one, and the matrix of that: patterns once, values again and again.

    Attributes
    ----------
    labels : array of int32
        The aggregate of each node, or -1.
    B : array
        The candidates of the coarse level.
    product : GalerkinProduct
        P, R and A_c.
    """

    labels: Any
    B: Any
    product: GalerkinProduct

    def coarse_matrix(self, A: AdmittedMatrix, level: int, narrowest: Any) -> AdmittedMatrix:
        """Compute P, R and A_c, the matrix of the level of that number, with the values of A.

        Raises
        ------
        ValueError
            If A_c has a negative diagonal entry, so that A is not positive definite.
        """
        self.product.compute(A)
        refuse_indefinite(self.product.coarse, self.product.R, A.diagonal().real, level, narrowest)
        return self.product.coarse

    def take_candidates(self, B: Any, backend: Backend) -> Any:
        """Compute T for other candidates, in place, and return those of the coarse level."""
        xp, product = backend.xp, self.product
        pattern = tentative_pattern(self.labels, product.count, xp)
        product.filtered.take_candidate(B)
        T, self.B, vanished = tentative(pattern, product.count, B, product.b, backend)
        product.take_tentative(T, vanished, xp)
        return self.B


def tentative_pattern(labels: Any, count: int, xp: Any) -> Pattern:
    """The pattern of T, by nodes: see `tentative`."""
    return xp.arange(len(labels) + 1, dtype=np.int64), xp.where(labels >= 0, labels, np.int32(count))
