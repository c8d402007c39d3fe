"""Preconditioned conjugate gradients: what users call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy.typing as npt

from mcprecond.backends.arguments import one_of
from mcprecond.solvers.automatic import Stages
from mcprecond.solvers.preconditioned import PreconditionedCG
from mcprecond.solvers.result import SolveResult
from mcprecond.typing import DeviceArray, Form, HostArray, LinearOperator, Matrix, NullSpace, SystemMatrix


@overload
def pcg(
    A: SystemMatrix,
    b: HostArray | Sequence[float],
    x0: HostArray | Sequence[float] | Literal["Mb"] | None = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: LinearOperator | Matrix | HostArray | DeviceArray | Literal["auto"] | None = None,
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
    M: LinearOperator | Matrix | HostArray | DeviceArray | Literal["auto"] | None = None,
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
    power of two changes no digit of the solution, as long as the dtype has room for it. Where M is stored in single
    precision, the iteration runs in that, to the accuracy of the dtype of the system; what it cannot do, double
    precision completes.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, dense array, or LinearOperator, shape (n, n)
        Real or complex floats. A dense array becomes a sparse matrix, of floats where it holds integers. A
        LinearOperator is called as ``A @ x`` in every iteration, which is not captured; where CG fails then, nothing is
        found out about A.
    b : array, shape (n,), (n, 1) or (n, k)
        On the device of A. Where it is zero, so is the solution, whatever x0. Up to 256 columns are systems that share
        each pass over A and M. Each of them has its own tolerance and units, stops by itself, and has the solution that
        it has alone. Where A has few entries in a row and M fits Eisenstat's form, which is for one column, they are
        solved in this form one after the other. A has to be a matrix for several columns.
    x0 : array of the shape of b, or "Mb", optional
        Initial guess, zero by default. Not changed. "Mb" stands for M b.
    rtol, atol : float
        Converged when ``||b - A x|| <= max(rtol ||b||, atol)``, tested on the true residual.
    maxiter : int, optional
        10 n by default.
    M : preconditioner, sparse matrix, dense array, LinearOperator or "auto", optional
        An approximation of inv(A), positive definite like A. "auto" begins with Jacobi's, and goes on with
        `MulticolorSGS` or `SmoothedAggregation` where that is predicted to be done earlier, setup included; the
        `stages` of the result say what was used, and its `M` is the last one. The preconditioners of this package and
        sparse matrices are captured with the iteration on the GPU; any other operator is called as ``M @ r``. M has to
        be linear, but for the K cycles of this package: with these the iteration is that of flexible CG, which takes
        one more inner product. To several columns an operator of others is applied as ``M @ R``, with R of shape
        (n, k).
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
        If A is not a square matrix of finite numbers or such an operator, b or x0 do not fit it or are not finite (says
        where), b has no column or more than 256, M has another shape, is known to be unsymmetric or is complex for a
        real A, another argument has a wrong type or value, the form does not fit M or several columns, or A times a
        vector of `nullspace` is not about zero (says how large it is). That A is not symmetric, or that it is singular
        and b does not fit, is found out after 100 iterations, or where CG fails, and is the `reason` then.

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
    >>> result.reason.name, result.iterations
    ('CONVERGED', 26)

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


class PCG(PreconditionedCG):
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

    def __init__(self, A: SystemMatrix, M: Any = None, *, form: Form = "auto", nullspace: NullSpace = None) -> None:
        is_automatic = isinstance(M, str) and bool(one_of(M, "M", ("auto",)))
        super().__init__(A, None if is_automatic else M, form=form, nullspace=nullspace)
        self._stages = Stages(self) if is_automatic and not self.A_is_operator else None

    def run(self, b: Any, x0: Any, *limits: Any, **hooks: Any) -> SolveResult[Any]:
        """See `Solver`: with M="auto" in stages."""
        solve = super().run if self._stages is None else self._stages.run
        return solve(b, x0, *limits, **hooks)

    def release(self) -> None:
        """See `Solver`."""
        super().release()
        if self._stages is not None:
            self._stages.release()
