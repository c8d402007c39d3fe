"""Products of a sparse matrix with vectors of several columns: one pass over its entries serves all of them.

Vectors have the shape (n, k), in C order: the numbers that an entry multiplies lie together. On a GPU neighboring
threads compute neighboring columns of one row, from entries that their block has put into shared memory. On the CPU a
row is summed for eight or four columns at once.
"""

from __future__ import annotations

import numpy as np

from mcprecond.backends import KernelSet, compile_inlined, compile_loop
from mcprecond.backends.cuda_source import BLOCK
from mcprecond.backends.team.arithmetic import product_of_4, product_of_8

KERNELS = KernelSet(__file__, "OFFSET VALUE STORED ARGUMENT LONG_ROWS=0")

MOST_COLUMNS = BLOCK  # that a block of threads takes
LOADS = 4  # entries that a thread loads in a round
MOST_ROUNDS = 16  # most rounds in which a block loads the entries of its rows together
PIECE = 1024  # entries of a long row that a warp multiplies
CUDA_CONSTANTS = {"LOADS": LOADS, "MOST_ROUNDS": MOST_ROUNDS, "PIECE": PIECE}


@compile_inlined
def row_products(begin, end, indices, values, x, y, i):
    """Row i of y becomes a row of A, its entries from `begin` to `end` - 1, times x. The row of A is in the cache after
    the first columns.
    """
    k, c = y.shape[1], 0
    while c + 8 <= k:
        product_of_8(begin, end, indices, values, x, c, y, i)
        c += 8
    if c + 4 <= k:
        product_of_4(begin, end, indices, values, x, c, y, i)
        c += 4
    while c < k:
        total = x.dtype.type(0)
        for e in range(begin, end):
            total += values[e] * x[indices[e], c]
        y[i, c] = total
        c += 1


@KERNELS.per_item_driver
def multiply(size, k, indptr, indices, values, x, adds, y):
    """Y = A X, or Y += A X; `size` counts the numbers of Y."""
    multiply_rows(0, len(y), indptr, indices, values, x, adds, y)


@compile_loop
def multiply_rows(first, end, indptr, indices, values, x, adds, y):
    """The rows of `multiply`."""
    sums = np.empty((1, x.shape[1]), x.dtype)
    for i in range(first, end):
        row_products(indptr[i], indptr[i + 1], indices, values, x, sums, 0)
        for c in range(x.shape[1]):
            total = y.dtype.type(sums[0, c])
            y[i, c] = y[i, c] + total if adds else total


@KERNELS.per_item_driver
def residual(size, k, indptr, indices, values, b, x, r):
    """R = B - A X."""
    residual_rows(0, len(r), indptr, indices, values, b, x, r)


@compile_loop
def residual_rows(first, end, indptr, indices, values, b, x, r):
    """The rows of `residual`."""
    sums = np.empty((1, x.shape[1]), x.dtype)
    for i in range(first, end):
        row_products(indptr[i], indptr[i + 1], indices, values, x, sums, 0)
        for c in range(x.shape[1]):
            r[i, c] = b[i, c] - sums[0, c]
