"""Preconditioners by their names, as in ``M="sgs"``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mcprecond.backends.inputs import first_place
from mcprecond.linalg.diagonal import Diagonal
from mcprecond.matrix import AdmittedMatrix
from mcprecond.preconditioners import ILU0, MulticolorDILU, MulticolorSGS


def invert_diagonal(matrix: AdmittedMatrix) -> Diagonal:
    """Return Jacobi's preconditioner.

    Raises
    ------
    ValueError
        If the inverse of a diagonal entry is not finite; names the row.
    """
    diagonal, backend = matrix.canonical().diagonal(), matrix.backend
    with np.errstate(all="ignore"):
        inverse = 1 / diagonal
    row = first_place(~backend.xp.isfinite(inverse), backend.xp)
    if row is not None:
        found = f"A has {diagonal[row].item()} on the diagonal in row {row}"
        raise ValueError(f"{found}, which Jacobi's preconditioner divides by; take another one or none")
    return Diagonal(inverse.astype(matrix.dtype), backend)


def factorize_incompletely(matrix: AdmittedMatrix) -> Any:
    """Return SciPy's incomplete LU factors, with fill by a threshold (ILUT), as a LinearOperator.

    Raises
    ------
    ValueError
        If A is on a GPU, or SciPy finds A singular.
    """
    if matrix.backend.name == "gpu":
        raise ValueError("M='spilu' is SciPy's, for A on the CPU; take M='multigrid' or M='ilu0'")
    from scipy.sparse.linalg import LinearOperator, spilu

    try:
        # Minimum degree of A + A' and pivots near the diagonal: less fill and less time than the defaults on flows.
        factors = spilu(matrix.csr.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.1)
    except RuntimeError as error:
        raise ValueError(f"M='spilu' fails: {error}; take M='multigrid' or M='ilu0'") from None
    return LinearOperator(matrix.shape, factors.solve, lambda b: factors.solve(b, "H"), dtype=matrix.dtype)


#: The constructors by name. Multigrid, which stands above this package, adds its own.
BUILDERS: dict[str, Callable[[Any], Any]] = {
    "jacobi": invert_diagonal,
    "sgs": MulticolorSGS,
    "dilu": MulticolorDILU,
    "ilu0": ILU0,
    "spilu": factorize_incompletely,
}
#: The names of preconditioners for `pcg`, and for methods for any matrix.
NAMES = ("auto", "jacobi", "sgs", "dilu", "ilu0", "multigrid")
GENERAL_NAMES = (*NAMES, "spilu")
