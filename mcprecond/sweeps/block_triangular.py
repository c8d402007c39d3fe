"""The functions of triangular.py on the CPU for blocks of nodes.

A number of a vector becomes a row of b numbers, and a number of the matrix a b x b block; rows of the upper triangle
are not divided by their pivots. The CUDA side is the same text for both. The sum that a row multiplies with its inverse
block needs a place of its own: an array that the row writes anyway.

Vectors have the shape (nodes, b, right-hand sides); c counts these. A row serves one after another, while the cache
still holds its blocks.
"""

from __future__ import annotations

from pathlib import Path

from numba import prange

from mcprecond.backends import KernelSet, compile_inlined, compile_loop, compile_part

KERNELS = KernelSet(str(Path(__file__).with_name("triangular.py")))


@compile_part
def add_products(i, indptr, columns, values, y, total):
    """total += sum_j T_ij y_j."""
    b = len(total)
    for k in range(indptr[i], indptr[i + 1]):
        j = columns[k]
        for p in range(b):
            for q in range(b):
                total[p] += values[k, p, q] * y[j, q]


@compile_inlined
def clear(total):
    """total = 0."""
    for p in range(len(total)):
        total[p] = 0


@compile_inlined
def copy_node(y, i, z, k):
    """z_k = y_i, for all right-hand sides."""
    for p in range(y.shape[1]):
        for c in range(y.shape[2]):
            z[k, p, c] = y[i, p, c]


@compile_part
def product(block, x, p):
    """Number p of block x."""
    total = x.dtype.type(0)
    for q in range(len(x)):
        total += block[p, q] * x[q]
    return total


@compile_loop
def substitute_rows(first, end, indptr, columns, values, dinv, perm, r, omega, scale, y, finish, z):
    """The rows of one color."""
    for i in prange(first, end):
        for c in range(y.shape[2]):
            total = z[perm[i], :, c]
            clear(total)
            add_products(i, indptr, columns, values, y[:, :, c], total)
            for p in range(len(total)):
                total[p] = scale * r[perm[i], p, c] - omega * total[p]
            for p in range(len(total)):
                y[i, p, c] = product(dinv[i], total, p)
        if finish:
            copy_node(y, i, z, perm[i])


@KERNELS.resident
def substitute(
    n_slices, slices, sums, backwards, indptr, columns, values, dinv, perm, r, omega, scale, y, last, finish, z
):
    """y_i = inv(D_i) (scale r_i - w sum_j T_ij y_j), to z as well if this finishes the sweep; see triangular.py."""
    for c in range(n_slices):
        k = n_slices - 1 - c if backwards else c
        first, end = slices[k], slices[k + 1]
        substitute_rows(first, end, indptr, columns, values, dinv, perm, r, omega, scale, y, finish or first >= last, z)


@compile_loop
def back_substitute_rows(first, end, indptr, columns, values, dinv, perm, omega, y, z):
    """The rows of one color."""
    for i in prange(first, end):
        for c in range(y.shape[2]):
            total = z[perm[i], :, c]
            clear(total)
            add_products(i, indptr, columns, values, y[:, :, c], total)
            for p in range(len(total)):
                y[i, p, c] -= omega * product(dinv[i], total, p)
        copy_node(y, i, z, perm[i])


@KERNELS.resident
def back_substitute(n_slices, slices, sums, indptr, columns, values, dinv, perm, omega, y, z):
    """t_i = y_i - w inv(D_i) sum_j U_ij t_j, in place of y, and to z in the order of the matrix."""
    for k in range(n_slices - 1, -1, -1):
        back_substitute_rows(slices[k], slices[k + 1], indptr, columns, values, dinv, perm, omega, y, z)


@compile_loop
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
    r,
    omega,
    old,
    new,
    z,
):
    """The rows of one color."""
    for i in prange(first, end):
        for c in range(new.shape[2]):
            total = z[perm[i], :, c]
            clear(total)
            add_products(i, lower_indptr, lower_columns, lower, (old if backwards else new)[:, :, c], total)
            add_products(i, upper_indptr, upper_columns, upper, (new if backwards else old)[:, :, c], total)
            for p in range(len(total)):
                total[p] = r[perm[i], p, c] - total[p]
            for p in range(len(total)):
                new[i, p, c] = (1 - omega) * old[i, p, c] + omega * product(dinv[i], total, p)
        copy_node(new, i, z, perm[i])


@KERNELS.resident
def relax(
    n_slices,
    slices,
    sums,
    backwards,
    lower_indptr,
    lower_columns,
    lower,
    upper_indptr,
    upper_columns,
    upper,
    dinv,
    perm,
    r,
    omega,
    old,
    new,
    z,
):
    """new_i = (1 - w) old_i + w inv(D_i) (r_i - sum_j (L + U)_ij y_j), y new where the sweep was already."""
    for c in range(n_slices):
        k = n_slices - 1 - c if backwards else c
        relax_rows(
            slices[k],
            slices[k + 1],
            backwards,
            lower_indptr,
            lower_columns,
            lower,
            upper_indptr,
            upper_columns,
            upper,
            dinv,
            perm,
            r,
            omega,
            old,
            new,
            z,
        )


@compile_loop
def residual_rows(
    n, substituted, lower_indptr, lower_columns, lower, upper_indptr, upper_columns, upper, diagonal, perm, b, y, r
):
    """All rows at once."""
    for i in prange(n):
        for c in range(y.shape[2]):
            total = r[perm[i], :, c]
            clear(total)
            add_products(i, upper_indptr, upper_columns, upper, y[:, :, c], total)
            if not substituted:
                add_products(i, lower_indptr, lower_columns, lower, y[:, :, c], total)
            for p in range(len(total)):
                rest = b[perm[i], p, c] - product(diagonal[i], y[i, :, c], p) if not substituted else total[p] * 0
                total[p] = rest - total[p]


@KERNELS.resident
def residual(
    n_slices,
    slices,
    sums,
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
    b,
    y,
    r,
):
    """r_i = b_i - sum_j L_ij y_j - D_i y_i - sum_j U_ij y_j; see triangular.py."""
    residual_rows(
        slices[n_slices],
        substituted,
        lower_indptr,
        lower_columns,
        lower,
        upper_indptr,
        upper_columns,
        upper,
        diagonal,
        perm,
        b,
        y,
        r,
    )
