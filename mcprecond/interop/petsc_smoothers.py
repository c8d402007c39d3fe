"""The matrix of a level across ranks, and its smoothers.

A rank has its rows of a matrix and those in some layers around them. Its part of a vector has its own numbers first
and, behind them, a halo of numbers of other ranks, layer by layer. A message takes as long as the work on thousands of
rows. So a rank gets the right-hand side in several layers at once, and computes x in the layers around its own numbers,
as the ranks that own them do. Each product with A is valid in one layer less than the vector that it is applied to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from mcprecond.interop.petsc_halo import Halo
from mcprecond.interop.petsc_matrix import Part, Rows
from mcprecond.interop.petsc_overlap import Overlap, places_among
from mcprecond.linalg.operator import operator_for
from mcprecond.matrix import canonical_csr
from mcprecond.multigrid.polynomial import KERNELS, chebyshev_coefficients
from mcprecond.multigrid.row_sums import inverse_row_sums
from mcprecond.preconditioners import Preconditioner


class MatrixAround:
    """The rows of A in some layers around this rank, as an operator on vectors that have a halo of one layer more.

    Parameters
    ----------
    around : Overlap
    layers : int
        Of the halo.
    read : array of int64
        The global numbers of what else is read of vectors, by the prolongator to the finer level; ascending.
    dtype, stored : dtype
        Of the vectors, and of the values of A.

    Attributes
    ----------
    ends : list of int
        How many elements of a vector belong to this rank, to this rank and the first layer, and so on.
    places_read : array of int64
        Where in a vector the numbers are that are read.
    part : Part
        The operator of all of these rows.
    """

    def __init__(self, around: Overlap, layers: int, read: Any, dtype: Any, stored: Any) -> None:
        self.around, self.layers, self.n, self.backend = around, layers, around.n, around.backend
        self.ends, self.dtype, xp = around.ends[: layers + 1], np.dtype(dtype), around.backend.xp
        numbers, read = around.numbers[: self.ends[-1] - self.n], xp.asarray(read)
        further = read[~xp.isin(read, numbers)]
        requests = [*around.requests[:layers], around.rows.request(self.backend.to_host(further))]
        self.halo = Halo(around.rows.ranks, self.n, requests, dtype)
        self.places_read = self.n + places_among(xp.concatenate((numbers, further)), read, xp)
        matrix, room = around.matrix.csr, self.halo.room
        self.part = Part(matrix, self.ends[-2], room, self.backend, dtype=dtype, stored=stored)

    def first_rows(self, layers: int) -> Part:
        """The operator of the rows in fewer layers, with the same values in memory."""
        A = self.part.operator
        matrix = canonical_csr(A.values, A.indices, A.indptr, A.shape, self.backend)
        return Part(matrix, self.ends[layers], self.halo.room, self.backend, dtype=self.dtype)

    def take(self, rows: Rows) -> None:
        """Take other values. Collective."""
        if self.around.rows is not rows:
            self.around.take(rows)
        self.part.take(self.around.matrix.data)


class SmootherAcross(ABC):
    """A smoother of A x = b on a level.

    Attributes
    ----------
    reach : int
        In how many layers x has to be valid before a sweep that does not start from zero.
    """

    reach: int

    @abstractmethod
    def sweep(self, b: Any, x: Any, valid: int | None, *, before: bool) -> int:
        """Sweep before or after a correction, from an x that is valid in so many layers, or from zero if that is None.
        Return in how many it is valid now. b is valid in all layers.
        """

    @abstractmethod
    def update(self, rows: Rows) -> None:
        """Take other values, which A has taken. Collective."""


class PolynomialAcross(SmootherAcross):
    """See `mcprecond.multigrid.polynomial.Polynomial`."""

    def __init__(self, A: MatrixAround, degree: int) -> None:
        self.A, self.reach, self.coefficients = A, degree, chebyshev_coefficients(degree)
        operator = A.part.operator
        self._run = A.backend.kernels(KERNELS, **operator.macros, **operator.own_macros)
        self.dinv, self.other, self.d = (A.halo.new_vector() for _ in range(3))
        self.update(A.around.rows)

    def sweep(self, b: Any, x: Any, valid: int | None, *, before: bool) -> int:
        """See `SmootherAcross`. A step multiplies by A, but the first one from zero does not."""
        A, steps, from_zero = self.A, self.coefficients, valid is None
        matrix = A.part.operator.arrays(A.part.state)
        valid = A.layers if valid is None else valid
        at_once = from_zero and len(steps) > 1  # one kernel takes the first two steps
        # The last step has to write x.
        places = [x, self.other] if (len(steps) - at_once) % 2 else [self.other, x]
        if not from_zero and len(steps) % 2:
            self.other[...] = x
        if at_once:
            (_, first), (alpha, beta), *steps = steps
            valid -= 1
            self._run.first_steps(
                A.ends[valid], *matrix, self.dinv, b, places[1], first, alpha, beta, self.d, places[0]
            )
        for number, (alpha, beta) in enumerate(steps, at_once):
            new, old = places[number % 2], places[1 - number % 2]
            is_first = from_zero and number == 0
            valid -= 1
            self._run.step(A.ends[valid], *matrix, self.dinv, b, int(is_first), old, alpha, beta, self.d, new)
        return valid

    def update(self, rows: Rows) -> None:
        """See `SmootherAcross`. Collective."""
        self.dinv[: self.A.n] = inverse_row_sums(self.A.around.matrix)[: self.A.n]
        self.A.halo.fill(self.dinv)


class SweepsAcross(SmootherAcross):
    """Sweeps ``x += M (b - A x)``, where M sweeps over this rank's rows; see `Rows.damped`.

    Parameters
    ----------
    A : MatrixAround
    M, adjoint : Preconditioner
        Of this rank's damped rows. The adjoint sweeps after a correction; it may be M itself.
    """

    reach = 1

    def __init__(self, A: MatrixAround, M: Preconditioner, adjoint: Preconditioner) -> None:
        self.A, self.M, self.adjoint = A, operator_for(M, A.dtype, A.backend), operator_for(adjoint, A.dtype, A.backend)
        self._built = [M] if M is adjoint else [M, adjoint]
        self.states, self._own = (self.M.new_state(), self.adjoint.new_state()), A.first_rows(0)
        self.r, self.z = (A.halo.new_vector()[: A.n] for _ in range(2))

    def sweep(self, b: Any, x: Any, valid: int | None, *, before: bool) -> int:
        """See `SmootherAcross`."""
        n = self.A.n
        M, state = (self.M, self.states[0]) if before else (self.adjoint, self.states[1])
        if valid is None:
            M.enqueue(state, b[:n], x[:n])
        else:
            self._own.enqueue_residual(b, x, self.r)
            M.enqueue(state, self.r, self.z)
            x[:n] += self.z
        return 0

    def update(self, rows: Rows) -> None:
        """See `SmootherAcross`."""
        damped = rows.damped()
        for M in self._built:
            M.update(damped)
