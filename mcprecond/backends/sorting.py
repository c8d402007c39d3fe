"""Sorting and searching inside compiled functions: NumPy's take Numba seconds to compile."""

from __future__ import annotations

from mcprecond.backends.kernels import compile_row

SHORT = 64  # so few numbers are sorted by insertion alone
FEW = 8  # so few numbers are searched from the first one on


@compile_row
def sort_in_place(array, begin, end):
    """Sort a part by Shell's method: insertion with gaps, which is fast where it is short or consists of sorted runs.

    Ciura: Best increments for the average case of Shellsort, FCT 2001, continued by factors of 2.25.
    """
    gap, length = 1, end - begin
    if length > SHORT:
        for step in (4, 10, 23, 57, 132, 301, 701):
            if step < length:
                gap = step
    while gap >= 701 and int(2.25 * gap) < length:
        gap = int(2.25 * gap)
    while gap > 0:
        for last in range(begin + gap, end):
            value, i = array[last], last
            while i >= begin + gap and array[i - gap] > value:
                array[i] = array[i - gap]
                i -= gap
            array[i] = value
        if gap > 701:
            gap = max(int(gap / 2.25), 701)
        elif gap == 1:
            gap = 0
        else:
            smaller = 1
            for step in (4, 10, 23, 57, 132, 301):
                if step < gap:
                    smaller = step
            gap = smaller


@compile_row
def lower_bound(array, begin, end, value):
    """The first place from `begin` on whose number is not below a value, in a sorted part of an array; or `end`."""
    low, high = begin, end
    while high - low > FEW:
        middle = (low + high) // 2
        if array[middle] < value:
            low = middle + 1
        else:
            high = middle
    while low < high and array[low] < value:
        low += 1
    return low
