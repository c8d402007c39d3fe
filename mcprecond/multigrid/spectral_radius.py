"""The spectral radius of inv(D) A, by a few steps of Lanczos' method: what the smoothing of prolongators divides by."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import Backend, KernelSet, compile_loop, compile_part
from mcprecond.linalg.csr import product_with, row_product
from mcprecond.matrix import AdmittedMatrix
from mcprecond.solvers.iteration import inner

KERNELS = KernelSet(__file__, "OFFSET VALUE LANES")

STEPS = 10
#: The largest number of blocks of a grid: the workspace has room for one number of each.
MOST_BLOCKS = 2**14
MULTIPLIER = 2654435761  # turns consecutive numbers into pseudo-random ones
CUDA_CONSTANTS = {"MOST_BLOCKS": MOST_BLOCKS, "MULTIPLIER": MULTIPLIER}


def spectral_radius(matrix: AdmittedMatrix, dinv: Any, steps: int = STEPS) -> float:
    """Return an estimate of the largest magnitude of an eigenvalue of inv(D) A, from the same start in every run.

    Parameters
    ----------
    matrix : AdmittedMatrix
        Hermitian A.
    dinv : array, shape (n,)
        The inverse of D, positive. The steps use the inner product of D, in which inv(D) A is Hermitian.
    steps : int

    Raises
    ------
    ValueError
        If numbers on the way are not finite.

    References
    ----------
    Saad: Numerical Methods for Large Eigenvalue Problems, revised ed., SIAM 2011, Algorithm 6.5.
    """
    backend, n = matrix.backend, matrix.shape[0]
    if n == 0:
        return 1.0
    xp, steps = backend.xp, min(steps, n)
    w, scalars = xp.empty(n, matrix.dtype), xp.empty(2 * steps + 1)
    A = product_with(matrix)
    run = backend.kernels(KERNELS, **A.macros)
    run.start(n, w)
    own = dinv, w, xp.zeros_like(w), xp.empty_like(w)
    run.lanczos(n, steps, *A.arrays(A.new_state()), *own, scalars, xp.empty(2 * MOST_BLOCKS), xp.zeros(1, np.int32))
    scalars = backend.to_host(scalars)
    if not np.isfinite(scalars).all():
        raise ValueError(
            f"the spectral radius of inv(D) A is out of the range of {matrix.dtype}: A is not positive definite, or "
            "its rows are of too different sizes; scale rows and columns of A to a diagonal of about 1"
        )
    diagonal, beside = scalars[1::2], scalars[2::2]
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside[:-1], 1) + np.diag(beside[:-1], -1))
    # There is an eigenvalue so near to each of these.
    return float(np.max(np.abs(values) + beside[-1] * np.abs(vectors[-1])))


def start_vector(n: int, dtype: Any, backend: Backend) -> Any:
    """Pseudo-random numbers between -1/2 and 1/2, the same on every device."""
    w = backend.xp.empty(n, dtype)
    backend.kernels(KERNELS, OFFSET=np.int32, VALUE=dtype, LANES=1).start(n, w)
    return w


# On the CPU. The vectors w_k are not divided by their norms, beta_k, but where they are used: v_k = w_k / beta_k.
# `scalars` has beta_0, alpha_0, beta_1, alpha_1, ...


@compile_part
def inverse(norm):
    """1 / norm, or 1 if that is zero."""
    return 1 / norm if norm > 0 else 1.0


@KERNELS.per_item
def start(first, end, w):
    """The first vector."""
    for i in range(first, end):
        w[i] = np.float64(np.uint32(np.uint32(i) * np.uint32(MULTIPLIER))) / 4294967296.0 - 0.5


@compile_loop
def square_of(first, end, w, dinv):
    """The square of the norm of a vector by the inner product of D."""
    square = 0.0
    for i in range(first, end):
        square += inner(w[i], w[i]) / dinv[i].real
    return square


@compile_loop
def multiply(first, end, indptr, indices, values, w, Aw):
    """Aw = A w; returns w' A w."""
    product = 0.0
    for i in range(first, end):
        total = row_product(i, indptr, indices, values, w)
        Aw[i] = total
        product += inner(w[i], total)
    return product


@compile_loop
def next_vector(first, end, scale, of_w, of_before, dinv, Aw, w, before):
    """w_{k+1} = inv(D) A v_k - alpha_k v_k - beta_k v_{k-1}, in place of w_{k-1}; returns the square of its
    norm.
    """
    square, real = 0.0, w.real.dtype.type
    for i in range(first, end):
        before[i] = real(scale) * (dinv[i] * Aw[i]) - real(of_w) * w[i] - real(of_before) * before[i]
        square += inner(before[i], before[i]) / dinv[i].real
    return square


@KERNELS.resident
def lanczos(
    n,
    steps,
    indptr,
    indices,
    values,
    longest,
    n_long,
    n_pieces,
    plan,
    work,
    dinv,
    w,
    before,
    Aw,
    scalars,
    sums,
    arrivals,
):
    """All steps, from w; `before` is zero."""
    beta, last_inverse = np.sqrt(square_of(0, len(w), w, dinv)), 0.0
    scalars[0] = beta
    for k in range(steps):
        scale = inverse(beta)
        alpha = scale * scale * multiply(0, n, indptr, indices, values, w, Aw)
        beta = np.sqrt(next_vector(0, n, scale, alpha * scale, beta * last_inverse, dinv, Aw, w, before))
        last_inverse = scale
        scalars[2 * k + 1], scalars[2 * k + 2] = alpha, beta
        w, before = before, w
