"""Cycles over the levels of a hierarchy across ranks, in arrays of this package.

A rank has its rows of each matrix. Its part of a vector has its own numbers first and, behind them, a halo of numbers
of other ranks, which is filled before a matrix is applied that reads them. There is one halo for each level: A, the
restriction from the level and the prolongator to the finer one read it.

On small levels messages take longer than the work. So from some level on each rank has all rows, and all do the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from mcprecond.interop.petsc_halo import Halo, Ranks
from mcprecond.interop.petsc_matrix import DistributedMatrix, Part, Rows
from mcprecond.linalg.operator import operator_for
from mcprecond.matrix import AdmittedMatrix, canonical_csr, rows_of
from mcprecond.multigrid.built import BuiltMultigrid
from mcprecond.multigrid.polynomial import KERNELS, chebyshev_coefficients
from mcprecond.multigrid.row_sums import inverse_row_sums
from mcprecond.preconditioners import Preconditioner


class SmootherAcross(ABC):
    """A smoother of A x = b on a level. Each rank computes its part of x."""

    @abstractmethod
    def sweep(self, b: Any, x: Any, sweeps: int, *, before: bool) -> None:
        """Sweep from zero, before a correction, or from x, after one. b and x have room for a halo. Collective."""

    @abstractmethod
    def update(self, rows: Rows) -> None:
        """Take other values, which A has taken. Collective."""


class PolynomialAcross(SmootherAcross):
    """See `mcprecond.multigrid.polynomial.Polynomial`."""

    def __init__(self, A: DistributedMatrix, rows: Rows, degree: int) -> None:
        self.A, self.coefficients = A, chebyshev_coefficients(degree)
        operator = A.part.operator
        self._run = A.backend.kernels(KERNELS, **operator.macros, **operator.own_macros)
        self.dinv, self.other, self.d = (A.halo.new_vector() for _ in range(3))
        self.update(rows)

    def sweep(self, b: Any, x: Any, sweeps: int, *, before: bool) -> None:
        """See `SmootherAcross`."""
        A, steps = self.A, self.coefficients * sweeps
        matrix = A.part.operator.arrays(A.part.state)
        at_once = before and len(steps) > 1  # one kernel takes the first two steps, and needs the halo of b
        # The last step has to write x.
        places = [x, self.other] if (len(steps) - at_once) % 2 else [self.other, x]
        if not before and len(steps) % 2:
            self.other[: A.n] = x[: A.n]
        if at_once:
            A.halo.fill(b)
            (_, first), (alpha, beta), *steps = steps
            self._run.first_steps(A.n, *matrix, self.dinv, b, places[1], first, alpha, beta, self.d, places[0])
        for number, (alpha, beta) in enumerate(steps, at_once):
            new, old = places[number % 2], places[1 - number % 2]
            from_zero = before and number == 0
            if not from_zero:
                A.halo.fill(old)
            self._run.step(A.n, *matrix, self.dinv, b, int(from_zero), old, alpha, beta, self.d, new)

    def update(self, rows: Rows) -> None:
        """See `SmootherAcross`. Collective."""
        whole = AdmittedMatrix.computed(rows.whole, rows.backend, is_symmetric=False)
        self.dinv[: self.A.n] = inverse_row_sums(whole)
        self.A.halo.fill(self.dinv)


class SweepsAcross(SmootherAcross):
    """Sweeps ``x += M (b - A x)``, where M sweeps over this rank's rows; see `Rows.damped`.

    Parameters
    ----------
    A : DistributedMatrix
    M, adjoint : Preconditioner
        Of this rank's damped rows. The adjoint sweeps after a correction; it may be M itself.
    """

    def __init__(self, A: DistributedMatrix, M: Preconditioner, adjoint: Preconditioner) -> None:
        self.A, self.M, self.adjoint = A, operator_for(M, A.dtype, A.backend), operator_for(adjoint, A.dtype, A.backend)
        self._built = [M] if M is adjoint else [M, adjoint]
        self.states = self.M.new_state(), self.adjoint.new_state()
        self.r, self.z = (A.halo.new_vector()[: A.n] for _ in range(2))

    def sweep(self, b: Any, x: Any, sweeps: int, *, before: bool) -> None:
        """See `SmootherAcross`."""
        A = self.A
        M, state = (self.M, self.states[0]) if before else (self.adjoint, self.states[1])
        for number in range(sweeps):
            if before and number == 0:
                M.enqueue(state, b[: A.n], x[: A.n])
                continue
            A.enqueue_residual(b, x, self.r)
            M.enqueue(state, self.r, self.z)
            x[: A.n] += self.z

    def update(self, rows: Rows) -> None:
        """See `SmootherAcross`."""
        damped = rows.damped()
        for M in self._built:
            M.update(damped)


class LevelAcross:
    """A level: its matrix, its smoother, and the transfers from and to the next coarser level.

    Parameters
    ----------
    A : DistributedMatrix
    smoother : SmootherAcross
    twice : bool
        Whether there may be a second correction.
    """

    #: To this level from the next coarser one, and to that one.
    P: Part
    R: Part

    def __init__(self, A: DistributedMatrix, smoother: SmootherAcross, *, twice: bool) -> None:
        self.A, self.smoother, self.n, self.halo = A, smoother, A.n, A.halo
        self.b, self.x, self.r = (A.halo.new_vector() for _ in range(3))
        if twice:
            self.b_again, self.x_again = (A.halo.new_vector() for _ in range(2))

    def update(self, rows: Rows) -> None:
        """Take the values that rows have now."""
        self.A.take(rows)
        self.smoother.update(rows)


class Whole:
    """A level that every rank has as a whole. A hierarchy of one process solves there, the same one on all ranks.

    Parameters
    ----------
    rows : Rows
    new : function
        Makes the hierarchy of the whole matrix.
    ghosts : array of int64
        The global numbers of the unknowns that a prolongator reads beside this rank's.
    """

    def __init__(self, rows: Rows, new: Callable[[Any], BuiltMultigrid], ghosts: Any) -> None:
        self.ranks, self.n, xp, dtype = rows.ranks, rows.n, rows.backend.xp, rows.dtype
        self.own = slice(rows.first, rows.first + rows.n)
        self.halo = Halo(rows.ranks, rows.first, rows.n, ghosts, dtype)
        self.M = new(whole_matrix(rows))
        self._operator = operator_for(self.M, np.dtype(dtype), rows.backend)
        self._state = self._operator.new_state()
        self.b, self.x = self.halo.new_vector(), self.halo.new_vector()
        self._all_b, self._all_x = (xp.zeros(self.M.shape[0], dtype) for _ in range(2))
        own = np.arange(rows.first, rows.first + rows.n)
        self._places = xp.asarray(np.concatenate((own, ghosts)))

    def enqueue(self, b: Any) -> None:
        """x is the solution for b, with its halo. Collective."""
        self._all_b.fill(0)
        self._all_b[self.own] = b[: self.n]
        self.ranks.add_up(self._all_b)
        self._operator.enqueue(self._state, self._all_b, self._all_x)
        self.ranks.backend.xp.take(self._all_x, self._places, out=self.x)

    def update(self, rows: Rows) -> None:
        """Take the values that rows have now. Collective."""
        self.M.update(whole_matrix(rows))


class CycleAcross:
    """V or W cycles.

    Parameters
    ----------
    ranks : Ranks
    levels : list of LevelAcross
    whole : Whole or None
        The last level; None where the last one of `levels` is smoothed.
    presweeps, postsweeps : int
    twice : bool
        Whether a second cycle corrects what the first one has left on each of the levels but the finest: a W cycle.
    """

    def __init__(
        self,
        ranks: Ranks,
        levels: list[LevelAcross],
        whole: Whole | None,
        presweeps: int,
        postsweeps: int,
        *,
        twice: bool,
    ) -> None:
        self.ranks, self.levels, self.whole = ranks, levels, whole
        self.presweeps, self.postsweeps, self.twice = presweeps, postsweeps, twice

    @property
    def captures(self) -> bool:
        """Whether a cycle only launches kernels, so that it can be captured."""
        return self.ranks.only_launches

    def enqueue(self, b: Any, x: Any) -> None:
        """x is what a cycle for A x = b from zero finds, in this rank's parts of vectors. Collective."""
        finest = self.levels[0] if self.levels else self.whole
        assert finest is not None
        finest.b[: finest.n] = b
        self._cycle(0, finest.b)
        x[...] = finest.x[: finest.n]

    def update(self, steps: list[Any], all_rows: list[Rows]) -> None:
        """Take the values that rows and steps have now. Collective."""
        for number, level in enumerate(self.levels):
            level.update(all_rows[number])
            if number < len(steps):
                level.P.take(steps[number].interpolation.csr.data)
                level.R.take(steps[number].galerkin.R.data)
        if self.whole is not None:
            self.whole.update(all_rows[-1])

    def _cycle(self, number: int, b: Any) -> None:
        """Solve for x on a level, from zero."""
        if number == len(self.levels):
            assert self.whole is not None
            self.whole.enqueue(b)
            return
        level = self.levels[number]
        if number == len(self.levels) - 1 and self.whole is None:
            level.smoother.sweep(b, level.x, 2, before=True)
            return
        coarser = self._level_below(number)
        level.smoother.sweep(b, level.x, self.presweeps, before=True)
        level.A.enqueue_residual(b, level.x, level.r)
        level.halo.fill(level.r)
        level.R.enqueue(level.r, coarser.b[: coarser.n])
        self._cycle(number + 1, coarser.b)
        if isinstance(coarser, LevelAcross):
            if self.twice and number + 1 < self._corrected:
                self._cycle_again(number + 1)
            coarser.halo.fill(coarser.x)
        level.P.enqueue_sum(coarser.x, level.x[: level.n])
        level.smoother.sweep(b, level.x, self.postsweeps, before=False)

    @property
    def _corrected(self) -> int:
        """How many levels have corrections."""
        return len(self.levels) - (self.whole is None)

    def _level_below(self, number: int) -> Any:
        """The next coarser level."""
        return self.levels[number + 1] if number + 1 < len(self.levels) else self.whole

    def _cycle_again(self, number: int) -> None:
        """Correct x on a level by another cycle."""
        level = self.levels[number]
        level.A.enqueue_residual(level.b, level.x, level.b_again)
        level.x_again[...] = level.x
        self._cycle(number, level.b_again)
        level.x += level.x_again


def connect(level: LevelAcross, step: Any, coarser: Any, stored: Any) -> None:
    """Take the transfers of a step to the next coarser level."""
    n, own, halo = level.n, coarser.n, level.halo
    xp, dtypes = level.A.backend.xp, (level.b.dtype, coarser.b.dtype)
    P, R = step.interpolation.csr, step.galerkin.R
    level.P = Part(P, n, own, xp.asarray(step.numbers), coarser.halo, dtypes[0], stored)
    level.R = Part(R, own, n, step.around.numbers, halo, dtypes[1], stored)


def whole_matrix(rows: Rows) -> Any:
    """All rows of a small matrix, on each rank. Collective."""
    if rows.ranks.comm.size == 1:
        return rows.whole
    xp, gather = rows.backend.xp, rows.ranks.gather
    lengths, indices = gather(xp.diff(rows.whole.indptr)), gather(rows.columns[rows.whole.indices])
    indptr, values = xp.concatenate((xp.zeros(1, np.int64), xp.cumsum(lengths))), gather(rows.whole.data)
    order = xp.argsort(rows_of(indptr, indices, xp) * rows.size + indices)
    shape = rows.size, rows.size
    return canonical_csr(values[order], indices[order].astype(np.int32), indptr, shape, rows.backend)
