"""The rows of FENL: its pattern, residual and Jacobian, from tables of integrals along each axis.

An element is the product of three intervals; interval i on axis d (x, y or z) has the length ``widths[d, i]``. The
terms that are linear in T are computed from matrices of two by two for the two nodes of an interval:
``axes[d, i, kind]`` is the mass matrix weighted with the profile of the conductivity (kind 0), the stiffness matrix
(1), the mass matrix (2) and the drift matrix (3).

Rows are assembled one by one, each by one thread from the up to eight elements around its node, in the same order
everywhere: the result does not depend on the number of threads, and without advection it is symmetric to the last bit.
"""

from __future__ import annotations

import numpy as np

from mcprecond.backends import KernelSet, compile_row

KERNELS = KernelSet(__file__, "OFFSET")

# A corner of an element is numbered by its bits: x + 2 y + 4 z. So are the eight elements around a node; in element e
# the node is corner 7 - e. The 27 neighbors of a node, itself in the middle, are numbered x + 3 y + 9 z.


@compile_row
def inside(i, m):
    """Whether i is one of 0..m - 1."""
    return 0 <= i < m


@compile_row
def dirichlet(z, m):
    """Whether T is prescribed in the layer z of nodes."""
    return z == 0 or z == m - 1


@compile_row
def has_element(x, y, e, m):
    """Whether a node between bottom and top has an element e."""
    return inside(x - 1 + (e & 1), m - 1) and inside(y - 1 + (e >> 1 & 1), m - 1)


@compile_row
def node_offset(corner, m):
    """From the first corner's node to that of another."""
    return (corner & 1) + (corner >> 1 & 1) * m + (corner >> 2) * m * m


@compile_row
def neighbor_offset(corner):
    """The same among the 27 neighbors."""
    return (corner & 1) + (corner >> 1 & 1) * 3 + (corner >> 2) * 9


@compile_row
def gather(T, v, e, m, corners):
    """The values of T at the corners of the element e of node v."""
    first = v - node_offset(7 - e, m)
    for b in range(8):
        corners[b] = T[first + node_offset(b, m)]


@compile_row
def at_gauss_point(shape, g, corners):
    """T at Gauss point g."""
    value = 0.0
    for b in range(8):
        value += shape[g, b] * corners[b]
    return value


@compile_row
def fill_factors(axes, intervals, e, kind, masses, others):
    """Copy the numbers from which the row of corner 7 - e is computed: along each axis, its rows of the matrices `kind`
    (a mass matrix) and `kind` + 1 (the stiffness or drift matrix).
    """
    for d in range(3):
        own = (7 - e) >> d & 1
        for q in range(2):
            masses[d, q] = axes[d, intervals[d], kind, own, q]
            others[d, q] = axes[d, intervals[d], kind + 1, own, q]


@compile_row
def sum_products(masses, others, b):
    """Return the entry in the column of corner b.

    It is a sum of three products, one for each axis: the stiffness (or drift) along this axis times the masses along
    the other two axes.
    """
    p, q, r = b & 1, b >> 1 & 1, b >> 2
    across = masses[1, q] * others[0, p] + others[1, q] * masses[0, p]
    return masses[2, r] * across + others[2, r] * (masses[1, q] * masses[0, p])


@compile_row
def locate(x, y, z, e, widths, intervals):
    """Element e of a node is the product of three intervals: store their numbers, and return the element's volume."""
    intervals[0], intervals[1], intervals[2] = x - 1 + (e & 1), y - 1 + (e >> 1 & 1), z - 1 + (e >> 2)
    return widths[0, intervals[0]] * widths[1, intervals[1]] * widths[2, intervals[2]]


@KERNELS.per_item
def fill_indices(first, end, m, indptr, indices):
    """The column indices: the neighbors of each node in ascending order."""
    for v in range(first, end):
        x, y, z = v % m, v // m % m, v // (m * m)
        place = indptr[v]
        for p in range(27):
            px, py, pz = x + p % 3 - 1, y + p // 3 % 3 - 1, z + p // 9 - 1
            if inside(px, m) and inside(py, m) and inside(pz, m):
                indices[place] = px + m * (py + m * pz)
                place += 1


@KERNELS.per_item
def assemble_residual(first, end, m, T, axes, kinds, widths, shape, bottom, top, R):
    """R at every node. `kinds` is 1 for diffusion alone, and 2 for diffusion and advection."""
    corners, intervals = np.empty(8), np.empty(3, np.int64)
    masses, others = np.empty((3, 2)), np.empty((3, 2))
    for v in range(first, end):
        x, y, z = v % m, v // m % m, v // (m * m)
        total = 0.0
        if dirichlet(z, m):
            total = T[v] - (bottom if z == 0 else top)
        else:
            for e in range(8):
                if has_element(x, y, e, m):
                    gather(T, v, e, m, corners)
                    weight = locate(x, y, z, e, widths, intervals) / 8
                    for kind in range(kinds):
                        fill_factors(axes, intervals, e, 2 * kind, masses, others)
                        for b in range(8):
                            total += sum_products(masses, others, b) * corners[b]
                    for g in range(8):
                        value = at_gauss_point(shape, g, corners)
                        total += weight * shape[g, 7 - e] * value * value
        R[v] = total


@KERNELS.per_item
def assemble_jacobian(first, end, m, T, axes, kinds, widths, shape, mass, indptr, values):
    """A row of J for every node; mass[a, g, b] is 2 φ_a φ_b at Gauss point g times the weight, for volume 1."""
    corners, intervals, row = np.empty(8), np.empty(3, np.int64), np.empty(27)
    masses, others = np.empty((3, 2)), np.empty((3, 2))
    for v in range(first, end):
        x, y, z = v % m, v // m % m, v // (m * m)
        row[:] = 0.0
        if dirichlet(z, m):
            row[13] = 1.0
        else:
            for e in range(8):
                if has_element(x, y, e, m):
                    gather(T, v, e, m, corners)
                    volume = locate(x, y, z, e, widths, intervals)
                    for kind in range(kinds):
                        fill_factors(axes, intervals, e, 2 * kind, masses, others)
                        for b in range(8):
                            row[neighbor_offset(e) + neighbor_offset(b)] += sum_products(masses, others, b)
                    for g in range(8):
                        value = volume * at_gauss_point(shape, g, corners)
                        for b in range(8):
                            row[neighbor_offset(e) + neighbor_offset(b)] += value * mass[7 - e, g, b]
        place = indptr[v]
        for p in range(27):
            pz = z + p // 9 - 1
            if inside(x + p % 3 - 1, m) and inside(y + p // 3 % 3 - 1, m) and inside(pz, m):
                values[place] = 0.0 if dirichlet(pz, m) and p != 13 else row[p]
                place += 1
