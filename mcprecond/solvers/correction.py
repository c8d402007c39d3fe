"""Whether a solve that has ended by the energy norm was right to end.

The estimate by which CG ends (energy.py) may be too small, as long as CG has not found the smallest eigenvalues, and
rounding may keep x away from the solution. The correction e of x, which solves A e = b - A x, has the energy of the
error. The gains of some iterations of CG for e add up to it, and they begin with the true residual. If the error of x
is too large, the solve goes on from x + e. Otherwise e is dropped, because the error of x is known, while that of x + e
is not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mcprecond.backends import Backend
from mcprecond.linalg.powers import power_times, square_times, times_power
from mcprecond.linalg.sums import norm_of
from mcprecond.solvers.backward import accurate_residual, energy_of
from mcprecond.solvers.columns import join_columns
from mcprecond.solvers.energy import UNITS, Squares
from mcprecond.solvers.result import Reason, SolveResult, add_stages

#: The relative tolerance of the solve for a correction, in the energy norm. It is this small because CG finds the
#: eigenvectors that the error of x consists of late.
CORRECTED = 0.01
#: If x took k iterations, the solve for its correction takes at most ITERATIONS[0] k + ITERATIONS[1].
ITERATIONS = 2, 100
#: If the square of the error after a correction is still more than FALL times the square before it, the solve ends as
#: STAGNATED, because rounding errors limit the accuracy of x.
FALL = 0.25
#: The error of x is found if the solve has ended for one of these reasons.
ENDED = Reason.CONVERGED, Reason.CONVERGED_IN_DOUBLE, Reason.STAGNATED
#: If the solve for the correction ends for one of these reasons, the error stays unknown.
BREAKDOWNS = Reason.INDEFINITE_A, Reason.INDEFINITE_M


def verify(
    result: SolveResult[Any],
    solve: Callable[..., SolveResult[Any]],
    rtol: float,
    atol: float,
    maxiter: int,
    backend: Backend,
) -> SolveResult[Any]:
    """Find the errors of the solutions for all columns, and go on with those whose error is too large.

    Parameters
    ----------
    result : SolveResult
    solve : function of b, x0, rtol, atol and maxiter
        CG that ends by the energy norm.
    rtol, atol, maxiter
        The arguments of the solve. `maxiter` does not limit the iterations for a correction that is not added to x.
    backend : Backend
    """
    started, columns = time.perf_counter(), list(result._each)
    pending = [k for k, column in enumerate(columns) if column.reason in ENDED and column._is_of_cg]
    if not pending:
        return result
    residuals = {k: residual_of(columns[k]) for k in pending}
    while pending:
        R = backend.xp.stack([residuals[k] for k in pending], axis=1)
        most = ITERATIONS[0] * max(columns[k].iterations for k in pending) + ITERATIONS[1]
        found = solve(R if len(pending) > 1 else R[:, 0], None, CORRECTED, 0.0, most)
        going_on = []
        for k, correction in zip(pending, found._each, strict=True):
            known = columns[k]._coefficients
            before, known.found = known.found, find_error(columns[k], residuals[k], correction)
            reason = judge(columns[k], before, correction, rtol, atol, maxiter)
            if reason is not None:
                columns[k] = replace(columns[k], reason=reason, error_iterations=correction.iterations)
                continue
            columns[k] = add_correction(columns[k], correction)
            residuals[k] = residual_of(columns[k])
            columns[k] = replace(columns[k], residual_norm=norm_of(residuals[k], backend))
            going_on.append(k)
        pending = going_on
    seconds = result.solve_seconds + time.perf_counter() - started
    if len(columns) > 1:
        return join_columns(columns, backend, result.setup_seconds, seconds)
    return replace(columns[0], solve_seconds=seconds)


def residual_of(column: SolveResult[Any]) -> Any:
    """b - A x, rounded once."""
    matrix, b = column._system
    return accurate_residual(matrix, b, column.x)


def find_error(column: SolveResult[Any], r: Any, correction: SolveResult[Any]) -> Squares | None:
    """The error of x, whose residual is r, by the correction for r, in the units of the coefficients of x; None if that
    broke down, or is not finite.
    """
    if correction.reason in BREAKDOWNS:
        return None
    (matrix, b, x), shift = column._system_of_coefficients(), column._coefficients.shift
    error, of_error = 0.0, correction._coefficients
    if of_error is not None:
        error = power_times(max(of_error.whole, of_error.hidden), 2 * (shift - of_error.shift))
    found = Squares(error, energy_of(matrix, b, x, times_power(r, shift, matrix.backend.xp)) + error)
    return found if all(map(math.isfinite, found)) else None


def judge(
    column: SolveResult[Any],
    before: Squares | None,
    correction: SolveResult[Any],
    rtol: float,
    atol: float,
    maxiter: int,
) -> Reason | None:
    """The reason for which a solve ends, by the error of x now and by that before the last correction was added, if
    there was one; None if it is to go on with this correction.
    """
    found, least = column._coefficients.found, square_times(atol, column._coefficients.shift)
    if found is None:
        return correction.reason if correction.reason in BREAKDOWNS else column.reason
    eps = float(np.finfo(column.x.dtype).eps)
    if found.error <= max(square_times(max(rtol, UNITS * eps)) * found.whole, least):
        return Reason.CONVERGED if column.reason is Reason.STAGNATED else column.reason
    if before is not None and found.error > FALL * before.error:
        return Reason.STAGNATED
    return Reason.MAX_ITERATIONS if column.iterations + correction.iterations > maxiter else None


def add_correction(column: SolveResult[Any], correction: SolveResult[Any]) -> SolveResult[Any]:
    """The result of a solve that goes on from x + e, but for the norm of its residual."""
    return replace(
        column,
        x=column.x + correction.x,
        iterations=column.iterations + correction.iterations,
        residuals=np.concatenate([column.residuals, correction.residuals[1:]]),
        stages=add_stages(column.stages, correction.stages),
        _coefficients=column._coefficients.followed_by(correction._coefficients),
    )
