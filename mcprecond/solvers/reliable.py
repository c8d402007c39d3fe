"""Conjugate gradients in single precision, to the accuracy of double precision: reliable updates.

The iteration runs on vectors of a narrower dtype than the system's, and so on half of the bytes. The residual of its
recurrence drifts away from b - A x. So whenever the norm of the residual has fallen by some factor, x and the residual
are brought up to date in the dtype of the system, and the iteration goes on with the new residual. It keeps its
direction: what CG has learned of the spectrum is not lost, as it would be in restarts. On a GPU an update is one
captured graph, which also finds out when the next one is due.

The factor is `LEAST` at first. Later factors follow from the drift: the error of the recurrence's squared norm of the
residual, as a share of the squared norm at the update before. In QUDA the factor is a constant.

Clark, Babich, Barros, Brower, Rebbi: Solving lattice QCD systems of equations using mixed precision solvers on GPUs,
Comput. Phys. Commun. 181, 2010, Section 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from mcprecond.backends import NUMBERS, Backend, KernelSet, compile_row
from mcprecond.linalg.operator import Operator
from mcprecond.linalg.powers import power_times
from mcprecond.solvers.eisenstat import EisenstatIteration
from mcprecond.solvers.iteration import (
    EXHAUSTED,
    HISTORY,
    ITERATION,
    LEAST_RZ,
    LIMIT_RZ,
    MAXITER,
    NAN,
    REACHED,
    ROUNDING,
    RR,
    RUNNING,
    RZ,
    STATE,
    TOLERANCE,
    Iteration,
    wide,
)

KERNELS = KernelSet(__file__, "VALUE STORED")

#: By what factor the norm of the residual falls until the next update, at least and at most. In between the factor
#: times the drift is the inverse of `DRIFTS`.
LEAST, MOST, DRIFTS = 10, 1000, 100
#: If the square of the norm falls by less than this factor from update to update, the narrow dtype has failed.
LEFT_AT_MOST = 4
#: If the true residual's squared norm is more than this many times the recurrence's, the next step is one of steepest
#: descent: the old direction is no longer conjugate to the next one.
ANOTHER = 2
# The settings: the squared norm at which the solve ends, and the squared norm at the last update; and the powers of two
# between the units of the system and those of the narrow vectors.
LIMIT, BEFORE, TO_NARROW, TO_WIDE = range(4)
CUDA_CONSTANTS = {
    **{"LEAST": LEAST, "MOST": MOST, "DRIFTS": DRIFTS, "LEFT_AT_MOST": LEFT_AT_MOST, "ANOTHER": ANOTHER},
    **{"LIMIT": LIMIT, "BEFORE": BEFORE, "TO_NARROW": TO_NARROW, "TO_WIDE": TO_WIDE},
}


def patience(n: int) -> int:
    """In how many iterations for n unknowns the norm of the residual has to be halved.

    On ill-conditioned systems a narrow dtype delays CG, while the drift stays small. In exact
    arithmetic CG ends after n iterations, and on a grid in two dimensions all of b has an effect everywhere after about
    2 sqrt(n) of them.
    """
    return min(n, 100 + 2 * math.isqrt(n))


class ReliableUpdates(Iteration):
    """An iteration in the dtype of A whose steps an inner iteration takes in a narrower dtype.

    Parameters
    ----------
    A : Operator
    backend : Backend
    inner : EisenstatIteration
        Its vectors are this iteration's times a power of two.
    """

    is_symmetric = is_cg = True

    def __init__(self, A: Operator, backend: Backend, inner: EisenstatIteration) -> None:
        super().__init__(A, backend)
        self.inner, self.dtype_of_steps = inner, inner.dtype
        self.captures, self.bundle = inner.captures, inner.bundle
        self.b, self.x, self.r = (backend.xp.empty(self.n, A.dtype) for _ in range(3))
        self._settings = backend.xp.empty(4, np.float64)
        self._steps = backend.kernels(KERNELS, VALUE=A.dtype, STORED=inner.dtype)
        self._places = self.n, inner.blocks.block_size, inner.blocks.perm

    def load(self, b: Any, x0: Any) -> None:
        super().load(b, x0)
        self._exponent_of_A = 0
        #: The state that was read last, None before the inner iteration has begun.
        self._read: int | None = None
        #: After how many iterations x was up to date.
        self._updated = 0
        self._halved = math.inf, 0  # a norm, and after how many iterations it was there

    def choose_units(self, exponent_of_A: int, exponent: int) -> None:
        super().choose_units(exponent_of_A, exponent)
        self._exponent_of_A = exponent_of_A

    def begin(self) -> None:
        """See `Iteration`: hand the residual to the inner iteration, which keeps its direction if it had one to go on
        with.
        """
        if self._state != RUNNING:
            return
        inner, norm = self.inner, self.true_residual_norm
        if self._read is None:
            inner.reset()
            inner.choose_units(self._exponent_of_A, 0)
            self._shift_of_inner = self.shift + inner.shift - math.frexp(norm)[1]  # from the units of the caller
            if self.target.norm != "residual":
                shift = self._shift_of_inner - self.shift
                inner.maxiter = self.maxiter
                inner.end_by(self.target.of_steps(shift), math.ldexp(self.energy.of_guess, 2 * shift))
        scale = power_times(1.0, self._shift_of_inner - self.shift)
        numbers = self.limit**2, norm * norm, scale, self.maxiter
        self._steps.begin_updates(1, *numbers, self.scalars, self._settings, inner.control)
        self._hand_over()
        if self._read == REACHED:
            inner.go_on()
        else:
            inner.begin()
        self._read, self._updated = RUNNING, self.count

    def _hand_over(self) -> None:
        """Set the limit of the inner iteration and its residual."""
        inner = self.inner
        self._steps.set_limit(1, self.scalars, self._settings, inner.control, inner.scalars, inner.history)
        vectors = (v.reshape(-1) for v in (inner.r, inner.b, inner.x))
        self._steps.hand_over(*self._places, self.r, self._settings, *vectors)

    def _add_steps(self, x: Any) -> None:
        """Add the steps of the inner iteration since the last update to x."""
        self.inner.complete()
        self._steps.add_steps(*self._places, self.inner.x.reshape(-1), self._settings, x)

    @cached_property
    def _update(self) -> Callable[[], None]:
        """Bring x and the residual up to date, and let the inner iteration go on if it has to."""

        def run() -> None:
            self._add_steps(self.x)
            self._residual(self.x, self.b, self.r)
            self._hand_over()
            self.inner.go_on()

        return self.backend.repeatable(run) if self.captures else run

    def _step(self) -> None:
        self.inner.enqueue(1)

    def enqueue(self, most: int) -> None:
        self.inner.enqueue(most)

    def read_state(self) -> int:
        """See `Iteration`; enqueue an update if one is due."""
        if self._read is None:
            return self._state
        inner = self.inner
        known = len(inner.residuals)
        state, shift = inner.read_state(), self.shift - self._shift_of_inner
        self.energy.alphas += inner.energy.alphas[known:]
        self.energy.products += np.ldexp(inner.energy.products[known:], 2 * shift).tolist()
        if self.target.norm != "residual":
            self.rz, self.unit = power_times(inner.rz, 2 * shift), 1.0
        for norm in inner.residuals[known:]:
            self.residuals.append(power_times(norm, shift))
            self.count += 1
            if self.residuals[-1] < self._halved[0] / 2:
                self._halved = self.residuals[-1], self.count
        last, self._read = self.residuals[-1], state
        if self.count - self._halved[1] > patience(self.n):
            return EXHAUSTED
        if state == REACHED and last > self.limit and not self.target.is_met(self):
            if self.count >= self.maxiter:
                return EXHAUSTED
            self._update()
            self._updated = self.count
            return RUNNING
        return state

    def iterate(self) -> Any:
        x = self.x.copy()
        if self.count > self._updated:
            self._add_steps(x)
        return x

    def replace_iterate(self, x: Any) -> None:
        super().replace_iterate(x)
        self._updated = self.count

    def find_residual(self, accurately: bool = False) -> None:
        """See `Iteration`, with the steps so far in x."""
        if self.count > self._updated:
            self._add_steps(self.x)
            self._updated = self.count
        super().find_residual(accurately)


# On the CPU.


@compile_row
def place_of(k, size, perm):
    """Where number k of a narrow vector, which is in color order, is in the order of A."""
    return perm[k // size] * size + k % size


@KERNELS.per_item(grain=NUMBERS)
def add_steps(first, end, size, perm, steps, settings, x):
    """x += the steps."""
    for k in range(first, end):
        x[place_of(k, size, perm)] += settings[TO_WIDE] * wide(steps[k])


@KERNELS.per_item(grain=NUMBERS)
def hand_over(first, end, size, perm, r, settings, own_r, own_b, own_x):
    """r in the narrow dtype, also as the right-hand side; x = 0."""
    for k in range(first, end):
        own_r[k] = settings[TO_NARROW] * r[place_of(k, size, perm)]
        own_b[k] = own_r[k]
        own_x[k] = 0


@KERNELS.strided
def begin_updates(one, limit, norm, scale, maxiter, of_system, settings, control):
    """Take the squares of the norms at the end and now, the units and the number of iterations."""
    settings[LIMIT], settings[BEFORE] = limit, np.inf
    settings[TO_NARROW], settings[TO_WIDE] = scale, 1 / scale
    of_system[RR], control[MAXITER] = norm, maxiter


@KERNELS.strided
def set_limit(one, of_system, settings, control, scalars, history):
    """Find out where the next update is due, by the residual and its drift; or end the iteration."""
    now, before, scale = of_system[RR], settings[BEFORE], settings[TO_NARROW]
    last = history[control[ITERATION] % HISTORY] * settings[TO_WIDE]
    if not np.isfinite(now):
        control[STATE] = NAN
    elif now <= settings[LIMIT] or now > before / LEFT_AT_MOST:
        control[STATE] = EXHAUSTED
    else:
        falls = float(LEAST**2)
        if np.isfinite(before):
            drift = abs(now - last * last) / before * DRIFTS**2
            falls = min(max(1 / drift, falls), float(MOST**2))
        settings[BEFORE] = now
        scalars[TOLERANCE] = max(settings[LIMIT], now / falls) * scale * scale
        scalars[LEAST_RZ] = max(scalars[RZ] * scalars[ROUNDING], scalars[LIMIT_RZ])
        if now > ANOTHER * last * last:
            scalars[RZ] = 0
        control[STATE] = RUNNING
