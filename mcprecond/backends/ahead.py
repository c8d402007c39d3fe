"""Kernels of a first solve on a GPU, compiled while the host does something else.

NVRTC compiles one program at a time, but lets go of the interpreter. So when the first set of kernels had to be
compiled, threads go on with others that a first solve needs whatever its matrix, with the same types, and call what
CuPy compiles for it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

THREADS = 2
#: What MulticolorSGS and pcg need, in the order in which they do: modules and their choices. What is not said here is
#: taken from the first set.
FIRST: tuple[tuple[str, dict[str, Any]], ...] = (
    ("coloring.auto", {"LANES": 32}),
    ("coloring.priority.jp", {"NATURAL": 1}),
    ("coloring.coloring", {"LANES": 1}),
    ("ordering.color_order", {}),
    ("storage.split", {"SOURCE": "uint8"}),
    ("storage.schedule", {"LANES": 1}),
    ("storage.layouts.dia", {"LANES": 32}),
    ("storage.fingerprint", {"LANES": 1}),
    ("solvers.iteration", {}),
)


def compile_ahead(compiled: Callable[..., Any], macros: dict[str, Any], device: int) -> list[Future[Any]]:
    """Let threads call ``compiled(kernel_set, macros)`` for what a first solve needs, with the types of these macros.

    Returns
    -------
    list of Future
    """
    import cupy
    import numpy as np

    pool = ThreadPoolExecutor(THREADS, "mcprecond-nvrtc", lambda: cupy.cuda.Device(device).use())

    def compile_set(module: str, choices: dict[str, Any]) -> None:
        kernel_set = importlib.import_module(f"mcprecond.{module}").KERNELS
        types = {name: np.dtype(value) if isinstance(value, str) else value for name, value in choices.items()}
        compiled(kernel_set, macros | types)

    found = [pool.submit(_on_a_stream, operation) for operation in _operations(cupy)]
    found += [pool.submit(compile_set, *wanted) for wanted in FIRST]
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
