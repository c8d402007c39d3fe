"""Preconditioned conjugate gradients across ranks, each of which has its rows of A and its parts of vectors.

Inner products are sums over ranks. They stay on the devices: where ranks exchange numbers by NCCL, an iteration is one
captured graph on each of them, and the host reads the residuals of some iterations at once. All ranks read the same
numbers, so they stop together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mcprecond.backends import KernelSet
from mcprecond.interop.petsc_matrix import DistributedMatrix
from mcprecond.solvers.cg import advance_numbers, turn_numbers
from mcprecond.solvers.iteration import multiply_numbers
from mcprecond.solvers.result import Reason

KERNELS = KernelSet(__file__, "VALUE")

#: The array of sums holds p'A p, r'r, r'z, the r'z of the iteration before, the square of the norm at which to stop, a
#: flag that the last iteration has advanced, and the number of iterations that have. Once r'r is small enough, an
#: iteration changes nothing.
PAP, RR, RZ, OLD_RZ, LIMIT, ADVANCED, DONE = range(SUMS := 7)
#: The host reads the residuals after at most HISTORY iterations, and for the first time after FIRST.
HISTORY, FIRST = 64, 4
#: The host reads again after this share of the iterations that are predicted to be left.
SHARE = 0.9
#: Another start from the true residual makes sense if the last one has left at most this share of it.
MOST_LEFT = 0.5
CUDA_CONSTANTS = {
    **{"PAP": PAP, "RR": RR, "RZ": RZ, "OLD_RZ": OLD_RZ, "LIMIT": LIMIT, "ADVANCED": ADVANCED, "DONE": DONE},
    **{"HISTORY": HISTORY},
}


class CGAcross:
    """CG for a distributed symmetric positive definite matrix.

    Parameters
    ----------
    A : DistributedMatrix
    M : object with ``enqueue(r, z)``, and `captures`
        z = M r in this rank's parts of vectors, which does not overlap.
    """

    def __init__(self, A: DistributedMatrix, M: Any) -> None:
        self.A, self.M, self.ranks, xp = A, M, A.ranks, A.backend.xp
        self.run = A.backend.kernels(KERNELS, VALUE=A.dtype)
        self.x, self.p = A.halo.new_vector(), A.halo.new_vector()
        self.b, self.r, self.z, self.q = (xp.zeros(A.n, A.dtype) for _ in range(4))
        self.block = xp.zeros(SUMS + HISTORY)
        self.sums, self.history = self.block[:SUMS], self.block[SUMS:]
        self._work = xp.zeros(16384), xp.zeros(1, np.uint32)
        self.norm_of_b = 0.0
        self._iterate, self._measure = self._repeatable(self._step), self._repeatable(self._enqueue_residual)

    def _repeatable(self, function: Callable[[], None]) -> Callable[[], None]:
        """What launches the kernels of a function, as a graph where it can. It runs once, of zeros."""
        function()  # compiles what a graph needs
        captures = self.A.backend.name == "gpu" and self.ranks.only_launches and self.M.captures
        return self.A.backend.repeatable(function) if captures else function

    def solve(self, b: Any, x0: Any, rtol: float, atol: float, maxiter: int) -> tuple[Any, Reason, list[float], float]:
        """Solve A x = b for this rank's part of b, from x0 or zero. Squares of b have to be in range. Collective.

        Returns
        -------
        x : array
            This rank's part of it.
        reason : Reason
        residuals : list of float
            The norm at the start and after each iteration.
        norm : float
            That of the true residual at the end.
        """
        self.b[...] = b
        self.x.fill(0)
        if x0 is not None:
            self.x[: self.A.n] = x0
        reason, residuals, norm = self._solve(rtol, atol, maxiter, from_zero=x0 is None)
        return self.x[: self.A.n].copy(), reason, residuals, norm

    def _solve(
        self, rtol: float, atol: float, maxiter: int, *, from_zero: bool
    ) -> tuple[Reason, list[float], float]:  # fmt: skip
        """Solve for the b that is there, from the x that is there, which may be zero."""
        norm = self._find_residual()
        self.norm_of_b = norm if from_zero else self._norm(self.b)
        limit = max(rtol * self.norm_of_b, atol)
        residuals = [norm]
        if not math.isfinite(limit) or not math.isfinite(norm):
            return Reason.NOT_FINITE, residuals, norm
        while True:
            if norm <= limit:
                return Reason.CONVERGED, residuals, norm
            if len(residuals) > maxiter:
                return Reason.MAX_ITERATIONS, residuals, norm
            failure = self._run_from_residual(limit, norm, maxiter, residuals)
            before, norm = norm, self._find_residual()
            if norm <= limit:
                return Reason.CONVERGED, residuals, norm
            if failure or len(residuals) > maxiter:
                return failure or Reason.MAX_ITERATIONS, residuals, norm
            if not norm <= MOST_LEFT * before:
                return Reason.STAGNATED if math.isfinite(norm) else Reason.NOT_FINITE, residuals, norm

    def _run_from_residual(self, limit: float, norm: float, maxiter: int, residuals: list[float]) -> Reason | None:
        """Iterate until the residual of the recurrence is small enough; return why not, if it is not."""
        limit = max(limit, float(np.finfo(self.A.dtype).eps) * norm)  # a smaller one is rounding
        self.sums[...] = self.A.backend.xp.asarray([0.0, norm**2, 0.0, 0.0, limit**2, 0.0, 0.0])
        self.p.fill(0)
        self._iterate()  # with a step of length zero, to find the first direction
        planned = FIRST
        start, first = len(residuals), norm
        while True:
            for _ in range(min(planned, maxiter + 1 - len(residuals))):
                self._iterate()
            found = self.A.backend.to_host(self.block)
            count, sums = int(found[DONE]), found[:SUMS]
            known = np.arange(len(residuals) - start, count)
            residuals += np.sqrt(found[SUMS + known % HISTORY]).tolist()
            if not math.isfinite(sums[RR] + sums[RZ]) or math.isnan(sums[PAP]):
                return Reason.NOT_FINITE
            if residuals[-1] <= limit or len(residuals) > maxiter:
                return None
            if not sums[PAP] > 0:
                return Reason.INDEFINITE_A
            if not sums[RZ] > 0:
                return Reason.INDEFINITE_M
            left = iterations_left(first, residuals[-1], limit, count)
            planned = max(1, min(int(SHARE * left), HISTORY))

    def _step(self) -> None:
        """One iteration. It changes nothing where the residual is small enough."""
        n, work = self.A.n, (self.sums, *self._work)
        self.A.enqueue(self.p, self.q)
        self.run.find_pAp(n, self.p, self.q, *work)
        self.ranks.add_up(self.sums[PAP : PAP + 1])
        self.run.advance(n, self.p, self.q, self.x, self.r, *work)
        self.M.enqueue(self.r, self.z)
        self.run.find_rz(n, self.r, self.z, *work)
        self.ranks.add_up(self.sums[RR : RZ + 1])
        self.run.turn(n, self.z, self.p, self.sums, self.history)

    def _enqueue_residual(self) -> None:
        """Compute r = b - A x, and the square of its norm."""
        self.A.enqueue_residual(self.b, self.x, self.r)
        self._enqueue_square(self.r)

    def _enqueue_square(self, v: Any) -> None:
        self.run.find_rz(self.A.n, v, v, self.sums, *self._work)
        self.ranks.add_up(self.sums[RZ : RZ + 1])

    def _norm(self, v: Any) -> float:
        """The norm of a distributed vector. Collective."""
        self._enqueue_square(v)
        return math.sqrt(float(self.sums[RZ]))

    def _find_residual(self) -> float:
        """r = b - A x, and its norm. Collective."""
        self._measure()
        return math.sqrt(float(self.sums[RZ]))


def iterations_left(first: float, now: float, limit: float, count: int) -> float:
    """How many iterations are left if the residual goes on to fall as it has fallen in so many."""
    if limit == 0 or not now < first:
        return float(HISTORY)
    return count * math.log(now / limit) / math.log(first / now)


# On the CPU.


@KERNELS.strided
def find_pAp(n, p, q, sums, parts, arrivals):
    """Sum p'q over the rows of this rank, and keep the last r'z."""
    sums[PAP] = multiply_numbers(0, n, p, q, q.dtype.type(1))
    sums[OLD_RZ] = sums[RZ]


@KERNELS.strided
def advance(n, p, q, x, r, sums, parts, arrivals):
    """Compute x += alpha p and r -= alpha q, and sum r'r over the rows of this rank."""
    advances = sums[RR] > sums[LIMIT] and sums[PAP] > 0
    alpha = sums[OLD_RZ] / sums[PAP] if advances else 0.0
    sums[RR] = advance_numbers(0, n, r.dtype.type(alpha), p, q, x, r)
    sums[ADVANCED] = 1.0 if advances else 0.0


@KERNELS.strided
def find_rz(n, r, z, sums, parts, arrivals):
    """Sum r'z over the rows of this rank."""
    sums[RZ] = multiply_numbers(0, n, r, z, z.dtype.type(1))


@KERNELS.strided
def turn(n, z, p, sums, history):
    """Compute p = z + beta p. Count an iteration that has advanced, and note its r'r."""
    beta = sums[RZ] / sums[OLD_RZ] if sums[ADVANCED] > 0 else 0.0
    turn_numbers(0, n, p.dtype.type(beta), p.dtype.type(1), z, p)
    if sums[ADVANCED] > 0:
        history[int(sums[DONE]) % HISTORY] = sums[RR]
        sums[DONE] += 1
