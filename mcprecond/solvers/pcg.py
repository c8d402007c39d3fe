"""Preconditioned conjugate gradients: what users call."""

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
from mcprecond.backends.inputs import promoted, shaped_columns
from mcprecond.linalg.columns import MOST_COLUMNS
from mcprecond.linalg.csr import product_with
from mcprecond.linalg.hermitian import is_hermitian
from mcprecond.linalg.operator import operator_for
from mcprecond.linalg.powers import power_times, times_power
from mcprecond.matrix import AdmittedMatrix, admitted, csr_form
from mcprecond.preconditioners import Preconditioner
from mcprecond.solvers.cg import ConjugateGradients
from mcprecond.solvers.columns import ColumnsIteration, solve_columns
from mcprecond.solvers.diagnosis import does_not_fit, is_near_null_space, is_unsymmetric
from mcprecond.solvers.driver import choose_units, iterate, solution_of
from mcprecond.solvers.eisenstat import EisenstatIteration, eisenstat_incompatibility
from mcprecond.solvers.iteration import Iteration
from mcprecond.solvers.nullspace import Projected, ProjectedColumns, ProjectedConjugateGradients, null_space_basis
from mcprecond.solvers.result import CAUSES, Reason, SolveResult
from mcprecond.typing import DeviceArray, Form, HostArray, LinearOperator, Matrix, NullSpace

FORMS = ("auto", "plain", "eisenstat")


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
    nullspace: NullSpace = None,
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
    nullspace: NullSpace = None,
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
    nullspace: NullSpace = None,
) -> SolveResult[Any]:
    """Solve A x = b for symmetric or Hermitian positive definite A by preconditioned conjugate gradients.

    The system is solved in the dtype that A, b, x0 and a sparse M promote to, and in any units: scaling A or b by a
    power of two changes no digit of the solution, as long as the dtype has room for it.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, shape (n, n)
        Real or complex floats.
    b : array, shape (n,), (n, 1) or (n, k)
        On the device of A. Where it is zero, so is the solution, whatever x0. Up to 256 columns are systems that share
        each pass over A and M, in less time than one after the other. Each of them has its own tolerance and units,
        stops by itself, and has the solution that it has alone.
    x0 : array of the shape of b, optional
        Initial guess, zero by default. Not changed.
    rtol, atol : float
        Converged when ``||b - A x|| <= max(rtol ||b||, atol)``, tested on the true residual.
    maxiter : int, optional
        10 n by default.
    M : preconditioner, sparse matrix or LinearOperator, optional
        An approximation of inv(A), positive definite like A. The preconditioners of this package and sparse
        matrices are captured with the iteration on the GPU; any other operator is called as ``M @ r``. M has to be
        linear, but for the K cycles of this package: with these the iteration is that of flexible CG, which takes one
        more inner product. To several columns an operator of others is applied as ``M @ R``, with R of shape (n, k).
    callback : function of one array, optional
        Called as ``callback(xk)``, with xk of the shape of x, after every iteration, which makes the host wait for each
        of them.
    progress : function of an int and a float, optional
        Called as ``progress(iterations, residual_norm)`` whenever the host reads the residuals: after every iteration
        on a CPU, after up to 64 of them on a GPU. Nothing waits for it. Of several columns these are the most
        iterations and the largest norm.
    nullspace : "constant" or array, shape (n,) or (n, k), optional
        The null space of a singular A, as for pure Neumann problems and graph Laplacians: constants, or the span of
        these columns, which may be NumPy's for an A on the GPU. b is then replaced by its projection on the complement,
        so that there is a solution for any b, and the one without a part in the null space is returned. Residuals are
        those of the projected b. It takes the plain form.
    form : {"auto", "plain", "eisenstat"}
        "eisenstat" reads the matrix once per iteration instead of twice, for the same iterates up to rounding. It needs
        an M that was built from this A and has its triangles: one sweep of `MulticolorSGS` with any omega,
        `MulticolorDILU`, or an `ILU0` that is a DILU. "auto" uses it then. It is for one right-hand side: for several
        columns "auto" takes the plain form, and "eisenstat" is refused.

    Returns
    -------
    SolveResult
        Unpacks as ``x, info``. For several columns a `ColumnsResult`, which has the numbers of each.

    Raises
    ------
    TypeError, ValueError
        If A is not a square sparse matrix of finite floats, b or x0 do not fit it or are not finite (says where), b has
        no column or more than 256, M has another shape, is known to be unsymmetric or is complex for a real A, another
        argument has a wrong type or value, the form does not fit M or several columns, or A times a vector of
        `nullspace` is not about zero (says how large it is). That A is not symmetric, or that it is singular and b does
        not fit, is found out after 100 iterations, or where CG fails, and is the `reason` then.

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

    The Laplacian of a ring is singular:

    >>> L = scipy.sparse.diags_array([-1.0, -1.0, 2.0, -1.0, -1.0], offsets=[-49, -1, 0, 1, 49], shape=(50, 50)).tocsr()
    >>> b = np.arange(50.0)
    >>> result = pcg(L, b, M=MulticolorSGS(L), rtol=1e-10, nullspace="constant")
    >>> result.converged, bool(np.allclose(L @ result.x, b - b.mean())), bool(abs(result.x.mean()) < 1e-10)
    (True, True, True)

    Several right-hand sides:

    >>> result = pcg(A, np.eye(50)[:, :3], M=MulticolorSGS(A), rtol=1e-10)
    >>> result.x.shape, bool(np.allclose(A @ result.x, np.eye(50)[:, :3])), len(result.iterations)
    ((50, 3), True, 3)
    """
    solver = PCG(A, M, form=form, nullspace=nullspace)
    result = solver.solve(b, x0, rtol=rtol, atol=atol, maxiter=maxiter, callback=callback, progress=progress)
    solver.release()
    return result


class PCG:
    """Preconditioned conjugate gradients for many right-hand sides, together or one after the other: set up once.

    The first `solve` allocates vectors and captures iterations on a GPU; later ones for as many columns on the same
    stream find all of that there. `pcg` is a PCG that solves once.

    Parameters
    ----------
    A, M, form, nullspace
        As for `pcg`. They are referred to, not copied. New values in the arrays of A count after ``M.update(A)``; else
        A has to stay as it is.

    Raises
    ------
    TypeError, ValueError
        As `pcg`, for these arguments.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from mcprecond import PCG, MulticolorSGS
    >>> A = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(50, 50), format="csr")
    >>> solver, x = PCG(A, MulticolorSGS(A)), np.ones(50)
    >>> for step in range(3):  # implicit steps in time
    ...     x = solver.solve(x, rtol=1e-10).x
    >>> print(f"{x[25]:.3e}")
    2.330e+07
    """

    def __init__(self, A: Matrix, M: Any = None, *, form: Form = "auto", nullspace: NullSpace = None) -> None:
        self._started = time.perf_counter()
        self._csr, self._backend = csr_form(A, floats=True)
        self._form = one_of(form, "form", FORMS)
        self._M = _admitted_preconditioner(M, self._csr, self._backend)
        self._admitted: AdmittedMatrix | None = None
        self._is_projected, self._basis = nullspace is not None, None
        self._updates = self._M.updates if isinstance(self._M, Preconditioner) else 0
        #: Iterations that nobody uses, by stream, dtype and columns, or "eisenstat" for one column in that form.
        self._free: dict[tuple[Any, ...], list[tuple[Iteration, ExitStack]]] = {}
        if incompatibility := self._incompatibility():
            matrix = self._plain_system(incompatibility)
            if nullspace is not None:
                self._basis = null_space_basis(nullspace, matrix)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self._csr.shape

    def solve(
        self,
        b: Any,
        x0: Any = None,
        *,
        rtol: float = 1e-5,
        atol: float = 0.0,
        maxiter: int | None = None,
        callback: Callable[[Any], object] | None = None,
        progress: Callable[[int, float], object] | None = None,
    ) -> SolveResult[Any]:
        """Solve A x = b.

        Parameters
        ----------
        b, x0, rtol, atol, maxiter, callback, progress
            As for `pcg`.

        Returns
        -------
        SolveResult
            `setup_seconds` are those of this call, and of the constructor in the first one.

        Raises
        ------
        TypeError, ValueError
            As `pcg`, for these arguments.
        """
        started, self._started = self._started or time.perf_counter(), 0.0
        csr, backend, n = self._csr, self._backend, self._csr.shape[0]
        b = shaped_columns(b, n, MOST_COLUMNS, backend)
        guess = None if x0 is None else shaped_columns(x0, n, MOST_COLUMNS, backend, "x0")
        if guess is not None and guess.shape != b.shape:
            raise ValueError(f"x0 must have shape {b.shape} like b, got {guess.shape}")
        for name, tolerance in (("rtol", rtol), ("atol", atol)):
            real(tolerance, name, least=0.0)
        maxiter = 10 * n if maxiter is None else integer(maxiter, "maxiter", 0)
        for name, hook, of in (("callback", callback, "one array"), ("progress", progress, "an int and a float")):
            if hook is not None and not callable(hook):
                raise TypeError(f"{name} must be a function of {of}, got {type(hook).__name__}")
        operands = [csr, b, *([] if guess is None else [guess])]
        if isinstance(self._M, AdmittedMatrix):
            operands.append(self._M)
        dtype, columns = promoted(*(operand.dtype for operand in operands)), b.shape[1] if b.ndim == 2 else 1
        key, iteration, stack, exponent_of_A = self._borrow(dtype, columns)
        iteration.load(b, guess)
        if isinstance(iteration, ColumnsIteration):
            result = solve_columns(
                iteration, b, guess, exponent_of_A, (rtol, atol, maxiter), callback, progress, self._cause_of, started
            )
            self._free.setdefault(key, []).append((iteration, stack))
            return result
        norm = choose_units(iteration, b, guess, exponent_of_A, backend)
        if self._is_projected:
            b = times_power(iteration.b, -iteration.shift, backend.xp)
        if norm == 0 and not bool(b.any()):
            ready = time.perf_counter()
            self._free.setdefault(key, []).append((iteration, stack))
            zero = backend.xp.zeros(n, iteration.dtype)
            return SolveResult(zero, Reason.CONVERGED, 0, np.zeros(1), 0.0, ready - started, 0.0)
        limit = max(rtol * norm, power_times(float(atol), iteration.shift))
        limit_of_caller = iteration.norm_in_units(limit)
        iteration.start(limit, maxiter, norm if x0 is None else None)
        ready = time.perf_counter()
        reason = iterate(iteration, callback, progress, lambda: _cause(csr, b, iteration, limit_of_caller))
        x, reason = solution_of(iteration, reason)
        if reason not in (Reason.CONVERGED, *CAUSES):
            reason = _cause(csr, b, iteration, limit_of_caller, reason) or reason
        finished = time.perf_counter()
        residuals = np.array([iteration.norm_in_units(norm) for norm in iteration.residuals])
        true_norm = iteration.norm_in_units(iteration.true_residual_norm)
        # Not after an exception: it may have been left halfway.
        self._free.setdefault(key, []).append((iteration, stack))
        return SolveResult(x, reason, iteration.count, residuals, true_norm, ready - started, finished - ready)

    def release(self) -> None:
        """Give back the memory that solves have taken; the next one takes it anew."""
        for iterations in self._free.values():
            for _, stack in iterations:
                stack.close()
        self._free = {}

    def _cause_of(self, b: Any, column: Iteration, limit: float, reason: Reason | None = None) -> Reason | None:
        """See `_cause`, for a column."""
        if self._is_projected:
            b = times_power(column.b, -column.shift, self._backend.xp)
        return _cause(self._csr, b, column, limit, reason)

    def _borrow(self, dtype: np.dtype[Any], columns: int) -> tuple[tuple[Any, ...], Iteration, ExitStack, int]:
        """An iteration for so many columns of a dtype that nobody uses on this stream, made if there is none: the key
        under which it is to be put back, the iteration, what to close when it goes, and the exponent of A.
        """
        backend, M = self._backend, self._M
        self._take_note_of_updates()
        incompatibility = f"b has {columns} columns" if columns > 1 else self._incompatibility(dtype)
        if not incompatibility:
            was_built_from_A = M.blocks.compared_with(self._csr)  # while the rest is made ready
            key: tuple[Any, ...] = (backend.stream, dtype, "eisenstat")
            iteration, stack = self._free_one(key) or (EisenstatIteration(self._csr, M, backend), ExitStack())
            if was_built_from_A():
                return key, iteration, stack, M.blocks.exponent
            incompatibility = "M was built from another matrix"
        matrix = self._plain_system(incompatibility)
        key = backend.stream, dtype, columns
        if free := self._free_one(key):
            return key, *free, matrix.exponent
        stack, state = ExitStack(), None
        system = replace(matrix, csr=matrix.csr.astype(dtype, copy=False))
        if isinstance(M, AdmittedMatrix):
            M = product_with(replace(M, csr=M.csr.astype(dtype, copy=False)))
        if M is not None:
            M = operator_for(M, dtype, backend)
        if self._is_projected:
            M = Projected(M, self._basis, dtype, backend)
        if M is not None:
            state = stack.enter_context(M.lend_state(columns))
        if columns > 1:
            iterations = ProjectedColumns if self._is_projected else ColumnsIteration
            return key, iterations(system, columns, M, state), stack, matrix.exponent
        method = ProjectedConjugateGradients if self._is_projected else ConjugateGradients
        return key, method(system, M, state), stack, matrix.exponent

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
            self._updates, self._admitted, self._free = updates, None, {}

    def _incompatibility(self, dtype: Any = None) -> str | None:
        """Why Eisenstat's form does not fit, or is not wanted; None if it fits, provided that M was built from A."""
        if self._form == "plain":
            return "form='plain'"
        if self._is_projected:
            return "nullspace is given"
        if found := eisenstat_incompatibility(self._csr, self._M):
            return found
        if dtype is None or dtype == self._csr.dtype:  # to NumPy None is float64
            return None
        return f"the system is solved in {dtype}, as b or x0 needs it"

    def _plain_system(self, incompatibility: str) -> AdmittedMatrix:
        """A, admitted, for the plain form; ValueError if another one is asked for. For that one, A is known by being
        the matrix of M.
        """
        if self._admitted is None:
            self._admitted = admitted(self._csr, finite=True)
        if self._form == "eisenstat":
            unfit = "nullspace" if self._is_projected else "several columns" if "columns" in incompatibility else "M"
            raise ValueError(f"form='eisenstat' does not fit {unfit}: {incompatibility}; use form='plain'")
        return self._admitted


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
