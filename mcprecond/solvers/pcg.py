"""Preconditioned conjugate gradients: what users call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from mcprecond.backends.arguments import one_of
from mcprecond.linalg.columns import MOST_COLUMNS
from mcprecond.linalg.csr import Csr
from mcprecond.linalg.hermitian import is_hermitian
from mcprecond.linalg.operator import Operator
from mcprecond.linalg.powers import times_power
from mcprecond.matrix import admitted
from mcprecond.preconditioners import Preconditioner
from mcprecond.solvers.cg import ConjugateGradients
from mcprecond.solvers.columns import ColumnsIteration
from mcprecond.solvers.diagnosis import is_unsymmetric
from mcprecond.solvers.eisenstat import EisenstatIteration, eisenstat_incompatibility
from mcprecond.solvers.iteration import Iteration
from mcprecond.solvers.nullspace import Projected, ProjectedColumns, ProjectedConjugateGradients, null_space_basis
from mcprecond.solvers.result import Reason, SolveResult
from mcprecond.solvers.solver import Solver
from mcprecond.typing import DeviceArray, Form, HostArray, LinearOperator, Matrix, NullSpace, SystemMatrix

FORMS = ("auto", "plain", "eisenstat")


@overload
def pcg(
    A: SystemMatrix,
    b: HostArray | Sequence[float],
    x0: HostArray | Sequence[float] | Literal["Mb"] | None = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: LinearOperator | Matrix | HostArray | DeviceArray | None = None,
    callback: Callable[[npt.NDArray[Any]], object] | None = None,
    progress: Callable[[int, float], object] | None = None,
    form: Form = "auto",
    nullspace: NullSpace = None,
) -> SolveResult[npt.NDArray[Any]]: ...


@overload
def pcg(
    A: SystemMatrix,
    b: DeviceArray,
    x0: DeviceArray | Literal["Mb"] | None = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: LinearOperator | Matrix | HostArray | DeviceArray | None = None,
    callback: Callable[[Any], object] | None = None,
    progress: Callable[[int, float], object] | None = None,
    form: Form = "auto",
    nullspace: NullSpace = None,
) -> SolveResult[Any]: ...


def pcg(
    A: SystemMatrix,
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
    A : sparse matrix or array of SciPy or CuPy, dense array, or LinearOperator, shape (n, n)
        Real or complex floats. A dense array becomes a sparse matrix, of floats where it holds integers. A
        LinearOperator is called as ``A @ x`` in every iteration, which is not captured; where CG fails then, nothing is
        found out about A.
    b : array, shape (n,) or (n, 1)
        On the device of A. Where it is zero, so is the solution, whatever x0.
    x0 : array, shape (n,), or "Mb", optional
        Initial guess, zero by default. Not changed. "Mb" stands for M b.
    rtol, atol : float
        Converged when ``||b - A x|| <= max(rtol ||b||, atol)``, tested on the true residual.
    maxiter : int, optional
        10 n by default.
    M : preconditioner, sparse matrix, dense array or LinearOperator, optional
        An approximation of inv(A), positive definite like A. The preconditioners of this package and sparse
        matrices are captured with the iteration on the GPU; any other operator is called as ``M @ r``. M has to be
        linear, but for the K cycles of this package: with these the iteration is that of flexible CG, which takes one
        more inner product.
    callback : function of one array, optional
        Called as ``callback(xk)`` after every iteration, which makes the host wait for each of them.
    progress : function of an int and a float, optional
        Called as ``progress(iterations, residual_norm)`` whenever the host reads the residuals: after every iteration
        on a CPU, after up to 64 of them on a GPU. Nothing waits for it.
    nullspace : "constant" or array, shape (n,) or (n, k), optional
        The null space of a singular A, as for pure Neumann problems and graph Laplacians: constants, or the span of
        these columns, which may be NumPy's for an A on the GPU. b is then replaced by its projection on the complement,
        so that there is a solution for any b, and the one without a part in the null space is returned. Residuals are
        those of the projected b. It takes the plain form.
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
        If A is not a square matrix of finite numbers or such an operator, b or x0 do not fit it or are not finite, M
        has another shape, is known to be unsymmetric or is complex for a real A, another argument has a wrong type or
        value, the form does not fit M, or A times a vector of `nullspace` is not about zero (says how large it is).
        That A is not symmetric, or that it is singular and b does not fit, is found out after 100 iterations, or where
        CG fails, and is the `reason` then.

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
    """
    solver = PCG(A, M, form=form, nullspace=nullspace)
    result = solver.solve(b, x0, rtol=rtol, atol=atol, maxiter=maxiter, callback=callback, progress=progress)
    solver.release()
    return result


class PCG(Solver):
    """Preconditioned conjugate gradients for many right-hand sides, one after the other: set up once.

    The first `solve` allocates vectors and captures iterations on a GPU; later ones on the same stream find all of that
    there. `pcg` is a PCG that solves once.

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

    most_columns = MOST_COLUMNS

    def __init__(self, A: SystemMatrix, M: Any = None, *, form: Form = "auto", nullspace: NullSpace = None) -> None:
        super().__init__(A, M)
        if isinstance(self._M, Preconditioner) and not self._M.symmetric:
            raise ValueError(f"M is not symmetric, which CG needs; {self._M.remedy_for_asymmetry}, or another solver")
        self._form = one_of(form, "form", FORMS)
        self._is_projected, self._basis = nullspace is not None, None
        if incompatibility := self._incompatibility():
            self._refuse_eisenstat(incompatibility)
            if nullspace is not None:
                if self._A_is_operator:
                    raise TypeError("nullspace needs a sparse or dense A, got an operator")
                self._basis = null_space_basis(nullspace, self._matrix)
            elif not self._A_is_operator:
                self._matrix  # noqa: B018 - checked now

    def _borrow(self, dtype: np.dtype[Any], columns: int) -> tuple[tuple[Any, ...], Iteration, ExitStack, int]:
        """See `Solver`: in Eisenstat's form where it fits."""
        self._take_note_of_updates()
        incompatibility = f"b has {columns} columns" if columns > 1 else self._incompatibility(dtype)
        if not incompatibility:
            backend, M = self._backend, self._M
            was_built_from_A = M.blocks.compared_with(self._A)  # while the rest is made ready
            key = backend.stream, dtype, "eisenstat"
            iteration, stack = self._free_one(key) or (EisenstatIteration(self._A, M, backend), ExitStack())
            if was_built_from_A():
                return key, iteration, stack, M.blocks.exponent
            incompatibility = "M was built from another matrix"
        self._refuse_eisenstat(incompatibility)
        return super()._borrow(dtype, columns)

    def _new_iteration(self, A: Operator, M: Operator | None, columns: int, stack: ExitStack) -> Iteration:
        """See `Solver`."""
        if self._is_projected:
            M = Projected(M, self._basis, A.dtype, self._backend)
        state = None if M is None else stack.enter_context(M.lend_state(columns))
        if columns > 1:
            if not isinstance(A, Csr):
                raise TypeError(f"b has {columns} columns, which needs a sparse or dense A, got an operator")
            of_columns = ProjectedColumns if self._is_projected else ColumnsIteration
            return of_columns(A, self._backend, columns, M, state)
        method = ProjectedConjugateGradients if self._is_projected else ConjugateGradients
        return method(A, self._backend, M, state)

    def _projected(self, b: Any, iteration: Iteration) -> Any:
        """See `Solver`."""
        return times_power(iteration.b, -iteration.shift, self._backend.xp) if self._is_projected else b

    def _incompatibility(self, dtype: Any = None) -> str | None:
        """Why Eisenstat's form does not fit, or is not wanted; None if it fits, provided that M was built from A."""
        if self._form == "plain":
            return "form='plain'"
        if self._is_projected:
            return "nullspace is given"
        if self._A_is_operator:
            return "A is no matrix"
        if found := eisenstat_incompatibility(self._A, self._M):
            return found
        if dtype is None or dtype == self._A.dtype:  # to NumPy None is float64
            return None
        return f"the system is solved in {dtype}, as b or x0 needs it"

    def _refuse_eisenstat(self, incompatibility: str) -> None:
        """Raise ValueError if Eisenstat's form is asked for."""
        if self._form == "eisenstat":
            unfit = "nullspace" if self._is_projected else "several columns" if "columns" in incompatibility else "M"
            raise ValueError(f"form='eisenstat' does not fit {unfit}: {incompatibility}; use form='plain'")

    def _cause(self, b: Any, iteration: Iteration, limit: float, reason: Reason | None = None) -> Reason | None:
        """See `Solver`; A may not be symmetric, too."""
        if self._A_is_operator:
            return None
        matrix = admitted(self._A)
        if reason is None:
            unsymmetric = is_unsymmetric(matrix)
        else:
            unsymmetric = reason is not Reason.NOT_FINITE and not is_hermitian(matrix)
        return Reason.UNSYMMETRIC_A if unsymmetric else super()._cause(b, iteration, limit, reason)
