"""What a first solve on a GPU compiles, known before it is needed, so that other cores compile it meanwhile."""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from mcprecond.backends.kernels import KernelSet

#: Modules with the kernel sets that MulticolorSGS and pcg need, in this order, and their choices. "VALUE" stands for
#: the type of the values; what is not said here is taken from the first set that is missing, or from USUAL.
SOLVE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("coloring.auto", {"LANES": 32}),
    ("coloring.priority.jp", {"NATURAL": 1}),
    ("coloring.coloring", {}),
    ("ordering.color_order", {}),
    ("storage.split", {"SOURCE": "uint8"}),
    ("sweeps.triangular", {"STORED": "VALUE", "RHS": 1}),
    ("sweeps.triangular", {"STORED": "VALUE", "RHS": 1, "SLICED_DIA": 1}),
    ("solvers.eisenstat", {"STORED": "VALUE"}),
    ("solvers.eisenstat", {"STORED": "VALUE", "SLICED_DIA": 1}),
    ("solvers.iteration", {}),
    ("storage.schedule", {}),
    ("storage.layouts.dia", {"LANES": 32}),
    ("storage.layouts.interleaved", {"ENTRY": "int32"}),
    ("storage.layouts.interleaved", {"ENTRY": "uint8"}),
    ("storage.fingerprint", {}),
    ("storage.values", {"LANES": 32, "SOURCE": "uint8", "STORED": "VALUE"}),
    ("storage.values", {"LANES": 32, "SOURCE": "uint8", "STORED": "VALUE", "SLICED_DIA": 1}),
)
#: What SmoothedAggregation needs beyond that: levels differ in how many threads share a row.
HIERARCHY: tuple[tuple[str, dict[str, Any]], ...] = tuple(
    (module, {"LANES": lanes, **choices})
    for module, choices, all_lanes in (
        ("multigrid.strength", {}, (4, 8, 16, 32)),
        ("multigrid.aggregation", {}, (1, 2, 4, 8, 32)),
        ("multigrid.patterns", {"OFFSET": "int64"}, (1, 8, 16)),
        ("multigrid.patterns", {"OFFSET": "int32"}, (4, 8, 16, 32)),
        ("multigrid.patterns", {"OFFSET": "int64", "MARKED": 1}, (32,)),
        ("multigrid.patterns", {"OFFSET": "int32", "MARKED": 1}, (32,)),
        ("multigrid.transfer", {}, (1,)),
        ("multigrid.spectral_radius", {}, (2, 4, 8, 16, 32)),
        ("multigrid.galerkin", {}, (4, 8, 16, 32, 256)),
        ("multigrid.cycle", {"STORED": "VALUE"}, (1, 2, 4, 8, 16, 32)),
        ("sweeps.vectors", {"RHS": 1}, (1,)),
        ("matrix", {}, (8,)),
    )
    for lanes in all_lanes
)

USUAL = {"OFFSET": np.int32, "VALUE": np.dtype(np.float64), "LANES": 8}

#: What has been listed in this process: kind of solve, types and device.
_LISTED: set[tuple[bool, Any, Any, int]] = set()


def variants_ahead(
    kernel_set: KernelSet, macros: dict[str, Any], device: int
) -> list[tuple[KernelSet, dict[str, Any]]]:
    """List, once, the variants that a first solve needs when one of them is missing.

    Parameters
    ----------
    kernel_set : KernelSet
    macros : dict
        Choices of the variant that is missing.
    device : int
    """
    of_hierarchy = kernel_set.source.parent.name == "multigrid"
    usual = {name: macros.get(name, choice) for name, choice in USUAL.items()}
    key = (of_hierarchy, usual["OFFSET"], usual["VALUE"], device)
    if key in _LISTED:
        return []
    _LISTED.add(key)
    _call_operations(device)

    def choice_of(value: Any) -> Any:
        return usual["VALUE"] if value == "VALUE" else np.dtype(value) if isinstance(value, str) else value

    return [
        (
            importlib.import_module(f"mcprecond.{module}").KERNELS,
            usual | {name: choice_of(value) for name, value in choices.items()},
        )
        for module, choices in (HIERARCHY if of_hierarchy else SOLVE)
    ]


def _call_operations(device: int) -> None:
    """On arrays of two numbers, call the operations of CuPy for each of which it compiles a kernel, in a thread."""
    import cupy

    def call() -> None:
        # Where memory is short, say: the solve will meet that itself.
        with contextlib.suppress(Exception), cupy.cuda.Device(device), cupy.cuda.Stream(non_blocking=True):
            for operation in _operations(cupy):
                operation()

    threading.Thread(target=call, name="mcprecond-cupy").start()


def _operations(cupy: Any) -> list[Callable[[], Any]]:
    """What to call, in the order in which a first solve does."""
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
