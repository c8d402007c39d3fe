"""First-fit: serially, in a given order; and in fronts, as many vertices at once as do not wait for each other."""

from __future__ import annotations

import numpy as np
from graphs import neighbors


def smallest_free(taken) -> int:
    """The smallest color that is not among these."""
    return next(c for c in range(len(taken) + 1) if c not in taken)


def serial_first_fit(A, sequence) -> np.ndarray:
    """One vertex after the other in this order takes the smallest color that no neighbor has."""
    adjacency, colors = neighbors(A), {}
    for v in sequence:
        colors[v] = smallest_free({colors[u] for u in adjacency[v] if u in colors})
    return np.array([colors[v] for v in range(A.shape[0])], dtype=np.int32)


def colors_by_urgency(adjacency, order: str) -> list[int]:
    """First-fit by saturation ("sd") or incidence degree ("id"), where the colors say which vertex is next."""
    colors: dict[int, int] = {}

    def urgency(v: int) -> tuple[int, int, int]:
        around = [colors[u] for u in adjacency[v] if u in colors]
        return len(set(around) if order == "sd" else around), len(adjacency[v]), -v

    while len(colors) < len(adjacency):
        v = max((v for v in range(len(adjacency)) if v not in colors), key=urgency)
        colors[v] = smallest_free({colors[u] for u in adjacency[v] if u in colors})
    return [colors[v] for v in range(len(adjacency))]


def fronts(A, sequence) -> list[tuple[int, int]]:
    """How many vertices each front has: those that come after the last front of those before them around them."""
    near, front = neighbors(A), {}
    for v in sequence:
        front[v] = 1 + max((front[u] for u in near[v] if u in front), default=-1)
    return [(int(count), 0) for count in np.bincount(list(front.values()))]
