"""Interpolation of classical multigrid: extended+i, over coarse points within two strong connections.

For a fine point i let C_i be the coarse and F_i the fine points that it depends on strongly, and C^_i the union of C_i
and of the C_k for k in F_i. With a^-_kl the entries of row k whose sign is not the diagonal's,

    w_ij = -1 / d_i (a_ij + sum_{k in F_i} a_ik a^-_kj / s_ik),    s_ik = sum of a^-_kl over l in C^_i and i,
    d_i = a_ii + sum of a_in over weak n outside of C^_i + sum_{k in F_i} a_ik a^-_ki / s_ik.

Points with a large degree are called hubs. F_i has no hubs, and it is empty if i is a hub: the connections that are
left out count as weak. Otherwise the work would grow with the squares of the degrees. The papers do not have this rule.

Of a row the largest weights are kept, four in most cases, scaled to the sum of all of them. Which these are is found
with the first values of A, and stays: so new values take the numeric phase only.

De Sterck, Falgout, Nolting, Yang: Distance-two interpolation for parallel algebraic multigrid, Numerical Linear Algebra
with Applications 15, 2008, eq. (4.10) and (4.11), and Section 5 for the truncation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import Backend, KernelSet, compile_inlined
from mcprecond.backends.inputs import any_of
from mcprecond.matrix import AdmittedMatrix, rows_of
from mcprecond.multigrid.interpolation import Interpolation, product_with
from mcprecond.multigrid.patterns import PARTS, Pattern, gather_rows, matrix_of_blocks, new_control
from mcprecond.multigrid.products import Rows, product_pattern
from mcprecond.multigrid.splitting import COARSE, DEPENDS, INTERPOLATES, lanes_of
from mcprecond.multigrid.stiff_rows import HOPS, MOST_NEAR, RelaxedRows, replace_rows

KERNELS = KernelSet(__file__, "OFFSET VALUE LANES")

#: Weights of a row that are kept, if levels do not become too dense with them.
MOST = 4
#: A hub is a point whose number of neighbors is more than LARGE_DEGREE times the average number of entries of a row.
LARGE_DEGREE = 8
#: A row is scaled to the sum of all its weights by a factor below this one, or not at all.
MOST_SCALING = 4.0
CUDA_CONSTANTS = {"COARSE": COARSE, "INTERPOLATES": INTERPOLATES, "MOST_SCALING": MOST_SCALING}


class ExtendedWeights:
    """All weights of extended+i, before the truncation: their pattern once, their values for any values of A.

    Parameters
    ----------
    A : AdmittedMatrix
        Canonical, with values and a diagonal.
    flags : array of uint8
        Of the entries of A, see `Dependences`.
    states : array of int32, shape (n,)
        Of the points, COARSE or FINE.

    Attributes
    ----------
    count : int
        Coarse points.
    numbers : array of int32, shape (n,)
        The coarse unknown that a coarse point is; -1 for fine points.
    pattern : pattern
        Of the weights.
    """

    def __init__(self, A: AdmittedMatrix, flags: Any, states: Any) -> None:
        xp, run, n, entries = A.backend.xp, kernels_for(A), A.shape[0], A.indices.size
        before, self.numbers = xp.empty(n + 1, np.int64), xp.empty(n, np.int32)
        run.number_coarse(max(n, 1), n, states, before, self.numbers, new_control(A.backend))
        self.count = int(before[-1])
        self.flags = around_hubs(A, flags, self.numbers)
        # `members` lists the points from which each point interpolates, and `coarse` the numbers of the coarse points
        # among them.
        counts, (points, coarse) = xp.empty(n + 1, A.indptr.dtype), xp.empty((2, entries), np.int32)
        begins, ends = xp.empty((2, n), A.indptr.dtype)
        run.find_points(n, A.indptr, A.indices, self.flags, self.numbers, counts, begins, ends, points, coarse)
        members = gather_rows(A.indptr, counts, points, A.backend)
        right = Rows(begins, ends, coarse, A.data[:0])
        (offsets, columns), _ = product_pattern(members, right, self.count, A.backend, A.max_degree + 1)
        self.pattern = offsets.astype(np.int64), columns  # as the kernels here take it

    def values(self, A: AdmittedMatrix) -> Any:
        """Compute the weights."""
        weights = A.backend.xp.empty(len(self.pattern[1]), A.dtype)
        arrays = A.indptr, A.indices, A.data, self.flags, self.numbers
        kernels_for(A).extend_rows(A.shape[0], self.count, *arrays, *self.pattern, weights)
        return weights


class ExtendedInterpolation(Interpolation):
    """P of extended+i: the largest weights of each row.

    Parameters
    ----------
    A : AdmittedMatrix
    extended : ExtendedWeights
    weights : array
        Its values for this A.
    most : int
        How many weights of a row to keep.
    near : array of uint8, shape (n,), optional
        1 for each point near a flat triangle. The rows of P of those that are fine are relaxed.
    hops : int
        How far these points are from it, at most.
    """

    b = k = 1
    empty = None

    def __init__(
        self,
        A: AdmittedMatrix,
        extended: ExtendedWeights,
        weights: Any,
        most: int = MOST,
        near: Any = None,
        hops: int = HOPS,
    ) -> None:
        backend, xp = A.backend, A.backend.xp
        self.extended, self.count = extended, extended.count
        self.plain, self.longest_row = Truncation(extended.pattern, weights, most, kernels_for(A), backend), most
        pattern = self.plain.pattern
        self.relaxed: RelaxedRows | None = None
        relaxed = None
        if near is not None and any_of(rows := near & (extended.numbers < 0)):
            relaxed, pattern = self._relax(A, xp.flatnonzero(rows), weights, hops)
        self.csr = matrix_of_blocks(pattern, 1, 1, self.count, A.dtype, backend)
        self.pattern = self.csr.indptr, pattern[1]
        self._put(A, weights, relaxed)
        self.AP = product_with(A, self)
        if most < MOST:
            self.remark = f", {most} weights in a row of P" if most > 1 else ", one weight in a row of P"

    def _relax(self, A: AdmittedMatrix, rows: Any, weights: Any, hops: int) -> tuple[Any, Pattern]:
        """Put relaxed rows in the place of some, by all weights before the truncation; return the values of these rows,
        likewise before the truncation, and the pattern of P.
        """
        run, xp = kernels_for(A), A.backend.xp
        self.relaxed = RelaxedRows(A, rows, self.plain.pattern, self.count, hops)
        plain = xp.empty(len(self.plain.places), A.dtype)
        self.plain.truncate(weights, run, plain)
        relaxed = self.relaxed.relax(A, plain)
        self.near = Truncation(self.relaxed.pattern, relaxed, MOST_NEAR, run, A.backend)
        pattern, self.sources = replace_rows(self.plain.pattern, self.near.pattern, rows, xp)
        self.longest_row = max(self.longest_row, MOST_NEAR)
        return relaxed, pattern

    def update(self, A: AdmittedMatrix) -> None:
        self._put(A, self.extended.values(A), None)

    def _put(self, A: AdmittedMatrix, weights: Any, relaxed: Any) -> None:
        """Truncate all weights, and the relaxed rows where they are known already, into P."""
        run = kernels_for(A)
        if self.relaxed is None:
            self.plain.truncate(weights, run, self.csr.data)
            return
        count = len(self.plain.places)
        values = A.backend.xp.empty(count + len(self.near.places), A.dtype)
        self.plain.truncate(weights, run, values[:count])
        if relaxed is None:
            relaxed = self.relaxed.relax(A, values[:count])
        self.near.truncate(relaxed, run, values[count:])
        self.csr.data[...] = values[self.sources]


def kernels_for(A: AdmittedMatrix) -> Any:
    """The kernels for a matrix, whose rows teams share."""
    return A.backend.kernels(KERNELS, OFFSET=A.indptr.dtype, VALUE=A.dtype, LANES=lanes_of(A))


def around_hubs(A: AdmittedMatrix, flags: Any, numbers: Any) -> Any:
    """Return the flags without INTERPOLATES for entries between a hub and a fine point."""
    xp, most = A.backend.xp, LARGE_DEGREE * A.indices.size / max(A.shape[0], 1)
    if A.max_degree <= most:
        return flags
    is_hub, rows = A.degrees > most, rows_of(A.indptr, A.indices, xp)
    is_left_out = (is_hub[rows] | is_hub[A.indices]) & (numbers[A.indices] < 0)
    return xp.where(is_left_out, flags & np.uint8(DEPENDS), flags)


class Truncation:
    """The largest weights of each row.

    Parameters
    ----------
    reach : pattern
        Of all weights.
    weights : array
        All weights, by which the largest are chosen.
    most : int
        How many weights of a row are kept at most.
    run : Kernels
    backend : Backend

    Attributes
    ----------
    pattern : pattern
        Of the weights that are kept.
    """

    def __init__(self, reach: Pattern, weights: Any, most: int, run: Any, backend: Backend) -> None:
        xp, n = backend.xp, len(reach[0]) - 1
        indptr = xp.empty(n + 1, np.int64)
        run.limit_lengths(max(n, 1), n, most, reach[0], indptr, new_control(backend))
        entries = int(indptr[-1])
        #: Where the weights that are kept stand among all of them.
        self.places, columns = xp.empty(entries, np.int64), xp.empty(entries, np.int32)
        run.choose_largest(n, *reach, weights, indptr, self.places, columns)
        self.offsets, self.pattern = reach[0], (indptr, columns)

    def truncate(self, weights: Any, run: Any, values: Any) -> None:
        """Put the weights that are kept into `values`, scaled to the sums of all weights of their rows."""
        indptr = self.pattern[0]
        run.truncate_rows(len(indptr) - 1, self.offsets, weights, indptr, self.places, values)


# On the CPU.


@KERNELS.resident
def number_coarse(threads, n, states, before, numbers, control):
    """Number the coarse points; -1 for others. `before` counts those before each point, and all of them at its end."""
    count = 0
    for i in range(n):
        is_coarse = states[i] == COARSE
        before[i], numbers[i] = count, count if is_coarse else -1
        count += is_coarse
    before[n] = count


@KERNELS.per_item
def find_points(first, end, indptr, indices, flags, numbers, counts, begins, ends, points, coarse):
    """Write the points from which point i interpolates to `points`, from ``indptr[i]`` on, and their number to
    ``counts[i + 1]``. Likewise write the numbers of the coarse points among them to `coarse`, and where these begin and
    end. A coarse point interpolates from itself.
    """
    for i in range(first, end):
        if i == 0:
            counts[0] = 0
        begin = np.uint64(indptr[i])
        place, coarse_place = begin, begin
        if numbers[i] >= 0:
            points[place], coarse[coarse_place] = i, numbers[i]
            place, coarse_place = begin + np.uint64(1), begin + np.uint64(1)
        else:
            for k in range(indptr[i], indptr[i + 1]):
                j = np.uint32(indices[k])
                points[place], coarse[coarse_place] = j, numbers[j]
                passes = flags[k] & INTERPOLATES != 0
                place += np.uint64(passes)
                coarse_place += np.uint64(passes and numbers[j] >= 0)
        counts[i + 1], begins[i], ends[i] = place - begin, begin, coarse_place


@compile_inlined
def place_in_reach(number, places):
    """The place of a coarse unknown in a row of the reach; -1 if it is not there, or there is no such unknown."""
    return places[number] if number >= 0 else np.int64(-1)


@compile_inlined
def pass_through(i, j, a, indptr, indices, values, numbers, places, weights):
    """Hand what i has of a fine point j to the points from which j interpolates; returns the share of i itself."""
    total, own = values.dtype.type(0), values.dtype.type(0)
    begin, end = np.uint64(indptr[j]), np.uint64(indptr[j + np.uint32(1)])
    for e in range(begin, end):
        m = np.uint32(indices[e])
        if values[e].real < 0 and (m == i or place_in_reach(numbers[m], places) >= 0):
            total += values[e]
    if total == 0:
        return a
    factor = a / total
    for e in range(begin, end):
        m = np.uint32(indices[e])
        if values[e].real < 0:
            if m == i:
                own += factor * values[e]
            else:
                place = place_in_reach(numbers[m], places)
                if place >= 0:
                    weights[place] += factor * values[e]
    return own


@KERNELS.in_parts(PARTS, "indptr")
def extend_rows(
    first_part, end_part, n, count, indptr, indices, values, flags, numbers, reach_indptr, reach_columns, weights
):
    """The weights of all rows, before the truncation."""
    places = np.full(count, -1, np.int64)  # of the coarse unknowns in the row
    for i in range(first_part * n // PARTS, end_part * n // PARTS):
        begin, end = reach_indptr[i], reach_indptr[i + 1]
        for place in range(begin, end):
            weights[place] = 1 if numbers[i] >= 0 else 0
        if numbers[i] >= 0 or begin == end:
            continue
        for place in range(begin, end):
            places[reach_columns[place]] = place
        diagonal = rest = values.dtype.type(0)
        for k in range(indptr[i], indptr[i + 1]):
            j = np.uint32(indices[k])
            if j == i:
                diagonal = values[k]
                continue
            place = place_in_reach(numbers[j], places)
            if place >= 0:
                weights[place] += values[k]
            elif flags[k] & INTERPOLATES and numbers[j] < 0:
                rest += pass_through(i, j, values[k], indptr, indices, values, numbers, places, weights)
            else:
                rest += values[k]
        divisor = diagonal + rest
        if divisor.real * diagonal.real <= 0:
            divisor = diagonal
        for place in range(begin, end):
            weights[place] = -weights[place] / divisor
            places[reach_columns[place]] = -1


@compile_inlined
def size_of(weight):
    """The magnitude of a weight with 13 digits, in the order of integers: equal weights are equal however they are
    rounded.
    """
    return (np.float32(abs(weight)).view(np.int32) + 2**9) >> 10


@KERNELS.resident
def limit_lengths(threads, n, most, reach_indptr, indptr, control):
    """The row offsets with at most so many entries of each row."""
    indptr[0] = 0
    for i in range(n):
        indptr[i + 1] = indptr[i] + min(reach_indptr[i + 1] - reach_indptr[i], most)


@KERNELS.per_item
def choose_largest(first, end, reach_indptr, reach_columns, weights, indptr, places, columns):
    """The places and columns of the largest weights of each row, in the order of the columns; of equal ones the
    first.
    """
    for i in range(first, end):
        begin, room, taken = indptr[i], indptr[i + 1] - indptr[i], 0
        for place in range(reach_indptr[i], reach_indptr[i + 1]):
            if taken == room:  # the smallest weight so far, of equal ones the last, gives way to a larger one
                least = 0
                for k in range(1, room):
                    if size_of(weights[places[begin + k]]) <= size_of(weights[places[begin + least]]):
                        least = k
                if size_of(weights[place]) <= size_of(weights[places[begin + least]]):
                    continue
                for k in range(least, room - 1):
                    places[begin + k] = places[begin + k + 1]
                taken -= 1
            places[begin + taken] = place
            taken += 1
        for k in range(begin, begin + room):
            columns[k] = reach_columns[places[k]]


@KERNELS.per_item
def truncate_rows(first, end, reach_indptr, weights, indptr, places, P):
    """The weights that are kept, scaled to the sum of all."""
    for i in range(first, end):
        total = kept = P.dtype.type(0)
        for place in range(reach_indptr[i], reach_indptr[i + 1]):
            total += weights[place]
        for k in range(indptr[i], indptr[i + 1]):
            kept += weights[places[k]]
        ratio = (total / kept).real if kept != 0 else 0.0
        factor = P.real.dtype.type(ratio if 0 < ratio < MOST_SCALING else 1.0)
        for k in range(indptr[i], indptr[i + 1]):
            P[k] = factor * weights[places[k]]
