"""How long a solve takes with each preconditioner, and when it should go on with another one: ``M="auto"``.

The cost model tells how long the setup of each candidate and an iteration with it take, and features of the matrix how
many iterations there may be. The candidate that is predicted to be the fastest begins. After some iterations the
residuals tell how many are left. The solve goes on with another candidate if these iterations would take `margin` times
as long as that one with its setup, and if the current one has been used for the share SPENT of that time. Only counts
and the model decide, no clock, so that runs repeat.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mcprecond.tuning.cost_model import Speeds

#: A stage is left only if it has taken at least this share of the time that the next stage is predicted to take.
SPENT = 0.2
LEAST_ITERATIONS = 8  # that tell a rate
#: The products that make coarse levels take as long as for rows of few entries up to about so many.
USUAL_ROW = 50


class Prediction(NamedTuple):
    """Seconds that a preconditioner takes for its setup and for each iteration with it."""

    setup: float
    iteration: float


class Progress(NamedTuple):
    """How a stage has done so far: its iterations, and how many digits each of the next ones is expected to win."""

    iterations: int
    rate: float


@dataclass(frozen=True)
class Forecast:
    """The predictions for a method and a matrix.

    Attributes
    ----------
    predicted : dict
        The candidates. What cannot be built is taken out.
    iterations : function of a name and a number
        How many iterations a candidate is expected to take to reduce the residual by so many decimal digits.
    of_any_size : collection of str
        Candidates that need about as many iterations on grids of all sizes.
    is_hard_for_all : bool
        Whether a system for which one of these needs more iterations than expected is hard for the others as well.
    margin : float
    most_slower : float
        See `expected_rate`.
    patience : float
        A stage may end after the expected number of iterations times this factor, at the earliest.
    """

    predicted: dict[str, Prediction]
    iterations: Callable[[str, float], float]
    of_any_size: Container[str]
    is_hard_for_all: bool
    margin: float
    most_slower: float
    patience: float

    def seconds(self, name: str, digits: float, slower: float = 1.0) -> float:
        """How long a candidate takes with its setup, if sweeps take `slower` times as many iterations as expected."""
        setup, iteration = self.predicted[name]
        return setup + (1.0 if name in self.of_any_size else slower) * self.iterations(name, digits) * iteration

    def fastest(self, digits: float, without: Container[str] = (), slower: float = 1.0) -> str | None:
        """The candidate that is predicted to be the fastest; None if all are left out."""
        names = [name for name in self.predicted if name not in without]
        return min(names, key=lambda name: self.seconds(name, digits, slower), default=None)

    def first_question(self, current: str, digits: float, tried: Container[str]) -> float:
        """After how many iterations to call `next_stage` for the first time: after the share `patience` of those that
        are expected, and not before it can name another candidate, since their setup takes some time.
        """
        least = min((setup for name, (setup, _) in self.predicted.items() if name not in tried), default=math.inf)
        worth_it = SPENT * least / self.predicted[current].iteration
        return max(worth_it, self.patience * self.iterations(current, digits), LEAST_ITERATIONS)

    def next_stage(self, current: str, done: int, left: float, digits: float, tried: Container[str]) -> str | None:
        """The candidate to go on with; None to stay.

        Parameters
        ----------
        current : str
        done, left : int, float
            Iterations with it that there were, and that are left.
        digits : float
            Decimal digits that the residual still has to fall.
        tried : collection of str
            Candidates that are no choice.
        """
        slower = 1.0
        if self.is_hard_for_all or current not in self.of_any_size:  # sweeps are alike
            slower = max(left / self.iterations(current, digits), 1.0)
        best = self.fastest(digits, tried, slower)
        if best is None:
            return None
        seconds, iteration = self.seconds(best, digits, slower), self.predicted[current].iteration
        return best if done * iteration > SPENT * seconds and left * iteration > self.margin * seconds else None


def predict_times(n: int, entries: int, value_bytes: int, n_colors: float, speeds: Speeds) -> dict[str, Prediction]:
    """By the cost model: of no preconditioner, Jacobi, SGS with so many colors, and multigrid, for a symmetric A."""
    work = speeds.work
    found = {
        name: Prediction(setup.seconds(n, entries, value_bytes), iteration.seconds(n, entries, value_bytes))
        for name, (setup, iteration) in work.items()
    }
    # On a CPU colors take hardly any time of their own.
    sweeps = found["SGS"].iteration or speeds.iteration_seconds(n, entries, value_bytes, n_colors)
    setup = work["multigrid"][0]
    products = entries * (1 + (entries / max(n, 1) / USUAL_ROW) ** 2)
    return found | {
        "SGS": Prediction(found["SGS"].setup, sweeps),
        "multigrid": Prediction(setup.seconds(n, round(products), value_bytes), found["multigrid"].iteration),
    }


def digits_of(rtol: float) -> float:
    """Decimal digits by which the residual has to fall, at most those of double precision."""
    return -math.log10(min(max(rtol, 1e-15), 0.1))


def expected_rate(residuals: Sequence[float], most_slower: float) -> float:
    """The decimal digits that each of the next iterations is expected to win; 0 if the residuals do not fall.

    That is what those of the later half have won. But as long as CG has not seen the small eigenvalues, its residuals
    fall more slowly from one doubling of the iterations to the next: then the rate is lowered as it was before, by the
    factor `most_slower` at most.
    """
    window = max(len(residuals) // 2, 1)
    rate = _digits(residuals[-1 - window], residuals[-1]) / window
    before = max(window // 2, 1)
    if len(residuals) <= window + before or rate <= 0:
        return max(rate, 0.0)
    earlier = _digits(residuals[-1 - window - before], residuals[-1 - window]) / before
    return rate * min(max(rate / earlier if earlier > 0 else 1.0, 1 / most_slower), 1.0)


def _digits(first: float, last: float) -> float:
    """By how many decimal digits a residual falls; a residual of zero may grow again by rounding."""
    if last <= 0:
        return math.inf
    return math.log10(first) - math.log10(last) if first > 0 else -math.inf
