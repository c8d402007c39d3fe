"""Roots of aggregates: a maximal independent set at distance two."""

from __future__ import annotations

import numpy as np
from graphs import neighbors

from mcprecond.backends.hashing import mix


def independent_set(A, taken: np.ndarray, grain: int) -> np.ndarray:
    """Who is in the set, of the vertices that are not taken: one after the other, in grains of rows in random order."""
    near = [{u for u in others if not taken[u]} - {v} for v, others in enumerate(neighbors(A))]
    found = np.zeros(A.shape[0], bool)
    for v in sorted(np.flatnonzero(~taken), key=lambda v: (mix(v // grain, 0), v)):
        within_two = set().union(near[v], *(near[u] for u in near[v]))
        found[v] = not any(found[u] for u in within_two)
    return found
