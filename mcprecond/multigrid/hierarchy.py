"""A hierarchy of levels, and a cycle over it as a preconditioner."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, overload

import numpy as np

from mcprecond.backends import Backend
from mcprecond.backends.arguments import describe, flag, function, integer, one_of, real
from mcprecond.backends.inputs import any_of, refuse_not_finite, shape_vector, vector
from mcprecond.linalg.csr import Csr, columns_of
from mcprecond.linalg.dense import Dense
from mcprecond.linalg.powers import exponent_of, times_power
from mcprecond.linalg.vectors import KERNELS
from mcprecond.matrix import diagonal_of
from mcprecond.multigrid.acceleration import accelerate
from mcprecond.multigrid.galerkin import Product
from mcprecond.multigrid.interpolation import Interpolation
from mcprecond.multigrid.small_levels import SmallLevels, first_small
from mcprecond.multigrid.smoothers import Smoother
from mcprecond.multigrid.tentative import Tentative
from mcprecond.multigrid.two_steps import TwoSteps
from mcprecond.preconditioners.base import LinearOperator, Preconditioner
from mcprecond.solvers.result import SolveResult
from mcprecond.solvers.richardson import Richardson
from mcprecond.typing import Cycle, DeviceArray, HostArray, Matrix

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
        That of the finest level is the one given, which is referred to, not copied. On coarser levels with a smoother
        its values have the dtype `stored`: they are computed in that of the finest A, and rounded.
    dtype : dtype
        Of the vectors; that of A may be a wider one.
    stored : dtype
        Of the values that the smoother reads.
    block_size : int
        Unknowns of a node.
    smoother : Smoother or None
        None on a coarsest level that is solved by a dense matrix.
    P, R : sparse matrices, or None
        To this level from the next coarser one, and to that one; None on the coarsest level. Their values are those
        that cycles read, which may be rounded as well.
    T : Tentative, or None
        The aggregates and the tentative prolongator. It, and what follows, is None on the coarsest level, and where
        another package has built the levels.
    interpolation : Interpolation, or None
        Computes P.
    galerkin : Product, or None
        Computes R and the matrix of the next coarser level.
    remark : str
        Why there is no coarser level, if it is not for the size of this one.
    """

    A: Any
    dtype: np.dtype[Any]
    stored: np.dtype[Any]
    block_size: int = 1
    smoother: Smoother | None = None
    P: Any = None
    R: Any = None
    prolongation: Csr | None = None
    restriction: Csr | None = None
    T: Tentative | None = None
    interpolation: Interpolation | None = None
    galerkin: Product | None = None
    remark: str = ""

    @property
    def aggregates(self) -> Any:
        """The aggregate of each node, which is a node of the next coarser level, or -1 where it is in none."""
        return None if self.T is None else self.T.labels

    @property
    def entries(self) -> int:
        """Entries of the matrix that a cycle reads on this level: A, or P where points are eliminated."""
        is_exact = self.smoother is not None and self.smoother.is_exact
        return int((self.P if is_exact else self.A).indices.size)

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
        P.data, R.data = self.prolongation.values, self.restriction.values

    def replace_transfers(self) -> None:
        """Take the values that P and R have now, and keep no wider ones."""
        assert self.prolongation is not None and self.restriction is not None
        for stored, C in ((self.prolongation, self.P), (self.restriction, self.R)):
            stored.replace(C)
            C.data = stored.values


class Space:
    """What a cycle writes on one level: states of the operators, x, the right-hand side and the residual."""

    def __init__(self, level: Level, backend: Backend, cycle: str, columns: int, has_own: bool) -> None:
        """`cycle` is "V" for a level with one correction, whatever the others do. `has_own` says whether there are a
        right-hand side and an x beside those that the cycle is given.
        """
        n = level.A.shape[0]
        new = partial(backend.xp.empty, (n, columns) if columns > 1 else n, level.dtype)
        self.smoothing, self.prolongation, self.restriction = (
            None if part is None else part.new_state(columns)
            for part in (level.smoother, level.prolongation, level.restriction)
        )
        self.b: Any = new() if has_own else None
        self.x: Any = new() if has_own else None
        spare = None if level.smoother is None else level.smoother.spare(self.smoothing)
        self.r = new() if spare is None else spare
        self.run = backend.kernels(KERNELS, VALUE=level.dtype)
        #: What does the cycle from this level on, where that is one kernel.
        self.small: SmallLevels | None = None
        # For a second correction.
        self.b_again: Any = None if cycle == "V" else new()
        self.x_again: Any = None if cycle == "V" else new()
        self.steps = TwoSteps(n, level.dtype, backend, columns) if cycle == "K" else None


@contextmanager
def naming_level(number: int) -> Iterator[None]:
    """Let what is refused on a level below the finest one say which level that is."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if number == 0:
            raise
        raise type(error)(f"{error} (A is the matrix of level {number})") from error


class Multigrid(Preconditioner):
    """A hierarchy of levels: ``M @ r`` is one cycle on A z = r from zero.

    A subclass makes the levels, sets `cycle`, `presweeps` and `postsweeps`, and calls the constructor.
    """

    takes_long = True
    remedy_for_asymmetry = "take presweeps = postsweeps, or gmres or bicgstab if A is not symmetric"
    #: Whether A is Hermitian up to rounding.
    A_is_symmetric = True
    #: With more of them, vectors of the finest level take more time than its matrix.
    columns_at_once = 8

    #: From the finest to the coarsest one.
    levels: list[Level]
    presweeps: int
    postsweeps: int
    cycle: str
    _coarse: Dense | None
    #: The numbers s, where the levels are those of diag(s) A diag(s); and whether they are powers of two, for the sake
    #: of the range of floats. Then vectors need scales of their own.
    _scales: Any = None
    _is_extreme: bool = False
    #: Whether a second cycle corrects what the first one has left on a level.
    _twice: list[bool]
    _backend: Backend

    def __init__(self, levels: list[Level], coarse: Dense | None, backend: Backend, origin: Backend) -> None:
        self.levels, self._coarse, self._backend = levels, coarse, backend
        entries = [level.A.indices.size for level in levels]
        if coarse is not None:
            entries[-1] = coarse.matrix.size
        self._twice = corrected_twice(entries) if self.cycle != "V" else [False] * len(levels)
        for number, level in enumerate(levels):
            self._twice[number] &= not (level.smoother is not None and level.smoother.is_exact)
        self.symmetric = self.A_is_symmetric and self.presweeps == self.postsweeps
        self.linear = self.cycle != "K"
        super().__init__(origin, levels[0].A.shape, levels[0].A.dtype)

    @property
    def only_launches(self) -> bool:  # type: ignore[override]
        """See `Preconditioner`: the host reads the size of a scaled r."""
        return not self._is_extreme and all(level.smoother.captures for level in self.levels if level.smoother)

    @property
    def _converts(self) -> bool:
        """Whether vectors of the finest level differ from r and z."""
        return self._scales is not None or self.levels[0].dtype != self.dtype

    @property
    def backend(self) -> Backend:  # type: ignore[override]
        """Where the cycle runs."""
        return self._backend

    @property
    def exponent(self) -> int:
        """See `Operator`: M is about the inverse of A."""
        A = self.levels[0].A
        largest = float(abs(diagonal_of(A, self.backend)).max()) if A.shape[0] else 0.0
        return -int(np.frexp(largest)[1])

    @property
    def narrowest(self) -> np.dtype[Any]:
        return min((self.dtype, *(level.dtype for level in self.levels)), key=lambda dtype: dtype.itemsize)

    @property
    def n_colors(self) -> int | None:  # type: ignore[override]
        """The number of colors of the finest level; None if its smoother has no colors."""
        smoother = self.levels[0].smoother
        return None if smoother is None else smoother.n_colors

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        """Memory of everything that a cycle reads, in bytes."""
        return sum(level.nbytes for level in self.levels) + (self._coarse.nbytes if self._coarse else 0)

    @property
    def operator_complexity(self) -> float:
        """Entries of the matrices of all levels, as a multiple of those of A; of a level with eliminated points, whose
        matrix no cycle reads, the entries of P.
        """
        return sum(level.entries for level in self.levels) / max(self.levels[0].A.indices.size, 1)

    @property
    def grid_complexity(self) -> float:
        """Unknowns of all levels, as a multiple of those of A."""
        unknowns = [level.A.shape[0] for level in self.levels]
        return sum(unknowns) / max(unknowns[0], 1)

    def cycle_complexity(self, cycle: Cycle | Literal["AMLI"] | None = None) -> float:
        """The work of a cycle, as a multiple of a sweep over the finest level, as PyAMG counts it.

        On each visit a level is swept twice, before and after the coarse-grid correction; the coarsest level is swept
        once.

        Parameters
        ----------
        cycle : {"V", "W", "K"}, optional
            As for `aspreconditioner`.

        Raises
        ------
        TypeError, ValueError
            If `cycle` is not one of these names.

        Examples
        --------
        >>> from mcprecond import SmoothedAggregation, problems
        >>> M = SmoothedAggregation(problems.laplacian((60, 60)), max_coarse=50)
        >>> [round(M.cycle_complexity(cycle), 1) for cycle in "VW"]
        [2.9, 4.2]
        """
        visits = 1 if (self.cycle if cycle is None else cycle_named(cycle)) == "V" else 2
        *finer, coarsest = [level.A.indices.size for level in self.levels]
        work = visits ** max(len(finer) - 1, 0) * coarsest
        for number, entries in enumerate(finer):
            work += visits**number * 2 * entries
        return work / max(self.levels[0].A.indices.size, 1)

    def _summary(self) -> str:
        colors = "" if self.n_colors is None else f", {self.n_colors} colors on the finest one"
        return f"{len(self.levels)} levels{colors}, operator complexity {self.operator_complexity:.3g}"

    def __str__(self) -> str:
        lines = [
            type(self).__name__,
            f"Number of Levels:     {len(self.levels)}",
            f"Operator Complexity:   {self.operator_complexity:.3f}",
            f"Grid Complexity:       {self.grid_complexity:.3f}",
            f"Coarse Solver:        {'dense' if self._coarse else 'smoother'}",
            "  level   unknowns     nonzeros          smoother",
        ]
        total = max(sum(level.A.indices.size for level in self.levels), 1)
        for number, level in enumerate(self.levels):
            entries = level.A.indices.size
            smoother = "-" if level.smoother is None else level.smoother.description
            share = f"[{100 * entries / total:5.2f}%]"
            plainer = level.remark if level.interpolation is None else level.interpolation.remark
            lines.append(f"{number:6} {level.A.shape[0]:11} {entries:12} {share} {smoother}{plainer}")
        return "\n".join(lines)

    def new_state(self, columns: int = 1) -> list[Space]:
        """See `Operator`: a space for each level."""
        levels, coarse, backend = self.levels, self._coarse, self.backend
        state = [
            Space(level, backend, self.cycle if twice else "V", columns, number > 0 or self._converts)
            for number, (level, twice) in enumerate(zip(levels, self._twice, strict=True))
        ]
        first = first_small(levels, coarse, self._twice, min(self.presweeps, self.postsweeps), backend)
        if columns == 1 and first is not None:
            state[first].small = SmallLevels(levels[first:], state[first:], coarse, backend)
        return state

    def enqueue(self, state: list[Space], r: Any, z: Any) -> None:
        """See `Operator`: one cycle for all columns."""
        finest, scales, xp = state[0], self._scales, self.backend.xp
        r, z = (v.reshape(finest.r.shape) for v in (r, z))
        if not self._converts:
            self._cycle(state, 0, r, z)
        elif scales is None:
            finest.b[...] = r
            self._cycle(state, 0, finest.b, finest.x)
            z[...] = finest.x
        elif not self._is_extreme:
            own = scales.reshape(-1, *[1] * (r.ndim - 1))
            xp.multiply(r, own, out=finest.b, casting="same_kind")
            self._cycle(state, 0, finest.b, finest.x)
            xp.multiply(finest.x, own, out=z, casting="same_kind")
        else:
            # Views of the columns.
            R, B, X, Z = (v.reshape(len(v), columns_of(r)).T for v in (r, finest.b, finest.x, z))
            exponents = []
            for r_c, b_c in zip(R, B, strict=True):
                scaled = r_c * scales
                exponents.append(exponent_of(scaled, xp))
                b_c[...] = times_power(scaled, -exponents[-1], xp)
            self._cycle(state, 0, finest.b, finest.x)
            for x_c, z_c, exponent in zip(X, Z, exponents, strict=True):
                z_c[...] = times_power(x_c * scales, exponent, xp)

    def _cycle(self, state: list[Space], number: int, b: Any, x: Any) -> None:
        """x = inv(M) b for the hierarchy from this level on."""
        level, own = self.levels[number], state[number]
        if own.small is not None:
            own.small.enqueue(self.presweeps, self.postsweeps, b, x)
            return
        if number == len(self.levels) - 1:
            self._solve_coarsest(level, own, b, x)
            return
        assert level.smoother is not None and level.restriction is not None and level.prolongation is not None
        if level.smoother.is_exact:
            coarser = state[number + 1]
            level.restriction.enqueue(own.restriction, b, coarser.b)
            self._cycle(state, number + 1, coarser.b, coarser.x)
            level.smoother.enqueue(None, b, x)
            level.prolongation.enqueue_sum(own.prolongation, coarser.x, x)
            return
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
            own.run.add(own.x.size, 1.0, own.x_again.reshape(-1), own.x.reshape(-1))

    def _solve_coarsest(self, level: Level, own: Space, b: Any, x: Any) -> None:
        """Apply the dense inverse, or smooth as before and after a correction where the level is too large for one."""
        if self._coarse is not None:
            self._coarse.enqueue(None, b, x)
        else:
            assert level.smoother is not None
            level.smoother.before(own.smoothing, b, x, own.r, 1)
            level.smoother.after(own.smoothing, b, x, 1)

    def aspreconditioner(self, cycle: Cycle | Literal["AMLI"] | None = None) -> Multigrid:
        """Return an operator with another cycle over the same levels; the hierarchy itself if it has that cycle.

        Parameters
        ----------
        cycle : {"V", "W", "K"}, optional
            That of the hierarchy by default. "AMLI" is PyAMG's name of "K"; small letters will do. K cycles are for
            `pcg`, since they are not linear.

        Returns
        -------
        Multigrid
            It shares the levels, so that it takes part in each `update`.

        Raises
        ------
        TypeError, ValueError
            If `cycle` is not one of these names, or "K" where A is not symmetric.

        Examples
        --------
        >>> from mcprecond import SmoothedAggregation, problems
        >>> M = SmoothedAggregation(problems.laplacian((60, 60)))
        >>> M.cycle, M.aspreconditioner("W").cycle
        ('V', 'W')
        """
        wanted = self.cycle if cycle is None else cycle_named(cycle)
        self._refuse_k_cycle(wanted)
        return self if wanted == self.cycle else OtherCycle(self, wanted, self.origin)

    def _refuse_k_cycle(self, cycle: str) -> None:
        """Raise ValueError for a K cycle where A is not symmetric."""
        if cycle == "K" and not self.A_is_symmetric:
            raise ValueError("cycle 'K' takes steps of CG, and A is not symmetric; take cycle='V' or cycle='W'")

    @overload
    def solve(
        self,
        b: HostArray | DeviceArray,
        x0: HostArray | DeviceArray | None = None,
        *,
        rtol: float | None = None,
        atol: float | None = None,
        maxiter: int = 100,
        callback: Callable[[Any], object] | None = None,
    ) -> SolveResult[Any]: ...

    @overload
    def solve(
        self,
        b: HostArray | DeviceArray,
        x0: HostArray | DeviceArray | None = None,
        tol: float | None = None,
        maxiter: int | None = 100,
        cycle: Cycle | Literal["AMLI"] | None = None,
        accel: str | Callable[..., Any] | None = None,
        callback: Callable[[Any], object] | None = None,
        residuals: list[float] | None = None,
        *,
        return_info: bool | None = None,
    ) -> Any: ...

    def solve(
        self,
        b: Any,
        x0: Any = None,
        tol: float | None = None,
        maxiter: int | None = 100,
        cycle: Cycle | Literal["AMLI"] | None = None,
        accel: str | Callable[..., Any] | None = None,
        callback: Callable[[Any], object] | None = None,
        residuals: list[float] | None = None,
        *,
        return_info: bool | None = None,
        rtol: float | None = None,
        atol: float | None = None,
    ) -> Any:
        """Solve A x = b by cycles alone, ``x += M (b - A x)``, or by a Krylov method with M.

        There are two ways to call it. With `rtol` and `atol`, or without any tolerance, it returns a `SolveResult`.
        With any of PyAMG's `tol`, `cycle`, `accel`, `residuals` and `return_info` it returns what PyAMG's solvers
        return: x alone, or x and info. Code that was written for PyAMG gives one of these, `tol` in most cases.

        Parameters
        ----------
        b : array, shape (n,)
            Where A comes from.
        x0 : array, shape (n,), optional
            Initial guess, zero by default. Not changed.
        tol : float, optional
            Converged when ``||b - A x|| <= tol ||b||``, or ``<= tol`` where b = 0; 1e-5 by default. Krylov methods have
            rules of their own.
        maxiter : int
            How many cycles at most, or iterations, as the Krylov method counts them.
        cycle : {"V", "W", "K"}, optional
            As for `aspreconditioner`.
        accel : str or function, optional
            The Krylov method: "cg" is `pcg`; "minres", "bicgstab" and "gmres" are those of this package, too, and
            others those of SciPy, or of CuPy where the levels are on the GPU. A function is called as PyAMG calls it,
            ``accel(A, b, x0=x0, tol=tol, maxiter=maxiter, M=M, callback=callback, residuals=residuals)``, and with
            `rtol` and without `residuals` if it takes these arguments, as SciPy's functions do.
        callback : function, optional
            Called as ``callback(xk)`` after every cycle or iteration; of SciPy's gmres with the norm.
        residuals : list, optional
            Filled with the norms ``||b - A x||`` before the first cycle or iteration and after each; of SciPy's gmres
            with the norms of M (b - A x), and of CuPy's after restarts.
        return_info : bool, optional
            Whether to return x and info instead of x: info is 0 if converged, otherwise not 0.
        rtol, atol : float, optional
            Converged when ``||b - A x|| <= max(rtol ||b||, atol)``; 1e-5 and 0 by default.

        Returns
        -------
        SolveResult
            Unpacks as ``x, info``. By PyAMG's arguments an array, or an array and an int.

        Raises
        ------
        TypeError, ValueError
            If b or x0 does not fit A or is not finite, another argument is out of range, or arguments of both ways are
            given.

        Examples
        --------
        >>> import numpy as np
        >>> from mcprecond import SmoothedAggregation, problems
        >>> A = problems.laplacian((60, 60))
        >>> M, residuals = SmoothedAggregation(A), []
        >>> x = M.solve(np.ones(3600), tol=1e-8, accel="cg", residuals=residuals)
        >>> len(residuals), residuals[0]
        (11, 60.0)
        >>> M.solve(np.ones(3600), rtol=1e-8).iterations  # without CG
        17
        """
        theirs = {"tol": tol, "cycle": cycle, "accel": accel, "residuals": residuals, "return_info": return_info}
        given = [name for name, value in theirs.items() if value is not None]
        callback = function(callback, "callback")
        with_tolerance = rtol is not None or atol is not None
        if not given:
            return self._iterate(
                b, x0, 1e-5 if rtol is None else rtol, 0.0 if atol is None else atol, maxiter, callback
            )
        if with_tolerance:
            raise TypeError(
                f"{'rtol' if atol is None else 'atol'} and {given[0]} are both given; pass rtol and atol for a "
                "SolveResult, or PyAMG's tol, cycle, accel, residuals and return_info for x"
            )
        tol = 1e-5 if tol is None else real(tol, "tol", 0.0)
        if residuals is not None and not isinstance(residuals, list):
            raise TypeError(f"residuals must be a list to be filled, got {describe(residuals)}")
        with_info = False if return_info is None else flag(return_info, "return_info")
        M = self.aspreconditioner(cycle)
        if accel is None:
            result = M._iterate(b, x0, tol, 0.0, maxiter, callback, atol_of_zero=tol)
            if residuals is not None:
                residuals[:] = result.residuals.tolist()
            x, info = result
        else:
            x, info = M._accelerate(b, x0, accel, tol, maxiter, callback, residuals)
        return (x, info) if with_info else x

    def _iterate(
        self,
        b: Any,
        x0: Any,
        rtol: float,
        atol: float,
        maxiter: Any,
        callback: Callable[[Any], object] | None,
        *,
        atol_of_zero: float = 0.0,
    ) -> SolveResult[Any]:
        """Iterate cycles without a Krylov method. Where b = 0, `atol_of_zero` is the tolerance if it is larger."""
        rtol, atol, maxiter = real(rtol, "rtol", 0.0), real(atol, "atol", 0.0), integer(maxiter, "maxiter", 0)
        b, x0 = (
            None if v is None else self.backend.xp.asarray(vector(v, self.shape[0], self.origin, self.dtype, name))
            for v, name in ((b, "b"), (x0, "x0"))
        )
        atol = atol if any_of(b != 0) else max(atol, atol_of_zero)
        solver = Richardson(self.levels[0].A, self._on_device())
        told = None if callback is None else lambda x: callback(self._given_back(x))
        result = solver.solve(b, x0, rtol=rtol, atol=atol, maxiter=maxiter, callback=told)
        return replace(result, x=self._given_back(result.x))

    def _accelerate(
        self,
        b: Any,
        x0: Any,
        accel: Any,
        tol: float,
        maxiter: int | None,
        callback: Callable[[Any], object] | None,
        residuals: list[float] | None,
    ) -> tuple[Any, Any]:
        """Run a Krylov method on the device of the levels; return x, on the device of b, and info."""
        maxiter = None if maxiter is None else integer(maxiter, "maxiter", 0)
        b = self._taken(b, "b")
        x0 = None if x0 is None else self._taken(x0, "x0")
        told = None if callback is None else lambda x: callback(self._given_back(x))
        x, info = accelerate(
            accel,
            self.levels[0].A,
            b,
            x0,
            tol=tol,
            maxiter=maxiter,
            M=self._on_device(),
            callback=told,
            residuals=residuals,
        )
        return self._given_back(x), info

    def _taken(self, v: Any, name: str) -> Any:
        """Check a vector of the user and move it to the device of the levels."""
        found = shape_vector(v, self.shape[0], self.origin, name)
        refuse_not_finite(found, self.origin, name)
        return self.backend.xp.asarray(found)

    def _given_back(self, x: Any) -> Any:
        """Move a vector to the device of A; a number is returned as it is."""
        return x if self._stays or np.isscalar(x) else self.backend.to_host(x)

    def _on_device(self) -> Multigrid:
        """The same for vectors on the device of the levels."""
        return self if self._stays else OtherCycle(self, self.cycle, self.backend)

    def _adjoint(self) -> Any:
        if not self.linear:
            raise TypeError("M is not linear, and has no adjoint; take cycle='V' or cycle='W'")
        return self if self.symmetric else AdjointCycle(self)

    def _transpose(self) -> Any:
        if self.dtype.kind != "c":
            return self._adjoint()
        return LinearOperator._transpose(self) if self.origin.name == "cpu" else self._of_library().T

    def _transposed(self, conjugate: bool) -> Preconditioner:
        return self._adjoint() if conjugate else self._transpose()


class OtherCycle(Multigrid):
    """A hierarchy with another cycle, or for vectors on another device: see `Multigrid.aspreconditioner`.

    The levels are those of the hierarchy. Only the states differ, which say what levels are corrected twice.
    """

    def __init__(self, M: Multigrid, cycle: str, origin: Backend) -> None:
        self._of, self.cycle = M, cycle
        self.presweeps, self.postsweeps = M.presweeps, M.postsweeps
        self._take_levels()
        super().__init__(self.levels, self._coarse, M.backend, origin)
        self.symmetric = M.symmetric

    @property
    def _scales(self) -> Any:
        return self._of._scales

    def _take_levels(self) -> None:
        """Take the levels as they are now."""
        M = self._of
        self._at, self._is_extreme, self.levels, self._coarse = M.updates, M._is_extreme, M.levels, M._coarse

    @property
    def updates(self) -> int:
        return self._of.updates

    @property
    def is_halfway(self) -> bool:  # type: ignore[override]
        return self._of.is_halfway

    def enqueue(self, state: list[Space], r: Any, z: Any) -> None:
        self._of.enqueue(state, r, z)

    def _follow(self) -> None:
        """Take the levels anew after an update."""
        if self._at != self.updates:  # graphs that were captured hold the damping of before
            self._free = {}
            self._take_levels()

    def __getstate__(self) -> dict[str, Any]:
        self._follow()
        return super().__getstate__()

    def workspace(self, columns: int = 1) -> Any:
        self._follow()
        return super().workspace(columns)

    def update(self, A: Matrix) -> None:
        """Update the hierarchy, and so all cycles over its levels."""
        self._of.update(A)


class AdjointCycle(OtherCycle):
    """The adjoint of a cycle: the cycle over the adjoint smoothers, with the numbers of sweeps exchanged.

    P and R stay, since R = P^H.
    """

    def __init__(self, M: Multigrid) -> None:
        super().__init__(M, M.cycle, M.origin)
        self.presweeps, self.postsweeps = M.postsweeps, M.presweeps

    def _take_levels(self) -> None:
        super()._take_levels()
        self.levels = [
            level if level.smoother is None else replace(level, smoother=level.smoother.adjoint())
            for level in self.levels
        ]
        self._coarse = self._coarse and self._coarse.adjoint()

    def enqueue(self, state: list[Space], r: Any, z: Any) -> None:
        Multigrid.enqueue(self, state, r, z)

    def _adjoint(self) -> Any:
        return self._of


def cycle_named(cycle: Any) -> str:
    """Return the name of a cycle, by the name that it has here or in PyAMG.

    Raises
    ------
    TypeError, ValueError
        If `cycle` is no such name.
    """
    name = cycle.upper() if isinstance(cycle, str) else cycle
    return one_of("K" if name == "AMLI" else name, "cycle", CYCLES)


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
