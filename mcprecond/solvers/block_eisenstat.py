"""Eisenstat's form over blocks of nodes on the CPU.

They are those of eisenstat.py where a number of a vector becomes a row of b numbers, and a number of the matrix a b x b
block, and rows of the upper triangle are not divided by their pivots. The CUDA side is the same text for both.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numba import prange

from mcprecond.backends import KernelSet, compile_loop
from mcprecond.solvers.iteration import (
    ALPHA,
    BETA,
    BETA_OF_RZ,
    FRESH_RZ,
    ITERATION,
    LEFT,
    OF_FIRST_RR,
    OF_FIRST_RZ,
    PAP,
    RESIDUAL,
    RUNNING,
    STATE,
    STEP,
    apply_reduction,
    inner,
)
from mcprecond.sweeps.block_triangular import add_products, product

KERNELS = KernelSet(str(Path(__file__).with_name("eisenstat.py")))


@compile_loop
def solve_lower_rows(first, end, indptr, columns, values, Tinv, r, rho):
    """The rows of one color."""
    for i in prange(first, end):
        work = np.zeros_like(r[i])
        add_products(i, indptr, columns, values, rho, work)
        work[:] = r[i] - work
        for p in range(len(work)):
            rho[i, p] = product(Tinv[i], work, p)


@KERNELS.resident
def solve_lower(n_slices, slices, sums, indptr, columns, values, Tinv, r, rho):
    """rho = inv(T + L) r."""
    for c in range(n_slices):
        solve_lower_rows(slices[c], slices[c + 1], indptr, columns, values, Tinv, r, rho)


@compile_loop
def sweep_back_rows(first, end, indptr, columns, values, dinv, omega, rho, beta, q, t, ts):
    """The rows of one color."""
    for i in prange(first, end):
        work = ts[i, 1]  # which the forward sweep will write
        work[:] = 0
        add_products(i, indptr, columns, values, t, work)
        for p in range(len(work)):
            q[i, p] = rho[i, p] + beta * q[i, p]
            t[i, p] = q[i, p] - omega * product(dinv[i], work, p)
        ts[i, 0] = t[i]


@compile_loop
def sweep_first_rows(end, indptr, columns, values, dinv, omega, rho, step, t, ts):
    """The rows of the first color where T = D."""
    for i in prange(end):
        total = np.zeros_like(t[i])
        add_products(i, indptr, columns, values, t, total)
        for p in range(len(total)):
            ts[i, 1, p] = omega * product(dinv[i], total, p)
            ts[i, 0, p] = step * rho[i, p] - ts[i, 1, p]


@KERNELS.resident
def sweep_back(
    n_slices, slices, sums, indptr, columns, values, first_rows, dinv, omega, rho, q, t, ts, control, scalars
):
    """q = rho + beta q and t = inv(T + U) T q; in CUDA, s becomes empty. In the first rows, s as well."""
    if control[STATE] != RUNNING:
        return
    beta, step = t.dtype.type(scalars[BETA]), t.dtype.type(scalars[STEP])
    for c in range(n_slices - 1, 0 if first_rows else -1, -1):
        sweep_back_rows(slices[c], slices[c + 1], indptr, columns, values, dinv, omega, rho, beta, q, t, ts)
    if first_rows:  # even an empty loop wakes the threads
        sweep_first_rows(first_rows, indptr, columns, values, dinv, omega, rho, step, t, ts)


@compile_loop
def sweep_forward_rows(first, end, indptr, columns, values, T, Tinv, diagonal, q, ts, At):
    """The rows of one color, and their share of q'T w."""
    total = 0.0
    for i in prange(first, end):
        t, s = ts[i, 0], ts[i, 1]
        L_t, T_q, work = np.zeros_like(t), np.zeros_like(t), np.zeros_like(t)
        add_products(i, indptr, columns, values, ts[:, 0], L_t)
        add_products(i, indptr, columns, values, ts[:, 1], work)
        for p in range(len(t)):
            T_q[p], T_t, D_t = product(T[i], q[i], p), product(T[i], t, p), product(diagonal[i], t, p)
            work[p] = T_q[p] - (2 * T_t - D_t) - work[p]
            At[i, p] = T_q[p] + L_t[p] + (D_t - T_t)
        for p in range(len(t)):
            s[p] = product(Tinv[i], work, p)
            total += inner(T_q[p], t[p] + s[p])
    return total


@KERNELS.resident
def sweep_forward(
    n_slices,
    slices,
    sums,
    indptr,
    columns,
    values,
    first,
    T,
    Tinv,
    diagonal,
    q,
    ts,
    At,
    control,
    scalars,
    history,
    partials,
):
    """s = inv(T + L) (T q - (2 T - D) t), A t, and q'T w, which alpha follows from, from slice number `first` on."""
    if control[STATE] != RUNNING:
        return
    total = 0.0
    for c in range(n_slices):
        total += sweep_forward_rows(slices[c], slices[c + 1], indptr, columns, values, T, Tinv, diagonal, q, ts, At)
    apply_reduction(PAP, total, control, scalars, history)


@KERNELS.strided
def begin_all(n, first_rows, T, r, rho, q, control, scalars, history, partials):
    """r'r and r'rho of the first rows, z'rho, and q = 0."""
    if control[STATE] != RUNNING:
        return
    first_rr, first_rz, rz = 0.0, 0.0, 0.0
    for i in prange(n):
        for p in range(r.shape[1]):
            if i < first_rows:
                first_rr += inner(r[i, p], r[i, p])
                first_rz += inner(r[i, p], rho[i, p])
            rz += inner(product(T[i], rho[i], p), rho[i, p])
            q[i, p] = 0
    apply_reduction(OF_FIRST_RR, first_rr, control, scalars, history)
    apply_reduction(OF_FIRST_RZ, first_rz, control, scalars, history)
    apply_reduction(FRESH_RZ, rz, control, scalars, history)


@KERNELS.strided
def advance_all(n, first_rows, ts, At, T, x, r, rho, t, control, scalars, history, partials):
    """x += alpha t, r -= alpha A t, rho -= alpha w, r'r and z'rho, but for the first rows; in CUDA, t becomes empty."""
    if control[STATE] != RUNNING:
        return
    alpha = r.dtype.type(scalars[ALPHA])
    rr, rz = 0.0, 0.0
    for i in prange(first_rows, first_rows + n):
        for p in range(r.shape[1]):
            x[i, p] += alpha * ts[i, 0, p]
            r[i, p] -= alpha * At[i, p]
            rho[i, p] -= alpha * (ts[i, 0, p] + ts[i, 1, p])
            rr += inner(r[i, p], r[i, p])
        for p in range(r.shape[1]):
            rz += inner(product(T[i], rho[i], p), rho[i, p])
    apply_reduction(RESIDUAL, rr, control, scalars, history)
    apply_reduction(BETA_OF_RZ, rz, control, scalars, history)


@compile_loop
def solve_first_rows(end, indptr, columns, values, dinv, omega, b, r, left, x):
    """The rows of the first color."""
    for i in prange(end):
        total = np.zeros_like(r[i])
        add_products(i, indptr, columns, values, x, total)
        total[:] = b[i] - left * r[i] - total
        for p in range(len(total)):
            x[i, p] = omega * product(dinv[i], total, p)


@KERNELS.resident
def solve_first(n_slices, slices, sums, indptr, columns, values, dinv, omega, b, r, x, control, scalars):
    """x = inv(T) (b - left r - U x) in the slices of the first color, unless nothing has changed since r was found."""
    if control[ITERATION] and scalars[LEFT] != 1:
        solve_first_rows(slices[n_slices], indptr, columns, values, dinv, omega, b, r, x.dtype.type(scalars[LEFT]), x)
