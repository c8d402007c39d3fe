"""When a solve by CG should go on with another preconditioner: what ``pcg(A, b, M="auto")`` stands for.

Nobody knows beforehand which preconditioner is fastest. So a solve begins with the cheapest one. After some iterations
its residuals tell how many are left, and the cost model how long these and those of the others take, with their setup.
It is left for another one

- once it has taken a quarter of the setup of that one, if 1.4 times the time that this would take is left,
- once it has taken as long as that setup, if more time than this would take is left.

As with the rental of skis, what was spent before is then at most as long as what follows. Only counts and the model
decide, no clock, so that runs repeat.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mcprecond.tuning.cost_model import Speeds

#: What was spent, relative to the setup of the next stage, and how many times as long as that stage with its setup what
#: is left has to take.
RULES = (0.25, 1.4), (1.0, 1.1)
LEAST_ITERATIONS = 8  # that tell a rate
#: Iterations of SGS relative to those of Jacobi, on meshes as the theory of SSOR has it for omega = 1; and iterations
#: of multigrid for each decimal digit of the residual, and in all.
OF_JACOBI, PER_DIGIT, AT_LEAST = 0.55, 1.6, 2.0
#: The products that make coarse levels take as long as for rows of few entries up to about so many.
USUAL_ROW = 50
#: From multigrid a solve returns to a stage that it has left if that is so many times as fast, since its first
#: iterations had won more than later ones would; if multigrid has taken as long as that stage had, and so many times as
#: long as expected; and if so many times as many iterations are left as were expected.
RETURN, PATIENCE, HOPELESS = 4.0, 3.0, 20.0
MOST_SLOWER = 3.0


@dataclass(frozen=True)
class Prediction:
    """Seconds that a preconditioner takes for its setup and for each iteration with it."""

    setup: float
    iteration: float


def predictions(n: int, entries: int, value_bytes: int, n_colors: float, speeds: Speeds) -> dict[str, Prediction]:
    """By the cost model: of no preconditioner, Jacobi, SGS with so many colors, and multigrid."""
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


def iterations_of_multigrid(digits: float) -> float:
    """How many it is expected to take to lower the residual by so many decimal digits."""
    return PER_DIGIT * digits + AT_LEAST


class Progress(NamedTuple):
    """How a stage has done so far: its iterations, and how many digits each of the next ones is expected to win."""

    iterations: int
    rate: float


def expected_rate(residuals: Sequence[float], most_slower: float = MOST_SLOWER) -> float:
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


def _left_after(progress: Progress, digits: float) -> float:
    """How many more iterations a stage would take. Its rate falls if these are many more than it has been known for."""
    if not progress.rate:
        return math.inf
    left = digits / progress.rate
    return left * max(1.0, math.sqrt(left / progress.iterations))


def next_stage(
    current: str,
    left: float,
    digits: float,
    progress: dict[str, Progress],
    predicted: dict[str, Prediction],
) -> str | None:
    """The stage to go on with; None to stay.

    Parameters
    ----------
    current : str
    left : float
        Iterations that are left with it.
    digits : float
        Decimal digits that the residual still has to fall.
    progress : dict
        Of the stages that there were; the current one is one of them.
    predicted : dict
        Of all stages that are possible.
    """
    first = next(iter(progress))
    left_of_first = left if current == first else digits / progress[first].rate if progress[first].rate else math.inf

    def cost(name: str) -> tuple[float, float]:
        """The seconds to spend before the stage is considered, and the seconds that it takes, setup included."""
        setup, iteration = predicted[name].setup, predicted[name].iteration
        if name in progress:
            expected = iterations_of_multigrid(digits) * predicted[current].iteration
            patience = max(PATIENCE * expected, progress[name].iterations * iteration)
            return patience, RETURN * _left_after(progress[name], digits) * iteration
        iterations = iterations_of_multigrid(digits) if name == "multigrid" else OF_JACOBI * left_of_first
        return setup, setup + iterations * iteration

    # The iterations of multigrid are only estimated, so the solve may have left a faster stage for it. The stage before
    # it is known best, and had been preferred to those before that one.
    may_return = current == "multigrid" and left > HOPELESS * iterations_of_multigrid(digits)
    before = [name for name in progress if name != current][-1:] if may_return else []
    costs = {name: cost(name) for name in predicted if name in before or name not in progress}
    best = min(costs, key=lambda name: costs[name][1], default=None)
    if best is None or costs[best][1] == math.inf:
        return None
    setup, total = costs[best]
    spent = progress[current].iterations * predicted[current].iteration
    staying = left * predicted[current].iteration
    rules = RULES[1:] if best in progress else RULES
    return best if any(spent >= share * setup and staying > margin * total for share, margin in rules) else None
