"""Greedy first-fit coloring in a given order: the quality reference.

Vertices take, one after the other, the smallest color that no neighbor has. Alabandi et al. (2020, Section 1) list six
orders: first-fit (here "natural"), random, largest degree first, smallest degree last, and two in which the colors so
far decide who comes next, saturation degree and incidence degree.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import compile_part, compile_row
from mcprecond.coloring.graph import Graph, row_near, rows_near
from mcprecond.coloring.heap import heap_of, raise_key, take_first
from mcprecond.coloring.history import log_of
from mcprecond.coloring.hubs import hubs_of, in_sequence
from mcprecond.coloring.jp import jp
from mcprecond.coloring.orders import sequence_of

#: At distance two the orders "sd" and "id" are refused beyond both of these: minutes, which hubs take.
MOST_LOOKS = 10**9
MOST_LOOKS_PER_ENTRY = 256


def greedy(graph: Graph, *, distance: int = 1, order: Any = "natural", seed: int = 0) -> tuple[Any, Any]:
    """Color first-fit in the given order: serially on the CPU, by the fronts of `jp` on the GPU, with equal colors.

    Parameters
    ----------
    graph : Graph
    distance : {1, 2}
        At 2 a vertex goes through the rows of its neighbors, too. No graph of all such pairs is built, and "ldf", "sdl"
        and "sdl_batch" go by the number of neighbors. Hubs are no obstacle (`mcprecond.coloring.hubs`), unless the
        order is "sd" or "id".
    order : {"natural", "random", "ldf", "sdl", "sdl_batch", "sd", "id"} or array of int, shape (n,)
        - "natural": row order.
        - "random"
        - "ldf": largest degree first, ties in row order.
        - "sdl": smallest degree last. The order is found serially on the host.
        - "sdl_batch": the same in parallel, see `jp`.
        - "sd": saturation degree, DSATUR: next comes who has the most colors within the distance.
        - "id": incidence degree: next comes who has the most colored vertices within the distance.
        - a permutation: which vertex comes when.

        In "sd" and "id" ties go to who has the most others within the distance, then to the smaller number. The choice
        depends on the colors, so both are serial: from a GPU the graph is brought to the host, and the colors back.
    seed : int
        Of the random order.

    Returns
    -------
    colors : array of int32, shape (n,)
        At most one more than a vertex has others within the distance; the same on every device.
    log : array of int32, shape (rows, 2)
        Front by front on the GPU, one round on the CPU and where the host colors. See `Coloring.history`.

    Raises
    ------
    ValueError
        If the order is "sd" or "id", the distance 2, and the squares of the degrees, one look each at who is near whom,
        add up to more than `MOST_LOOKS` and to more than `MOST_LOOKS_PER_ENTRY` times the entries: a hub of 32,000
        neighbors is enough. A billion looks take about a minute.

    Examples
    --------
    A path colored from its ends needs a third color, unless vertices with colors around them come first:

    >>> import scipy.sparse
    >>> from mcprecond import color
    >>> A = scipy.sparse.diags_array([1.0, 2.0, 1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> color(A, "greedy", order=[0, 3, 1, 2]).n_colors
    3
    >>> color(A, "greedy", order="sd").n_colors
    2
    """
    backend = graph.backend
    if isinstance(order, str) and order in DYNAMIC:
        if distance == 2:
            refuse_too_many_looks(graph, order)
        on_host = (backend.to_host(array) for array in (graph.indptr, graph.indices))
        return backend.xp.asarray(DYNAMIC[order](distance, *on_host)), at_once(graph)
    if backend.name == "gpu":
        return jp(graph, distance=distance, order=order, seed=seed)
    sequence = sequence_of(graph, order, seed)
    if distance == 2 and (hubs := hubs_of(graph)) is not None:
        return in_sequence(graph, hubs, sequence)[0], at_once(graph)
    colors = np.full(graph.n, -1, np.int32)
    first_fit(distance, graph.indptr, graph.indices, sequence, colors)
    return colors, at_once(graph)


def refuse_too_many_looks(graph: Graph, order: str) -> None:
    """Raise ValueError where an order that depends on the colors so far would take minutes or hours."""
    looks = int((graph.degrees.astype(np.float64) ** 2).sum())
    if looks > max(MOST_LOOKS, MOST_LOOKS_PER_ENTRY * graph.indices.size):
        raise ValueError(
            f"order={order!r} at distance 2 would look {looks:.1e} times at who is near whom, as a vertex has "
            f"{graph.max_degree} neighbors; at most {MOST_LOOKS:.0e} are allowed; use order='ldf' or 'natural'"
        )


def at_once(graph: Graph) -> Any:
    """The log of one round."""
    return log_of([graph.n] if graph.n else [], graph.backend)


@compile_row
def color_next(v, distance, indptr, indices, colors, taken_by):
    """Color v, which has no color yet. `taken_by[c] == v` says that a vertex near v has color c."""
    for j in rows_near(v, distance, indptr):
        row = row_near(j, v, indptr, indices)
        for k in range(indptr[row], indptr[row + 1]):
            if colors[indices[k]] >= 0:
                taken_by[colors[indices[k]]] = v
    color = 0
    while taken_by[color] == v:
        color += 1
    colors[v] = color


@compile_part
def first_fit(distance, indptr, indices, sequence, colors):
    """The serial loop."""
    taken_by = np.full(len(colors) + 1, -1, np.int32)
    for v in sequence:
        color_next(v, distance, indptr, indices, colors, taken_by)


@compile_part
def others_near(v, distance, indptr, indices, reached, near):
    """The others near v, each once, as the front of `near`. `reached[u] == v` says that u has been listed for v."""
    count = 0
    reached[v] = v
    for j in rows_near(v, distance, indptr):
        row = row_near(j, v, indptr, indices)
        for k in range(indptr[row], indptr[row + 1]):
            u = indices[k]
            if reached[u] != v:
                reached[u] = v
                near[count] = u
                count += 1
    return near[:count]


@compile_part
def keys_by_degree(distance, indptr, indices):
    """Keys between 1 - n and 0: vertices with more neighbors within the distance come first, equal ones by number."""
    n = len(indptr) - 1
    reached, near, degrees = np.full(n, -1, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    starts = np.zeros(n + 1, np.int64)  # where the vertices of each degree begin, in the order of falling degrees
    for v in range(n):
        degrees[v] = len(others_near(v, distance, indptr, indices, reached, near))
        starts[degrees[v]] += 1
    before = 0
    for degree in range(n, -1, -1):
        before += starts[degree]
        starts[degree] = before - starts[degree]
    key = np.empty(n, np.int64)
    for v in range(n):
        key[v] = -starts[degrees[v]]
        starts[degrees[v]] += 1
    return key


@compile_part
def by_incidence(distance, indptr, indices):
    """ID: whoever is colored raises all others near it by one."""
    n = len(indptr) - 1
    key = keys_by_degree(distance, indptr, indices)
    heap, place = heap_of(key)
    colors, taken_by = np.full(n, -1, np.int32), np.full(n + 1, -1, np.int32)
    reached, near = np.full(n, -1, np.int32), np.empty(n, np.int32)
    for length in range(n, 0, -1):
        v = take_first(heap, place, key, length)
        color_next(v, distance, indptr, indices, colors, taken_by)
        for u in others_near(v, distance, indptr, indices, reached, near):
            if place[u] >= 0:
                raise_key(heap, place, key, u, n)
    return colors


@compile_part
def shows(row, color, indptr, shown, counts):
    """Whether a vertex that the row lists has the color."""
    colors = shown[indptr[row] : indptr[row] + counts[row]]
    place = np.searchsorted(colors, color)
    return place < len(colors) and colors[place] == color


@compile_part
def show(row, color, indptr, shown, counts):
    """Insert a color into the sorted list of those that a row shows, unless it is there."""
    begin = indptr[row]
    place = end = begin + counts[row]
    while place > begin and shown[place - 1] > color:
        place -= 1
    if place > begin and shown[place - 1] == color:
        return
    for k in range(end, place, -1):
        shown[k] = shown[k - 1]
    shown[place] = color
    counts[row] += 1


@compile_part
def sees(v, color, distance, indptr, indices, shown, counts):
    """Whether a row near v shows the color."""
    for j in rows_near(v, distance, indptr):
        if shows(row_near(j, v, indptr, indices), color, indptr, shown, counts):
            return True
    return False


@compile_part
def by_saturation(distance, indptr, indices):
    """SD: whoever is colored raises those near it by one that had not seen that color.

    `shown` lists, from `indptr[row]` on, the `counts[row]` different colors of the vertices that the row lists, sorted.
    The colors around a vertex are those that the rows near it show; to list them by vertex would take the memory of all
    pairs within distance two.
    """
    n = len(indptr) - 1
    key = keys_by_degree(distance, indptr, indices)
    heap, place = heap_of(key)
    colors, taken_by = np.full(n, -1, np.int32), np.full(n + 1, -1, np.int32)
    reached, near = np.full(n, -1, np.int32), np.empty(n, np.int32)
    shown, counts = np.empty(len(indices), np.int32), np.zeros(n, np.int32)
    for length in range(n, 0, -1):
        v = take_first(heap, place, key, length)
        color_next(v, distance, indptr, indices, colors, taken_by)
        for u in others_near(v, distance, indptr, indices, reached, near):
            if place[u] >= 0 and not sees(u, colors[v], distance, indptr, indices, shown, counts):
                raise_key(heap, place, key, u, n)
        for k in range(indptr[v], indptr[v + 1]):
            show(indices[k], colors[v], indptr, shown, counts)
    return colors


#: Orders that depend on the colors so far: functions of the graph and the distance that color it.
DYNAMIC = {"sd": by_saturation, "id": by_incidence}
