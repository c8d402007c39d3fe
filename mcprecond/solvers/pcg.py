"""Preconditioned conjugate gradients.

The host enqueues iterations and looks at the outcome now and then; iterations enqueued beyond the last one do nothing.
On the GPU iterations are captured graphs, and a few of them run while the host looks.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from mcprecond.backends import Backend, backend_of
from mcprecond.backends.inputs import csr_of_floats, csr_system, refuse_not_finite, shaped_vector, vector
from mcprecond.preconditioners import Preconditioner
from mcprecond.solvers.eisenstat import EisenstatIteration, why_not
from mcprecond.solvers.iteration import (
    BAD_A,
    BAD_M,
    EXHAUSTED,
    NAN,
    REACHED,
    RUNNING,
    Iteration,
    Operator,
    PlainIteration,
)
from mcprecond.solvers.result import Reason, SolveResult

FORMS = ("auto", "plain", "eisenstat")
MOST_PER_LOOK = 64
AHEAD = 3  # iterations that a GPU has to do during a look

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
    form: str = "auto",
) -> SolveResult:
    """Solve A x = b for symmetric or Hermitian positive definite A by preconditioned conjugate gradients.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, shape (n, n)
        Real or complex floats.
    b : array, shape (n,) or (n, 1)
        On the device of A.
    x0 : array, shape (n,), optional
        Initial guess, zero by default. Not changed.
    rtol, atol : float
        Converged when ``||b - A x|| <= max(rtol ||b||, atol)``, tested on the true residual.
    maxiter : int, optional
        10 n by default.
    M : preconditioner, sparse matrix or LinearOperator, optional
        An approximation of inv(A), positive definite like A. The preconditioners of this package and sparse
        matrices are captured with the iteration on the GPU; any other operator is called as ``M @ r``.
    callback : function of one array, optional
        Called as ``callback(xk)`` after every iteration, which makes the host wait for each of them.
    form : {"auto", "plain", "eisenstat"}
        "eisenstat" reads the matrix once per iteration instead of twice, for the same iterates up to rounding. It needs
        an M that was built from this A and has its triangles: one sweep of `MulticolorSGS` with any omega,
        `MulticolorDILU`, or an `ILU0` that is a DILU. "auto" uses it then.

    Returns
    -------
    SolveResult
        Unpacks as ``x, info``.

    Raises
    ------
    TypeError, ValueError
        If A is not a square sparse matrix of finite floats, b or x0 do not fit it or are not finite, M has another
        shape, is known to be unsymmetric or is complex for a real A, a tolerance is negative, or the form is unknown or
        does not fit M.

    References
    ----------
    Hestenes, Stiefel: Methods of Conjugate Gradients for Solving Linear Systems, 1952.
    Saad: Iterative Methods for Sparse Linear Systems, 2nd ed., Algorithm 9.1.
    Eisenstat: Efficient Implementation of a Class of Preconditioned Conjugate Gradient Methods, 1981.

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
    csr, backend = csr_of_floats(A)
    n = csr.shape[0]
    if form not in FORMS:
        raise ValueError(f"form must be one of {', '.join(FORMS)}, got {form!r}")
    applier = _applier(M, csr, backend)
    obstacle = why_not(csr, applier) if form != "plain" else "form='plain'"
    if obstacle:
        _admit_plain(csr, form, obstacle)
    else:
        was_built_from_A = applier.blocks.compared_with(csr)  # while the rest is made ready
    b = shaped_vector(b, n, backend, csr.dtype)
    x = None if x0 is None else vector(x0, n, backend, csr.dtype, "x0")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if not tolerance >= 0:
            raise ValueError(f"{name} must not be negative, got {tolerance}")
    maxiter = 10 * n if maxiter is None else maxiter
    if not isinstance(maxiter, int | np.integer) or maxiter < 0:
        raise ValueError(f"maxiter must be a non-negative integer, got {maxiter!r}")
    iteration: Iteration
    if not obstacle:
        iteration = EisenstatIteration(csr, b, x, applier, backend)
        if not was_built_from_A():
            obstacle = "M was built from another matrix"
            _admit_plain(csr, form, obstacle)
    if obstacle:
        iteration = PlainIteration(csr, b, x, applier, backend)
    norm = math.sqrt(iteration.dot(b))
    if not math.isfinite(norm):
        refuse_not_finite(b, backend)
    limit = max(rtol * norm, atol)
    iteration.start(limit, int(maxiter), norm if x0 is None else None)
    ready = time.perf_counter()
    reason = _iterate(iteration, limit, callback)
    finished = time.perf_counter()
    return SolveResult(
        iteration.solution(), reason, iteration.count, np.array(iteration.residuals), iteration.true_residual_norm,
        ready - started, finished - ready,
    )  # fmt: skip


def _admit_plain(csr: Any, form: str, obstacle: str) -> None:
    """Raise ValueError if A is not finite, or another form is asked for. For that one, A's values are those of M, which
    have been looked at.
    """
    csr_system(csr)
    if form == "eisenstat":
        raise ValueError(f"form='eisenstat' does not fit M: {obstacle}; use form='plain'")


def _iterate(iteration: Iteration, limit: float, callback: Callable[[Any], None] | None) -> Reason:
    """Enqueue iterations, look, and start over from the true residual where the recurrence was too optimistic."""
    iterations = 1 if callback else iteration.backend.iterations_per_look
    adapts = iterations > 1
    ahead = AHEAD if adapts and iteration.captures else 0
    while True:
        state = iteration.look(ahead)
        if state == RUNNING:
            if adapts:
                iterations = _until_converged(iteration.residuals, limit, iterations, ahead)
            iteration.enqueue(iterations)
            if callback:
                callback(iteration.solution())
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


def _until_converged(residuals: list[float], limit: float, last: int, ahead: int) -> int:
    """How many iterations to enqueue before the next look: about as many as are left at the present rate, without those
    that go on during the look.
    """
    window = min(2 * last, len(residuals) - 1)
    if window < 1 or limit <= 0 or residuals[-1] <= 0 or residuals[-1] >= residuals[-1 - window]:
        return min(2 * last, MOST_PER_LOOK)
    rate = math.log(residuals[-1 - window] / residuals[-1]) / window
    return int(min(max(math.log(residuals[-1] / limit) / rate - ahead, 1), MOST_PER_LOOK))


def _applier(M: Any, csr: Any, backend: Backend) -> Any:
    """What stands for M: None, a Preconditioner that runs where A is, a CSR matrix, or any operator with ``@``."""
    if M is None:
        return None
    if getattr(M, "shape", None) != csr.shape:
        raise ValueError(f"M must have the shape of A, {csr.shape}, got {getattr(M, 'shape', type(M).__name__)}")
    if getattr(M, "dtype", None) is not None and M.dtype.kind == "c" and csr.dtype.kind != "c":
        raise TypeError(f"M holds {M.dtype} and A {csr.dtype}; convert A with A.astype(complex), or take a real M")
    if isinstance(M, Preconditioner):
        if not M.symmetric:
            raise ValueError("M is not symmetric, which CG needs; use sweep='symmetric', or another solver")
        return M if M.captures and M.backend.name == backend.name and M.dtype == csr.dtype else Operator(M, backend)
    if backend.sparse.issparse(M):
        if backend_of(M).name != backend.name:
            raise TypeError(f"M must be on the {backend.name} like A")
        return csr_system(M.astype(csr.dtype), "M")[0]
    if not hasattr(M, "__matmul__"):
        raise TypeError(f"M must be a preconditioner, a sparse matrix or a LinearOperator, got {type(M).__name__}")
    return Operator(M, backend)
