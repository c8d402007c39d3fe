"""Kernels of a first solve on a GPU, compiled side by side: one after another they take five seconds.

NVRTC lets go of the interpreter. So when the first set of kernels had to be compiled, threads compile the others that a
first solve needs, with the same types, and call what CuPy compiles for it.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

#: At most so many threads compile at once; one core is left for the caller.
MOST_THREADS = 8
_DIA, _RHS = {"SLICED_DIA": 1}, {"RHS": 1}
#: What MulticolorSGS and pcg need in double precision, the longest first: modules and their choices. What is not said
#: here is taken from the first set.
FIRST: tuple[tuple[str, dict[str, Any]], ...] = (
    ("sweeps.triangular", {"LANES": 32, **_RHS}),
    ("solvers.eisenstat", {"LANES": 32}),
    ("solvers.iteration", {}),
    ("storage.split", {"SOURCE": "uint8"}),
    ("storage.values", {"LANES": 32, "SOURCE": "uint8"}),
    ("coloring.priority.jp", {"NATURAL": 1}),
    ("storage.fingerprint", {"LANES": 1}),
    ("sweeps.triangular", {"LANES": 32, **_RHS, **_DIA}),
    ("solvers.eisenstat", {"LANES": 32, **_DIA}),
    ("storage.values", {"LANES": 32, "SOURCE": "uint8", **_DIA}),
    ("storage.layouts.dia", {"LANES": 32}),
    ("coloring.auto", {"LANES": 32}),
    ("coloring.coloring", {"LANES": 1}),
    ("ordering.color_order", {}),
    ("storage.schedule", {"LANES": 1}),
    ("storage.layouts.interleaved", {"LANES": 32, "ENTRY": "uint8"}),
    ("storage.layouts.interleaved", {"LANES": 32, "ENTRY": "int32"}),
    ("storage.layouts.interleaved", {"LANES": 32, "ENTRY": "uint8", **_DIA}),
)


def compile_ahead(compiled: Callable[..., Any], macros: dict[str, Any], device: int) -> list[Future[Any]]:
    """Let threads call ``compiled(kernel_set, macros)`` for what a first solve needs, with the types of these macros.

    Returns
    -------
    list of Future
        Empty where there is one core only.
    """
    import cupy
    import numpy as np

    threads = min(MOST_THREADS, (os.cpu_count() or 1) - 1)
    if threads < 1:
        return []
    pool = ThreadPoolExecutor(threads, "mcprecond-nvrtc", lambda: cupy.cuda.Device(device).use())
    stored = {"STORED": macros["VALUE"]} if "VALUE" in macros else {}

    def compile_set(module: str, choices: dict[str, Any]) -> None:
        kernel_set = importlib.import_module(f"mcprecond.{module}").KERNELS
        types = {name: np.dtype(value) if isinstance(value, str) else value for name, value in choices.items()}
        compiled(kernel_set, macros | stored | types)

    found = [pool.submit(compile_set, *wanted) for wanted in FIRST]
    found += [pool.submit(_on_a_stream, operation) for operation in _operations(cupy)]
    pool.shutdown(wait=False)
    return found


def _on_a_stream(operation: Callable[[], Any]) -> None:
    import cupy

    with cupy.cuda.Stream(non_blocking=True):
        operation()


def _operations(cupy: Any) -> list[Callable[[], Any]]:
    """Operations of CuPy for each of which it compiles a kernel, on arrays of two numbers."""
    ints, longs, bytes_, mask = (cupy.zeros(2, kind) for kind in ("int32", "int64", "uint8", "bool"))
    return [
        lambda: cupy.arange(2, dtype="int32"),
        lambda: longs.astype("int32"),
        lambda: ints.astype("uint8"),
        lambda: bytes_.copy(order="F"),
        lambda: bytes_.__setitem__(slice(None), 1),
        lambda: cupy.flatnonzero(mask),
        lambda: ints[longs],
        lambda: ints.__setitem__(longs, ints),
        lambda: cupy.searchsorted(ints, ints),
        lambda: cupy.full(2, 1.0),
        lambda: cupy.full(2, 1, "int64"),
        lambda: abs(cupy.zeros(2)),
    ]
