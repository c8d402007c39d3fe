"""Classical multigrid by its formulas, with dense matrices: strong dependences, PMIS and extended+i interpolation."""

from __future__ import annotations

import numpy as np

from mcprecond.backends.hashing import mix
from mcprecond.multigrid.extended import LARGE_DEGREE
from mcprecond.multigrid.splitting import FIRST, MOST_STIFF, STIFF
from mcprecond.multigrid.stiff_rows import OMEGA, STEPS


def dependences(A: np.ndarray, theta: float) -> tuple[np.ndarray, np.ndarray]:
    """Whether i depends strongly on j, and whether it may interpolate through j."""
    off = A.real * (1 - np.eye(len(A)))
    strong = (off < 0) & (-off >= theta * (1 - 1e-12) * (-off).max(axis=1, initial=0, keepdims=True))
    sizes = abs(A) * (1 - np.eye(len(A)))
    passes = strong | ((off > 0) & (off >= theta * (1 - 1e-12) * sizes.max(axis=1, initial=0, keepdims=True)))
    return strong, passes


def coarse_points(A: np.ndarray, strong: np.ndarray) -> np.ndarray:
    """Whether each point is coarse: a few stiff ones, and then one after the other, the largest weight first."""
    n = len(A)
    share = np.maximum(A.real * (1 - np.eye(n)), 0).sum(axis=1) / abs(np.diagonal(A))
    is_stiff = share > STIFF
    influences = strong.sum(axis=0) + np.where(is_stiff, FIRST, 0)
    is_coarse = is_stiff & (is_stiff.sum() <= MOST_STIFF * n)
    is_fine = ((influences == 0) | strong[:, is_coarse].any(axis=1)) & ~is_coarse
    for v in sorted(range(n), key=lambda v: (influences[v], int(mix(v, 0))), reverse=True):
        if not is_fine[v]:
            is_coarse[v] = True
            is_fine |= strong[:, v] & ~is_coarse
    return is_coarse


def extended(A: np.ndarray, passes: np.ndarray, is_coarse: np.ndarray) -> np.ndarray:
    """All weights of extended+i, by equation (4.10), around hubs."""
    n = len(A)
    is_hub = (A != 0).sum(axis=1) - 1 > LARGE_DEGREE * np.count_nonzero(A) / n
    passes = passes & (is_coarse | ~(is_hub | is_hub[:, None]))
    W = np.zeros((n, n), A.dtype)
    negative = np.where((A.real < 0) & ~np.eye(n, dtype=bool), A, 0)
    for i in range(n):
        if is_coarse[i]:
            W[i, i] = 1
            continue
        fine = passes[i] & ~is_coarse
        reach = is_coarse & (passes[i] | passes[fine].any(axis=0))
        if not reach.any():
            continue
        divisor, weights = A[i, i], np.where(reach, A[i], 0)
        for j in range(n):
            if j == i or reach[j] or A[i, j] == 0:
                continue
            total = negative[j][reach].sum() + negative[j, i]
            if fine[j] and total != 0:
                weights = weights + np.where(reach, A[i, j] / total * negative[j], 0)
                divisor += A[i, j] / total * negative[j, i]
            else:
                divisor += A[i, j]
        if divisor.real * A[i, i].real <= 0:
            divisor = A[i, i]
        W[i] = -weights / divisor
    return W[:, is_coarse]


def relaxed_rows(A: np.ndarray, P: np.ndarray, reach: np.ndarray, rows: np.ndarray, hops: int) -> np.ndarray:
    """P with some rows after the steps of Jacobi's method, where they may grow beyond the reach in the first ones."""
    for _ in range(hops):
        reach = np.where(rows[:, None], (A != 0).astype(int) @ reach > 0, reach)
    P = P.copy()
    for _ in range(STEPS):
        step = P - OMEGA / abs(A).sum(axis=1, keepdims=True) * (A @ P)
        P = np.where(rows[:, None] & reach, step, P)
    return P
