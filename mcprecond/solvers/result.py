"""What a solver returns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

import numpy as np
import numpy.typing as npt

from mcprecond.linalg.powers import times_power
from mcprecond.solvers.backward import (
    accurate_residual,
    energy_of,
    find_backward_error,
    find_componentwise_error,
    least_error,
)
from mcprecond.solvers.energy import Squares
from mcprecond.solvers.shown import describe, draw, way_of

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    ArrayT = TypeVar("ArrayT", default=Any)
else:
    from typing import TypeVar

    ArrayT = TypeVar("ArrayT")


class Reason(Enum):
    """Why a solver stopped. The value says what to try."""

    CONVERGED = "converged within the tolerance"
    CONVERGED_IN_DOUBLE = (
        "converged within the tolerance; single precision, which M is stored in, could not reach it, so that double "
        "precision took over; build M without dtype for such systems"
    )
    CONVERGED_IN_RESIDUAL = (
        "converged: the true residual is within the tolerance; the residual is small, the solution may not be: "
        "norm='energy' tests the error"
    )
    MAX_ITERATIONS = "not converged within maxiter; raise maxiter or rtol, or use a stronger preconditioner"
    LEFT = 'not converged: M="auto" goes on with another preconditioner'
    STAGNATED = (
        "the residual cannot be reduced further in this precision with this preconditioner; raise rtol, use float64, "
        "scale the equations, or use another preconditioner"
    )
    INDEFINITE_A = (
        "breakdown: p'Ap is not positive, so A is not positive definite; use minres if A is symmetric, gmres or "
        "bicgstab otherwise"
    )
    UNSYMMETRIC_A = (
        "not converged, and A is not symmetric (or Hermitian), which CG and MINRES need; use gmres or bicgstab"
    )
    INCONSISTENT = (
        "not converged: A is singular to working precision and b has a part in its null space, so that no x solves the "
        "system; take that part out of b, as pcg(nullspace=...) does, or b - b.mean() where constants are in that space"
    )
    INDEFINITE_M = "breakdown: r'Mr is not positive, so M is not positive definite; use another preconditioner"
    NO_PROGRESS = (
        "not converged: a whole cycle of gmres, or a start of minres, did not reduce the residual; with gmres raise "
        "restart; use another preconditioner, or bicgstab; if A is singular, there may be no solution"
    )
    BREAKDOWN = (
        "breakdown: a coefficient of the recurrence is a division by about zero; use gmres, another preconditioner, or "
        "another x0"
    )
    DIVERGED = (
        "breakdown: the residual has grown so large that rounding has left nothing of b in it; A may be singular or "
        "far from definite, or M may not fit; use gmres or another preconditioner"
    )
    NOT_FINITE = "a NaN or infinity appeared during the iteration; check the scale of A, M and b"


#: The reasons that say that the tolerance was met.
SUCCESSES = Reason.CONVERGED, Reason.CONVERGED_IN_DOUBLE, Reason.CONVERGED_IN_RESIDUAL
#: The reasons that are facts about A and b.
CAUSES = Reason.UNSYMMETRIC_A, Reason.INCONSISTENT


class Stage(NamedTuple):
    """What was used for a part of a solve, and the number of iterations with it.

    With ``M="auto"`` the name is a preconditioner's. With an M that is stored in a narrower dtype than the
    system's it is a dtype's, such as "float32".
    """

    name: str
    iterations: int


@dataclass(frozen=True)
class SolveResult(Generic[ArrayT]):
    """The solution and how it was reached. Unpacks as ``x, info = result``, like SciPy's solvers.

    A result keeps references to A and b, because some of its attributes compute errors when they are read. It does not
    copy A or b.

    Attributes
    ----------
    x : array, shape (n,)
        On the device of A: the last iterate if it has converged. Otherwise the iterate with the least true residual,
        out of those whose true residual was computed: the initial guess, the last iterate, and the iterates at which
        the solve started over.
    reason : Reason
    iterations : int
    residuals : numpy.ndarray of float64, shape (iterations + 1,)
        ``||r||`` at the start and after every iteration, as the recurrence has it.
    residual_norm : float
        ``||b - A x||``, computed from x.
    setup_seconds, solve_seconds : float
        Wall time before and during the iteration.
    cycles : int, optional
        The number of cycles of `gmres`; None for other solvers, and if its `maxiter` counts iterations.
    stages : tuple of Stage
        With ``M="auto"``, the preconditioners that were used, in their order. With an M that is stored in a narrower
        dtype than the system's, the dtypes that the iteration ran in.
    M : preconditioner or diagonal operator, optional
        With ``M="auto"``, the preconditioner that was used last, for further solves; None if there was none.
    detail : str
        What is known of this system beside the reason, such as the row of A that is zero, or the `nullspace` to pass
        to `pcg`; often empty.
    method : str
        The name of the solver, such as "pcg". It is "direct" if `solve` has used a direct solver.
    norm_of_b : float
        ``||b||``. If a null space was given, the norm of the projected b.
    error_iterations : int
        After ``norm="energy"``, the number of further iterations that have told the error of x.
    """

    x: ArrayT
    reason: Reason
    iterations: int
    residuals: npt.NDArray[np.float64]
    residual_norm: float
    setup_seconds: float
    solve_seconds: float
    cycles: int | None = None
    stages: tuple[Stage, ...] = ()
    M: Any = None
    detail: str = ""
    method: str = ""
    norm_of_b: float = np.nan
    error_iterations: int = 0
    _coefficients: Any = field(default=None, repr=False, compare=False)
    _system: Any = field(default=None, repr=False, compare=False)

    @cached_property
    def energy_error(self) -> Any:
        """An estimate of ``||x - x*||_A / ||x*||_A``, with the solution x*, by the coefficients of CG and by the
        residual; NaN where the coefficients are not known, or too few. See `energy_delay`. A solve that was to end by
        ``norm="energy"`` has found the correction of x, whose norm is the error.
        """
        squares = self._squares
        return float(np.sqrt(squares.error / squares.whole)) if squares is not None and squares.whole > 0 else np.nan

    @cached_property
    def _squares(self) -> Squares | None:
        """The squares of the energy norms of the error and of the solution, in the units of the coefficients of CG.

        None where they are not known.
        """
        known, estimate = self._coefficients, self._estimate
        if known is not None and known.found is not None:
            return known.found
        if estimate is None:
            return None
        error = max(estimate.last, known.hidden)
        if self._system is None:
            return Squares(error, estimate.whole + error)
        matrix, b, x = self._system_of_coefficients()
        r = accurate_residual(matrix, b, x)
        error = max(error, least_error(matrix, x, r))
        return Squares(error, energy_of(matrix, b, x, r) + error)

    def _system_of_coefficients(self) -> tuple[Any, Any, Any]:
        """A, b and x, in the units of the coefficients of CG."""
        (matrix, b), shift = self._system, self._coefficients.shift
        return matrix, *(times_power(v, shift, matrix.backend.xp) for v in (b, self.x))

    @cached_property
    def energy_errors(self) -> npt.NDArray[np.float64]:
        """The relative energy error at the start and after every iteration by the coefficients of CG, shape
        (iterations + 1,): the estimate of the last one, and what the iterations in between have reduced it by. NaN
        before the last stage, and where `energy_error` is NaN.
        """
        errors, last = np.full(len(self.residuals), np.nan), self._squares
        if last is not None and last.whole > 0:
            squares = np.append(np.cumsum(self._coefficients.gains[::-1])[::-1], 0.0)
            errors[-len(squares) :] = np.sqrt((squares + last.error) / last.whole)
        return errors

    @property
    def energy_delay(self) -> Any:
        """How many iterations `energy_error` is based on: the last ones, whose steps add up to nearly all of the error
        before them. The error after them is extrapolated. It is 0 where `energy_error` is NaN.
        """
        return 0 if self._estimate is None else self._estimate.delay

    @cached_property
    def condition(self) -> Any:
        """A lower bound, mostly a good estimate, of the condition number of M A with respect to the eigenvalues that b
        has a part in, by the Lanczos matrix of CG; NaN where it is not known.
        """
        return np.nan if self._coefficients is None else self._coefficients.condition()

    @cached_property
    def backward_error(self) -> Any:
        """``||b - A x|| / (||A|| ||x|| + ||b||)`` in maximum norms: by how much A and b would have to change, relative
        to their largest rows, for x to be exact. NaN where A is an operator.
        """
        if self._system is None:
            return np.nan
        matrix, b = self._system
        return find_backward_error(matrix, b, self.x)

    def componentwise_backward_error(self) -> Any:
        """Return the largest ``|b - A x|_i / (|A| |x| + |b|)_i``: by how much each number of A and b would have to
        change, relative to itself, for x to be exact.

        Where the coefficients of A differ by many orders of magnitude, the norm of the residual may be small although
        some unknowns are far from the solution. Then this number is near 1. It takes a product with A and one with its
        magnitudes.

        Returns
        -------
        float
            For several columns an array, shape (k,).

        Raises
        ------
        TypeError
            If A is an operator, of whose entries nothing is known.

        References
        ----------
        Oettli, Prager: Compatibility of approximate solution of linear equations with given error bounds for
        coefficients and right-hand sides, Numer. Math. 6, 1964.
        """
        if self._system is None:
            raise TypeError("A is an operator, whose entries are not known, and not a sparse or dense matrix")
        matrix, b = self._system
        return find_componentwise_error(matrix, b, self.x)

    @property
    def _is_of_cg(self) -> bool:
        """Whether coefficients of CG are known, and A is a matrix."""
        return self._coefficients is not None and self._system is not None

    @cached_property
    def _estimate(self) -> Any:
        return None if self._coefficients is None else self._coefficients.estimate()

    @property
    def relative_residual(self) -> Any:
        """``||b - A x|| / ||b||``, and 0 where both are 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.divide(self.residual_norm, self.norm_of_b)
        found = np.where(np.equal(self.residual_norm, 0), 0.0, ratio)
        return found if found.ndim else float(found)

    @property
    def converged(self) -> bool:
        """Whether the tolerance was met."""
        return self.reason in SUCCESSES

    @property
    def info(self) -> int:
        """SciPy's number: 0 if converged, -1 after a breakdown or NaN, otherwise the number of iterations or cycles."""
        if self.converged:
            return 0
        if self.reason not in (Reason.MAX_ITERATIONS, Reason.STAGNATED):
            return -1
        return max(int(np.max(self.counted)), 1)

    @property
    def counted(self) -> Any:
        """What `maxiter` counts: cycles, or iterations."""
        return self.iterations if self.cycles is None else self.cycles

    def __iter__(self) -> Iterator[Any]:
        yield self.x
        yield self.info

    def __repr__(self) -> str:
        return (
            f"<SolveResult: {self._why}; {way_of(self)}, {self.iterations} iterations, relative residual "
            f"{self.relative_residual:.3g}, {self.setup_seconds + self.solve_seconds:.3g} s>"
        )

    def __str__(self) -> str:
        return describe(self, self._why)

    @property
    def _why(self) -> str:
        return self.reason.value + (f"; {self.detail}" if self.detail else "")

    def plot(self, ax: Any = None) -> Any:
        """Draw the relative residual and the estimate of the energy error over the iterations, and mark the stages.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            By default those of a new figure.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ImportError
            If matplotlib is not installed.

        Examples
        --------
        >>> import numpy as np
        >>> from mcprecond import pcg, problems
        >>> result = pcg(problems.graphs.grid2d(30), np.ones(900), M="sgs", rtol=1e-8)
        >>> ax = result.plot()
        >>> [line.get_label() for line in ax.lines]
        ['residual, relative to b', 'energy error, estimated']
        """
        return draw(self._each, self.stages, ax)

    @property
    def _each(self) -> tuple[SolveResult[ArrayT], ...]:
        """The result of each column."""
        return (self,)


@dataclass(frozen=True, repr=False)
class ColumnsResult(SolveResult[ArrayT]):
    """The solutions for several right-hand sides and how they were reached. Unpacks as ``X, info = result``.

    Attributes
    ----------
    x : array, shape (n, k)
        On the device of A; each column as for one right-hand side.
    reason : Reason
        The reason of the worst column. It says that the solve converged only if all columns converged.
    iterations : numpy.ndarray of int64, shape (k,)
    residuals : numpy.ndarray of float64, shape (most iterations + 1, k)
        ``||r||`` of each column at the start and after every iteration, as the recurrence has it; NaN after its last
        one.
    residual_norm : numpy.ndarray of float64, shape (k,)
        ``||b - A x||`` of each column, computed from x.
    setup_seconds, solve_seconds : float
        Wall time before and during the iteration.
    columns : tuple of SolveResult
        One for each column.
    norm_of_b : numpy.ndarray of float64, shape (k,)
        ``||b||`` of each column.
    error_iterations : numpy.ndarray of int64, shape (k,)
    detail : str
        As for one right-hand side, of the first column that has one.

    Examples
    --------
    >>> import numpy as np
    >>> from mcprecond import MulticolorSGS, pcg, problems
    >>> A = problems.graphs.grid2d(30)
    >>> B = np.random.default_rng(0).uniform(-1, 1, (900, 3))
    >>> result = pcg(A, B, M=MulticolorSGS(A, "greedy"), rtol=1e-6)
    >>> result.x.shape, result.reason.name
    ((900, 3), 'CONVERGED')
    >>> result.iterations
    array([40, 40, 40])
    """

    iterations: npt.NDArray[np.int64]  # type: ignore[assignment]
    residual_norm: npt.NDArray[np.float64]  # type: ignore[assignment]
    norm_of_b: npt.NDArray[np.float64] | float = np.nan  # type: ignore[assignment]
    error_iterations: npt.NDArray[np.int64] | int = 0  # type: ignore[assignment]
    columns: tuple[SolveResult[ArrayT], ...] = ()

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The reason of each column."""
        return tuple(column.reason for column in self.columns)

    @cached_property
    def energy_error(self) -> Any:
        return np.array([result.energy_error for result in self.columns])

    @property
    def energy_delay(self) -> Any:
        return np.array([result.energy_delay for result in self.columns])

    @cached_property
    def energy_errors(self) -> npt.NDArray[np.float64]:
        errors = np.full(self.residuals.shape, np.nan)
        for k, column in enumerate(self.columns):
            errors[: len(column.residuals), k] = column.energy_errors
        return errors

    @cached_property
    def condition(self) -> Any:
        return np.array([result.condition for result in self.columns])

    @cached_property
    def backward_error(self) -> Any:
        return np.array([result.backward_error for result in self.columns])

    def componentwise_backward_error(self) -> Any:
        return np.array([result.componentwise_backward_error() for result in self.columns])

    @property
    def _each(self) -> tuple[SolveResult[ArrayT], ...]:
        return self.columns

    def __repr__(self) -> str:
        k, converged = len(self.reasons), sum(reason in SUCCESSES for reason in self.reasons)
        few, most = int(self.iterations.min()), int(self.iterations.max())
        return (
            f"<ColumnsResult: {self._why}; {self.method}, {converged} of {k} columns converged, {few} to {most} "
            f"iterations, largest relative residual {self.relative_residual.max():.3g}, "
            f"{self.setup_seconds + self.solve_seconds:.3g} s>"
        )


def worst(reasons: Sequence[Reason]) -> Reason:
    """The reason of the column that fares worst: the last one in the order in which reasons are declared."""
    return max(reasons, key=list(Reason).index)


def add_stages(stages: Sequence[Stage], more: Sequence[Stage]) -> tuple[Stage, ...]:
    """The stages of two parts of a solve. If the second part begins as the first one ends, these are one stage."""
    if stages and more and stages[-1].name == more[0].name:
        joined = Stage(more[0].name, stages[-1].iterations + more[0].iterations)
        return (*stages[:-1], joined, *more[1:])
    return (*stages, *more)


def merge(results: Sequence[SolveResult[Any]], stages: Sequence[Stage], **changes: Any) -> SolveResult[Any]:
    """Return one result for the parts of a solve: the last part's with sums over all parts, and with `changes`."""
    return replace(
        results[-1],
        iterations=sum(result.iterations for result in results),
        error_iterations=sum(result.error_iterations for result in results),
        residuals=np.concatenate([results[0].residuals, *(result.residuals[1:] for result in results[1:])]),
        setup_seconds=sum(result.setup_seconds for result in results),
        solve_seconds=sum(result.solve_seconds for result in results),
        cycles=None if results[-1].cycles is None else sum(result.counted for result in results),
        stages=tuple(stages),
        **changes,
    )
