"""A hierarchy of levels, and a cycle over it as a preconditioner."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mcprecond.backends import Backend
from mcprecond.backends.arguments import integer, real
from mcprecond.backends.inputs import vector
from mcprecond.linalg.csr import Csr
from mcprecond.linalg.dense import Dense
from mcprecond.linalg.powers import exponent_of, power_times, times_power
from mcprecond.linalg.vectors import KERNELS
from mcprecond.multigrid.smoothers import Smoother
from mcprecond.multigrid.two_steps import TwoSteps
from mcprecond.preconditioners import Preconditioner
from mcprecond.solvers.result import Reason, SolveResult

CYCLES = ("V", "W", "K")
#: The coarsest level is solved with a dense inverse if it has at most this many unknowns.
MOST_DENSE = 2000
#: What a W or K cycle may read, as a multiple of what a V cycle reads: entries of the matrices of the levels it visits.
MOST_WORK = 4


@dataclass
class Level:
    """One level.

    Attributes
    ----------
    A : sparse matrix of SciPy or CuPy
        That of the finest level is the one given, which is referred to, not copied. Cycles do not read it.
    dtype : dtype
        Of the vectors, and of the values that a cycle reads; that of A may be a wider one.
    smoother : Smoother or None
        None on a coarsest level that is solved by a dense matrix.
    P, R : sparse matrices, or None
        To this level from the next coarser one, and to that one; None on the coarsest level.
    """

    A: Any
    dtype: np.dtype[Any]
    smoother: Smoother | None = None
    P: Any = None
    R: Any = None
    prolongation: Csr | None = None
    restriction: Csr | None = None

    @property
    def nbytes(self) -> int:
        """Memory of what a cycle reads on this level, in bytes."""
        return sum(part.nbytes for part in (self.smoother, self.prolongation, self.restriction) if part is not None)

    def connect(self, coarser: Level, P: Any, R: Any, longest_rows: tuple[int, int], backend: Backend) -> None:
        """Take the transfers from and to the next coarser level, with bounds of their rows' lengths."""
        self.P, self.R = P, R
        stored = min(self.dtype, coarser.dtype, key=lambda dtype: dtype.itemsize)
        self.prolongation, self.restriction = (
            Csr(C, backend, stored=stored, dtype=to.dtype, argument=of.dtype, longest_row=longest)
            for C, to, of, longest in zip((P, R), (self, coarser), (coarser, self), longest_rows, strict=True)
        )

    def replace_transfers(self) -> None:
        """Take the values that P and R have now."""
        assert self.prolongation is not None and self.restriction is not None
        self.prolongation.replace(self.P)
        self.restriction.replace(self.R)


class Space:
    """What a cycle writes on one level: states of the operators, x, the right-hand side and the residual."""

    def __init__(self, level: Level, backend: Backend, cycle: str) -> None:
        """`cycle` is "V" for a level with one correction, whatever the others do."""
        new = partial(backend.xp.empty, level.A.shape[0], level.dtype)
        self.smoothing, self.prolongation, self.restriction = (
            None if part is None else part.new_state()
            for part in (level.smoother, level.prolongation, level.restriction)
        )
        self.b, self.x, self.r = new(), new(), new()
        # For a second correction.
        self.b_again: Any = None if cycle == "V" else new()
        self.x_again: Any = None if cycle == "V" else new()
        self.steps = TwoSteps(level.A.shape[0], level.dtype, backend) if cycle == "K" else None


class Multigrid(Preconditioner):
    """A hierarchy of levels: ``M @ r`` is one cycle on A z = r from zero.

    A subclass makes the levels, and opens them by `_open_levels`.
    """

    has_many_kernels = True

    #: From the finest to the coarsest one.
    levels: list[Level]
    presweeps: int
    postsweeps: int
    cycle: str
    _coarse: Dense | None
    #: Powers of two s, where the levels are those of diag(s) A diag(s).
    _scales: Any = None
    #: Whether a second cycle corrects what the first one has left on a level.
    _twice: list[bool]
    _backend: Backend

    def _open_levels(self, levels: list[Level], coarse: Dense | None, backend: Backend) -> None:
        """Take the levels and become an operator."""
        self.levels, self._coarse, self._backend = levels, coarse, backend
        entries = [level.A.indices.size for level in levels]
        if coarse is not None:
            entries[-1] = coarse.matrix.size
        self._twice = corrected_twice(entries) if self.cycle != "V" else [False] * len(levels)
        smoothers = [level.smoother for level in levels if level.smoother is not None]
        self.symmetric = self.presweeps == self.postsweeps and all(smoother.symmetric for smoother in smoothers)
        self.linear = self.cycle != "K"
        self._become_operator(levels[0].A.shape, levels[0].A.dtype)

    @property
    def only_launches(self) -> bool:  # type: ignore[override]
        """See `Preconditioner`: the host reads the size of a scaled r."""
        return self._scales is None and all(level.smoother.captures for level in self.levels if level.smoother)

    @property
    def backend(self) -> Backend:  # type: ignore[override]
        """Where the cycle runs."""
        return self._backend

    @property
    def exponent(self) -> int:
        """See `Operator`: M is about the inverse of A."""
        A = self.levels[0].A
        largest = float(abs(A.diagonal()).max()) if A.shape[0] else 0.0
        return -int(np.frexp(largest)[1])

    @property
    def narrowest(self) -> np.dtype[Any]:
        """See `Operator`."""
        return min((self.dtype, *(level.dtype for level in self.levels)), key=lambda dtype: dtype.itemsize)

    @property
    def n_colors(self) -> int | None:  # type: ignore[override]
        """The number of colors of the finest level."""
        smoother = self.levels[0].smoother
        return None if smoother is None else smoother.n_colors

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        """Memory of everything that a cycle reads, in bytes."""
        return sum(level.nbytes for level in self.levels) + (self._coarse.nbytes if self._coarse else 0)

    @property
    def operator_complexity(self) -> float:
        """Entries of the matrices of all levels, as a multiple of those of A."""
        entries = [level.A.indices.size for level in self.levels]
        return sum(entries) / max(entries[0], 1)

    @property
    def grid_complexity(self) -> float:
        """Unknowns of all levels, as a multiple of those of A."""
        unknowns = [level.A.shape[0] for level in self.levels]
        return sum(unknowns) / max(unknowns[0], 1)

    def _summary(self) -> str:
        colors = "" if self.n_colors is None else f", {self.n_colors} colors on the finest one"
        return f"{len(self.levels)} levels{colors}, operator complexity {self.operator_complexity:.3g}"

    def __str__(self) -> str:
        lines = [
            type(self).__name__,
            f"Number of Levels:     {len(self.levels)}",
            f"Operator Complexity:   {self.operator_complexity:.3f}",
            f"Grid Complexity:       {self.grid_complexity:.3f}",
            f"Coarse Solver:        {'dense' if self._coarse else 'symmetric Gauss-Seidel'}",
            "  level   unknowns     nonzeros          colors",
        ]
        total = max(sum(level.A.indices.size for level in self.levels), 1)
        for number, level in enumerate(self.levels):
            entries = level.A.indices.size
            colors = "-" if level.smoother is None or level.smoother.n_colors is None else str(level.smoother.n_colors)
            share = f"[{100 * entries / total:5.2f}%]"
            lines.append(f"{number:6} {level.A.shape[0]:11} {entries:12} {share} {colors:>6}")
        return "\n".join(lines)

    def new_state(self, columns: int = 1) -> list[Space]:
        """See `Operator`: a space for each level. Columns take turns."""
        return [
            Space(level, self.backend, self.cycle if twice else "V")
            for level, twice in zip(self.levels, self._twice, strict=True)
        ]

    def enqueue(self, state: list[Space], r: Any, z: Any) -> None:
        """See `Operator`: one cycle for each column."""
        finest, scales, xp = state[0], self._scales, self.backend.xp
        if r.ndim == 1 and scales is None and finest.b.dtype == r.dtype:
            self._cycle(state, 0, r, z)
            return
        R, Z = (v[:, None] if v.ndim == 1 else v for v in (r, z))
        for c in range(R.shape[1]):
            if scales is None:
                finest.b[...] = R[:, c]
                self._cycle(state, 0, finest.b, finest.x)
                Z[:, c] = finest.x
            else:
                scaled = R[:, c] * scales
                exponent = exponent_of(scaled, xp)
                finest.b[...] = times_power(scaled, -exponent, xp)
                self._cycle(state, 0, finest.b, finest.x)
                Z[:, c] = times_power(finest.x * scales, exponent, xp)

    def _cycle(self, state: list[Space], number: int, b: Any, x: Any) -> None:
        """x = inv(M) b for the hierarchy from this level on."""
        level, own = self.levels[number], state[number]
        if number == len(self.levels) - 1:
            self._solve_coarsest(level, own, b, x)
            return
        assert level.smoother is not None and level.restriction is not None and level.prolongation is not None
        if self.presweeps:
            level.smoother.before(own.smoothing, b, x, own.r, self.presweeps)
        else:
            x.fill(0)
        coarser = state[number + 1]
        level.restriction.enqueue(own.restriction, own.r if self.presweeps else b, coarser.b)
        self._cycle(state, number + 1, coarser.b, coarser.x)
        if coarser.b_again is not None:
            self._correct_again(state, number + 1)
        level.prolongation.enqueue_sum(own.prolongation, coarser.x, x)
        if self.postsweeps:
            level.smoother.after(own.smoothing, b, x, self.postsweeps)

    def _correct_again(self, state: list[Space], number: int) -> None:
        """A second cycle on a level, for what the first has left of b: it is added to x, or CG weighs both of them."""
        smoother, own = self.levels[number].smoother, state[number]
        assert smoother is not None
        smoother.residual(own.smoothing, own.b, own.x, own.b_again)
        if own.steps is not None:
            own.steps.first(own.b, own.x, own.b_again)
        self._cycle(state, number, own.b_again, own.x_again)
        if own.steps is not None:
            smoother.residual(own.smoothing, own.b_again, own.x_again, own.r)
            own.steps.second(own.b, own.b_again, own.x_again, own.r, own.x)
        else:
            self.backend.kernels(KERNELS, VALUE=own.x.dtype).add(len(own.x), 1.0, own.x_again, own.x)

    def _solve_coarsest(self, level: Level, own: Space, b: Any, x: Any) -> None:
        """By the dense inverse; where the level is too large for that, by a forward and a backward sweep."""
        if self._coarse is not None:
            self._coarse.enqueue(None, b, x)
        else:
            assert level.smoother is not None
            level.smoother.before(own.smoothing, b, x, own.r, 1)
            level.smoother.after(own.smoothing, b, x, 1)

    def solve(
        self, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: int = 100
    ) -> SolveResult:
        """Solve A x = b by cycles alone: ``x += M (b - A x)``.

        Parameters
        ----------
        b : array, shape (n,)
            Where A comes from.
        x0 : array, shape (n,), optional
            Initial guess, zero by default. Not changed.
        rtol, atol : float
            Converged when ``||b - A x|| <= max(rtol ||b||, atol)``.
        maxiter : int
            How many cycles at most.

        Returns
        -------
        SolveResult
            Unpacks as ``x, info``.

        Raises
        ------
        TypeError, ValueError
            If b or x0 does not fit A or is not finite, or another argument is out of range.
        """
        import time

        started = time.perf_counter()
        n, xp, A = self.shape[0], self.backend.xp, self.levels[0].A
        rtol, atol, maxiter = real(rtol, "rtol", 0.0), real(atol, "atol", 0.0), integer(maxiter, "maxiter", 0)
        b = xp.asarray(vector(b, n, self._origin, self.dtype))
        x = xp.zeros(n, self.dtype) if x0 is None else xp.asarray(vector(x0, n, self._origin, self.dtype, "x0"))
        near, shift = np.finfo(self.dtype).maxexp // 4, 0
        exponent_of_A = -self.exponent
        if max(abs(exponent_of(b, xp)), abs(exponent_of_A)) > near:
            shift = exponent_of(b, xp) - exponent_of_A // 3  # neither squares of b nor x overflow or vanish
        b, x = (times_power(v, -shift, xp) for v in (b, x))
        limit, r = max(rtol * norm_of(b, xp), power_times(atol, -shift)), b - A @ x
        residuals = [norm_of(r, xp)]
        ready = time.perf_counter()
        with self.workspace() as own:
            while np.isfinite(residuals[-1]) and residuals[-1] > limit and len(residuals) <= maxiter:
                exponent = math.frexp(residuals[-1])[1]  # narrower levels need residuals of about 1
                own.r[:, 0] = times_power(r, -exponent, xp)
                own.apply(self)
                x += times_power(own.z[:, 0], exponent, xp)
                r = b - A @ x
                residuals.append(norm_of(r, xp))
        reason = (
            Reason.NOT_FINITE
            if not np.isfinite(residuals[-1])
            else Reason.CONVERGED
            if residuals[-1] <= limit
            else Reason.MAX_ITERATIONS
        )
        x = times_power(x, shift, xp)
        x = x if self._stays else self.backend.to_host(x)
        residuals = [power_times(norm, shift) for norm in residuals]
        seconds = ready - started, time.perf_counter() - ready
        return SolveResult(x, reason, len(residuals) - 1, np.array(residuals), residuals[-1], *seconds)

    def _adjoint(self) -> Any:
        if not self.linear:
            raise TypeError("M is not linear, and has no adjoint; take cycle='V' or cycle='W'")
        if not self.symmetric:
            raise TypeError("M is not symmetric, and its adjoint is not available; take presweeps = postsweeps")
        return self

    def _transpose(self) -> Any:
        if self.dtype.kind != "c":
            return self._adjoint()
        return super(Preconditioner, self)._transpose()  # type: ignore[misc]

    def _transposed(self, conjugate: bool) -> Preconditioner:
        return self._adjoint() if conjugate else self._transpose()


def corrected_twice(entries: list[int]) -> list[bool]:
    """Decide, from the finest level on, which levels a W or K cycle corrects twice.

    A second correction doubles the visits of all levels from there on. It is made if the entries of all visits are then
    at most `MOST_WORK` times those of a V cycle, and never on the finest level or the coarsest one.
    """
    most, above, visits, twice = MOST_WORK * sum(entries), 0, 1, []
    for number, own in enumerate(entries):
        is_between = 0 < number < len(entries) - 1
        twice.append(is_between and above + 2 * visits * sum(entries[number:]) <= most)
        visits *= 1 + twice[-1]
        above += visits * own
    return twice


def norm_of(v: Any, xp: Any) -> float:
    """The norm of a vector, whose squares may overflow or vanish."""
    exponent = exponent_of(v, xp)
    return power_times(float(xp.linalg.norm(times_power(v, -exponent, xp))), exponent)
