"""Vectors from the order of the matrix into that of the colors and back.

Both go through the rows in the order of the matrix, which touches all colors at once, each of them in its order: memory
is read and written in whole lines. Going through the rows color by color touches every line once per color.
"""

from __future__ import annotations

from numba import prange

from mcprecond.backends import KernelSet

KERNELS = KernelSet(__file__)


@KERNELS.twin
def to_color_order(n, inverse, r, ordered):
    """Row i of r becomes row inverse[i]."""
    for i in prange(n):
        ordered[inverse[i]] = r[i]


@KERNELS.twin
def to_row_order(n, inverse, ordered, z):
    """The same, back."""
    for i in prange(n):
        z[i] = ordered[inverse[i]]
