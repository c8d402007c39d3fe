"""Pivots: the diagonal of an incomplete factorization, and what is done about those that nothing can be divided by."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mcprecond.backends import compile_part
from mcprecond.matrix import AdmittedMatrix
from mcprecond.preconditioners.base import Preconditioner
from mcprecond.preconditioners.sweeps import Sweeps

PIVOT_RULES = ("raise", "shift")
ADVICE = "pass pivot='shift' to change such pivots"

TINY = 64  # times the unit of rounding and the row's largest entry: where pivots begin that are too small


class Shifts(NamedTuple):
    """Pivots that were shifted.

    Attributes
    ----------
    rows : numpy.ndarray of int64
        Rows of A, ascending.
    amounts : numpy.ndarray
        What was added to the pivot of each.
    """

    rows: np.ndarray
    amounts: np.ndarray


class Factored(Preconditioner):
    """``M = (T + L) inv(T) (T + U)`` with a diagonal T of pivots, which a subclass computes into `_pivots`.

    The color blocks store L and inv(T) U.
    """

    symmetric = True
    #: Rows of A whose pivots were shifted, and by how much.
    shifted: Shifts

    def _prepare(self, matrix: AdmittedMatrix, coloring: Any, pivot: str, dtype: Any) -> None:
        """Store the canonical matrix, find rows without a diagonal entry, and make room for the pivots."""
        self._open(matrix, coloring, dtype)
        blocks, xp = self.blocks, self.backend.xp
        self._pivot_rule = pivot
        lengths = (xp.diff(indptr) for indptr in (blocks.lower.indptr, blocks.upper.indptr))
        missing = xp.diff(matrix.indptr)[blocks.perm] == sum(lengths)
        if pivot == "raise" and bool(missing.any()):
            row = int(blocks.perm[missing].min())
            raise ValueError(f"A stores no diagonal entry in row {row}, so there is no pivot; store one or {ADVICE}")
        self._tiny = TINY * float(np.finfo(blocks.dtype).eps)
        self._pivots, self._dinv = xp.empty(self.shape[0], blocks.dtype), blocks.dinv

    def _judge_pivots(self, shifts: Any) -> None:
        """Raise, or take note of what was added to the pivots: in color order, 0 if nothing; None if nothing to any."""
        if shifts is None:
            self.shifted = Shifts(np.empty(0, np.int64), np.empty(0, self.dtype))
            return
        blocks, backend = self.blocks, self.backend
        bad = backend.xp.flatnonzero(shifts)
        rows, amounts = (backend.to_host(array[bad]) for array in (blocks.perm, shifts))
        if len(rows) and self._pivot_rule == "raise":
            raise ValueError(f"the pivot of row {rows[0]} of A is zero, tiny or not finite; {ADVICE}")
        order = np.argsort(rows)
        self.shifted = Shifts(rows[order].astype(np.int64), amounts[order])

    @property
    def splitting(self) -> tuple[Any, Any, float]:
        """See `Preconditioner`: the pivots."""
        return self._pivots, self._dinv, 1.0

    @property
    def keeps_diagonal(self) -> bool:
        """See `Preconditioner`: nothing comes before the first color, so it is, unless pivots were shifted."""
        return len(self.shifted.rows) == 0

    def _apply(self, sweeps: Sweeps, r: Any, z: Any) -> None:
        """See `Preconditioner`."""
        sweeps.solve(r, z)


def check_rule(pivot: str) -> None:
    """Raise ValueError for an unknown rule."""
    if pivot not in PIVOT_RULES:
        raise ValueError(f"pivot must be one of {', '.join(PIVOT_RULES)}, got {pivot!r}")


@compile_part
def safe_pivot(d, largest, tiny):
    """The pivot d, or, where d is zero, tiny beside it or not finite, the row's largest entry with d's (real) sign."""
    if tiny * largest < abs(d) < np.inf:
        return d
    shifted = largest if largest > 0 else largest + 1
    return -shifted if d.real < 0 else shifted
