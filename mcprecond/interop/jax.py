"""JAX: solutions of sparse systems on the CPU, with derivatives with respect to the right-hand side and the matrix.

The module is imported without jax; its function needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from mcprecond.backends import get_backend
from mcprecond.backends.arguments import describe
from mcprecond.interop.adjoint import System, refuse_unfit
from mcprecond.solvers import pcg

__all__ = ["solve"]


def solve(
    A: Any,
    b: Any,
    M: Any = None,
    *,
    solver: Callable[..., Any] = pcg,
    rtol: float | None = None,
    maxiter: int | None = None,
) -> Any:
    """Solve A x = b for arrays of JAX, with derivatives with respect to b and to the values of A.

    It can be transformed by ``jit``, ``grad``, ``jvp`` and ``vmap``, as often as wanted: it is JAX's
    ``custom_linear_solve``, whose solves are calls of this package on the host. Derivatives are found by more solves,
    with A or its transpose. Each solve sets up anew; an M that exists already saves most of that.

    Parameters
    ----------
    A : jax.experimental.sparse.BCSR, shape (n, n)
        float32 or float64.
    b : jax.Array, shape (n,) or (n, k)
        Of the dtype of A. Columns are solved for as `pcg` does it, together, or one after the other by other solvers.
    M : preconditioner, LinearOperator, function or "auto", optional
        As for the solver. A class such as `MulticolorSGS`, or another function, is called with A as a matrix of SciPy
        in every solve, and returns the preconditioner. No derivative depends on M.
    solver : {pcg, minres, gmres, bicgstab} or function
        `pcg` is for symmetric positive definite A, and second derivatives are for values with which A stays symmetric
        then. Any other function is called as ``solver(A, b, M=M, rtol=rtol, maxiter=maxiter)``, with the transposes of
        A and M for the transposed system, and returns a `SolveResult`.
    rtol : float, optional
        Of each solve. 1e-10 in double precision and 1e-5 in single precision by default.
    maxiter : int, optional
        Of each solve. The default is that of the solver.

    Returns
    -------
    jax.Array
        x, of the shape and dtype of b.

    Raises
    ------
    TypeError, ValueError
        If A is no square BCSR matrix of these dtypes, or b has another dtype or shape.
    jax.errors.JaxRuntimeError
        If a solve raises an error, as it does where it does not converge (says why).
    ModuleNotFoundError
        If JAX is not installed.

    Examples
    --------
    The derivatives of two springs in a row, with the stiffnesses k:

    >>> import jax, jax.numpy as jnp
    >>> from jax.experimental.sparse import BCSR
    >>> from mcprecond import MulticolorSGS
    >>> from mcprecond.interop.jax import solve
    >>> def end(k):
    ...     values = jnp.stack([k[0] + k[1], -k[1], -k[1], k[1]])
    ...     A = BCSR((values, jnp.array([0, 1, 0, 1]), jnp.array([0, 2, 4])), shape=(2, 2))
    ...     return solve(A, jnp.array([0.0, 1.0]), M=MulticolorSGS)[1]  # 1 / k[0] + 1 / k[1]
    >>> print(jax.grad(end)(jnp.array([1.0, 2.0])).round(4))
    [-1.   -0.25]
    """
    import jax
    import jax.numpy as jnp
    from jax.experimental.sparse import BCSR

    if not isinstance(A, BCSR) or A.n_batch or A.n_dense or A.shape[0] != A.shape[1]:
        raise TypeError(f"A must be a square matrix of jax.experimental.sparse.BCSR, got {describe(A)}")
    if A.dtype not in (jnp.float32, jnp.float64):
        raise TypeError(f"A must hold float32 or float64 values, got {A.dtype}")
    b = jnp.asarray(b)
    refuse_unfit(A, b, solver)
    n, values, columns, starts = A.shape[0], A.data, A.indices, A.indptr
    rows = jnp.repeat(jnp.arange(n), jnp.diff(starts), total_repeat_length=A.nse)

    def product(x: Any) -> Any:
        return jax.ops.segment_sum((values * x[columns].T).T, rows, n)

    def by_the_host(adjoint: bool) -> Callable[[Any, Any], Any]:
        def solution(*arrays: Any) -> Any:
            *parts, right = map(np.asarray, arrays)
            matrix = scipy.sparse.csr_matrix(tuple(parts), A.shape)
            system = System(matrix, get_backend("cpu"), M, solver, rtol, maxiter)
            return (system.solve_adjoint if adjoint else system.solve)(right).reshape(right.shape)

        def call_host(_: Any, right: Any) -> Any:
            shape = jax.ShapeDtypeStruct(right.shape, right.dtype)
            return jax.pure_callback(solution, shape, values, columns, starts, right, vmap_method="sequential")

        return call_host

    return jax.lax.custom_linear_solve(product, b, by_the_host(False), by_the_host(True), symmetric=solver is pcg)
