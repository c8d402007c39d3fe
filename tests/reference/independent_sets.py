"""Colorings by independent sets: JPL and the methods of Osama et al. and of GraphBLAS."""

from __future__ import annotations

import numpy as np
from graphs import neighbors

from mcprecond.backends.hashing import mix
from reference.orders import by_weight

UNCOLORED = -1

#: How many vertices each round colors, and how many of them lose their color again.
Rounds = list[tuple[int, int]]


def serial_sets(A, seed: int) -> np.ndarray:
    """In which round a vertex outweighs all uncolored neighbors: one after the last of its heavier neighbors."""
    near, order = neighbors(A), by_weight(A, seed)
    rounds = np.full(A.shape[0], -1)
    for v in order:
        rounds[v] = 1 + max((rounds[u] for u in near[v]), default=-1)
    return rounds


def serial_reuse(A, seed: int) -> np.ndarray:
    """The sets of the rounds, each with the smallest color that is nowhere around it."""
    near, rounds = neighbors(A), serial_sets(A, seed)
    colors = np.full(A.shape[0], -1)
    for r in range(rounds.max() + 1):
        frontier = np.flatnonzero(rounds == r)
        taken = {colors[u] for v in frontier for u in near[v]}
        colors[frontier] = next(c for c in range(r + 1) if c not in taken)
    return colors


def sets_of_a_round(A, round_of) -> tuple[np.ndarray, Rounds]:
    """Rounds: `round_of(near, base)` gives the next colors, given the uncolored neighbors of each uncolored vertex."""
    near, left = neighbors(A), set(range(A.shape[0]))
    colors, base, history = np.full(A.shape[0], UNCOLORED), 0, []
    while left:
        found, width = round_of({v: near[v] & left for v in left}, base)
        for v, c in found.items():
            colors[v] = c
        left -= found.keys()
        history.append((len(found), 0))
        base += width
    return colors, history


def hashed_sets(A, seed: int, hashes: int = 4) -> tuple[np.ndarray, Rounds]:
    """By each hash function two independent sets, its maxima and its minima; the first of them that has a vertex."""

    def one_round(near, base):
        found = {}
        for v, around in near.items():
            for h in reversed(range(hashes)):
                own, theirs = (mix(v, seed + h), v), [(mix(u, seed + h), u) for u in around]
                if all(other > own for other in theirs):
                    found[v] = base + 2 * h + 1
                if all(other < own for other in theirs):
                    found[v] = base + 2 * h
        return found, 2 * hashes

    return sets_of_a_round(A, one_round)


def two_sets(A, seed: int) -> tuple[np.ndarray, Rounds]:
    """Algorithm 5 of Osama et al.: maxima, and in a second color minima; who is both gets the second one."""

    def one_round(near, base):
        found = {}
        for v, around in near.items():
            own, theirs = (mix(v, seed), v), [(mix(u, seed), u) for u in around]
            if all(other < own for other in theirs):
                found[v] = base
            if all(other > own for other in theirs):
                found[v] = base + 1
        return found, 2

    return sets_of_a_round(A, one_round)


def proposals(A, seed: int, table_size: int = 16) -> tuple[np.ndarray, Rounds]:
    """Algorithm 6 of Osama et al., with the points of `hashed.py` that make it reproducible."""
    n, near = A.shape[0], [sorted(around) for around in neighbors(A)]
    number = [(mix(v, seed), v) for v in range(n)]
    colors, proposed, tables = [UNCOLORED] * n, [-1] * n, [[] for _ in range(n)]
    asks, left, new, history = [True] * n, list(range(n)), 0, []
    while left:
        for v in left:
            for u in near[v]:
                is_late = colors[u] != UNCOLORED and proposed[u] >= new - 2
                if is_late and colors[u] not in tables[v] and len(tables[v]) < table_size:
                    tables[v].append(colors[u])
        for v in left:
            closed = [v, *(u for u in near[v] if colors[u] == UNCOLORED)]
            for u, role in ((max(closed, key=number.__getitem__), 0), (min(closed, key=number.__getitem__), 1)):
                proposed[u] = max(proposed[u], new + role)
        taking = [v for v in left if proposed[v] >= new]
        for v in taking:
            reused = next(c for c in range(65) if c not in tables[v])
            colors[v] = reused if asks[v] and reused < new else proposed[v]
        losers = {v for v in left if proposed[v] < new}
        for v in taking:
            rivals = [u for u in near[v] if colors[u] == colors[v]]
            if any(proposed[u] < new for u in rivals):
                asks[v] = False
                losers.add(v)
            if any(number[u] > number[v] for u in rivals if proposed[u] >= new):
                losers.add(v)
        settled = len(left) - len(losers)
        left = sorted(losers)
        for v in left:
            colors[v] = UNCOLORED
        history.append((len(taking), len(taking) - settled))
        new += 2
    return np.array(colors), history


def grown_sets(A, seed: int) -> Rounds:
    """Algorithm 3 of Osama et al.: by how many vertices each maximal independent set grows, step by step."""
    near, weight, left, history = (
        neighbors(A),
        [(mix(v, seed), v) for v in range(A.shape[0])],
        set(range(A.shape[0])),
        [],
    )
    while left:
        candidates = set(left)
        while candidates:
            frontier = {v for v in candidates if all(weight[u] < weight[v] for u in near[v] & candidates)}
            left -= frontier
            candidates -= frontier | {u for v in frontier for u in near[v]}
            history.append((len(frontier), 0))
    return history
