"""Preconditioners do what their formulas say: M @ r, matmat, the transpose, other precisions, and update."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import reference.dilu
import reference.gauss_seidel
from reference import precision, proper

from fuzz import matrices
from fuzz.trial import FLOATS, Trial, frozen
from mcprecond import ILU0, MulticolorDILU, MulticolorGS, MulticolorSGS, color

METHODS = ("eb", "ecl_gc", "jpl", "greedy", "jp", "vb_bit", "auto")
LARGEST_BLOCK = 9


def case(t: Trial) -> None:
    dtype = t.one_of(*FLOATS)
    A, dense = matrices.dominant(t, dtype, symmetric=t.chance(0.5), most=150)
    kind = t.one_of(gauss_seidel, gauss_seidel, dilu, ilu0)
    on_host = t.device.is_gpu and t.chance(0.2)  # NumPy outside, the GPU inside
    moved = A if on_host else t.put(A)
    before = frozen(moved, t.device)
    kind(t, A, moved, dense, {"device": "gpu"} if on_host else {})
    for found, expected in zip(frozen(moved, t.device), before, strict=True):
        t.equal(found, expected, "a preconditioner changes its matrix")


def gauss_seidel(t: Trial, A: Any, moved: Any, dense: np.ndarray, options: dict[str, Any]) -> None:
    n = len(dense)
    b = int(t.one_of(1, *(b for b in range(1, LARGEST_BLOCK + 1) if n % b == 0)))
    pattern = matrices.pattern_of(A)
    nodes = pattern.reshape(n // b, b, n // b, b).any(axis=(1, 3))
    options |= {"omega": float(t.one_of(1.0, 1.0, 0.3, 1.7)), "sweeps": int(t.one_of(1, 1, 2, 3)), "block_size": b}
    options |= storage(t, A.dtype)
    sweep = t.one_of("symmetric", "symmetric", "forward", "backward")
    kind = MulticolorGS if sweep != "symmetric" or t.chance(0.5) else MulticolorSGS
    if kind is MulticolorGS:
        options["sweep"] = sweep
    t.about(kind=kind.__name__, options=options)
    M = kind(moved, coloring_for(t, moved, nodes, by_name_only=b > 1), **options)
    check_facts(t, M, A, nodes)
    order, units = t.get(M.blocks.perm), units_of(t, A.dtype, options.get("dtype"))
    turned = {"symmetric": "symmetric", "forward": "backward", "backward": "forward"}[sweep]
    how = {"order": order, "block_size": b, "omega": options["omega"], "sweeps": options["sweeps"], **units}

    def check(z: Any, r: np.ndarray, way: str, dense: np.ndarray) -> None:
        matrix = {"M": dense, "T": dense.T, "H": dense.conj().T}[way]
        expected, bound = reference.gauss_seidel.swept_from_zero(
            matrix, precision.wide(r), sweep=sweep if way == "M" else turned, **how
        )
        t.within(t.get(z) - expected, bound, f"{way} @ r is not that of the formula", way=way)

    check_applications(t, M, A, dense, check)
    check_update(t, M, A, moved, dense, check, lambda other, coloring: kind(other, coloring, **options))


def dilu(t: Trial, A: Any, moved: Any, dense: np.ndarray, options: dict[str, Any]) -> None:
    options |= storage(t, A.dtype)
    pattern = matrices.pattern_of(A)
    t.about(kind="MulticolorDILU", options=options)
    M = MulticolorDILU(moved, coloring_for(t, moved, pattern), **options)
    check_facts(t, M, A, pattern)
    t.check(len(M.shifted.rows) == 0, "pivots of a dominant matrix are shifted", rows=M.shifted.rows)
    unit = max(units_of(t, A.dtype, options.get("dtype")).values())

    def check(z: Any, r: np.ndarray, way: str, dense: np.ndarray) -> None:
        order = t.get(M.blocks.perm)
        B, E = dense[np.ix_(order, order)], precision.wide(t.get(M.blocks.pivots))
        rounding = unit * (8 * longest_row(B) + 16)
        expected, amount = reference.dilu.pivots(B, E)
        t.within(E - expected, rounding * amount, "pivots of DILU are not those of the formula")
        check_split(t, np.tril(B, -1), E, np.triu(B, 1), order, z, r, way, rounding)

    check_applications(t, M, A, dense, check)
    check_update(t, M, A, moved, dense, check, lambda other, coloring: MulticolorDILU(other, coloring, **options))


def ilu0(t: Trial, A: Any, moved: Any, dense: np.ndarray, options: dict[str, Any]) -> None:
    options |= storage(t, A.dtype)
    n, pattern = len(dense), matrices.pattern_of(A)
    way = t.one_of("color", "natural", "given")
    ordering = t.rng.permutation(n) if way == "given" else way
    options["ordering"] = ordering if way != "given" or options.get("device") else t.put(ordering)
    if way == "color":
        options["coloring"] = coloring_for(t, moved, pattern)
    t.about(kind="ILU0", options=options | {"ordering": way})
    M = ILU0(moved, **options)
    check_facts(t, M, A, pattern)
    t.check(int(M.levels.sum()) == n, "levels do not add up to all rows", levels=M.levels)
    t.check(len(M.shifted.rows) == 0, "pivots of a dominant matrix are shifted", rows=M.shifted.rows)
    if way != "color":  # a row comes in a later level than all of its neighbors before it
        place, level = np.empty(n, int), t.get(M.coloring.colors)
        place[np.arange(n) if way == "natural" else ordering] = np.arange(n)
        before = (pattern | pattern.T) & (place[:, None] > place)
        expected = np.zeros(n, int)
        for v in np.argsort(place):
            expected[v] = max((expected[u] + 1 for u in np.flatnonzero(before[v])), default=0)
        t.check(np.array_equal(level, expected), "levels are not those of the order")
    unit = max(units_of(t, A.dtype, options.get("dtype")).values())

    def check(z: Any, r: np.ndarray, way: str, dense: np.ndarray) -> None:
        order = t.get(M.blocks.perm)
        B = dense[np.ix_(order, order)]
        stored = pattern[np.ix_(order, order)]
        lower, upper = (precision.wide(t.get(factor.toarray())) for factor in M.factors())
        rounding = unit * (8 * longest_row(B) + 16)
        outside = ~stored & ~np.eye(n, dtype=bool)
        t.check(not lower[outside].any() and not upper[outside].any(), "factors of ILU(0) have fill")
        amount = (np.abs(lower) @ np.abs(upper)).astype(float)
        t.within((lower @ upper - B)[stored], rounding * amount[stored], "L U is not A where A stores an entry")
        pivots = np.diag(upper).copy()
        check_split(t, np.tril(lower, -1) * pivots, pivots, np.triu(upper, 1), order, z, r, way, rounding)

    check_applications(t, M, A, dense, check)
    if way != "color":
        again = {name: value for name, value in options.items() if name != "coloring"}
        check_update(t, M, A, moved, dense, check, lambda other, _: ILU0(other, **again))


def storage(t: Trial, dtype: Any) -> dict[str, Any]:
    """A dtype to store triangles in, or none."""
    if t.chance(0.6):
        return {}
    names = ("complex64", "complex128") if np.dtype(dtype).kind == "c" else ("float32", "float64")
    return {"dtype": t.one_of(*names, np.dtype(t.one_of(*names)))}


def units_of(t: Trial, dtype: Any, stored: Any) -> dict[str, float]:
    """The units of rounding of the arithmetic, and of what is stored."""
    unit = float(np.finfo(dtype).eps) / 2
    less = 0.0 if stored is None or np.finfo(stored).eps <= np.finfo(dtype).eps else float(np.finfo(stored).eps)
    if less and t.device.name != "cpu":
        return {"unit": 2.0**-19, "stored": 2.0**-19}  # the sweeps keep 20 bits there
    return {"unit": unit, "stored": 2 * less}


def longest_row(B: np.ndarray) -> int:
    return int(max((B != 0).sum(axis=axis).max(initial=0) for axis in (0, 1)))


def coloring_for(t: Trial, moved: Any, pattern: np.ndarray, *, by_name_only: bool = False) -> Any:
    """A method's name, a Coloring, or somebody's own colors."""
    way = t.one_of("name", "array", "name" if by_name_only else "coloring")
    method = t.one_of(*METHODS)
    if way == "name":
        t.about(coloring=method)
        return method
    if way == "coloring":
        t.about(coloring=f"color(A, {method!r})")
        return color(moved, method)
    t.about(coloring="an array")
    colors = matrices.first_fit(t, pattern)
    return t.put(colors) if type(moved).__module__.startswith("cupy") else colors


def check_facts(t: Trial, M: Any, A: Any, pattern: np.ndarray) -> None:
    """What M says of itself."""
    t.check(M.shape == A.shape and M.dtype == A.dtype, "M has another shape or dtype than A", found=(M.shape, M.dtype))
    colors, perm = t.get(M.coloring.colors), t.get(M.blocks.perm)
    edge = proper.improper(pattern, colors, 1)
    t.check(edge is None, "the coloring of M is improper", edge=edge)
    t.check(np.array_equal(perm, np.argsort(colors, kind="stable")), "perm does not sort by color")
    t.check(M.nbytes > 0 or not A.shape[0], "nbytes is not positive")
    t.check(M.n_colors == len(M.coloring.sizes), "n_colors is not that of the coloring")


def right_hand_side(t: Trial, n: int, dtype: Any) -> np.ndarray:
    """One or several vectors, of M's dtype, a narrower one, or complex ones for a real M; any order in memory."""
    shape = (n,) if t.chance(0.5) else (n, int(t.rng.integers(0, 10)))
    if n == 0 or shape[1:] == (0,):
        shape = (n,)
    values = matrices.numbers(t, int(np.prod(shape)), dtype).reshape(shape)
    if np.dtype(dtype).kind != "c" and t.chance(0.15):
        values = values + 1j * matrices.numbers(t, int(np.prod(shape)), dtype).reshape(shape)
        values = values.astype(np.complex64 if dtype == np.float32 else np.complex128)
    elif dtype == np.float64 and t.chance(0.15):
        values = values.astype(np.float32) if t.chance(0.5) else np.round(9 * values).astype(int)
    if values.ndim == 2 and t.chance(0.3):
        values = np.asfortranarray(values)
    return values


def check_applications(t: Trial, M: Any, A: Any, dense: np.ndarray, check: Any) -> None:
    """Each way to apply M, for some right-hand sides."""
    n, put = len(dense), put_for(t, M)
    ways = {"M": lambda r: M @ r}
    if t.chance(0.4):
        ways["T"] = lambda r: M.T @ r
    if t.chance(0.4):
        ways["H"] = lambda r: M.rmatvec(r) if r.ndim == 1 else M.H @ r
    for way, apply in ways.items():
        r = right_hand_side(t, n, A.dtype)
        moved = put(r)
        before = t.get(moved).copy()
        z = apply(moved)
        t.about(way=way, r=f"{r.dtype}{r.shape}")
        t.equal(moved, before, "an application changes its argument")
        t.check(z.shape == r.shape, "an application returns another shape", found=z.shape)
        t.check(
            t.get(z).dtype == np.result_type(A.dtype, r.dtype), "an application returns another dtype", found=z.dtype
        )
        t.check(isinstance(z, type(moved)), "an application returns another kind of array", found=type(z))
        check(columns_of(t.get(z)), columns_of(r), way, dense)
        if way == "M":
            t.equal(apply(moved), z, "an application does not repeat")


def put_for(t: Trial, M: Any) -> Callable[[Any], Any]:
    """Where vectors for M have to be: with device="gpu" for a SciPy matrix they stay on the host."""
    return (lambda r: r) if M.origin.name == "cpu" else t.put


def columns_of(r: np.ndarray) -> np.ndarray:
    return r if r.ndim == 2 else r[:, None]


def check_split(
    t: Trial,
    lower: np.ndarray,
    pivots: np.ndarray,
    upper: np.ndarray,
    order: np.ndarray,
    z: np.ndarray,
    r: np.ndarray,
    way: str,
    rounding: float,
) -> None:
    """z solves (T + L) inv(T) (T + U) z = r, in the given order, up to rounding; or the transposed system."""
    if way != "M":
        lower, upper = upper.T, lower.T
    if way == "H":
        lower, pivots, upper = lower.conj(), pivots.conj(), upper.conj()
    z, r = precision.wide(z)[order], precision.wide(r)[order]
    left, amount = reference.dilu.split_residual(lower, pivots, upper, z, r)
    t.within(left, 4 * rounding * amount, f"{way} @ r is not that of the formula")


def check_update(t: Trial, M: Any, A: Any, moved: Any, dense: np.ndarray, check: Any, fresh: Any) -> None:
    """After an update M is what a new object would be."""
    if t.chance(0.5):
        return
    other = matrices.other_values(t, A)
    there = other if type(moved).__module__.startswith("scipy") else t.put(other)
    M.update(there)
    new = fresh(there, M.coloring)
    r = matrices.numbers(t, len(dense), A.dtype)
    there = put_for(t, M)(r)
    t.about(way="M after update")
    t.equal(M @ there, new @ there, "update gives another M than a new object")
    check(t.get(M @ there)[:, None], r[:, None], "M", matrices.dense_of(other))
