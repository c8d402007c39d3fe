"""Hashes of what the package computes on the CPU, bit by bit: colorings, applications, smoothing, histories of solves.

With a fixed number of threads all of it is the same in every run on one machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

THREADS = 2
DTYPES = ("float32", "float64", "complex64", "complex128")
COLUMNS = (1, 2, 3, 4, 7)  # right-hand sides: 1 is a vector
BLOCK_SIZES = (2, 3)

Case = tuple[str, Callable[[], list[Any]]]


def of_all_cases(chosen: Callable[[str], bool] = lambda name: True) -> dict[str, str]:
    """The hash of each case by its name."""

    from mcprecond.backends.team import get_threads, set_threads

    before = get_threads()
    set_threads(THREADS)
    try:
        cases = [*colorings(), *preconditioners(), *solves()]
        return {name: hash_of(compute()) for name, compute in cases if chosen(name)}
    finally:
        set_threads(before)


def hash_of(arrays: list[Any]) -> str:
    """Of bytes, dtypes and shapes."""
    digest = hashlib.sha256()
    for array in map(np.asarray, arrays):
        digest.update(f"{array.dtype.str} {array.shape} ".encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def colorings() -> Iterator[Case]:
    """Methods by variants of the tests: colors and history in one thread, which repeat whatever the method; and where
    it is deterministic the colors in several, in which the history may depend on timing.
    """
    from colorings import VARIANTS
    from graphs import NAMED

    from mcprecond import COLORINGS, color

    def colors_of(graph: Any, deterministic: bool, method: str, **options: Any) -> list[Any]:
        from mcprecond.backends.team import set_threads

        set_threads(1)
        try:
            alone = color(graph, method, **options)
        finally:
            set_threads(THREADS)
        found = [alone.colors, alone.history]
        return [*found, color(graph, method, **options).colors] if deterministic else found

    for graph in ("stencil27", "grid5", "star", "messy", "dense rows", "unsymmetric"):
        run = partial(colors_of, NAMED[graph])
        for name, (method, options) in VARIANTS.items():
            yield f"color {graph} {name}", partial(run, COLORINGS[method].deterministic, method, **options)
        yield f"color {graph} auto", partial(run, True, "auto")
        for method in ("jp", "greedy", "ecl_gc"):
            yield f"color {graph} {method} distance=2", partial(run, True, method, distance=2)
            yield f"color {graph} {method} refined", partial(run, False, method, recolor=1, balance=True)


def matrices() -> dict[str, Callable[[str], sp.csr_matrix]]:
    """By name, for a dtype; all have a dominant diagonal. The number of rows is divisible by sizes of blocks."""
    from graphs import dominant, grid5, spd, stencil27

    random = sp.random_array((300, 300), density=0.02, rng=np.random.default_rng(1))
    return {
        "spd stencil27": lambda dtype: spd(stencil27(12), dtype=np.dtype(dtype).type),
        "unsymmetric grid5": lambda dtype: dominant(grid5(30), dtype=np.dtype(dtype).type),
        "unsymmetric random": lambda dtype: dominant(random, dtype=np.dtype(dtype).type),
    }


def kinds() -> dict[str, Callable[..., Any]]:
    """Preconditioners by name."""
    from mcprecond import ILU0, MulticolorDILU, MulticolorGS, MulticolorSGS

    found: dict[str, Callable[..., Any]] = {
        f"{sweep} omega={omega} sweeps={sweeps}": partial(MulticolorGS, sweep=sweep, omega=omega, sweeps=sweeps)
        for sweep, omega, sweeps in [("forward", 1.0, 1), ("backward", 0.9, 1), ("symmetric", 1.0, 1)]
    }
    found["ssor"] = partial(MulticolorSGS, omega=1.3, sweeps=2)
    for b in BLOCK_SIZES:
        found[f"sgs block_size={b}"] = partial(MulticolorSGS, block_size=b)
        found[f"ssor block_size={b}"] = partial(MulticolorGS, sweep="symmetric", omega=1.3, sweeps=2, block_size=b)
        found[f"forward block_size={b}"] = partial(MulticolorGS, sweep="forward", block_size=b)
    return found | {"dilu": MulticolorDILU, "ilu0": ILU0, "ilu0 natural": partial(ILU0, ordering="natural")}


def preconditioners() -> Iterator[Case]:
    """Applications to several right-hand sides, transposed ones, smoothing, and new values on the same pattern."""

    def applied(make: Callable[..., Any], A: Any, stored: str | None) -> list[Any]:
        M = make(A, coloring="ecl_gc", dtype=stored)
        found = [M @ values(A, columns) for columns in COLUMNS]
        found += [M.rmatvec(values(A, 1)), M.H @ values(A, 2), M.T @ values(A, 1)]
        if hasattr(M, "smooth"):
            found.append(M.smooth(values(A, 1, seed=1), values(A, 1)))
        M.update(A * A.dtype.type(1.5))
        return [*found, M @ values(A, 1)]

    for matrix, of_dtype in matrices().items():
        for dtype in DTYPES:
            for stored in (None, "float32") if dtype == "float64" else (None,):
                for kind, make in kinds().items():
                    name = f"apply {matrix} {kind} {dtype}" + (f" stored as {stored}" if stored else "")
                    yield name, partial(applied, make, of_dtype(dtype), stored)


def solves() -> Iterator[Case]:
    """CG with each preconditioner that is Hermitian."""
    from mcprecond import pcg

    def solved(make: Callable[..., Any] | None, A: Any, form: str) -> list[Any]:
        M = None if make is None else make(A, coloring="ecl_gc")
        result = pcg(A, values(A, 1), M=M, rtol=1e-4, maxiter=200, form=form)
        return [result.x, result.residuals, np.int64(result.iterations)]

    hermitian = {kind: make for kind, make in kinds().items() if not kind.startswith(("forward", "backward"))}
    for dtype in DTYPES:
        A = matrices()["spd stencil27"](dtype)
        for kind, make in ({"none": None} | hermitian).items():
            for form in ("auto", "plain"):
                yield f"pcg {kind} {dtype} form={form}", partial(solved, make, A, form)


def values(A: Any, columns: int, seed: int = 0) -> np.ndarray:
    """A random vector, or several as columns, of the dtype of A."""
    rng, shape = np.random.default_rng(seed), (A.shape[0],) if columns == 1 else (A.shape[0], columns)
    parts = rng.uniform(-1, 1, shape), rng.uniform(-1, 1, shape)
    return (parts[0] + 1j * parts[1] if A.dtype.kind == "c" else parts[0]).astype(A.dtype)
