"""Powers of two scale everything exactly: they scale x, the residuals and M @ r, and change nothing else."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fuzz import matrices
from fuzz.trial import FLOATS, Trial
from mcprecond import ILU0, MulticolorDILU, MulticolorSGS, SolveResult, pcg

MS = ("none", "sgs", "ssor", "blocks", "dilu", "ilu0", "natural", "sparse", "operator")


def case(t: Trial) -> None:
    dtype = t.one_of(*FLOATS)
    A, dense = matrices.dominant(t, dtype, symmetric=True, most=60)
    A = A.tocsr()
    n, kind = len(dense), t.one_of(*MS)
    b = matrices.numbers(t, n, dtype)
    b[t.rng.random(n) < t.one_of(0.0, 0.3)] = 0
    x0 = matrices.numbers(t, n, dtype) if t.chance(0.3) else None
    form = t.one_of("auto", "plain")
    rtol = float(t.one_of(1e-2, 1e-5) if np.finfo(dtype).eps > 1e-10 else t.one_of(1e-2, 1e-5, 1e-10))
    how: dict[str, Any] = {"rtol": rtol, "form": form}
    if t.chance(0.2):
        how["maxiter"] = int(t.rng.integers(0, 6))
    t.about(M=kind, guess=x0 is not None, **how)
    moved, M = t.put(A), preconditioner(t, kind, A)
    zero_right_hand_side(t, moved, M, n, dtype, how)
    base = pcg(moved, t.put(b), maybe(t, x0), M=M, **how)
    if not n:
        return
    for _ in range(2):
        s = power(t, dtype, [b, x0, t.get(base.x)], [base.residuals, [base.residual_norm]])
        t.about(scaled="b", exponent=s)
        found = pcg(moved, t.put(times(b, s)), maybe(t, times(x0, s)), M=M, **how)
        check_scaled(t, found, base, s, s)
    # A by s: x and M by 1 / s. Vectors get smaller than x on the way.
    entries = A.data[A.data != 0] * dtype_one(dtype)
    # Products of two errors of rounding count, too, where all else cancels; a GPU flushes subnormal floats to zero.
    errors = 2 * np.finfo(dtype).nmant + 4
    s = power(t, dtype, [entries], [[float(np.abs(A.data).max(initial=1.0)) * 4 * n]], errors)
    inverse = power_range(dtype, [x0, t.get(base.x)], [[2.0**8]], margin_of(dtype))
    s = max(min(s, -inverse[0]), -inverse[1])
    t.about(scaled="A", exponent=s)
    scaled = A.copy()
    scaled.data = times(A.data, s)
    there, other = t.put(scaled), preconditioner(t, kind, scaled)
    found = pcg(there, t.put(b), maybe(t, times(x0, -s)), M=other, **how)
    check_scaled(t, found, base, -s, 0)
    if M is not None:
        check_application(t, M, other, matrices.numbers(t, n, dtype), s)


def preconditioner(t: Trial, kind: str, A: Any) -> Any:
    """Of the matrix, by a deterministic coloring: the same for each scale."""
    moved = t.put(A)
    b = next(b for b in (3, 2, 1) if A.shape[0] % b == 0)
    inverse = t.put(jacobi(A).diagonal())
    made = {
        "none": lambda: None,
        "sgs": lambda: MulticolorSGS(moved, "greedy"),
        "ssor": lambda: MulticolorSGS(moved, "greedy", omega=1.25),
        "blocks": lambda: MulticolorSGS(moved, "greedy", block_size=b),
        "dilu": lambda: MulticolorDILU(moved, "greedy"),
        "ilu0": lambda: ILU0(moved, coloring="greedy"),
        "natural": lambda: ILU0(moved, ordering="natural"),
        "sparse": lambda: t.put(jacobi(A)),
        "operator": lambda: t.device.linalg.LinearOperator(
            A.shape, matvec=lambda r: inverse * r.reshape(-1), dtype=A.dtype
        ),
    }
    return made[kind]()


def jacobi(A: Any) -> Any:
    """The inverse of the diagonal, by its nearest powers of two, which scale exactly."""
    d = np.zeros(A.shape[0], A.dtype)
    places = A.tocoo()
    on = places.row == places.col
    np.add.at(d, places.row[on], places.data[on])
    inverse = np.ldexp(np.ones(len(d)), -np.frexp(d.real)[1]).astype(A.dtype)
    import scipy.sparse as sp

    return sp.csr_matrix((inverse, np.arange(len(d)), np.arange(len(d) + 1)), shape=A.shape)


def zero_right_hand_side(t: Trial, A: Any, M: Any, n: int, dtype: Any, how: dict[str, Any]) -> None:
    guess = t.put(matrices.numbers(t, n, dtype)) if t.chance(0.7) else None
    t.about(scaled="b = 0", zero_guess=guess is not None)
    result = pcg(A, t.put(np.zeros(n, dtype)), guess, M=M, **how)
    t.check(
        result.converged and result.iterations == 0,
        "b = 0 is not solved at once",
        reason=result.reason.name,
        iterations=result.iterations,
    )
    t.equal(result.x, np.zeros(n, dtype), "x is not zero for b = 0")


def margin_of(dtype: Any) -> int:
    """By how many powers of two products of vectors may be smaller than these."""
    return 30 if np.finfo(dtype).eps > 1e-10 else 100


def power_range(dtype: Any, vectors: list[Any], norms: list[Any], margin: int = 0) -> tuple[int, int]:
    """The exponents by which vectors may be scaled and stay normal numbers, and norms finite doubles."""
    info, low, high = np.finfo(dtype), -(10**6), 10**6
    for values, limits in [(v, (info.minexp, info.maxexp)) for v in vectors] + [(v, (-1022, 1024)) for v in norms]:
        if values is None:
            continue
        values = np.asarray(values)
        parts = np.abs(np.concatenate([values.real.ravel(), values.imag.ravel()]))
        parts = parts[(parts > 0) & np.isfinite(parts)]
        if len(parts):
            low = max(low, limits[0] + 1 - math.frexp(float(parts.min()))[1])
            high = min(high, limits[1] - 1 - math.frexp(float(parts.max()) * math.sqrt(len(parts)))[1])
    low, high = low + margin, high - margin
    return (low, high) if low <= 0 <= high else (0, 0)


def power(t: Trial, dtype: Any, vectors: list[Any], norms: list[Any], margin: int = 0) -> int:
    """One of these: an end of the range, near one, or any."""
    low, high = power_range(dtype, vectors, norms, margin)
    low, high = max(low, -2000), min(high, 2000)
    return int(
        t.one_of(
            low, high, min(low + 1, 0), max(high - 1, 0), t.rng.integers(low, high + 1), t.rng.integers(low, high + 1)
        )
    )


def dtype_one(dtype: Any) -> Any:
    return np.dtype(dtype).type(1)


def times(v: Any, exponent: int) -> Any:
    """v times a power of two."""
    if v is None:
        return None
    v = np.asarray(v)
    with np.errstate(all="ignore"):
        if v.dtype.kind != "c":
            return np.ldexp(v, exponent)
        scaled = np.empty_like(v)
        scaled.real, scaled.imag = np.ldexp(v.real, exponent), np.ldexp(v.imag, exponent)
        return scaled


def maybe(t: Trial, x0: Any) -> Any:
    return None if x0 is None else t.put(x0)


def check_scaled(t: Trial, found: SolveResult, base: SolveResult, of_x: int, of_residuals: int) -> None:
    """x and the history are those of the base times powers of two, and all else is the same."""
    told = {
        "found": f"{found.reason.name} after {found.iterations}",
        "expected": f"{base.reason.name} after {base.iterations}",
    }
    t.check(
        found.reason is base.reason and found.iterations == base.iterations,
        "another reason or count of iterations for a power of two",
        **told,
    )
    t.equal(found.residuals, times(base.residuals, of_residuals), "residuals do not scale with a power of two")
    t.equal(
        np.float64(found.residual_norm),
        times(np.float64(base.residual_norm), of_residuals),
        "the residual norm does not scale with a power of two",
    )
    t.equal(t.get(found.x), times(t.get(base.x), of_x), "x does not scale with a power of two")


def check_application(t: Trial, M: Any, scaled: Any, r: np.ndarray, s: int) -> None:
    """M of s A is M / s; and M is linear for powers of two."""
    z = t.get(M @ t.put(r))
    margin = margin_of(r.dtype)
    low, high = power_range(r.dtype, [z], [], margin)
    if low <= -s <= high:
        t.equal(scaled @ t.put(r), times(z, -s), "M of a matrix times a power of two is not M over it")
    e = power(t, r.dtype, [z, r], [], margin)
    t.about(scaled="r", exponent=e)
    t.equal(M @ t.put(times(r, e)), times(z, e), "M @ r does not scale with a power of two")
