"""FiPy's solvers of its SciPy suite with the preconditioners of this package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcprecond.backends.arguments import describe
from mcprecond.matrix import PatternChangedError
from mcprecond.typing import Matrix

__all__ = ["UpdatedPreconditioner", "preconditioner"]


class UpdatedPreconditioner:
    """What a solver of FiPy takes as ``precon``: see `preconditioner`, which makes one.

    Attributes
    ----------
    M : Preconditioner or None
        Of the last matrix.
    builds, updates : int
        How often it was built, and how often it was given new values.
    """

    def __init__(self, make: Callable[[Matrix], Any]) -> None:
        self._make = make
        self.M: Any = None
        self.builds = self.updates = 0

    def _applyToMatrix(self, matrix: Any) -> tuple[Any, Any]:  # as FiPy names it
        """Return M for a matrix, and the matrix itself."""
        if self.M is not None and self.M.shape == matrix.shape and self.M.dtype == matrix.dtype:
            try:
                self.M.update(matrix)
                self.updates += 1
                return self.M, matrix
            except PatternChangedError:
                pass
        self.M = None  # not two at once in memory
        self.M = self._make(matrix)
        self.builds += 1
        return self.M, matrix


def preconditioner(operator: Callable[..., Any], *args: Any, **kwargs: Any) -> UpdatedPreconditioner:
    """Return a preconditioner for the solvers of FiPy's SciPy suite.

    It builds an operator of the first matrix that it meets, and gives new values to it as long as the pattern stays.
    One object serves one equation at a time: for two that are solved in turns, make two.

    Parameters
    ----------
    operator : class
        Such as `MulticolorSGS`, `ILU0` or `SmoothedAggregation`.
    *args, **kwargs
        Of its constructor, after A.

    Returns
    -------
    UpdatedPreconditioner
        To be passed as ``precon``. Its attributes are `M`, `builds` and `updates`.

    Raises
    ------
    TypeError
        If operator cannot be called.

    Examples
    --------
    >>> from mcprecond import MulticolorSGS
    >>> from mcprecond.interop.fipy import preconditioner
    >>> precon = preconditioner(MulticolorSGS, "greedy", omega=1.1)  # LinearCGSolver(precon=precon)
    >>> precon.builds
    0
    """
    if not callable(operator):
        raise TypeError(f"operator must be a class of preconditioners, got {describe(operator)}")
    return UpdatedPreconditioner(lambda A: operator(A, *args, **kwargs))
