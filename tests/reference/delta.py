"""Columns as base and offset: the bases of a slice, and slices cut until there are few enough."""

from __future__ import annotations

import numpy as np

from mcprecond.storage.layouts.delta import LEAST_SHIFT, MOST_SHIFT


def bases_of(columns, shift):
    """The first column, and those that are the first behind a window."""
    bases: list[int] = []
    for column in sorted(columns):
        if not bases or column >= bases[-1] + 2**shift:
            bases.append(column)
    return bases


def largest_shift(columns):
    """The largest shift with room for the bases, and these; None where there is none."""
    for shift in range(MOST_SHIFT, LEAST_SHIFT - 1, -1):
        bases = bases_of(columns, shift)
        if len(bases) <= 2 ** (16 - shift):
            return shift, bases
    return None


def cut(cuts, triangles):
    """Slices with too many bases in halves, until there are none."""
    while True:
        n_slices = len(cuts) - 1
        bad = {k for k in range(n_slices) for t in triangles if not largest_shift(in_slice(cuts, *t, k))}
        if not bad:
            return cuts
        middles = [cuts[k] + (cuts[k + 1] - cuts[k]) // 2 for k in bad]
        cuts = np.array(sorted({*cuts, *middles}), np.int32)


def in_slice(cuts, indptr, columns, k):
    return columns[indptr[cuts[k]] : indptr[cuts[k + 1]]].astype(np.int64)
