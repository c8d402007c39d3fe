"""Cycles over the levels of a hierarchy across ranks: each rank has its rows of every matrix.

A rank's part of a vector has its own numbers first and, behind them, a halo of those of other ranks, which is filled
before a matrix is applied that needs them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

from mcprecond.backends import Backend
from mcprecond.interop.petsc_halo import Halo
from mcprecond.interop.petsc_overlap import Rows
from mcprecond.linalg.csr import Csr
from mcprecond.linalg.dense import Dense
from mcprecond.matrix import AdmittedMatrix, canonical_csr, rows_of
from mcprecond.multigrid.filtered import inverse_row_sums
from mcprecond.multigrid.polynomial import KERNELS, chebyshev_coefficients


@dataclass
class Part:
    """This rank's rows of a matrix, as an operator on vectors with a halo.

    Attributes
    ----------
    matrix : csr matrix, shape (rows, own columns + ghosts)
    halo : Halo
        Of the vectors that it is applied to.
    """

    matrix: Any
    halo: Halo

    def __post_init__(self) -> None:
        longest = int(np.diff(self.halo.backend.to_host(self.matrix.indptr)).max(initial=0))
        self.operator = Csr(self.matrix, self.halo.backend, longest_row=longest)
        self.state = self.operator.new_state()

    def take(self, values: Any) -> None:
        """Take other values."""
        self.matrix.data[...] = values
        if self.operator.values is not self.matrix.data:
            self.operator.values[...] = values


def beside(own: Any, other: Any, backend: Backend) -> Any:
    """Put the columns of two CSR matrices side by side."""
    xp, width = backend.xp, own.shape[1]
    indptr = own.indptr.astype(np.int64) + other.indptr
    indices, values = xp.empty(own.nnz + other.nnz, np.int32), xp.empty(own.nnz + other.nnz, own.dtype)
    of_own = xp.arange(own.nnz) + other.indptr[rows_of(own.indptr, own.indices, xp)]
    of_other = xp.arange(other.nnz) + own.indptr[rows_of(other.indptr, other.indices, xp) + 1]
    indices[of_own], indices[of_other] = own.indices, other.indices + width
    values[of_own], values[of_other] = own.data, other.data
    return canonical_csr(values, indices, indptr, (own.shape[0], width + other.shape[1]), backend)


class LevelAcross:
    """A level: its matrix, a polynomial smoother, and the transfers to the next coarser level.

    Parameters
    ----------
    A : Part
    degree : int
        Of the Chebyshev polynomial.
    P, R : Part or None
        None on the coarsest level.
    """

    def __init__(self, A: Part, degree: int, P: Part | None, R: Part | None) -> None:
        self.A, self.P, self.R, backend = A, P, R, A.halo.backend
        self.n, self.backend = A.halo.n, backend
        self.coefficients = chebyshev_coefficients(degree)
        self._run = backend.kernels(KERNELS, **A.operator.macros, **A.operator.own_macros)
        self.dinv = self.weights()
        room = max(A.halo.room, R.halo.room if R is not None else 0)
        self.b, self.x, self.other, self.r, self.d = (backend.xp.zeros(room, A.operator.dtype) for _ in range(5))

    def weights(self) -> Any:
        """The inverse sums of the magnitudes of rows."""
        return inverse_row_sums(AdmittedMatrix.computed(self.A.matrix, self.backend, is_symmetric=False))

    def sweep(self, b: Any, sweeps: int, *, from_zero: bool) -> None:
        """Sweeps for A x = b, from x or from zero."""
        for number, (alpha, beta) in enumerate(self.coefficients * sweeps):
            is_first = from_zero and number == 0
            if not is_first:
                self.A.halo.enqueue(self.x)
            matrix = self.A.operator.arrays(self.A.state)
            self._run.step(self.n, *matrix, self.dinv, b, int(is_first), self.x, alpha, beta, self.d, self.other)
            self.x, self.other = self.other, self.x

    def find_residual(self, b: Any) -> None:
        """r = b - A x."""
        self.A.halo.enqueue(self.x)
        self.A.operator.enqueue_residual(self.A.state, b, self.x, self.r[: self.n])


class CycleAcross:
    """V or W cycles.

    Parameters
    ----------
    levels : list of LevelAcross
    coarse : Dense or None
        The inverse of the matrix of the coarsest level, where this rank's unknowns come first; None where that level is
        smoothed.
    gathering : Halo or None
        Of all unknowns of that level.
    presweeps, postsweeps : int
    twice : bool
        Whether a second cycle corrects what the first one has left on each level but the finest: a W cycle.
    """

    def __init__(
        self, levels: list[LevelAcross], coarse: Dense | None, gathering: Halo | None,
        presweeps: int, postsweeps: int, twice: bool,
    ) -> None:  # fmt: skip
        self.levels, self.coarse, self.gathering = levels, coarse, gathering
        self.presweeps, self.postsweeps, self.twice = presweeps, postsweeps, twice
        if coarse is not None:
            last = levels[-1]
            self._b, self._x = (last.backend.xp.zeros(coarse.shape[0], last.A.operator.dtype) for _ in range(2))
        self._captured: Any = None

    @property
    def only_launches(self) -> bool:
        """Whether a cycle only launches kernels, so that it can be captured."""
        parts = [part for level in self.levels for part in (level.A, level.P, level.R) if part is not None]
        return all(part.halo.only_launches for part in parts)

    def apply(self, b: Any, x: Any) -> None:
        """One cycle for A x = b from zero. Collective. On a GPU it is one captured graph on each rank."""
        first = self.levels[0]
        first.b[: first.n] = b
        if self._captured is None:
            self._cycle(0, first.b)  # which compiles what it needs
            found = first.x
            if self.only_launches and first.backend.name == "gpu":
                run = first.backend.repeatable(partial(self._cycle, 0, first.b))
                self._captured = run, first.x
        else:
            run, found = self._captured
            run()
        x[...] = found[: first.n]

    def update(self, steps: list[Any], all_rows: list[Rows]) -> None:
        """Take the values that rows and steps have now."""
        for number, (level, rows) in enumerate(zip(self.levels, all_rows, strict=True)):
            level.A.take(beside(rows.own, rows.other, rows.backend).data)
            level.dinv[...] = level.weights()
            if level.P is not None and level.R is not None:
                for part, csr in ((level.P, steps[number].interpolation.csr), (level.R, steps[number].galerkin.R)):
                    part.take(csr.data[: len(part.operator.values)])
        if self.coarse is not None and self.gathering is not None:
            last = all_rows[-1]
            comm = last.A.getComm().tompi4py()
            self.coarse.update(whole_matrix(comm, last, self.gathering.ghosts), last.backend)

    def _cycle(self, number: int, b: Any) -> None:
        """Solve for x on a level, from zero."""
        level = self.levels[number]
        if level.P is None or level.R is None:
            self._solve_coarsest(level, b)
            return
        coarser = self.levels[number + 1]
        level.sweep(b, self.presweeps, from_zero=True)
        level.find_residual(b)
        level.R.halo.enqueue(level.r)
        level.R.operator.enqueue(level.R.state, level.r, coarser.b[: coarser.n])
        self._cycle(number + 1, coarser.b)
        if self.twice and coarser.P is not None:
            self._cycle_again(number + 1)
        level.P.halo.enqueue(coarser.x)
        level.P.operator.enqueue_sum(level.P.state, coarser.x, level.x[: level.n])
        level.sweep(b, self.postsweeps, from_zero=False)

    def _cycle_again(self, number: int) -> None:
        """Correct x on a level by another cycle."""
        level = self.levels[number]
        level.find_residual(level.b)
        residual, before = level.r[: level.n].copy(), level.x[: level.n].copy()
        self._cycle(number, residual)
        level.x[: level.n] += before

    def _solve_coarsest(self, level: LevelAcross, b: Any) -> None:
        if self.coarse is None or self.gathering is None:
            level.sweep(b, 2, from_zero=True)
            return
        self._b[: level.n] = b[: level.n]
        self.gathering.enqueue(self._b)
        self.coarse.enqueue(None, self._b, self._x)
        level.x[: level.n] = self._x[: level.n]


def part_of_rows(comm: Any, rows: Rows) -> Part:
    """The matrix of a level."""
    halo = Halo(comm, rows.first, rows.n, rows.ghosts, rows.backend, rows.own.dtype)
    return Part(beside(rows.own, rows.other, rows.backend), halo)


def part_of(comm: Any, csr: Any, rows: int, first: int, columns: int, numbers: Any, backend: Backend) -> Part:
    """The first rows of a computed matrix, which are this rank's.

    Parameters
    ----------
    rows : int
    first, columns : int
        The number of the first of this rank's columns, and how many it has.
    numbers : array of int64
        The global numbers of the columns behind, of which those stay that these rows have entries in.
    """
    xp = backend.xp
    indptr = csr.indptr[: rows + 1]
    indices, values = (array[: int(indptr[-1])] for array in (csr.indices, csr.data))
    there = xp.zeros(len(numbers), bool)
    behind = indices >= columns
    there[indices[behind] - columns] = True
    # Those that stay, in ascending order.
    numbers = xp.asarray(numbers)
    order = xp.flatnonzero(there)[xp.argsort(numbers[there])]
    places = xp.empty(len(numbers), np.int64)
    places[order] = columns + xp.arange(len(order))
    indices = indices.copy()
    indices[behind] = places[indices[behind] - columns]
    ghosts = backend.to_host(numbers[order])
    matrix = canonical_csr(values, indices.astype(np.int32), indptr, (rows, columns + len(ghosts)), backend)
    return Part(matrix, Halo(comm, first, columns, ghosts, backend, csr.dtype))


def cycle_of(steps: list[Any], all_rows: list[Rows], degree: int, presweeps: int, postsweeps: int, twice: bool,
             most_dense: int) -> CycleAcross:  # fmt: skip
    """The cycle over levels, from their rows and the steps between them."""
    A, backend = all_rows[0].A, all_rows[0].backend
    comm, levels = A.getComm().tompi4py(), []
    for number, rows in enumerate(all_rows):
        P = R = None
        if number < len(steps):
            step, coarser = steps[number], all_rows[number + 1]
            P = part_of(comm, step.interpolation.csr, rows.n, coarser.first, coarser.n, step.numbers, backend)
            R = part_of(comm, step.galerkin.R, coarser.n, rows.first, rows.n, step.around.numbers, backend)
        levels.append(LevelAcross(part_of_rows(comm, rows), degree, P, R))
        if number:  # where P of the finer level reads x of this one
            before = levels[-2].P
            room = max(before.halo.room, len(levels[-1].x))
            for name in ("x", "other"):
                setattr(levels[-1], name, backend.xp.zeros(room, levels[-1].x.dtype))
    last, coarse, gathering = all_rows[-1], None, None
    if (size := last.A.getSize()[0]) <= most_dense:
        everyone = np.arange(size)
        others = everyone[(everyone < last.first) | (everyone >= last.first + last.n)]
        gathering = Halo(comm, last.first, last.n, others, backend, last.own.dtype)
        coarse = Dense(whole_matrix(comm, last, others), backend)
    return CycleAcross(levels, coarse, gathering, presweeps, postsweeps, twice)


def whole_matrix(comm: Any, rows: Rows, others: Any) -> Any:
    """All rows of a small matrix on each rank, in an order in which its own rows come first."""
    backend, n = rows.backend, rows.n + len(others)
    own, other = (scipy.sparse.coo_matrix(on_host(part, backend)) for part in (rows.own, rows.other))
    triples = (
        np.concatenate((own.row, other.row)) + rows.first,
        np.concatenate((own.col + rows.first, rows.ghosts[other.col])),
        np.concatenate((own.data, other.data)),
    )
    row, column, value = (np.concatenate(parts) for parts in zip(*comm.allgather(triples), strict=True))
    place = np.empty(n, np.int64)
    place[np.concatenate((np.arange(rows.first, rows.first + rows.n), others))] = np.arange(n)
    whole = scipy.sparse.csr_matrix((value, (place[row], place[column])), shape=(n, n))
    return backend.sparse.csr_matrix(whole)


def on_host(csr: Any, backend: Backend) -> Any:
    """A CSR matrix as one of SciPy."""
    arrays = tuple(map(backend.to_host, (csr.data, csr.indices, csr.indptr)))
    return scipy.sparse.csr_matrix(arrays, shape=csr.shape)
