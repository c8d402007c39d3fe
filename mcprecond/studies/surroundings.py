"""What a report of a bug has to say about where the package runs: `mcprecond info` prints it."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from mcprecond.backends import cubins, get_backend, gpu_problem
from mcprecond.backends.drivers import cuda_of_driver
from mcprecond.backends.first_use import cupy_folder, numba_folder
from mcprecond.backends.hashing import mix64
from mcprecond.backends.memory import available_bytes
from mcprecond.backends.team import get_threads
from mcprecond.backends.threads import allowed_cpus
from mcprecond.problems.suitesparse import default_cache
from mcprecond.studies.measure import processor
from mcprecond.version import __version__

#: What computes, and what is computed with where it is there; CuPy's wheels have several names.
PACKAGES = {
    name: (name,) for name in ("numpy", "scipy", "numba", "llvmlite", "pyamg", "matplotlib", "scikit-fem", "petsc4py")
} | {"graphblas": ("python-graphblas",), "cupy": ("cupy-cuda13x", "cupy-cuda12x", "cupy")}
#: Variables of the environment that change how the package runs begin with one of these.
SETTINGS = ("MCPRECOND_", "NUMBA_", "OMP_", "KMP_", "MKL_", "OPENBLAS_", "CUPY_", "CUDA_")
#: Where the driver of NVIDIA says on Linux which one it is.
DRIVER = Path("/proc/driver/nvidia/version")


def surroundings() -> dict[str, str]:
    """Return versions, the machine, the GPU or why none can be used, settings, and the folders of caches.

    Returns
    -------
    dict of str
        By what each is called. Nothing is compiled.
    """
    facts = {"mcprecond": __version__, "python": f"{platform.python_version()}, {sys.executable}"}
    facts |= {name: find_version(*distributions) for name, distributions in PACKAGES.items()}
    facts |= {
        "platform": platform.platform(),
        "cpu": processor(),
        "cpus": f"{os.cpu_count()}, {allowed_cpus()} for this process",
        "cpu_threads": str(get_threads()),
        "memory": f"{in_gib(available_bytes(get_backend('cpu')))} available",
    }
    facts |= {"gpu": problem} if (problem := gpu_problem()) else facts_of_gpu()
    facts |= facts_of_driver() | facts_of_compiler()
    set_ = {name: value for name, value in sorted(os.environ.items()) if name.startswith(SETTINGS)}
    return facts | {
        "settings": " ".join(f"{name}={value}" for name, value in set_.items()) or "none",
        "numba_cache": numba_folder(mix64.stats.cache_path) or "none: no folder can be written",
        "cupy_cache": cupy_folder(),
        "matrix_cache": str(default_cache()),
    }


def find_version(*distributions: str) -> str:
    """The versions of packages that do the same; more than one of them is a mistake that should be seen."""
    found = {}
    for name in distributions:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    if len(distributions) == 1:
        return found.get(distributions[0], "not installed")
    return ", ".join(f"{number} ({name})" for name, number in found.items()) or "not installed"


def facts_of_gpu() -> dict[str, str]:
    """The current device, and the CUDA that CuPy computes with."""
    import cupy

    runtime = cupy.cuda.runtime
    device, count = cupy.cuda.Device().id, runtime.getDeviceCount()
    found = runtime.getDeviceProperties(device)
    return {
        "gpu": f"{found['name'].decode()}, number {device} of {count}, {in_gib(found['totalGlobalMem'])}, "
        f"compute capability {found['major']}.{found['minor']}",
        "cuda_runtime": cuda_version(runtime.runtimeGetVersion()),
    }


def facts_of_driver() -> dict[str, str]:
    """The driver and the CUDA that it is for, where there is a driver."""
    if not (newest := cuda_of_driver()):
        return {}
    number = re.search(r"\b\d+\.\d+(\.\d+)*\b", DRIVER.read_text()) if DRIVER.exists() else None
    return {"gpu_driver": f"{number[0] if number else 'unknown'}, for CUDA {cuda_version(newest)}"}


def facts_of_compiler() -> dict[str, str]:
    """The version of NVRTC and the folder of CUDA's headers, or what is missing, where CuPy can be imported."""
    try:
        import cupy
    except Exception:  # what CuPy or the libraries that it loads raise; `gpu_problem` says it
        return {}

    def version_of_nvrtc() -> str:
        cubins.find_nvrtc()
        return ".".join(map(str, cupy.cuda.nvrtc.getVersion()))

    return {"nvrtc": found_or_problem(version_of_nvrtc), "cuda_headers": found_or_problem(cubins.find_headers)}


def found_or_problem(find: Callable[[], str]) -> str:
    """What a function finds, or why it finds nothing."""
    try:
        return find()
    except (ImportError, RuntimeError) as error:
        return str(error)


def cuda_version(number: int) -> str:
    """Write as CUDA does what it returns as 1000 times the first number and 10 times the second one.

    >>> cuda_version(12090)
    '12.9'
    """
    return f"{number // 1000}.{number % 1000 // 10}"


def in_gib(n_bytes: Any) -> str:
    """Write an amount of memory.

    >>> in_gib(3 << 29)
    '1.5 GiB'
    """
    return f"{n_bytes / 2**30:.1f} GiB"
