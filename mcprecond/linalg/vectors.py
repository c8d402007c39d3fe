"""Sums of vectors as kernels, which may be captured."""

from __future__ import annotations

from mcprecond.backends import NUMBERS, KernelSet

KERNELS = KernelSet(__file__, "VALUE")


@KERNELS.per_item(grain=NUMBERS)
def add(first, end, factor, x, y):
    """y += factor x."""
    for i in range(first, end):
        y[i] += y.real.dtype.type(factor) * x[i]
