"""Methods for matrices that are not symmetric: ``M="auto"``, and several right-hand sides, one after the other."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import numpy as np

from mcprecond.linalg.columns import MOST_COLUMNS
from mcprecond.matrix import AdmittedMatrix
from mcprecond.solvers.automatic import Stages, left_of, predict_stages
from mcprecond.solvers.iteration import Iteration
from mcprecond.solvers.named import GENERAL_NAMES
from mcprecond.solvers.result import Reason, SolveResult, Stage
from mcprecond.solvers.solver import Solver
from mcprecond.tuning.general_stages import MOST_SLOWER, Features, digits_of, fastest, next_stage, predict_general
from mcprecond.tuning.stages import Prediction, Progress, expected_rate

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
    """The stages of a method for any matrix. A solve begins with the preconditioner that is predicted to be fastest."""

    def __init__(self, plain: GeneralSolver) -> None:
        super().__init__(plain)
        self._features = features_of(self._matrix, plain.products)
        self._predicted = predict_general(predict_stages(self._matrix), self._features, self._weakest)
        self._first = ""
        #: The preconditioners with which a stage has ended for one of the reasons in FAILURES.
        self._failed = set[str]()

    def run(self, b: Any, x0: Any, *limits: Any, **hooks: Any) -> SolveResult[Any]:
        """See `Stages`."""
        b, x0, rtol, atol, maxiter = self._plain.admit_arguments(b, x0, *limits)
        while not self._first:
            name = fastest(self._predicted, self._features, digits_of(rtol))[0]
            self._first = name if self._build(name) else ""
        return super().run(b, x0, rtol, atol, maxiter, **hooks)

    def _next(self, current: str, known: dict[str, Progress], iteration: Iteration) -> str | None:
        lowest = np.minimum.accumulate(iteration.residuals).tolist()  # since residuals may jump
        rate = expected_rate(lowest, MOST_SLOWER)
        left, digits = left_of(iteration, rate)
        known[current] = Progress(iteration.count, rate)
        untried = self._untried(known)
        return next_stage(current, iteration.count, left, digits, untried, self._predicted, self._features)

    def _after_failure(self, stages: list[Stage], known: dict[str, Progress], reason: Reason) -> str | None:
        """See `Stages`. Untried candidates come first, then one that was only slow, and the weakest one comes last."""
        if reason not in FAILURES:
            return None
        self._failed.add(stages[-1].name)
        if untried := self._untried(known):
            return fastest(untried, self._features, 1.0)[0]
        slow = [stage.name for stage in stages if stage.name not in self._failed]
        if slow:
            return max(slow, key=lambda name: known[name].rate / self._predicted[name].iteration)
        return None if self._weakest in self._failed else self._weakest

    def _untried(self, tried: Container[str]) -> dict[str, Prediction]:
        """Return the candidates that have not been tried, without the weakest one."""
        return {name: one for name, one in self._predicted.items() if name not in tried and name != self._weakest}


def features_of(matrix: AdmittedMatrix, products: int) -> Features:
    """Return what the predictions depend on. An iteration of the method takes `products` products with A."""
    canonical, n = matrix.canonical(), matrix.shape[0]
    xp, csr, pivots = matrix.backend.xp, canonical.csr, canonical.diagonal()
    features = Features(n, matrix.indices.size, 0.0, 0.0, products)
    if n and bool((pivots != 0).all()):
        with np.errstate(all="ignore"):  # relative to the diagonal
            sizes, sums = (matrix.magnitudes() @ xp.ones(n)) / abs(pivots), ((csr @ xp.ones(n)) / pivots).real
            positive = float(xp.nan_to_num((sizes + sums) / 2 - 1).mean())
        features = features._replace(surplus=float(xp.median(2 - sizes)), positive=positive)
    if matrix.backend.name == "gpu":
        return features
    ahead = places_ahead(csr)
    return features._replace(width=width_of(csr, ahead), dropped=dropped_share(csr, ahead, abs(pivots)))


def places_ahead(csr: Any) -> Any:
    """For each entry of a matrix on the host, how many columns it is to the right of the diagonal."""
    return csr.indices - np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))


def width_of(csr: Any, ahead: Any) -> float:
    """See `Features.width`."""
    if not ahead.size:
        return 0.0
    return float(np.maximum.reduceat(abs(ahead), csr.indptr[:-1][np.diff(csr.indptr) > 0]).mean())


def dropped_share(csr: Any, ahead: Any, pivots: Any) -> float:
    """`Features.dropped`, by the row sums of ``|L| |U|`` for the triangles of A; `pivots` are sizes of its diagonal."""
    if not ahead.size:
        return 0.0
    sizes = abs(csr.data)
    lower, upper = (type(csr)((sizes * part, csr.indices, csr.indptr), csr.shape) for part in (ahead < 0, ahead > 0))
    with np.errstate(all="ignore"):
        sums = lower @ (upper @ np.ones(len(pivots)) / pivots) / pivots
    return float(np.quantile(np.nan_to_num(sums, nan=np.inf), 0.9, method="higher"))
