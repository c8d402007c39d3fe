"""CUDA kernels without a GPU: compiled as C++, their threads taking turns. A pytest plugin.

    make test-emulated
    python -m pytest -p emulated -m "not gpu" tests/preconditioners/test_smooth.py

The text of the kernels is compiled as it is, behind tests/emulated.hpp, which has CUDA's keywords as macros and its
functions, and with tests/emulated_ptx.hpp in the place of mcprecond/cuda/ptx.cuh, which has all inline assembly. So
`__shared__` becomes `static`, whence blocks run one after the other. A launch is no text of the package: CuPy does it
there, and a template of emulated.hpp here.

Where a test asks for the CPU it gets a device of one multiprocessor, whose arrays are NumPy's: colorings, storage,
sweeps, preconditioners, solvers and multigrid take the way of a GPU, and run the kernels of their .cu files, but with
one block at a time. Problems are made as on a CPU. What is not emulated: blocks that run at once, caches, weak ordering
of memory, and speed. It needs Linux and g++.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import mcprecond.backends
from mcprecond.backends import KernelSet
from mcprecond.backends.cpu import CpuBackend
from mcprecond.backends.cuda_source import BLOCK, WARP, cuda_source
from mcprecond.backends.gpu import compile_options
from mcprecond.backends.kernels import Kernels

PACKAGE = Path(mcprecond.__file__).parent
HEADER = Path(__file__).with_name("emulated.hpp")
REPLACED = {"cuda/ptx.cuh": Path(__file__).with_name("emulated_ptx.hpp")}
FOLDER = Path(__file__).resolve().parent.parent / ".emulated"
EMULATED = (
    "matrix.cu",
    "linalg",
    "coloring",
    "ordering",
    "storage",
    "sweeps",
    "tuning",
    "preconditioners",
    "solvers",
    "multigrid",
)
OPTIONS = (
    "-O1",
    "-U_FORTIFY_SOURCE",
    "-fPIC",
    "-shared",
    "-w",
    "-fpermissive",
    "-fno-strict-aliasing",
    "-ffp-contract=off",
    "-fvisibility=hidden",
    "-fno-gnu-unique",  # variants have functions of the same names
)


@cache
def compiled(kernel_set: KernelSet, options: tuple[str, ...]) -> ctypes.CDLL:
    """One variant of a kernel set, from a folder of those that were compiled before."""
    shown = '__attribute__((visibility("default")))'
    exports = (
        f'extern "C" {{ {shown} void* launch_{name} = (void*)&Launch<&{name}>::run; }}' for name in kernel_set.functions
    )
    text = "\n".join((HEADER.read_text(), cuda_source(kernel_set.source, REPLACED), *exports))
    FOLDER.mkdir(exist_ok=True)
    library = FOLDER / (hashlib.sha256("\n".join((text, *options)).encode()).hexdigest() + ".so")
    if not library.exists():
        made, source = (library.with_suffix(f".{os.getpid()}.{kind}") for kind in ("so", "cpp"))
        source.write_text(text)
        subprocess.run(["g++", *OPTIONS, *options, str(source), "-o", str(made)], check=True)
        made.rename(library)
    return ctypes.CDLL(str(library))


def argument(value: Any) -> Any:
    """A kernel's argument, as CuPy passes it."""
    if isinstance(value, ctypes.Structure):
        return value
    if isinstance(value, np.ndarray):
        assert value.flags.c_contiguous or value.ndim > 1  # some columns of a vector
        return ctypes.c_void_p(value.ctypes.data)
    return ctypes.c_double(value) if isinstance(value, float) else ctypes.c_longlong(value)


class EmulatedBackend(CpuBackend):
    """See `Backend`."""

    resident_warps = BLOCK // WARP
    most_blocks = 1
    shared_cache = 1 << 30

    def record(self, fields: tuple[Any, ...], of_cuda: tuple[Any, ...] = ()) -> tuple[Any, ...]:
        words = [argument(field) for field in fields + of_cuda]
        types = [(f"word{number}", type(word)) for number, word in enumerate(words)]
        struct = type("Record", (ctypes.Structure,), {"_fields_": types})
        return (struct(*words),)

    def kernels(self, kernel_set: KernelSet, **macros: Any) -> Any:
        if kernel_set.source.relative_to(PACKAGE).parts[0] not in EMULATED:
            return super().kernels(kernel_set, **macros)
        library = compiled(kernel_set, compile_options(kernel_set.select_macros(macros)))
        lanes = macros.get("LANES", 1)

        def launcher(name: str, most_blocks: int) -> Callable[..., None]:
            address = ctypes.c_void_p.in_dll(library, f"launch_{name}").value

            def launch(items: int, *args: Any) -> None:
                blocks = min(-(-items * lanes // BLOCK), most_blocks)
                if blocks:
                    passed = [ctypes.c_uint(blocks), *map(argument, (items, *args))]
                    ctypes.CFUNCTYPE(None, *map(type, passed))(address)(*passed)

            return launch

        most = {"per_item": 2**31, "strided": 1, "resident": 1}
        launchers = {name: launcher(name, most[side.launch]) for name, side in kernel_set.functions.items()}
        return Kernels(launchers, self, kernel_set, macros)


def pytest_configure() -> None:
    """Let it stand for the CPU."""
    mcprecond.backends._CPU = EmulatedBackend()
