"""What every result has to be, whatever was asked: true words, counts that add up, arguments unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from reference import precision

from fuzz.trial import Trial, frozen
from mcprecond import SolveResult, pcg
from mcprecond.solvers.result import SUCCESSES

#: By which the residual may miss the tolerance, in shares of it, beyond what rounding to double precision loses.
SLACK = 1e-6


def solved(
    t: Trial,
    A: Any,
    dense: np.ndarray,
    b: np.ndarray,
    x0: np.ndarray | None,
    *,
    by: Callable[..., SolveResult] = pcg,
    **how: Any,
) -> SolveResult:
    """Call a solver with arrays of the host, and check what it says against the residual in extended precision."""
    moved = t.put(b), None if x0 is None else t.put(x0)
    given = [array for array in (A, *moved) if array is not None]
    before = [frozen(array, t.device) for array in given]
    seen: list[int] = []
    if t.chance(0.2):
        how["callback"] = lambda xk: seen.append(xk.shape[0])
    result = by(A, *moved, **how)
    for array, copies in zip(given, before, strict=True):
        for found, expected in zip(frozen(array, t.device), copies, strict=True):
            t.equal(found, expected, "the solver changes an argument")
    x, info = result
    told = {"reason": result.reason.name, "iterations": result.iterations, "residual_norm": result.residual_norm}
    t.check(x is result.x and x.shape == (len(dense),), "x is not n numbers", found=x.shape)
    t.check(
        len(result.residuals) == result.iterations + 1,
        "there is not a residual for each iteration",
        **told,
        count=len(result.residuals),
    )
    given = how.get("maxiter")
    methods = 1 if by is pcg else 2  # one may go on from another
    most = 10 * len(dense) * max(len(result.stages), methods) if given is None else given
    t.check(
        0 <= result.iterations <= most,
        "more iterations than maxiter",
        **told,
        maxiter=most,
    )
    t.check(
        "callback" not in how or len(seen) == result.iterations or by is not pcg,  # of gmres once a cycle
        "callback is not called once an iteration",
        **told,
        calls=len(seen),
    )
    t.check(
        (info == 0) == result.converged == (result.reason in SUCCESSES),
        "info, converged and reason differ",
        **told,
        info=info,
    )
    flat = b.reshape(-1)
    with np.errstate(all="ignore"):
        true, rounding = precision.residual(dense, t.get(x), flat)
        size = precision.norm(flat)
        limit = max(how.get("rtol", 1e-5) * size, how.get("atol", 0.0))
    told |= {"true": true, "limit": limit, "norm of b": size}
    if result.converged:
        t.check(true <= limit * (1 + SLACK) + rounding, "CONVERGED is not true", **told)
    if np.isfinite(true) and result.reason.name != "NOT_FINITE":
        slack = SLACK * true + rounding
        t.check(abs(result.residual_norm - true) <= slack, "residual_norm is not that of x", **told, rounding=rounding)
    return result
