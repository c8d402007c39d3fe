"""Sums of vectors as kernels, which may be captured; and vectors of signs."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import NUMBERS, Backend, KernelSet

KERNELS = KernelSet(__file__, "VALUE")


@KERNELS.per_item(grain=NUMBERS)
def add(first, end, factor, x, y):
    """y += factor x."""
    for i in range(first, end):
        y[i] += y.real.dtype.type(factor) * x[i]


def signs(n: int, seed: int, backend: Backend) -> Any:
    """A vector of 1 and -1 in double precision that has no pattern."""
    found = backend.xp.empty(n)
    backend.kernels(KERNELS, VALUE=found.dtype).fill_with_signs(n, seed * n, found)
    return found


@KERNELS.per_item(grain=NUMBERS)
def fill_with_signs(first, end, begin, found):
    """A bit of a hash of the numbers from `begin` on."""
    for i in range(first, end):
        k = np.uint32(np.uint32(begin + i) * np.uint32(0x9E3779B1))
        k = np.uint32((k ^ (k >> np.uint32(15))) * np.uint32(0x2C1B3C6D))
        found[i] = 2.0 * (k >> np.uint32(17) & np.uint32(1)) - 1.0
