"""Hierarchies of both kinds are linear, Hermitian and definite; CG converges with them; updates do what they say."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz import matrices
from fuzz.categories.update import missing_entry, not_finite, other_dtype, other_pattern
from fuzz.honesty import solved
from fuzz.trial import FLOATS, Trial, frozen
from mcprecond import ClassicalAMG, SmoothedAggregation
from mcprecond.multigrid import fitting_multigrid

KINDS = {"aggregates": SmoothedAggregation, "points": ClassicalAMG, "fitting": fitting_multigrid}
WRONGS = {"pattern": other_pattern, "missing": missing_entry, "nan": not_finite, "dtype": other_dtype}
#: The largest difference of <r, M s> and <M r, s>, divided by sqrt(<r, M r> <s, M s>). It is due to rounding on coarse
#: levels, which are in single precision.
APART = 1e-3


def case(t: Trial) -> None:
    dtype = t.one_of(*FLOATS)
    A, dense = matrices.dominant(t, dtype, symmetric=True, most=400)
    n, kind = len(dense), t.one_of(*KINDS)
    how = {"max_coarse": int(t.one_of(1, 3, 10, 500)), "cycle": t.one_of("V", "V", "W", "K")}
    how |= {"smoother": t.one_of("auto", "auto", "jacobi", "gauss_seidel", "sgs"), "presweeps": t.one_of(1, 2)}
    how["postsweeps"] = how["presweeps"]
    t.about(kind=kind, **how)
    moved = t.put(A)
    before = frozen(moved, t.device)
    M = KINDS[kind](moved, **how)
    for found, expected in zip(frozen(moved, t.device), before, strict=True):
        t.equal(found, expected, "a hierarchy changes its matrix")
    r, s = (matrices.numbers(t, n, dtype) for _ in range(2))
    z = applied(t, M, r)
    if how["cycle"] != "K":
        check_operator(t, M, r, s, z)
    rtol = float(t.one_of(1e-2, 1e-4)) if np.finfo(dtype).eps > 1e-10 else float(t.one_of(1e-3, 1e-8))
    result = solved(t, moved, dense, r, None, M=M, rtol=rtol)
    t.check(result.converged or t.facts["scales"], "a dominant system is not solved", reason=result.reason.name)
    M.update(t.put(matrices.other_values(t, A)))
    for wrong, change in WRONGS.items():
        bad = change(t, A)
        if bad is not A and t.chance(0.5):
            state = applied(t, M, r)
            t.refuses(lambda bad=bad: M.update(t.put(bad)), f"a wrong update ({wrong})")
            t.equal(applied(t, M, r), state, "a wrong update changes M", wrong=wrong)
    M.update(moved)
    t.equal(applied(t, M, r), z, "an update does not lead back")


def applied(t: Trial, M: Any, r: np.ndarray) -> np.ndarray:
    return t.get(M @ t.put(r))


def check_operator(t: Trial, M: Any, r: np.ndarray, s: np.ndarray, z: np.ndarray) -> None:
    """M is linear, Hermitian and positive definite."""
    t.equal(applied(t, M, 2 * r), 2 * z, "M (2 r) is not 2 M r")
    if not len(r):
        return
    y = applied(t, M, s)
    with np.errstate(all="ignore"):
        energies = [float(np.vdot(v, w).real) for v, w in ((r, z), (s, y))]
        apart = abs(np.vdot(s, z) - np.vdot(y, r))
    t.check(min(energies) > 0, "M is not definite", energies=energies)
    t.check(apart <= APART * (energies[0] * energies[1]) ** 0.5, "M is not Hermitian", apart=apart, energies=energies)
