"""Methods for matrices that are not symmetric: ``M="auto"``, and several right-hand sides, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcprecond.linalg.columns import MOST_COLUMNS
from mcprecond.solvers.automatic import Stages, times_for, weakest_for
from mcprecond.solvers.named import GENERAL_NAMES
from mcprecond.solvers.result import Reason, SolveResult, Stage
from mcprecond.solvers.solver import Solver
from mcprecond.tuning.features import with_features
from mcprecond.tuning.forecast import Progress
from mcprecond.tuning.general import forecast_general

#: After a stage that has ended for one of these reasons, the solve goes on with another preconditioner.
FAILURES = (
    Reason.STAGNATED,
    Reason.BREAKDOWN,
    Reason.DIVERGED,
    Reason.NO_PROGRESS,
    Reason.INDEFINITE_M,
    Reason.NOT_FINITE,
)


class GeneralSolver(Solver):
    """A method for A and M that solves for one right-hand side at a time."""

    most_columns, names = MOST_COLUMNS, GENERAL_NAMES
    #: How many products with A an iteration takes.
    products: int

    def run_all(self, b: Any, x0: Any, *limits: Any, **hooks: Any) -> SolveResult[Any]:
        """Solve for one right-hand side or several, with M="auto" in stages."""
        is_automatic = self.is_automatic and not self.A_is_operator
        run = GeneralStages(self).run if is_automatic else self.run
        b = self._shape(b, "b")
        return run(b, x0, *limits, **hooks) if b.ndim == 1 else self.run_one_by_one(run, b, x0, *limits, **hooks)


class GeneralStages(Stages):
    """The stages of a method for any matrix."""

    def __init__(self, plain: GeneralSolver) -> None:
        matrix = with_features(plain.matrix)
        times, weakest, device = times_for(matrix), weakest_for(matrix), matrix.backend.name
        super().__init__(plain, forecast_general(times, matrix.features, weakest, device, plain.products))
        #: The stages that have failed.
        self._failed = set[str]()

    def _after_failure(self, stages: Sequence[Stage], known: dict[str, Progress], reason: Reason) -> str | None:
        """See `Stages`. Untried candidates come first, then one that was only slow, and the weakest one comes last."""
        if reason not in FAILURES:
            return None
        self._failed.add(stages[-1].name)
        if untried := self._forecast.fastest(1.0, {*known, self._weakest}):
            return untried
        slow = [stage.name for stage in stages if stage.name not in self._failed]
        if slow:
            return max(slow, key=lambda name: known[name].rate / self._forecast.predicted[name].iteration)
        return None if self._weakest in self._failed else self._weakest
