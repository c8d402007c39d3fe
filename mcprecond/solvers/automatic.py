"""Solves with a preconditioner that is chosen by predictions: ``M="auto"``.

A solve begins with the preconditioner that is predicted to be the fastest, and goes on with another one if its
residuals say that this would be faster: it has stages. tuning/forecast.py has the rule.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from mcprecond.matrix import AdmittedMatrix
from mcprecond.solvers.iteration import Iteration
from mcprecond.solvers.named import build
from mcprecond.solvers.result import Reason, SolveResult, Stage, add_stages, merge
from mcprecond.solvers.solver import Solver
from mcprecond.tuning.cost_model import speeds_of
from mcprecond.tuning.forecast import (
    Forecast,
    Prediction,
    Progress,
    digits_of,
    expected_rate,
    predict_times,
)
from mcprecond.tuning.least_time import usual_colors

#: The diagonal of A counts as constant if its largest entry is at most ALIKE times its smallest entry. In that case
#: Jacobi's preconditioner saves few iterations and makes each iteration slower.
ALIKE = 2.5


class Stages(ABC):
    """The stages of a method for one matrix: a solve begins with the stage that the one before has ended with.

    Parameters
    ----------
    plain : Solver
        Without a preconditioner.
    forecast : Forecast
    """

    def __init__(self, plain: Solver, forecast: Forecast) -> None:
        self._plain, self._forecast = plain, forecast
        self._weakest = next(iter(forecast.predicted))
        self._solvers: dict[str, Solver] = {}
        #: The stage that the next solve begins with; empty before the first one.
        self._first = ""
        #: By stage, the progress of the last solve that used it.
        self._progress: dict[str, Progress] = {}

    @abstractmethod
    def _after_failure(self, stages: Sequence[Stage], known: dict[str, Progress], reason: Reason) -> str | None:
        """Return the stage to go on with after the last one has ended for a reason; None to end the solve."""

    def run(
        self,
        b: Any,
        x0: Any,
        *limits: Any,
        callback: Callable[[Iteration], object] | None = None,
        progress: Callable[[int, float], object] | None = None,
    ) -> SolveResult[Any]:
        """Solve for one right-hand side. Solves may run side by side: each has its own stages."""
        b, x0, rtol, atol, maxiter = self._plain.admit_arguments(b, x0, *limits)
        results: list[SolveResult[Any]] = []
        stages: tuple[Stage, ...] = ()
        name, known = self._begin(digits_of(rtol)), dict(self._progress)
        while True:
            decision = Decision(partial(self._next, name, known), self._first_question(name, digits_of(rtol), known))
            done, counted = sum(result.iterations for result in results), sum(result.counted for result in results)
            told = None if progress is None else lambda count, norm, done=done: progress(done + count, norm)
            known.setdefault(name, Progress(0, 0.0))
            solver = self._solvers[name]
            result = solver.run(b, x0, rtol, atol, maxiter - counted, callback=callback, progress=told, leaves=decision)
            results.append(result)
            stages = add_stages(stages, [Stage(name, result.iterations)])
            if result.reason is Reason.LEFT:
                following = decision.name
            elif result.converged or counted + result.counted >= maxiter:
                following = None
            else:
                following = self._after_failure(stages, known, result.reason)
            if following is None:
                self._first, self._progress = name, known
                return merge(results, stages, M=solver.M)
            if result.reason is not Reason.NOT_FINITE:
                x0 = result.x
            if self._build(following):
                solver.release()
                name = following

    def replace_matrix(self, matrix: AdmittedMatrix) -> None:
        """Go on with new values of A, and with the preconditioner that the last solve has ended with."""
        solver = self._solvers.pop(self._first, None)
        self.release()
        self._solvers = {}
        if solver is not None:
            solver.replace_matrix(matrix)
            self._solvers[self._first] = solver

    def release(self) -> None:
        """Give back the memory that solves have taken."""
        for solver in self._solvers.values():
            solver.release()

    def _begin(self, digits: float) -> str:
        """Return the stage that a solve begins with, for a residual that is to fall by so many decimal digits."""
        while not (self._first and self._build(self._first)):
            self._first = self._forecast.fastest(digits) or self._weakest
        return self._first

    def _first_question(self, current: str, digits: float, known: dict[str, Progress]) -> float:
        """After how many iterations of a stage to ask for the first time whether to leave it."""
        return self._forecast.first_question(current, digits, {current, *known, self._weakest})

    def _next(self, current: str, known: dict[str, Progress], iteration: Iteration) -> str | None:
        """Return the stage to go on with, judging by the residuals so far; None to stay."""
        lowest = np.minimum.accumulate(iteration.residuals).tolist()  # since residuals may jump
        rate = expected_rate(lowest, self._forecast.most_slower)
        left, digits = left_of(iteration, rate)
        known[current] = Progress(iteration.count, rate)
        return self._forecast.next_stage(current, iteration.count, left, digits, {*known, self._weakest})

    def _build(self, name: str) -> bool:
        """Build the preconditioner of a stage, if need be. One that cannot be built is no candidate any more."""
        if name not in self._solvers:
            started = time.perf_counter()
            try:
                M = None if name == "none" else build(name.lower(), self._plain.matrix, self._plain.nodes)
                solver = self._plain.with_preconditioner(M)
            except (ValueError, MemoryError):
                if name == self._weakest:
                    raise
                self._forecast.predicted.pop(name, None)
                return False
            solver.started, solver.name = started, None if M is None else name.lower()
            self._solvers[name] = solver
        return True


def weakest_for(matrix: AdmittedMatrix) -> str:
    """The preconditioner that a solve falls back to: Jacobi's, or none where the diagonal is about constant or has
    zeros.
    """
    least, largest = (float(extreme) for extreme in matrix.canonical().extremes)
    has_inverse = least >= float(np.finfo(matrix.dtype).tiny)
    return "Jacobi" if has_inverse and largest > ALIKE * least else "none"


def times_for(matrix: AdmittedMatrix) -> dict[str, Prediction]:
    """Predict the times of the setup of each preconditioner and of an iteration of CG with it."""
    n, entries, speeds = matrix.shape[0], matrix.indices.size, speeds_of(matrix.backend)
    return predict_times(n, entries, matrix.dtype.itemsize, usual_colors(matrix, speeds), speeds)


def left_of(iteration: Iteration, rate: float) -> tuple[float, float]:
    """Return how many iterations are left, whatever `maxiter` is, and by how many decimal digits the residual still has
    to fall. `rate` is how many digits it falls in an iteration.
    """
    residuals, limit = iteration.residuals, iteration.aim
    least = max(limit, float(np.finfo(iteration.dtype).eps) * residuals[0])
    digits = math.log10(residuals[-1] / least) if residuals[-1] > least > 0 else 0.0
    return digits / rate if rate else math.inf, digits


class Decision:
    """Whether to leave a stage, asked after some iterations and whenever half more have been done; see `Leaving`.

    Parameters
    ----------
    next_stage : function of an iteration
        The stage to go on with, or None.
    first : float
        After how many iterations to ask for the first time.

    Attributes
    ----------
    name : str or None
        The next stage, once the answer is yes.
    """

    def __init__(self, next_stage: Callable[[Iteration], str | None], first: float) -> None:
        self._next_stage, self.asked_after = next_stage, first
        self.name: str | None = None

    def __call__(self, iteration: Iteration) -> bool:
        if iteration.count >= self.asked_after:
            self.asked_after = iteration.count + iteration.count // 2 + 1
            self.name = self._next_stage(iteration)
        return self.name is not None
