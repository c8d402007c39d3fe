"""Times, and the record of what they were measured with."""

from __future__ import annotations

import datetime
import math
import os
import platform
import shlex
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import scipy

from mcprecond.backends.team import get_threads
from mcprecond.studies.sources import PACKAGE, code
from mcprecond.version import __version__

#: A shell's variable with the commit, where the sources were copied without their history.
COMMIT = "MCPRECOND_COMMIT"
#: So many times the distance of its quartiles may a time be wrong.
NOISE = 3


class Timing(NamedTuple):
    """Times of a call in seconds: their median, the largest less the smallest, and the first and the third quartile."""

    median: float
    spread: float
    quartiles: tuple[float, float]

    def __add__(self, other: Timing) -> Timing:  # type: ignore[override]
        """That of one call after the other; the quartiles are at least as far apart as those of the sums."""
        first, third = (sum(pair) for pair in zip(self.quartiles, other.quartiles, strict=True))
        return Timing(self.median + other.median, self.spread + other.spread, (first, third))

    def scale(self, factor: float) -> Timing:
        """That of so many calls, or in another unit."""
        first, third = self.quartiles
        return Timing(self.median * factor, self.spread * factor, (first * factor, third * factor))

    def exceeds(self, other: Timing) -> bool:
        """Whether a call takes longer than another one beyond the noise of both."""
        return self.median > other.median * (1 + math.hypot(self.noise, other.noise))

    @property
    def noise(self) -> float:
        """The share of the median that it is uncertain by: three times the distance of the quartiles."""
        return NOISE * (self.quartiles[1] - self.quartiles[0]) / self.median if self.median else 0.0

    @classmethod
    def of(cls, times: list[float]) -> Timing:
        """That of so many times, at least one."""
        first, _, third = statistics.quantiles(times, n=4, method="inclusive") if len(times) > 1 else times * 3
        return cls(statistics.median(times), max(times) - min(times), (first, third))

    def columns(self, name: str) -> dict[str, float]:
        """The cells of a table: the median under a name, and both quartiles beside it."""
        return {
            name: self.median,
            f"{name}_first_quartile": self.quartiles[0],
            f"{name}_third_quartile": self.quartiles[1],
        }


def count_columns(name: str, counts: Iterable[int | None]) -> dict[str, Any]:
    """The cells of a count that may differ from run to run, such as the colors of a method that races: the median under
    a name, and the least, the most and the mean beside it.
    """
    known = sorted(count for count in counts if count is not None)
    if not known:
        return {name: None}
    beside = {"least": known[0], "most": known[-1], "mean": statistics.fmean(known)}
    return {name: statistics.median_low(known)} | {f"{name}_{key}": value for key, value in beside.items()}


def time_calls(function: Callable[[], Any], synchronize: Callable[[], None], repeats: int) -> Timing:
    """Call once to warm up, then so many times, device work included."""
    function()
    times = []
    for _ in range(repeats):
        synchronize()
        started = time.perf_counter()
        function()
        synchronize()
        times.append(time.perf_counter() - started)
    return Timing.of(times)


def peak_bytes(function: Callable[[], Any], device: str) -> int:
    """The most memory that a call has allocated at a time: by NumPy on the CPU, by CuPy on a GPU."""
    if device == "cpu":
        tracemalloc.start()
        try:
            function()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    import cupy

    class Allocations(cupy.cuda.MemoryHook):
        name, now, peak = "allocations", 0, 0

        def malloc_postprocess(self, **told: Any) -> None:
            self.now += told["mem_size"]
            self.peak = max(self.peak, self.now)

        def free_preprocess(self, **told: Any) -> None:
            self.now -= told["mem_size"]

    with Allocations() as allocations:
        function()
    return int(allocations.peak)


def provenance(gpu: bool) -> dict[str, Any]:
    """What a file of results says of its run: when, where, by which command, and with what code."""
    return {
        "machine": machine(gpu),
        "versions": versions(gpu),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": command(),
        "others": others(),
        "commit": commit(),
        "code": code(gpu),
    }


def command() -> str:
    """The line that started this process, without the folders of this machine."""
    first, *others = sys.argv
    script = Path(first).resolve()
    shown = script.relative_to(PACKAGE.parent) if script.is_relative_to(PACKAGE.parent) else Path(script.name)
    names = [Path(word).name if Path(word).is_absolute() else word for word in others]
    if shown.name == "__main__.py":
        return shlex.join(["python", "-m", ".".join(shown.parent.parts), *names])
    by_python = shown.suffix == ".py" or script.is_dir()
    return shlex.join(["python", shown.as_posix(), *names] if by_python else [shown.name, *names])


def commit() -> str | None:
    """The commit of the sources, "and changes" if they are not as they are there; None where there is no history.

    The environment may name it, where the sources were copied without their history.
    """
    if named := os.environ.get(COMMIT):
        return named
    git = ["git", "-C", str(PACKAGE.parent)]
    try:
        found = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", str(PACKAGE)], check=False).returncode
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{found} and changes" if changed else found


def others() -> float | None:
    """How many processors other processes have kept busy since this module was imported; None if nothing tells."""
    if _STARTED is None or (now := clocks()) is None:
        return None
    passed, ours, all_of_them = (after - before for before, after in zip(_STARTED, now, strict=True))
    return max(0.0, round((all_of_them - ours) / passed, 2)) if passed else 0.0


def clocks() -> tuple[float, float, float] | None:
    """Seconds: on the wall, of processors for this process and those it has waited for, and for all."""
    try:
        words = Path("/proc/stat").read_text().split()[1:9]
    except OSError:
        return None
    user, nice, system, _idle, _waiting, irq, softirq, stolen = map(int, words)
    used = (user + nice + system + irq + softirq + stolen) / os.sysconf("SC_CLK_TCK")
    return time.monotonic(), sum(os.times()[:4]), used


_STARTED = clocks()


def machine(gpu: bool) -> dict[str, Any]:
    """Name the processor, how many cores and Numba's threads, and the GPU if it is asked for."""
    facts: dict[str, Any] = {"cpu": processor(), "cores": os.cpu_count(), "threads": get_threads()}
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
