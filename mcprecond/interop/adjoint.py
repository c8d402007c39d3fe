"""A system and its adjoint, as derivatives of the solution need both.

What is differentiated is the solution, not the iteration. Let x solve A x = b, and g be the gradient of a number with
respect to x. Then one more solve, of the adjoint system, gives both other gradients::

    A^H w = g,     with respect to b: w,     with respect to a_ij: -w_i conj(x_j)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mcprecond.backends import Backend
from mcprecond.backends.arguments import describe
from mcprecond.matrix import transpose
from mcprecond.solvers import PCG, pcg


class System:
    """A x = b and A^H w = g, for arrays of NumPy or CuPy.

    Parameters
    ----------
    A : sparse matrix of SciPy or CuPy in CSR format
    backend : Backend
        That of A.
    M : preconditioner, LinearOperator, function of A that makes one, "auto" or None
    solver : function
        `pcg` is set up once, for both systems.
    rtol : float, optional
        1e-10 in double precision and 1e-5 in single precision by default.
    maxiter : int, optional
    """

    def __init__(
        self, A: Any, backend: Backend, M: Any, solver: Callable[..., Any], rtol: float | None, maxiter: int | None
    ) -> None:
        # Operators of SciPy can be called, too.
        makes = callable(M) and (isinstance(M, type) or not hasattr(M, "shape"))
        self._A, self._M, self._backend, self._solver = A, M(A) if makes else M, backend, solver
        is_double = np.finfo(A.dtype).bits == 64
        rtol = (1e-10 if is_double else 1e-5) if rtol is None else rtol
        self._options: dict[str, Any] = {"rtol": rtol, "maxiter": maxiter}
        self._setup = PCG(A, self._M) if solver is pcg else None

    def solve(self, b: Any) -> Any:
        """x, for b of shape (n,) or (n, k).

        Raises
        ------
        RuntimeError
            If the solver does not converge.
        """
        return self._solution(self._A, self._M, b, "the solve")

    def solve_adjoint(self, g: Any) -> Any:
        """w, likewise."""
        A, M = self._A, self._M
        if self._setup is None:
            A = transpose(A.conj(copy=False), self._backend)
            M = M if M is None else (M if hasattr(M, "H") else self._backend.linalg.aslinearoperator(M)).H
        return self._solution(A, M, g, "the adjoint solve, which gives the gradients,")

    def _solution(self, A: Any, M: Any, b: Any, what: str) -> Any:
        """The solution by the setup that is kept, or by a function, for one column after the other."""
        if self._setup is not None:
            result = self._setup.solve(b, **self._options)
        elif b.ndim == 1:
            result = self._solver(A, b, M=M, **self._options)
        else:
            return self._backend.xp.stack([self._solution(A, M, column, what) for column in b.T], axis=1)
        if not result.converged:
            raise RuntimeError(f"{what} did not reach rtol: {result!r}")
        return result.x


def refuse_unfit(A: Any, b: Any, solver: Any) -> None:
    """Raise TypeError or ValueError if b has not the dtype and the rows of A, or the solver is no function."""
    if b.dtype != A.dtype:
        raise TypeError(f"b holds {b.dtype} and A {A.dtype}; convert one of them")
    if b.ndim not in (1, 2) or b.shape[0] != A.shape[0] or 0 in b.shape[1:]:
        n = A.shape[0]
        raise ValueError(f"b must have shape ({n},) or ({n}, k) with k columns at least 1, got {tuple(b.shape)}")
    if not callable(solver):
        raise TypeError(f"solver must be pcg, minres, gmres, bicgstab or a function like these, got {describe(solver)}")
