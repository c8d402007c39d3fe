"""The smoothers by their names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from mcprecond.backends.arguments import one_of
from mcprecond.matrix import AdmittedMatrix
from mcprecond.multigrid.polynomial import DEGREE, STEPS, DampedJacobi, Polynomial
from mcprecond.multigrid.smoothers import Correction, GaussSeidel, Smoother
from mcprecond.preconditioners.dilu import MulticolorDILU
from mcprecond.typing import SmootherName

#: The names of the polynomial smoothers, and how many steps a sweep of each takes. These smoothers need no coloring.
#: They may store the matrix in a narrower dtype than their vectors.
POLYNOMIALS = {"jacobi": 1, "damped_jacobi": STEPS, "chebyshev": DEGREE}
#: Name -> function of a matrix, a coloring, a block size and a dtype, as `new_smoother` has them.
BUILDERS: dict[SmootherName, Callable[[AdmittedMatrix, Any, int, Any], Smoother]] = {
    "gauss_seidel": lambda matrix, coloring, block_size, dtype: GaussSeidel(matrix, coloring, block_size),
    "sgs": lambda matrix, coloring, block_size, dtype: GaussSeidel(matrix, coloring, block_size, both_ways=True),
    "jacobi": lambda matrix, coloring, block_size, dtype: Polynomial(matrix, POLYNOMIALS["jacobi"], dtype),
    "damped_jacobi": lambda matrix, coloring, block_size, dtype: DampedJacobi(matrix, dtype),
    "chebyshev": lambda matrix, coloring, block_size, dtype: Polynomial(matrix, POLYNOMIALS["chebyshev"], dtype),
}
SMOOTHERS = ("auto", "dilu", *BUILDERS)


def check_smoother(smoother: Any) -> Any:
    """Return a smoother's name, or a function that returns an operator for a matrix; refuse all else."""
    return smoother if callable(smoother) else one_of(smoother, "smoother", SMOOTHERS)


def choose_smoother(smoother: Any, coloring: Any, is_symmetric: bool = True) -> Any:
    """Return the smoother that "auto" stands for, or the given one."""
    if smoother != "auto":
        return smoother
    is_given = not isinstance(coloring, str) or coloring != "auto"
    return "gauss_seidel" if is_given else "chebyshev" if is_symmetric else "damped_jacobi"


def new_smoother(
    smoother: Any,
    matrix: AdmittedMatrix,
    coloring: Any,
    block_size: int,
    dtype: Any = None,
    is_symmetric: bool = True,
) -> Smoother:
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
    is_symmetric : bool
        Whether the matrix is Hermitian up to rounding.
    """
    smoother = choose_smoother(smoother, coloring, is_symmetric)
    if smoother == "dilu":
        smoother = partial(MulticolorDILU, coloring=coloring)
    if callable(smoother):
        return Correction(matrix, smoother, is_symmetric)
    return BUILDERS[smoother](matrix, coloring, block_size, dtype)
