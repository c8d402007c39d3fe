"""The largest eigenvalue of D^-1 A, where D is the diagonal of A, and the weights of Jacobi steps.

Jacobi steps need D^-1 divided by about this eigenvalue. Where a node has one unknown, the inverse sums of the
magnitudes of rows are near that, and cost nothing. Where it has several, as in elasticity, couplings have both signs,
the sums are up to twice as large as they had to be, and a few steps of Lanczos' method pay.

Lanczos: An iteration method for the solution of the eigenvalue problem of linear differential and integral operators,
Journal of Research of the National Bureau of Standards 45, 1950.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import NUMBERS, KernelSet, compile_loop
from mcprecond.backends.cuda_source import BLOCK
from mcprecond.linalg.csr import product_with
from mcprecond.linalg.sums import BLOCKS, norm
from mcprecond.linalg.vectors import signs
from mcprecond.matrix import AdmittedMatrix
from mcprecond.multigrid.filtered import inverse_row_sums
from mcprecond.solvers.iteration import inner

KERNELS = KernelSet(__file__, "VALUE")

#: The estimate of the largest eigenvalue is SAFETY times the largest Ritz value after STEPS steps of Lanczos' method.
#: No Ritz value is above the largest eigenvalue. If the starting vector has a component of at least 10^-6 along the
#: eigenvector, the largest Ritz value is at least 0.72 times the eigenvalue, as the Chebyshev polynomial of degree 9
#: shows.
#: Smoothers of degree 2 damp errors with eigenvalues up to 5/4 times the estimate, and of degree 1 up to 3/2 times.
STEPS, SAFETY = 10, 1.1
#: A residual counts as zero if its square is below this many units of rounding.
ROUNDING = 100
GOLDEN = (5**0.5 - 1) / 2


def with_largest_eigenvalue(A: AdmittedMatrix, block_size: int) -> AdmittedMatrix:
    """Return A with a safe estimate of the largest eigenvalue of D^-1 A if its nodes have several unknowns."""
    if block_size == 1 or A.spectral_radius is not None:
        return A
    return A.with_spectral_radius(SAFETY * largest_ritz_value(A))


def jacobi_weights(A: AdmittedMatrix, indptr: Any, values: Any) -> Any:
    """Return the weights of a Jacobi step for the rows of a matrix: D^-1 over the largest eigenvalue of D^-1 A where
    that is known, and otherwise the inverse sums of the magnitudes of the rows with these offsets and values.
    """
    if A.spectral_radius is None:
        return inverse_row_sums(indptr, values, A.backend)
    return A.dtype.type(1 / A.spectral_radius) / A.diagonal()


def largest_ritz_value(A: AdmittedMatrix) -> float:
    """The largest Ritz value of D^-1 A after a few steps of Lanczos' method."""
    alphas, betas = take_lanczos_steps(A, STEPS)
    return float(np.linalg.eigvalsh(np.diag(alphas) + np.diag(betas[:-1], -1))[-1])


def fall_of_residual(A: AdmittedMatrix, steps: int) -> float:
    """The factor by which a number of steps of CG, preconditioned with D^-1, changes the norm of the residual.

    Lanczos' method gives it: in step k, CG multiplies the norm by beta_k divided by the k-th pivot of the tridiagonal
    matrix.
    """
    alphas, betas = take_lanczos_steps(A, steps)
    fall, pivot = 1.0, np.inf
    for k, beta in enumerate(betas):
        pivot = alphas[k] - (betas[k - 1] ** 2 / pivot if k else 0.0)
        if pivot <= 0:
            return np.inf
        fall *= beta / pivot
    return fall


def take_lanczos_steps(A: AdmittedMatrix, steps: int) -> tuple[Any, Any]:
    """The coefficients alpha_k and beta_k of Lanczos' method for D^-1 A in the inner product of D: the diagonal and the
    subdiagonal of the tridiagonal matrix, and the next beta. The method ends earlier where the vectors span an
    invariant subspace.

    The vectors are q, with q^H D q = 1, and its predecessor. Since they are orthogonal, one reduction of z = A q gives
    both coefficients of a step.
    """
    backend, xp, n = A.backend, A.backend.xp, A.shape[0]
    dinv = 1 / A.diagonal()
    product, run = product_with(A), backend.kernels(KERNELS, VALUE=A.dtype)
    state, z, before = product.new_state(), xp.empty_like(dinv), xp.zeros_like(dinv)
    # Signs alone may be orthogonal to an eigenvector of few rows.
    first = signs(n, 1, xp) * (0.5 + xp.arange(n) * GOLDEN % 1)
    q = (first / norm(first, backend) * xp.sqrt(dinv.real)).astype(A.dtype)
    alphas, betas = coefficients = xp.zeros((2, steps + 1))
    sums = xp.empty(2 * BLOCKS), xp.zeros(1, np.uint32)
    least = ROUNDING * float(np.finfo(A.dtype).eps)
    for step in range(steps):
        product.enqueue(state, q, z)
        run.find_coefficients(min(n, BLOCKS * BLOCK), n, step, least, z, dinv, q, alphas, betas, *sums)
        run.find_next(n, step, z, dinv, q, alphas, betas, before)
        q, before = before, q
    diagonal, beside = backend.to_host(coefficients)
    ends = np.flatnonzero(beside[1:] == 0)
    count = int(ends[0]) + 1 if len(ends) else steps
    return diagonal[:count], beside[1 : count + 1]


@compile_loop(grain=NUMBERS)
def sum_of_products(first, end, z, q):
    """q^H z."""
    total = 0.0
    for i in range(first, end):
        total += inner(z[i], q[i])
    return total


@compile_loop(grain=NUMBERS)
def sum_of_squares(first, end, z, dinv):
    """z^H D^-1 z."""
    total = 0.0
    for i in range(first, end):
        total += inner(dinv[i] * z[i], z[i])
    return total


@KERNELS.strided
def find_coefficients(threads, n, step, least, z, dinv, q, alphas, betas, partials, arrivals):
    """The coefficients of a step; beta is 0 where the vectors so far span an invariant subspace."""
    alphas[step] = sum_of_products(0, n, z, q)
    square = sum_of_squares(0, n, z, dinv)
    rest = square - alphas[step] ** 2 - betas[step] ** 2
    betas[step + 1] = np.sqrt(rest) if rest > least * square else 0.0


@KERNELS.per_item(grain=NUMBERS)
def find_next(first, end, step, z, dinv, q, alphas, betas, before):
    """The next vector, in place of the one before q."""
    real = q.real.dtype.type
    alpha, beta = real(alphas[step]), real(betas[step])
    factor = real(1 / betas[step + 1] if betas[step + 1] > 0 else 0.0)
    for i in range(first, end):
        before[i] = factor * (dinv[i] * z[i] - alpha * q[i] - beta * before[i])
