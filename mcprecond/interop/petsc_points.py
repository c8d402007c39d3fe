"""From one level to the next across ranks by coarse points, as classical multigrid has them.

Each rank chooses coarse points among its own points. It runs PMIS on the strong connections within the rank.
Interpolation crosses the ranks: each rank computes its own rows of P from the rows of A in its overlap, and fetches the
neighboring rows of P from the ranks that have computed them. From these it computes its rows of R and of the coarse
matrix.

Three features of `ClassicalAMG` are missing: rows of P near flat triangles are not relaxed, no points are eliminated,
and the matrix is not scaled if its unknowns have different units.

PMIS: De Sterck, Yang, Heys: Reducing Complexity in Parallel Algebraic Multigrid Preconditioners, SIAM J. Matrix Anal.
Appl. 27, 2006.
Interpolation: De Sterck, Falgout, Nolting, Yang: Distance-two interpolation for parallel algebraic multigrid, Numerical
Linear Algebra with Applications 15, 2008.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends.inputs import count_true
from mcprecond.interop.petsc_coarsening import Step
from mcprecond.interop.petsc_matrix import Rows
from mcprecond.interop.petsc_overlap import LAYERS, Overlap
from mcprecond.linalg.diagonal import sizes_of
from mcprecond.matrix import AdmittedMatrix, canonical_csr
from mcprecond.multigrid.choice import why_points
from mcprecond.multigrid.examination import Findings, examine_rows_of
from mcprecond.multigrid.extended import MOST, ExtendedWeights, Truncation, kernels_for
from mcprecond.multigrid.interpolation import Interpolation, product_with
from mcprecond.multigrid.patterns import Pattern, matrix_of_blocks
from mcprecond.multigrid.setup import MOST_COARSE, MOST_COMPLEXITY
from mcprecond.multigrid.splitting import COARSE, Dependences, classical_strength, split


class PointsInterpolation(Interpolation):
    """P to the coarse points, with rows that this rank has computed, and rows around them that it has fetched.

    Parameters
    ----------
    around : Overlap
    extended : ExtendedWeights
        All weights of interpolation in the overlap.
    weights : array
        Their values for the matrix of the overlap.
    most : int
        How many weights of a row of P to keep.

    Attributes
    ----------
    own : int
        How many of the points of this rank are coarse.
    numbers : array of int64, on the host
        The global numbers of the other coarse points, in ascending order.
    """

    b = k = 1
    empty = None

    def __init__(self, around: Overlap, extended: ExtendedWeights, weights: Any, most: int) -> None:
        matrix = around.matrix
        self.around, self._extended, self.longest_row = around, extended, most
        self._number_points()
        self._truncation = Truncation(extended.pattern, weights, most, kernels_for(matrix), around.backend)
        lengths, columns, values = self._fetch(weights)
        pattern = self._find_pattern(lengths, columns)
        self.count = self.own + len(self.numbers)
        self.csr = matrix_of_blocks(pattern, 1, 1, self.count, matrix.dtype, around.backend, self._join(values))
        self.pattern = self.csr.indptr, pattern[1]
        self.AP = product_with(matrix, self)

    def _number_points(self) -> None:
        """Find the global numbers of the coarse points in the overlap, those of this rank first. Collective."""
        around, xp, comm = self.around, self.around.backend.xp, self.around.rows.ranks.comm
        is_coarse = self._extended.numbers >= 0
        of_rank = self._extended.numbers[: around.n]
        self.own = count_true(of_rank >= 0, xp)
        self._first = sum(comm.allgather(self.own)[: comm.rank])
        numbers = around.extend(xp.where(of_rank >= 0, of_rank + float(self._first), -1.0)[:, None])[:, 0]
        self._columns = numbers[is_coarse].astype(np.int64)

    def _find_pattern(self, lengths: Any, columns: Any) -> Pattern:
        """Return the pattern of P: first the rows of this rank, and behind them the fetched ones, of these lengths and
        global columns. The first columns are those of this rank's coarse points. In a row they are in any order.
        """
        around, xp, first, end = self.around, self.around.backend.xp, self._first, self._first + self.own
        indptr = self._plain.indptr[: around.n + 1]
        self._entries = int(indptr[-1])
        columns = xp.concatenate((self._columns[self._plain.indices[: self._entries]], columns))
        is_own = (columns >= first) & (columns < end)
        theirs = xp.unique(columns[~is_own])
        self.numbers = around.backend.to_host(theirs)
        places = xp.where(is_own, columns - first, self.own + xp.searchsorted(theirs, columns))
        unknown = xp.zeros(around.ends[-1] - around.ends[LAYERS], np.int64)
        behind = self._entries + xp.cumsum(xp.concatenate((lengths, unknown)))
        return xp.concatenate((indptr, behind)), places.astype(np.int32)

    def _fetch(self, weights: Any) -> tuple[Any, Any, Any]:
        """Truncate the weights to the rows of P that this rank has, and fetch those around them. Collective."""
        around, (indptr, indices) = self.around, self._truncation.pattern
        values = around.backend.xp.empty(len(indices), around.matrix.dtype)
        self._truncation.truncate(weights, kernels_for(around.matrix), values)
        shape = len(indptr) - 1, self._extended.count
        self._plain = canonical_csr(values, indices, indptr, shape, around.backend)
        return around.fetch(self._plain, self._columns)

    def _join(self, fetched: Any) -> Any:
        """Return the values of P: those of this rank, followed by the fetched ones."""
        return self.around.backend.xp.concatenate((self._plain.data[: self._entries], fetched))

    def update(self, A: AdmittedMatrix) -> None:
        """See `Interpolation`. Collective."""
        self.csr.data[...] = self._join(self._fetch(self._extended.values(A))[2])


class PointsCoarsening:
    """Coarsening by points, level by level. Rows of P keep fewer weights where levels would have too many entries, and
    so they do on the levels that follow.

    Parameters
    ----------
    rows : Rows
        Of the finest level.
    theta : float
        The limit of strength.
    """

    def __init__(self, rows: Rows, theta: float) -> None:
        self.theta, self.entries = theta, rows.ranks.sum(rows.entries)
        self.most_entries, self.most = MOST_COMPLEXITY * self.entries, MOST

    def new_step(self, rows: Rows) -> Step | None:
        """Return the step to the next level; None, on all ranks, where it would hardly be smaller, or too dense."""
        around, n = Overlap(rows, 1), rows.n
        found = classical_strength(around.matrix, self.theta)
        states = around.extend(split_own(rows, found).astype(np.float64)[:, None])[:, 0]
        if not 0 < rows.ranks.sum(int((states[:n] == COARSE).sum())) <= MOST_COARSE * rows.size:
            return None
        extended = ExtendedWeights(around.matrix, found.flags, states.astype(np.int32))
        weights = extended.values(around.matrix)
        for self.most in (most for most in (MOST, 2, 1) if most <= self.most):
            P = PointsInterpolation(around, extended, weights, self.most)
            step = Step(around, P, P.own, P.numbers, reach=2)
            entries = rows.ranks.sum(int(step.galerkin.coarse.indptr[step.own]))
            if self.entries + entries <= self.most_entries:
                self.entries += entries
                return step
        return None


def split_own(rows: Rows, found: Dependences) -> Any:
    """Return which points of this rank are coarse and which are fine, by the dependences in its overlap."""
    inside = rows.whole.indices < rows.n
    stiff = None if found.is_stiff is None else found.is_stiff[: rows.n]
    of_own = Dependences(found.flags[: rows.entries][inside], found.influences[: rows.n], stiff)
    return split(AdmittedMatrix.computed(rows.own, rows.backend, is_symmetric=True), of_own)


def why_points_across(rows: Rows) -> str | None:
    """Why classical multigrid fits a symmetric matrix with a positive diagonal better; None if it does not, or if the
    graph has hubs. The same on all ranks. Collective.
    """
    whole, halo = AdmittedMatrix.computed(rows.whole, rows.backend, is_symmetric=False), rows.operator.halo
    sizes, ranks = halo.new_vector(), rows.ranks
    sizes[: rows.n] = sizes_of(whole, per_neighbor=True)
    halo.fill(sizes)
    found = examine_rows_of(whole, sizes.astype(np.float64, copy=False), rows.backend.xp.ones(len(sizes)))
    *of_all, hubs = ranks.sum(np.array([*found, whole.has_hubs]) * rows.n) / rows.size
    return None if hubs else why_points(Findings(*of_all))
