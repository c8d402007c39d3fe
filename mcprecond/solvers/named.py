"""Preconditioners by their names, as in ``M="sgs"``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mcprecond.backends.arguments import integer
from mcprecond.backends.inputs import first_place
from mcprecond.linalg.diagonal import Diagonal
from mcprecond.matrix import REMEDY_FOR_ZERO_ROW, AdmittedMatrix
from mcprecond.preconditioners import ILU0, MulticolorDILU, MulticolorSGS


def invert_diagonal(matrix: AdmittedMatrix) -> Diagonal:
    """Return Jacobi's preconditioner.

    Raises
    ------
    ValueError
        If the inverse of a diagonal entry is not finite; names the row.
    """
    canonical, backend = matrix.canonical(), matrix.backend
    diagonal = canonical.diagonal()
    with np.errstate(all="ignore"):
        inverse, largest = 1 / diagonal, 1 / canonical.extremes[0]
    # `extremes` counts entries that are not positive as zero. So if the inverse of the least entry is finite, all
    # diagonal entries are positive, and all inverses are finite.
    row = None if np.isfinite(largest) else first_place(~backend.xp.isfinite(inverse), backend.xp)
    if row is not None:
        found = f"A has {diagonal[row].item()} on the diagonal in row {row}"
        remedy = f"take another one or none; if all of the row is zero, {REMEDY_FOR_ZERO_ROW}"
        raise ValueError(f"{found}, which Jacobi's preconditioner divides by; {remedy}")
    return Diagonal(inverse.astype(matrix.dtype, copy=False), backend, 1 - matrix.exponent)


def factorize_incompletely(matrix: AdmittedMatrix) -> Any:
    """Return SciPy's incomplete LU factors, with fill by a threshold (ILUT), as a LinearOperator.

    Raises
    ------
    ValueError
        If A is on a GPU, or SciPy finds A singular.
    """
    if matrix.backend.name == "gpu":
        raise ValueError("M='spilu' is SciPy's, for A on the CPU; take M='multigrid' or M='ilu0'")
    from scipy.sparse.linalg import LinearOperator

    factors = IncompleteFactors(matrix)
    return LinearOperator(matrix.shape, factors.solve, factors.solve_adjoint, dtype=matrix.dtype)


class IncompleteFactors:
    """SciPy's incomplete factors of A. SciPy's object cannot be pickled, so a copy factorizes A again."""

    def __init__(self, matrix: AdmittedMatrix) -> None:
        from scipy.sparse.linalg import spilu

        self.matrix = matrix
        try:
            # On flows this order, by minimum degree of A + A', and pivots near the diagonal give less fill-in.
            self._factors = spilu(matrix.csr.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.1)
        except RuntimeError as error:
            raise ValueError(f"M='spilu' fails: {error}; take M='multigrid' or M='ilu0'") from None

    def __reduce__(self) -> Any:
        return IncompleteFactors, (self.matrix,)

    def solve(self, b: Any) -> Any:
        return self._factors.solve(b.astype(self.matrix.dtype, copy=False))

    def solve_adjoint(self, b: Any) -> Any:
        return self._factors.solve(b.astype(self.matrix.dtype, copy=False), "H")


#: The constructors by name. Multigrid, which stands above this package, adds its own.
BUILDERS: dict[str, Callable[..., Any]] = {
    "jacobi": invert_diagonal,
    "sgs": MulticolorSGS,
    "dilu": MulticolorDILU,
    "ilu0": ILU0,
    "spilu": factorize_incompletely,
}
#: The constructors that take B or block_size, and which of the two.
OF_NODES = {"sgs": ("block_size",), "multigrid": ("B", "block_size")}
#: The preconditioners that may be stored in single precision; with these `pcg` iterates in single precision, to the
#: accuracy of double precision.
NARROW = ("sgs", "dilu")
BYTES_OF_ENTRY, MOST_CONTRAST = 12, 1e6
#: The names of preconditioners for `pcg`, and for methods for any matrix.
NAMES = ("auto", "jacobi", "sgs", "dilu", "ilu0", "multigrid")
GENERAL_NAMES = (*NAMES, "spilu")


def build(name: str, A: Any, nodes: dict[str, Any]) -> Any:
    """Build the preconditioner of a name, with those of the arguments in `nodes` that its constructor takes."""
    given = {key: nodes[key] for key in OF_NODES.get(name, ()) if key in nodes}
    if name in NARROW and isinstance(A, AdmittedMatrix) and narrow_is_faster(A):
        given["dtype"] = np.float32
    return BUILDERS[name](A, **given)


def narrow_is_faster(A: AdmittedMatrix) -> bool:
    """Whether sweeps with values in single precision take less time, at no risk: on a GPU whose cache has no room for
    A, if the diagonal entries of A are within a factor of MOST_CONTRAST.
    """
    if A.dtype != np.float64 or A.indices.size * BYTES_OF_ENTRY <= A.backend.shared_cache or A.backend.name == "cpu":
        return False
    least, largest = A.canonical().extremes
    return bool(largest <= MOST_CONTRAST * least)


def nodes_of(B: Any, block_size: Any, n: int, M: Any) -> dict[str, Any]:
    """Return a dictionary of `B` and `block_size`, without those that have their default values.

    Raises
    ------
    TypeError, ValueError
        If B or block_size does not fit a matrix with n rows, or if one of them is given and M is not a name. A
        preconditioner that is built already cannot use them.
    """
    block_size = integer(block_size, "block_size", 1)
    if n % block_size:
        raise ValueError(f"block_size {block_size} does not divide the {n} unknowns of A")
    if B is not None and (np.ndim(B) not in (1, 2) or np.shape(B)[0] != n):
        raise ValueError(f"B must have shape ({n},) or ({n}, k): a row for each row of A; got shape {np.shape(B)}")
    nodes = ({} if B is None else {"B": B}) | ({} if block_size == 1 else {"block_size": block_size})
    if nodes and not isinstance(M, str):
        raise ValueError(
            f"{' and '.join(nodes)} can be used only if M is a name; pass M='auto', 'sgs' or 'multigrid', or build M "
            "with them"
        )
    return nodes
