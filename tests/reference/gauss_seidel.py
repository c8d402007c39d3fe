"""Gauss-Seidel and SOR: row by row, node by node, and by the dense formulas."""

from __future__ import annotations

import numpy as np


def swept(A: np.ndarray, x: np.ndarray, b: np.ndarray, rows: np.ndarray, omega: float) -> np.ndarray:
    """One sweep of SOR over the rows in this order."""
    x = x.copy()
    for i in rows:
        x[i] = (1 - omega) * x[i] + omega * (b[i] - A[i] @ x + A[i, i] * x[i]) / A[i, i]
    return x


def block_sweep(A, colors, b, r, omega, sweep):
    """Gauss-Seidel from zero, block by block in the order of the colors, from dense matrices."""
    n_nodes = A.shape[0] // b
    order = np.argsort(colors, kind="stable")
    unknowns = (order[:, None] * b + np.arange(b)).reshape(-1)
    P = A.toarray()[np.ix_(unknowns, unknowns)]
    node = np.arange(n_nodes).repeat(b)
    D = np.where(node[:, None] == node, P, 0)
    L, U = np.where(node[:, None] > node, P, 0), np.where(node[:, None] < node, P, 0)
    z = r[unknowns]
    if sweep == "forward":
        z = omega * np.linalg.solve(D + omega * L, z)
    elif sweep == "backward":
        z = omega * np.linalg.solve(D + omega * U, z)
    else:
        z = omega * (2 - omega) * np.linalg.solve(D + omega * U, D @ np.linalg.solve(D + omega * L, z))
    result = np.empty_like(z)
    result[unknowns] = z
    return result


def dense_inverse(A, perm: np.ndarray, sweep: str, omega: float) -> np.ndarray:
    """inv(M) by the formula of `MulticolorGS`, in the order of A, for rows that are done in the order `perm`."""
    B = A.toarray()[np.ix_(perm, perm)]
    B = B.astype(np.result_type(B, np.float64))
    D, L, U = np.diag(np.diag(B)), np.tril(B, -1), np.triu(B, 1)
    lower, upper = np.linalg.inv(D + omega * L), np.linalg.inv(D + omega * U)
    formula = {
        "forward": omega * lower,
        "backward": omega * upper,
        "symmetric": omega * (2 - omega) * upper @ D @ lower,
    }[sweep]
    P = np.eye(len(perm))[perm]
    return P.T @ formula @ P


def swept_from_zero(
    A: np.ndarray,
    r: np.ndarray,
    *,
    order: np.ndarray,
    block_size: int,
    omega: float,
    sweep: str,
    sweeps: int,
    unit: float,
    stored: float,
) -> tuple[np.ndarray, np.ndarray]:
    """So many sweeps on A z = r from z = 0, node by node in the given order, and a bound on the error.

    The bound is a running error analysis: the same recurrence on absolute values. `unit` is the rounding unit of the
    arithmetic, `stored` that of the stored triangles.

    z_i <- (1 - w) z_i + w inv(A_ii) (r_i - sum of A_ij z_j over j != i)
    """
    size = np.abs(A).astype(float)
    z, error = np.zeros(r.shape, np.result_type(A, r)), np.zeros(r.shape)
    w = np.longdouble(omega)
    nodes = {}
    for i in order:
        rows = np.arange(block_size * i, block_size * (i + 1))
        others, others_size = A[rows].copy(), size[rows].copy()
        others[:, rows] = others_size[:, rows] = 0
        inverse = _inverse(A[np.ix_(rows, rows)])
        inverted = np.abs(inverse).astype(float)
        spread = unit * inverted
        if block_size > 1:  # the more so the worse the condition of the block
            spread = (
                unit * 8 * block_size * inverted.max() ** 2 * size[np.ix_(rows, rows)].max() * np.ones_like(inverted)
            )
        nodes[i] = rows, others, others_size, np.count_nonzero(others) + block_size + 4, inverse, inverted, spread
    for direction in {"forward": [1], "backward": [-1], "symmetric": [1, -1]}[sweep] * sweeps:
        for i in order[::direction]:
            rows, others, others_size, length, inverse, inverted, spread = nodes[i]
            left, amount = r[rows] - others @ z, others_size @ np.abs(z).astype(float)
            new, old = inverse @ left, np.abs(z[rows]).astype(float)
            of_left = others_size @ error + length * unit * (np.abs(r[rows]).astype(float) + amount) + stored * amount
            of_new = inverted @ of_left + spread @ np.abs(left).astype(float) + 4 * unit * np.abs(new).astype(float)
            z[rows] = (1 - w) * z[rows] + w * new
            error[rows] = abs(1 - omega) * (error[rows] + 4 * unit * old) + omega * (
                of_new + 4 * unit * np.abs(new).astype(float)
            )
            error[rows] += 4 * unit * np.abs(z[rows]).astype(float)
    return z, error


def _inverse(block: np.ndarray) -> np.ndarray:
    """Of a small matrix, by elimination with pivots."""
    n = len(block)
    if n == 1:
        return 1 / block
    both = np.concatenate([block, np.eye(n, dtype=block.dtype)], axis=1)
    for k in range(n):
        p = k + int(np.argmax(np.abs(both[k:, k])))
        both[[k, p]] = both[[p, k]]
        both[k] /= both[k, k]
        for i in range(n):
            if i != k:
                both[i] -= both[i, k] * both[k]
    return both[:, n:]
