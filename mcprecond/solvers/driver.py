"""What the host does while a Krylov method iterates, whatever the method.

The host starts a loop of iterations, which ends when the state says so or after a number of them, and reads the control
block. On a GPU the loop is one graph, and most solves are a single loop. Where somebody watches, such as a callback,
loops are shorter.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from mcprecond.backends import Backend
from mcprecond.backends.inputs import any_of, refuse_not_finite
from mcprecond.linalg.accurate import find_accurate_residual
from mcprecond.linalg.csr import Csr
from mcprecond.linalg.powers import power_times, times_power
from mcprecond.linalg.sums import norm_of
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

LOGGER = logging.getLogger("mcprecond")
MINUTE = 60.0
#: Where somebody watches, the host reads after so many iterations first, and then whenever a tenth more have been done.
FIRST_WATCHED, TENTH = 8, 10
#: Iterations of a loop read at most so many entries of A, or are FIRST_WATCHED: Ctrl-C and the log do not have to wait
#: for more than some tenths of a second, or for some seconds with an M that takes long.
ENTRIES_PER_READ = 2**34
#: A residual of at most so many units of rounding counts as rounding.
ROUNDING = 100
#: A state that only the host finds.
DIVERGED = -1
#: Iterations after which the driver examines why the method has not converged yet; and so many times as many until the
#: next time.
EXAMINED, RARER, SLOW, HALVED = 128, 2, 1e-3, 0.5
#: By state: the largest share of the residual of a start that may be left for another start to make sense. After
#: progress even a breakdown may be rounding: nothing but noise was left of the residual. A cycle of GMRES may win
#: little.
MOST_LEFT = {BROKEN: 1.0, CYCLE_ENDED: 1 - 1e-6}
USUALLY_LEFT = 0.5

STOPPED_BY = {
    REACHED: Reason.STAGNATED,
    EXHAUSTED: Reason.MAX_ITERATIONS,
    BAD_A: Reason.INDEFINITE_A,
    BAD_M: Reason.INDEFINITE_M,
    NAN: Reason.NOT_FINITE,
    DIVERGED: Reason.DIVERGED,
    BROKEN: Reason.BREAKDOWN,
    CYCLE_ENDED: Reason.NO_PROGRESS,
}


class Leaving(Protocol):
    """Whether to end the iterations early. The host reads the residuals and asks after `asked_after` iterations."""

    asked_after: float

    def __call__(self, iteration: Iteration) -> bool: ...


def choose_units(
    iteration: Iteration,
    b: Any,
    guess: Any,
    exponent_of_A: int,
    backend: Backend,
    exponent_of_product: Callable[[], int] | None,
) -> tuple[float, bool]:
    """Choose the units of an iteration, unless b = 0; the norm of b in these, and whether the iterate is zero.

    If A is known, ``exponent_of_product()`` tells the magnitude of A times the guess. It is called where the
    magnitude of A or the product of the two magnitudes is far from 1: where the units of unknowns differ, that product
    is far too large. Where the units that the guess asks for have no room for b, the guess is left out: the residual of
    zero is far smaller.

    Raises
    ------
    ValueError
        If b or the guess is not finite.
    """
    norm, shift = iteration.size(iteration.b)
    if not math.isfinite(norm):
        refuse_not_finite(b, backend)
    exponent_of_b = exponent = math.frexp(norm)[1] + shift
    is_zero = True
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
            shift_of_b = iteration.home_of(exponent_of_A, exponent) - exponent
            if norm > 0 and shift_of_b < 0 and exponent_of_b + shift_of_b < least_exponent(iteration.dtype, len(b)):
                iteration.x.fill(0)
                exponent, is_zero = exponent_of_b, True
    if norm > 0 or not is_zero:
        iteration.choose_units(exponent_of_A, exponent)
    return power_times(norm, shift + iteration.shift), is_zero


def least_exponent(dtype: Any, n: int) -> int:
    """The least exponent of the norm of n numbers of which underflow takes no digit that counts."""
    numbers = np.finfo(dtype)
    return int(numbers.minexp) + int(numbers.nmant) + 1 + n.bit_length() // 2 + 1


def iterate(
    iteration: Iteration,
    callback: Callable[[Iteration], object] | None,
    progress: Callable[[int, float], object] | None,
    cause: Callable[[Iteration], Reason | None],
    leaves: Leaving | None = None,
) -> None:
    """Run iterations and read the states until each system has a reason to end.

    Systems whose recurrence was optimistic start over from the true residual once all of them have stopped. After many
    iterations that have not won much, or do not win anything any more, ``cause(system)`` examines why. If
    ``leaves(iteration)`` says so, the only system ends at once: another solve goes on, and measures its residual. After
    a breakdown a method that can start in another way does so from the best iterate, a few times.
    """
    systems = iteration.systems
    called, examined, watch = 0, EXAMINED, Watch()
    while True:
        if running_of(systems):
            until = examined if leaves is None else math.ceil(min(examined, leaves.asked_after))
            iteration.enqueue(1 if callback else iterations_until_read(iteration, until, progress is not None))
        iteration.state = iteration.read_state()
        watch.look(iteration.count, max((system.residuals for system in systems), key=lambda norms: norms[-1]))
        if callback and iteration.count > called:
            called = iteration.count
            callback(iteration)
        if progress:
            progress(iteration.count, max(system.norm_in_units(system.residuals[-1]) for system in systems))
        active = running_of(systems)
        if active and iteration.count >= examined:
            examined *= RARER
            end_for_causes(iteration, {system: cause(system) for system in active if stalls(system.residuals)})
            active = running_of(systems)
        if diverged := [system for system in active if system.has_diverged]:
            iteration.stop(diverged, DIVERGED)
            active = running_of(systems)
        if active and leaves is not None and leaves(iteration):
            iteration.leave()
            return
        if active:
            continue
        stopped = [(system, system.state, system.true_residual_norm) for system in systems if system.reason is None]
        iteration.find_residuals()
        for system, state, before in stopped:
            system.measure_residual()
            settle(system, state, before)
        if all(system.reason for system in systems):
            return
        iteration.begin_together()


def iterations_until_read(iteration: Iteration, until: int, is_watched: bool) -> int:
    """After how many more iterations the host reads the residuals: at the latest after `until` iterations in all."""
    count, entries = iteration.count, iteration.A.values.size if isinstance(iteration.A, Csr) else 0
    most = max(ENTRIES_PER_READ // max(entries, 1), FIRST_WATCHED)
    most = min(most, iteration.backend.iterations_per_read, max(until - count, 1))
    if is_watched:
        most = min(most, max(FIRST_WATCHED - count, count // TENTH + 1))
    return most


def running_of(systems: Sequence[Iteration]) -> list[Iteration]:
    """The systems that go on, as far as the host knows."""
    return [system for system in systems if system.state == RUNNING]


def end_for_causes(iteration: Iteration, causes: dict[Iteration, Reason | None]) -> None:
    """End the systems whose failure has a cause, unless they have just converged."""
    failed = [(system, reason) for system, reason in causes.items() if reason]
    if failed:
        iteration.stop([system for system, _ in failed], EXHAUSTED)
        iteration.find_residuals()
    for system, reason in failed:
        system.measure_residual()
        system.state = EXHAUSTED
        system.reason = Reason.CONVERGED if system.is_converged else reason


def settle(system: Iteration, state: int, before: float) -> None:
    """Find the reason why a system has ended, its true residual measured, or let it start over."""
    reason = verdict(system, state, before)
    if reason in (Reason.BREAKDOWN, Reason.DIVERGED) and system.breakdowns < system.most_breakdowns:
        system.breakdowns += 1
        system.return_to_best()
    elif reason and not (reason is Reason.NO_PROGRESS and system.lengthen_cycles()):
        system.reason = reason
        return
    else:
        system.keep_best()
    system.start_over()


class Watch:
    """Says once, on the log, that a solve has taken a minute without much progress, and what to try."""

    def __init__(self) -> None:
        self.until = time.perf_counter() + MINUTE

    def look(self, count: int, residuals: Sequence[float]) -> None:
        """See whether it is time to say so."""
        if time.perf_counter() > self.until and stalls(residuals):
            self.until = math.inf
            fallen = residuals[-1] / residuals[0] if residuals[0] else 0.0
            LOGGER.warning(
                "a solve has run for a minute; after %s iterations the residual is %.1e of the first one, and falls "
                "slowly. Try M=SmoothedAggregation(A), M=ILU0(A) or studies.advise(A), which compares solvers on A; "
                "and nullspace= if A is singular",
                count,
                fallen,
            )


def stalls(residuals: Sequence[float]) -> bool:
    """Whether all iterations have not won much, or the later half of them has not even halved the residual."""
    return residuals[-1] > min(SLOW * residuals[0], HALVED * residuals[len(residuals) // 2])


def verdict(iteration: Iteration, state: int, before: float) -> Reason | None:
    """Why an iteration that has stopped in a state ends, its true residual measured; None if it is to start over. The
    norm of the residual was `before` at the last start.
    """
    if state == NAN and iteration.has_diverged:
        state = DIVERGED  # before it overflowed
    if not math.isfinite(iteration.true_residual_norm):
        return STOPPED_BY[state] if state == DIVERGED else Reason.NOT_FINITE
    if iteration.is_converged or (state == REACHED and iteration.wins_nothing):
        return Reason.CONVERGED
    if state == EXHAUSTED or iteration.true_residual_norm >= MOST_LEFT.get(state, USUALLY_LEFT) * before:
        return STOPPED_BY[state]
    return None


def solution_of(iteration: Iteration, reason: Reason, b: Any) -> tuple[Any, float, Reason]:
    """The solution for b in the caller's units, the norm of its residual, and the reason.

    The reason is another one where the caller's units have no room for the solution. Unless the solve has converged,
    the solution is the iterate with the least residual that was measured; see `is_less_in_units_of_diagonal` for the
    exception.
    """
    x, xp = iteration.solution(), iteration.backend.xp
    # An unknown without entries in its column may overflow while residuals do not.
    has_room = (reason is Reason.CONVERGED and not iteration.shift) or not any_of(~xp.isfinite(x))
    if has_room and not iteration.is_iterate(x):  # digits were lost to underflow
        iteration.replace_iterate(times_power(x, iteration.shift, xp))
        iteration.measure_residual()
    if reason is Reason.CONVERGED and not has_room:
        reason = Reason.NOT_FINITE
    is_missed = iteration.target.norm == "residual" and iteration.true_residual_norm > iteration.limit
    if reason is Reason.CONVERGED and is_missed:
        reason = Reason.STAGNATED
    norm = iteration.norm_in_units(iteration.true_residual_norm) if has_room else math.inf
    if reason is not Reason.CONVERGED and iteration.best_norm < math.inf and not norm <= iteration.best_norm:
        best = iteration.best_solution()
        if not (has_room and is_less_in_units_of_diagonal(iteration, x, norm, best, b)):
            x, norm = best, iteration.best_norm
            # Rounding may have put the norm above the limit in the convergence test, though it is equal to the limit.
            if iteration.target.norm == "residual" and norm <= iteration.norm_in_units(iteration.limit):
                reason = Reason.CONVERGED
    return x, norm, reason


def is_less_in_units_of_diagonal(iteration: Iteration, x: Any, norm: float, other: Any, b: Any) -> bool:
    """Whether the norm of the residual of x is rounding of A x, and the norm of inv(sqrt(D)) (b - A x), with the
    diagonal D of a symmetric A, is less than for another vector.

    Where the units of rows differ, rounding in a few of them may be far above all of b. Then the residual of zero is
    less than that of a solution with all its digits.
    """
    A, xp = iteration.A, iteration.backend.xp
    if not (iteration.is_symmetric and isinstance(A, Csr)):
        return False
    with np.errstate(all="ignore"):
        # In the units of the solve, where products with A do not overflow.
        x, other, b = (times_power(v, iteration.shift, xp) for v in (x, other, b))
        norm = power_times(norm, iteration.shift)
        if not norm <= ROUNDING * float(np.finfo(iteration.dtype).eps) * norm_of(A.sizes_of(x), iteration.backend):
            return False
        diagonal = A.diagonal_magnitudes()
        scales = 1 / xp.sqrt(xp.where(diagonal > 0, diagonal, 1))
        norms = []
        for v in (x, other):
            r = xp.empty_like(x)
            find_accurate_residual(A, xp.ascontiguousarray(v), xp.array(b, iteration.dtype), r, iteration.backend)
            norms.append(norm_of(scales * r, iteration.backend))
    return norms[0] < norms[1]
