"""Whether rows are numbered so that neighbors lie near each other in memory, and a numbering that does so.

A sweep reads for each row the values of its neighbors. Where one row's neighbors lie near those of the row before, they
are in the cache already; where rows are numbered at random, every one of them is read from memory anew.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import breadth_first_order, reverse_cuthill_mckee

SAMPLED = 64  # pairs of rows
NEAR = 16  # rows whose values lie in the same cache line, or in the next one
#: Bytes of a vector that the caches of one core hold, in any numbering.
CACHED = 2**18
#: Of the neighbors of a row, the share that lies near those of the row before. A numbering with a share below BAD is
#: bad, and is replaced by one whose share is larger by at least GAIN.
BAD, GAIN = 0.3, 0.4


def compact_order(indptr: np.ndarray, indices: np.ndarray, value_bytes: int, symmetric: bool) -> np.ndarray | None:
    """Return a breadth-first order of the rows, or None where the numbering at hand is as good.

    Parameters
    ----------
    indptr, indices : array of int32 or int64
        The pattern.
    value_bytes : int
        Of a number in a vector.
    symmetric : bool
        Whether the pattern is.

    Returns
    -------
    array of int32, shape (n,), or None
        New number -> old number.
    """
    n = len(indptr) - 1
    if n * value_bytes <= CACHED:
        return None
    before = share_near(indptr, indices, np.arange(n))
    if before >= BAD:
        return None
    graph = scipy.sparse.csr_array((np.ones(len(indices), np.int8), indices, indptr), shape=(n, n))
    order = breadth_first_order(graph, 0, directed=symmetric, return_predecessors=False)
    if len(order) < n:  # there are several components
        order = reverse_cuthill_mckee(graph, symmetric_mode=symmetric)
    return order if share_near(indptr, indices, order) >= before + GAIN else None


def share_near(indptr: np.ndarray, indices: np.ndarray, order: np.ndarray) -> float:
    """Of the neighbors of some rows, the share that lies near a neighbor of the row before in this order."""
    n = len(order)
    number = np.empty(n, np.int64)
    number[order] = np.arange(n)
    near = listed = 0
    for place in np.unique(np.arange(1, SAMPLED + 1) * (n - 1) // (SAMPLED + 1)).tolist():
        one, other = (
            np.sort(number[indices[indptr[row] : indptr[row + 1]]]) for row in order[[place, place + 1]].tolist()
        )
        if len(one) and len(other):
            after = np.searchsorted(one, other)
            distance = np.minimum(
                abs(one[np.minimum(after, len(one) - 1)] - other), abs(one[np.maximum(after - 1, 0)] - other)
            )
            near += int((distance <= NEAR).sum())
        listed += len(other)
    return near / listed if listed else 1.0
