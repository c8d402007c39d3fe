"""The values of the triangles: taken from A, divided by pivots, and put back into one matrix."""

from __future__ import annotations

import numpy as np

from mcprecond.backends import KernelSet, compile_loop, compile_part
from mcprecond.storage.fingerprint import (
    INFINITY,
    LARGEST,
    LARGEST_FLOAT,
    NO_PIVOTS,
    NOT_FINITE,
    PATTERN,
    SMALLEST,
    SMALLEST_FLOAT,
)
from mcprecond.storage.layouts import LAYOUT_CHOICES

KERNELS = KernelSet(__file__, f"OFFSET VALUE STORED SOURCE LANES {LAYOUT_CHOICES}")


@compile_part
def are_taken(expected, found, narrows):
    """Whether values are taken: they are finite, in the places that are expected, and where storage narrows them within
    its range.
    """
    if found[PATTERN] != expected[PATTERN] or found[NOT_FINITE] != 0:
        return False
    return not narrows or (found[LARGEST] <= LARGEST_FLOAT and INFINITY - found[SMALLEST] >= SMALLEST_FLOAT)


@KERNELS.strided
def fetch_values(
    n_slices,
    slices,
    perm,
    indptr,
    values,
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
    dinv,
    divides,
    expected,
    found,
):
    """The values of row i: entries of row perm[i] of A, the upper ones divided if so asked; count the rows that cannot
    be divided, whose quotients are not finite.
    """
    if not are_taken(expected, found, lower.itemsize < values.itemsize):
        return
    rows = slices[n_slices]
    found[NO_PIVOTS] = fetch_rows(
        0,
        rows,
        perm,
        lower_indptr,
        lower_source,
        lower,
        upper_indptr,
        upper_source,
        upper,
        diagonal_source,
        indptr,
        values,
        diagonal,
        dinv,
        divides,
    )


@compile_loop
def fetch_rows(
    first,
    end,
    perm,
    lower_indptr,
    lower_source,
    lower,
    upper_indptr,
    upper_source,
    upper,
    diagonal_source,
    indptr,
    values,
    diagonal,
    dinv,
    divides,
):
    """The rows of `fetch_values`."""
    no_pivots = 0
    for i in range(first, end):
        begin, stop = indptr[perm[i]], indptr[perm[i] + 1]
        for e in range(lower_indptr[i], lower_indptr[i + 1]):
            lower[e] = values[begin + lower_source[e]]
        number = diagonal_source[i]
        pivot = values[begin + number] if number < stop - begin else values.dtype.type(0)
        inverse = 1 / pivot if pivot != 0 else values.dtype.type(np.inf)
        diagonal[i], dinv[i] = pivot, inverse
        factor = inverse if divides else values.dtype.type(1)
        check = 0 * abs(dinv[i])  # is NaN as soon as something is not finite
        for e in range(upper_indptr[i], upper_indptr[i + 1]):
            upper[e] = factor * values[begin + upper_source[e]]
            check += 0 * abs(upper[e])
        no_pivots += check != 0
    return no_pivots


@KERNELS.strided
def divide_rows(n_slices, slices, indptr, columns, values, dinv):
    """The entries of row i times dinv[i]."""
    scale_rows(0, slices[n_slices], indptr, values, dinv)


@compile_loop
def scale_rows(first, end, indptr, values, dinv):
    """The rows of `divide_rows`."""
    for i in range(first, end):
        for e in range(indptr[i], indptr[i + 1]):
            values[e] *= dinv[i]


@KERNELS.per_item
def join(
    first,
    end,
    lower_indptr,
    lower_columns,
    lower,
    upper_indptr,
    upper_columns,
    upper,
    diagonal,
    indptr,
    indices,
    values,
):
    """Put lower, diagonal and upper back into one CSR matrix."""
    for i in range(first, end):
        e = indptr[i]
        for k in range(lower_indptr[i], lower_indptr[i + 1]):
            indices[e] = lower_columns[k]
            values[e] = lower[k]
            e += 1
        indices[e] = i
        values[e] = diagonal[i]
        e += 1
        for k in range(upper_indptr[i], upper_indptr[i + 1]):
            indices[e] = upper_columns[k]
            values[e] = upper[k]
            e += 1
