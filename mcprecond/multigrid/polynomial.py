"""Smoothers that are polynomials in inv(D) A: damped Jacobi, and Chebyshev iteration. They need no coloring."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet
from mcprecond.linalg.csr import product_with, row_product
from mcprecond.matrix import AdmittedMatrix
from mcprecond.multigrid.smoothers import Smoother
from mcprecond.multigrid.spectral_radius import spectral_radius

KERNELS = KernelSet(__file__, "OFFSET VALUE STORED LANES LONG_ROWS=0")

DAMPING = 4 / 3  # of Jacobi, beside the spectral radius
DEGREE = 3  # of a Chebyshev sweep
#: What Chebyshev polynomials damp: eigenvalues between these shares of the estimated spectral radius.
LOWER, UPPER = 0.1, 1.1


class Polynomial(Smoother):
    """Sweeps ``x += d`` with ``d = alpha d + beta inv(D) (b - A x)``, the same polynomial before and after.

    Parameters
    ----------
    matrix : AdmittedMatrix
    degree : int
        Steps in a sweep: 1 is damped Jacobi, more are Chebyshev's.
    dtype : dtype or None
        Of the values stored; that of the matrix by default.
    """

    def __init__(self, matrix: AdmittedMatrix, degree: int, dtype: Any) -> None:
        self.shape, self.dtype, self.degree, self._backend = matrix.shape, matrix.dtype, degree, matrix.backend
        self.A = product_with(matrix, stored=dtype, copies=not matrix.is_ours)
        self.dinv = self._backend.xp.empty(self.shape[0], self.dtype)
        self._run = matrix.backend.kernels(KERNELS, **self.A.macros, **self.A.own_macros)
        self.update(matrix)

    def update(self, matrix: AdmittedMatrix) -> None:
        """See `Smoother`."""
        self.A.replace(matrix.csr)
        with np.errstate(all="ignore"):  # what is not finite is refused
            self.dinv[...] = 1 / matrix.diagonal()
        self.coefficients = coefficients(self.degree, spectral_radius(matrix, self.dinv))

    def new_state(self, columns: int = 1) -> Any:
        """See `Operator`: that of A, d, and a second x."""
        return self.A.new_state(), *(self._backend.xp.empty(self.shape[0], self.dtype) for _ in range(2))

    def enqueue(self, state: Any, b: Any, x: Any) -> None:
        """See `Smoother`."""
        self._sweep(state, b, x, 1, from_zero=True)

    def _sweep(self, state: Any, b: Any, x: Any, sweeps: int, *, from_zero: bool) -> None:
        of_A, d, other = state
        steps = self.coefficients * sweeps
        # The last step has to write x.
        places = [x, other] if len(steps) % 2 else [other, x]
        if not from_zero and len(steps) % 2:
            other[...] = x
        for number, (alpha, beta) in enumerate(steps):
            new, old = places[number % 2], places[1 - number % 2]
            begins, A = int(from_zero and number == 0), self.A.arrays(of_A)
            self._run.step(len(b), *A, self.dinv, b, begins, old, alpha, beta, d, new)

    def before(self, state: Any, b: Any, x: Any, r: Any, sweeps: int) -> None:
        """See `Smoother`."""
        self._sweep(state, b, x, sweeps, from_zero=True)
        self.residual(state, b, x, r)

    def after(self, state: Any, b: Any, x: Any, sweeps: int) -> None:
        """See `Smoother`."""
        self._sweep(state, b, x, sweeps, from_zero=False)

    def residual(self, state: Any, b: Any, x: Any, r: Any) -> None:
        """See `Smoother`."""
        self.A.enqueue_residual(state[0], b, x, r)

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        """See `Smoother`."""
        return self.A.nbytes + self.dinv.nbytes


def coefficients(degree: int, radius: float) -> list[tuple[float, float]]:
    """Alpha and beta of each step of a sweep.

    References
    ----------
    Saad: Iterative Methods for Sparse Linear Systems, 2nd ed., Algorithm 12.1.
    Adams, Brezina, Hu, Tuminaro: Parallel Multigrid Smoothing: Polynomial versus Gauss-Seidel, J. Comput. Phys. 188,
    2003.
    """
    if degree == 1:
        return [(0.0, DAMPING / radius)]
    theta, delta = (UPPER + LOWER) / 2 * radius, (UPPER - LOWER) / 2 * radius
    rho, found = delta / theta, [(0.0, 1 / theta)]
    for _ in range(degree - 1):
        before, rho = rho, 1 / (2 * theta / delta - rho)
        found.append((rho * before, 2 * rho / delta))
    return found


@KERNELS.per_item
def step(
    first, end, indptr, indices, values, longest, n_long, n_pieces, plan, work, dinv, b, from_zero, x, alpha, beta, d, y
):
    """d = alpha d + beta inv(D) (b - A x), and y = x + d; from zero x is not read, and d is not if alpha is 0."""
    for i in range(first, end):
        rest = b[i] if from_zero else b[i] - row_product(i, indptr, indices, values, x)
        move = dinv.real.dtype.type(beta) * (dinv[i] * rest)
        if alpha != 0:
            move += dinv.real.dtype.type(alpha) * d[i]
        d[i] = move
        y[i] = move if from_zero else x[i] + move
