"""Units of a hierarchy, and what a matrix has to be like on every level so that cycles can compute with it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from mcprecond.backends.inputs import first_place
from mcprecond.linalg.powers import times_power
from mcprecond.matrix import AdmittedMatrix, canonical_csr, place_of
from mcprecond.multigrid.galerkin import diagonal_places

#: A coarse diagonal entry counts as canceled below so many units of rounding times what it would be without couplings.
CANCELED = 100
ADVICE = "scale rows and columns of A to a diagonal of about 1"


def unit_of(matrix: AdmittedMatrix, stored: Any) -> int:
    """Return the exponent of the power of two that A is divided by before a hierarchy is computed.

    It is 0 where the diagonal is so far from overflow and underflow in `stored` that squares and sums are, too.
    """
    diagonal = matrix.diagonal().real
    if not len(diagonal):
        return 0
    least, most = (math.frexp(float(extreme))[1] for extreme in (diagonal.min(), diagonal.max()))
    near, limit = np.finfo(stored).maxexp // 3, np.finfo(matrix.dtype).maxexp - 2
    return 0 if -near <= least and most <= near else max(-limit, min((least + most) // 2, limit))


def divided(matrix: AdmittedMatrix, unit: int) -> AdmittedMatrix:
    """The matrix divided by 2^unit."""
    return matrix if unit == 0 else _with_values(matrix, times_power(matrix.data, -unit, matrix.backend.xp))


def _with_values(matrix: AdmittedMatrix, values: Any) -> AdmittedMatrix:
    csr = canonical_csr(values, matrix.csr.indices, matrix.csr.indptr, matrix.shape, matrix.backend)
    return replace(matrix, csr=csr, largest=None)


def narrowed(matrix: AdmittedMatrix, stored: Any, level: int) -> AdmittedMatrix:
    """Return the matrix of a level with zeros in place of entries that would underflow in a narrower dtype.

    Raises
    ------
    ValueError
        If an entry is too large for it, or one of the diagonal too small; names the level and the row.
    """
    info, xp = np.finfo(stored), matrix.backend.xp
    if not matrix.data.size or info.maxexp == np.finfo(matrix.dtype).maxexp:
        return matrix
    parts = matrix.data.view(np.float64)
    sizes = abs(parts)
    place = int(sizes.argmax()) * len(matrix.data) // len(parts)
    if float(sizes.max()) > float(info.max):
        _refuse_range(matrix, *place_of(matrix.csr, place, matrix.backend), stored, level)
    if first_place((sizes > 0) & (sizes < float(info.tiny)), xp) is None:
        return matrix
    kept = _with_values(matrix, xp.where(sizes < float(info.tiny), 0, parts).view(matrix.dtype))
    row = first_place((kept.diagonal() == 0) & (matrix.diagonal() != 0), xp)
    if row is not None:
        _refuse_range(matrix, row, row, stored, level)
    return kept


def _refuse_range(matrix: AdmittedMatrix, row: int, column: int, stored: Any, level: int) -> NoReturn:
    raise ValueError(
        f"the matrix of level {level} holds {matrix.csr[row, column].item():.3g} in row {row}, column {column}, which "
        f"{stored} has no room for; leave out dtype, or {ADVICE}"
    )


def refuse_indefinite(coarse: AdmittedMatrix, R: Any, diagonal: Any, level: int) -> None:
    """Raise ValueError if a coarse matrix R A P has a negative diagonal entry; `diagonal` is that of A.

    Where the sum that makes an entry cancels to rounding, as where A is singular, the coarse unknown stands for a
    vector of the null space. Its entry becomes that of a row without couplings, so that there is hardly a correction.
    """
    xp, own = coarse.backend.xp, coarse.diagonal().real
    rounding = CANCELED * float(np.finfo(coarse.dtype).eps)
    if not len(own) or float(own.min()) > rounding * float(diagonal.max()):
        return
    squares = canonical_csr(abs(R.data) ** 2, R.indices, R.indptr, R.shape, coarse.backend)
    uncoupled = squares @ diagonal
    row = first_place(~(own >= -rounding * uncoupled), xp)
    if row is not None:
        raise ValueError(
            f"the matrix of level {level} has {own[row].item():.3g} on the diagonal in row {row}, so A is not positive "
            "definite; use ILU0 with gmres or bicgstab"
        )
    vanished = xp.flatnonzero(own <= rounding * uncoupled)
    coarse.data[diagonal_places(coarse.csr, vanished, xp)] = uncoupled[vanished]
