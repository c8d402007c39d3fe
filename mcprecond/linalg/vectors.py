"""Sums of vectors as kernels, which may be captured; and vectors of signs."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import NUMBERS, KernelSet

KERNELS = KernelSet(__file__, "VALUE")


@KERNELS.per_item(grain=NUMBERS)
def add(first, end, factor, x, y):
    """y += factor x."""
    for i in range(first, end):
        y[i] += y.real.dtype.type(factor) * x[i]


def signs(n: int, seed: int, xp: Any) -> Any:
    """A vector of 1 and -1 in double precision that has no pattern."""
    k = xp.arange(seed * n, (seed + 1) * n).astype(np.uint32) * np.uint32(0x9E3779B1)
    k = (k ^ (k >> np.uint32(15))) * np.uint32(0x2C1B3C6D)
    return ((k >> np.uint32(17)) & np.uint32(1)) * 2.0 - 1
