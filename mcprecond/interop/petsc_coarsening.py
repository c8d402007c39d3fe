"""From one level to the next across ranks: each rank aggregates its own rows.

Aggregates end where the rows of a rank end (uncoupled aggregation), so that the tentative prolongator is block diagonal
over the ranks. The prolongator and the coarse matrix are not: a rank computes its rows of them from the rows of A in
its overlap, and they are what one process would make of these aggregates.

Tuminaro, Tong: Parallel Smoothed Aggregation Multigrid: Aggregation Strategies on Massively Parallel Machines, SC 2000.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import Backend
from mcprecond.backends.inputs import any_of
from mcprecond.coloring.graph import Graph
from mcprecond.interop.petsc_halo import Ranks
from mcprecond.interop.petsc_matrix import Rows
from mcprecond.interop.petsc_overlap import Overlap
from mcprecond.matrix import AdmittedMatrix, canonical_csr, diagonal_places
from mcprecond.multigrid.aggregation import aggregates
from mcprecond.multigrid.galerkin import Galerkin
from mcprecond.multigrid.interpolation import Interpolation, SmoothedInterpolation
from mcprecond.multigrid.setup import MOST_KEPT, nodes_of
from mcprecond.multigrid.strength import Connections, symmetric_strength
from mcprecond.multigrid.tentative import Tentative, fit_tentative
from mcprecond.multigrid.units import CANCELED, NOT_DEFINITE, without_couplings


class Step:
    """From a level to the next one: patterns once, values again and again.

    Parameters
    ----------
    around : Overlap
        Of the rows of the level.
    interpolation : Interpolation
        P, of the rows in the overlap as far as the coarse rows of this rank depend on them.
    own : int
        How many coarse unknowns this rank has.
    numbers : array of int64, on the host
        The global numbers of the coarse unknowns of other ranks that the coarse rows of this rank refer to, in
        ascending order.
    reach : int
        In how many layers around this rank's rows P has entries for its coarse unknowns.
    B : array, shape (own, k), or None
        This rank's rows of the candidates of the coarse level.

    Attributes
    ----------
    galerkin : Galerkin
        R and the coarse matrix; the first rows are those of this rank.
    """

    def __init__(
        self, around: Overlap, interpolation: Interpolation, own: int, numbers: Any, *, reach: int, B: Any = None
    ) -> None:  # fmt: skip
        self.around, self.interpolation, self.own, self.numbers = around, interpolation, own, numbers
        self.reach, self.B = reach, B
        self.galerkin = Galerkin(around.matrix, interpolation)

    def compute(self, rows: Rows, level: int) -> Rows:
        """Return the rows of the coarse matrix, that of the level of that number, for the values of these rows.

        Raises
        ------
        ValueError
            On all ranks, if a diagonal entry of the coarse matrix is negative, so that A is not positive definite.
        """
        if rows is not self.around.rows:
            self.around.take(rows)
            self.interpolation.update(self.around.matrix)
            self.galerkin.update(self.around.matrix)
        self._fill_diagonal(rows.ranks, self.around.matrix, level)
        return Rows.computed(rows.ranks, self.galerkin.coarse.csr, self.own, self.numbers)

    def _fill_diagonal(self, ranks: Ranks, matrix: AdmittedMatrix, level: int) -> None:
        """Refuse negative diagonal entries of the coarse matrix, and replace zeros: see `refuse_indefinite`."""
        xp, coarse, R = matrix.backend.xp, self.galerkin.coarse.renewed(), self.galerkin.R
        rounding, diagonal = CANCELED * float(np.finfo(coarse.dtype).eps), coarse.diagonal()[: self.own]
        uncoupled = without_couplings(R, matrix.diagonal(), matrix.backend)[: self.own]
        if ranks.sum(int(any_of(~(diagonal >= -rounding * uncoupled)))):
            raise ValueError(f"the matrix of level {level} has negative entries on its diagonal, {NOT_DEFINITE}")
        canceled = xp.flatnonzero(diagonal <= rounding * uncoupled)
        if len(canceled):
            filled = xp.where(uncoupled > 0, uncoupled, 1)[canceled]
            coarse.data[diagonal_places(coarse.csr, canceled, matrix.backend)] = filled


def new_step(rows: Rows, B: Any, b: int, theta: float | None) -> Step | None:
    """Return the step to the aggregates of each rank; None, on all ranks, where the next level would hardly be smaller.

    Parameters
    ----------
    rows : Rows
        Of the level.
    B : array, shape (n, k)
        This rank's rows of the candidates, where the backend has its arrays.
    b : int
        Unknowns of a node.
    theta : float or None
        The limit of strength.
    """
    around = Overlap(rows, b)
    nodes = nodes_of(around.matrix, b)
    for limit in (theta, 0.0):  # as `coarsen`
        strong = symmetric_strength(around.matrix, nodes, limit, spreads=False)
        labels, count, _ = aggregates(within(strong, rows.n // b, rows.backend))
        if 0 < rows.ranks.sum(count) * B.shape[1] <= MOST_KEPT * rows.size:
            return step_to_aggregates(around, nodes, strong, labels, count, B, b)
    return None


def step_to_aggregates(
    around: Overlap, nodes: AdmittedMatrix, strong: Connections, labels: Any, count: int, B: Any, b: int
) -> Step:  # fmt: skip
    """Return the step to aggregates; `labels` are those of this rank's nodes, -1 for none, and it has `count`."""
    ranks, matrix, k = around.rows.ranks, around.matrix, B.shape[1]
    of_rank = fit_tentative(labels, count, B, b, around.backend)
    first = sum(ranks.comm.allgather(count)[: ranks.comm.rank])
    labels, numbers = labels_around(around, labels, count, first, b, k)
    T = Tentative(labels, count + len(numbers) // k, around.extend(of_rank.Q), None, of_rank.vanished)
    P = SmoothedInterpolation(matrix, nodes, strong, T, around.extend(B), in_all=ranks.sum)
    return Step(around, P, count * k, numbers, reach=1, B=of_rank.B)


def labels_around(around: Overlap, labels: Any, count: int, first: int, b: int, k: int) -> tuple[Any, Any]:
    """The aggregates of the nodes of the overlap, and the global numbers of unknowns of those of other ranks."""
    xp, n = around.backend.xp, len(labels)
    of_all = xp.where(labels >= 0, labels + float(first), -1.0)
    theirs = around.extend(xp.repeat(of_all, b)[:, None])[n * b :: b, 0]
    there, places = xp.unique(theirs[theirs >= 0].astype(np.int64), return_inverse=True)
    beside = xp.full(len(theirs), -1, np.int32)
    beside[theirs >= 0] = count + places
    numbers = (there[:, None] * k + xp.arange(k)).reshape(-1)
    return xp.concatenate((labels, beside)), around.backend.to_host(numbers)


def within(strong: Connections, n: int, backend: Backend) -> Graph:
    """The graph of the strong connections between the first n nodes."""
    xp, end = backend.xp, int(strong.indptr[n])
    indices = strong.indices[:end]
    kept = indices < n
    indptr = xp.concatenate((xp.zeros(1, np.int64), xp.cumsum(kept)))[strong.indptr[: n + 1]]
    indices = indices[kept]
    return Graph.of(canonical_csr(xp.empty(len(indices), np.float32), indices, indptr, (n, n), backend))
