"""By which norm a solve ends: that of the residual, that of the error in the energy norm, or sqrt(r'M r).

The device stops where a step of CG has won little, or where r'M r is small. Then the host asks the target whether the
solve is at its end. Squares are in the units of the iteration.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from mcprecond.linalg.powers import power_times
from mcprecond.solvers.energy import Coefficients
from mcprecond.typing import Norm

#: If the true residual is more than UNTRUE times as large as that of the recurrence, the recurrence does not decide
#: whether a solve has converged.
UNTRUE = 2
#: The device stops when the gain of a step falls below a threshold. If the error is still too large then, CG continues
#: with a lower threshold, which is between FALL and 1/2 times the last gain.
FALL = 1e-3


class Solving(Protocol):
    """What a target sees of an `Iteration`."""

    limit: float
    residuals: list[float]
    true_residual_norm: float
    energy: Coefficients
    count: int
    shift: int
    rz: float
    unit: float


class Target:
    """The norm of the residual, whose limit the iteration has. It is small enough where the device says so."""

    norm: Norm = "residual"
    #: SHARE, LEAST_GAIN and LIMIT_RZ of the device; see iteration.py.
    on_device = (-1.0, -1.0, 0.0)

    def is_met(self, iteration: Solving) -> bool:
        """Whether the norm is small enough, as far as the recurrence knows."""
        return False

    def is_confirmed(self, iteration: Solving) -> bool:
        """Whether the norm is small enough, after the true residual has been computed. The recurrence decides this,
        unless its residual is much smaller than the true one.
        """
        return iteration.true_residual_norm <= UNTRUE * iteration.residuals[-1] and self.is_met(iteration)

    def was_met_at_start(self, iteration: Solving) -> bool:
        """Whether the iterations since CG began again have found that the norm was small enough then."""
        return False

    def residual_at_end(self, iteration: Solving) -> float:
        """The norm of the residual at about which the solve will end."""
        return iteration.limit

    def rescale(self, shift: int) -> Target:
        """The same target for b and x times 2^shift."""
        return self

    def of_steps(self, shift: int) -> Target:
        """The same target for an inner iteration, whose b and x are those times 2^shift, and which only takes steps."""
        return self.rescale(shift)


@dataclass(frozen=True)
class OtherTarget(Target):
    """Another norm: its square is at most a share of another number, or at most `least`."""

    share: float
    least: float

    def residual_at_end(self, iteration: Solving) -> float:
        return math.sqrt(self.share) * iteration.residuals[0]

    def rescale(self, shift: int) -> Target:
        return replace(self, least=power_times(self.least, 2 * shift))


@dataclass(frozen=True)
class PreconditionedTarget(OtherTarget):
    """r'M r is at most `least`.

    Parameters
    ----------
    find_square : function
        Computes r'M r for r = b - A x, which decides in the end. The recurrence may be far from it: in Eisenstat's form
        it does not compute z from r.
    """

    find_square: Callable[[], float]

    norm = "preconditioned"

    @property
    def on_device(self) -> tuple[float, float, float]:  # type: ignore[override]
        return -1.0, -1.0, self.least

    def is_met(self, iteration: Solving) -> bool:
        return iteration.rz <= self.least * iteration.unit

    def is_confirmed(self, iteration: Solving) -> bool:
        return 0 < self.find_square() <= self.least  # if it is not positive, neither is M, or r = 0


@dataclass(frozen=True)
class EnergyTarget(OtherTarget):
    """The square of the error's energy norm is at most a share of that of the solution, or at most `least`.

    Parameters
    ----------
    rounding : float
        Squares below this share of that of the solution cannot be told from zero.
    find_hidden : function
        Finds what CG does not see of the square of the error.
    """

    rounding: float
    find_hidden: Callable[[], float] = float

    norm = "energy"

    @property
    def on_device(self) -> tuple[float, float, float]:  # type: ignore[override]
        return self.share, self.least, 0.0

    def is_met(self, iteration: Solving) -> bool:
        known = iteration.energy
        found = known.estimate()
        if found is None or found.bound > self.largest_square(found.whole):
            return False
        if known.hidden_at != iteration.count:
            known.hidden, known.hidden_at = self.find_hidden(), iteration.count
        return known.hidden <= self.largest_square(found.whole)

    def was_met_at_start(self, iteration: Solving) -> bool:
        known = iteration.energy
        return known.since_start() <= self.largest_square(known.whole)

    def of_steps(self, shift: int) -> Target:
        return replace(self, least=power_times(self.least, 2 * shift), find_hidden=float)

    def largest_square(self, whole: float) -> float:
        """That which the error may have, by that of the solution."""
        return max(self.share * whole, self.least, self.rounding * whole)

    def next_share(self, iteration: Solving) -> float | None:
        """The gain at which the device is to stop again, after one that was small by chance, as a share of the square
        of the solution; None to leave it as it is.
        """
        known = iteration.energy
        found = known.estimate()
        if found is None or not found.whole > 0:
            return None
        hidden = known.hidden if known.hidden_at == iteration.count else 0.0
        fall = self.largest_square(found.whole) / max(found.bound, hidden)
        return float(known.gains[-1]) / found.whole * min(max(fall, FALL), 1 / 2)
