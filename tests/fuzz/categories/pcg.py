"""pcg tells the truth on systems of all kinds, solves those that it should, and both forms do the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from reference import precision

from fuzz import matrices
from fuzz.honesty import solved
from fuzz.trial import FLOATS, Trial
from mcprecond import ILU0, MulticolorDILU, MulticolorSGS

#: Iterations by which the two forms may differ on a system that is easy to solve.
APART = 3
#: The factor by which the residual of one form may exceed the tolerance when the other form has reached it.
NEAR = 10


def case(t: Trial) -> None:
    dtype = t.one_of("float64", "float64", *FLOATS)
    kind = t.one_of(*KINDS)
    A, condition = KINDS[kind](t, dtype)
    n, dense = A.shape[0], matrices.dense_of(A)
    t.about(kind=kind, n=n, dtype=dtype, condition=f"{condition:.1e}")
    moved = t.put(A)
    b = right_hand_side(t, dense, dtype)
    x0 = guess(t, dense, b, dtype)
    rtol = float(t.one_of(1e-1, 1e-3, 1e-5, 1e-8, 1e-12, 0.0))
    how: dict[str, Any] = {"rtol": rtol}
    if t.chance(0.15):
        how["maxiter"] = int(t.one_of(0, 1, 2, 7, 5 * n + 1))
    if t.chance(0.15):
        how["atol"] = float(precision.norm(b) * 10.0 ** t.rng.integers(-8, 1))
    M = preconditioner(t, A, moved, kind)
    t.about(M=type(M).__name__, guess=x0 is not None, **how)
    if kind == "unsymmetric" and getattr(M, "symmetric", True) is False:
        return  # pcg refuses it
    has_forms = kind not in NOT_DEFINITE and t.facts["way"] in ("sgs", "dilu") and not M.eisenstat_incompatibility
    results = {}
    for form in ("plain", "eisenstat") if has_forms else (t.one_of("auto", "plain"),):
        t.about(form=form)
        results[form] = solved(t, moved, dense, b, x0, M=M, form=form, **how)
        check_outcome(t, kind, results[form], dense, b, x0, condition, how, M)
    if len(results) == 2:
        check_forms(t, *results.values(), b, condition, how)


def check_outcome(
    t: Trial,
    kind: str,
    result: Any,
    dense: np.ndarray,
    b: np.ndarray,
    x0: Any,
    condition: float,
    how: dict[str, Any],
    M: Any,
) -> None:
    eps, n = float(np.finfo(t.get(result.x).dtype).eps), len(dense)
    told = {"reason": result.reason.name, "iterations": result.iterations, "residual_norm": result.residual_norm}
    steps = math.sqrt(condition) * (math.log(4 * condition / max(how["rtol"], 1e-300)))
    easy = "maxiter" not in how and x0 is None and steps < 5 * n and 100 * condition * eps < how["rtol"]
    if kind not in NOT_DEFINITE and M is None:
        t.check(not easy or result.converged, "an easy system is not solved", **told)
    if (
        kind == "dominant"
        and t.facts["way"] != "negative"
        and how["rtol"] >= 1e3 * eps * n
        and "maxiter" not in how
        and x0 is None
        and n > 5
    ):
        t.check(result.converged, "a dominant system is not solved", **told)
    starts = x0 is None and how.get("maxiter", 1) and precision.norm(b) > how.get("atol", 0.0) and how["rtol"] < 1
    if kind == "negative" and M is None and starts:
        t.check(result.reason.name == "INDEFINITE_A", "a negative definite A is not told", **told)
    if (
        not result.converged
        and kind == "unsymmetric"
        and "maxiter" not in how
        and np.abs(dense - dense.conj().T).max(initial=0) > 1e-2 * np.abs(dense).max(initial=0)
    ):
        text = f"{result!r} {result.reason.value}".lower()
        t.check(
            "symmetric" in text or "hermitian" in text,
            "a failure on an A that is not symmetric does not say so",
            **told,
        )
    if kind not in NOT_DEFINITE and condition * eps < 1e-5:
        t.check(result.reason.name != "INDEFINITE_A", "a positive definite A is called indefinite", **told)
    if result.converged and kind not in NOT_DEFINITE and condition < 1e-2 / eps and 0 < n <= 60:
        exact = np.linalg.solve(dense.astype(complex if dense.dtype.kind == "c" else float), b)
        least = float(np.linalg.norm(dense.astype(complex), 2)) / condition
        true, rounding = precision.residual(dense, t.get(result.x), b)
        allowed = 1.1 * (true + rounding) / least + 1e-12 * condition * precision.norm(exact)
        t.check(
            precision.norm(t.get(result.x) - exact) <= allowed,
            "x is not that of a dense solve",
            **told,
            allowed=allowed,
        )


def check_forms(t: Trial, plain: Any, eisenstat: Any, b: np.ndarray, condition: float, how: dict[str, Any]) -> None:
    """The reason is the same, or it is noted; on easy systems the count is nearly the same, too."""
    told = {
        "plain": f"{plain.reason.name} {plain.iterations}",
        "eisenstat": f"{eisenstat.reason.name} {eisenstat.iterations}",
    }
    eps = float(np.finfo(t.get(plain.x).dtype).eps)
    t.notes["both forms"] += 1
    if plain.reason is not eisenstat.reason:
        t.notes[f"forms differ: {plain.reason.name}, {eisenstat.reason.name}"] += 1
    first, least = plain.residuals[0], max(how["rtol"] * precision.norm(b), how.get("atol", 0.0))
    easy = condition * eps < 1e-9 and least > 1e4 * eps * condition * first and "maxiter" not in how
    # If the tolerance is close to the first residual, rounding decides when the solver stops.
    if easy and plain.converged and max(plain.residual_norm, least) < 0.1 * first:
        t.check(eisenstat.converged, "the forms end for other reasons on an easy system", **told)
        early, late = sorted((plain, eisenstat), key=lambda result: result.iterations)
        apart = late.iterations - early.iterations
        # The residual norm of CG oscillates: when one form has reached the tolerance, the other may be just above it.
        soon = late.residuals[: early.iterations + APART + 1].min()
        is_near = apart <= APART + plain.iterations // 10 or soon < NEAR * least
        t.check(is_near, "the forms take other counts of iterations", **told)


def right_hand_side(t: Trial, dense: np.ndarray, dtype: Any) -> np.ndarray:
    n = len(dense)
    way = t.one_of("random", "product", "product", "unit", "spread")
    b = matrices.numbers(t, n, dtype)
    if way == "product" or t.facts["kind"] == "singular":
        b = (dense @ b).astype(dtype)
    elif way == "unit" and n:
        b[:] = 0
        b[t.rng.integers(n)] = 1
    elif way == "spread":
        b = (b * 10.0 ** t.rng.integers(-12, 12, n)).astype(dtype)
    return b


def guess(t: Trial, dense: np.ndarray, b: np.ndarray, dtype: Any) -> np.ndarray | None:
    """None, near the solution, or far away."""
    if t.chance(0.6):
        return None
    x0 = matrices.numbers(t, len(b), dtype)
    return (x0 * 10.0 ** t.one_of(-6, 0, 0, 3, 6, 12)).astype(dtype)


def preconditioner(t: Trial, A: Any, moved: Any, kind: str) -> Any:
    """Of A, if A has one; its coloring is deterministic, so that a case can be run again."""
    d = t.get(A.diagonal())
    way = t.one_of("none", "sgs", "sgs", "dilu", "dilu", "ilu0", "sparse", "operator", "negative", "float32")
    if (kind in NOT_DEFINITE and t.chance(0.7)) or not (d.real > 0).all():
        way = "none"
    coloring = t.one_of("greedy", "ecl_gc", "jp")
    inverse = t.put(((1 / d) if d.all() else d).astype(d.dtype))
    makers: dict[str, Callable[[], Any]] = {
        "none": lambda: None,
        "sgs": lambda: MulticolorSGS(moved, coloring, omega=float(t.one_of(1.0, 1.0, 0.5, 1.6))),
        "dilu": lambda: MulticolorDILU(moved, coloring, pivot="shift"),
        "ilu0": lambda: ILU0(moved, coloring=coloring, pivot="shift"),
        "float32": lambda: MulticolorSGS(moved, coloring, dtype="complex64" if d.dtype.kind == "c" else "float32"),
        "sparse": lambda: t.put(sp.csr_matrix(sp.diags_array((1 / d).astype(d.dtype)))),
        "negative": lambda: t.put(sp.csr_matrix(sp.diags_array((-1 / d).astype(d.dtype)))),
        "operator": lambda: t.device.linalg.LinearOperator(
            A.shape, matvec=lambda r: inverse * r.reshape(-1), dtype=A.dtype
        ),
    }
    t.about(way=way, coloring=coloring)
    return makers[way]()


def dominant(t: Trial, dtype: Any) -> tuple[Any, float]:
    A, dense = matrices.dominant(t, dtype, symmetric=True, most=150, scaled=False)
    return A.tocsr(), condition_of(dense)


def scaled(t: Trial, dtype: Any) -> tuple[Any, float]:
    """D A D with A dominant."""
    A, dense = matrices.dominant(t, dtype, symmetric=True, most=60, scaled=False)
    A, d = A.tocsr(), 10.0 ** t.rng.uniform(-1, 1, len(dense)) ** t.one_of(1, 3)
    D = sp.diags_array(d)
    A = sp.csr_matrix((D @ A @ D).astype(dtype))
    return A, condition_of(matrices.dense_of(A))


def spectrum(t: Trial, dtype: Any) -> tuple[Any, float]:
    """Dense, with a given condition."""
    n = int(t.rng.integers(1, 40))
    condition = 10.0 ** t.rng.uniform(0, 15)
    return with_eigenvalues(
        t, condition ** (-np.linspace(0, 1, n) if t.chance(0.7) else -t.rng.random(n)), dtype
    ), condition


def clustered(t: Trial, dtype: Any) -> tuple[Any, float]:
    n = int(t.rng.integers(2, 40))
    condition = 10.0 ** t.rng.uniform(0, 12)
    values = np.ones(n)
    values[: int(t.rng.integers(1, n))] = 1 / condition
    return with_eigenvalues(t, values, dtype), condition


def indefinite(t: Trial, dtype: Any) -> tuple[Any, float]:
    n = int(t.rng.integers(2, 40))
    values = t.rng.uniform(0.1, 1, n)
    values[: int(t.rng.integers(1, n))] *= -1
    return with_eigenvalues(t, values, dtype), math.inf


def negative(t: Trial, dtype: Any) -> tuple[Any, float]:
    return with_eigenvalues(t, -t.rng.uniform(0.1, 1, int(t.rng.integers(1, 30))), dtype), math.inf


def singular(t: Trial, dtype: Any) -> tuple[Any, float]:
    """A graph's Laplacian; its right-hand sides are products, so they are consistent up to rounding."""
    _, (n, rows, columns) = matrices.edges(t, int(t.rng.integers(1, 60)))
    off = rows != columns
    pattern = sp.coo_array((np.ones(int(off.sum())), (rows[off], columns[off])), shape=(n, n)).toarray() > 0
    weights = np.triu(pattern | pattern.T, 1) * np.round(t.rng.uniform(1, 8, (n, n)))
    weights = weights + weights.T
    return sp.csr_matrix((np.diag(weights.sum(axis=1)) - weights).astype(dtype)), math.inf


def unsymmetric(t: Trial, dtype: Any) -> tuple[Any, float]:
    A, _ = matrices.dominant(t, dtype, symmetric=False, most=60)
    return A.tocsr(), math.inf


def grid(t: Trial, dtype: Any) -> tuple[Any, float]:
    """Five points, as large as 30 x 30."""
    n, m = (int(k) for k in t.rng.integers(1, t.one_of(8, 12, 31), 2))
    one = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    other = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(m, m))
    A = sp.kron(one, sp.eye_array(m)) + t.one_of(1.0, 1e-3) * sp.kron(sp.eye_array(n), other)
    A = sp.csr_matrix(A).astype(dtype)
    low, high = (2 - 2 * math.cos(math.pi / (n + 1)), 2 - 2 * math.cos(math.pi * n / (n + 1)))
    return A, max(high / low, 1.0) * 4


def normal(t: Trial, dtype: Any) -> tuple[Any, float]:
    """B^T B for a sparse B, and a little more on the diagonal."""
    n = int(t.rng.integers(1, 50))
    B = sp.csr_array(sp.random_array((n, n), density=min(1.0, 3 / n), rng=t.rng)).astype(dtype)
    A = sp.csr_matrix(B.conj().T @ B + 10.0 ** t.rng.uniform(-10, 0) * sp.eye_array(n)).astype(dtype)
    return A, condition_of(matrices.dense_of(A))


KINDS = {
    "dominant": dominant,
    "scaled": scaled,
    "spectrum": spectrum,
    "clustered": clustered,
    "grid": grid,
    "normal": normal,
    "indefinite": indefinite,
    "negative": negative,
    "singular": singular,
    "unsymmetric": unsymmetric,
}
NOT_DEFINITE = ("indefinite", "negative", "singular", "unsymmetric")


def with_eigenvalues(t: Trial, values: np.ndarray, dtype: Any) -> Any:
    """A full Hermitian matrix, times any power of ten."""
    n = len(values)
    basis = t.rng.standard_normal((n, n))
    if np.dtype(dtype).kind == "c":
        basis = basis + 1j * t.rng.standard_normal((n, n))
    Q, _ = np.linalg.qr(basis)
    A = (Q * values) @ Q.conj().T * 10.0 ** t.one_of(0, 0, -5, 5)
    A = (A + A.conj().T) / 2
    return sp.csr_matrix(A.astype(dtype))


def condition_of(dense: np.ndarray) -> float:
    """Of a Hermitian positive definite matrix, as it is stored."""
    if not len(dense):
        return 1.0
    with np.errstate(all="ignore"):
        values = np.linalg.eigvalsh(dense.astype(complex if dense.dtype.kind == "c" else float))
    return float(values[-1] / values[0]) if values[0] > 0 else math.inf
