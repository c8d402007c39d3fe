"""DILU: pivots by their recurrence, M by its formula, and the residual of a solve with its factors."""

from __future__ import annotations

import numpy as np


def dense(A, perm: np.ndarray) -> np.ndarray:
    """M by its formula, in the order of A, with E one after the other in the order `perm`."""
    B = A.toarray()[np.ix_(perm, perm)]
    E = np.zeros(len(B), B.dtype)
    for i in range(len(B)):
        E[i] = B[i, i] - (B[i, :i] * B[:i, i] / E[:i]).sum()
    product = (np.diag(E) + np.tril(B, -1)) @ np.diag(1 / E) @ (np.diag(E) + np.triu(B, 1))
    P = np.eye(len(perm))[perm]
    return P.T @ product @ P


def pivots(A: np.ndarray, E: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the recurrence makes of pivots that were found: E_i = a_ii - sum of a_ij a_ji / E_j over j < i, rows in the
    order of elimination; and the sum of all magnitudes, which rounding is relative to.
    """
    with np.errstate(all="ignore"):
        terms = np.tril(A, -1) * (np.tril(A.T, -1) / E)
    return np.diag(A) - terms.sum(axis=1), np.abs(np.diag(A)) + np.abs(terms).sum(axis=1)


def split_residual(
    lower: np.ndarray, pivots: np.ndarray, upper: np.ndarray, z: np.ndarray, r: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """r - (E + L) inv(E) (E + U) z for strict triangles L and U, and the sum of all magnitudes in it."""
    E = np.diag(pivots)
    w = (E + upper) @ z
    y = w / pivots[:, None]
    size_of_w = (np.abs(E) + np.abs(upper)) @ np.abs(z)
    size = (np.abs(E) + np.abs(lower)) @ (size_of_w / np.abs(pivots)[:, None])
    return r - (E + lower) @ y, (size + np.abs(r)).astype(float)
