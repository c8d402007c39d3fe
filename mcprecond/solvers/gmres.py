"""GMRES with restarts, for any A that is not singular: what users call, and its steps.

The preconditioner stands on the right, so that residuals are b - A x, whatever M is; and since the preconditioned
vectors are kept, as in flexible GMRES, M need not be linear, and is not applied once more at the end of a cycle.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, cast

import numpy as np

from mcprecond.backends import NUMBERS, Backend, KernelSet, compile_loop, compile_part
from mcprecond.backends.arguments import function, integer, one_of
from mcprecond.backends.memory import available_bytes
from mcprecond.linalg.operator import Operator
from mcprecond.linalg.powers import power_times
from mcprecond.solvers.automatic_general import GeneralSolver
from mcprecond.solvers.iteration import (
    BETA,
    CYCLE_ENDED,
    EXHAUSTED,
    ROUNDING,
    RUNNING,
    RZ,
    SHARED,
    STATE,
    Iteration,
    conjugated_product,
    inner,
    is_finite,
    take_rr,
    wide,
    wide_dtype,
)
from mcprecond.solvers.result import SolveResult
from mcprecond.solvers.setup import in_unit_of
from mcprecond.solvers.solver import ENDLESS

KERNELS = KernelSet(__file__, "VALUE")

# The device's integers of a cycle: how many steps it has made, how many it makes, and whether the last vector has to be
# made orthogonal once more. In `scalars`, RZ is the squared norm of the last vector before it is made orthogonal, BETA
# the norm after that, and LARGEST the largest square of the norm of A M v in this solve.
LENGTH, RESTART, AGAIN = range(PLACES := 3)
LARGEST = SHARED
CUDA_CONSTANTS = {"LENGTH": LENGTH, "RESTART": RESTART, "AGAIN": AGAIN, "LARGEST": LARGEST}
CALLBACK_TYPES = "legacy", "pr_norm", "x"
#: Without `restart=` the first cycle has FIRST_RESTART iterations. If a cycle leaves more than the share LITTLE of the
#: residual, the next cycle is twice as long, up to MOST_RESTART iterations.
FIRST_RESTART, MOST_RESTART, LITTLE = 30, 120, 0.95


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float | None = 0.0,
    restart: int | None = None,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[[Any], object] | None = None,
    callback_type: str | None = None,
    progress: Callable[[int, float], object] | None = None,
) -> SolveResult[Any]:
    """Solve A x = b by GMRES with restarts, for any A that is not singular, as systems with advection.

    An iteration takes one product with A and one with M; its residual is the smallest one in the space that the cycle
    has built so far. On a GPU an iteration is one CUDA graph.

    Solves are run-to-run deterministic, if A and M are of this package or stored as matrices; see `deterministic`.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, dense array, or LinearOperator, shape (n, n)
        As for `pcg`; it need not be symmetric.
    b : array, shape (n,), (n, 1) or (n, k)
        The right-hand side, on the device of A. If b has several columns, the systems are solved one after the other.
    x0 : array of the shape of b, or "Mb", optional
        Initial guess, zero by default. Not changed. "Mb" stands for M b.
    rtol, atol : float
        Converged when ``||b - A x|| <= max(rtol ||b||, atol)``, tested on the true residual. None stands for 0 in
        `atol`.
    restart : int, optional
        Iterations of a cycle. GMRES keeps one vector for each, and with an M two: the vector and the preconditioned
        one. By default cycles have 30 iterations at first. If a cycle leaves more than 0.95 of the residual, the next
        ones have twice as many, at most 120 and at most as many as there is memory for. SciPy has 20.
    maxiter : int, optional
        How many cycles there may be, 10 n by default. With ``callback_type="legacy"`` it is, as in SciPy, how many
        iterations there may be.
    M : preconditioner, sparse matrix, dense array, LinearOperator or str, optional
        An approximation of inv(A), such as `ClassicalAMG`, `ILU0` or `MulticolorDILU`, or a name as for `bicgstab`. It
        need not be linear.
    callback : function of one argument, optional
        `callback_type` says what it is called with.
    callback_type : {"legacy", "pr_norm", "x"}, optional
        "x": x, after every cycle. "pr_norm" and "legacy": the norm of the residual relative to that of b, after every
        iteration, which makes the host wait for each of them. SciPy passes the residual of M A x = M b there. "legacy"
        is the default with a callback, and changes what `maxiter` counts.
    progress : function of an int and a float, optional
        Called as ``progress(iterations, residual_norm)`` whenever the host reads the residuals: after every iteration
        on a CPU, on a GPU after 8 of them and then whenever a tenth more have been done.

    Returns
    -------
    SolveResult
        Unpacks as ``x, info``. If the residual is still too large, `info` is the number of cycles, or of iterations
        with "legacy". For several columns a `ColumnsResult`.

    Raises
    ------
    TypeError, ValueError
        As `pcg`, for these arguments.

    Warns
    -----
    DeprecationWarning
        With a callback and without its type, as in SciPy.

    References
    ----------
    Saad, Schultz: GMRES: A Generalized Minimal Residual Algorithm for Solving Nonsymmetric Linear Systems, SIAM J. Sci.
    Stat. Comput. 7, 1986.
    Saad: A Flexible Inner-Outer Preconditioned GMRES Algorithm, SIAM J. Sci. Comput. 14, 1993.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from mcprecond import MulticolorGS, gmres
    >>> A = scipy.sparse.diags_array([-1.5, 2.0, -0.5], offsets=[-1, 0, 1], shape=(50, 50), format="csr")
    >>> result = gmres(A, np.ones(50), M=MulticolorGS(A), restart=30, rtol=1e-10)
    >>> result.reason.name, result.iterations
    ('CONVERGED', 25)
    """
    solver = GMRESSolver(A, M)
    if restart is not None:
        solver.restart, solver.is_adaptive = integer(restart, "restart", 1), False
    callback = function(callback, "callback", " of one argument")
    if callback_type is not None:
        callback_type = one_of(callback_type, "callback_type", CALLBACK_TYPES)
    if callback is None:
        callback_type = None
    elif callback_type is None:
        warnings.warn(
            "gmres was called without specifying `callback_type`; it is 'legacy', as in SciPy: maxiter counts "
            "iterations, and callback gets the relative norm of the residual",
            DeprecationWarning,
            stacklevel=2,
        )
        callback_type = "legacy"
    progress = function(progress, "progress", " of an int and a float")
    with_norm = None
    if callback_type == "x":
        solver.on_cycle = callback
    elif callback is not None:
        with_norm = lambda iteration: callback(iteration.relative_norm)  # noqa: E731
    solver.counts_cycles = callback_type != "legacy"
    result = solver.explain(solver.run_all(b, x0, rtol, atol, maxiter, callback=with_norm, progress=progress))
    solver.release()
    return result


class GMRESSolver(GeneralSolver):
    """GMRES with M. The argument `maxiter` of `run` limits cycles if `counts_cycles` is set, otherwise iterations."""

    method = "gmres"
    products = 1
    restart, is_adaptive, counts_cycles = FIRST_RESTART, True, True
    on_cycle: Callable[[Any], object] | None = None

    def with_preconditioner(self, M: Any) -> GMRESSolver:
        """See `Solver`."""
        other = GMRESSolver(self.matrix, M)
        other.restart, other.is_adaptive = self.restart, self.is_adaptive
        other.counts_cycles, other.on_cycle = self.counts_cycles, self.on_cycle
        return other

    def run(self, b: Any, x0: Any, rtol: Any, atol: Any, maxiter: Any, **hooks: Any) -> SolveResult[Any]:
        if not self.counts_cycles:
            return super().run(b, x0, rtol, atol, maxiter, **hooks)
        self._most_cycles = 10 * self.shape[0] if maxiter is None else integer(maxiter, "maxiter", 0)
        result = super().run(b, x0, rtol, atol, ENDLESS if self._most_cycles else 0, **hooks)
        return replace(result, cycles=self._iteration.cycles)

    def _borrow(self, dtype: np.dtype[Any], columns: int) -> tuple[tuple[Any, ...], Iteration, ExitStack, int]:
        borrowed = super()._borrow(dtype, columns)
        self._iteration = cast(GMRES, borrowed[1])
        self._iteration.most_cycles = self._most_cycles if self.counts_cycles else None
        return borrowed

    def _new_iteration(self, A: Operator, M: Operator | None, columns: int, stack: ExitStack) -> Iteration:
        M = in_unit_of(A, M, self._backend)
        state = None if M is None else stack.enter_context(M.lend_state())
        most = MOST_RESTART if self.is_adaptive else self.restart
        return GMRES(A, self._backend, M, state, self.restart, most, self.on_cycle)


class GMRES(Iteration):
    """Flexible GMRES with a preconditioner on the right, an `Operator` and a state of it, or None.

    Let the rows of V be an orthonormal basis and those of Z the preconditioned vectors. A step appends z = M v to Z and
    makes w = A z orthogonal to V by classical Gram-Schmidt; once more if that took so much off w that rounding is felt
    (Daniel, Gragg, Kaufman, Stewart 1976). A Givens rotation brings the new column of the Hessenberg matrix to
    triangular form, and tells the norm of the residual. At the end of a cycle the host solves the triangular system.

    The first cycle has `restart` steps. One that follows a cycle that has won little has twice as many as that, at most
    `most_restart`.
    """

    #: How many cycles there may be; None if they are not counted.
    most_cycles: int | None = None
    V: Any
    Z: Any
    #: The norm of the residual at the start of the last cycle, in the caller's units.
    _norm_before: float

    def __init__(
        self,
        A: Operator,
        backend: Backend,
        M: Operator | None,
        state: Any,
        restart: int,
        most_restart: int,
        on_cycle: Callable[[Any], object] | None,
    ) -> None:
        super().__init__(A, backend)
        xp, n, dtype = backend.xp, self.n, A.dtype
        self.run = backend.kernels(KERNELS, VALUE=dtype)
        self.b, self.x, self.r, self.v, self.w = (xp.empty(n, dtype) for _ in range(5))
        self.z = self.v if M is None else xp.empty(n, dtype)
        self.places = xp.zeros(PLACES, np.int64)
        self._take_preconditioner(M, state)
        self.first_restart, self.most_restart, self.on_cycle = max(min(restart, n), 1), most_restart, on_cycle
        self._take_restart(self.first_restart)

    def _take_restart(self, restart: int) -> None:
        """Allocate the arrays for cycles of `restart` steps."""
        xp, n, wide = self.backend.xp, self.n, wide_dtype(self.dtype)
        self.restart = restart
        self.V = self.Z = None  # what was there is given back first
        self.V = xp.empty((restart, n), self.dtype)
        self.Z = self.V if self.M is None else xp.empty((restart, n), self.dtype)
        self.parts = xp.zeros(restart, wide)
        #: Column j of the triangle is row j here. Then the cosines and sines of rotations, and the right-hand side.
        self.R = xp.zeros((restart, restart), wide)
        self.cosines, self.sines, self.g = xp.zeros(restart), xp.zeros(restart, wide), xp.zeros(restart + 1, wide)
        #: The partial sums of each inner product, one for each block of the grid.
        self.sums = xp.empty(restart * self.backend.most_blocks, wide)
        self.bundle = max(k for k in range(1, self.bundle + 1) if restart % k == 0)  # so that cycles end with a pass
        self.__dict__.pop("_loop", None)

    def lengthen_cycles(self) -> bool:
        """See `Iteration`. The length is doubled, unless `most_restart` or the free memory is too small for that."""
        longer = min(2 * self.restart, self.most_restart, self.n)
        added = (longer - self.restart) * self.n * self.dtype.itemsize * (1 if self.M is None else 2)
        if longer == self.restart or added > available_bytes(self.backend) / 2:
            return False
        self._take_restart(longer)
        return True

    @property
    def relative_norm(self) -> float:
        """The norm of the residual relative to the norm of b."""
        relative = power_times(self.residuals[-1] / self._norm_of_b, self._shift_of_b - self.shift)
        return np.float64(relative)  # which is an array of no dimensions, too

    def load(self, b: Any, x0: Any) -> None:
        super().load(b, x0)
        self.cycles = self._first = self._length = 0
        if self.restart > self.first_restart:  # as another system has left it
            self._take_restart(self.first_restart)

    def start(self, limit: float, maxiter: int, norm: float, is_zero: bool) -> None:
        self._norm_of_b, self._shift_of_b = norm, self.shift
        super().start(limit, maxiter, norm, is_zero)

    def find_residual(self, accurately: bool = False) -> None:
        """See `Iteration`; before that, the end of a cycle: x += Z' y, where y solves the triangular system."""
        length, to_host = self.count - self._first, self.backend.to_host
        if length:
            self._first, self._length = self.count, length
            self.cycles += 1
            least = float(np.finfo(self.dtype).eps) * math.sqrt(float(self.scalars[LARGEST]))
            y = least_squares(to_host(self.R)[:length, :length].T, to_host(self.g)[:length], least)
            self.run.add_vectors(self.n, length, self.Z, self.backend.xp.asarray(y), self.x)
        super().find_residual(accurately)
        if length and self.on_cycle:
            self.on_cycle(self.solution())

    def leave(self) -> None:
        """See `Iteration`; the cycle ends first."""
        super().leave()
        self.measure_residual()

    def begin(self) -> None:
        """See `Iteration`: the basis begins with r."""
        norm = self.true_residual_norm
        if self._state == RUNNING and self.most_cycles is not None and self.cycles >= self.most_cycles:
            self._go_to(EXHAUSTED)
        if self._state != RUNNING:
            return
        own = self.norm_in_units(norm)
        if self._length == self.restart and own > LITTLE * self._norm_before:
            self.lengthen_cycles()
        self._first, self._norm_before = self.count, own
        self.v[...] = self.r
        self.v /= norm
        self.V[0] = self.v
        self.g[0] = norm
        self.places[...] = self.backend.xp.asarray(np.array([0, self.restart, 0]))

    def _step(self) -> None:
        run, n, basis = self.run, self.n, (self.V, self.w, self.parts, self.places)
        rotations = self.R, self.cosines, self.sines, self.g
        if self.M is not None:
            self.M.enqueue(self._of_M, self.v, self.z)
            run.keep_vector(n, self.z, self.Z, self.places, self.control)
        self.A.enqueue(self._of_A, self.z, self.w)
        for turn in range(2):
            run.find_parts(n, turn, *basis, self.sums, *self.reduction)
            run.take_off_parts(n, turn, *basis, *rotations, *self.reduction)
        run.normalize(n, self.w, self.v, self.V, self.places, self.control, self.scalars)


def least_squares(R: Any, g: Any, least: float) -> Any:
    """Solve a triangular system. Where a pivot is not larger than `least`, as for a singular A, the unknown is zero."""
    y = np.array(g)
    for k in range(len(y) - 1, -1, -1):
        y[k] = y[k] / R[k, k] if abs(R[k, k]) > least else 0
        y[:k] -= y[k] * R[:k, k]
    return y


# On the CPU.


@KERNELS.strided
def keep_vector(n, z, Z, places, control):
    """Append z to Z."""
    if control[STATE] == RUNNING:
        copy_numbers(0, n, z, Z[places[LENGTH]])


@compile_loop(grain=NUMBERS)
def copy_numbers(first, end, v, to):
    """The numbers of `keep_vector`."""
    for i in range(first, end):
        to[i] = v[i]


@KERNELS.strided
def find_parts(n, turn, V, w, parts, places, sums, control, scalars, history):
    """The coefficients of the basis in w, and w'w, in the second turn only if it is needed."""
    if control[STATE] != RUNNING or (turn and not places[AGAIN]):
        return
    for k in range(places[LENGTH] + 1):
        parts[k] = multiply_conjugated(0, n, V[k], w)
    scalars[RZ] = square_numbers(0, n, w)


@compile_loop(grain=NUMBERS)
def multiply_conjugated(first, end, a, b):
    """The inner product of a and b."""
    product = wide(b.dtype.type(0))
    for i in range(first, end):
        product += conjugated_product(a[i], b[i])
    return product


@compile_loop(grain=NUMBERS)
def square_numbers(first, end, v):
    """The square of the norm of v."""
    square = 0.0
    for i in range(first, end):
        square += inner(v[i], v[i])
    return square


@KERNELS.strided
def take_off_parts(n, turn, V, w, parts, places, R, cosines, sines, g, control, scalars, history):
    """w less its parts, and its norm. Then either the second turn is needed, or the step ends."""
    if control[STATE] != RUNNING or (turn and not places[AGAIN]):
        return
    length = places[LENGTH]
    square = take_off_numbers(0, n, length + 1, V, parts, w)
    if not is_finite(square, control):
        return
    column = R[length]
    for k in range(length + 1):
        column[k] = parts[k] + (column[k] if turn else 0)
    places[AGAIN] = turn == 0 and square < 0.5 * scalars[RZ]
    if not places[AGAIN]:
        end_step(square, column, places, cosines, sines, g, control, scalars, history)


@compile_loop(grain=NUMBERS)
def take_off_numbers(first, end, vectors, V, parts, w):
    """The numbers of `take_off_parts`."""
    for k in range(vectors):
        part = w.dtype.type(parts[k])
        for i in range(first, end):
            w[i] -= part * V[k, i]
    square = 0.0
    for i in range(first, end):
        square += inner(w[i], w[i])
    return square


@compile_part
def end_step(square, column, places, cosines, sines, g, control, scalars, history):
    """Rotate the new column of the Hessenberg matrix, whose last entry is the norm of w; the norm of the residual.

    Where w is rounding, the space holds the solution, or A is singular on it.
    """
    length = places[LENGTH]
    size = square
    for k in range(length + 1):
        size += inner(column[k], column[k])
    scalars[LARGEST] = max(scalars[LARGEST], size)
    least = 4 * scalars[ROUNDING] * scalars[LARGEST]
    below = np.sqrt(square)
    is_complete = square <= least
    if is_complete:
        below = 0.0
    for k in range(length):
        upper, lower = column[k], column[k + 1]
        column[k] = cosines[k] * upper + sines[k] * lower
        column[k + 1] = cosines[k] * lower - np.conj(sines[k]) * upper
    pivot = abs(column[length])
    norm = np.sqrt(pivot * pivot + below * below)
    phase = column[length] / pivot if pivot else column[length] + 1
    cosines[length] = pivot / norm if norm else 1.0
    sines[length] = phase * (below / norm if norm else 0.0)
    column[length] = phase * norm
    g[length + 1] = -np.conj(sines[length]) * g[length]
    g[length] = cosines[length] * g[length]
    places[LENGTH] = length + 1
    scalars[BETA] = below
    # With a pivot of zero the last unknown is left out, and the residual does not change.
    rest = abs(g[length + 1]) if norm * norm > least else abs(g[length])
    take_rr(rest * rest, control, scalars, history)
    if control[STATE] == RUNNING and (is_complete or length + 1 == places[RESTART]):
        control[STATE] = CYCLE_ENDED


@KERNELS.strided
def normalize(n, w, v, V, places, control, scalars):
    """v = w / its norm, also in the basis."""
    if control[STATE] == RUNNING:
        normalize_numbers(0, n, v.real.dtype.type(1 / scalars[BETA]), w, v, V[places[LENGTH]])


@compile_loop(grain=NUMBERS)
def normalize_numbers(first, end, factor, w, v, kept):
    """The numbers of `normalize`."""
    for i in range(first, end):
        v[i] = kept[i] = factor * w[i]


@KERNELS.per_item(grain=NUMBERS)
def add_vectors(first, end, vectors, Z, y, x):
    """x += the sum of y[k] times row k of Z."""
    for k in range(vectors):
        part = x.dtype.type(y[k])
        for i in range(first, end):
            x[i] += part * Z[k, i]
