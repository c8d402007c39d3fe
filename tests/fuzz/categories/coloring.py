"""Colorings are proper, complete and contiguous, for every method, option, pattern and form of storage."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from reference import proper

from fuzz import matrices
from fuzz.trial import Trial, frozen
from mcprecond import COLORINGS, Coloring, color

ORDERS = ("natural", "random", "ldf", "sdl", "sdl_batch")
SPECULATION = {"chunk_size": (1, 3, 8), "resolution": ("degree", "index", "random"), "worklist": ("atomic", "pps")}
#: Options and what they may be. The order, the seed and the distance are drawn apart.
OPTIONS: dict[str, dict[str, tuple[Any, ...]]] = {
    "eb": {"worklist": ("pps", "atomic"), "resolution": ("degree", "index")},
    "ecl_gc": {"shortcut1": (True, False), "shortcut2": (True, False), "order": ("ldf", "ldf_natural", "natural")},
    "jp": {"order": ORDERS},
    "greedy": {"order": (*ORDERS, "sd", "id")},
    "ipgc": SPECULATION,
    "vb": {**SPECULATION, "edge_filtering": (True, False), "max_forbid": (1, 32, 64)},
    "vb_bit": {**SPECULATION, "edge_filtering": (True, False)},
    "sirg": {
        "resolution": ("degree", "index"),
        "doubling": (True, False),
        "long_words": (True, False),
        "palettes": ("threads", "vertices"),
    },
    "is_minmax": {"two_sets": (True, False), "atomics": (True, False)},
    "cc": {"hashes": (1, 2, 4)},
    "is_hash": {"table_size": (1, 2, 16, 63)},
    "graphblas_is": {"engine": ("kernels",)},
    "graphblas_mis": {"engine": ("kernels",)},
    "graphblas_jp": {"engine": ("kernels",)},
}
DETERMINISTIC = {"auto"} | {name for name, method in COLORINGS.items() if method.deterministic}
#: First-fit takes at most as many colors as the largest degree and one.
BOUNDED = {name for name, method in COLORINGS.items() if method.bounded}
#: These look for the neighbors of neighbors as they go; others square the pattern first.
AS_THEY_GO = ("eb", "jp", "greedy")
#: Others build the graph of all pairs, which takes them minutes where it is large and dense.
MOST_PAIRS = 10**6


def case(t: Trial) -> None:
    if t.chance(0.002):
        return large_star(t)
    family, of = matrices.edges(t, matrices.size(t))
    n, rows, columns = matrices.entries(t, of)
    values = t.rng.integers(0, 3, len(rows)).astype(t.one_of(float, np.float32, complex, int, bool))
    A = matrices.stored(t, n, rows, columns, values)
    pattern = np.zeros((n, n), bool)
    pattern[rows, columns] = True
    t.about(family=family, n=n, entries=len(rows), values=values.dtype.name)
    moved = t.put(A)
    before = frozen(moved, t.device)
    for _ in range(4):
        one_coloring(t, moved, pattern)
    for found, expected in zip(frozen(moved, t.device), before, strict=True):
        t.equal(found, expected, "color changes its argument")


def one_coloring(t: Trial, A: Any, pattern: np.ndarray) -> None:
    n = len(pattern)
    method, distance = t.one_of(*COLORINGS, "auto"), t.one_of(1, 1, 2)
    pairs = int(((pattern | pattern.T).sum(axis=1, dtype=np.int64) ** 2).sum())
    if method not in AS_THEY_GO and pairs > MOST_PAIRS:
        distance = 1
    options = {name: t.one_of(*values) for name, values in OPTIONS.get(method, {}).items() if t.chance(0.5)}
    if method in ("jp", "greedy") and t.chance(0.2):
        options["order"] = t.put(t.rng.permutation(n).astype(t.one_of(np.int32, np.int64)))
    if t.chance(0.3):
        options["seed"] = int(t.one_of(0, 1, 7, 2**31, 2**40, t.rng.integers(0, 2**62)))
    if t.chance(0.2):
        options["recolor"] = int(t.rng.integers(0, 4))
    if t.chance(0.2):
        options["balance"] = True
    t.about(
        method=method,
        distance=distance,
        options={k: v if k != "order" or isinstance(v, str) else "a permutation" for k, v in options.items()},
    )
    coloring = color(A, method, distance=distance, **options)
    check_coloring(t, coloring, pattern, distance)
    if method != "auto":
        t.check(coloring.method == method, "the coloring has another method's name", found=coloring.method)
    if method in BOUNDED and not options.get("balance") and n:
        near = pattern | pattern.T
        if distance == 2:
            near = near | (near.astype(np.float32) @ near.astype(np.float32) > 0)
        np.fill_diagonal(near, False)
        most = int(near.sum(axis=1).max()) + 1
        t.check(
            coloring.n_colors <= most,
            "more colors than the largest degree and one",
            colors=coloring.n_colors,
            most=most,
        )
    if method in DETERMINISTIC and not options.get("balance"):
        again = color(A, method, distance=distance, **options)
        t.equal(again.colors, coloring.colors, "a deterministic method gives other colors when it is called again")


def check_coloring(t: Trial, coloring: Coloring, pattern: np.ndarray, distance: int) -> None:
    n, colors = len(pattern), t.get(coloring.colors)
    t.check(
        colors.dtype == np.int32 and colors.shape == (n,),
        "colors are not n numbers of int32",
        found=f"{colors.dtype}{colors.shape}",
    )
    counts = np.bincount(colors, minlength=0) if n else np.empty(0, int)
    t.check(not n or (colors.min() == 0 and counts.all()), "colors are not contiguous", counts=counts[:20])
    t.check(
        np.array_equal(counts, coloring.sizes),
        "sizes are not those of the colors",
        sizes=coloring.sizes[:20],
        counts=counts[:20],
    )
    edge = proper.improper(pattern, colors, distance)
    t.check(edge is None, f"improper at distance {distance}", edge=edge)
    order = t.get(coloring.permutation())
    t.check(np.array_equal(order, np.argsort(colors, kind="stable")), "permutation does not sort by color, stably")


def large_star(t: Trial) -> None:
    """All leaves of a star are within distance two of each other."""
    leaves = int(10 ** t.rng.uniform(3, 3.6))
    n = leaves + 1
    rows, columns = np.zeros(leaves, int), np.arange(1, n)
    both = np.r_[rows, columns], np.r_[columns, rows]
    A = t.put(matrices.stored(t, n, *both, np.ones(2 * leaves)))
    method = t.one_of(*AS_THEY_GO)
    t.about(family="large star", n=n, method=method, distance=2)
    seconds = {}
    for name in ("jp", method):
        color(
            t.put(matrices.stored(t, 9, *matrices.FAMILIES["star"](t.rng, 9)[1:], np.ones(8))), name, distance=2
        )  # compiles
        seconds[name] = float("inf")
        for _ in range(3):  # the least time, since others may use the machine
            started = time.perf_counter()
            try:
                coloring = color(A, name, distance=2)
            except (ValueError, MemoryError):
                t.check(name != "jp", "jp refuses a star")  # others may
                return
            seconds[name] = min(seconds[name], time.perf_counter() - started)
        t.check(len(np.unique(t.get(coloring.colors))) == n, "improper on a star at distance 2")
    t.check(seconds[method] <= 5 * seconds["jp"] + 1, "a star takes five times as long as jp does", seconds=seconds)
