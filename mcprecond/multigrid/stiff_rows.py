"""Interpolation near flat triangles: a few rows of P, relaxed by Jacobi's method.

In a flat triangle of linear finite elements one corner lies between the two others, and errors that are not linear
along it have a large energy. Where several such triangles meet, weights for the nearest coarse points cannot avoid all
of these errors. Neither the smoother nor the coarse level reduces the few that are left, and CG takes some iterations
for each of them.

So the rows of P of fine points near a stiff point, which `splitting` finds, are relaxed, by steps
``P_f <- P_f - omega inv(D_f) (A P)_f``. Here D has the sums of the magnitudes of the rows of A. A row of P grows in the
first steps only, as many as there may be connections between a stiff point and a point near it: so it reaches all
coarse points among these. At the end its largest weights are kept, as in other rows, but more of them.

Stuben: A review of algebraic multigrid, Journal of Computational and Applied Mathematics 128, 2001, relaxes all rows of
P by Jacobi's method.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_inlined, compile_row
from mcprecond.backends.inputs import count_true
from mcprecond.linalg.csr import lanes_for
from mcprecond.matrix import AdmittedMatrix, rows_of
from mcprecond.multigrid.patterns import PARTS, Pattern
from mcprecond.multigrid.products import Rows, product_pattern

KERNELS = KernelSet(__file__, "OFFSET VALUE LANES")

STEPS, OMEGA = 8, 3 / 2
#: A breadth-first search from the stiff points takes FINEST_HOPS steps on the finest level, and HOPS steps on coarser
#: levels, where neighbors are farther apart. It finds the points that we call near. A step goes from a point j to a
#: point i if |a_ij| is at least LEAST_CONNECTION times the smaller one of max_k |a_ik| and |a_jj|. Without |a_jj|, the
#: search would not reach points whose diagonal entry is much larger than a_jj.
FINEST_HOPS, HOPS, LEAST_CONNECTION = 3, 2, 0.05
#: Weights of a relaxed row that are kept.
MOST_NEAR = 12
#: No row is relaxed if the share of points near stiff ones is above MOST_RELAXED, or if rows of A have more than
#: MOST_ENTRIES entries on average, as on coarse levels of graphs: there relaxing would take most of the setup, for no
#: fewer iterations.
MOST_RELAXED, MOST_ENTRIES = 0.3, 80
CUDA_CONSTANTS = {"LEAST_CONNECTION": LEAST_CONNECTION, "OMEGA": OMEGA}


def points_near(A: AdmittedMatrix, is_stiff: Any, hops: int) -> Any:
    """Return whether each point is near a stiff one, as uint8; None if `is_stiff` is, or if no row is to be relaxed."""
    n = A.shape[0]
    if is_stiff is None or A.indices.size > MOST_ENTRIES * n:
        return None
    run, diagonal = kernels_for(A, A.indices.size / n), A.diagonal()
    near, wider = is_stiff.copy(), A.backend.xp.empty_like(is_stiff)
    for _ in range(hops):
        run.widen(n, A.indptr, A.indices, A.data, diagonal, near, wider)
        near, wider = wider, near
    return near if count_true(near, A.backend.xp) <= MOST_RELAXED * n else None


def kernels_for(A: AdmittedMatrix, row: float) -> Any:
    """The kernels for rows of a matrix that have so many entries on average."""
    return A.backend.kernels(KERNELS, OFFSET=A.indptr.dtype, VALUE=A.dtype, LANES=lanes_for(row))


class RelaxedRows:
    """Rows of P that are relaxed, before the truncation.

    Parameters
    ----------
    A : AdmittedMatrix
    rows : array of int, shape (m,)
        The numbers of the rows to relax.
    P_pattern : pattern
        Of P with its plain rows.
    count : int
        Columns of P.
    hops : int
        In how many steps rows grow.

    Attributes
    ----------
    pattern : pattern
        Of the relaxed rows.
    """

    def __init__(self, A: AdmittedMatrix, rows: Any, P_pattern: Pattern, count: int, hops: int) -> None:
        backend, xp, n = A.backend, A.backend.xp, A.shape[0]
        self.rows, self.P_pattern, self.count = rows.astype(np.int32), P_pattern, count
        #: The place of each point among the relaxed ones; -1 for others.
        self.numbers = xp.full(n, np.int32(-1))
        self.numbers[self.rows] = xp.arange(len(rows), dtype=np.int32)
        indptr, places = rows_in_order((A.indptr, A.indices), self.rows, xp)
        self.row = len(places) / len(rows)
        neighbors = A.indices[places]
        # Of a neighbor that is relaxed the row stands behind those of P.
        numbers = self.numbers[neighbors]
        members = indptr.astype(A.indptr.dtype), xp.where(numbers >= 0, n + numbers, neighbors).astype(np.int32)
        plain, places = rows_in_order(P_pattern, self.rows, xp)
        self.pattern = plain, P_pattern[1][places]
        for _ in range(hops):
            lists = (
                xp.concatenate((P_pattern[0], P_pattern[0][-1] + self.pattern[0][1:])),
                xp.concatenate((P_pattern[1], self.pattern[1])),
            )
            right = Rows.of(lists, A.data[:0])
            (offsets, columns), _ = product_pattern(members, right, count, backend, A.max_degree + 1)
            self.pattern = offsets.astype(np.int64), columns  # as the kernels here take it
        self.owners = rows_of(self.pattern[0], self.pattern[1], xp).astype(np.int32)

    def relax(self, A: AdmittedMatrix, P: Any) -> Any:
        """The values of the relaxed rows, by those of A and of the plain P."""
        run, xp, nothing = kernels_for(A, self.row), A.backend.xp, self.numbers[:0]
        x, relaxed = xp.empty(len(self.owners), A.dtype), xp.empty(len(self.owners), A.dtype)
        matrix = A.indptr, A.indices, A.data, self.rows, self.owners
        for step in range(STEPS):
            numbers = self.numbers if step else nothing
            run.relax(len(x), self.count, *matrix, len(numbers), numbers, *self.P_pattern, P, *self.pattern, x, relaxed)
            x, relaxed = relaxed, x
        return x


def rows_in_order(pattern: Pattern, rows: Any, xp: Any) -> Pattern:
    """The row offsets of a pattern of some rows, and the places of the entries in the whole pattern."""
    starts = pattern[0][rows].astype(np.int64)
    indptr = xp.zeros(len(rows) + 1, np.int64)
    xp.cumsum(pattern[0][rows + 1] - starts, out=indptr[1:])
    places = xp.arange(int(indptr[-1]))
    return indptr, places + (starts - indptr[:-1])[rows_of(indptr, places, xp)]


def replace_rows(pattern: Pattern, others: Pattern, rows: Any, xp: Any) -> tuple[Pattern, Any]:
    """Put the rows of another pattern in the place of some; return also where each entry of the result comes from: from
    the pattern, or behind it from the other one.
    """
    lengths, starts = xp.diff(pattern[0]), pattern[0][:-1].copy()
    lengths[rows], starts[rows] = xp.diff(others[0]), len(pattern[1]) + others[0][:-1]
    indptr = xp.concatenate((xp.zeros(1, np.int64), xp.cumsum(lengths, dtype=np.int64)))
    sources = xp.arange(int(indptr[-1]))
    sources += (starts - indptr[:-1])[rows_of(indptr, sources, xp)]
    return (indptr, xp.concatenate((pattern[1], others[1]))[sources]), sources


# On the CPU.


@KERNELS.per_item
def widen(first, end, indptr, indices, values, diagonal, near, wider):
    """Whether each point is near, or connected with a point that is."""
    for i in range(first, end):
        most, found = 0.0, near[i]
        for k in range(indptr[i], indptr[i + 1]):
            if indices[k] != i:
                most = max(most, np.float64(abs(values[k])))
        for k in range(indptr[i], indptr[i + 1]):
            j = np.uint32(indices[k])
            found |= near[j] and abs(values[k]) >= LEAST_CONNECTION * min(most, np.float64(abs(diagonal[j])))
        wider[i] = found


@compile_inlined
def add_row(factor, first, end, columns, values, places, result):
    """Add a multiple of a row to another one, in the columns that that one has. `places` has the place of each of them,
    and -1 for all others.
    """
    for k in range(np.uint64(first), np.uint64(end)):
        place = places[np.uint32(columns[k])]
        if place >= 0:
            result[place] += factor * values[k]


@compile_inlined
def add_row_of(j, factor, numbers, P_indptr, P_columns, P, x_indptr, x_columns, x, places, result):
    """Add a multiple of the row of point j to a relaxed row: of P, or of x if j is relaxed."""
    number = np.int64(numbers[j]) if len(numbers) else np.int64(-1)
    if number >= 0:
        first, end = x_indptr[number], x_indptr[number + 1]
        add_row(factor, first, end, x_columns, x, places, result)
    else:
        add_row(factor, P_indptr[j], P_indptr[j + 1], P_columns, P, places, result)


@compile_row
def relax_row(t, i, indptr, indices, values, numbers, P_indptr, P_columns, P, x_indptr, x_columns, x, places, result):
    """The relaxed row t of point i. `places` is -1 for each column, before and afterwards."""
    begin, end, size = x_indptr[t], x_indptr[t + 1], x.real.dtype.type(0)
    for e in range(begin, end):
        result[e], places[x_columns[e]] = 0, e
    for k in range(indptr[i], indptr[i + 1]):
        size += abs(values[k])
        j, a = np.int64(indices[k]), values[k]
        add_row_of(j, a, numbers, P_indptr, P_columns, P, x_indptr, x_columns, x, places, result)
    for e in range(begin, end):
        result[e] *= -(x.real.dtype.type(OMEGA) / size)
    one = x.dtype.type(1)
    add_row_of(i, one, numbers, P_indptr, P_columns, P, x_indptr, x_columns, x, places, result)
    for e in range(begin, end):
        places[x_columns[e]] = -1


@KERNELS.in_parts(PARTS, "x_indptr")
def relax(
    first, end, entries, count, indptr, indices, values, rows, owners, relaxed, numbers, P_indptr, P_columns, P,
    x_indptr, x_columns, x, result,
):  # fmt: skip
    """A step of Jacobi's method. In the first one no point is relaxed yet: all rows are from P."""
    places, n = np.full(count, -1, np.int64), len(rows)
    of_P, of_x = (P_indptr, P_columns, P), (x_indptr, x_columns, x)
    for t in range(first * n // PARTS, end * n // PARTS):
        relax_row(t, np.int64(rows[t]), indptr, indices, values, numbers, *of_P, *of_x, places, result)
