"""Solves with a preconditioner that is chosen while they run: ``M="auto"``.

A solve has stages, each with another preconditioner. tuning/stages.py has the rule for CG, and tuning/general_stages.py
that for matrices that are not symmetric.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mcprecond.backends.inputs import refuse_not_finite
from mcprecond.linalg.csr import product_with
from mcprecond.linalg.sums import norm_of
from mcprecond.matrix import AdmittedMatrix
from mcprecond.solvers.iteration import Iteration
from mcprecond.solvers.named import build, invert_diagonal
from mcprecond.solvers.preconditioned import PreconditionedCG
from mcprecond.solvers.result import Reason, SolveResult, Stage, merge
from mcprecond.solvers.solver import Solver
from mcprecond.tuning.cost_model import speeds_of
from mcprecond.tuning.least_time import choose
from mcprecond.tuning.stages import LEAST_ITERATIONS, Prediction, Progress, expected_rate, next_stage, predictions

#: A diagonal counts as constant if its entries differ by no more than this share of the largest one.
ALIKE = 0.01
#: If a stage of CG after the first one ends for one of these reasons, its preconditioner has failed, and the solve
#: returns to the preconditioner of the first stage.
FAILURES = Reason.INDEFINITE_M, Reason.STAGNATED, Reason.NOT_FINITE


class Stages(ABC):
    """The stages of a method for one matrix: a solve begins with the stage that the one before has ended with.

    Parameters
    ----------
    plain : Solver
        Without a preconditioner.
    """

    #: The stage that the next solve begins with.
    _first: str
    #: The times of the stages that are possible.
    _predicted: dict[str, Prediction]

    def __init__(self, plain: Solver) -> None:
        self._matrix, self._plain = plain.matrix, plain
        least, largest = (float(extreme) for extreme in self._matrix.canonical().extremes)
        has_inverse = least >= float(np.finfo(self._matrix.dtype).tiny)
        jacobi = invert_diagonal(self._matrix) if has_inverse and largest - least > ALIKE * largest else None
        self._weakest = "none" if jacobi is None else "Jacobi"
        self._solvers: dict[str, Solver] = {self._weakest: plain.with_preconditioner(jacobi)}
        #: By stage, the progress of the last solve that used it.
        self._progress: dict[str, Progress] = {}

    @abstractmethod
    def _next(self, current: str, known: dict[str, Progress], iteration: Iteration) -> str | None:
        """Return the stage to go on with, judging by the residuals so far; None to stay."""

    @abstractmethod
    def _after_failure(self, stages: list[Stage], known: dict[str, Progress], reason: Reason) -> str | None:
        """Return the stage to go on with after the last one has ended for a reason; None to end the solve."""

    def run(
        self,
        b: Any,
        x0: Any,
        rtol: float,
        atol: float,
        maxiter: int,
        *,
        callback: Callable[[Iteration], object] | None = None,
        progress: Callable[[int, float], object] | None = None,
    ) -> SolveResult[Any]:
        """Solve for one right-hand side. Solves may run side by side: each has its own stages."""
        results: list[SolveResult[Any]] = []
        stages: list[Stage] = []
        name, known = self._first, dict(self._progress)
        while True:
            decision = Decision(partial(self._next, name, known))
            done, counted = sum(result.iterations for result in results), sum(result.counted for result in results)
            told = None if progress is None else lambda count, norm, done=done: progress(done + count, norm)
            known.setdefault(name, Progress(0, 0.0))
            solver = self._solvers[name]
            result = solver.run(b, x0, rtol, atol, maxiter - counted, callback=callback, progress=told, leaves=decision)
            results.append(result)
            before = stages.pop().iterations if stages and stages[-1].name == name else 0
            stages.append(Stage(name, before + result.iterations))
            following = decision.name or self._after_failure(stages, known, result.reason)
            if following is None or result.converged or counted + result.counted >= maxiter:
                self._first, self._progress = name, known
                return merge(results, stages, M=solver.M)
            if result.reason is not Reason.NOT_FINITE:
                x0 = result.x
            if self._build(following):
                solver.release()
                name = following

    def release(self) -> None:
        """Give back the memory that solves have taken."""
        for solver in self._solvers.values():
            solver.release()

    def _build(self, name: str) -> bool:
        """Build the preconditioner of a stage, if need be; where that fails, it is never tried again."""
        if name not in self._solvers:
            started = time.perf_counter()
            try:
                solver = self._plain.with_preconditioner(build(name.lower(), self._matrix, self._plain.nodes))
            except (ValueError, MemoryError):
                self._predicted.pop(name, None)
                return False
            solver.started = started
            self._solvers[name] = solver
        return True


class StagesOfCG(Stages):
    """The stages of CG. A solve begins with the cheapest preconditioner."""

    def __init__(self, plain: PreconditionedCG) -> None:
        super().__init__(plain)
        self._first = self._weakest
        possible = self._weakest, "SGS", "multigrid"
        self._predicted = {name: one for name, one in predict_stages(self._matrix).items() if name in possible}

    def run(self, b: Any, x0: Any, *limits: Any, **hooks: Any) -> SolveResult[Any]:
        """See `Solver`. Of several right-hand sides the one with the largest residual at the start decides which
        preconditioner all of them have.
        """
        b, x0, rtol, atol, maxiter = self._plain.admit_arguments(b, x0, *limits)
        limits = rtol, atol, maxiter
        if b.ndim == 1:
            return super().run(b, x0, *limits, **hooks)
        refuse_not_finite(b, self._matrix.backend)
        column = self._largest_column(b, x0)
        alone = super().run(b[:, column], None if x0 is None else x0[:, column], *limits)
        solver = self._solvers[alone.stages[-1].name]
        result = solver.run(b, x0, *limits, **hooks)
        setup_seconds = result.setup_seconds + alone.setup_seconds + alone.solve_seconds
        return replace(result, setup_seconds=setup_seconds, stages=alone.stages, M=alone.M)

    def _largest_column(self, b: Any, x0: Any) -> int:
        """The number of the column with the largest residual at the start."""
        if x0 is None:
            norms = [norm_of(column, self._matrix.backend) for column in b.T]
        else:
            A = product_with(self._matrix)
            pairs = zip(b.T, x0.T, strict=True)
            with np.errstate(all="ignore"):
                norms = [norm_of(r - A.times(x.astype(A.dtype)), self._matrix.backend) for r, x in pairs]
        return int(np.argmax(norms))

    def _next(self, current: str, known: dict[str, Progress], iteration: Iteration) -> str | None:
        rate = expected_rate(iteration.residuals)
        left, digits = left_of(iteration, rate)
        known[current] = Progress(iteration.count, rate)
        return next_stage(current, left, digits, known, self._predicted)

    def _after_failure(self, stages: list[Stage], known: dict[str, Progress], reason: Reason) -> str | None:
        name, first = stages[-1].name, stages[0].name
        if reason not in FAILURES or name == first:
            return None
        self._predicted.pop(name, None)
        return first


def left_of(iteration: Iteration, rate: float) -> tuple[float, float]:
    """Return how many iterations are left, whatever `maxiter` is, and by how many decimal digits the residual still has
    to fall. `rate` is how many digits it falls in an iteration.
    """
    residuals, limit = iteration.residuals, iteration.limit
    least = max(limit, float(np.finfo(iteration.dtype).eps) * residuals[0])
    digits = math.log10(residuals[-1] / least) if residuals[-1] > least > 0 else 0.0
    return digits / rate if rate else math.inf, digits


def predict_stages(matrix: AdmittedMatrix) -> dict[str, Prediction]:
    """Predict the times of each preconditioner for a matrix."""
    n, entries, speeds = matrix.shape[0], matrix.indices.size, speeds_of(matrix.backend)
    n_colors = choose(matrix, 100, speeds).candidates[0].n_colors or entries / max(n, 1)
    return predictions(n, entries, matrix.dtype.itemsize, n_colors, speeds)


class Decision:
    """Whether to leave a stage, asked again after a tenth more iterations; `name` is the next stage then."""

    def __init__(self, next_stage: Callable[[Iteration], str | None]) -> None:
        self._next_stage, self._asked = next_stage, LEAST_ITERATIONS
        self.name: str | None = None

    def __call__(self, iteration: Iteration) -> bool:
        if iteration.count >= self._asked:
            self._asked = iteration.count + iteration.count // 10 + 1
            self.name = self._next_stage(iteration)
        return self.name is not None
