"""What the host does while a Krylov method iterates, whatever the method.

The host enqueues iterations and reads the control block now and then. Iterations beyond the last one change nothing,
but they still apply M. On a GPU iterations are captured graphs, and a few more of them run while the host reads. If M
has many kernels, at most one more runs; and none does when the host predicts, from the rate of convergence, that the
iterations it has enqueued are the last ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from mcprecond.backends import Backend
from mcprecond.backends.inputs import refuse_not_finite
from mcprecond.linalg.powers import power_times, times_power
from mcprecond.solvers.iteration import (
    BAD_A,
    BAD_M,
    BROKEN,
    CYCLE_ENDED,
    EXHAUSTED,
    NAN,
    REACHED,
    RUNNING,
    Iteration,
)
from mcprecond.solvers.result import Reason

MOST_PER_READ = 64
#: Iterations after which the driver examines why the method has not converged yet; and so many times as many until the
#: next time.
EXAMINED, RARER, SLOW, HALVED = 100, 2, 1e-3, 0.5
#: What has to be left of the residual of a start at most, by the state, for another start to make sense. After progress
#: even a breakdown may be rounding: nothing but noise was left of the residual. A cycle of GMRES may win little.
MOST_LEFT = {BROKEN: 1.0, CYCLE_ENDED: 1 - 1e-6}
USUALLY_LEFT = 0.5

STOPPED_BY = {
    REACHED: Reason.STAGNATED,
    EXHAUSTED: Reason.MAX_ITERATIONS,
    BAD_A: Reason.INDEFINITE_A,
    BAD_M: Reason.INDEFINITE_M,
    NAN: Reason.NOT_FINITE,
    BROKEN: Reason.BREAKDOWN,
    CYCLE_ENDED: Reason.NO_PROGRESS,
}


def choose_units(
    iteration: Iteration,
    b: Any,
    guess: Any,
    exponent_of_A: int,
    backend: Backend,
    exponent_of_product: Callable[[], int] | None,
) -> tuple[float, bool]:
    """Choose the units of an iteration, unless b = 0; the norm of b in these, and whether the iterate is zero.

    If A is known, ``exponent_of_product()`` tells the magnitude of A times the guess. It is asked where those of the
    two are far from 1: where the units of unknowns differ, their product is far above it.

    Raises
    ------
    ValueError
        If b or the guess is not finite.
    """
    norm, shift = iteration.size(iteration.b)
    if not math.isfinite(norm):
        refuse_not_finite(b, backend)
    exponent, is_zero = math.frexp(norm)[1] + shift, True
    if guess is not None:
        norm_of_guess, shift_of_guess = iteration.size(iteration.x)
        if not math.isfinite(norm_of_guess):
            refuse_not_finite(guess, backend, "x0")
        if norm_of_guess > 0:
            is_zero = False
            of_product = exponent_of_A + math.frexp(norm_of_guess)[1] + shift_of_guess
            if exponent_of_product is not None and not iteration.is_near(exponent_of_A, of_product):
                of_product = exponent_of_product()
            exponent = max(exponent, of_product)
    if norm > 0:
        iteration.choose_units(exponent_of_A, exponent)
    return power_times(norm, shift + iteration.shift), is_zero


def iterate(
    iteration: Iteration,
    callback: Callable[[Iteration], object] | None,
    progress: Callable[[int, float], object] | None,
    cause: Callable[[], Reason | None],
    leaves: Callable[[Iteration], bool] | None = None,
) -> Reason:
    """Enqueue iterations, read the state, and start over from the true residual if the recurrence was optimistic.

    After many iterations that have not won much, or do not win anything any more, ``cause()`` examines why. If
    ``leaves(iteration)`` says so, the iterations end as if there were no more.
    """
    iterations = 1 if callback else iteration.backend.iterations_per_read
    adapts = iterations > 1
    ahead = iteration.ahead if adapts and iteration.captures else 0
    takes_long = iteration.bundle == 1  # each of a few iterations
    if takes_long:
        iterations = 1
    running = ahead
    called, examined = 0, EXAMINED
    while True:
        state = iteration.read_state(running)
        if callback and iteration.count > called:
            called = iteration.count
            callback(iteration)
        if progress:
            progress(iteration.count, iteration.norm_in_units(iteration.residuals[-1]))
        if state == RUNNING and iteration.count >= examined:
            examined *= RARER
            if stalls(iteration.residuals) and (found := cause()):
                iteration.read_state()  # after those that have run ahead
                iteration.measure_residual()
                return Reason.CONVERGED if iteration.true_residual_norm <= iteration.limit else found
        if state == RUNNING and leaves is not None and leaves(iteration):
            state = iteration.read_state()  # after those that have run ahead
            state = EXHAUSTED if state == RUNNING else state
        if state == RUNNING:
            if adapts:
                more, least = 2 * max(iterations, 1), 0 if takes_long and running else 1
                left = _iterations_left(iteration.residuals, iteration.next_limit, more)
                most = min(MOST_PER_READ, iteration.room)
                iterations = min(more if left is None else max(left - running, least), most)
                running = 0 if takes_long and left is not None and left <= MOST_PER_READ else ahead
            iteration.enqueue(iterations)
            continue
        before = iteration.true_residual_norm
        iteration.measure_residual()
        if reason := verdict(iteration, state, before):
            return reason
        iteration.start_over()


def stalls(residuals: Sequence[float]) -> bool:
    """Whether all iterations have not won much, or the later half of them has not even halved the residual."""
    return residuals[-1] > min(SLOW * residuals[0], HALVED * residuals[len(residuals) // 2])


def verdict(iteration: Iteration, state: int, before: float) -> Reason | None:
    """Why an iteration that has stopped in a state ends, its true residual measured; None if it is to start over. The
    norm of the residual was `before` at the last start.
    """
    if not math.isfinite(iteration.true_residual_norm):
        return Reason.NOT_FINITE
    if iteration.true_residual_norm <= iteration.limit:
        return Reason.CONVERGED
    if state == EXHAUSTED or iteration.true_residual_norm >= MOST_LEFT.get(state, USUALLY_LEFT) * before:
        return STOPPED_BY[state]
    return None


def _iterations_left(residuals: list[float], limit: float, window: int) -> int | None:
    """How many iterations are left at the rate of the last ones, as many as `window`; None if that is unknown."""
    window = min(window, len(residuals) - 1)
    if window < 1 or limit <= 0 or residuals[-1] <= 0 or residuals[-1] >= residuals[-1 - window]:
        return None
    rate = math.log(residuals[-1 - window] / residuals[-1]) / window
    return math.ceil(min(max(math.log(residuals[-1] / limit) / rate, 1), 2 * MOST_PER_READ))


def solution_of(iteration: Iteration, reason: Reason) -> tuple[Any, Reason]:
    """The solution in the caller's units, and the reason, which is another one where these have no room for it."""
    x, xp = iteration.solution(), iteration.backend.xp
    if iteration.shift and reason is Reason.CONVERGED:
        if not bool(xp.isfinite(x).all()):
            return x, Reason.NOT_FINITE
        back = times_power(x, iteration.shift, xp)
        if bool((back != iteration.iterate()).any()):  # digits were lost to underflow
            iteration.replace_iterate(back)
            iteration.measure_residual()
            if iteration.true_residual_norm > iteration.limit:
                return x, Reason.STAGNATED
    return x, reason
