"""The spectral radius of inv(D) A, by a few steps of Lanczos' method: what the smoothing of prolongators divides by."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.matrix import AdmittedMatrix
from mcprecond.solvers.iteration import Product

STEPS = 10


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
    xp, product = backend.xp, Product(matrix)
    if n == 0:
        return 1.0
    v = start_vector(n, matrix.dtype, xp)
    D, before, Av = 1 / dinv.real, xp.zeros_like(v), xp.empty_like(v)
    beta = xp.sqrt(xp.sum(D * abs(v) ** 2))
    v = v / beta
    alphas: list[Any] = []
    betas: list[Any] = []
    for _ in range(min(steps, n)):  # scalars stay on the device until all steps are done
        product.enqueue(v, Av)
        alpha = xp.sum((v.conj() * Av).real)  # not by a BLAS, whose threads would be others than ours
        w = dinv * Av - alpha * v - (beta * before if betas else 0)
        beta = xp.sqrt(xp.sum(D * abs(w) ** 2))
        alphas.append(alpha)
        betas.append(beta)
        before, v = v, w / xp.where(beta > 0, beta, 1).astype(v.real.dtype)
    scalars = backend.to_host(xp.stack([xp.asarray(scalar) for scalar in (*alphas, *betas)])).astype(float)
    diagonal, beside = np.split(scalars, 2)
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside[:-1], 1) + np.diag(beside[:-1], -1))
    # There is an eigenvalue so near to each of these.
    return float(np.max(np.abs(values) + beside[-1] * np.abs(vectors[-1])))


def start_vector(n: int, dtype: Any, xp: Any) -> Any:
    """Numbers between -1/2 and 1/2 without a pattern, the same on every device."""
    return ((xp.arange(n, dtype=np.uint32) * np.uint32(2654435761)).astype(np.float64) / 2.0**32 - 0.5).astype(dtype)
