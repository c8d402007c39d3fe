"""Smoothers that are polynomials in inv(D) A: damped Jacobi, and Chebyshev iteration. They need no coloring."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_inlined, unsigned
from mcprecond.linalg.csr import lanes_for
from mcprecond.matrix import AdmittedMatrix
from mcprecond.multigrid.smoothers import Smoother
from mcprecond.multigrid.spectral_radius import spectral_radius

KERNELS = KernelSet(__file__, "OFFSET VALUE STORED LANES")

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
        self.backend, self.degree, self.n = matrix.backend, degree, matrix.shape[0]
        stored = matrix.dtype if dtype is None else np.dtype(dtype)
        xp = self.backend.xp
        self.indptr, self.indices = matrix.indptr, matrix.indices
        self.values, self.dinv = xp.empty(len(matrix.data), stored), xp.empty(self.n, matrix.dtype)
        self._run = self.backend.kernels(
            KERNELS,
            OFFSET=self.indptr.dtype,
            VALUE=matrix.dtype,
            STORED=stored,
            LANES=lanes_for(matrix.indices.size / max(self.n, 1)),
        )
        self.update(matrix)

    @property
    def _arrays(self) -> tuple[Any, Any, Any]:
        """As kernels take them. Views that were kept would come out of a pickle as copies."""
        return unsigned(self.indptr), unsigned(self.indices), self.values

    def update(self, matrix: AdmittedMatrix) -> None:
        """See `Smoother`."""
        self.values[...] = matrix.data
        with np.errstate(all="ignore"):  # what is not finite is refused
            self.dinv[...] = 1 / matrix.diagonal()
        self.coefficients = coefficients(self.degree, spectral_radius(matrix, self.dinv))

    def new_state(self) -> tuple[Any, Any]:
        """See `Smoother`: d, and a second x."""
        return tuple(self.backend.xp.empty(self.n, self.dinv.dtype) for _ in range(2))

    def _sweep(self, state: tuple[Any, Any], b: Any, x: Any, sweeps: int, from_zero: bool) -> None:
        d, other = state
        steps = self.coefficients * sweeps
        # The last step has to write x.
        places = [x, other] if len(steps) % 2 else [other, x]
        if not from_zero and len(steps) % 2:
            other[...] = x
        for number, (alpha, beta) in enumerate(steps):
            new, old = places[number % 2], places[1 - number % 2]
            self._run.step(
                self.n, *self._arrays, self.dinv, b, int(from_zero and number == 0), old, alpha, beta, d, new
            )

    def before(self, state: Any, b: Any, x: Any, r: Any, sweeps: int) -> None:
        """See `Smoother`."""
        if sweeps == 0:
            x.fill(0)
        self._sweep(state, b, x, sweeps, from_zero=True)
        self.residual(state, b, x, r)

    def after(self, state: Any, b: Any, x: Any, sweeps: int) -> None:
        """See `Smoother`."""
        self._sweep(state, b, x, sweeps, from_zero=False)

    def residual(self, state: Any, b: Any, x: Any, r: Any) -> None:
        """See `Smoother`."""
        self._run.find_rest(self.n, *self._arrays, b, x, r)

    @property
    def nbytes(self) -> int:
        """See `Smoother`."""
        return sum(array.nbytes for array in (self.indptr, self.indices, self.values, self.dinv))


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


@compile_inlined
def rest_of_row(i, indptr, indices, values, b, x):
    """Row i of b - A x."""
    total = b.dtype.type(0)
    for k in range(indptr[i], indptr[i + 1]):
        total += values[k] * x[indices[k]]
    return b[i] - total


@KERNELS.per_item
def find_rest(first, end, indptr, indices, values, b, x, r):
    """r = b - A x."""
    for i in range(first, end):
        r[i] = rest_of_row(i, indptr, indices, values, b, x)


@KERNELS.per_item
def step(first, end, indptr, indices, values, dinv, b, from_zero, x, alpha, beta, d, result):
    """d = alpha d + beta inv(D) (b - A x), and x + d; from zero x is not read, and d is not if alpha is 0."""
    for i in range(first, end):
        rest = b[i] if from_zero else rest_of_row(i, indptr, indices, values, b, x)
        move = dinv.real.dtype.type(beta) * (dinv[i] * rest)
        if alpha != 0:
            move += dinv.real.dtype.type(alpha) * d[i]
        d[i] = move
        result[i] = move if from_zero else x[i] + move
