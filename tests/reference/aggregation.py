"""Roots of aggregates: a maximal independent set at distance two."""

from __future__ import annotations

import numpy as np
from graphs import neighbors

from mcprecond.multigrid.aggregation import bits_of, vertex_at


def independent_set(A, taken: np.ndarray) -> np.ndarray:
    """Who is in the set, of the vertices that are not taken: one after the other, in random order."""
    near = [{u for u in others if not taken[u]} - {v} for v, others in enumerate(neighbors(A))]
    found = np.zeros(A.shape[0], bool)
    bits = bits_of(A.shape[0])
    for v in (vertex_at(place, bits) for place in range(2**bits)):
        if v >= A.shape[0] or taken[v]:
            continue
        within_two = set().union(near[v], *(near[u] for u in near[v]))
        found[v] = not any(found[u] for u in within_two)
    return found
