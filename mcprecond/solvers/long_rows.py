"""Long rows of a matrix on a GPU: pieces of them, which many warps multiply at once.

One warp walks a row of 10^5 entries for a millisecond, while all others wait. So rows beyond a length are cut into
pieces. The last warp to finish a piece of a row adds up what was found for all of them, in their order: results do not
depend on which warp that is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mcprecond.backends import Backend

PIECE = 1024  # entries
LONG = 32  # entries for each of the threads of a row, from which on it is cut
CUDA_CONSTANTS = {"PIECE": PIECE}


class LongRows(NamedTuple):
    """The long rows, as kernels take them.

    Attributes
    ----------
    longest : int
        How many entries the longest row has that is not cut.
    n_rows, n_pieces : int
    plan : array of int32
        For each piece the number of its row among the long ones; for each long row, its row; where its pieces begin.
    work : array of float64
        For each long row what it adds to the inner product, and how many of its pieces are done; for each piece its
        sum, of two numbers at most.
    """

    longest: int
    n_rows: int
    n_pieces: int
    plan: Any
    work: Any


def long_rows(indptr: Any, longest_row: int, lanes: int, backend: Backend) -> LongRows:
    """Cut the rows of a matrix that are too long for so many threads.

    Parameters
    ----------
    indptr : array, shape (n + 1,)
        Row offsets.
    longest_row : int
        The length of the longest row, or more.
    lanes : int
        How many threads share a row.
    """
    xp, longest = backend.xp, LONG * lanes
    if not backend.resident_warps or longest_row <= longest:
        return LongRows(2**62, 0, 0, xp.zeros(1, np.int32), xp.zeros(1, np.float64))
    lengths = xp.diff(indptr.astype(np.int64))
    rows = xp.flatnonzero(lengths > longest)
    firsts = xp.zeros(len(rows) + 1, np.int64)
    xp.cumsum(-(-lengths[rows] // PIECE), out=firsts[1:])
    pieces = int(firsts[-1])
    owners = xp.searchsorted(firsts, xp.arange(pieces), side="right") - 1
    plan = xp.concatenate([owners, rows, firsts]).astype(np.int32)
    return LongRows(longest, len(rows), pieces, plan, xp.zeros(2 * (len(rows) + pieces), np.float64))
