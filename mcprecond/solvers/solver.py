"""What the Krylov solvers share: the door for A, b, x0 and M, and a solve from there to its result.

A solver is made for A and M, and solves for many right-hand sides. What a solve allocates and captures is kept for the
next one on the same stream.
"""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from mcprecond.backends.arguments import function, integer, one_of, tolerance
from mcprecond.backends.inputs import any_of, promote, refuse_not_finite, shape_columns, shape_vector
from mcprecond.linalg.hermitian import is_hermitian
from mcprecond.linalg.operator import Operator
from mcprecond.linalg.powers import exponent_of, power_times, square_times, times_power
from mcprecond.linalg.sums import wide
from mcprecond.matrix import REMEDY_FOR_ZERO_ROW, AdmittedMatrix, admit_matrix
from mcprecond.preconditioners import Preconditioner
from mcprecond.solvers.backward import accurate_residual, least_energy
from mcprecond.solvers.columns import join_columns
from mcprecond.solvers.components import part_in_components, singular_components
from mcprecond.solvers.diagnosis import (
    ROUNDING,
    does_not_fit,
    is_near_null_space,
    is_positive_along,
    is_rounding,
    is_unsymmetric,
    unsolvable_row,
)
from mcprecond.solvers.driver import EXAMINED, Leaving, choose_units, iterate, solution_of
from mcprecond.solvers.energy import UNITS
from mcprecond.solvers.iteration import Iteration
from mcprecond.solvers.named import build, nodes_of
from mcprecond.solvers.result import CAUSES, Reason, SolveResult, Stage
from mcprecond.solvers.setup import admit_preconditioner, admit_system, operators_on
from mcprecond.solvers.target import EnergyTarget, PreconditionedTarget
from mcprecond.solvers.weak_parts import WEAK, Hidden, WeakParts, spans_decades, weak_for
from mcprecond.typing import Norm

#: A solution is doubtful if its relative error is above this one.
LARGE = 1e-2
#: So many iterations nobody waits for; the number fits into 64 bits.
ENDLESS = 2**62
#: 2^ROOM is larger than the number of rows of any matrix.
ROOM = 40
LARGER_NULL_SPACE = (
    "the null space of A is larger than the one that was given; pass nullspace= all of its vectors, such as all rigid "
    "body modes"
)


class Solver:
    """A Krylov method for A and M.

    Subclasses implement `_new_iteration`.
    """

    #: The name of the function that solves by this method.
    method = ""
    #: How many right-hand sides there may be at once.
    most_columns = 1
    #: The names that M may have. For "auto" the subclass chooses M.
    names: tuple[str, ...] = ()
    #: Whether the solution for b = 0 is zero, whatever x0 is, as in SciPy's solvers.
    knows_zero = True
    #: The name of the method if it needs a symmetric A and a symmetric M.
    symmetric_method: str | None = None
    #: The norm that solves end by.
    norm: Norm = "residual"
    #: The dimension of the null space that was given.
    null_space_dimension = 0

    def __init__(self, A: Any, M: Any = None, *, B: Any = None, block_size: Any = 1) -> None:
        #: When the setup began; 0 once a solve has told how long it took.
        self.started = time.perf_counter()
        if isinstance(A, AdmittedMatrix):
            self._A, self._backend, self.matrix = A.csr, A.backend, A
        else:
            self._A, self._backend = admit_system(A)
        self.A_is_operator = not hasattr(self._A, "indptr")
        #: B and block_size, for preconditioners that are built by name.
        self.nodes = nodes_of(B, block_size, self.shape[0], M)
        #: Whether the package chooses M.
        self.is_automatic = isinstance(M, str) and one_of(M, "M", self.names) == "auto"
        #: The name that M was built by.
        self.name = M if isinstance(M, str) and not self.is_automatic else None
        if self.is_automatic:
            M = None
        elif isinstance(M, str):
            # Multigrid for an A that is not symmetric would be refused after its setup. With the other names the method
            # starts, and its reason says that A is not symmetric.
            if M == "multigrid" and self.symmetric_method and not self.A_is_operator and is_unsymmetric(self.matrix):
                method = self.symmetric_method
                raise ValueError(f"A is not symmetric (or Hermitian), which {method} needs; use gmres or bicgstab")
            M = build(M, self._A if self.A_is_operator else self.matrix, self.nodes)
        self.M, self._M = M, admit_preconditioner(M, self._A, self._backend)
        if self.symmetric_method and isinstance(self._M, Preconditioner) and not self._M.symmetric:
            remedy = self._M.remedy_for_asymmetry
            raise ValueError(f"M is not symmetric, which {self.symmetric_method} needs; {remedy}, or another solver")
        self._updates = self._M.updates if isinstance(self._M, Preconditioner) else 0
        #: Iterations that nobody uses, by stream, dtype and columns, or "eisenstat" for one column in that form.
        self._free: dict[tuple[Any, ...], list[tuple[Iteration, ExitStack]]] = {}
        #: See `_weak_parts`.
        self._parts: dict[float, WeakParts | None] = {}

    def __getstate__(self) -> dict[str, Any]:
        """What pickles and copies take along: all but the iterations. Their arrays share memory, which copies of them
        would not do, and their captured graphs belong to this process.
        """
        return self.__dict__ | {"_free": {}}

    def __repr__(self) -> str:
        (n, width), M = self.shape, "auto" if self.is_automatic else self.name or type(self.M).__name__
        way = "no M" if self.M is None and not self.is_automatic else f"M: {M}"
        return f"<{type(self).__name__} of {n} x {width}, on the {self._backend.name}, {way}>"

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self._A.shape

    def solve(
        self,
        b: Any,
        x0: Any = None,
        *,
        rtol: float = 1e-5,
        atol: float | None = 0.0,
        maxiter: int | None = None,
        callback: Callable[[Any], object] | None = None,
        progress: Callable[[int, float], object] | None = None,
    ) -> SolveResult[Any]:
        """Solve A x = b.

        Parameters
        ----------
        b, x0, rtol, atol, maxiter, callback, progress
            As for the function of the same name, such as `pcg`.

        Returns
        -------
        SolveResult
            `setup_seconds` covers this call and, in the first one, the constructor.

        Raises
        ------
        TypeError, ValueError
            As that function, for these arguments.
        """
        callback = function(callback, "callback", " of one array")
        with_x = None if callback is None else lambda iteration: callback(iteration.solution())
        progress = function(progress, "progress", " of an int and a float")
        return self.explain(self.run_all(b, x0, rtol, atol, maxiter, callback=with_x, progress=progress))

    def explain(self, result: SolveResult[Any]) -> SolveResult[Any]:
        """The same result; if it has not converged, its detail tells of a null space that `pcg` can be given."""
        if result.converged or self.A_is_operator or result.reason is Reason.UNSYMMETRIC_A:
            return result
        components, advice = singular_components(self.matrix), ""
        if components.n_singular > self.null_space_dimension:
            advice = components.advice() if is_hermitian(self.matrix) else ""
        elif self.null_space_dimension and result.reason is Reason.INCONSISTENT:
            advice = LARGER_NULL_SPACE
        return replace(result, detail="; ".join(filter(None, (result.detail, advice))))

    def run_all(self, b: Any, x0: Any, *limits: Any, **hooks: Any) -> SolveResult[Any]:
        """Solve A x = b, as `run` does. Subclasses add several columns and M="auto"."""
        return self.run(b, x0, *limits, **hooks)

    def run(
        self,
        b: Any,
        x0: Any,
        rtol: float,
        atol: float | None,
        maxiter: int | None,
        *,
        callback: Callable[[Iteration], object] | None = None,
        progress: Callable[[int, float], object] | None = None,
        leaves: Leaving | None = None,
    ) -> SolveResult[Any]:
        """Solve A x = b, as `solve` does. Callbacks get the iteration. If ``leaves(iteration)`` says so, the solve
        ends with the reason LEFT; there is one right-hand side then.
        """
        started, self.started = self.started or time.perf_counter(), 0.0
        backend = self._backend
        b, guess, rtol, atol, maxiter = self.admit_arguments(b, x0, rtol, atol, maxiter)
        operands = [self._A, b, *([] if guess is None else [guess])]
        if isinstance(self._M, AdmittedMatrix):
            operands.append(self._M)
        dtype, columns = promote(*(operand.dtype for operand in operands)), b.shape[1] if b.ndim == 2 else 1
        key, iteration, stack, exponent_of_A = self._borrow(dtype, columns)
        iteration.load(b, guess)
        own_b, limits = [], []
        for system in iteration.systems:
            own_guess = system.part_of(guess)
            of_product = None if self.A_is_operator else partial(exponent_of_product, self.matrix, own_guess)
            norm, is_zero = choose_units(system, b, guess, exponent_of_A, backend, of_product)
            own_b.append(self._project_b(system.part_of(b), system))
            if self.knows_zero and norm == 0 and not any_of(own_b[-1] != 0):
                if b.ndim == 1:
                    self._free.setdefault(key, []).append((iteration, stack))
                    elapsed = time.perf_counter() - started
                    zero = backend.xp.zeros(len(b), iteration.dtype)
                    found = SolveResult(zero, Reason.CONVERGED, 0, np.zeros(1), 0.0, elapsed, 0.0)
                    return replace(found, method=self.method, norm_of_b=0.0)
                system.x.fill(0)
                is_zero = True
            limit = max(rtol * norm, power_times(atol, system.shift)) if self.norm == "residual" else 0.0
            limits.append((limit, norm, is_zero))
            if not is_zero:
                system.energy.of_guess = math.nan  # not known, unless the next lines find it
            if self.norm != "residual":
                self._end_by_norm(system, own_b[-1], own_guess, rtol, atol)
        if guess is not None:
            iteration.find_residuals()
        of_caller = {}
        for system, v, (limit, norm, is_zero) in zip(iteration.systems, own_b, limits, strict=True):
            of_caller[system] = v, system.norm_in_units(limit), system.norm_in_units(norm)
            system.start(limit, maxiter, norm, is_zero)
        iteration.begin_together()
        ready = time.perf_counter()
        cause = lambda system: self._cause(of_caller[system][0], system, of_caller[system][1])  # noqa: E731
        iterate(iteration, callback, progress, cause, leaves)
        results = [self._result(system, *of_caller[system], maxiter) for system in iteration.systems]
        # Not after an exception: it may have been left halfway.
        self._free.setdefault(key, []).append((iteration, stack))
        seconds = ready - started, time.perf_counter() - ready
        if b.ndim == 2:
            return join_columns(results, backend, *seconds)
        return replace(results[0], setup_seconds=seconds[0], solve_seconds=seconds[1])

    def _end_by_norm(self, system: Iteration, b: Any, guess: Any, rtol: float, atol: float) -> None:
        """Let a system end by another norm than that of the residual. All squares are those of its own units."""
        share, least, of_guess = square_times(rtol), square_times(atol, system.shift), 0.0
        own_b, guess = (None if v is None else times_power(v, system.shift, self._backend.xp) for v in (b, guess))
        with np.errstate(all="ignore"):
            if self.norm == "preconditioned":
                M = self._M.csr if isinstance(self._M, AdmittedMatrix) else self._M
                square = lambda v: real_product(v, v if M is None else M @ v)  # noqa: E731
                find_square = lambda: square(self._find_residual(system, b))  # noqa: E731
                system.end_by(PreconditionedTarget(share, max(share * square(own_b), least), find_square))
                return
            if guess is not None:
                of_guess = 2 * real_product(guess, own_b) - real_product(guess, self._A @ guess)
        find_hidden = lambda: self._find_hidden(system, b, max(WEAK)).energy  # noqa: E731
        rounding = (UNITS * float(np.finfo(system.dtype).eps)) ** 2
        system.end_by(EnergyTarget(share, least, rounding, find_hidden), of_guess)

    def _find_hidden(self, system: Iteration, b: Any, weak: float) -> Hidden:
        """Find what CG, or even the norm of the residual, does not see of the error of the iterate: by the residual in
        the units of the diagonal, and by entries below a share of the largest one. b is in the caller's units, and what
        is found in those of the system.
        """
        if self.A_is_operator:
            return Hidden(0.0, 0.0)
        r, parts = self._find_residual(system, b), self._weak_parts(weak)
        of_parts = parts.find_hidden(r) if parts else Hidden(0.0, 0.0)
        return Hidden(max(of_parts.energy, least_energy(self.matrix, r)), of_parts.largest)

    def _find_residual(self, system: Iteration, b: Any) -> Any:
        """Compute b - A x for the iterate x, in the units of the system. The argument b is in the caller's units."""
        b, x = times_power(b, system.shift, self._backend.xp), system.iterate()
        return b - self._A @ x if self.A_is_operator else accurate_residual(self.matrix, b, x)

    def _weak_parts(self, weak: float) -> WeakParts | None:
        """The weakly coupled parts of the graph of A, kept for further solves; None if there are none."""
        if weak not in self._parts:
            parts = WeakParts(self.matrix.canonical(), weak) if spans_decades(self.matrix, weak) else None
            self._parts[weak] = parts if parts and parts.levels else None
        return self._parts[weak]

    def run_one_by_one(
        self, run: Callable[..., SolveResult[Any]], b: Any, x0: Any, *limits: Any, **hooks: Any
    ) -> SolveResult[Any]:
        """Solve for several right-hand sides by `run`, one after the other."""
        refuse_not_finite(b, self._backend)
        guess, results = self._guess(x0, b), []
        if guess is not None:
            refuse_not_finite(guess, self._backend, "x0")
        for column in range(b.shape[1]):
            column_guess = None if guess is None else guess[:, column].copy()
            results.append(run(b[:, column].copy(), column_guess, *limits, **hooks))
        setup, solve = (sum(getattr(result, f"{part}_seconds") for result in results) for part in ("setup", "solve"))
        return join_columns(results, self._backend, setup, solve)

    def _result(self, system: Iteration, b: Any, limit: float, norm_of_b: float, maxiter: int) -> SolveResult[Any]:
        """The result of a system, by its right-hand side, its limit and the norm of b in the caller's units."""
        assert system.reason is not None
        x, norm, reason = solution_of(system, system.reason, b)
        narrow = system.dtype_of_steps
        # If the solve continues with another preconditioner or in double precision, nobody asks why this part ended.
        goes_on = reason is Reason.LEFT or (narrow and system.count < maxiter)
        if reason is Reason.INDEFINITE_A and self._seems_indefinite_by_rounding(system):
            reason = Reason.STAGNATED
        if reason not in (Reason.CONVERGED, *CAUSES) and not goes_on:
            if cause := self._cause(b, system, limit, reason):
                reason = cause
            elif self._is_rounding(x, norm, reason, system.count):
                reason = Reason.STAGNATED
        if system.is_cg and system.count and system.residuals[-2] > 0:
            system.energy.fall = square_times(system.residuals[-1] / system.residuals[-2])
        if reason is Reason.CONVERGED and self.norm == "residual" and system.is_cg:
            reason = Reason.CONVERGED_IN_RESIDUAL if self._is_doubtful(system, b) else reason
        system.energy.shift = system.shift
        with np.errstate(all="ignore"):
            residuals = np.ldexp(system.residuals, -system.shift)
        stages = (Stage(str(narrow), system.count),) if narrow else ()
        detail = self._detail(reason, b, limit)
        return SolveResult(
            x,
            reason,
            system.count,
            residuals,
            norm,
            0.0,
            0.0,
            stages=stages,
            detail=detail,
            method=self.method,
            norm_of_b=norm_of_b,
            _coefficients=system.energy if system.is_cg else None,
            _system=None if self.A_is_operator else (self.matrix, b),
        )

    def _is_doubtful(self, system: Iteration, b: Any) -> bool:
        """Whether the iterate may be far from the solution for b, which is in the caller's units, although the norm of
        its residual is small: by the energy norm of the error, as far as CG or the residual in the units of the
        diagonal tells, or since constants on weakly coupled parts would change it much.
        """
        known, norm = system.energy, system.true_residual_norm
        may_be_large = len(known.alphas) and known.alphas[-1] * known.products[-1] > LARGE**4 * known.whole
        found = known.estimate() if may_be_large else None
        if found is not None and found.last > LARGE**2 * found.whole:
            return system.limit <= LARGE * system.residuals[0]
        reduced = system.limit / system.residuals[0] if system.limit < system.residuals[0] else 1.0
        weak = weak_for(reduced)
        if self.A_is_operator:
            return False
        least = self.matrix.least or 0.0  # no entry of the diagonal is below that
        if not self._weak_parts(weak) and not norm * norm > LARGE**2 * known.whole * least:
            return False
        hidden = self._find_hidden(system, b, weak)
        known.hidden, known.hidden_at = hidden.energy, system.count
        return hidden.energy > LARGE**2 * known.whole or hidden.largest > LARGE * float(abs(system.iterate()).max())

    def release(self) -> None:
        """Give back the memory that solves have taken; the next one takes it anew."""
        for iterations in self._free.values():
            for _, stack in iterations:
                stack.close()
        self._free = {}

    def with_preconditioner(self, M: Any) -> Solver:
        """The same method for the same A, with another M."""
        return type(self)(self.matrix, M)

    @abstractmethod
    def _new_iteration(self, A: Operator, M: Operator | None, columns: int, stack: ExitStack) -> Iteration:
        """An iteration on vectors of the dtype of A; what its states need is closed with the stack."""

    def admit_arguments(
        self, b: Any, x0: Any, rtol: Any, atol: Any, maxiter: Any
    ) -> tuple[Any, Any, float, float, int]:
        """Check the arguments of a solve: b and the guess as arrays, None for zero; the tolerances; the iterations."""
        b = self._shape(b, "b")
        guess = self._guess(x0, b)
        rtol, atol = tolerance(rtol, "rtol"), tolerance(0.0 if atol is None else atol, "atol")
        maxiter = 10 * self.shape[0] if maxiter is None else min(integer(maxiter, "maxiter", 0), ENDLESS)
        return b, guess, rtol, atol, maxiter

    def _shape(self, v: Any, name: str) -> Any:
        """Return a user's vector as an array, or several columns where the method can solve for them."""
        if self.most_columns == 1:
            return shape_vector(v, self.shape[0], self._backend, name)
        return shape_columns(v, self.shape[0], self.most_columns, self._backend, name)

    def _project_b(self, b: Any, iteration: Iteration) -> Any:
        """The right-hand side in the caller's units as the iteration has it."""
        return b

    def _guess(self, x0: Any, b: Any) -> Any:
        """The initial guess as an array; None for zero."""
        if x0 is None:
            return None
        if isinstance(x0, str):
            if x0 != "Mb":
                raise ValueError(f"x0 must be an array or 'Mb', got {x0!r}")
            M = self._M.csr if isinstance(self._M, AdmittedMatrix) else self._M
            with np.errstate(all="ignore"):  # what overflows is refused as a guess
                return b if M is None else self._shape(M @ b, "M @ b")
        guess = self._shape(x0, "x0")
        if guess.shape != b.shape:
            raise ValueError(f"x0 must have shape {b.shape} like b, got {guess.shape}")
        return guess

    @cached_property
    def matrix(self) -> AdmittedMatrix:
        """A, admitted."""
        return admit_matrix(self._A, finite=True)

    def _borrow(self, dtype: np.dtype[Any], columns: int) -> tuple[tuple[Any, ...], Iteration, ExitStack, int]:
        """An iteration for vectors of a dtype and so many columns that nobody uses on this stream, made if there is
        none: the key under which it is to be put back, the iteration, what to close when it goes, and the exponent of
        A.
        """
        self._take_note_of_updates()
        exponent = 0 if self.A_is_operator else self.matrix.exponent
        key = self._backend.stream, dtype, columns
        if free := self._free_one(key):
            return key, *free, exponent
        A, M = operators_on(dtype, self._A if self.A_is_operator else self.matrix, self._M, self._backend)
        stack = ExitStack()
        return key, self._new_iteration(A, M, columns, stack), stack, exponent

    def _free_one(self, key: tuple[Any, ...]) -> tuple[Iteration, ExitStack] | None:
        """An iteration that was put back, unless another thread has just taken it."""
        try:
            return self._free[key].pop()
        except (KeyError, IndexError):
            return None

    def _take_note_of_updates(self) -> None:
        """Begin anew where M, and so perhaps A, has new values."""
        updates = self._M.updates if isinstance(self._M, Preconditioner) else 0
        if updates != self._updates:
            self._forget()
            self._updates = updates

    def replace_matrix(self, matrix: AdmittedMatrix) -> None:
        """Go on with new values of A, of the same pattern. M takes them, too, if it is of this package."""
        if isinstance(self._M, Preconditioner):
            self._M.update(matrix.csr)
        elif self.name is not None:
            self.M = build(self.name, matrix, self.nodes)
            self._M = admit_preconditioner(self.M, matrix.csr, self._backend)
        self._forget()
        self._A, self.matrix = matrix.csr, matrix
        self._updates = self._M.updates if isinstance(self._M, Preconditioner) else 0

    def _forget(self) -> None:
        """Drop everything that depends on the values of A and M."""
        self._free = {}
        self.__dict__.pop("matrix", None)
        self._parts = {}

    def _cause(self, b: Any, iteration: Iteration, limit: float, reason: Reason | None = None) -> Reason | None:
        """Why the method fails, where that says more than the given reason or none is given yet; None if not known."""
        if self.A_is_operator:
            return None
        matrix = self.matrix
        if self.symmetric_method and (is_unsymmetric(matrix) if reason is None else not is_hermitian(matrix)):
            return Reason.UNSYMMETRIC_A
        eps = float(np.finfo(matrix.dtype).eps)
        # Where p'Ap is not positive, p is in the null space already, and x is about to be.
        tolerance = math.sqrt(eps) if reason is Reason.INDEFINITE_A else 100 * eps
        residual = iteration.norm_in_units(iteration.residuals[-1] if reason is None else iteration.true_residual_norm)
        singular = does_not_fit(matrix, b, limit) or any(
            is_near_null_space(matrix, v, b, limit, residual, tolerance) for v in self._suspects(iteration)
        )
        if not singular and reason is not None:  # after the solve, since it takes longer
            singular = part_in_components(matrix, b, ROUNDING * eps) > limit
            singular = singular and (self.symmetric_method is not None or is_hermitian(matrix))
        return Reason.INCONSISTENT if singular else None

    def _is_rounding(self, x: Any, norm: float, reason: Reason, count: int) -> bool:
        """Whether a solve that has ended for another reason, after `count` iterations, has stagnated: the residual of
        x, whose norm is given, consists of rounding errors.
        """
        had_time = reason is Reason.MAX_ITERATIONS and count >= min(EXAMINED, len(x))
        # If the residual consists of rounding errors, r'M r and p'A p may have any sign.
        is_breakdown = reason in (Reason.INDEFINITE_A, Reason.INDEFINITE_M)
        return (had_time or is_breakdown) and not self.A_is_operator and is_rounding(self.matrix, x, norm)

    def _seems_indefinite_by_rounding(self, system: Iteration) -> bool:
        """Whether p'A p, which was not positive, is positive if it is computed from the entries of A."""
        direction = None if self.A_is_operator else system.direction()
        return direction is not None and is_positive_along(self.matrix, direction)

    def _suspects(self, iteration: Iteration) -> list[Any]:
        """Return vectors that converge to the null space, after normalization, if A is singular and b does not fit."""
        return [iteration.solution()]

    def _detail(self, reason: Reason, b: Any, limit: float) -> str:
        """What is known of this system beside the reason: the row of A that is zero, if that is why."""
        row = unsolvable_row(self.matrix, b, limit) if reason is Reason.INCONSISTENT else None
        return "" if row is None else f"row {row} of A is zero, and b is {b[row].item()} there; {REMEDY_FOR_ZERO_ROW}"


def real_product(a: Any, b: Any) -> float:
    """The real part of a'b, in double precision."""
    return float((wide(a).conj() * b).real.sum())


def exponent_of_product(matrix: AdmittedMatrix, x: Any) -> int:
    """The exponent of the largest of the sums of magnitudes that A x consists of."""
    xp = matrix.backend.xp
    exponent = exponent_of(x, xp) + ROOM
    sizes = times_power(abs(x).astype(np.float64), -exponent, xp)
    return exponent_of(matrix.magnitudes() @ sizes, xp) + exponent
