"""The spectral radius of inv(D) A, by a few steps of Lanczos' method: what the smoothing of prolongators divides by."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from mcprecond.backends import KernelSet, compile_part
from mcprecond.matrix import AdmittedMatrix
from mcprecond.solvers.iteration import Product, inner

KERNELS = KernelSet(__file__)

STEPS = 10
MOST_BLOCKS = 2**14  # of a grid, each of which leaves a number


def spectral_radius(matrix: AdmittedMatrix, dinv: Any, steps: int = STEPS) -> float:
    """Return an estimate of the largest magnitude of an eigenvalue of inv(D) A, from the same start in every run.

    Parameters
    ----------
    matrix : AdmittedMatrix
        Hermitian A.
    dinv : array, shape (n,)
        The inverse of D, positive. The steps use the inner product of D, in which inv(D) A is Hermitian.
    steps : int

    References
    ----------
    Saad: Numerical Methods for Large Eigenvalue Problems, revised ed., SIAM 2011, Algorithm 6.5.
    """
    backend, n = matrix.backend, matrix.shape[0]
    if n == 0:
        return 1.0
    xp, product, steps = backend.xp, Product(matrix), min(steps, n)
    run = backend.kernels(KERNELS, VALUE=matrix.dtype)
    w = start_vector(n, matrix.dtype, xp)
    before, Aw, scalars = xp.zeros_like(w), xp.empty_like(w), xp.empty(2 * steps + 1)
    reduction = scalars, xp.empty(MOST_BLOCKS), xp.zeros(1, np.int32)
    run.find_norm(n, dinv, w, *reduction)
    for k in range(steps):  # scalars stay on the device until all steps are done
        product.enqueue(w, Aw)
        run.find_alpha(n, k, w, Aw, *reduction)
        run.next_vector(n, k, dinv, Aw, w, before, *reduction)
        before, w = w, before
    scalars = backend.to_host(scalars)
    diagonal, beside = scalars[1::2], scalars[2::2]
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside[:-1], 1) + np.diag(beside[:-1], -1))
    # There is an eigenvalue so near to each of these.
    return float(np.max(np.abs(values) + beside[-1] * np.abs(vectors[-1])))


def start_vector(n: int, dtype: Any, xp: Any) -> Any:
    """Numbers between -1/2 and 1/2 without a pattern, the same on every device."""
    return ((xp.arange(n, dtype=np.uint32) * np.uint32(2654435761)).astype(np.float64) / 2.0**32 - 0.5).astype(dtype)


# The vectors w_k are not divided by their norms, beta_k, but where they are used: v_k = w_k / beta_k. `scalars` has
# beta_0, alpha_0, beta_1, alpha_1, ...


@compile_part
def inverse(norm):
    """1 / norm, or 1 if that is zero."""
    return 1 / norm if norm > 0 else 1.0


@KERNELS.strided_twin
def find_norm(n, dinv, w, scalars, partials, arrivals):
    """beta_0: the norm of w_0 by the inner product of D."""
    square = 0.0
    for i in prange(n):
        square += inner(w[i], w[i]) / dinv[i].real
    scalars[0] = np.sqrt(square)


@KERNELS.strided_twin
def find_alpha(n, k, w, Aw, scalars, partials, arrivals):
    """alpha_k = v_k' A v_k."""
    product, scale = 0.0, inverse(scalars[2 * k])
    for i in prange(n):
        product += inner(w[i], Aw[i])
    scalars[2 * k + 1] = scale * scale * product


@KERNELS.strided_twin
def next_vector(n, k, dinv, Aw, w, before, scalars, partials, arrivals):
    """w_{k+1} = inv(D) A v_k - alpha_k v_k - beta_k v_{k-1}, in place of w_{k-1}; and its norm."""
    beta, alpha, square, real = scalars[2 * k], scalars[2 * k + 1], 0.0, w.real.dtype.type
    scale, scale_before = inverse(beta), beta * inverse(scalars[2 * k - 2]) if k > 0 else 0.0
    of_Aw, of_w, of_before = real(scale), real(alpha * scale), real(scale_before)
    for i in prange(n):
        before[i] = of_Aw * (dinv[i] * Aw[i]) - of_w * w[i] - of_before * before[i]
        square += inner(before[i], before[i]) / dinv[i].real
    scalars[2 * k + 2] = np.sqrt(square)
