"""First-fit at distance two where hubs, vertices with very many neighbors, would take most of the time.

All d neighbors of a hub are within distance two of each other. To go through the hub's row for each of them is to visit
d^2 entries, and as many again for every 64 colors: 10^13 visits on a star of 10^5 leaves. This module avoids these
visits. Each hub keeps the set of the colors that it and its neighbors have, and the smallest color that is
not in the set, from which a vertex goes on. That is serial, on the host, and takes little more than one visit to every
entry of a hub's row. The colors are those of first-fit in the given order.

The sets of all hubs are stored as bits in one hash table. A key consists of a hub and the number of a word; its value
is that word, in which each of the 64 bits stands for a color.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import compile_part, compile_row
from mcprecond.backends.hashing import mix64
from mcprecond.coloring.graph import UNCOLORED, Graph, row_near, rows_near

WORD = 64
EMPTY = -1  # instead of a key
KNOWN = 2**16  # for so many sets of hubs the module remembers how many words they have filled together
#: A hub has at least LEAST_DEGREE neighbors, and at least SKEWED times the mean number of neighbors.
LEAST_DEGREE = 64
SKEWED = 8
#: A vertex with LEAST_DEGREE neighbors is a hub already if the visits to all other rows exceed MOST_LOOKS, which takes
#: seconds, or exceed MOST_LOOKS_PER_PAIR for each pair of vertices within distance two. Where all rows are long, as in
#: a complete graph, each round colors with about 15 more colors, and visits every pair again.
MOST_LOOKS = {"cpu": 10**9, "gpu": 10**11}
MOST_LOOKS_PER_PAIR = {"cpu": 2, "gpu": 8}
#: This method is used if the rows of hubs would need more than LEAST_SHARE times as many visits as all other rows.
LEAST_SHARE = 1.0


def hubs_of(graph: Graph) -> Any | None:
    """Which vertices are hubs (bool, shape (n,), on the graph's device); None if they do not take most of the time.

    The row of a hub takes d^3 / 64 visits at distance two, d being its degree, that of another vertex d^2.
    """
    if graph.max_degree < LEAST_DEGREE:
        return None
    degrees = graph.degrees.astype(np.float64)
    least = max(LEAST_DEGREE, SKEWED * graph.indices.size / graph.n)
    hubs = graph.degrees >= least
    looks, pairs = float((degrees**3)[~hubs].sum()) / WORD, float((degrees**2)[~hubs].sum())
    device = graph.backend.name
    if looks > MOST_LOOKS[device] or looks > MOST_LOOKS_PER_PAIR[device] * pairs:
        hubs = graph.degrees >= LEAST_DEGREE
    of_hubs, of_others = float((degrees**3)[hubs].sum()) / WORD, float((degrees**2)[~hubs].sum())
    return hubs if of_hubs > LEAST_SHARE * (of_others + graph.indices.size) else None


def in_sequence(graph: Graph, hubs: Any, sequence: Any | None) -> tuple[np.ndarray, np.ndarray]:
    """Color first-fit at distance two in a given order, or in row order.

    Returns
    -------
    colors, fronts : numpy.ndarray of int32, shape (n,)
        The number of the front counts from 1, as in `jp`.
    """
    to_host = graph.backend.to_host
    order = np.arange(graph.n, dtype=np.int32) if sequence is None else to_host(sequence)
    colors, fronts = np.full(graph.n, UNCOLORED, np.int32), np.zeros(graph.n, np.int32)
    first_fit(to_host(graph.indptr), to_host(graph.indices), _number_hubs(to_host(hubs)), order, colors, fronts)
    return colors, fronts


def colors_around_hubs(graph: Graph) -> tuple[Any, int]:
    """Color hubs and their neighbors, those of larger degree first, and nobody else.

    Nobody of those left goes through a hub's row when it looks for others within distance two.

    Returns
    -------
    colors : array of int32, shape (n,)
        UNCOLORED for those left. On the graph's device.
    colored : int
        How many have a color; 0 where hubs do not take most of the time.
    """
    xp, to_host = graph.backend.xp, graph.backend.to_host
    hubs = hubs_of(graph)
    if hubs is None:
        return xp.empty(graph.n, np.int32), 0
    indptr, indices, hub = to_host(graph.indptr), to_host(graph.indices), _number_hubs(to_host(hubs))
    near = neighbors_of_hubs(indptr, indices, hub)
    sequence = near[np.argsort(-to_host(graph.degrees)[near], kind="stable")]
    colors, fronts = np.full(graph.n, UNCOLORED, np.int32), np.zeros(graph.n, np.int32)
    first_fit(indptr, indices, hub, sequence, colors, fronts)
    return xp.asarray(colors), len(sequence)


def near_hubs(graph: Graph) -> Any | None:
    """Which vertices are hubs or neighbors of one; None if hubs do not take most of the time."""
    hubs = hubs_of(graph)
    if hubs is None:
        return None
    to_host, near = graph.backend.to_host, np.zeros(graph.n, np.bool_)
    near[neighbors_of_hubs(to_host(graph.indptr), to_host(graph.indices), _number_hubs(to_host(hubs)))] = True
    return graph.backend.xp.asarray(near)


def _number_hubs(hubs: np.ndarray) -> np.ndarray:
    """The number of a hub among the hubs; -1 for all others."""
    return np.where(hubs, np.cumsum(hubs, dtype=np.int32) - 1, -1).astype(np.int32)


@compile_part
def neighbors_of_hubs(indptr, indices, hub):
    """Hubs and their neighbors, in row order."""
    near = np.zeros(len(hub), np.bool_)
    for v in range(len(hub)):
        if hub[v] >= 0:
            near[v] = True
            for k in range(indptr[v], indptr[v + 1]):
                near[indices[k]] = True
    return np.flatnonzero(near).astype(np.int32)


@compile_row
def place_of(key, keys):
    """Where a key is in the table, or else the empty place for it. The table's length is a power of two."""
    place = np.int64(mix64(np.uint64(key)) & np.uint64(len(keys) - 1))
    while keys[place] != EMPTY and keys[place] != key:
        place = (place + 1) & (len(keys) - 1)
    return place


@compile_part
def double_table(keys, words):
    """The same table with twice the places."""
    more_keys, more_words = np.full(2 * len(keys), EMPTY, np.int64), np.zeros(2 * len(keys), np.uint64)
    for i in range(len(keys)):
        if keys[i] != EMPTY:
            place = place_of(keys[i], more_keys)
            more_keys[place], more_words[place] = keys[i], words[i]
    return more_keys, more_words


@compile_row
def word_of(h, number, keys, words):
    """The colors from 64 times the number on that hub h and its neighbors have, a bit each."""
    place = place_of(np.int64(h) << 32 | number, keys)
    return words[place] if keys[place] != EMPTY else np.uint64(0)


@compile_row
def first_zero(word):
    """The lowest bit that is zero; 64 if there is none."""
    bit = 0
    while bit < WORD and (word >> np.uint64(bit)) & np.uint64(1):
        bit += 1
    return bit


@compile_part
def first_fit(indptr, indices, hub, sequence, colors, fronts):
    """Color the vertices of a sequence, which have no colors; those that have count.

    `taken_by[c] == v` says that a row near v that is no hub's shows color c. `smallest` is, for each hub, the smallest
    color that neither it nor a neighbor has, `latest` the largest front that one of them is in. `full` is about the set
    of all hubs near a vertex, which a hash stands for: how many of their words were full when this set was last near a
    vertex. Without it, hubs that share many neighbors, but are no neighbors themselves, would make each of these go
    through all words, for the color of the other hub.
    """
    n = len(hub)
    n_hubs = hub.max() + 1
    smallest, latest = np.zeros(n_hubs, np.int64), np.zeros(n_hubs, np.int32)
    taken_by = np.full(n + WORD, -1, np.int32)
    near = np.empty(n_hubs + 2, np.int32)  # with the diagonal stored, a row is near twice
    keys, words, used = np.full(1024, EMPTY, np.int64), np.zeros(1024, np.uint64), 0
    known, full = np.zeros(KNOWN, np.uint64), np.zeros(KNOWN, np.int64)
    for v in sequence:
        n_near, number, front, those = 0, np.int64(0), 0, np.uint64(1)
        for j in rows_near(v, 2, indptr):
            row = row_near(j, v, indptr, indices)
            h = hub[row]
            if h >= 0:
                near[n_near] = h
                n_near += 1
                those = mix64(those + np.uint64(h + 1) * np.uint64(0x9E3779B97F4A7C15))
                number, front = max(number, smallest[h] // WORD), max(front, latest[h])
                continue
            for k in range(indptr[row], indptr[row + 1]):
                u = indices[k]
                if colors[u] >= 0:
                    taken_by[colors[u]] = v
                    front = max(front, fronts[u])
        slot = np.int64(those & np.uint64(KNOWN - 1))
        if known[slot] == those:
            number = max(number, full[slot])
        known[slot], full[slot] = those, number
        color = -1
        while color < 0:
            taken = np.uint64(0)
            for i in range(n_near):
                taken |= word_of(near[i], number, keys, words)
            bit = first_zero(taken)
            if bit == WORD and full[slot] == number:
                full[slot] = number + 1
            while bit < WORD and taken_by[number * WORD + bit] == v:
                taken |= np.uint64(1) << np.uint64(bit)
                bit = first_zero(taken)
            if bit < WORD:
                color = number * WORD + bit
            number += 1
        colors[v], fronts[v] = color, front + 1
        number, mask = np.int64(color) // WORD, np.uint64(1) << np.uint64(color % WORD)
        for j in rows_near(v, 2, indptr):
            h = hub[row_near(j, v, indptr, indices)]
            if h < 0:
                continue
            latest[h] = max(latest[h], front + 1)
            place = place_of(np.int64(h) << 32 | number, keys)
            if keys[place] == EMPTY:
                keys[place] = np.int64(h) << 32 | number
                used += 1
            words[place] |= mask
            if 2 * used > len(keys):
                keys, words = double_table(keys, words)
            bit = WORD if smallest[h] == color else 0
            while bit == WORD:
                word = smallest[h] // WORD
                bit = first_zero(word_of(h, word, keys, words))
                smallest[h] = word * WORD + bit
