"""What cases are made of: patterns, matrices and vectors, all of SciPy and NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from fuzz.trial import Trial

Edges = tuple[int, np.ndarray, np.ndarray]  # how many rows, and the row and the column of each entry


def size(t: Trial, most: int = 4000) -> int:
    """Of a matrix: mostly a few dozen rows, sometimes none, sometimes thousands."""
    least, end = t.one_of(
        *((0, 9),) * 5, *((9, 60),) * 12, *((60, 150),) * 2, *(((150, 400),) if t.chance(0.3) else ((9, 60),))
    )
    if t.chance(0.004):
        least, end = 1000, 4001
    return int(min(t.rng.integers(least, end), most))


def edges(t: Trial, n: int) -> tuple[str, Edges]:
    """A graph of one of many families, with about n vertices; edges in both directions, or in one."""
    name = t.one_of(*FAMILIES)
    n, rows, columns = FAMILIES[name](t.rng, n)
    rows, columns = np.asarray(rows, np.int64), np.asarray(columns, np.int64)
    if t.chance(0.7):
        rows, columns = np.concatenate([rows, columns]), np.concatenate([columns, rows])
    if t.chance(0.3) and n:  # other numbers
        p = t.rng.permutation(n)
        rows, columns = p[rows], p[columns]
    return name, (n, rows, columns)


def _random(rng: np.random.Generator, n: int) -> Edges:
    count = int(rng.integers(0, 4 * n + 1)) if n else 0
    return n, rng.integers(0, max(n, 1), count), rng.integers(0, max(n, 1), count)


def _dense_random(rng: np.random.Generator, n: int) -> Edges:
    n = min(n, 80)
    return n, *np.nonzero(rng.random((n, n)) < rng.random())


def _star(rng: np.random.Generator, n: int) -> Edges:
    return n, np.zeros(max(n - 1, 0), int), np.arange(1, max(n, 1))


def _hubs(rng: np.random.Generator, n: int) -> Edges:
    hubs = min(n, int(rng.integers(1, 5)))
    rows, columns = np.meshgrid(np.arange(hubs), np.arange(n), indexing="ij")
    _, more, others = _random(rng, n)
    return n, np.r_[rows.ravel(), more[: n // 2]], np.r_[columns.ravel(), others[: n // 2]]


def _cliques(rng: np.random.Generator, n: int) -> Edges:
    n, most = min(n, 120), int(rng.integers(1, 121))
    part = np.arange(n) // most
    return n, *np.nonzero(part[:, None] == part)


def _path(rng: np.random.Generator, n: int) -> Edges:
    return n, np.arange(max(n - 1, 0)), np.arange(1, max(n, 1))


def _cycle(rng: np.random.Generator, n: int) -> Edges:
    return n, np.arange(n), np.roll(np.arange(n), -1)


def _grid(rng: np.random.Generator, n: int) -> Edges:
    wide = int(rng.integers(1, max(int(n**0.5) + 2, 2)))
    high, points = n // wide, rng.integers(2)
    y, x = np.divmod(np.arange(wide * high), wide)
    near = (np.abs(x[:, None] - x) + np.abs(y[:, None] - y) == 1) if not points else None
    if near is None:
        near = np.maximum(np.abs(x[:, None] - x), np.abs(y[:, None] - y)) == 1
    return wide * high, *np.nonzero(near)


def _bipartite(rng: np.random.Generator, n: int) -> Edges:
    left = int(rng.integers(0, n + 1))
    whole = rng.random((left, n - left)) < rng.choice([0.05, 0.3, 1.0])
    rows, columns = np.nonzero(whole)
    return n, rows, columns + left


def _crown(rng: np.random.Generator, n: int) -> Edges:
    """Complete bipartite but for a perfect matching, numbered so that first-fit in row order takes n / 2 colors."""
    half = min(n, 120) // 2
    rows, columns = np.nonzero(~np.eye(half, dtype=bool))
    return 2 * half, 2 * rows, 2 * columns + 1


def _tree(rng: np.random.Generator, n: int) -> Edges:
    child = np.arange(1, max(n, 1))
    return n, child, (rng.random(len(child)) * child).astype(int)


def _band(rng: np.random.Generator, n: int) -> Edges:
    width = int(rng.integers(1, 12))
    pairs = [(np.arange(n - k), np.arange(k, n)) for k in range(1, width + 1) if k < n]
    return n, np.concatenate([a for a, _ in pairs] or [[]]), np.concatenate([b for _, b in pairs] or [[]])


def _geometric(rng: np.random.Generator, n: int) -> Edges:
    n = min(n, 400)
    points = rng.random((n, 2))
    near = np.linalg.norm(points[:, None] - points, axis=2) < rng.uniform(0.5, 2.5) / max(n, 1) ** 0.5
    return n, *np.nonzero(near)


def _isolated(rng: np.random.Generator, n: int) -> Edges:
    return n, np.empty(0, int), np.empty(0, int)


def _triangles(rng: np.random.Generator, n: int) -> Edges:
    """A Delaunay triangulation of random points, with slivers."""
    if n < 4:
        return _path(rng, n)
    from scipy.spatial import Delaunay

    points = rng.random((n, 2)) * [1, 10.0 ** -rng.integers(0, 3)]
    triangles = Delaunay(points).simplices
    return n, triangles.ravel(), np.roll(triangles, 1, axis=1).ravel()


FAMILIES = {
    "random": _random,
    "dense": _dense_random,
    "star": _star,
    "hubs": _hubs,
    "cliques": _cliques,
    "path": _path,
    "cycle": _cycle,
    "grid": _grid,
    "bipartite": _bipartite,
    "crown": _crown,
    "tree": _tree,
    "band": _band,
    "geometric": _geometric,
    "isolated": _isolated,
    "triangles": _triangles,
}


def entries(t: Trial, of: Edges) -> Edges:
    """The same with some or all of the diagonal, and entries stored twice."""
    n, rows, columns = of
    share = t.one_of(0.0, 0.5, 1.0, 1.0)
    diagonal = np.flatnonzero(t.rng.random(n) < share)
    rows, columns = np.r_[rows, diagonal], np.r_[columns, diagonal]
    if t.chance(0.2) and len(rows):
        again = t.rng.integers(0, len(rows), int(t.rng.integers(1, 6)))
        rows, columns = np.r_[rows, rows[again]], np.r_[columns, columns[again]]
    return n, rows, columns


def stored(t: Trial, n: int, rows: np.ndarray, columns: np.ndarray, values: np.ndarray) -> Any:
    """A SciPy matrix of these entries in one of all forms: csr, csc or coo, matrix or array, unsorted rows, repeated
    entries, int32 or int64 indices.
    """
    order = np.lexsort((columns, rows)) if t.chance(0.5) else t.rng.permutation(len(rows))
    rows, columns, values = rows[order], columns[order], values[order]
    index, form = t.one_of(np.int32, np.int32, np.int64), t.one_of("csr", "csr", "csr", "csc", "coo")
    is_array = t.chance(0.5)
    t.about(stored=f"{form}_{'array' if is_array else 'matrix'}", index=np.dtype(index).name)
    if form == "coo":
        kind = sp.coo_array if is_array else sp.coo_matrix
        return kind((values, (rows.astype(index), columns.astype(index))), shape=(n, n))
    first, second = (rows, columns) if form == "csr" else (columns, rows)
    by_first = np.argsort(first, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(first, minlength=n))]).astype(index)
    kind = {("csr", True): sp.csr_array, ("csr", False): sp.csr_matrix, ("csc", True): sp.csc_array}.get(
        (form, is_array), sp.csc_matrix
    )
    made = kind((n, n), dtype=values.dtype)
    made.data, made.indices, made.indptr = values[by_first], second[by_first].astype(index), indptr
    return made


def numbers(t: Trial, count: int, dtype: Any) -> np.ndarray:
    """Random values of about one, in all directions of the plane if complex."""
    values = t.rng.uniform(-1, 1, count)
    if np.dtype(dtype).kind == "c":
        return (values * np.exp(1j * t.rng.uniform(0, np.pi, count))).astype(dtype)
    return values.astype(dtype)


def dominant(t: Trial, dtype: Any, *, symmetric: bool, most: int = 400, scaled: bool = True) -> tuple[Any, np.ndarray]:
    """A matrix with a dominant diagonal on any pattern, as it is stored, and dense as the stored numbers add up; a
    symmetric one is Hermitian positive definite. Rows and columns may be scaled by powers of two.
    """
    family, (n, rows, columns) = edges(t, size(t, most))
    off = rows != columns
    pairs = np.unique(np.stack([rows[off], columns[off]]), axis=1)
    if symmetric:
        pairs = np.unique(np.sort(pairs, axis=0), axis=1)
    values = numbers(t, pairs.shape[1], dtype)
    values[t.rng.random(len(values)) < t.one_of(0, 0, 0.2)] = 0  # stored zeros
    rows, columns = pairs
    if symmetric:
        rows, columns, values = np.r_[rows, columns], np.r_[columns, rows], np.r_[values, values.conj()]
    sums = np.bincount(rows, np.abs(values), n) + np.bincount(columns, np.abs(values), n)
    diagonal = (sums / (2 if symmetric else 1) + t.rng.uniform(0.1, 1, n)).astype(dtype)
    scales = 0
    if scaled and t.chance(0.25):
        # A pivot that is tiny beside its row is refused, so no more than this.
        scales = t.one_of(2, 5) if np.finfo(dtype).eps > 1e-10 else t.one_of(3, 8, 15)
    left = 2.0 ** t.rng.integers(-scales, scales + 1, n)
    right = left if symmetric else 2.0 ** t.rng.integers(-scales, scales + 1, n)
    real = np.dtype(dtype).type(0).real.dtype
    left, right = left.astype(real), right.astype(real)
    values = (values * left[rows] * right[columns]).astype(dtype)
    diagonal = (diagonal * left * right).astype(dtype)
    rows, columns, values = np.r_[rows, np.arange(n)], np.r_[columns, np.arange(n)], np.r_[values, diagonal]
    if t.chance(0.15) and len(rows):  # two halves of some entries, which are exact
        some = t.rng.integers(0, len(rows), 3)
        some = np.unique(some)
        values[some] /= 2
        rows, columns, values = np.r_[rows, rows[some]], np.r_[columns, columns[some]], np.r_[values, values[some]]
    t.about(family=family, n=n, dtype=np.dtype(dtype).name, symmetric=symmetric, scales=scales)
    dense = np.zeros((n, n), np.clongdouble if np.dtype(dtype).kind == "c" else np.longdouble)
    np.add.at(dense, (rows, columns), values)
    return stored(t, n, rows, columns, values), dense


def pattern_of(A: Any) -> np.ndarray:
    """Where a SciPy matrix stores something, dense."""
    A = A.tocoo()
    found = np.zeros(A.shape, bool)
    found[A.row, A.col] = True
    return found


def first_fit(t: Trial, pattern: np.ndarray) -> np.ndarray:
    """A proper coloring of a dense pattern, in random order and with numbers that may leave gaps."""
    near = pattern | pattern.T
    colors = np.full(len(near), -1)
    for v in t.rng.permutation(len(near)):
        taken = set(colors[near[v]])
        colors[v] = next(c for c in range(len(near) + 1) if c not in taken)
    if len(colors) and t.chance(0.3):
        colors = t.rng.permutation(2 * (colors.max() + 1))[colors]
    return colors.astype(t.one_of(np.int32, np.int64, np.uint8 if len(colors) < 100 else np.int32))


def dense_of(A: Any) -> np.ndarray:
    """A SciPy matrix in extended precision, repeated entries added up."""
    A = A.tocoo()
    found = np.zeros(A.shape, np.clongdouble if A.dtype.kind == "c" else np.longdouble)
    np.add.at(found, (A.row, A.col), A.data)
    return found


def other_values(t: Trial, A: Any) -> Any:
    """The same pattern, stored alike, with D A D for a random diagonal D in place of A."""
    d = t.rng.uniform(0.5, 2, A.shape[0])
    places = A.tocoo()
    other = A.copy()
    other.data = (A.data * d[places.row] * d[places.col]).astype(A.dtype)
    return other
