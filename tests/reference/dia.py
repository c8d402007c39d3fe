"""Sliced DIA: the diagonals of each slice."""

from __future__ import annotations

from itertools import pairwise


def diagonals(cuts, indptr, columns):
    """The diagonals of each slice: shift -> rows."""
    result = []
    for first, end in pairwise(cuts):
        found: dict[int, set[int]] = {}
        for i in range(first, end):
            for column in columns[indptr[i] : indptr[i + 1]]:
                found.setdefault(int(column) - (i - first), set()).add(i - first)
        result.append(dict(sorted(found.items())))
    return result
