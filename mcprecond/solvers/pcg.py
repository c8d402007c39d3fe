"""Preconditioned conjugate gradients whose scalars never leave the device.

Every inner product is finished by the kernel that computes it: it derives the next coefficient, records the residual
and decides whether to go on. The host enqueues iterations and looks at the outcome now and then; iterations enqueued
beyond the last one do nothing. On the GPU one iteration is a captured graph.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import prange

from mcprecond.backends import Backend, KernelSet, backend_of, compile_part
from mcprecond.backends.inputs import csr_system, vector
from mcprecond.preconditioners import Preconditioner
from mcprecond.solvers.result import Reason, SolveResult

KERNELS = KernelSet(__file__)

# Slots of `control` (int64) and `scalars` (float64), and their values; mirrored in pcg.cu.
STATE, ITERATION, MAXITER, ARRIVALS = range(4)
RUNNING, REACHED, EXHAUSTED, BAD_A, BAD_M, NAN = range(6)
ALPHA, BETA, RZ, RR, TOLERANCE = range(5)
# What an inner product is for: p'Ap gives alpha; r'r ends an iteration (and gives beta if M is the identity); r'z gives
# beta; a fresh r'r starts over.
PAP, RESIDUAL, RESIDUAL_IS_RZ, BETA_OF_RZ, FRESH_RESIDUAL, FRESH_RZ, NOTHING = range(7)

HISTORY = 1024  # residuals kept on the device between two looks
MOST_PER_LOOK = 64

STOPPED_BY = {
    EXHAUSTED: Reason.MAX_ITERATIONS,
    BAD_A: Reason.INDEFINITE_A,
    BAD_M: Reason.INDEFINITE_M,
    NAN: Reason.NOT_FINITE,
}


def pcg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[[Any], None] | None = None,
) -> SolveResult:
    """Solve A x = b for symmetric positive definite A by preconditioned conjugate gradients.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, shape (n, n)
        float32 or float64.
    b : array, shape (n,) or (n, 1)
        On the device of A.
    x0 : array, shape (n,), optional
        Initial guess, zero by default. Not changed.
    rtol, atol : float
        Converged when ``||b - A x|| <= max(rtol ||b||, atol)``, tested on the true residual.
    maxiter : int, optional
        10 n by default.
    M : preconditioner, sparse matrix or LinearOperator, optional
        An approximation of inv(A), symmetric positive definite. The preconditioners of this package and sparse
        matrices are captured with the iteration on the GPU; any other operator is called as ``M @ r``.
    callback : function of one array, optional
        Called as ``callback(xk)`` after every iteration, which makes the host wait for each of them.

    Returns
    -------
    SolveResult
        Unpacks as ``x, info``.

    Raises
    ------
    TypeError, ValueError
        If A is not a square sparse matrix of finite floats, b or x0 do not fit it or are not finite, M has another
        shape or is known to be unsymmetric, or a tolerance is negative.

    References
    ----------
    Hestenes, Stiefel: Methods of Conjugate Gradients for Solving Linear Systems, 1952.
    Saad: Iterative Methods for Sparse Linear Systems, 2nd ed., Algorithm 9.1.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from mcprecond import MulticolorSGS, pcg
    >>> A = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(50, 50), format="csr")
    >>> result = pcg(A, np.ones(50), M=MulticolorSGS(A), rtol=1e-10)
    >>> result.converged
    True
    """
    started = time.perf_counter()
    csr, backend = csr_system(A)
    n = csr.shape[0]
    b = vector(b, n, backend, csr.dtype)
    x = backend.xp.zeros(n, csr.dtype) if x0 is None else vector(x0, n, backend, csr.dtype, "x0")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if not tolerance >= 0:
            raise ValueError(f"{name} must not be negative, got {tolerance}")
    maxiter = 10 * n if maxiter is None else maxiter
    if not isinstance(maxiter, int | np.integer) or maxiter < 0:
        raise ValueError(f"maxiter must be a non-negative integer, got {maxiter!r}")
    iteration = _Iteration(csr, b, x, _applier(M, csr, backend), backend)
    limit = max(rtol * math.sqrt(iteration.dot(b)), atol)
    iteration.start(limit, maxiter)
    ready = time.perf_counter()
    reason = _iterate(iteration, limit, callback)
    finished = time.perf_counter()
    return SolveResult(
        x, reason, iteration.count, np.array(iteration.residuals), iteration.true_residual_norm,
        ready - started, finished - ready,
    )  # fmt: skip


def _iterate(iteration: _Iteration, limit: float, callback: Callable[[Any], None] | None) -> Reason:
    """Enqueue iterations, look, and start over from the true residual where the recurrence was too optimistic."""
    iterations = 1 if callback else iteration.backend.iterations_per_look
    while True:
        state = iteration.look()
        if state == RUNNING:
            iteration.enqueue(iterations)
            if callback:
                callback(iteration.x)
            elif iteration.backend.iterations_per_look > 1:
                iterations = _until_converged(iteration.residuals, limit, iterations)
            continue
        before = iteration.true_residual_norm
        iteration.measure_residual()
        if not math.isfinite(iteration.true_residual_norm):
            return Reason.NOT_FINITE
        if iteration.true_residual_norm <= limit:
            return Reason.CONVERGED
        if state != REACHED:
            return STOPPED_BY[state]
        if iteration.true_residual_norm > 0.5 * before:
            return Reason.STAGNATED
        iteration.start_over()


def _until_converged(residuals: list[float], limit: float, last: int) -> int:
    """How many iterations to enqueue before the next look: about as many as are left at the present rate."""
    window = min(2 * last, len(residuals) - 1)
    if window < 1 or limit <= 0 or residuals[-1] <= 0 or residuals[-1] >= residuals[-1 - window]:
        return min(2 * last, MOST_PER_LOOK)
    rate = math.log(residuals[-1 - window] / residuals[-1]) / window
    return int(min(max(math.log(residuals[-1] / limit) / rate, 2), MOST_PER_LOOK))


def _applier(M: Any, csr: Any, backend: Backend) -> Any:
    """What stands for M: None, a Preconditioner that runs where A is, a CSR matrix, or any operator with ``@``."""
    if M is None:
        return None
    if getattr(M, "shape", None) != csr.shape:
        raise ValueError(f"M must have the shape of A, {csr.shape}, got {getattr(M, 'shape', type(M).__name__)}")
    if isinstance(M, Preconditioner):
        if not M.symmetric:
            raise ValueError("M is not symmetric, which CG needs; use sweep='symmetric', or another solver")
        return M if M.captures and M.backend.name == backend.name and M.dtype == csr.dtype else _Operator(M, backend)
    if backend.sparse.issparse(M):
        if backend_of(M).name != backend.name:
            raise TypeError(f"M must be on the {backend.name} like A")
        return csr_system(M.astype(csr.dtype), "M")[0]
    if not hasattr(M, "__matmul__"):
        raise TypeError(f"M must be a preconditioner, a sparse matrix or a LinearOperator, got {type(M).__name__}")
    return _Operator(M, backend)


class _Operator:
    """A foreign M: called for each product, not captured."""

    def __init__(self, M: Any, backend: Backend) -> None:
        self.M, self.xp = M, backend.xp

    def enqueue(self, r: Any, z: Any) -> None:
        z[...] = self.xp.asarray(self.M @ r)


class _Iteration:
    """The vectors and scalars of a CG run on one device, and the steps on them."""

    def __init__(self, csr: Any, b: Any, x: Any, M: Any, backend: Backend) -> None:
        xp, n = backend.xp, csr.shape[0]
        self.backend, self.n, self.b, self.x, self.M = backend, n, b, x, M
        offset = np.int32 if csr.indices.size < 2**31 else np.int64
        lanes = _lanes(csr.indices.size / max(n, 1))
        self.run = backend.kernels(KERNELS, OFFSET=offset, VALUE=csr.dtype, LANES=lanes)
        self.A = _csr_arrays(csr, offset, xp)
        self.r, self.p, self.q = (xp.empty(n, csr.dtype) for _ in range(3))
        self.z = self.r if M is None else xp.empty(n, csr.dtype)
        self.control = xp.zeros(4, np.int64)
        self.scalars = xp.zeros(5, np.float64)
        self.history = xp.zeros(HISTORY, np.float64)
        self.partials = xp.zeros(16384, np.float64)
        self.books = (self.control, self.scalars, self.history, self.partials)
        self.apply_M: Callable[[], None] = lambda: None
        if M is not None:
            is_matrix = backend.sparse.issparse(M)
            M_arrays = _csr_arrays(M, offset, xp) if is_matrix else ()
            self.apply_M = (
                (lambda: self.run.multiply(n, *M_arrays, self.r, self.z, NOTHING, *self.books))
                if is_matrix
                else (lambda: M.enqueue(self.r, self.z))
            )
        self.step = self._step if isinstance(M, _Operator) else backend.repeatable(self._step)
        self.count = 0
        self.residuals: list[float] = []
        self.true_residual_norm = math.inf

    def dot(self, a: Any) -> float:
        """a'a, as a number on the host."""
        self.run.inner_product(self.n, a, a, FRESH_RESIDUAL, *self.books)
        return float(self.scalars[RR])

    def start(self, limit: float, maxiter: int) -> None:
        """The residual of the initial guess and the first direction."""
        self.control[MAXITER] = min(maxiter, 2**62)
        self.scalars[TOLERANCE] = limit**2
        self.measure_residual()
        self.residuals = [self.true_residual_norm]
        self.start_over()

    def measure_residual(self) -> None:
        """r = b - A x from scratch; its norm."""
        self.control[STATE] = RUNNING
        self.run.residual(self.n, *self.A, self.x, self.b, self.r, FRESH_RESIDUAL, *self.books)
        self.true_residual_norm = math.sqrt(float(self.scalars[RR]))

    def start_over(self) -> None:
        """Steepest descent from the residual in r: p = z = M r. Nothing to do if it is small enough, or not finite."""
        exhausted = self.count >= int(self.control[MAXITER])
        self.control[STATE] = (
            NAN if not math.isfinite(self.true_residual_norm)
            else REACHED if self.true_residual_norm**2 <= float(self.scalars[TOLERANCE])
            else EXHAUSTED if exhausted
            else RUNNING
        )  # fmt: skip
        self.apply_M()
        self.run.inner_product(self.n, self.r, self.z, FRESH_RZ, *self.books)
        self.p[...] = self.z

    def _step(self) -> None:
        """One iteration: Algorithm 9.1 of Saad."""
        run, n, books = self.run, self.n, self.books
        run.multiply(n, *self.A, self.p, self.q, PAP, *books)
        run.advance(n, self.p, self.q, self.x, self.r, RESIDUAL_IS_RZ if self.M is None else RESIDUAL, *books)
        if self.M is not None:
            self.apply_M()
            run.inner_product(n, self.r, self.z, BETA_OF_RZ, *books)
        run.turn(n, self.z, self.p, self.control, self.scalars)

    def enqueue(self, iterations: int) -> None:
        """Run so many iterations, or until the state is no longer RUNNING."""
        for _ in range(iterations):
            self.step()

    def look(self) -> int:
        """Wait, fetch the new residuals, and return the state."""
        state, count = (int(value) for value in self.backend.to_host(self.control[: ITERATION + 1]))
        if count > self.count:
            history = self.backend.to_host(self.history)
            self.residuals += [float(history[k % HISTORY]) for k in range(self.count + 1, count + 1)]
            self.count = count
        return state


def _csr_arrays(csr: Any, offset: Any, xp: Any) -> tuple[Any, Any, Any]:
    return xp.asarray(csr.indptr, dtype=offset), xp.asarray(csr.indices, dtype=np.int32), csr.data


def _lanes(per_row: float) -> int:
    """How many threads of a GPU share a row of the matrix product."""
    lanes = 2
    while lanes < 32 and lanes < per_row / 4:
        lanes *= 2
    return lanes


@compile_part
def close(role, total, control, scalars, history):
    """What follows from an inner product; in CUDA the last block to arrive does this."""
    if role == NOTHING:
        return
    if role == FRESH_RESIDUAL:
        scalars[RR] = total
        return
    if not np.isfinite(total):
        control[STATE] = NAN
        return
    if role == PAP:
        if total <= 0:
            control[STATE] = BAD_A
        else:
            scalars[ALPHA] = scalars[RZ] / total
    elif role in (RESIDUAL, RESIDUAL_IS_RZ):
        scalars[RR] = total
        control[ITERATION] += 1
        history[control[ITERATION] % HISTORY] = np.sqrt(total)
        if total <= scalars[TOLERANCE]:
            control[STATE] = REACHED
        elif control[ITERATION] >= control[MAXITER]:
            control[STATE] = EXHAUSTED
    if role in (RESIDUAL_IS_RZ, BETA_OF_RZ):
        scalars[BETA] = total / scalars[RZ]
    if role in (RESIDUAL_IS_RZ, BETA_OF_RZ, FRESH_RZ):
        scalars[RZ] = total
        if total <= 0 and control[STATE] == RUNNING:
            control[STATE] = BAD_M


@KERNELS.strided_twin
def multiply(n, indptr, indices, values, p, q, role, control, scalars, history, partials):
    """q = A p, and p'q."""
    if control[STATE] != RUNNING:
        return
    product = 0.0
    for i in prange(n):
        total = p.dtype.type(0)
        for k in range(indptr[i], indptr[i + 1]):
            total += values[k] * p[indices[k]]
        q[i] = total
        product += np.float64(total) * p[i]
    close(role, product, control, scalars, history)


@KERNELS.strided_twin
def residual(n, indptr, indices, values, x, b, r, role, control, scalars, history, partials):
    """r = b - A x, and r'r."""
    square = 0.0
    for i in prange(n):
        total = b[i]
        for k in range(indptr[i], indptr[i + 1]):
            total -= values[k] * x[indices[k]]
        r[i] = total
        square += np.float64(total) * total
    close(role, square, control, scalars, history)


@KERNELS.strided_twin
def inner_product(n, a, b, role, control, scalars, history, partials):
    """a'b."""
    if control[STATE] != RUNNING:
        return
    product = 0.0
    for i in prange(n):
        product += np.float64(a[i]) * b[i]
    close(role, product, control, scalars, history)


@KERNELS.strided_twin
def advance(n, p, q, x, r, role, control, scalars, history, partials):
    """x += alpha p, r -= alpha q, and r'r."""
    if control[STATE] != RUNNING:
        return
    alpha = r.dtype.type(scalars[ALPHA])
    square = 0.0
    for i in prange(n):
        x[i] += alpha * p[i]
        r[i] -= alpha * q[i]
        square += np.float64(r[i]) * r[i]
    close(role, square, control, scalars, history)


@KERNELS.strided_twin
def turn(n, z, p, control, scalars):
    """p = z + beta p."""
    if control[STATE] != RUNNING:
        return
    beta = p.dtype.type(scalars[BETA])
    for i in prange(n):
        p[i] = z[i] + beta * p[i]
