"""Vectors from the order of the matrix into that of the colors and back.

Both go through the rows in the order of the matrix, which touches all colors at once, each of them in its order: memory
is read and written in whole lines. Going through the rows color by color touches every line once per color.
"""

from __future__ import annotations

from mcprecond.backends import KernelSet

KERNELS = KernelSet(__file__, "VALUE RHS=1 BLOCK_SIZE=1 TRUNCATED_VECTORS=0")


@KERNELS.per_item
def to_color_order(first, end, inverse, r, ordered):
    """Row i of r becomes row inverse[i]."""
    for i in range(first, end):
        for c in range(r.shape[1]):
            ordered[inverse[i], c] = r[i, c]


@KERNELS.per_item
def to_row_order(first, end, inverse, ordered, z):
    """The same, back."""
    for i in range(first, end):
        for c in range(z.shape[1]):
            z[i, c] = ordered[inverse[i], c]
