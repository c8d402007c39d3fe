"""The fingerprint of a matrix: one pass over its entries says whether the same entries are stored.

Hashes of 64 bits tell patterns and values apart; the same pass counts what is not finite and finds the range of the
magnitudes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mcprecond.backends import NUMBERS, Backend, KernelSet, compile_loop, compile_row
from mcprecond.backends.hashing import mix64
from mcprecond.backends.team.atomics import atomic_max

KERNELS = KernelSet(__file__, "OFFSET VALUE")

#: How many updates share one fill with zeros.
UPDATES_PER_FILL = 16
INFINITY = 0x7FF0000000000000  # the bits of an infinite double
#: The bits of the largest and of the smallest normal float32, as doubles: what fits into float32 storage.
LARGEST_FLOAT, SMALLEST_FLOAT = (
    int(np.float64(number).view(np.int64)) for number in (np.finfo(np.float32).max, np.finfo(np.float32).tiny)
)


class Fingerprint(NamedTuple):
    """What one pass over a matrix finds.

    Attributes
    ----------
    pattern, all : int
        Hashes of the pattern, and of the pattern with the values.
    not_finite : int
        How many values are infinite or NaN.
    no_pivots : int
        How many entries of the diagonal, or blocks of it, have no inverse. Counted where values are stored.
    largest, smallest : int
        The largest magnitude of a value, or of a part of a complex one, as the bits of a double; and the smallest one
        but zero, as how far its bits lie below those of infinity. 0 if there is none; both are found only where
        storage has fewer bytes than values.
    """

    pattern: int
    all: int
    not_finite: int
    no_pivots: int
    largest: int
    smallest: int

    @property
    def magnitudes(self) -> tuple[float, float]:
        """The smallest one but zero, and the largest one."""
        smallest, largest = np.array([INFINITY - self.smallest, self.largest], np.int64).view(np.float64).tolist()
        return smallest, largest


#: Where the fields are in the array that kernels write.
PATTERN, ALL, NOT_FINITE, NO_PIVOTS, LARGEST, SMALLEST = range(len(Fingerprint._fields))
CUDA_CONSTANTS = {name.upper(): place for place, name in enumerate(Fingerprint._fields)} | {
    "INFINITY_BITS": INFINITY,
    "LARGEST_FLOAT": LARGEST_FLOAT,
    "SMALLEST_FLOAT": SMALLEST_FLOAT,
}


class Fingerprints:
    """Take fingerprints of matrices of one offset type and dtype.

    Parameters
    ----------
    backend : Backend
    offset, dtype : dtype
        Of row offsets and of values.
    ranges : bool
        Whether the range of the magnitudes is found, too.
    """

    def __init__(self, backend: Backend, offset: Any, dtype: Any, ranges: bool) -> None:
        self.backend, self._ranges = backend, ranges
        self._run = backend.kernels(KERNELS, OFFSET=offset, VALUE=dtype)
        self._zeros: list[Any] = []

    def enqueue(self, n: int, indptr: Any, indices: Any, values: Any, words: Any = None) -> Any:
        """Launch the pass, and return the array into which it writes: `words`, which holds zeros, or a new one."""
        words = self.backend.xp.zeros(len(Fingerprint._fields), np.int64) if words is None else words
        self._run.fingerprint(indices.size, n, indptr, indices, values, words)
        if self._ranges:
            self._run.find_range(indices.size, values, words)
        return words

    def zeros(self) -> Any:
        """Return zeros for an update: many by one fill, which takes as long as a launch.

        Not for a comparison, which may be asked for on another stream than the fill.
        """
        if not self._zeros:
            self._zeros = list(self.backend.xp.zeros((UPDATES_PER_FILL, len(Fingerprint._fields)), np.int64))
        return self._zeros.pop()

    def read(self, words: Any) -> Fingerprint:
        """Wait for the pass, and read what it has found."""
        return Fingerprint(*self.backend.to_host(words).tolist())


@compile_row
def bits(x):
    """The bits of a real number as a double, which tells floats apart, too."""
    return np.float64(x).view(np.uint64)


@KERNELS.strided
def fingerprint(entries, n, indptr, indices, values, found):
    """Hash the pattern, and the pattern with the values; count what is not finite."""
    offsets = hash_offsets(0, n + 1, indptr)
    pattern, both, not_finite = hash_entries(0, entries, indices, values)
    found[PATTERN] = np.int64(offsets + pattern)
    found[ALL] = np.int64(offsets + pattern + both)
    found[NOT_FINITE] = np.int64(not_finite)


@compile_loop(grain=NUMBERS)
def hash_offsets(first, end, indptr):
    """The share of the row offsets in the hash of the pattern."""
    pattern = np.uint64(0)
    for i in range(first, end):
        pattern += mix64(mix64(np.uint64(i)) ^ np.uint64(indptr[i]))
    return pattern


@compile_loop(grain=NUMBERS)
def hash_entries(first, end, indices, values):
    """The share of the entries in the hash of the pattern; their hash with values; how many values are not finite."""
    pattern, both, not_finite = np.uint64(0), np.uint64(0), np.uint64(0)
    for k in range(first, end):
        entry = mix64((np.uint64(k) << np.uint64(32)) ^ np.uint64(indices[k]))
        pattern += entry
        entry = mix64(entry ^ bits(values[k].real))
        if np.iscomplexobj(values):
            entry = mix64(entry ^ bits(values[k].imag))
        both += entry
        not_finite += np.uint64(not np.isfinite(values[k]))
    return pattern, both, not_finite


@KERNELS.strided
def find_range(entries, values, found):
    """The range of the magnitudes of values, as `Fingerprint` has it."""
    raise_range(0, entries, values, found)


@compile_loop(grain=NUMBERS)
def raise_range(first, end, values, found):
    """The entries of `find_range`. The bits of numbers from 0 on rise with them."""
    largest, smallest = 0.0, np.inf
    for k in range(first, end):
        low, high = np.float64(abs(values[k].real)), np.float64(abs(values[k].imag))
        largest = max(largest, max(low, high))
        smallest = min(smallest, min(low if low > 0 else np.inf, high if high > 0 else np.inf))
    atomic_max(found, LARGEST, np.float64(largest).view(np.int64))
    atomic_max(found, SMALLEST, INFINITY - np.float64(smallest).view(np.int64))
