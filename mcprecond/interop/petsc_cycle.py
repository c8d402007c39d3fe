"""Cycles over the levels of a hierarchy across ranks, in arrays of this package.

On the way down a level needs one message, for b in the layers around a rank. On the way up it needs one for the x of
the next coarser level. All else a rank computes for itself; see `petsc_smoothers.py`.

On small levels messages take longer than the work. So from some level on each rank has all rows, and all do the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mcprecond.interop.petsc_coarsening import Step
from mcprecond.interop.petsc_halo import Ranks
from mcprecond.interop.petsc_matrix import Part, Rows
from mcprecond.interop.petsc_smoothers import MatrixAround, SmootherAcross
from mcprecond.linalg.operator import operator_for
from mcprecond.matrix import canonical_csr, rows_of
from mcprecond.multigrid.built import BuiltMultigrid


class LevelAcross:
    """A level: its matrix, its smoother, and the transfers from and to the next coarser level.

    Parameters
    ----------
    A : MatrixAround
    smoother : SmootherAcross
    twice : bool
        Whether there may be a second correction.
    """

    #: To this level from the next coarser one, and to that one.
    P: Part
    R: Part

    def __init__(self, A: MatrixAround, smoother: SmootherAcross, *, twice: bool) -> None:
        self.A, self.smoother, self.n, self.halo = A, smoother, A.n, A.halo
        self.places_read = A.places_read
        #: r is computed in all layers that R reads, for which x has to be valid in one more.
        self.wanted = A.layers - 1
        self._around = A.first_rows(max(A.layers - 2, 0))
        self.b, self.x, self.r = (A.halo.new_vector() for _ in range(3))
        if twice:
            self._own = A.first_rows(0)
            self.b_again, self.x_again = (A.halo.new_vector() for _ in range(2))

    def smooth(self, b: Any, sweeps: int, valid: int | None, *, before: bool, wanted: int = 0) -> None:
        """Sweep from an x that is valid in so many layers, None from zero; then it is valid in as many as are wanted.
        Collective.
        """
        for _ in range(sweeps):
            if valid is not None and valid < self.smoother.reach:
                self.halo.fill(self.x)
                valid = self.A.layers
            valid = self.smoother.sweep(b, self.x, valid, before=before)
        if valid is not None and valid < wanted:
            self.halo.fill(self.x)

    def restrict(self, b: Any, coarser: Any) -> None:
        """The right-hand side of the coarser level is R (b - A x)."""
        self._around.enqueue_residual(b, self.x, self.r)
        self.R.enqueue(self.r, coarser.b)

    def prolongate(self, coarser: Any) -> None:
        """x += P x of the coarser level, in the layers that a sweep reads."""
        self.P.enqueue_sum(coarser.x, self.x)

    def begin_again(self) -> None:
        """Keep x, and what is left of b. Collective."""
        self.halo.fill(self.x)
        self._own.enqueue_residual(self.b, self.x, self.b_again)
        self.x_again[...] = self.x

    def update(self, rows: Rows) -> None:
        """Take the values that rows have now."""
        self.A.take(rows)
        self.smoother.update(rows)

    def connect(self, step: Step, coarser: Any, stored: Any) -> None:
        """Take the transfers of a step to the next coarser level."""
        P, R, backend, n = step.interpolation.csr, step.galerkin.R, self.A.backend, coarser.n
        places = backend.xp.concatenate((backend.xp.arange(n), coarser.places_read)).astype(np.int32)
        dtypes = {"stored": stored, "dtype": self.x.dtype, "argument": coarser.x.dtype}
        self.P = Part(P, self.A.ends[self.smoother.reach], len(coarser.x), backend, places=places, **dtypes)
        dtypes = {"stored": stored, "dtype": coarser.b.dtype, "argument": self.r.dtype}
        self.R = Part(R, n, len(self.r), backend, **dtypes)


class Whole:
    """A level that every rank has as a whole. A hierarchy of one process solves there, the same one on all ranks.

    Parameters
    ----------
    rows : Rows
    new : function
        Makes the hierarchy of the whole matrix.
    read : array of int64, on the host
        The global numbers of the unknowns that a prolongator reads beside this rank's.
    """

    def __init__(self, rows: Rows, new: Callable[[Any], BuiltMultigrid], read: Any) -> None:
        self.ranks, self.n, xp, dtype = rows.ranks, rows.n, rows.backend.xp, rows.dtype
        self.own = slice(rows.first, rows.first + rows.n)
        self.M = new(whole_matrix(rows))
        self._operator = operator_for(self.M, np.dtype(dtype), rows.backend)
        self._state = self._operator.new_state()
        self._all_b, self._all_x = (xp.zeros(self.M.shape[0], dtype) for _ in range(2))
        self._places = xp.concatenate((xp.arange(rows.first, rows.first + rows.n), xp.asarray(read)))
        self.places_read = xp.arange(rows.n, len(self._places))
        self.b, self.x = xp.zeros(rows.n, dtype), xp.zeros(len(self._places), dtype)

    def enqueue(self, b: Any) -> None:
        """x is the solution for b, with what a prolongator reads. Collective."""
        self._all_b.fill(0)
        self._all_b[self.own] = b
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
        level.halo.fill(b)
        if number == len(self.levels) - 1 and self.whole is None:
            level.smooth(b, 2, None, before=True)
            return
        coarser = self._level_below(number)
        level.smooth(b, self.presweeps, None, before=True, wanted=level.wanted)
        level.restrict(b, coarser)
        self._cycle(number + 1, coarser.b)
        if isinstance(coarser, LevelAcross):
            if self.twice and number + 1 < self._corrected:
                self._cycle_again(number + 1)
            coarser.halo.fill(coarser.x)
        level.prolongate(coarser)
        level.smooth(b, self.postsweeps, level.smoother.reach, before=False)

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
        level.begin_again()
        self._cycle(number, level.b_again)
        level.x += level.x_again


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
