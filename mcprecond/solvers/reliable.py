"""Conjugate gradients in single precision, to the accuracy of double precision: reliable updates.

The iteration runs on vectors of a narrower dtype than that of the system, and so on half of the bytes. What its
recurrence has for the residual drifts away from b - A x. So whenever its norm has fallen by some factor, x and the
residual are brought up to date in the dtype of the system, and the iteration goes on with that residual. It keeps its
direction: what CG has learned of the spectrum is not lost, as it is in restarts.

The factor is 10 at first. Later ones follow from the drift: how much the square of the norm of the residual was off,
as a share of what it was at the update before. Unlike in QUDA, where the factor is a constant.

Clark, Babich, Barros, Brower, Rebbi: Solving lattice QCD systems of equations using mixed precision solvers on GPUs,
Comput. Phys. Commun. 181, 2010, Section 4.
"""

from __future__ import annotations

import math
from typing import Any

from mcprecond.backends import Backend
from mcprecond.linalg.operator import Operator
from mcprecond.linalg.powers import power_times, times_power
from mcprecond.solvers.iteration import REACHED, RUNNING, Iteration

#: By how much the norm of the residual falls until the next update: at least and at most, and so many times the drift
#: in between.
LEAST, MOST, DRIFTS = 0.1, 1e-3, 100


def patience(n: int) -> int:
    """In how many iterations for n unknowns the norm of the residual has to be halved.

    What a narrow dtype does to CG on ill-conditioned systems is to delay it, while the drift stays small. In exact
    arithmetic CG ends after n iterations, and on a grid in two dimensions all of b has an effect everywhere after about
    2 sqrt(n) of them.
    """
    return min(n, 100 + 2 * math.isqrt(n))


class ReliableUpdates(Iteration):
    """An iteration in the dtype of A whose steps are those of an inner one in a narrower dtype.

    Parameters
    ----------
    A : Operator
    backend : Backend
    inner : Iteration
        With an M, and with `go_on`. Its vectors are those of this iteration times a power of two.
    """

    def __init__(self, A: Operator, backend: Backend, inner: Iteration) -> None:
        super().__init__(A, backend)
        self.inner, self.M, self.dtype_of_steps = inner, inner.M, inner.dtype
        self.captures, self.bundle, self.ahead = inner.captures, inner.bundle, inner.ahead
        self.b, self.x, self.r = (backend.xp.empty(self.n, A.dtype) for _ in range(3))

    def load(self, b: Any, x0: Any) -> None:
        """See `Iteration`."""
        super().load(b, x0)
        self._began = self._has_steps = False
        self._exponent_of_A = 0
        self._falls_by = LEAST
        self._halved = math.inf, 0  # a norm, and after how many iterations it was there

    def choose_units(self, exponent_of_A: int, exponent: int) -> None:
        """See `Iteration`."""
        super().choose_units(exponent_of_A, exponent)
        self._exponent_of_A = exponent_of_A

    @property
    def next_limit(self) -> float:
        """See `Iteration`: where the next update is due."""
        return self._next_limit

    def begin(self) -> None:
        """See `Iteration`: hand the residual to the inner iteration."""
        if self._state != RUNNING:
            return
        inner, norm = self.inner, self.true_residual_norm
        self._next_limit = max(self.limit, self._falls_by * norm)
        if not self._began:
            exponent = math.frexp(norm)[1]
            inner.load(times_power(self.r, -exponent, self.backend.xp), None)
            inner.choose_units(self._exponent_of_A, 0)
            self._shift_of_inner = self.shift - exponent + inner.shift  # from the units of the caller
            shift = self._shift_of_inner - self.shift
            inner.start(power_times(self._next_limit, shift), self.maxiter, power_times(norm, shift))
            self._shift_of_inner = self.shift - exponent + inner.shift  # which may have changed
        else:
            shift = self._shift_of_inner - self.shift
            inner.change_limit(power_times(self._next_limit, shift))
            inner.go_on(times_power(self.r, shift, self.backend.xp))
        self._began = self._has_steps = True

    def _step(self) -> None:
        self.inner.enqueue(1)

    def enqueue(self, iterations: int) -> None:
        """See `Iteration`."""
        self.inner.enqueue(iterations)

    def read_state(self, ahead: int = 0) -> int:
        """See `Iteration`."""
        if not self._has_steps:
            return self._state
        known = len(self.inner.residuals)
        state, shift = self.inner.read_state(ahead), self.shift - self._shift_of_inner
        for norm in self.inner.residuals[known:]:
            self.residuals.append(power_times(norm, shift))
            self.count += 1
            if self.residuals[-1] < self._halved[0] / 2:
                self._halved = self.residuals[-1], self.count
        stalls = self.count - self._halved[1] > patience(self.n)
        return REACHED if state == RUNNING and stalls else state

    def iterate(self) -> Any:
        """See `Iteration`."""
        if not self._has_steps:
            return self.x
        steps = self.inner.iterate().astype(self.dtype)
        return self.x + times_power(steps, self.shift - self._shift_of_inner, self.backend.xp)

    def replace_iterate(self, x: Any) -> None:
        """See `Iteration`."""
        super().replace_iterate(x)
        self._has_steps = False

    def find_residual(self) -> None:
        """See `Iteration`, with the steps so far in x."""
        if self._has_steps:
            self.replace_iterate(self.iterate())
        super().find_residual()

    def measure_residual(self) -> None:
        """See `Iteration`. The next update is due the later, the less the residual has drifted."""
        before, had_steps = self.true_residual_norm, self._has_steps
        super().measure_residual()
        if had_steps and before > 0:
            new, old = (norm / before for norm in (self.true_residual_norm, self.residuals[-1]))
            drift = math.sqrt(abs(new * new - old * old))
            self._falls_by = min(max(DRIFTS * drift, MOST), LEAST)
