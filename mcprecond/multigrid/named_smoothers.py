"""The smoothers by their names."""

from __future__ import annotations

from functools import partial
from typing import Any

from mcprecond.backends.arguments import one_of
from mcprecond.matrix import AdmittedMatrix
from mcprecond.multigrid.polynomial import DEGREE, Polynomial
from mcprecond.multigrid.smoothers import Correction, GaussSeidel, Smoother
from mcprecond.preconditioners.dilu import MulticolorDILU

SMOOTHERS = ("gauss_seidel", "sgs", "dilu", "jacobi", "chebyshev")


def known_smoother(smoother: Any) -> Any:
    """Return a smoother's name, or a function that returns an operator for a matrix; refuse all else."""
    return smoother if callable(smoother) else one_of(smoother, "smoother", SMOOTHERS)


def new_smoother(smoother: Any, matrix: AdmittedMatrix, coloring: Any, block_size: int, dtype: Any) -> Smoother:
    """Return the smoother of a level.

    Parameters
    ----------
    smoother : str or function of a sparse matrix
        One of `SMOOTHERS`; or see `Correction`.
    matrix : AdmittedMatrix
    coloring, block_size
        As in `MulticolorSGS`; "jacobi" and "chebyshev" need neither, and "dilu" has no blocks.
    dtype : dtype or None
        Of the values stored.
    """
    if smoother in ("jacobi", "chebyshev"):
        return Polynomial(matrix, 1 if smoother == "jacobi" else DEGREE, dtype)
    if smoother in ("gauss_seidel", "sgs"):
        return GaussSeidel(matrix, coloring, block_size, dtype, both_ways=smoother == "sgs")
    if smoother == "dilu":
        smoother = partial(MulticolorDILU, coloring=coloring, dtype=dtype)
    return Correction(matrix, smoother, dtype)
