"""Vectors from the order of the matrix into color order and back.

Both ways go through the rows in the order of the matrix, which touches all colors at once, each color in its order:
memory is read and written in whole lines. Going through the rows color by color touches every line once per color.
"""

from __future__ import annotations

from mcprecond.backends import KernelSet
from mcprecond.sweeps.triangular import copy_node

KERNELS = KernelSet(__file__, "VALUE RHS=1 BLOCK_SIZE=1 TRUNCATED_VECTORS=0 PITCHED=0")


@KERNELS.per_item
def to_color_order(first, end, inverse, pitch, r, ordered):
    """Row i of r becomes row inverse[i]."""
    for i in range(first, end):
        if r.ndim == 2:
            for c in range(r.shape[1]):
                ordered[inverse[i], c] = r[i, c]
        else:
            copy_node(r, i, ordered, inverse[i])


@KERNELS.per_item
def to_row_order(first, end, inverse, ordered, pitch, z):
    """Row inverse[i] of `ordered` becomes row i of z."""
    for i in range(first, end):
        if z.ndim == 2:
            for c in range(z.shape[1]):
                z[i, c] = ordered[inverse[i], c]
        else:
            copy_node(ordered, inverse[i], z, i)
