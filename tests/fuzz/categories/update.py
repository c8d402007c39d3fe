"""Updates, right and wrong, one after the other: a wrong one raises, and after a right one M is that of its matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from fuzz import matrices
from fuzz.trial import FLOATS, Trial
from mcprecond import ILU0, ColorBlocks, MulticolorDILU, MulticolorGS, MulticolorSGS, pcg


def case(t: Trial) -> None:
    dtype = t.one_of(*FLOATS)
    A, dense = matrices.dominant(t, dtype, symmetric=True, most=80, scaled=False)
    n = len(dense)
    makers = {
        "sgs": lambda A: MulticolorSGS(A, "greedy"),
        "gs": lambda A: MulticolorGS(A, "greedy", sweep="forward", sweeps=2, omega=1.2),
        "blocks": lambda A: MulticolorSGS(A, "greedy", block_size=next(b for b in (4, 3, 2, 1) if n % b == 0)),
        "dilu": lambda A: MulticolorDILU(A, "greedy"),
        "ilu0": lambda A: ILU0(A, coloring="greedy"),
        "natural": lambda A: ILU0(A, ordering="natural"),
        "color blocks": lambda A: ColorBlocks(A, "greedy"),
    }
    kind = t.one_of(*makers)
    t.about(kind=kind)
    make = makers[kind]
    M = make(t.put(A))
    r = t.put(matrices.numbers(t, n, dtype))
    state, current = applied(t, M, r), A
    wrongs = {
        "pattern": other_pattern,
        "missing": missing_entry,
        "nan": not_finite,
        "dtype": other_dtype,
        "shape": other_shape,
        "dense": lambda t, A: A.toarray(),
        "list": lambda t, A: A.toarray().tolist(),
        "none": lambda t, A: None,
        "zero": zero_diagonal,
    }
    for _ in range(int(t.rng.integers(1, 6))):
        if t.chance(0.5):
            current = matrices.other_values(t, A)
            if t.chance(0.2):  # the same matrix, stored in another order
                places, order = current.tocoo(), t.rng.permutation(current.nnz)
                current = matrices.stored(t, n, places.row[order], places.col[order], places.data[order])
            t.about(step="right")
            M.update(t.put(current))
            state = applied(t, M, r)
            t.equal(state, applied(t, make(t.put(current)), r), "update gives another M than a new object")
            if hasattr(M, "matvec") and M.symmetric and t.chance(0.3) and n:
                result = pcg(t.put(current.tocsr()), r, M=M, rtol=1e-3)
                t.check(result.converged, "pcg does not converge after an update", reason=result.reason.name)
            continue
        wrong = t.one_of(*wrongs)
        bad = wrongs[wrong](t, current)
        if bad is current or (wrong == "zero" and kind in ("color blocks", "blocks")):
            continue
        t.about(step=wrong)
        error = t.refuses(
            lambda bad=bad: M.update(t.put(bad) if sp.issparse(bad) else bad), f"a wrong update ({wrong})"
        )
        if wrong in ("pattern", "missing"):
            t.check(
                isinstance(error, ValueError) and type(error) is not ValueError,
                "another pattern raises no error of its own",
                found=type(error),
            )
        if wrong == "zero":  # after a pivot that is none, M cannot be used before another update
            M.update(t.put(current))
        t.equal(applied(t, M, r), state, "a wrong update changes M")


def applied(t: Trial, M: Any, r: Any) -> Any:
    if hasattr(M, "matvec"):
        return t.get(M @ r)
    return t.get(M.permuted().toarray())


def other_pattern(t: Trial, A: Any) -> Any:
    """One entry more."""
    free = np.argwhere(~matrices.pattern_of(A))
    if not len(free):
        return A
    i, j = free[t.rng.integers(len(free))]
    places = A.tocoo()
    rows, columns = np.r_[places.row, i], np.r_[places.col, j]
    data = np.r_[places.data, np.ones(1, A.dtype)].astype(A.dtype)
    return sp.csr_matrix((data, (rows, columns)), shape=A.shape)


def missing_entry(t: Trial, A: Any) -> Any:
    """One entry less."""
    places = A.tocsr().copy().tocoo()
    if not places.nnz:
        return A
    keep = (places.row, places.col)
    k = t.rng.integers(places.nnz)
    kept = ~((keep[0] == keep[0][k]) & (keep[1] == keep[1][k]))
    return sp.csr_matrix((places.data[kept], (keep[0][kept], keep[1][kept])), shape=A.shape)


def not_finite(t: Trial, A: Any) -> Any:
    if not A.nnz:
        return A
    bad = A.copy()
    bad.data[t.rng.integers(len(bad.data))] = t.one_of(np.nan, np.inf, -np.inf)
    return bad


def other_dtype(t: Trial, A: Any) -> Any:
    name, other = t.one_of(*(name for name in FLOATS if name != A.dtype.name)), A.copy()
    other.data = (A.data if name.startswith("complex") else A.data.real).astype(name)
    return other


def other_shape(t: Trial, A: Any) -> Any:
    n = A.shape[0] + 1
    return sp.csr_matrix(sp.eye_array(n, dtype=A.dtype)) if t.chance(0.5) else sp.csr_matrix((n, n - 1), dtype=A.dtype)


def zero_diagonal(t: Trial, A: Any) -> Any:
    """The same pattern with a zero on the diagonal, in a row with nothing else."""
    if not A.shape[0]:
        return A
    bad = A.copy()
    places, i = A.tocoo(), t.rng.integers(A.shape[0])
    bad.data[(places.row == i) | (places.col == i)] = 0
    return bad
