"""A list of the kernels that a first solve on a GPU needs, so that other cores can compile them in advance."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from mcprecond.backends.arguments import single
from mcprecond.backends.kernels import KernelSet, choice_of

#: The kernel sets that MulticolorSGS and pcg load, in this order. Each line gives a module and the macros to compile it
#: with; macros that keep their defaults are left out. A macro without a value, such as OFFSET, has the value that the
#: first missing kernel set has.
SOLVE = """
    linalg.sums
    linalg.vectors VALUE
    tuning.features OFFSET VALUE
    coloring.auto OFFSET
    coloring.jp OFFSET LANES NATURAL=0,1
    coloring.coloring
    ordering.color_order OFFSET LANES=8
    storage.split OFFSET LANES SOURCE=uint8
    sweeps.triangular OFFSET VALUE STORED=VALUE
    sweeps.triangular OFFSET VALUE STORED=VALUE SLICED_DIA=1
    solvers.eisenstat OFFSET VALUE STORED=VALUE
    solvers.eisenstat OFFSET VALUE STORED=VALUE SLICED_DIA=1
    solvers.iteration OFFSET VALUE LANES=1,4
    linalg.csr OFFSET VALUE STORED=VALUE ARGUMENT=VALUE LANES=1,4
    linalg.accurate OFFSET VALUE LANES=1,4
    storage.schedule OFFSET
    storage.layouts.dia OFFSET
    storage.layouts.interleaved OFFSET ENTRY=int32
    storage.layouts.interleaved OFFSET ENTRY=int32 SLICED_DIA=1
    storage.layouts.interleaved OFFSET ENTRY=uint8
    storage.layouts.interleaved OFFSET ENTRY=uint8 SLICED_DIA=1
    storage.fingerprint OFFSET VALUE
    preconditioners.dilu OFFSET VALUE STORED=VALUE SLICED_DIA=1
    preconditioners.elimination OFFSET VALUE STORED=VALUE PLACE=uint8 SHARE=3
    storage.values OFFSET VALUE STORED=VALUE SOURCE=uint8 LANES=32
    storage.values OFFSET VALUE STORED=VALUE SOURCE=uint8 LANES=32 SLICED_DIA=1
    coloring.ecl_gc OFFSET LANES=8
    solvers.cg OFFSET VALUE LANES=1
    linalg.diagonal VALUE
    solvers.bicgstab VALUE
    solvers.gmres VALUE
"""
#: The kernel sets that SmoothedAggregation loads as well. LANES=4,8 stands for two variants, one with 4 and one with 8
#: threads per row, since the lengths of rows differ from level to level. SINGLE is VALUE in single precision.
HIERARCHY = """
    matrix OFFSET VALUE LANES=1,2,8
    multigrid.examination OFFSET VALUE LANES=2,4
    multigrid.products OFFSET VALUE LANES=4,8,16,32 SHARING=1 WIDTH=1
    multigrid.products OFFSET VALUE LANES=4,8,16 SHARING=1 WIDTH=0
    multigrid.small_levels OFFSET VALUE=SINGLE STORED=SINGLE COARSE=VALUE
    multigrid.strength OFFSET VALUE LANES=4,8,16,32
    multigrid.aggregation OFFSET LANES=2,4,8,32
    multigrid.patterns OFFSET LANES=2,4,8,16,32
    multigrid.tentative OFFSET VALUE LANES=1,4,8,16,256
    multigrid.row_sums OFFSET VALUE=SINGLE,VALUE LANES=2,4,8,16
    multigrid.interpolation OFFSET VALUE LANES=4,8,16,32 UNKNOWNS=1 CANDIDATES=1
    multigrid.galerkin OFFSET VALUE UNKNOWNS=1 CANDIDATES=1
    multigrid.elimination OFFSET VALUE LANES=1
    multigrid.lonely OFFSET VALUE LANES=4,8,16,32
    multigrid.units VALUE STORED=SINGLE,VALUE
    multigrid.polynomial OFFSET VALUE STORED=SINGLE LANES=1,2,4
    multigrid.polynomial OFFSET VALUE=SINGLE STORED=SINGLE LANES=1,2,4,8,16,32
    linalg.csr OFFSET VALUE=SINGLE STORED=SINGLE ARGUMENT=SINGLE LANES=1,2,4,8,16,32
    linalg.csr OFFSET VALUE=SINGLE STORED=SINGLE ARGUMENT=VALUE LANES=1,2,4,8,16
    linalg.csr OFFSET VALUE STORED=SINGLE ARGUMENT=SINGLE LANES=1,2,4,8,16,32
    linalg.csr OFFSET VALUE STORED=SINGLE,VALUE ARGUMENT=VALUE LANES=1,4
    linalg.dense VALUE LANES=32
    linalg.diagonal VALUE
    linalg.vectors VALUE=SINGLE,VALUE
    solvers.iteration OFFSET VALUE LANES=1,2,4
    solvers.cg OFFSET VALUE LANES=1,2,4
    multigrid.extended OFFSET VALUE LANES=4,8,16
    multigrid.splitting OFFSET VALUE LANES=4,8,16
"""
#: The kernel sets that a solve for several right-hand sides loads as well.
COLUMNS = """
    linalg.columns OFFSET VALUE STORED=VALUE ARGUMENT=VALUE
    sweeps.triangular OFFSET VALUE STORED=VALUE RHS=4 PITCHED=1
    sweeps.triangular OFFSET VALUE STORED=VALUE RHS=4 PITCHED=1 SLICED_DIA=1
    solvers.columns OFFSET VALUE
    multigrid.polynomial_columns OFFSET VALUE=SINGLE,VALUE STORED=SINGLE
    linalg.columns OFFSET VALUE=SINGLE STORED=SINGLE ARGUMENT=SINGLE,VALUE
    linalg.columns OFFSET VALUE STORED=SINGLE ARGUMENT=SINGLE,VALUE
"""
USUAL: dict[str, Any] = {"OFFSET": np.dtype(np.int32), "VALUE": np.dtype(np.float64), "LANES": 8}

#: The length of the arrays on which CuPy's operations are called. For arrays of a few hundred entries CuPy compiles
#: other kernels, which larger systems do not use.
ENTRIES = 2000
#: What has been listed in this process: kind of solve, types and device.
_LISTED: set[tuple[str, Any, Any, int]] = set()


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
    if kernel_set.source.stem.endswith("columns"):
        kind = COLUMNS
    else:  # before `solve` chooses, which is mostly multigrid, it measures the features of the matrix
        kind = HIERARCHY if kernel_set.source.parent.name in ("multigrid", "tuning") else SOLVE
    usual = USUAL | {name: choice for name, choice in macros.items() if name in USUAL}
    usual |= {name: np.dtype(usual[name]) for name in ("OFFSET", "VALUE")}
    usual["SINGLE"] = single(usual["VALUE"])
    key = (kind, usual["OFFSET"], usual["VALUE"], device)
    if key in _LISTED:
        return []
    if device not in {listed[-1] for listed in _LISTED}:
        _call_operations(device)
    _LISTED.add(key)
    lines = kind.split("\n")
    variants = [variant for line in lines if line for variant in _variants(line, usual)]
    return [variant for number, variant in enumerate(variants) if variant not in variants[:number]]


def _variants(line: str, usual: dict[str, Any]) -> list[tuple[KernelSet, dict[str, Any]]]:
    """The variants of one line, one for each combination of choices."""
    module, *words = line.split()
    names, choices = [], []
    for word in words:
        name, _, chosen = word.partition("=")
        names.append(name)
        choices.append([_choice(each, usual) for each in (chosen or name).split(",")])
    kernel_set = importlib.import_module(f"mcprecond.{module}").KERNELS
    return [(kernel_set, dict(zip(names, combination, strict=True))) for combination in itertools.product(*choices)]


def _choice(word: str, usual: dict[str, Any]) -> Any:
    return usual[word] if word in usual else choice_of(word)


def _call_operations(device: int) -> None:
    """On small arrays, call the operations of CuPy for each of which it compiles a kernel, in a thread."""
    import cupy

    def call() -> None:
        # Where memory is short, say: the solve will meet that itself.
        with contextlib.suppress(Exception), cupy.cuda.Device(device), cupy.cuda.Stream(non_blocking=True):
            for operation in operations(cupy):
                if not threading.main_thread().is_alive():  # the process waits for this thread before it ends
                    return
                operation()

    threading.Thread(target=call, name="mcprecond-cupy").start()


def operations(xp: Any) -> list[Callable[[], Any]]:
    """What to call of CuPy, in the order in which a first solve does."""
    kinds = "int32", "int64", "uint8", "bool", "float32", "float64"
    ints, longs, bytes_, mask, singles, doubles = (xp.zeros(ENTRIES, kind) for kind in kinds)
    number, square = xp.zeros(()), xp.eye(2)
    return [
        lambda: xp.arange(2, dtype="int32"),
        lambda: longs.astype("int32"),
        lambda: ints.astype("uint8"),
        lambda: bytes_.copy(order="F"),
        lambda: bytes_.__setitem__(slice(None), 1),
        lambda: xp.flatnonzero(mask),
        lambda: ints[longs],
        lambda: ints.__setitem__(longs, ints),
        lambda: xp.searchsorted(ints, ints),
        lambda: xp.full(2, 1.0),
        lambda: xp.full(2, 1, "int64"),
        lambda: abs(doubles),
        # The setup of a hierarchy needs these,
        lambda: xp.tile(xp.eye(1), (2, 1)),
        lambda: ints.__setitem__(slice(1), ints[:1]),
        lambda: doubles.__setitem__(slice(1), doubles[:1]),
        lambda: singles.astype("float64"),
        lambda: doubles.astype("float32"),
        lambda: xp.tril(square),
        lambda: square.diagonal().copy(),
        lambda: xp.asfortranarray(square),
        lambda: xp.full(2, 1, "int32"),
        # CG and its estimates of errors these,
        lambda: longs[:1].reshape(()).fill(0),
        lambda: number.fill(0.0),
        lambda: longs.fill(0),
        lambda: 2.0 * doubles,
        lambda: xp.sqrt(doubles),
        lambda: doubles * doubles,
        lambda: doubles**2,
        lambda: doubles > 0.0,
        lambda: xp.where(mask, doubles, 1.0),
        lambda: doubles / doubles,
        lambda: doubles + doubles,
        # colorings and the storage by colors these,
        lambda: ints.__setitem__(ints, ints),
        lambda: xp.full(2, 1, "uint8"),
        lambda: xp.ones(2, "bool"),
        lambda: xp.ones(2, "int32"),
        lambda: doubles[ints],
        lambda: ints[ints],
        lambda: ints - ints,
        lambda: ints + ints,
        lambda: 1 + ints,
        lambda: ints == ints,
        # factorizations these,
        lambda: longs >> 32,
        lambda: longs - 1,
        lambda: xp.less(ints, ints, out=mask),
        lambda: mask.__setitem__(ints, False),
        lambda: xp.cumsum(longs),
        # and the checks of a matrix, such as that of its symmetry, these.
        lambda: xp.where(number > 0.0, number, 1.0),
        lambda: xp.where(mask, doubles, number),
        lambda: 1.0 / doubles,
        lambda: abs(number - number) <= 2.0 * number,
        lambda: doubles == 0.0,
        lambda: xp.sqrt(number),
        lambda: doubles > doubles,
        lambda: doubles / 2.0,
        lambda: doubles / number,
        lambda: doubles * 2.0,
    ]
