"""Proper colorings: who may not have the same color, at distance one and two."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from graphs import neighbors


def within_two(A) -> list[set[int]]:
    """All vertices within distance two of each, the slow and obvious way."""
    near = neighbors(A)
    return [near[v].union(*(near[u] for u in near[v])) - {v} for v in range(len(near))]


def all_pairs(A) -> sp.csr_matrix:
    """The graph of all pairs within distance two."""
    pairs = [(v, u) for v, near in enumerate(within_two(A)) for u in near]
    return sp.csr_matrix((np.ones(len(pairs)), np.array(pairs, dtype=np.int32).reshape(-1, 2).T), shape=A.shape)


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
