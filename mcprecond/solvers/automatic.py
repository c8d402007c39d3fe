"""Conjugate gradients with a preconditioner that is chosen while they run: ``M="auto"``.

The rule by which a stage is left for another one is in tuning/stages.py.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mcprecond.linalg.diagonal import Diagonal
from mcprecond.matrix import AdmittedMatrix
from mcprecond.preconditioners import MulticolorSGS
from mcprecond.solvers.iteration import Iteration
from mcprecond.solvers.preconditioned import PreconditionedCG
from mcprecond.solvers.result import Reason, SolveResult, Stage, merged
from mcprecond.tuning.cost_model import speeds_of
from mcprecond.tuning.least_time import choose
from mcprecond.tuning.stages import LEAST_ITERATIONS, Prediction, Progress, expected_rate, next_stage, predictions

#: What makes a preconditioner of an admitted matrix, by the name of its stage. Multigrid, which stands above this
#: package, puts itself here.
BUILDERS: dict[str, Callable[[Any], Any]] = {"SGS": MulticolorSGS}
#: A diagonal counts as constant if its entries differ by no more than this share of the largest one.
ALIKE = 0.01
#: If a later stage ends for one of these reasons, its preconditioner has failed, and the solve goes on without it.
FAILURES = Reason.INDEFINITE_M, Reason.STAGNATED, Reason.NOT_FINITE


class Stages:
    """The stages of CG for one matrix: a solve begins with the stage that the one before has ended with.

    Parameters
    ----------
    plain : PreconditionedCG
        Without a preconditioner.
    """

    def __init__(self, plain: PreconditionedCG) -> None:
        self._matrix, self._options = plain.matrix, plain.options
        jacobi = inverse_diagonal(self._matrix)
        self._name = first = "none" if jacobi is None else "Jacobi"
        self._solvers = {first: self._solver_with(jacobi)}
        #: Of all solves so far: what the last one with each stage has shown.
        self._progress: dict[str, Progress] = {}
        predicted = predicted_for(self._matrix)
        self._predicted = {name: one for name, one in predicted.items() if name == first or name in BUILDERS}

    def run(
        self,
        b: Any,
        x0: Any,
        rtol: float,
        atol: float,
        maxiter: int | None,
        *,
        callback: Callable[[Iteration], object] | None = None,
        progress: Callable[[int, float], object] | None = None,
    ) -> SolveResult[Any]:
        """See `Solver`. Of several right-hand sides the first one decides which preconditioner the others have."""
        b = b if hasattr(b, "ndim") else np.asarray(b)
        if b.ndim == 2 and b.shape[1] > 1:
            guess = x0 if x0 is None or isinstance(x0, str) else x0[:, 0]
            first = self.run(b[:, 0], guess, rtol, atol, maxiter)
            solver = self._solvers[self._name]
            result = solver.run(b, x0, rtol, atol, maxiter, callback=callback, progress=progress)
            return replace(
                result,
                setup_seconds=result.setup_seconds + first.setup_seconds + first.solve_seconds,
                stages=first.stages,
                M=first.M,
            )
        results: list[SolveResult[Any]] = []
        stages: list[Stage] = []
        maxiter = 10 * self._matrix.shape[0] if maxiter is None else maxiter
        while True:
            decision = Decision(self._next)
            done = sum(result.iterations for result in results)
            told = None if progress is None else lambda count, norm, done=done: progress(done + count, norm)
            self._progress.setdefault(self._name, Progress(0, 0.0))
            result = self._solvers[self._name].run(
                b, x0, rtol, atol, maxiter - done, callback=callback, progress=told, leaves=decision
            )
            results.append(result)
            before = stages.pop().iterations if stages and stages[-1].name == self._name else 0
            stages.append(Stage(self._name, before + result.iterations))
            name = decision.name
            if result.reason in FAILURES and self._name != stages[0].name:
                del self._predicted[self._name]
                name = stages[0].name
            if name is None or result.converged or done + result.iterations >= maxiter:
                return merged(results, stages, M=self._solvers[self._name].M)
            if result.reason is not Reason.NOT_FINITE:
                x0 = result.x
            self._go_to(name)

    def release(self) -> None:
        """Give back the memory that solves have taken."""
        for solver in self._solvers.values():
            solver.release()

    def _next(self, iteration: Iteration) -> str | None:
        """The stage to go on with, by the residuals so far; None to stay."""
        residuals, limit = iteration.residuals, iteration.limit
        least = float(np.finfo(iteration.dtype).eps) * residuals[0]
        digits = math.log10(residuals[-1] / max(limit, least)) if residuals[-1] > max(limit, least) else 0.0
        rate = expected_rate(residuals)
        self._progress[self._name] = Progress(iteration.count, rate)
        most = float(iteration.maxiter - iteration.count)
        left = min(digits / rate, most) if rate else most
        return next_stage(self._name, left, digits, self._progress, self._predicted)

    def _go_to(self, name: str) -> None:
        """Make a stage the current one, and build it if need be; where that fails, stay, and never try it again."""
        if name not in self._solvers:
            started = time.perf_counter()
            try:
                self._solvers[name] = self._solver_with(BUILDERS[name](self._matrix))
            except (ValueError, MemoryError):
                del self._predicted[name]
                return
            self._solvers[name].started = started
        self._solvers[self._name].release()
        self._name = name

    def _solver_with(self, M: Any) -> PreconditionedCG:
        return PreconditionedCG(self._matrix, M, **self._options)


def predicted_for(matrix: AdmittedMatrix) -> dict[str, Prediction]:
    """What the preconditioners are predicted to take for a matrix."""
    n, entries, speeds = matrix.shape[0], matrix.indices.size, speeds_of(matrix.backend)
    n_colors = choose(matrix, 100, speeds).candidates[0].n_colors or entries / max(n, 1)
    return predictions(n, entries, matrix.dtype.itemsize, n_colors, speeds)


class Decision:
    """Whether to leave a stage, asked again after a tenth more iterations; `name` is the next stage then."""

    def __init__(self, next_stage: Callable[[Iteration], str | None]) -> None:
        self._next_stage, self._asked = next_stage, LEAST_ITERATIONS
        self.name: str | None = None

    def __call__(self, iteration: Iteration) -> bool:
        """See `Solver.run`."""
        if iteration.count >= self._asked:
            self._asked = iteration.count + iteration.count // 10 + 1
            self.name = self._next_stage(iteration)
        return self.name is not None


def inverse_diagonal(matrix: AdmittedMatrix) -> Diagonal | None:
    """Jacobi's preconditioner; None where the diagonal is not positive, or is nearly constant."""
    diagonal = matrix.canonical().diagonal().real
    if not diagonal.size:
        return None
    least, largest = float(diagonal.min()), float(diagonal.max())
    if least <= 0 or largest - least <= ALIKE * largest:
        return None
    return Diagonal((1 / diagonal).astype(matrix.dtype), matrix.backend)
