"""Richardson's iteration with a preconditioner: cycles of multigrid without a Krylov method."""

from __future__ import annotations

from contextlib import ExitStack

from mcprecond.linalg.operator import Operator
from mcprecond.solvers.cg import ConjugateGradients
from mcprecond.solvers.iteration import ALPHA, Iteration
from mcprecond.solvers.solver import Solver


class Richardson(Solver):
    """``x += M (b - A x)``, for any M; see `Solver`. For b = 0 it iterates from x0 like for any other b."""

    method = "richardson"
    knows_zero = False

    def _new_iteration(self, A: Operator, M: Operator | None, columns: int, stack: ExitStack) -> Iteration:
        assert M is not None
        return RichardsonIteration(A, self._backend, M, stack.enter_context(M.lend_state()))


class RichardsonIteration(ConjugateGradients):
    """The step of CG along z with a length of 1."""

    is_symmetric = is_cg = False

    def begin(self) -> None:
        self.scalars[ALPHA] = 1

    def _step(self) -> None:
        self.M.enqueue(self._of_M, self.r, self.z)
        self.A.enqueue(self._of_A, self.z, self.q)
        self.run.advance(self.n, self.z, self.q, self.x, self.r, 1, *self.reduction)
