"""The order of a slice's entries."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mcprecond.storage.schedule import MOST_ROWS


def lanes_of(rows: int) -> int:
    return MOST_ROWS >> int(rows - 1).bit_length()


def interleaved(cuts: np.ndarray, indptr: np.ndarray) -> list[int]:
    """Entry numbers in the order of the slices: sorted by slice, step, row and lane."""
    keys = []
    for k, (first, end) in enumerate(pairwise(cuts)):
        lanes = lanes_of(end - first)
        for i in range(first, end):
            keys += [(k, (e - indptr[i]) // lanes, i, e) for e in range(indptr[i], indptr[i + 1])]
    return [key[-1] for key in sorted(keys)]
