"""Extended precision, and residuals and norms in it."""

from __future__ import annotations

import numpy as np


def wide(values: np.ndarray) -> np.ndarray:
    """In extended precision."""
    values = np.asarray(values)
    return values.astype(np.clongdouble if values.dtype.kind == "c" else np.longdouble)


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
