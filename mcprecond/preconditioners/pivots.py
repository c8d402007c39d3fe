"""Pivots: the diagonal of an incomplete factorization, and what is done about those that nothing can be divided by.

An incomplete factorization of a symmetric positive definite matrix need not have positive pivots, and M is positive
definite only if all of them are. Manteuffel factorizes A + alpha D in place of A, D the diagonal, with an alpha that is
just large enough. Divided by 1 + alpha, his pivots are those of a relaxed elimination of A: each product that
elimination subtracts is multiplied by theta = (1 + alpha)^-2. These pivots are taken here, and what is off the diagonal
is relaxed likewise, but not divided, so that the triangles of DILU stay those of A, as Eisenstat's form needs them. For
small theta M becomes that of symmetric Gauss-Seidel, whose pivots are D.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mcprecond.backends import compile_row
from mcprecond.backends.arguments import did_you_mean
from mcprecond.backends.inputs import any_of, count_true
from mcprecond.coloring import Coloring
from mcprecond.linalg.hermitian import is_hermitian
from mcprecond.matrix import AdmittedMatrix
from mcprecond.preconditioners.colored import MOST_OF_DIAGONAL, Colored
from mcprecond.preconditioners.setup import store_factors
from mcprecond.sweeps.substitution import Chunks
from mcprecond.typing import PivotRule

PIVOT_RULES = ("positive", "raise", "shift")

TINY = 64  # times the unit of rounding and the row's largest entry: pivots below that are too small
SHIFTED, LOW, TRIANGLES = range(3)  # what kernels may find
CUDA_CONSTANTS = {"SHIFTED": SHIFTED, "LOW": LOW, "TRIANGLES": TRIANGLES}

# Relative to the diagonal entry: A is shifted unless all pivots are above LEAST, and then by so much that they are
# above LEAST_OF_SHIFTED, or for DILU above LEAST_OF_SHIFTED_DILU. DILU needs more than ILU(0), which drops less. Where
# all E_i > a_ii / 2, the eigenvalues of inv(M) A are bounded by the largest 1 / (2 - a_ii / E_i).
LEAST, LEAST_OF_SHIFTED, LEAST_OF_SHIFTED_DILU = 0.02, 0.02, 0.5
# The alphas that are tried: the last makes the pivots of every positive definite matrix positive, since its entries are
# bounded by |a_ij|^2 < a_ii a_jj and theta by a quarter of the inverse of their number in a row.
MANTEUFFEL = (0.02, 0.08, 0.32, 1.28, 5.12, 26.0, 687.0, 4.7e5)


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


class Factored(Colored):
    """``M = (T + L) inv(T) (T + U)`` with a diagonal T of pivots, which a subclass computes into `_pivots`.

    The color blocks store L and inv(T) U.
    """

    #: Rows of A whose pivots were shifted, and by how much.
    shifted: Shifts
    _pivot_rule: PivotRule
    _keeps_diagonal: bool
    _cancels: bool

    def _store(self, matrix: AdmittedMatrix, coloring: Coloring, pivot: PivotRule, dtype: Any) -> None:
        """Store the triangles of a canonical matrix, and make room for the pivots."""
        self.blocks, self._pivot_rule = store_factors(matrix, coloring, pivot, dtype), pivot
        self._pivots, self._dinv = self.backend.xp.empty_like(self.blocks.diagonal), self.blocks.dinv

    def _find_good_pivots(self, csr: Any, factorize: Callable[[float, float, float], tuple[Any, Any]]) -> None:
        """Factorize by the rule for pivots: raise, or take note of what was added to them.

        ``factorize(tiny, least, theta)`` does it, and returns what it found, on the host, and in color order what was
        added to the pivots.
        """
        tiny = TINY * float(np.finfo(self.blocks.dtype).eps)
        flags, shifts = factorize(tiny, LEAST, 1.0)
        raises = self._pivot_rule != "shift"
        if self._pivot_rule == "positive" and (flags[LOW] or flags[SHIFTED]) and self._may_be_shifted(csr, flags):
            # Where no pivot is low, one was tiny beside its row only: A is badly scaled.
            if not flags[LOW]:
                flags, shifts = factorize(0.0, LEAST, 1.0)
            least = LEAST_OF_SHIFTED if flags[TRIANGLES] else LEAST_OF_SHIFTED_DILU
            for alpha in MANTEUFFEL:
                if not flags[LOW]:
                    break
                flags, shifts = factorize(0.0, least, (1 + alpha) ** -2)
            raises = bool(flags[LOW])
        self._judge_pivots(shifts if flags[SHIFTED] else None, raises)

    def _may_be_shifted(self, csr: Any, flags: Any) -> bool:
        """Whether A is symmetric, or Hermitian, with a positive diagonal, but no M-matrix with positive pivots.

        Those may be low: the pivots of the exact factors are even lower.
        """
        diagonal, xp = self.blocks.diagonal.real, self.backend.xp
        if any_of(~(diagonal > 0)):
            return False
        no_other_is_positive = csr.dtype.kind != "c" and count_true(csr.data > 0, xp) == len(diagonal)
        if no_other_is_positive and not flags[SHIFTED] and not any_of(~(self._pivots > 0)):
            return False
        blocks = self.blocks
        matrix = AdmittedMatrix.computed(csr, self.backend, blocks.longest_row, is_symmetric=False)
        return is_hermitian(matrix)

    def _judge_pivots(self, shifts: Any, raises: bool) -> None:
        """Raise, or take note of what was added to the pivots: in color order, 0 if nothing; None if nothing to any."""
        self._keeps_diagonal, self._cancels = shifts is None, False
        if shifts is None:
            self.shifted = Shifts(np.empty(0, np.int64), np.empty(0, self.blocks.dtype))
            return
        blocks, backend = self.blocks, self.backend
        self._keeps_diagonal = not any_of(shifts[: int(blocks.free_rows[0])] != 0)
        bad = backend.xp.flatnonzero(shifts)
        rows, amounts = (backend.to_host(array[bad]) for array in (blocks.perm, shifts))
        if len(rows) and raises:
            raise ValueError(
                f"the pivot of row {rows[0]} of A is zero, tiny or not finite; pass pivot='shift' to change such pivots"
            )
        far = abs(self._pivots[bad]) > MOST_OF_DIAGONAL * abs(blocks.diagonal[bad])
        self._cancels = any_of(far)
        order = np.argsort(rows)
        self.shifted = Shifts(rows[order].astype(np.int64), amounts[order])

    @property
    def eisenstat_incompatibility(self) -> str | None:  # type: ignore[override]
        return (
            f"shifted pivots are more than {MOST_OF_DIAGONAL} times as large as diagonal entries, so that digits of a "
            "product with A would cancel"
            if self._cancels
            else None
        )

    @property
    def splitting(self) -> tuple[Any, Any, float]:
        """See `Colored`: the pivots."""
        return self._pivots, self._dinv, 1.0

    @property
    def keeps_diagonal(self) -> bool:
        """See `Colored`: nothing comes before the first color, so it is, unless pivots were shifted there."""
        return self._keeps_diagonal

    def _transposed(self, conjugate: bool) -> Any:
        """The same factors, transposed, in the same order."""
        blocks = self._transposed_blocks(conjugate, divides=False)
        pivots, blocks.dinv[...] = (array.conj() if conjugate else array.copy() for array in (self._pivots, self._dinv))
        blocks.divide_upper(pivots)
        return self._with(blocks=blocks, _pivots=pivots, _dinv=blocks.dinv)

    def enqueue(self, state: Chunks, r: Any, z: Any) -> None:
        for substitution, *vectors in state.of(r, z):
            substitution.solve(*vectors)


def check_rule(pivot: str) -> None:
    """Raise ValueError for an unknown rule."""
    if pivot not in PIVOT_RULES:
        hint = did_you_mean(str(pivot), PIVOT_RULES)
        raise ValueError(f"pivot must be one of {', '.join(PIVOT_RULES)}, got {pivot!r}{hint}")


@compile_row
def least_invertible(values):
    """The magnitude down to which inverses are finite in the dtype of an array."""
    return 3e-39 if values.real.itemsize == 4 else 5.7e-309


@compile_row
def safe_pivot(d, largest, tiny, least):
    """The pivot d, or, where d is tiny beside it, below `least` or not finite, the row's largest entry with d's (real)
    sign.
    """
    if tiny * largest < abs(d) < np.inf and abs(d) > least:
        return d
    shifted = largest if largest > least else largest + 1
    return -shifted if d.real < 0 else shifted


@compile_row
def is_low(d, diagonal, least):
    """Whether the pivot of a row with a positive diagonal entry is so little of it, or not a number."""
    return diagonal.real > 0 and not d.real > least * diagonal.real
