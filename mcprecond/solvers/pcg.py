"""Preconditioned conjugate gradients: what users call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy.typing as npt

from mcprecond.matrix import admit_matrix, refuse_other_pattern
from mcprecond.solvers.automatic_cg import StagesOfCG
from mcprecond.solvers.preconditioned import PreconditionedCG
from mcprecond.solvers.result import SolveResult
from mcprecond.solvers.setup import admit_system
from mcprecond.typing import (
    DeviceArray,
    Form,
    HostArray,
    LinearOperator,
    Matrix,
    Norm,
    NullSpace,
    PreconditionerName,
    SystemMatrix,
)


@overload
def pcg(
    A: SystemMatrix,
    b: HostArray | Sequence[float],
    x0: HostArray | Sequence[float] | Literal["Mb"] | None = None,
    *,
    rtol: float = 1e-5,
    atol: float | None = 0.0,
    maxiter: int | None = None,
    M: LinearOperator | Matrix | HostArray | DeviceArray | PreconditionerName | None = None,
    callback: Callable[[npt.NDArray[Any]], object] | None = None,
    progress: Callable[[int, float], object] | None = None,
    form: Form = "auto",
    nullspace: NullSpace = None,
    norm: Norm = "residual",
    B: HostArray | DeviceArray | None = None,
    block_size: int = 1,
) -> SolveResult[npt.NDArray[Any]]: ...


@overload
def pcg(
    A: SystemMatrix,
    b: DeviceArray,
    x0: DeviceArray | Literal["Mb"] | None = None,
    *,
    rtol: float = 1e-5,
    atol: float | None = 0.0,
    maxiter: int | None = None,
    M: LinearOperator | Matrix | HostArray | DeviceArray | PreconditionerName | None = None,
    callback: Callable[[Any], object] | None = None,
    progress: Callable[[int, float], object] | None = None,
    form: Form = "auto",
    nullspace: NullSpace = None,
    norm: Norm = "residual",
    B: HostArray | DeviceArray | None = None,
    block_size: int = 1,
) -> SolveResult[Any]: ...


def pcg(
    A: SystemMatrix,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float | None = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[[Any], object] | None = None,
    progress: Callable[[int, float], object] | None = None,
    form: Form = "auto",
    nullspace: NullSpace = None,
    norm: Norm = "residual",
    B: HostArray | DeviceArray | None = None,
    block_size: int = 1,
) -> SolveResult[Any]:
    """Solve A x = b for symmetric or Hermitian positive definite A by preconditioned conjugate gradients.

    The solution has the dtype that A, b, x0 and a sparse M promote to. Scaling A or b by a power of two changes no
    digit of the solution, as long as the dtype has room for it. If M is stored in single precision, the iteration runs
    in single precision and reaches the accuracy of the system's dtype all the same; where it cannot, double precision
    takes over.

    Solves are run-to-run deterministic, if A and M are of this package or stored as matrices; see `deterministic`.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, dense array, or LinearOperator, shape (n, n)
        Real or complex floats. A dense array becomes a sparse matrix, of floats if it holds integers. A LinearOperator
        is called as ``A @ x`` in every iteration, outside of the CUDA graph on a GPU; if CG fails, `pcg` cannot test
        whether it is symmetric or singular.
    b : array, shape (n,), (n, 1) or (n, k)
        On the device of A. If b is zero, the solution is zero, whatever x0 is. Up to 256 columns may be given, and each
        pass over A and M serves all of them. Each column has its own tolerance, stops by itself, and gets the solution
        that it would get alone. Several columns need a matrix A, not an operator.
    x0 : array of the shape of b, or "Mb", optional
        Initial guess, zero by default. Not changed. "Mb" stands for M b.
    rtol, atol : float
        Converged when ``||b - A x|| <= max(rtol ||b||, atol)``, tested on the true residual, unless `norm` says
        otherwise. None stands for 0 in `atol`.
    maxiter : int, optional
        10 n by default, and as many again where float64 takes over from float32.
    M : preconditioner, sparse matrix, dense array, LinearOperator or str, optional
        An approximation of inv(A), positive definite like A. The names "jacobi", "sgs", "dilu" and "ilu0" stand for the
        inverse of the diagonal, `MulticolorSGS`, `MulticolorDILU` and `ILU0`, and "multigrid" for the multigrid that
        fits, see `multigrid.fitting_multigrid`. "sgs" and "dilu" are stored in single precision on a GPU whose cache
        has no room for A. "auto" begins with the one of these that is predicted to be the fastest, setup included, by a
        sample of the rows of A, and changes to another one if the residuals say that this takes half of the time;
        `stages` of the result says what was used, and `M` is the last of them. On a GPU the preconditioners of this
        package and sparse matrices are part of the CUDA graph of an iteration. Any other operator is called as
        ``M @ r``, or as ``M @ R`` with R of shape (n, k) for several columns. M has to be linear. The K cycles of this
        package are the exception: with them the iteration is that of flexible CG, which takes one more inner product.
    callback : function of one array, optional
        Called as ``callback(xk)``, with xk of the shape of x, after every iteration, which makes the host wait for each
        of them.
    progress : function of an int and a float, optional
        Called as ``progress(iterations, residual_norm)`` whenever the host reads the residuals: after every iteration
        on a CPU, on a GPU after 8 of them and then whenever a tenth more have been done. It does not slow down the GPU
        as `callback` does. For several columns it gets the largest number of iterations and the largest norm.
    nullspace : "constant", "detect" or array, shape (n,) or (n, k), optional
        The null space of a singular A, as of pure Neumann problems and graph Laplacians: "constant", or an array whose
        columns span it, which may be NumPy's for an A on the GPU. "detect" finds the connected components of the graph
        of A whose rows all sum to zero up to rounding, such as basins without a fixed value and rows that are zero, and
        takes the constants in each of them; if there are none, it stands for None. b is replaced by its projection on
        the orthogonal complement, so that there is a solution for any b; the solution that is orthogonal to the null
        space is returned. Residuals are those of the projected b. The iteration takes the plain form.
    norm : {"residual", "energy", "preconditioned"}
        What `rtol` and `atol` are for. "energy": converged when an estimate of ``||x - x*||_A``, with the solution x*,
        is at most ``max(rtol ||x*||_A, atol)``, where ``||v||_A`` is ``sqrt(v'A v)``. This is the norm that CG
        minimizes. Where the coefficients of A differ by many orders of magnitude it says more than the residual, which
        may be small although weakly coupled unknowns are far from the solution. The estimate follows from coefficients
        that CG computes anyway. When it is small enough, further iterations find the correction of x, whose norm is the
        error, and the solve goes on if that is too large. They are not counted by `maxiter`. "preconditioned":
        converged when ``sqrt(r'M r) <= max(rtol sqrt(b'M b), atol)``, as in PETSc, with the true residual r = b - A x.
    form : {"auto", "plain", "eisenstat"}
        "eisenstat" reads the matrix once per iteration instead of twice, for the same iterates up to rounding. It needs
        an M that was built from this A and has its triangles: one sweep of `MulticolorSGS` with any omega,
        `MulticolorDILU`, or an `ILU0` that is a DILU. "auto" takes this form if M fits. The form is for one right-hand
        side: "eisenstat" is refused for several columns. "auto" solves for them together in the plain form, or for one
        after the other in Eisenstat's, whichever reads and writes fewer bytes.
    B : array, shape (n,) or (n, k), optional
        For M="auto" and "multigrid": candidates that nearly are in the null space of A, such as the rigid body modes of
        elasticity; see `SmoothedAggregation`.
    block_size : int
        For M="auto", "sgs" and "multigrid": unknowns of a node, which come one after the other.

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
        vector of `nullspace` is not about zero (says how large it is). If A is not symmetric, M="multigrid" is refused.
        Otherwise no error is raised then, or if A is singular with a b that does not fit: `pcg` tests for these after
        128 iterations if the residual stagnates, or if CG fails, and `reason` says so. If CG has failed, `detail` names
        the `nullspace` to pass where connected components of A have rows that sum to zero.

    References
    ----------
    Hestenes, Stiefel: Methods of Conjugate Gradients for Solving Linear Systems, 1952.
    Saad: Iterative Methods for Sparse Linear Systems, 2nd ed., Algorithm 9.1.
    Eisenstat: Efficient Implementation of a Class of Preconditioned Conjugate Gradient Methods, 1981.
    Meurant, Papez, Tichy: Accurate error estimation in CG, 2021: the energy norm of the error.
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
    >>> print(f"residual {abs(L @ result.x - (b - b.mean())).max():.6f}, mean {abs(result.x.mean()):.6f}")
    residual 0.000000, mean 0.000000

    Two rings, and a row that is zero:

    >>> both = scipy.sparse.block_diag([L, L, [[0.0]]], format="csr")
    >>> result = pcg(both, np.arange(101.0), rtol=1e-10, nullspace="detect")
    >>> print(result.reason.name, *[f"{abs(part.mean()):.6f}" for part in np.split(result.x, [50, 100])])
    CONVERGED 0.000000 0.000000 0.000000

    Several right-hand sides:

    >>> result = pcg(A, np.eye(50)[:, :3], M=MulticolorSGS(A), rtol=1e-10)
    >>> result.x[:3].round(3)  # the upper left corner of inv(A)
    array([[0.98 , 0.961, 0.941],
           [0.961, 1.922, 1.882],
           [0.941, 1.882, 2.824]])
    """
    solver = PCG(A, M, form=form, nullspace=nullspace, norm=norm, B=B, block_size=block_size)
    result = solver.solve(b, x0, rtol=rtol, atol=atol, maxiter=maxiter, callback=callback, progress=progress)
    solver.release()
    return result


class PCG(PreconditionedCG):
    """Preconditioned conjugate gradients for many right-hand sides, together or one after the other: set up once.

    The first `solve` allocates the vectors and, on a GPU, captures iterations as CUDA graphs. Later solves for as many
    columns on the same stream use them again. `pcg` is a PCG that solves once.

    Parameters
    ----------
    A, M, form, nullspace, norm, B, block_size
        As for `pcg`. A and M are referred to, not copied. After you have changed the values of A in place, call
        ``M.update(A)`` before the next solve.

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

    def __init__(
        self,
        A: SystemMatrix,
        M: Any = None,
        *,
        form: Form = "auto",
        nullspace: NullSpace = None,
        norm: Norm = "residual",
        B: HostArray | DeviceArray | None = None,
        block_size: int = 1,
    ) -> None:
        super().__init__(A, M, form=form, nullspace=nullspace, norm=norm, B=B, block_size=block_size)
        self._stages = StagesOfCG(self) if self.is_automatic and not self.A_is_operator else None

    def update(self, A: Matrix) -> None:
        """Take new values of A from a matrix with the same pattern, as in a step in time.

        A preconditioner of this package takes them, too: M, one that was given by name, or the one that the last solve
        with M="auto" has ended with, with which the next one begins. M keeps its colors, levels or coarse points. Any
        other M stays as it is. With ``nullspace="detect"`` the null space is found again.

        Parameters
        ----------
        A : sparse matrix, as in the constructor

        Raises
        ------
        TypeError, ValueError
            As the constructor; also if the pattern differs (then a PatternChangedError). Nothing changes where A is
            refused at first. If M refuses it later, see its `update`.

        Examples
        --------
        >>> import numpy as np, scipy.sparse
        >>> from mcprecond import PCG, problems
        >>> A = problems.laplacian((60, 60))
        >>> solver = PCG(A, "auto")
        >>> before = solver.solve(np.ones(3600), rtol=1e-8)
        >>> solver.update(2 * A)
        >>> after = solver.solve(np.ones(3600), rtol=1e-8)
        >>> bool(np.allclose(2 * after.x, before.x)), after.stages[0].name == before.stages[-1].name
        (True, True)
        """
        if self.A_is_operator:
            raise TypeError("A is an operator, which has no values to be replaced; make a new PCG")
        csr, backend = admit_system(A)
        if not hasattr(csr, "indptr") or backend.name != self._backend.name:
            raise ValueError(f"A must be a matrix on the {self._backend.name}, as in the constructor")
        matrix = admit_matrix(csr, finite=True)
        refuse_other_pattern(matrix.canonical(), self.matrix.canonical().csr, backend)
        self.replace_matrix(matrix)
        if self._stages is not None:
            self._stages.replace_matrix(matrix)

    def run(self, b: Any, x0: Any, *limits: Any, **hooks: Any) -> SolveResult[Any]:
        """See `Solver`: with M="auto" in stages."""
        solve = super().run if self._stages is None else self._stages.run
        return solve(b, x0, *limits, **hooks)

    def release(self) -> None:
        """Give back the memory that solves have taken; the next one takes it anew."""
        super().release()
        if self._stages is not None:
            self._stages.release()
