"""Preconditioned conjugate gradients.

The host enqueues iterations and reads the control block now and then; iterations that are enqueued beyond the last one
do nothing. On a GPU iterations are captured graphs, and a few of them run while the host reads.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from mcprecond.backends import Backend, backend_of
from mcprecond.backends.arguments import integer, one_of, real
from mcprecond.backends.inputs import promoted, refuse_not_finite, shaped_vector
from mcprecond.matrix import AdmittedMatrix, admitted, csr_form, is_hermitian
from mcprecond.preconditioners import Preconditioner
from mcprecond.solvers.appliers import applied
from mcprecond.solvers.diagnosis import does_not_fit, is_near_null_space, is_unsymmetric
from mcprecond.solvers.eisenstat import EisenstatIteration, eisenstat_incompatibility
from mcprecond.solvers.iteration import (
    BAD_A,
    BAD_M,
    EXHAUSTED,
    NAN,
    REACHED,
    RUNNING,
    Iteration,
    PlainIteration,
    power_times,
    times_power,
)
from mcprecond.solvers.result import Reason, SolveResult
from mcprecond.typing import DeviceArray, Form, HostArray, LinearOperator, Matrix

FORMS = ("auto", "plain", "eisenstat")
MOST_PER_READ = 64
#: Iterations after which it is asked why CG has not converged yet; and so many times as many until the next time.
EXAMINED, RARER, SLOW = 100, 2, 1e-3
AHEAD = 3  # iterations that are enqueued before the host reads, so that the GPU is busy meanwhile

#: What is found out about A and b.
CAUSES = Reason.UNSYMMETRIC_A, Reason.INCONSISTENT

STOPPED_BY = {
    REACHED: Reason.STAGNATED,
    EXHAUSTED: Reason.MAX_ITERATIONS,
    BAD_A: Reason.INDEFINITE_A,
    BAD_M: Reason.INDEFINITE_M,
    NAN: Reason.NOT_FINITE,
}


@overload
def pcg(
    A: Matrix,
    b: HostArray | Sequence[float],
    x0: HostArray | Sequence[float] | None = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: LinearOperator | Matrix | None = None,
    callback: Callable[[npt.NDArray[Any]], object] | None = None,
    progress: Callable[[int, float], object] | None = None,
    form: Form = "auto",
) -> SolveResult[npt.NDArray[Any]]: ...


@overload
def pcg(
    A: Matrix,
    b: DeviceArray,
    x0: DeviceArray | None = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: LinearOperator | Matrix | None = None,
    callback: Callable[[Any], object] | None = None,
    progress: Callable[[int, float], object] | None = None,
    form: Form = "auto",
) -> SolveResult[Any]: ...


def pcg(
    A: Matrix,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[[Any], object] | None = None,
    progress: Callable[[int, float], object] | None = None,
    form: Form = "auto",
) -> SolveResult[Any]:
    """Solve A x = b for symmetric or Hermitian positive definite A by preconditioned conjugate gradients.

    The system is solved in the dtype that A, b, x0 and a sparse M promote to, and in any units: scaling A or b by a
    power of two changes no digit of the solution, as long as the dtype has room for it.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, shape (n, n)
        Real or complex floats.
    b : array, shape (n,) or (n, 1)
        On the device of A. Where it is zero, so is the solution, whatever x0.
    x0 : array, shape (n,), optional
        Initial guess, zero by default. Not changed.
    rtol, atol : float
        Converged when ``||b - A x|| <= max(rtol ||b||, atol)``, tested on the true residual.
    maxiter : int, optional
        10 n by default.
    M : preconditioner, sparse matrix or LinearOperator, optional
        An approximation of inv(A), positive definite like A. The preconditioners of this package and sparse
        matrices are captured with the iteration on the GPU; any other operator is called as ``M @ r``. M has to be
        linear, but for the K cycles of this package: with these the iteration is that of flexible CG, which takes one
        more inner product.
    callback : function of one array, optional
        Called as ``callback(xk)`` after every iteration, which makes the host wait for each of them.
    progress : function of an int and a float, optional
        Called as ``progress(iterations, residual_norm)`` whenever the host reads the residuals: after every iteration
        on a CPU, after up to 64 of them on a GPU. Nothing waits for it.
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
        shape, is known to be unsymmetric or is complex for a real A, another argument has a wrong type or value, or the
        form does not fit M. That A is not symmetric, or that it is singular and b does not fit, is found out after 100
        iterations, or where CG fails, and is the `reason` then.

    References
    ----------
    Hestenes, Stiefel: Methods of Conjugate Gradients for Solving Linear Systems, 1952.
    Saad: Iterative Methods for Sparse Linear Systems, 2nd ed., Algorithm 9.1.
    Eisenstat: Efficient Implementation of a Class of Preconditioned Conjugate Gradient Methods, 1981.
    Notay: Flexible Conjugate Gradients, 2000.

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
    csr, backend = csr_form(A, floats=True)
    n = csr.shape[0]
    one_of(form, "form", FORMS)
    M = _admitted_preconditioner(M, csr, backend)
    incompatibility = "form='plain'" if form == "plain" else eisenstat_incompatibility(csr, M)
    matrix = _admitted_system(csr, form, incompatibility) if incompatibility else None
    b = shaped_vector(b, n, backend)
    guess = None if x0 is None else shaped_vector(x0, n, backend, "x0")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        real(tolerance, name, least=0.0)
    maxiter = 10 * n if maxiter is None else integer(maxiter, "maxiter", 0)
    for name, told, of in (("callback", callback, "one array"), ("progress", progress, "an int and a float")):
        if told is not None and not callable(told):
            raise TypeError(f"{name} must be a function of {of}, got {type(told).__name__}")
    operands = [csr, b, *([] if guess is None else [guess]), *([M] if isinstance(M, AdmittedMatrix) else [])]
    dtype = promoted(*(operand.dtype for operand in operands))
    if matrix is None and dtype != csr.dtype:
        incompatibility = f"the system is solved in {dtype}, as b or x0 needs it"
        matrix = _admitted_system(csr, form, incompatibility)
    with ExitStack() as stack:
        iteration: Iteration
        if matrix is None:
            was_built_from_A = M.blocks.compared_with(csr)  # while the rest is made ready
            iteration, exponent_of_A = EisenstatIteration(csr, b, guess, M, backend), M.blocks.exponent
            if not was_built_from_A():
                matrix = _admitted_system(csr, form, "M was built from another matrix")
        if matrix is not None:
            exponent_of_A = matrix.exponent
            csr = matrix.csr.astype(dtype, copy=False)
            matrix = replace(matrix, csr=csr)
            if isinstance(M, AdmittedMatrix):
                M = replace(M, csr=M.csr.astype(dtype, copy=False))
            iteration = PlainIteration(matrix, b, guess, stack.enter_context(applied(M, dtype, backend)))
        norm = _chosen_units(iteration, b, guess, exponent_of_A, backend)
        if norm == 0 and not bool(b.any()):
            ready = time.perf_counter()
            zero = backend.xp.zeros(n, dtype)
            return SolveResult(zero, Reason.CONVERGED, 0, np.zeros(1), 0.0, ready - started, 0.0)
        limit = max(rtol * norm, power_times(float(atol), iteration.shift))
        limit_of_caller = iteration.norm_in_units(limit)
        iteration.start(limit, maxiter, norm if x0 is None else None)
        ready = time.perf_counter()
        reason = _iterate(iteration, callback, progress, lambda: _cause(csr, b, iteration, limit_of_caller))
        x, reason = _returned(iteration, reason)
        if reason not in (Reason.CONVERGED, *CAUSES):
            reason = _cause(csr, b, iteration, limit_of_caller, reason) or reason
        finished = time.perf_counter()
    residuals = np.array([iteration.norm_in_units(norm) for norm in iteration.residuals])
    true_norm = iteration.norm_in_units(iteration.true_residual_norm)
    return SolveResult(x, reason, iteration.count, residuals, true_norm, ready - started, finished - ready)


def _admitted_system(csr: Any, form: str, incompatibility: str) -> AdmittedMatrix:
    """Return A, admitted, for the plain form; raise ValueError if another one is asked for. For that one, A is known by
    being the matrix of M.
    """
    matrix = admitted(csr, finite=True)
    if form == "eisenstat":
        raise ValueError(f"form='eisenstat' does not fit M: {incompatibility}; use form='plain'")
    return matrix


def _chosen_units(iteration: Iteration, b: Any, guess: Any, exponent_of_A: int, backend: Backend) -> float:
    """Choose the units of an iteration, unless b = 0; the norm of b in these.

    Raises
    ------
    ValueError
        If b or the guess is not finite.
    """
    norm, shift = iteration.size(iteration.b)
    if not math.isfinite(norm):
        refuse_not_finite(b, backend)
    exponent = math.frexp(norm)[1] + shift
    if guess is not None:
        norm_of_guess, shift_of_guess = iteration.size(iteration.x)
        if not math.isfinite(norm_of_guess):
            refuse_not_finite(guess, backend, "x0")
        if norm_of_guess > 0:
            exponent = max(exponent, exponent_of_A + math.frexp(norm_of_guess)[1] + shift_of_guess)
    if norm > 0:
        iteration.choose_units(exponent_of_A, exponent)
    return power_times(norm, shift + iteration.shift)


def _returned(iteration: Iteration, reason: Reason) -> tuple[Any, Reason]:
    """The solution in the caller's units, and the reason, which is another one where these have no room for it."""
    x, xp = iteration.solution(), iteration.backend.xp
    if iteration.shift and reason is Reason.CONVERGED:
        if not bool(xp.isfinite(x).all()):
            return x, Reason.NOT_FINITE
        back = times_power(x, iteration.shift, xp)
        if bool((back != iteration.iterate()).any()):  # digits were lost to underflow
            iteration.replace_iterate(back)
            iteration.measure_residual()
            if iteration.true_residual_norm > iteration.limit:
                return x, Reason.STAGNATED
    return x, reason


def _iterate(
    iteration: Iteration,
    callback: Callable[[Any], object] | None,
    progress: Callable[[int, float], object] | None,
    cause: Callable[[], Reason | None],
) -> Reason:
    """Enqueue iterations, read the state, and start over from the true residual if the recurrence was optimistic.

    After many iterations that have not won much, ``cause()`` is asked why.
    """
    iterations = 1 if callback else iteration.backend.iterations_per_look
    adapts = iterations > 1
    ahead = AHEAD if adapts and iteration.captures else 0
    if iteration.bundle == 1:  # few iterations, each of which takes long
        iterations, ahead = 1, min(ahead, 1)
    called, examined = 0, EXAMINED
    while True:
        state = iteration.read_state(ahead)
        if callback and iteration.count > called:
            called = iteration.count
            callback(iteration.solution())
        if progress:
            progress(iteration.count, iteration.norm_in_units(iteration.residuals[-1]))
        if state == RUNNING and iteration.count >= examined:
            examined *= RARER
            stalls = iteration.residuals[-1] > SLOW * iteration.residuals[0]
            if stalls and (found := cause()):
                iteration.read_state()  # after those that have run ahead
                iteration.measure_residual()
                return Reason.CONVERGED if iteration.true_residual_norm <= iteration.limit else found
        if state == RUNNING:
            if adapts:
                iterations = _until_converged(iteration.residuals, iteration.limit, iterations, ahead)
            iteration.enqueue(iterations)
            continue
        before = iteration.true_residual_norm
        iteration.measure_residual()
        if not math.isfinite(iteration.true_residual_norm):
            return Reason.NOT_FINITE
        if iteration.true_residual_norm <= iteration.limit:
            return Reason.CONVERGED
        # After progress even a breakdown may be rounding: nothing but noise was left of the residual.
        if state == EXHAUSTED or iteration.true_residual_norm > 0.5 * before:
            return STOPPED_BY[state]
        iteration.start_over()


def _cause(csr: Any, b: Any, iteration: Iteration, limit: float, reason: Reason | None = None) -> Reason | None:
    """Why CG has failed for a reason that says less, or None; without a reason, why it will fail."""
    matrix = admitted(csr)
    if reason is None:
        unsymmetric = is_unsymmetric(matrix)
    else:
        unsymmetric = reason is not Reason.NOT_FINITE and not is_hermitian(matrix)
    if unsymmetric:
        return Reason.UNSYMMETRIC_A
    eps = float(np.finfo(matrix.dtype).eps)
    # Where p'Ap is not positive, p is in the null space already, and x is about to be.
    tolerance = math.sqrt(eps) if reason is Reason.INDEFINITE_A else 100 * eps
    residual = iteration.norm_in_units(iteration.residuals[-1] if reason is None else iteration.true_residual_norm)
    singular = does_not_fit(matrix, b, limit) or is_near_null_space(
        matrix, iteration.solution(), b, limit, residual, tolerance
    )
    return Reason.INCONSISTENT if singular else None


def _until_converged(residuals: list[float], limit: float, last: int, ahead: int) -> int:
    """How many iterations to enqueue before the host reads again: about as many as are left at the present rate,
    without those that run while it reads.
    """
    window = min(2 * last, len(residuals) - 1)
    if window < 1 or limit <= 0 or residuals[-1] <= 0 or residuals[-1] >= residuals[-1 - window]:
        return min(2 * last, MOST_PER_READ)
    rate = math.log(residuals[-1 - window] / residuals[-1]) / window
    return int(min(max(math.log(residuals[-1] / limit) / rate - ahead, 1), MOST_PER_READ))


def _admitted_preconditioner(M: Any, csr: Any, backend: Backend) -> Any:
    """What stands for M: None, a Preconditioner, an AdmittedMatrix, or any operator with ``@``."""
    if M is None:
        return None
    if getattr(M, "shape", None) != csr.shape:
        if not hasattr(M, "__matmul__"):
            raise TypeError(f"M must be a preconditioner, a sparse matrix or a LinearOperator, got {type(M).__name__}")
        raise ValueError(f"M must have the shape of A, {csr.shape}, got {getattr(M, 'shape', type(M).__name__)}")
    if getattr(M, "dtype", None) is not None and M.dtype.kind == "c" and csr.dtype.kind != "c":
        raise TypeError(f"M holds {M.dtype} and A {csr.dtype}; convert A with A.astype(complex), or take a real M")
    if isinstance(M, Preconditioner):
        if not M.symmetric:
            raise ValueError(f"M is not symmetric, which CG needs; {M.remedy_for_asymmetry}, or another solver")
        return M
    if backend_of(M).name != backend.name and hasattr(M, "tocsr"):
        raise TypeError(f"M must be on the {backend.name} like A")
    if backend.sparse.issparse(M):
        return admitted(M, "M", finite=True)
    if not hasattr(M, "__matmul__"):
        raise TypeError(f"M must be a preconditioner, a sparse matrix or a LinearOperator, got {type(M).__name__}")
    return M
