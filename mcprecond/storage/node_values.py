"""The numbers of blocks of nodes: taken from A into the order of node_blocks.py, and the diagonal's inverses.

On a GPU each slice is the work of a block of threads. It reads its rows of A once, from one end to the other, and keeps
them in shared memory, since entries that a slice stores one after the other lie far apart in their row of A.
"""

from __future__ import annotations

import numpy as np

from mcprecond.backends import ROWS, KernelSet, compile_loop, compile_row
from mcprecond.backends.cuda_source import BLOCK
from mcprecond.backends.sorting import lower_bound
from mcprecond.storage.fingerprint import NO_PIVOTS
from mcprecond.storage.values import are_taken

KERNELS = KernelSet(__file__, "OFFSET VALUE STORED SOURCE BLOCK_SIZE (LANES)")

#: LANES of these kernels: a block of threads.
THREADS_PER_SLICE = BLOCK


@compile_row
def copy_block(row, column, indptr, indices, values, block):
    """The block of A in a row and a column of nodes."""
    b = len(block)
    for p in range(b):
        for q in range(b):
            block[p, q] = 0
        begin, end = indptr[row * b + p], indptr[row * b + p + 1]
        k = lower_bound(indices, begin, end, column * b)
        while k < end and indices[k] // b == column:
            block[p, indices[k] % b] = values[k]
            k += 1


@compile_row
def copy_full_block(row, number, indptr, values, block):
    """Block `number` of a row of nodes without holes."""
    b = len(block)
    for p in range(b):
        for q in range(b):
            block[p, q] = values[indptr[row * b + p] + number * b + q]


@compile_row
def fill_row(i, block_indptr, columns, source, blocks, perm, full, indptr, indices, values):
    """The blocks of a triangle in a row of nodes."""
    for e in range(block_indptr[i], block_indptr[i + 1]):
        if full:
            copy_full_block(perm[i], source[e], indptr, values, blocks[e])
        else:
            copy_block(perm[i], perm[columns[e]], indptr, indices, values, blocks[e])


@KERNELS.per_item_driver
def fill_blocks(
    n_slices,
    slices,
    lower_indptr,
    lower_columns,
    lower_source,
    lower,
    upper_indptr,
    upper_columns,
    upper_source,
    upper,
    diagonal_source,
    diagonal,
    perm,
    full,
    indptr,
    indices,
    values,
    expected,
    found,
):
    """The blocks of both triangles and of the diagonal."""
    if not are_taken(expected, found, lower.itemsize < values.itemsize):
        return
    fill_rows(
        0,
        slices[n_slices],
        lower_indptr,
        lower_columns,
        lower_source,
        lower,
        upper_indptr,
        upper_columns,
        upper_source,
        upper,
        diagonal_source,
        diagonal,
        perm,
        full,
        indptr,
        indices,
        values,
    )


@compile_loop(grain=ROWS // 8)
def fill_rows(
    first,
    end,
    lower_indptr,
    lower_columns,
    lower_source,
    lower,
    upper_indptr,
    upper_columns,
    upper_source,
    upper,
    diagonal_source,
    diagonal,
    perm,
    full,
    indptr,
    indices,
    values,
):
    """The rows of `fill_blocks`."""
    b = diagonal.shape[1]
    for i in range(first, end):
        fill_row(i, lower_indptr, lower_columns, lower_source, lower, perm, full, indptr, indices, values)
        fill_row(i, upper_indptr, upper_columns, upper_source, upper, perm, full, indptr, indices, values)
        entries = np.int64(indptr[b * perm[i] + 1] - indptr[b * perm[i]])
        if full and diagonal_source[i] < entries // b:
            copy_full_block(perm[i], diagonal_source[i], indptr, values, diagonal[i])
        else:  # also where there is none: zeros
            copy_block(perm[i], perm[i], indptr, indices, values, diagonal[i])


@compile_row
def invert_block(block, rest, inverse):
    """Write the inverse of a block, by elimination with row pivots in `rest`, and return whether it is finite."""
    b = len(block)
    for p in range(b):
        for q in range(b):
            rest[p, q], inverse[p, q] = block[p, q], p == q
    for c in range(b):
        best = c
        for p in range(c + 1, b):
            if abs(rest[p, c]) > abs(rest[best, c]):
                best = p
        pivot = rest[best, c]
        for q in range(b):
            rest[c, q], rest[best, q] = rest[best, q], rest[c, q]
            inverse[c, q], inverse[best, q] = inverse[best, q], inverse[c, q]
        for q in range(b):  # where the pivot is zero, nothing of this row is finite any more
            rest[c, q] /= pivot
            inverse[c, q] /= pivot
        for p in range(b):
            factor = rest[p, c]
            if p != c:
                for q in range(b):
                    rest[p, q] -= factor * rest[c, q]
                    inverse[p, q] -= factor * inverse[c, q]
    finite = True
    for p in range(b):
        for q in range(b):
            finite &= np.isfinite(inverse[p, q])
    return finite


@KERNELS.strided
def invert_diagonal(n_nodes, diagonal, dinv, expected, found):
    """The inverses of the diagonal's blocks; count the singular ones."""
    if not are_taken(expected, found, False):
        return
    found[NO_PIVOTS] = invert_blocks(0, n_nodes, diagonal, dinv)


@compile_loop
def invert_blocks(first, end, diagonal, dinv):
    """The blocks of `invert_diagonal`."""
    count, rest = 0, np.empty_like(diagonal[0])
    for i in range(first, end):
        count += not invert_block(diagonal[i], rest, dinv[i])
    return count
