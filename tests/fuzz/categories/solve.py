"""solve tells the truth on systems of all kinds, in any units and precision, by whichever method."""

from __future__ import annotations

from typing import Any

import numpy as np
from reference import precision

from fuzz import matrices
from fuzz.categories.pcg import KINDS, guess, right_hand_side
from fuzz.honesty import solved
from fuzz.trial import FLOATS, Trial
from mcprecond import solve


def case(t: Trial) -> None:
    dtype, kind = t.one_of("float64", *FLOATS), t.one_of(*KINDS)
    A, condition = KINDS[kind](t, dtype)
    if t.chance(0.3):  # only the direct solver and the norm of b see units
        A = A.astype(dtype) * np.dtype(dtype).type(2.0 ** int(t.one_of(-60, -20, 20, 60)))
    n, dense = A.shape[0], matrices.dense_of(A)
    t.about(kind=kind, n=n, dtype=dtype, condition=f"{condition:.1e}")
    b = right_hand_side(t, dense, dtype)
    x0 = guess(t, dense, b, dtype)
    how: dict[str, Any] = {"rtol": float(t.one_of(1e-1, 1e-5, 1e-8, 1e-12, 0.0))}
    if t.chance(0.2):
        how["maxiter"] = int(t.one_of(0, 1, 7, 3 * n + 1))
    if t.chance(0.1):
        how["atol"] = float(precision.norm(b) * 10.0 ** t.rng.integers(-8, 1))
    if t.chance(0.2):
        how["M"] = t.one_of(None, "jacobi", "sgs")
    t.about(guess=x0 is not None, **how)
    try:
        result = solved(t, t.put(A), dense, b, x0, by=solve, **how)
    except ValueError as error:  # a diagonal that M divides by
        t.check(how.get("M") is not None, "a system is refused", error=str(error))
        return
    t.notes[result.method] += 1
    eps = float(np.finfo(t.get(result.x).dtype).eps)
    easy = kind == "dominant" and x0 is None and "maxiter" not in how and how["rtol"] >= 1e3 * eps * max(n, 1)
    t.check(result.converged or not easy, "a dominant system is not solved", reason=result.reason.name)
