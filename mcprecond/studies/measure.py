"""Times, and the record of what they were measured with."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import scipy

from mcprecond.version import __version__


class Timing(NamedTuple):
    """Wall times of a call in seconds: their median, and the largest less the smallest."""

    median: float
    spread: float


def timed(function: Callable[[], Any], synchronize: Callable[[], None], repeats: int) -> Timing:
    """Call once to warm up, then so many times, device work included."""
    function()
    times = []
    for _ in range(repeats):
        synchronize()
        started = time.perf_counter()
        function()
        synchronize()
        times.append(time.perf_counter() - started)
    return Timing(statistics.median(times), max(times) - min(times))


def machine(gpu: bool) -> dict[str, Any]:
    """Name the processor, how many cores and Numba's threads, and the GPU if it is asked for."""
    facts: dict[str, Any] = {"cpu": processor(), "cores": os.cpu_count(), "threads": numba.get_num_threads()}
    facts["gpu"] = None
    if gpu:
        import cupy

        facts["gpu"] = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    return facts


def versions(gpu: bool) -> dict[str, str]:
    """Versions of this package and of what computes for it, on the GPU too if that is asked for."""

    found = {"mcprecond": __version__, "python": platform.python_version(), "numpy": np.__version__}
    found |= {"scipy": scipy.__version__, "numba": numba.__version__}
    if gpu:
        import cupy

        found["cupy"] = cupy.__version__
        found["cuda"] = str(cupy.cuda.runtime.runtimeGetVersion())
        found["driver"] = str(cupy.cuda.runtime.driverGetVersion())
    return found


def processor() -> str:
    """The name of the processor, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
