"""Whatever is passed for a matrix, a coloring, an order or a vector is right, or TypeError or ValueError is raised."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuzz import matrices
from fuzz.trial import FLOATS, Trial
from mcprecond import (
    COLORINGS,
    ILU0,
    ColorBlocks,
    Coloring,
    MulticolorDILU,
    MulticolorGS,
    MulticolorSGS,
    color,
    pcg,
    smooth,
    studies,
)
from mcprecond.ordering import in_best_order
from mcprecond.storage import NodeBlocks


def case(t: Trial) -> None:
    t.one_of(bad_matrix, bad_matrix, bad_matrix, bad_coloring, bad_order, bad_vector, bad_preconditioner, unpruned)(t)


def good(t: Trial) -> tuple[Any, int]:
    """A matrix in sorted CSR, on the host, that nobody refuses."""
    while True:
        A, _ = matrices.dominant(t, t.one_of(*FLOATS), symmetric=True, most=60, scaled=False)
        A = sp.csr_matrix(A.tocsr())
        A.sum_duplicates()
        if A.shape[0] > 2:
            return A, A.shape[0]


# What is done to a matrix that was right when it was made. Each returns the matrix, or None where it does not apply.


def first_offset(t: Trial, A: Any) -> Any:
    A.indptr[0] = t.one_of(1, 2, -1, 2**30)
    return A


def falling_offsets(t: Trial, A: Any) -> Any:
    k = int(t.rng.integers(1, A.shape[0]))
    A.indptr[k] = int(A.indptr[k + 1]) + int(t.one_of(1, 5, 2**29)) if t.chance(0.5) else -int(t.rng.integers(1, 99))
    return A


def last_offset(t: Trial, A: Any) -> Any:
    A.indptr[-1] += int(t.one_of(1, 7, 10**3, 10**6, 2**30))
    return A


def far_column(t: Trial, A: Any) -> Any:
    n = A.shape[0]
    A.indices[t.rng.integers(len(A.indices))] = int(t.one_of(-1, -n, n, n + 1, 2**20, 2**31 - 1, -(2**31)))
    return A


def wrapping_column(t: Trial, A: Any) -> Any:
    """A column that is right but for 2^32."""
    A.indices = A.indices.astype(np.int64)
    A.indptr = A.indptr.astype(np.int64)
    A.indices[t.rng.integers(len(A.indices))] += int(t.one_of(2**32, -(2**32), 2**33))
    return A


def wrapping_offset(t: Trial, A: Any) -> Any:
    A.indptr = A.indptr.astype(np.int64)
    A.indices = A.indices.astype(np.int64)
    A.indptr[t.rng.integers(1, A.shape[0])] += 2**32
    return A


def short_offsets(t: Trial, A: Any) -> Any:
    A.indptr = A.indptr[:-1].copy() if t.chance(0.5) else A.indptr[: int(t.rng.integers(0, len(A.indptr)))].copy()
    return A


def long_offsets(t: Trial, A: Any) -> Any:
    A.indptr = t.device.xp.concatenate((A.indptr, A.indptr[-1:]))
    return A


def short_columns(t: Trial, A: Any) -> Any:
    A.indices = A.indices[: int(t.rng.integers(0, len(A.indices)))].copy()
    return A


def short_values(t: Trial, A: Any) -> Any:
    A.data = A.data[: int(t.rng.integers(0, len(A.data)))].copy()
    return A


def float_columns(t: Trial, A: Any) -> Any:
    A.indices = A.indices.astype(np.float64) + 0.5
    return A


def not_finite(t: Trial, A: Any) -> Any:
    A.data[t.rng.integers(len(A.data))] = t.one_of(np.nan, np.inf, -np.inf)
    return A


OF_PATTERN: dict[str, Callable[[Trial, Any], Any]] = {
    "first offset": first_offset,
    "falling offsets": falling_offsets,
    "last offset": last_offset,
    "far column": far_column,
    "wrapping column": wrapping_column,
    "wrapping offset": wrapping_offset,
    "short offsets": short_offsets,
    "long offsets": long_offsets,
    "short columns": short_columns,
    "float columns": float_columns,
}
OF_VALUES: dict[str, Callable[[Trial, Any], Any]] = {"not finite": not_finite, "short values": short_values}
#: What is no square sparse matrix at all.
NO_MATRIX: dict[str, Callable[[Trial, Any], Any]] = {
    "dense": lambda t, A: t.put(A.toarray()),
    "list": lambda t, A: A.toarray().tolist(),
    "None": lambda t, A: None,
    "number": lambda t, A: 3.0,
    "text": lambda t, A: "A",
    "not square": lambda t, A: t.put(sp.csr_matrix(A[:, :-1])),
    "1-D": lambda t, A: sp.coo_array(np.ones(A.shape[0])),
    "function": lambda t, A: lambda x: x,
    "class": lambda t, A: sp.csr_matrix,
    "tuple": lambda t, A: (A.data, A.indices, A.indptr),
}
NO_FLOATS = ("longdouble", "clongdouble")


def entries_of(t: Trial, A: Any, n: int) -> dict[str, tuple[Callable[[Any], Any], bool]]:
    """Every public entry that takes a matrix, and whether it reads values. `A` is a good matrix of the same kind."""
    moved = t.put(A)
    ones, zeros = t.put(np.ones(n, A.dtype)), t.put(np.zeros(n, A.dtype))
    coloring = color(moved, "greedy")
    b = next(b for b in (3, 2, 1) if n % b == 0)
    method, distance = t.one_of(*COLORINGS, "auto"), t.one_of(1, 2)
    way = t.one_of("greedy", "eb", "auto", coloring, coloring.colors)

    SGS = MulticolorSGS(moved, coloring)

    def updated(M: Any) -> Callable[[Any], Any]:
        return lambda X: M.update(X)

    return {
        "color": (lambda X: color(X, method, distance=distance), False),
        "is_valid": (lambda X: coloring.is_valid(X), False),
        "in_best_order": (lambda X: in_best_order(X, coloring), False),
        "ColorBlocks": (lambda X: ColorBlocks(X, way), True),
        "NodeBlocks": (lambda X: NodeBlocks(X, "greedy", block_size=b), True),
        "MulticolorSGS": (lambda X: MulticolorSGS(X, way), True),
        "MulticolorGS": (lambda X: MulticolorGS(X, way, sweep="forward"), True),
        "blocks": (lambda X: MulticolorSGS(X, "greedy", block_size=b), True),
        "MulticolorDILU": (lambda X: MulticolorDILU(X, way), True),
        "ILU0": (lambda X: ILU0(X, coloring=way), True),
        "ILU0 natural": (lambda X: ILU0(X, ordering="natural"), True),
        "smooth": (lambda X: smooth(X, zeros, ones, coloring=way), True),
        "pcg": (lambda X: pcg(X, ones), True),
        "pcg with SGS": (lambda X: pcg(X, ones, M=SGS), True),
        "pcg with x0": (lambda X: pcg(X, ones, ones, form="plain"), True),
        "sparse M": (lambda X: pcg(moved, ones, M=X), True),
        "update of SGS": (updated(MulticolorSGS(moved, coloring)), True),
        "update of DILU": (updated(MulticolorDILU(moved, coloring)), True),
        "update of ILU0": (updated(ILU0(moved, coloring=coloring)), True),
        "update of ColorBlocks": (updated(ColorBlocks(moved, coloring)), True),
        "advise": (lambda X: studies.advise(X), True),
    }


def bad_matrix(t: Trial) -> None:
    A, n = good(t)
    every = entries_of(t, A, n)
    names = [name for name in every if name != "advise"] if t.chance(0.97) else ["advise"]
    for name in (t.one_of(*names), t.one_of(*names), t.one_of(*names)):
        call, reads_values = every[name]
        kinds = OF_PATTERN | (OF_VALUES if reads_values else {}) | (NO_MATRIX if t.chance(0.3) else {})
        wrong = t.one_of(*kinds)
        t.about(entry=name, wrong=wrong, n=n, dtype=A.dtype.name)
        if wrong in NO_MATRIX:
            if name == "sparse M" and wrong in ("dense", "None", "1-D"):
                continue  # None is no preconditioner, and anything with @ is an operator
            if name.startswith("pcg") and wrong == "dense":
                continue  # which pcg takes
            X = NO_MATRIX[wrong](t, A)
        else:
            X = kinds[wrong](t, t.put(A).copy())
        t.refuses(lambda call=call, X=X: call(X), f"{name}: {wrong}")
    name = t.one_of("MulticolorSGS", "MulticolorDILU", "ILU0", "pcg", "ColorBlocks", "smooth")
    dtype = t.one_of(*NO_FLOATS)
    if not t.device.is_gpu:
        t.about(entry=name, wrong=dtype)
        X = sp.csr_matrix(A.shape, dtype=dtype)
        X.data, X.indices, X.indptr = A.data.real.astype(dtype), A.indices.copy(), A.indptr.copy()
        t.refuses(lambda: every[name][0](X), f"{name}: values of {dtype}", naming=("float", "A"))


def unpruned(t: Trial) -> None:
    """Storage with room behind the last entry is as good as any, whatever is there; or it is refused."""
    A, n = good(t)
    X = t.put(A).copy()
    xp, more = t.device.xp, int(t.rng.integers(1, 9))
    X.data = xp.concatenate((X.data, xp.full(more, t.one_of(0.0, np.nan, 5.0), X.data.dtype)))
    X.indices = xp.concatenate((X.indices, xp.full(more, t.one_of(0, n - 1, 2**30), X.indices.dtype)))
    every = entries_of(t, A, n)
    name = t.one_of(*(name for name in every if name != "advise"))
    t.about(entry=name, wrong="unpruned")
    try:
        found = every[name][0](X)
    except (TypeError, ValueError) as error:
        t.check(
            "nan" not in str(error).lower() or "row" not in str(error),
            "a value that is no entry is called one",
            message=str(error),
        )
        return
    if isinstance(found, Coloring):
        t.check(found.is_valid(t.put(A)), "improper for unpruned storage")
    elif hasattr(found, "matvec"):
        expected = every[name][0](t.put(A)) if "ILU0" in name else None
        r = t.put(np.ones(n, A.dtype))
        t.check(np.isfinite(t.get(found @ r)).all(), "M of unpruned storage is not finite")
        if expected is not None and name == "ILU0 natural":
            t.equal(found @ r, expected @ r, "M of unpruned storage is another")
    elif hasattr(found, "converged"):
        t.check(found.converged, "pcg does not converge for unpruned storage", reason=found.reason.name)
    else:
        t.check(True, "")


def bad_coloring(t: Trial) -> None:
    """Colors that are no coloring of A, as an array, a list or a Coloring."""
    A, n = good(t)
    moved, colors = t.put(A), matrices.first_fit(t, matrices.pattern_of(A)).astype(np.int64)
    rows = np.repeat(np.arange(n), np.diff(A.indptr))
    edges = np.flatnonzero(rows != A.indices)
    wrongs: dict[str, Any] = {
        "short": colors[:-1],
        "long": np.r_[colors, 0],
        "negative": np.where(np.arange(n) == n // 2, -1, colors),
        "huge": np.where(np.arange(n) == n // 2, 2**31 + 5, colors),
        "wrapping": np.where(np.arange(n) == 0, 2**32 + colors[0], colors),
        "floats": colors + 0.5,
        "whole floats": colors.astype(float),
        "two-dimensional": colors[:, None],
        "empty": colors[:0],
        "text": np.array(["a"] * n),
        "objects": np.array([None] * n),
        "number": np.int64(3),
        "scalar": 3,
        "most negative": np.full(n, -(2**31)),
        "bools": colors > 0,
    }
    if len(edges):
        k = edges[t.rng.integers(len(edges))]
        improper = colors.copy()
        improper[rows[k]] = improper[A.indices[k]]
        wrongs |= {
            "improper": improper,
            "improper again": improper.astype(np.uint8 if colors.max() < 256 else np.int64),
        }
    wrong = t.one_of(*wrongs)
    value = wrongs[wrong]
    if isinstance(value, np.ndarray) and value.ndim:
        if value.dtype.kind in "iuf":
            value = t.put(value)
        if (
            wrong not in ("whole floats", "bools")
            and t.chance(0.2)
            and value.dtype.kind in "iuf"
            and not t.device.is_gpu
        ):
            value = value.tolist()
        elif t.chance(0.3) and value.dtype.kind in "iuf":  # a Coloring that somebody has changed
            try:
                value = dataclasses.replace(color(moved, "greedy"), colors=value)
            except (TypeError, ValueError) as error:
                t.check("coloring" in str(error), "colors: the message does not name them", message=str(error))
                return
    ways: dict[str, Callable[[Any], Any]] = {
        "MulticolorSGS": lambda c: MulticolorSGS(moved, c),
        "MulticolorDILU": lambda c: MulticolorDILU(moved, c),
        "ILU0": lambda c: ILU0(moved, coloring=c),
        "ColorBlocks": lambda c: ColorBlocks(moved, c),
        "smooth": lambda c: smooth(moved, t.put(np.zeros(n, A.dtype)), t.put(np.ones(n, A.dtype)), coloring=c),
    }
    name = t.one_of(*ways)
    t.about(entry=name, wrong=wrong, n=n, given=type(value).__name__)
    t.refuses(lambda: ways[name](value), f"coloring: {wrong}", naming=("coloring",))
    if wrong in ("short", "long", "negative", "huge", "most negative", "floats", "empty"):
        array = value.colors if isinstance(value, Coloring) else t.put(np.asarray(wrongs[wrong]))
        sizes = np.bincount(colors)
        if wrong in ("floats", "huge"):
            t.refuses(lambda: Coloring(array, sizes[sizes > 0], "user"), "colors: floats", naming=("coloring",))
            return
        odd = Coloring(array, sizes[sizes > 0], "user")
        if int((sizes > 0).sum()) > 2:
            t.about(entry="in_best_order")
            t.refuses(lambda: in_best_order(moved, odd), f"in_best_order: {wrong}")
        t.about(entry="is_valid")
        try:  # it may say no
            t.check(
                not odd.is_valid(moved) or wrong not in ("short", "long", "empty"),
                "a coloring of another length is valid",
            )
        except (TypeError, ValueError):
            t.check(True, "")


def bad_order(t: Trial) -> None:
    """What is no permutation."""
    A, n = good(t)
    moved, order = t.put(A), t.rng.permutation(n)
    twice = order.copy()
    twice[0] = twice[1]
    wrongs: dict[str, Any] = {
        "short": order[:-1],
        "long": np.r_[order, n],
        "twice": twice,
        "negative": order - 1,
        "beyond": order + 1,
        "floats": order + 0.5,
        "two-dimensional": order[:, None],
        "huge": order + 2**32,
        "empty": order[:0],
        "text": "sideways",
        "number": 5,
        "fraction": 1.5,
        "dictionary": {},
        "objects": np.array([None] * n),
        "nan": np.where(order == 0, np.nan, order),
    }
    wrong = t.one_of(*wrongs)
    value = wrongs[wrong]
    if isinstance(value, np.ndarray) and value.dtype.kind in "if":
        value = t.put(value)
    ways: dict[str, tuple[Callable[[Any], Any], str]] = {
        "ILU0": (lambda o: ILU0(moved, ordering=o), "ordering"),
        "jp": (lambda o: color(moved, "jp", order=o), "order"),
        "greedy": (lambda o: color(moved, "greedy", order=o, distance=t.one_of(1, 2)), "order"),
        "ecl_gc": (lambda o: color(moved, "ecl_gc", order=o), "order"),
    }
    name = t.one_of(*ways)
    call, argument = ways[name]
    t.about(entry=name, wrong=wrong, n=n)
    t.refuses(lambda: call(value), f"{argument}: {wrong}", naming=(argument,))


def bad_vector(t: Trial) -> None:
    """b, x0, x and r that do not fit."""
    A, n = good(t)
    moved, M = t.put(A), MulticolorSGS(t.put(A), "greedy")
    v, zeros = matrices.numbers(t, n, A.dtype), t.put(np.zeros(n, A.dtype))
    broken = v.copy()
    broken[n // 2] = t.one_of(np.nan, np.inf)
    wrongs: dict[str, Any] = {
        "short": v[:-1],
        "long": np.r_[v, v[:1]],
        "matrix": np.stack([v, v], 1),
        "row": v[None],
        "not finite": broken,
        "text": "b",
        "list of text": ["b"] * n,
        "objects": np.array([object()] * n),
        "sparse": sp.csr_matrix(A[:, :1]),
        "number": 3.0,
        "dictionary": {},
        "dates": np.zeros(n, "datetime64[s]"),
    }
    ways: dict[str, tuple[Callable[[Any], Any], str]] = {
        "b": (lambda b: pcg(moved, b), "b"),
        "b with M": (lambda b: pcg(moved, b, M=M), "b"),
        "x0": (lambda x0: pcg(moved, zeros + 1, x0), "x0"),
        "x0 with M": (lambda x0: pcg(moved, zeros + 1, x0, M=M), "x0"),
        "x of smooth": (lambda x: smooth(moved, x, zeros), "x"),
        "b of smooth": (lambda b: M.smooth(zeros, b), "b"),
    }
    wrong, name = t.one_of(*wrongs), t.one_of(*ways)
    if wrong == "matrix" and name in ("b", "b with M"):
        return  # two right-hand sides
    call, argument = ways[name]
    value = wrongs[wrong]
    if isinstance(value, np.ndarray) and value.dtype.kind in "fc":
        value = t.put(value)
    t.about(entry=name, wrong=wrong, n=n)
    t.refuses(lambda: call(value), f"{name}: {wrong}", naming=(argument,))


def bad_preconditioner(t: Trial) -> None:
    """What is no M for A."""
    A, n = good(t)
    moved, b = t.put(A), t.put(np.ones(n, A.dtype))
    other = sp.csr_matrix(sp.eye_array(n + 1, dtype=A.dtype))
    wrongs: dict[str, Any] = {
        "function": lambda r: r,
        "text": "gauss",  # which names no preconditioner
        "number": 2.0,
        "list": [1.0] * n,
        "class": MulticolorSGS,
        "another shape": t.put(other),
        "of another shape": MulticolorSGS(t.put(other)),
        "object": object(),
        "not symmetric": MulticolorGS(moved, sweep="forward"),
        "vector": t.put(np.ones(n)),
    }
    wrong = t.one_of(*wrongs)
    t.about(wrong=wrong, n=n)
    t.refuses(lambda: pcg(moved, b, M=wrongs[wrong]), f"M: {wrong}", naming=("M",))
