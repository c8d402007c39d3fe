"""A step of polynomial smoothers on vectors of several columns; see polynomial.py."""

from __future__ import annotations

import numpy as np

from mcprecond.backends import KernelSet, compile_loop
from mcprecond.linalg.columns import row_products

KERNELS = KernelSet(__file__, "OFFSET VALUE STORED LONG_ROWS=0")


@KERNELS.per_item_driver
def step(
    size,
    k,
    indptr,
    indices,
    values,
    longest,
    n_long,
    n_pieces,
    plan,
    work,
    pitch,
    dinv,
    b,
    from_zero,
    x,
    alpha,
    beta,
    d,
    y,
):
    """D = alpha D + beta Dinv (B - A X), and Y = X + D; from zero X is not read, and D is not if alpha is 0."""
    step_rows(0, len(y), indptr, indices, values, dinv, b, from_zero, x, alpha, beta, d, y)


@compile_loop
def step_rows(first, end, indptr, indices, values, dinv, b, from_zero, x, alpha, beta, d, y):
    """The rows of `step`."""
    real = dinv.real.dtype.type
    sums = np.zeros((1, x.shape[1]), x.dtype)
    for i in range(first, end):
        if not from_zero:
            row_products(indptr[i], indptr[i + 1], indices, values, x, sums, 0)
        for c in range(x.shape[1]):
            move = real(beta) * (dinv[i] * (b[i, c] - sums[0, c]))
            if alpha != 0:
                move += real(alpha) * d[i, c]
            d[i, c] = move
            y[i, c] = move if from_zero else x[i, c] + move
