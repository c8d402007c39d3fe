"""The kernels of the sweeps: substitution with the lower and the upper triangle, relaxation, and the residual.

A sweep is one kernel. Rows do not wait for colors but for values: the warps take the slices in color order and poll the
values that their rows need until these are ready. In substitution the last bit of a number is its epoch: a forward
sweep turns it from 0 to 1, and the backward sweep, whose results overwrite the forward sweep's, back to 0. So symmetric
substitution, which CG needs, leaves all epochs as the next one needs them. Relaxation needs the old values, too, and
writes to a second array, whose values begin as sentinels.

With pivots T, symmetric substitution solves with (T + w L) (I + w V), V = inv(T) U. The upper triangle is stored as V,
so that the backward sweep reads no pivots.

With nodes of b unknowns, a number of a vector becomes a row of b numbers, and a number of the matrix a b x b block.
Rows of the upper triangle are then not divided by their pivots.

On the CPU nothing is waited for: colors follow one another, and relaxation works in place. Vectors have the shape
(rows, right-hand sides), or (nodes, b, right-hand sides), in which a row serves one right-hand side after another,
while the cache still holds its blocks. Numba knows the number of dimensions when it compiles, and leaves out the
branches for the other number.
"""

from __future__ import annotations

import numpy as np

from mcprecond.backends import KernelSet, compile_inlined, compile_loop
from mcprecond.linalg.columns import row_products
from mcprecond.storage.layouts import LAYOUT_CHOICES

KERNELS = KernelSet(
    __file__,
    f"OFFSET VALUE STORED RHS=1 BLOCK_SIZE=1 {LAYOUT_CHOICES} "
    "TRUNCATED_VECTORS=0 LARGE_VECTORS=0 LARGE_MATRIX=0 PITCHED=0 (LANES)",
)

# c counts right-hand sides. `sums` is room for the sums of long rows, which CUDA needs. On the CPU z is not null: a row
# of blocks adds up its sums in z, which it writes anyway, before it multiplies them by its inverse block.


@compile_inlined
def product(i, c, indptr, columns, values, y):
    """Row i of a triangle times right-hand side c."""
    total = y.dtype.type(0)
    for k in range(indptr[i], indptr[i + 1]):
        total += values[k] * y[columns[k], c]
    return total


@compile_inlined
def node_products(i, c, indptr, columns, values, y, found, k):
    """Compute found_k = sum_j T_ij y_j, for right-hand side c if there are several."""
    b = y.shape[1]
    if b == 3:  # a constant, so that the compiler can unroll the loops
        node_rows(i, 0, 1, 2, 3, c, indptr, columns, values, y, found, k)
    else:
        for p in range(0, b, 3):
            node_rows(i, p, min(p + 1, b - 1), min(p + 2, b - 1), b, c, indptr, columns, values, y, found, k)


@compile_inlined
def node_rows(i, p, p2, p3, b, c, indptr, columns, values, y, found, k):
    """Compute numbers p, p2 and p3 of found_k. The processor adds to the three sums in parallel; within one sum, each
    addition has to wait for the one before it, which takes several cycles.
    """
    first = second = third = y.dtype.type(0)
    for entry in range(indptr[i], indptr[i + 1]):
        for q in range(b):
            factor = y[columns[entry], q, c] if y.ndim == 3 else y[columns[entry], q]
            first += values[entry, p, q] * factor
            second += values[entry, p2, q] * factor
            third += values[entry, p3, q] * factor
    if y.ndim == 3:
        found[k, p, c], found[k, p2, c], found[k, p3, c] = first, second, third
    else:
        found[k, p], found[k, p2], found[k, p3] = first, second, third


@compile_inlined
def copy_node(y, i, z, k):
    """z_k = y_i, for all right-hand sides."""
    for p in range(y.shape[1]):
        for c in range(y.shape[2]):
            z[k, p, c] = y[i, p, c]


@compile_inlined
def block_products(blocks, i, x, j, c, found, k):
    """Multiply x_j by the block of row i, for right-hand side c if there are several. The result is found_k, which must
    not be x_j.
    """
    b = x.shape[1]
    if b == 3:  # a constant, so that the compiler can unroll the loops
        block_rows(blocks, i, 3, x, j, c, found, k)
    else:
        block_rows(blocks, i, b, x, j, c, found, k)


@compile_inlined
def block_rows(blocks, i, b, x, j, c, found, k):
    """Do what `block_products` does, for blocks with b rows."""
    for p in range(b):
        total = x.dtype.type(0)
        for q in range(b):
            total += blocks[i, p, q] * (x[j, q, c] if x.ndim == 3 else x[j, q])
        if x.ndim == 3:
            found[k, p, c] = total
        else:
            found[k, p] = total


@compile_loop(offsets="indptr", values="values")
def substitute_rows(first, end, backwards, indptr, columns, values, dinv, perm, r, omega, scale, y, finish, z):
    """The rows of one color."""
    for i in range(first, end):
        if y.ndim == 2:
            several = y.shape[1] > 1
            if several:
                row_products(indptr[i], indptr[i + 1], columns, values, y, y, i)
            for c in range(y.shape[1]):
                total = omega * (y[i, c] if several else product(i, c, indptr, columns, values, y))
                b = scale * r[perm[i], c]
                y[i, c] = b * dinv[i] - total if backwards else (b - total) * dinv[i]
                if finish:
                    z[perm[i], c] = y[i, c]
        else:
            for c in range(y.shape[2]):
                node_products(i, c, indptr, columns, values, y, y, i)
                for p in range(y.shape[1]):
                    z[perm[i], p, c] = scale * r[perm[i], p, c] - omega * y[i, p, c]
                block_products(dinv, i, z, perm[i], c, y, i)
            if finish:
                copy_node(y, i, z, perm[i])


@KERNELS.resident
def substitute(
    n_slices, slices, sums, backwards, indptr, columns, values, dinv, perm, pitch, r, omega, scale, y, last, finish, z
):
    """y_i = inv(T_i) (scale r_i - w sum_j L_ij y_j), to z as well if this finishes the sweep; epochs from 0 to 1.

    Backwards, U is in place of L, and stored as V = inv(T) U but for blocks. From row `last` on, y_i is the result of
    symmetric substitution, and goes to z, too; the epochs of these rows stay at 0.
    """
    for c in range(n_slices):
        k = n_slices - 1 - c if backwards else c
        first, end = slices[k], slices[k + 1]
        ends = finish or first >= last
        substitute_rows(first, end, backwards, indptr, columns, values, dinv, perm, r, omega, scale, y, ends, z)


@compile_loop(offsets="indptr", values="values")
def back_substitute_rows(first, end, indptr, columns, values, dinv, perm, omega, y, z):
    """The rows of one color."""
    if y.ndim == 2:
        several = y.shape[1] > 1
        for i in range(first, end):
            if several:
                row_products(indptr[i], indptr[i + 1], columns, values, y, z, perm[i])
            for c in range(y.shape[1]):
                total = z[perm[i], c] if several else product(i, c, indptr, columns, values, y)
                y[i, c] -= omega * total
                z[perm[i], c] = y[i, c]
    else:
        updates = np.empty((1, *y.shape[1:]), y.dtype)
        for i in range(first, end):
            for c in range(y.shape[2]):
                node_products(i, c, indptr, columns, values, y, z, perm[i])
                block_products(dinv, i, z, perm[i], c, updates, 0)
                for p in range(y.shape[1]):
                    y[i, p, c] -= omega * updates[0, p, c]
            copy_node(y, i, z, perm[i])


@KERNELS.resident
def back_substitute(n_slices, slices, sums, indptr, columns, values, dinv, perm, pitch, omega, y, z):
    """t_i = y_i - w sum_j V_ij t_j, in place of y, and to z in the order of the matrix; epochs back to 0."""
    for k in range(n_slices - 1, -1, -1):
        back_substitute_rows(slices[k], slices[k + 1], indptr, columns, values, dinv, perm, omega, y, z)


@compile_loop(offsets="lower_indptr", values="lower")
def relax_rows(
    first,
    end,
    backwards,
    lower_indptr,
    lower_columns,
    lower,
    upper_indptr,
    upper_columns,
    upper,
    dinv,
    perm,
    pitch,
    r,
    omega,
    old,
    new,
    z,
):
    """The rows of one color."""
    before, behind = (old, new) if backwards else (new, old)
    if new.ndim == 2:
        for i in range(first, end):
            for c in range(new.shape[1]):
                below = product(i, c, lower_indptr, lower_columns, lower, before)
                above = product(i, c, upper_indptr, upper_columns, upper, behind)
                new[i, c] = (1 - omega) * old[i, c] + omega * (dinv[i] * (r[perm[i], c] - below) - above)
                z[perm[i], c] = new[i, c]
    else:
        sums = np.empty((3, *new.shape[1:]), new.dtype)
        below, above, updates = sums[0], sums[1], sums[2]
        for i in range(first, end):
            for c in range(new.shape[2]):
                node_products(i, c, lower_indptr, lower_columns, lower, before, sums, 0)
                node_products(i, c, upper_indptr, upper_columns, upper, behind, sums, 1)
                for p in range(new.shape[1]):
                    z[perm[i], p, c] = r[perm[i], p, c] - below[p, c] - above[p, c]
                block_products(dinv, i, z, perm[i], c, sums, 2)
                for p in range(new.shape[1]):
                    new[i, p, c] = (1 - omega) * old[i, p, c] + omega * updates[p, c]
            copy_node(new, i, z, perm[i])


@KERNELS.resident
def relax(n_slices, slices, sums, backwards, *rows):
    """new_i = (1 - w) old_i + w (inv(T_i) (r_i - sum_j L_ij y_j) - sum_j V_ij y_j), y new where the sweep was."""
    for c in range(n_slices):
        k = n_slices - 1 - c if backwards else c
        relax_rows(slices[k], slices[k + 1], backwards, *rows)


@compile_loop(offsets="lower_indptr", values="lower")
def residual_rows(
    first,
    end,
    substituted,
    lower_indptr,
    lower_columns,
    lower,
    upper_indptr,
    upper_columns,
    upper,
    diagonal,
    pivots,
    perm,
    pitch,
    b,
    y,
    r,
):
    """All rows at once."""
    if y.ndim == 2:
        for i in range(first, end):
            for c in range(y.shape[1]):
                total = pivots[i] * product(i, c, upper_indptr, upper_columns, upper, y)
                if substituted:
                    r[perm[i], c] = -total
                else:
                    below = product(i, c, lower_indptr, lower_columns, lower, y)
                    r[perm[i], c] = b[perm[i], c] - below - diagonal[i] * y[i, c] - total
    else:
        sums = np.empty((3, *y.shape[1:]), y.dtype)
        below, of_diagonal, total = sums[0], sums[1], sums[2]
        for i in range(first, end):
            for c in range(y.shape[2]):
                node_products(i, c, upper_indptr, upper_columns, upper, y, sums, 2)
                if not substituted:
                    node_products(i, c, lower_indptr, lower_columns, lower, y, sums, 0)
                    block_products(diagonal, i, y, i, c, sums, 1)
                for p in range(y.shape[1]):
                    if substituted:
                        r[perm[i], p, c] = -total[p, c]
                    else:
                        r[perm[i], p, c] = b[perm[i], p, c] - below[p, c] - of_diagonal[p, c] - total[p, c]


@KERNELS.resident
def residual(n_slices, slices, sums, *rows):
    """r_i = b_i - sum_j L_ij y_j - D_i y_i - T_i sum_j V_ij y_j, in the order of the matrix; all terms but the last add
    up to zero if y is the result of substitution with D + L.
    """
    residual_rows(0, slices[n_slices], *rows)
