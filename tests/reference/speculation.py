"""Speculative coloring by edges, and who gives way where two vertices have chosen one color."""

from __future__ import annotations

import numpy as np
from graphs import neighbors


def published_edges(
    A, smaller_degree: bool = False, *, tentative: bool = True, drop_edges: bool = True
) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """Algorithms 5, 6, 8 and 9 of Deveci et al., with sets for words, one edge after the other."""
    near, n = neighbors(A), A.shape[0]
    edges = [(v, u) for v in range(n) for u in sorted(near[v]) if u > v]
    if smaller_degree:
        edges = [(u, v) if len(near[v]) > len(near[u]) else (v, u) for v, u in edges]
    final, intended, of_set = [None] * n, [None] * n, [0] * n
    forbidden, told = [set() for _ in range(n)], [set() for _ in range(n)]

    def choice(v, *others):
        return next((c for c in range(31) if c not in forbidden[v] | told[v] | set(others)), None)

    history = []
    while left := [v for v in range(n) if final[v] is None]:
        for v in left:
            if intended[v] is not None or choice(v) is not None:
                final[v] = intended[v] if intended[v] is not None else choice(v)
            elif len(forbidden[v]) == 31:
                of_set[v] += 1
                forbidden[v] = set()
            told[v], intended[v] = set(), None
        for low, high in edges:
            if final[low] is not None and (final[low], of_set[low]) == (final[high], of_set[high]):
                final[low] = None
        listed = []
        for low, high in edges:
            if (final[low] is None) == (final[high] is None):
                listed += [(low, high)] if final[low] is None else []
                continue
            colored, other = (low, high) if final[high] is None else (high, low)
            if of_set[colored] == of_set[other]:
                forbidden[other].add(final[colored])
            elif of_set[colored] > of_set[other]:
                listed.append((low, high))
        edges = listed if drop_edges else edges
        for low, high in edges if tentative else ():
            if final[low] is not None or final[high] is not None or of_set[low] != of_set[high]:
                continue
            if intended[low] is None and intended[high] is None:
                intended[high] = choice(high)
                told[low] |= {intended[high]} - {None}
            elif intended[high] is None:
                told[high].add(intended[low])
            elif intended[low] is None:
                told[low].add(intended[high])
            elif intended[low] == intended[high]:
                intended[low] = choice(low, intended[high])
                told[high] |= {intended[low]} - {None}
        history.append((len(left), sum(color is None for color in final)))
    return np.array([31 * of_set[v] + final[v] for v in range(n)]), history


def ranks(near: list[set[int]], by_degree: bool) -> list[tuple[int, int]]:
    """Of two neighbors of one color the one of lower rank gives way."""
    return [(len(around) if by_degree else 0, v) for v, around in enumerate(near)]
