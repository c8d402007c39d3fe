"""The definitions: dense, in extended precision, in the order of the rows; none of the package's code.

With each result comes what rounding may do to it, by a running error analysis: the same recurrence on absolute values.
`unit` is the rounding unit of the arithmetic, `stored` that of the stored triangles.
"""

from __future__ import annotations

import numpy as np


def wide(values: np.ndarray) -> np.ndarray:
    """In extended precision."""
    values = np.asarray(values)
    return values.astype(np.clongdouble if values.dtype.kind == "c" else np.longdouble)


def within(pattern: np.ndarray, distance: int) -> np.ndarray:
    """Which vertices are within the distance of each other in the symmetrized pattern, by its dense square."""
    near = pattern | pattern.T
    if distance == 2:
        near = (near.astype(np.float32) @ near.astype(np.float32) > 0) | near
    return near


def improper(pattern: np.ndarray, colors: np.ndarray, distance: int) -> tuple[int, int] | None:
    """Two vertices of one color within the distance in the symmetrized pattern, or None."""
    near = within(pattern, distance)
    same = near & (colors[:, None] == colors)
    np.fill_diagonal(same, False)
    found = np.argwhere(same)
    return (int(found[0, 0]), int(found[0, 1])) if len(found) else None


def gauss_seidel(
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


def dilu_pivots(A: np.ndarray, E: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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


def residual(A: np.ndarray, x: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """||b - A x||, and how much of that double precision may lose on the way."""
    A, x, b = wide(A), wide(x), wide(b)
    r = b - A @ x
    longest = int((A != 0).sum(axis=1).max(initial=0))
    size = np.abs(b) + np.abs(A) @ np.abs(x)
    return norm(r), 2.0**-53 * (longest + 4) * norm(size)


def norm(v: np.ndarray) -> float:
    """Of a vector of any scale; infinite where it does not fit into a double."""
    v = np.abs(wide(v))
    largest = v.max(initial=0)
    if not largest or not np.isfinite(largest):
        return float(largest)
    found = largest * np.sqrt(((v / largest) ** 2).sum())
    with np.errstate(over="ignore", under="ignore"):
        return float(found)
