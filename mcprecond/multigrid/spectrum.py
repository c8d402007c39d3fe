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

from mcprecond.backends import NUMBERS, KernelSet, compile_inlined, compile_loop
from mcprecond.backends.cuda_source import BLOCK
from mcprecond.linalg.csr import product_with
from mcprecond.linalg.sums import BLOCKS
from mcprecond.matrix import AdmittedMatrix
from mcprecond.multigrid.row_sums import inverse_row_sums
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
CUDA_CONSTANTS = {"GOLDEN": GOLDEN}


def with_largest_eigenvalue(A: AdmittedMatrix, block_size: int) -> AdmittedMatrix:
    """Return A with a safe estimate of the largest eigenvalue of D^-1 A if its nodes have several unknowns."""
    if block_size == 1 or A.spectral_radius is not None:
        return A
    return A.with_spectral_radius(SAFETY * largest_ritz_value(A))


def jacobi_weights(A: AdmittedMatrix) -> Any:
    """Return the weights of a Jacobi step for the rows of a matrix: D^-1 over the largest eigenvalue of D^-1 A where
    that is known, and otherwise the inverse sums of the magnitudes of the rows.
    """
    if A.spectral_radius is None:
        return inverse_row_sums(A)
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
    state, (z, q, before) = product.new_state(), xp.empty((3, n), A.dtype)
    alphas, betas = coefficients = xp.zeros((2, steps + 1))
    sums = xp.empty(2 * BLOCKS), xp.zeros(2, np.uint32)
    threads, least = min(n, BLOCKS * BLOCK), ROUNDING * float(np.finfo(A.dtype).eps)
    run.find_square(threads, n, alphas, *sums)
    run.find_first(n, alphas, dinv, q, before)
    for step in range(steps):
        product.enqueue(state, q, z)
        run.take_lanczos_step(threads, n, step, least, z, dinv, q, alphas, betas, before, *sums)
        q, before = before, q
    diagonal, beside = backend.to_host(coefficients)
    ends = np.flatnonzero(beside[1:] == 0)
    count = int(ends[0]) + 1 if len(ends) else steps
    return diagonal[:count], beside[1 : count + 1]


@compile_inlined
def entry_of_first(i, n):
    """An entry of the vector that the method begins with, before it is scaled: a sign without a pattern, as in `signs`,
    times a number from 0.5 to 1.5, since signs alone may be orthogonal to an eigenvector of few rows.
    """
    k = np.uint32(np.uint32(n + i) * np.uint32(0x9E3779B1))
    k = np.uint32((k ^ (k >> np.uint32(15))) * np.uint32(0x2C1B3C6D))
    size = 0.5 + i * GOLDEN % 1
    return size if (k >> np.uint32(17)) & np.uint32(1) else -size


@compile_loop(grain=NUMBERS)
def sum_of_first(first, end, n):
    """The square of the norm of this vector."""
    total = 0.0
    for i in range(first, end):
        entry = entry_of_first(i, n)
        total += entry * entry
    return total


@KERNELS.strided
def find_square(threads, n, square, partials, arrivals):
    """The same, into the first place of `square`."""
    square[0] = sum_of_first(0, n, n)


@KERNELS.per_item(grain=NUMBERS)
def find_first(first, end, square, dinv, q, before):
    """The first vector, and zeros before it."""
    n, length = len(q), np.sqrt(square[0])
    for i in range(first, end):
        q[i] = entry_of_first(i, n) / length * np.sqrt(dinv[i].real)
        before[i] = 0


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


@compile_loop(grain=NUMBERS)
def find_next(first, end, step, z, dinv, q, alphas, betas, before):
    """The next vector, in place of the one before q."""
    real = q.real.dtype.type
    alpha, beta = real(alphas[step]), real(betas[step])
    factor = real(1 / betas[step + 1] if betas[step + 1] > 0 else 0.0)
    for i in range(first, end):
        before[i] = factor * (dinv[i] * z[i] - alpha * q[i] - beta * before[i])


@KERNELS.resident
def take_lanczos_step(threads, n, step, least, z, dinv, q, alphas, betas, before, partials, arrivals):
    """The coefficients of a step, and the next vector in place of the one before q. Beta is 0 where the vectors so far
    span an invariant subspace.
    """
    alphas[step] = sum_of_products(0, n, z, q)
    square = sum_of_squares(0, n, z, dinv)
    rest = square - alphas[step] ** 2 - betas[step] ** 2
    betas[step + 1] = np.sqrt(rest) if rest > least * square else 0.0
    find_next(0, n, step, z, dinv, q, alphas, betas, before)
