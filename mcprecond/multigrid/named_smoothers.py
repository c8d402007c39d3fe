"""The smoothers by their names."""

from __future__ import annotations

from functools import partial
from typing import Any

from mcprecond.backends.arguments import one_of
from mcprecond.matrix import AdmittedMatrix
from mcprecond.multigrid.polynomial import DEGREE, Polynomial
from mcprecond.multigrid.smoothers import Correction, GaussSeidel, Smoother
from mcprecond.preconditioners.dilu import MulticolorDILU

SMOOTHERS = ("auto", "gauss_seidel", "sgs", "dilu", "jacobi", "chebyshev")


def check_smoother(smoother: Any) -> Any:
    """Return a smoother's name, or a function that returns an operator for a matrix; refuse all else."""
    return smoother if callable(smoother) else one_of(smoother, "smoother", SMOOTHERS)


def choose_smoother(smoother: Any, coloring: Any) -> Any:
    """Return the smoother that "auto" stands for, or the given one."""
    if smoother != "auto":
        return smoother
    is_given = not isinstance(coloring, str) or coloring != "auto"
    return "gauss_seidel" if is_given else "chebyshev"


def is_polynomial(smoother: Any, coloring: Any) -> bool:
    """Whether the smoother is a polynomial; its vectors may have a wider dtype than the values that it reads."""
    return choose_smoother(smoother, coloring) in ("jacobi", "chebyshev")


def new_smoother(smoother: Any, matrix: AdmittedMatrix, coloring: Any, block_size: int, dtype: Any = None) -> Smoother:
    """Return the smoother of a level.

    Parameters
    ----------
    smoother : str or function of a sparse matrix
        One of `SMOOTHERS`; or see `Correction`.
    matrix : AdmittedMatrix
    coloring, block_size
        As in `MulticolorSGS`; "jacobi" and "chebyshev" need neither, and "dilu" has no blocks.
    dtype : dtype, optional
        Of the vectors, for a polynomial; that of the matrix by default.
    """
    smoother = choose_smoother(smoother, coloring)
    if is_polynomial(smoother, coloring):
        return Polynomial(matrix, 1 if smoother == "jacobi" else DEGREE, dtype)
    if smoother in ("gauss_seidel", "sgs"):
        return GaussSeidel(matrix, coloring, block_size, both_ways=smoother == "sgs")
    if smoother == "dilu":
        smoother = partial(MulticolorDILU, coloring=coloring)
    return Correction(matrix, smoother)
