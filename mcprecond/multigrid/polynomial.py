"""Smoothers that are polynomials in D A: Jacobi's method, and Chebyshev iteration of the fourth kind.

D has the inverse sums of the magnitudes of the rows of A, so that no eigenvalue of D A is above 1; see `jacobi_weights`
for nodes of several unknowns. They need no coloring, and read A where it lies.

Chebyshev iteration is for real eigenvalues, as those of a symmetric A. `DampedJacobi` is for any A.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

from mcprecond.backends import NUMBERS, KernelSet, compile_loop
from mcprecond.linalg.csr import Csr, columns_of, product_with, row_product
from mcprecond.matrix import AdmittedMatrix
from mcprecond.multigrid.polynomial_columns import KERNELS as COLUMN_KERNELS
from mcprecond.multigrid.polynomial_columns import take_step
from mcprecond.multigrid.row_sums import bounded_inverse_diagonal
from mcprecond.multigrid.smoothers import Smoother
from mcprecond.multigrid.spectrum import jacobi_weights

KERNELS = KernelSet(__file__, "OFFSET VALUE STORED LANES LONG_ROWS=0")

DEGREE = 2  # of a Chebyshev sweep
#: The damping factor and the steps of a sweep of Jacobi's method for A that is not symmetric.
DAMPING, STEPS = 0.8, 2


class Polynomial(Smoother):
    """Sweeps ``x += d`` with ``d = alpha d + beta D (b - A x)``, the same polynomial before and after.

    Parameters
    ----------
    matrix : AdmittedMatrix
    degree : int
        Steps in a sweep: one step is damped Jacobi, several steps are Chebyshev iteration.
    dtype : dtype, optional
        Of the vectors; that of the matrix by default.
    """

    def __init__(self, matrix: AdmittedMatrix, degree: int, dtype: Any = None) -> None:
        self.shape, self.degree, self._backend = matrix.shape, degree, matrix.backend
        self._take(product_with(matrix, dtype=dtype, copies=not matrix.is_ours))
        self.dinv = self._weights(matrix).astype(self.dtype, copy=False)
        self.coefficients = self._coefficients()

    def _take(self, A: Csr) -> None:
        """Take the matrix as an operator."""
        self.A, self.dtype = A, A.dtype
        self._run = self._backend.kernels(KERNELS, **A.macros, **A.own_macros)

    def adjoint(self) -> Polynomial:
        other = copy.copy(self)
        other._take(self.A.adjoint())
        other.dinv = self.dinv.conj()
        return other

    def _weights(self, matrix: AdmittedMatrix) -> Any:
        return jacobi_weights(matrix)

    def _coefficients(self) -> list[tuple[float, float]]:
        return chebyshev_coefficients(self.degree)

    def update(self, matrix: AdmittedMatrix) -> None:
        self.A.replace(matrix.csr)
        self.dinv[...] = self._weights(matrix)

    @property
    def description(self) -> str:
        return "Jacobi" if self.degree == 1 else f"Chebyshev, degree {self.degree}"

    def new_state(self, columns: int = 1) -> Any:
        """See `Operator`: that of A, d, and a second x."""
        shape = (self.shape[0], columns) if columns > 1 else self.shape[:1]
        if columns > 1:
            self._columns_run()  # nothing may be compiled while kernels are captured
        return self.A.new_state(columns), *(self._backend.xp.empty(shape, self.dtype) for _ in range(2))

    def _columns_run(self) -> Any:
        """The kernels for several columns."""
        return self._backend.kernels(COLUMN_KERNELS, **self.A.macros_of_columns, **self.A.own_macros)

    def enqueue(self, state: Any, b: Any, x: Any) -> None:
        self._sweep(state, b, x, 1, from_zero=True)

    def _sweep(self, state: Any, b: Any, x: Any, sweeps: int, *, from_zero: bool) -> None:
        of_A, d, other = state
        steps, k = self.coefficients * sweeps, columns_of(b)
        at_once = from_zero and len(steps) > 1 and k == 1  # the first two steps
        # The last step has to write x.
        places = [x, other] if (len(steps) - at_once) % 2 else [other, x]
        if not from_zero and len(steps) % 2:
            other[...] = x
        matrix = self.A.arrays(of_A)
        if at_once:
            (_, first), (alpha, beta), *steps = steps
            self._run.first_steps(len(b), *matrix, self.dinv, b, places[1], first, alpha, beta, d, places[0])
        if k > 1:
            run = partial(self._columns_run().step, b.size, k, *matrix, self.dinv)
        else:
            run = partial(self._run.step, len(b), *matrix, self.dinv)
        for number, (alpha, beta) in enumerate(steps, at_once):
            new, old = places[number % 2], places[1 - number % 2]
            run(b, int(from_zero and number == 0), old, alpha, beta, d, new)

    def before(self, state: Any, b: Any, x: Any, r: Any, sweeps: int) -> None:
        self._sweep(state, b, x, sweeps, from_zero=True)
        self.residual(state, b, x, r)

    def after(self, state: Any, b: Any, x: Any, sweeps: int) -> None:
        self._sweep(state, b, x, sweeps, from_zero=False)

    def residual(self, state: Any, b: Any, x: Any, r: Any) -> None:
        self.A.enqueue_residual(state[0], b, x, r)

    def spare(self, state: Any) -> Any:
        return state[2]

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        return self.A.nbytes + self.dinv.nbytes


class DampedJacobi(Polynomial):
    """Steps ``x += 0.8 D (b - A x)``, where D is the inverse diagonal.

    In rows where the other entries are larger than the diagonal one, D has the inverse of half the sum of the
    magnitudes of the row, so that no eigenvalue of D A is above 2.
    """

    def __init__(self, matrix: AdmittedMatrix, dtype: Any = None) -> None:
        super().__init__(matrix, STEPS, dtype)

    def _weights(self, matrix: AdmittedMatrix) -> Any:
        return bounded_inverse_diagonal(matrix)

    def _coefficients(self) -> list[tuple[float, float]]:
        return [(0.0, DAMPING)] * self.degree

    @property
    def description(self) -> str:
        return f"Jacobi, damped by {DAMPING}, {self.degree} steps"


def chebyshev_coefficients(degree: int) -> list[tuple[float, float]]:
    """Return alpha and beta of each step of a sweep.

    References
    ----------
    Lottes: Optimal polynomial smoothers for multigrid V-cycles, Numerical Linear Algebra with Applications 30, 2023,
    Algorithm 1 with all weights 1.
    Baker, Falgout, Kolev, Yang: Multigrid Smoothers for Ultraparallel Computing, SIAM J. Sci. Comput. 33, 2011, which
    has D.
    """
    return [(max(2 * k - 1, 0) / (2 * k + 3), (8 * k + 4) / (2 * k + 3)) for k in range(degree)]


@KERNELS.per_item_driver
def first_steps(n, indptr, indices, values, dinv, b, x, first_beta, alpha, beta, d, y):
    """Take the first two steps from zero. On the CPU x stores the result of the first step; on a GPU it is not used.

    All vectors have as many elements as A has columns, which may be more than it has rows.
    """
    take_first_steps(0, len(b), dinv, b, x, first_beta, d)
    take_second_steps(0, n, indptr, indices, values, dinv, b, x, alpha, beta, d, y)


@compile_loop(grain=NUMBERS)
def take_first_steps(begin, end, dinv, b, x, beta, d):
    """The numbers of the first step."""
    for i in range(begin, end):
        take_step(i, i, x.dtype.type(0), dinv, b, True, x, 0.0, beta, d, x)


@compile_loop
def take_second_steps(begin, end, indptr, indices, values, dinv, b, x, alpha, beta, d, y):
    """The rows of the second step."""
    for i in range(begin, end):
        product = row_product(i, indptr, indices, values, x)
        take_step(i, i, product, dinv, b, False, x, alpha, beta, d, y)


@KERNELS.per_item
def step(first, end, indptr, indices, values, dinv, b, from_zero, x, alpha, beta, d, y):
    """y = x + d after d = alpha d + beta D (b - A x); see `take_step`."""
    for i in range(first, end):
        product = x.dtype.type(0) if from_zero else row_product(i, indptr, indices, values, x)
        take_step(i, i, product, dinv, b, from_zero, x, alpha, beta, d, y)
