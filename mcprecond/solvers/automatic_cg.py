"""CG with ``M="auto"``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mcprecond.backends.inputs import refuse_not_finite
from mcprecond.linalg.csr import product_with
from mcprecond.linalg.sums import norm_of
from mcprecond.solvers.automatic import Stages, times_for, weakest_for
from mcprecond.solvers.preconditioned import PreconditionedCG
from mcprecond.solvers.result import Reason, SolveResult, Stage
from mcprecond.tuning.features import with_features
from mcprecond.tuning.forecast import Progress
from mcprecond.tuning.symmetric import forecast_cg

#: If a stage ends for one of these reasons, its preconditioner has failed.
FAILURES = Reason.INDEFINITE_M, Reason.STAGNATED, Reason.NOT_FINITE


class StagesOfCG(Stages):
    """The stages of CG."""

    def __init__(self, plain: PreconditionedCG) -> None:
        matrix = with_features(plain.matrix)
        times, weakest, device = times_for(matrix), weakest_for(matrix), matrix.backend.name
        forecast = forecast_cg(times, matrix.features, weakest, device, has_candidates="B" in plain.nodes)
        super().__init__(plain, forecast)

    def run(self, b: Any, x0: Any, *limits: Any, **hooks: Any) -> SolveResult[Any]:
        """See `Solver`. Of several right-hand sides the one with the largest residual at the start decides which
        preconditioner all of them have.
        """
        b, x0, rtol, atol, maxiter = self._plain.admit_arguments(b, x0, *limits)
        limits = rtol, atol, maxiter
        if b.ndim == 1:
            return super().run(b, x0, *limits, **hooks)
        refuse_not_finite(b, self._plain.matrix.backend)
        column = self._largest_column(b, x0)
        alone = super().run(b[:, column], None if x0 is None else x0[:, column], *limits)
        solver = self._solvers[alone.stages[-1].name]
        result = solver.run(b, x0, *limits, **hooks)
        setup_seconds = result.setup_seconds + alone.setup_seconds + alone.solve_seconds
        return replace(result, setup_seconds=setup_seconds, stages=alone.stages, M=alone.M)

    def _largest_column(self, b: Any, x0: Any) -> int:
        """The number of the column with the largest residual at the start."""
        if x0 is None:
            norms = [norm_of(column, self._plain.matrix.backend) for column in b.T]
        else:
            A = product_with(self._plain.matrix)
            pairs = zip(b.T, x0.T, strict=True)
            with np.errstate(all="ignore"):
                norms = [norm_of(r - A.times(x.astype(A.dtype)), self._plain.matrix.backend) for r, x in pairs]
        return int(np.argmax(norms))

    def _after_failure(self, stages: Sequence[Stage], known: dict[str, Progress], reason: Reason) -> str | None:
        """See `Stages`: the weakest preconditioner does not fail."""
        name = stages[-1].name
        if reason not in FAILURES or name == self._weakest:
            return None
        self._forecast.predicted.pop(name, None)
        return self._weakest
