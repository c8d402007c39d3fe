"""What a solver returns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    ArrayT = TypeVar("ArrayT", default=Any)
else:
    from typing import TypeVar

    ArrayT = TypeVar("ArrayT")


class Reason(Enum):
    """Why a solver stopped. The value says what to try."""

    CONVERGED = "converged: the true residual is within the tolerance"
    MAX_ITERATIONS = "not converged within maxiter; raise maxiter or rtol, or use a stronger preconditioner"
    STAGNATED = (
        "the residual cannot be reduced further in this precision; raise rtol, use float64, or scale the equations"
    )
    INDEFINITE_A = "breakdown: p'Ap is not positive, so A is not positive definite; use gmres or bicgstab"
    UNSYMMETRIC_A = "not converged, and A is not symmetric (or Hermitian), which CG needs; use gmres or bicgstab"
    INCONSISTENT = (
        "not converged: A is singular to working precision and b has a part in its null space, so that no x solves the "
        "system; take that part out of b, as pcg(nullspace=...) does, or b - b.mean() where constants are in that space"
    )
    INDEFINITE_M = "breakdown: r'Mr is not positive, so M is not positive definite; use another preconditioner"
    NO_PROGRESS = (
        "not converged: a whole cycle of gmres did not reduce the residual; raise restart, use another preconditioner, "
        "or bicgstab; if A is singular, there may be no solution"
    )
    BREAKDOWN = (
        "breakdown: a coefficient of the recurrence is a division by about zero; use gmres, another preconditioner, or "
        "another x0"
    )
    NOT_FINITE = "a NaN or infinity appeared during the iteration; check the scale of A, M and b"


@dataclass(frozen=True)
class SolveResult(Generic[ArrayT]):
    """The solution and how it was reached. Unpacks as ``x, info = result``, like SciPy's solvers.

    Attributes
    ----------
    x : array, shape (n,)
        The last iterate, on the device of A.
    reason : Reason
    iterations : int
    residuals : numpy.ndarray of float64, shape (iterations + 1,)
        ``||r||`` at the start and after every iteration, as the recurrence has it.
    residual_norm : float
        ``||b - A x||``, computed from x.
    setup_seconds, solve_seconds : float
        Wall time before and during the iteration.
    cycles : int, optional
        Of `gmres`, unless iterations are what its `maxiter` counts.
    """

    x: ArrayT
    reason: Reason
    iterations: int
    residuals: npt.NDArray[np.float64]
    residual_norm: float
    setup_seconds: float
    solve_seconds: float
    cycles: int | None = None

    @property
    def converged(self) -> bool:
        """Whether the tolerance was met."""
        return self.reason is Reason.CONVERGED

    @property
    def info(self) -> int:
        """SciPy's number: 0 if converged, -1 after a breakdown or NaN, otherwise the number of iterations or cycles."""
        if self.converged:
            return 0
        return (
            max(self.iterations if self.cycles is None else self.cycles, 1)
            if self.reason in (Reason.MAX_ITERATIONS, Reason.STAGNATED)
            else -1
        )

    def __iter__(self) -> Iterator[Any]:
        yield self.x
        yield self.info

    def __repr__(self) -> str:
        return f"<SolveResult: {self.reason.value}; {self.iterations} iterations, residual {self.residual_norm:.3g}>"
