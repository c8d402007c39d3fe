"""The numeric phase of ILU(0): the elimination of rows, in the order of the colors or levels.

Elimination subtracts multiples of the upper parts of earlier rows j from row i, wherever both have an entry: a match.
Matches depend on the pattern only. So a GPU lists them once, and a factorization neither reads nor compares columns.
For each lower entry of row i, in column j, and each entry after it the list says which entry of the upper part of row j
has the same column: mostly one byte. To save memory, the matches of long rows are not listed but searched for each
time. The CPU searches for all of them, which takes about as long as reading a list; where rows are long, it marks the
columns of a row in an array for all columns, and looks other rows' columns up there.

Entries are read and written where the sweeps need them. The upper part of a row, which other rows read during
elimination, is also stored contiguously in an array of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_inlined, compile_loop, compile_row
from mcprecond.preconditioners.pivots import (
    LOW,
    SHIFTED,
    TRIANGLES,
    is_low,
    least_invertible,
    safe_pivot,
)

KERNELS = KernelSet(__file__, "OFFSET VALUE STORED PLACE SHARE (LANES)")

MOST_ENTRIES = 256  # of a row whose matches are listed, at most
MOST_BYTES = 64  # of that list, per entry of the row, at most
CUDA_CONSTANTS = {"MOST_ENTRIES": MOST_ENTRIES, "MOST_BYTES": MOST_BYTES}
#: On the CPU the columns of rows are marked if the elimination reads so many times as many entries as there are marks.
WORK_OF_MARKS = 2
ENTRIES_AT_ONCE = 160  # of the rows that a warp works on: 5 for each thread
MOST_SHARE = MOST_ENTRIES // 32  # of the entries of a row per thread


def list_matches(run: Any, pieces: Any, patterns: Any, match_type: Any, flags: Any, xp: Any) -> tuple[Any, Any]:
    """Return where the matches of rows begin, and the matches.

    See `find_matches`; `match_type` is the type that they are listed in.
    """
    lower_indptr, _, upper_indptr, _ = patterns
    counts = xp.zeros(len(lower_indptr), np.int64)
    item_size = np.dtype(match_type).itemsize
    run.count_matches(len(pieces) - 1, pieces, lower_indptr, upper_indptr, item_size, counts[1:])
    firsts = xp.cumsum(counts)
    matches = xp.empty(int(firsts[-1]), match_type)
    run.find_matches(len(pieces) - 1, pieces, *patterns, firsts, matches, flags)
    return firsts, matches


def lists_all(longest: int, match_type: Any) -> bool:
    """Whether the matches of all rows are listed if the longest one has so many entries."""
    return longest <= MOST_ENTRIES and (longest - 1) * np.dtype(match_type).itemsize <= 2 * MOST_BYTES


def list_nothing(run: Any, pieces: Any, patterns: Any, match_type: Any, flags: Any, xp: Any) -> tuple[Any, Any]:
    """The same without any matches."""
    return xp.zeros(len(patterns[0]), np.int64), xp.empty(0, match_type)


@compile_row
def gallop(indices, begin, end, column):
    """The first place in the sorted indices[begin:end] that does not hold less than `column`."""
    step = 1
    while begin + step <= end and indices[begin + step - 1] < column:
        begin += step
        step *= 2
    end = min(end, begin + step - 1)
    while begin < end:
        middle = (begin + end) // 2
        if indices[middle] < column:
            begin = middle + 1
        else:
            end = middle
    return begin


@compile_inlined
def next_common(e, end, indices, other, other_end, other_indices):
    """The next places of two sorted stretches that hold the same; one of them is an end if there are none."""
    while e < end and other < other_end and indices[e] != other_indices[other]:
        if indices[e] < other_indices[other]:
            e = gallop(indices, e + 1, end, other_indices[other])
        else:
            other = gallop(other_indices, other + 1, other_end, indices[e])
    return e, other


@KERNELS.per_item_driver
def count_matches(n_pieces, pieces, lower_indptr, upper_indptr, item_size, counts):
    """How many matches are listed for each row, those included that are none: 0 where the list would be too long."""
    for i in range(pieces[n_pieces]):
        n_lower = lower_indptr[i + 1] - lower_indptr[i]
        length = n_lower + 1 + upper_indptr[i + 1] - upper_indptr[i]
        count = n_lower * (2 * length - n_lower - 1) // 2
        counts[i] = count if length <= MOST_ENTRIES and count * item_size <= MOST_BYTES * length else 0


@KERNELS.per_item_driver
def find_matches(n_pieces, pieces, lower_indptr, lower_indices, upper_indptr, upper_indices, firsts, matches, found):
    """Which entries of the upper parts of rows have the columns of later rows' entries.

    A row's entries are its lower ones, the diagonal one, its upper ones; the matches of row i are listed from firsts[i]
    on, if firsts[i + 1] is larger. For each lower entry, in column j, they say of each entry behind it which one of row
    j's upper part has the same column, or none: the largest number of their type. Also finds whether there are
    triangles.
    """
    for i in range(pieces[n_pieces]):
        position, begin_lower, n_lower = firsts[i], lower_indptr[i], lower_indptr[i + 1] - lower_indptr[i]
        if firsts[i + 1] > position:
            length = n_lower + 1 + upper_indptr[i + 1] - upper_indptr[i]
            behind = upper_indptr[i] - n_lower - 1
            for e in range(n_lower):
                j = lower_indices[begin_lower + e]
                begin, end = upper_indptr[j], upper_indptr[j + 1]
                other = begin
                for m in range(e + 1, length):
                    if m < n_lower:
                        column = lower_indices[begin_lower + m]
                    elif m == n_lower:
                        column = i
                    else:
                        column = upper_indices[behind + m]
                    other = gallop(upper_indices, other, end, column)
                    matches[position] = -1
                    if other < end and upper_indices[other] == column:
                        matches[position] = other - begin
                        if m != n_lower:
                            found[TRIANGLES] = 1
                    position += 1


@compile_row
def eliminate_listed(i, lower_indptr, lower_indices, lower, upper_indptr, upper, firsts, matches, theta, dinv):
    """Eliminate the lower part of row i, whose matches are listed; what that adds to its diagonal entry."""
    added = dinv.dtype.type(0)
    begin_lower, n_lower = lower_indptr[i], lower_indptr[i + 1] - lower_indptr[i]
    length = n_lower + 1 + upper_indptr[i + 1] - upper_indptr[i]
    behind, position = upper_indptr[i] - n_lower - 1, firsts[i]
    none = 256**matches.itemsize - 1
    for e in range(n_lower):
        j = lower_indices[begin_lower + e]
        factor, other = theta * (lower[begin_lower + e] * dinv[j]), upper_indptr[j]
        for m in range(e + 1, length):
            if matches[position] != none:
                product = factor * upper[other + np.int64(matches[position])]
                if m < n_lower:
                    lower[begin_lower + m] -= product
                elif m > n_lower:
                    upper[behind + m] -= product
                else:
                    added -= product
            position += 1
    return added


@compile_row
def subtract(e, end, indices, values, other, other_end, other_indices, other_values, factor):
    """Subtract `factor` times a sorted row from another where both have entries; how many these are."""
    changes = 0
    while True:
        e, other = next_common(e, end, indices, other, other_end, other_indices)
        if e >= end or other >= other_end:
            return changes
        values[e] -= factor * other_values[other]
        changes += 1
        e += 1
        other += 1


@compile_row
def eliminate_in_place(i, lower_indptr, lower_indices, lower, upper_indptr, upper_indices, upper, theta, dinv):
    """The same where matches have to be looked for; also, how many other entries have changed."""
    changes, added = 0, dinv.dtype.type(0)
    end_lower, begin_upper, end_upper = lower_indptr[i + 1], upper_indptr[i], upper_indptr[i + 1]
    for e in range(lower_indptr[i], end_lower):
        j = lower_indices[e]
        factor = theta * (lower[e] * dinv[j])
        begin, end = upper_indptr[j], upper_indptr[j + 1]
        here = gallop(upper_indices, begin, end, i)
        changes += subtract(e + 1, end_lower, lower_indices, lower, begin, here, upper_indices, upper, factor)
        if here < end and upper_indices[here] == i:
            added -= factor * upper[here]
            here += 1
        changes += subtract(begin_upper, end_upper, upper_indices, upper, here, end, upper_indices, upper, factor)
    return added, changes


@compile_row
def work_of_rows(first, end, lower_indptr, lower_indices, upper_indptr):
    """How many entries of upper parts the elimination of some rows reads."""
    work = 0
    for e in range(lower_indptr[first], lower_indptr[end]):
        j = lower_indices[e]
        work += np.int64(upper_indptr[j + 1]) - np.int64(upper_indptr[j])
    return work


@compile_row
def mark_row(i, lower_indptr, lower_indices, upper_indptr, upper_indices, marks, marked):
    """Note the place of each entry off the diagonal of row i under its column, or, unless `marked`, that it is none."""
    for e in range(lower_indptr[i], lower_indptr[i + 1]):
        marks[lower_indices[e]] = e if marked else -1
    for e in range(upper_indptr[i], upper_indptr[i + 1]):
        marks[upper_indices[e]] = e if marked else -1


@compile_row
def eliminate_marked(i, lower_indptr, lower_indices, lower, upper_indptr, upper_indices, upper, theta, dinv, marks):
    """As `eliminate_in_place`, where the row is marked."""
    changes, added = 0, dinv.dtype.type(0)
    for e in range(lower_indptr[i], lower_indptr[i + 1]):
        j = lower_indices[e]
        factor = theta * (lower[e] * dinv[j])
        for other in range(upper_indptr[j], upper_indptr[j + 1]):
            column, value = upper_indices[other], upper[other]
            if column == i:
                added -= factor * value
            elif marks[column] >= 0:
                changes += 1
                if column < i:
                    lower[marks[column]] -= factor * value
                else:
                    upper[marks[column]] -= factor * value
    return added, changes


@compile_row
def load(begin, end, places, stored, values, largest):
    """Fetch a triangle's part of a row from where the sweeps need it; its largest magnitude, or `largest`."""
    for e in range(begin, end):
        values[e] = stored[places[e]]
        largest = max(largest, abs(values[e]))
    return largest


@compile_row
def store(begin, end, places, stored, values, factor):
    """Put it back, times a factor."""
    for e in range(begin, end):
        stored[places[e]] = factor * values[e]


@compile_loop(offsets="lower_indptr")
def factorize_rows(
    first,
    end,
    lower_indptr,
    lower_indices,
    lower_places,
    lower_stored,
    lower,
    upper_indptr,
    upper_indices,
    upper_places,
    upper_stored,
    upper,
    firsts,
    matches,
    diagonal,
    tiny,
    least,
    theta,
    pivots,
    dinv,
    shifts,
    found,
):
    """The rows of one level."""
    changes = 0
    n = len(diagonal)
    marks_pay = first < end and work_of_rows(first, end, lower_indptr, lower_indices, upper_indptr) > WORK_OF_MARKS * n
    marks = np.full(n if marks_pay else 0, -1)
    for i in range(first, end):
        d = diagonal[i]
        largest = load(lower_indptr[i], lower_indptr[i + 1], lower_places, lower_stored, lower, abs(d))
        largest = load(upper_indptr[i], upper_indptr[i + 1], upper_places, upper_stored, upper, largest)
        if firsts[i + 1] > firsts[i]:
            added = eliminate_listed(
                i, lower_indptr, lower_indices, lower, upper_indptr, upper, firsts, matches, theta, dinv
            )
        elif marks_pay:
            mark_row(i, lower_indptr, lower_indices, upper_indptr, upper_indices, marks, True)
            added, changes_here = eliminate_marked(
                i, lower_indptr, lower_indices, lower, upper_indptr, upper_indices, upper, theta, dinv, marks
            )
            mark_row(i, lower_indptr, lower_indices, upper_indptr, upper_indices, marks, False)
            changes += changes_here
        else:
            added, changes_here = eliminate_in_place(
                i, lower_indptr, lower_indices, lower, upper_indptr, upper_indices, upper, theta, dinv
            )
            changes += changes_here
        relaxed = d + added
        pivot = safe_pivot(relaxed, largest, tiny, least_invertible(pivots))
        pivots[i] = pivot
        dinv[i] = 1 / pivots[i]
        store(lower_indptr[i], lower_indptr[i + 1], lower_places, lower_stored, lower, 1)
        store(upper_indptr[i], upper_indptr[i + 1], upper_places, upper_stored, upper, dinv[i])
        shifts[i] = pivot - relaxed + (1 - 1 / theta) * added  # before pivots round
        if shifts[i] != 0:
            found[SHIFTED] = 1
        if is_low(relaxed, d, least):
            found[LOW] = 1
    if changes:
        found[TRIANGLES] = 1


@KERNELS.resident
def factorize(n_pieces, pieces, *rows):
    """Eliminate in what is stored: in a row, a lower entry keeps its pivot as a factor; upper ones are divided.

    `lower` and `upper` are room for sorted rows; CUDA uses `lower` only where matches are not listed. Also finds the
    pivots, their inverses, what was added to each of them, and whether there was anything to add, or an entry off the
    diagonal was changed where matches are not listed.
    """
    for c in range(n_pieces):
        factorize_rows(pieces[c], pieces[c + 1], *rows)
