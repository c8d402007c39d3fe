"""The orders in which vertices are colored."""

from __future__ import annotations

from graphs import neighbors

from mcprecond.backends.hashing import mix


def at_random(A, seed: int) -> list[int]:
    """By rising random numbers."""
    return sorted(range(A.shape[0]), key=lambda v: (mix(v, seed), v))


def by_weight(A, seed: int) -> list[int]:
    """The vertices by falling weight."""
    return sorted(range(A.shape[0]), key=lambda v: (mix(v, seed), v), reverse=True)


def largest_first(A) -> list[int]:
    """By falling degree, and ties in row order."""
    near = neighbors(A)
    return sorted(range(A.shape[0]), key=lambda v: (-len(near[v]), v))


def by_degree(A, seed: int) -> list[int]:
    """The order of ECL-GC: largest degree, then largest hash, then largest number."""
    degrees = [len(near) for near in neighbors(A)]
    return sorted(range(A.shape[0]), key=lambda v: (degrees[v], mix(v, seed), v), reverse=True)


def smallest_degree_last(adjacency) -> tuple[list[int], int]:
    """Smallest degree last, and the degeneracy."""
    left, removed, degeneracy = set(range(len(adjacency))), [], 0
    while left:
        v = min(left, key=lambda v: (len(adjacency[v] & left), v))
        degeneracy = max(degeneracy, len(adjacency[v] & left))
        left.remove(v)
        removed.append(v)
    return removed[::-1], degeneracy


def smallest_degree_last_in_batches(adjacency) -> list[int]:
    """The same in batches."""
    left, batches, d = set(range(len(adjacency))), [], 0
    while left:
        batch = sorted(v for v in left if len(adjacency[v] & left) <= d)
        left -= set(batch)
        batches.append(batch)
        d += not batch
    return [v for batch in batches[::-1] for v in batch]
