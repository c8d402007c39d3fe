"""The smoothers by their names."""

from __future__ import annotations

from typing import Any

from mcprecond.matrix import AdmittedMatrix
from mcprecond.multigrid.polynomial import DEGREE, Polynomial
from mcprecond.multigrid.smoothers import DILU, GaussSeidel, Smoother

SMOOTHERS = ("gauss_seidel", "sgs", "dilu", "jacobi", "chebyshev")


def new_smoother(name: str, matrix: AdmittedMatrix, coloring: Any, block_size: int, dtype: Any) -> Smoother:
    """Return the smoother of a level.

    Parameters
    ----------
    name : str
        One of `SMOOTHERS`.
    matrix : AdmittedMatrix
    coloring, block_size
        As in `MulticolorSGS`; "jacobi" and "chebyshev" need neither, and "dilu" has no blocks.
    dtype : dtype or None
        Of the values stored.
    """
    if name in ("jacobi", "chebyshev"):
        return Polynomial(matrix, 1 if name == "jacobi" else DEGREE, dtype)
    if name == "dilu":
        return DILU(matrix, coloring, dtype)
    return GaussSeidel(matrix, coloring, block_size, dtype, symmetric=name == "sgs")
