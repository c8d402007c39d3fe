"""DILU and ILU(0) of a positive definite A are positive definite by default, and say what they have shifted."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from reference import dilu, precision

from fuzz import matrices
from fuzz.trial import Trial
from mcprecond import ILU0, MulticolorDILU, pcg


def case(t: Trial) -> None:
    dtype = t.one_of("float64", "float64", "float32", "complex128")
    make = t.one_of(normal, triangles, triangles, spread, one_sided)
    A = make(t, dtype)
    n, dense = A.shape[0], matrices.dense_of(A)
    values = np.linalg.eigvalsh(dense.astype(complex)) if n else np.ones(1)
    eps = float(np.finfo(dtype).eps)
    if values[0] <= 1e3 * n * eps * values[-1]:
        return  # not surely definite, as it is stored
    A = matrices.stored(t, n, *(places := A.tocoo()).coords, places.data)
    moved, coloring = t.put(A), t.one_of("greedy", "eb", "jpl", "ecl_gc")
    kind = t.one_of("dilu", "ilu0", "natural")
    t.about(matrix=make.__name__, kind=kind, n=n, dtype=dtype, coloring=coloring)
    M: Any = {
        "dilu": lambda: MulticolorDILU(moved, coloring),
        "ilu0": lambda: ILU0(moved, coloring=coloring),
        "natural": lambda: ILU0(moved, ordering="natural"),
    }[kind]()
    Z = t.get(M @ t.put(np.eye(n, dtype=dtype))).astype(complex)
    size, skew = np.abs(Z).max(initial=0), np.abs(Z - Z.conj().T).max(initial=0)
    rounding = 1e3 * n * eps * size
    pivots = t.get(M.blocks.pivots)
    check_shifts(t, M, kind, A, dense, pivots)
    if not M.symmetric:
        pattern = matrices.pattern_of(A)
        t.check((pattern != pattern.T).any(), "symmetric denies it of a matrix with a symmetric pattern")
        t.notes["M not symmetric" if skew > rounding else "M symmetric, not said so"] += 1
        return
    worst = float(values[-1] / values[0])
    t.check(skew <= rounding * worst, "symmetric says so of an M that is not", skew=skew / max(size, 1e-300))
    least = pivots.real.min(initial=1)
    t.check(least > 0, "a pivot of a positive definite matrix is not positive", least=least)
    diagonal = np.abs(np.diag(dense)).astype(float)[t.get(M.blocks.perm)]
    t.check((np.abs(pivots.imag) <= 8 * (n + 8) * eps * diagonal).all(), "a pivot of a Hermitian matrix is not real")
    scale = np.sqrt(np.abs(np.diag(Z).real))  # so that a bad scale hides nothing
    least = np.linalg.eigvalsh((Z + Z.conj().T) / 2 / np.outer(scale, scale)).min(initial=1)
    t.check(least > -1e2 * n * eps, "M of a positive definite matrix is not positive definite", least=least)
    b = dense @ matrices.numbers(t, n, dtype)
    result = pcg(moved.tocsr(), t.put(b.astype(dtype)), M=M, rtol=1e-3)
    broken = result.reason.name in ("INDEFINITE_M", "INDEFINITE_A", "NOT_FINITE")
    t.check(not broken, "pcg breaks down", reason=result.reason.name)


def check_shifts(t: Trial, M: Any, kind: str, A: Any, dense: np.ndarray, pivots: np.ndarray) -> None:
    """What was added to the pivots is what `shifted` lists: E - (a - sum) is the amount, and 0 in other rows.

    Off the diagonal ILU(0) subtracts a share of what elimination says, which is the same everywhere: all of it unless
    pivots were shifted.
    """
    order = t.get(M.blocks.perm)
    amounts = np.zeros(len(dense), dense.dtype)
    rows, listed = M.shifted
    once = len(rows) == len(listed) and np.array_equal(rows, np.unique(rows))
    t.check(once, "shifted does not list rows once each, ascending")
    amounts[rows] = listed
    B, E = dense[np.ix_(order, order)], precision.wide(pivots)
    rounding = float(np.finfo(pivots.dtype).eps) * (8 * len(dense) + 16)
    if kind == "dilu":
        expected, amount = dilu.pivots(B, E)
        left, bound = E - expected - amounts[order], rounding * (amount + np.abs(E))
        t.within(left, bound, "pivots are not those of the formula and the shifts")
        return
    lower, upper = (precision.wide(t.get(factor.toarray())) for factor in M.factors())
    amount = ((np.abs(lower) @ np.abs(upper)) + np.abs(B)).astype(float)
    # The sum over k before both i and j: without the last term of the product, which is that of a unit diagonal.
    sums = lower @ upper - np.triu(upper) - np.tril(lower, -1) * np.diag(upper)
    subtracted, added = float(np.diag(sums).real.sum()), float(amounts.real.sum())
    share = 1 - added / subtracted if len(rows) and subtracted else 1.0
    t.check(0 < share <= 1, "shifts are not those of a relaxed elimination", share=share)
    left = lower @ upper - B - (1 - share) * sums
    np.fill_diagonal(left, np.diag(lower @ upper - B) - amounts[order])
    stored = matrices.pattern_of(A)[np.ix_(order, order)] | np.eye(len(B), dtype=bool)
    t.within(left[stored], 4 * rounding * amount[stored], "L U is not A and the shifts")


def normal(t: Trial, dtype: Any) -> Any:
    """B^H B for a sparse B, and a little more on the diagonal."""
    n = int(t.rng.integers(1, 60))
    places = t.rng.random((n, n)) < t.rng.uniform(1, 4) / n
    B = places * matrices.numbers(t, n * n, dtype).reshape(n, n).astype(
        complex if np.dtype(dtype).kind == "c" else float
    )
    A = B.conj().T @ B + 10.0 ** t.rng.uniform(-4, 0) * np.eye(n)
    return with_pattern(A.astype(dtype), A != 0)


def triangles(t: Trial, dtype: Any) -> Any:
    """Stiffness of linear elements on a Delaunay triangulation, slivers included, with a few nodes held."""
    from scipy.spatial import Delaunay

    n = int(t.rng.integers(6, 70))
    points = t.rng.random((n, 2)) * [1, 10.0 ** -t.rng.uniform(0, 1.5)]
    elements = Delaunay(points).simplices
    A, pattern = np.zeros((n, n)), np.zeros((n, n), bool)
    for element in elements:
        corners = np.c_[np.ones(3), points[element]]
        area = abs(np.linalg.det(corners)) / 2
        if area < 1e-14:
            continue
        slopes = np.linalg.inv(corners)[1:]
        A[np.ix_(element, element)] += area * slopes.T @ slopes
        pattern[np.ix_(element, element)] = True
    held = t.rng.permutation(n)[: max(1, n // 8)]
    A[held] = A[:, held] = 0
    A[held, held] = 1
    return with_pattern(((A + A.T) / 2).astype(dtype), pattern)


def spread(t: Trial, dtype: Any) -> Any:
    """D A D of one of these."""
    A = t.one_of(normal, triangles)(t, dtype)
    d = 2.0 ** t.rng.integers(-6, 7, A.shape[0])
    return sp.csr_matrix((sp.diags_array(d) @ A @ sp.diags_array(d)).astype(dtype))


def one_sided(t: Trial, dtype: Any) -> Any:
    """A symmetric matrix that stores some zeros on one side of the diagonal only."""
    A = t.one_of(normal, triangles)(t, dtype).tocoo()
    n = A.shape[0]
    rows, columns = t.rng.integers(0, n, (2, int(t.rng.integers(1, 2 * n + 1))))
    free = ~matrices.pattern_of(A)[rows, columns] & ~matrices.pattern_of(A)[columns, rows] & (rows < columns)
    places = np.unique(np.stack([rows[free], columns[free]]), axis=1)
    zeros = np.zeros(places.shape[1], A.dtype)
    row, column, data = np.r_[A.row, places[0]], np.r_[A.col, places[1]], np.r_[A.data, zeros]
    return sp.coo_array((data, (row, column)), shape=A.shape)


def with_pattern(A: np.ndarray, pattern: np.ndarray) -> Any:
    """A sparse matrix that stores these places, and the diagonal."""
    rows, columns = np.nonzero(pattern | np.eye(len(A), dtype=bool))
    return sp.coo_array((A[rows, columns], (rows, columns)), shape=A.shape)
