"""A step of polynomial smoothers: for one number of a vector, and on vectors of several columns. See polynomial.py."""

from __future__ import annotations

import numpy as np

from mcprecond.backends import KernelSet, compile_inlined, compile_loop
from mcprecond.linalg.columns import row_products

KERNELS = KernelSet(__file__, "OFFSET VALUE STORED LONG_ROWS=0")


@compile_inlined
def take_step(i, e, product, dinv, b, from_zero, x, alpha, beta, d, y):
    """d = alpha d + beta D (b - A x), and y = x + d, for number e of row i, where A x is `product`.

    The index e is i for vectors of one column, and i and the column for others. From zero A x is 0 and x is not read; d
    is not read if alpha is 0.
    """
    real = dinv.real.dtype.type
    move = real(beta) * (dinv[i] * (b[e] - product))
    if alpha != 0:
        move += real(alpha) * d[e]
    d[e] = move
    y[e] = move if from_zero else x[e] + move


@KERNELS.per_item_driver
def step(size, k, indptr, indices, values, dinv, b, from_zero, x, alpha, beta, d, y):
    """Y = X + D after D = alpha D + beta Dinv (B - A X); see `take_step`."""
    step_rows(0, len(y), indptr, indices, values, dinv, b, from_zero, x, alpha, beta, d, y)


@compile_loop
def step_rows(first, end, indptr, indices, values, dinv, b, from_zero, x, alpha, beta, d, y):
    """The rows of `step`."""
    sums = np.zeros((1, x.shape[1]), x.dtype)
    for i in range(first, end):
        if not from_zero:
            row_products(indptr[i], indptr[i + 1], indices, values, x, sums, 0)
        for c in range(x.shape[1]):
            take_step(i, (i, c), sums[0, c], dinv, b, from_zero, x, alpha, beta, d, y)
