"""The cost model: how long an iteration of PCG and a coloring take, from a few speeds of the device.

For a matrix with n rows, e entries and values of s bytes, and c colors:

    iteration = (e (s + 4) + 30 s n (1 - 1 / c) + 2 s n f c) / bandwidth + (2 c - 1) step + start

An iteration reads the matrix, a column index for each value, and once some 30 numbers per row: vectors, permutation,
diagonal and offsets; but hardly any in the first color's rows, which Eisenstat's form keeps apart, a c-th of all if
colors are alike. The last two terms are those of c colors: each reads much of the vector again, of which the share
f = min(1, s n / cache) comes from memory, and each waits for the one before it. On the GPU of the record this is within
a fifth of what was measured for all matrices and colorings of `benchmarks/results/sweeps-gpu.json`, as a test asserts.

The time of a coloring is a start, a time per entry, more of it where degrees differ much, and for first-fit in row
order on a GPU a time per front: fronts follow one another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache

from mcprecond.backends import Backend

ROW_VALUES = 30


@dataclass(frozen=True)
class Degrees:
    """What the time of a coloring depends on.

    Attributes
    ----------
    n, entries : int
        Of the graph.
    longest : float
        Its longest row, with the diagonal.
    """

    n: int
    entries: int
    longest: float

    @property
    def skew(self) -> float:
        """log2 of the longest row over the mean."""
        return math.log2(max(self.longest * self.n / self.entries, 1.0)) if self.entries else 0.0


@dataclass(frozen=True)
class ColoringSpeed:
    """Seconds that a coloring takes to start, per entry, more per entry times skew squared, and per front."""

    start: float
    per_entry: float
    per_skew: float
    per_front: float = 0.0

    def seconds(self, degrees: Degrees, fronts: int = 0) -> float:
        """For a graph; at least, unless the fronts are known."""
        per_entry = self.per_entry + self.per_skew * degrees.skew**2
        return self.start + degrees.entries * per_entry + fronts * self.per_front

    def on(self, faster: float) -> ColoringSpeed:
        """The same where memory is so many times as fast; steps take as long."""
        return replace(self, per_entry=self.per_entry / faster, per_skew=self.per_skew / faster)


@dataclass(frozen=True)
class Work:
    """Seconds that something takes to start, per entry of a matrix and per row, for values of 8 bytes."""

    start: float
    per_entry: float
    per_row: float

    def seconds(self, n: int, entries: int, value_bytes: int) -> float:
        """For a matrix; a column index of 4 bytes goes with each value."""
        return self.start + self.per_entry * entries * (value_bytes + 4) / 12 + self.per_row * n * value_bytes / 8

    def on(self, faster: float) -> Work:
        """The same where memory is so many times as fast."""
        return Work(self.start, self.per_entry / faster, self.per_row / faster)


@dataclass(frozen=True)
class Speeds:
    """Bytes per second, bytes, and seconds that were measured on a device; its candidates, by their names; the setup of
    preconditioners and an iteration of CG with them.
    """

    bandwidth: float
    cache: float
    step: float
    start: float
    colorings: dict[str, ColoringSpeed]
    work: dict[str, tuple[Work, Work]]

    def iteration_seconds(self, n: int, entries: int, value_bytes: int, n_colors: float, block_size: int = 1) -> float:
        """An iteration of PCG with so many colors; the entries of a block share a column index."""
        vector = value_bytes * n
        traffic = entries * (value_bytes + 4 / block_size**2) + ROW_VALUES * vector * (1 - 1 / max(n_colors, 2))
        traffic += 2 * vector * n_colors * min(1.0, vector / self.cache)
        return traffic / self.bandwidth + (2 * n_colors - 1) * self.step + self.start


NOTHING = Work(0, 0, 0)
#: Measured on an H200, and on two cores of a server.
MEASURED = {
    "gpu": Speeds(
        bandwidth=4.75e12,
        cache=50e6,
        step=1.2e-6,
        start=11e-6,
        colorings={
            "ecl_gc": ColoringSpeed(0.06e-3, 11e-12, 0.45e-12),
            "greedy": ColoringSpeed(0.1e-3, 7e-12, 8e-12, per_front=1e-6),
        },
        work={
            "none": (NOTHING, Work(13.5e-6, 4.4e-12, 26e-12)),
            "Jacobi": (Work(0.15e-3, 0, 0), Work(15e-6, 4.4e-12, 34e-12)),
            "SGS": (Work(3.3e-3, 0, 1.5e-9), NOTHING),
            "multigrid": (Work(5.8e-3, 0.33e-9, 1e-9), Work(0.17e-3, 18e-12, 0.15e-9)),
        },
    ),
    "cpu": Speeds(
        bandwidth=24e9,
        cache=32e6,
        step=20e-6,
        start=20e-6,
        colorings={
            "ecl_gc": ColoringSpeed(0.3e-3, 9.5e-9, 0.1e-9),
            "greedy": ColoringSpeed(20e-6, 1.1e-9, 0.02e-9),
        },
        work={
            "none": (NOTHING, Work(15e-6, 0.36e-9, 2.45e-9)),
            "Jacobi": (Work(0.2e-3, 0, 5e-9), Work(15e-6, 0.36e-9, 3.1e-9)),
            "SGS": (Work(2e-3, 10e-9, 50e-9), Work(25e-6, 0.55e-9, 2.3e-9)),
            "multigrid": (Work(2e-3, 29e-9, 340e-9), Work(80e-6, 1.3e-9, 25e-9)),
        },
    ),
}
#: What the H200 says of itself: bytes per second, and of its L2 cache.
H200 = 4.92e12, 60 * 2**20


def speeds_of(backend: Backend) -> Speeds:
    """The speeds of the device in use: of a GPU those of the H200, in proportion to memory and cache."""
    return scaled_speeds(backend.name, backend.memory_speed, backend.shared_cache)


@cache
def scaled_speeds(name: str, memory_speed: float, shared_cache: float) -> Speeds:
    """Those of a device with this memory and cache."""
    measured = MEASURED[name]
    if not memory_speed:
        return measured
    faster = memory_speed / H200[0]
    return replace(
        measured,
        bandwidth=faster * measured.bandwidth,
        cache=shared_cache / H200[1] * measured.cache,
        colorings={name: speed.on(faster) for name, speed in measured.colorings.items()},
        work={name: (setup.on(faster), one.on(faster)) for name, (setup, one) in measured.work.items()},
    )
