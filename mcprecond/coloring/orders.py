"""Orders in which vertices are colored, for the methods that take one; Alabandi et al. (2020), Sections 1 and 4."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from mcprecond.backends import Backend, KernelSet, compile_loop, compile_part
from mcprecond.backends.arguments import did_you_mean
from mcprecond.backends.hashing import mix
from mcprecond.backends.inputs import any_of, integers
from mcprecond.backends.team.atomics import atomic_add
from mcprecond.coloring.graph import Graph
from mcprecond.coloring.heap import heap_of, raise_key, take_first

KERNELS = KernelSet(__file__, "OFFSET")

ORDERS = ("natural", "random", "ldf", "sdl", "sdl_batch")


def sequence_of(graph: Graph, order: Any, seed: int) -> Any:
    """Return the vertices in the order in which they are colored.

    Parameters
    ----------
    graph : Graph
    order : {"natural", "random", "ldf", "sdl", "sdl_batch"} or array of int, shape (n,)
        Row order; a random one; largest degree first, ties in row order; smallest degree last, exactly
        (`smallest_degree_last`) or in parallel (`smallest_degrees_last`); or a permutation: which vertex comes when.
    seed : int
        Of the random order.

    Returns
    -------
    array of int32, shape (n,)

    Raises
    ------
    TypeError, ValueError
        If the order is neither known nor a permutation.
    """
    xp, backend, n = graph.backend.xp, graph.backend, graph.n
    if not isinstance(order, str):
        return permutation(order, n, backend)
    if order == "natural":
        return xp.arange(n, dtype=np.int32)
    if order == "random":
        keys = xp.empty(n, np.uint32)
        backend.kernels(KERNELS, OFFSET=graph.indptr.dtype).random_keys(n, seed & 0xFFFFFFFF, keys)
        return by_keys(keys, xp)
    if order == "ldf":
        return by_keys(graph.max_degree - graph.degrees, xp)
    if order == "sdl":
        on_host = (backend.to_host(array) for array in (graph.indptr, graph.indices, graph.degrees))
        return xp.asarray(smallest_degree_last(*on_host))
    if order == "sdl_batch":
        return smallest_degrees_last(graph)
    hint = did_you_mean(order, ORDERS)
    raise ValueError(f"order must be one of {', '.join(ORDERS)} or a permutation, got {order!r}{hint}")


def permutation(order: Any, n: int, backend: Backend, name: str = "order", names: Collection[str] = ORDERS) -> Any:
    """Return an order that a user gives, as an array of int32; messages call it `name`, and say what else it may be.

    Raises
    ------
    TypeError
        If it does not hold integers, or is on the GPU where A is not.
    ValueError
        If it is no permutation of 0..n - 1; the message says why.
    """
    or_one = f"one of {', '.join(names)} or " if names else ""
    xp, wanted = backend.xp, f"{name} must be {or_one}a permutation of 0..{n - 1}"
    sequence = integers(order, backend, wanted)
    if sequence.shape != (n,):
        raise ValueError(f"{wanted}, got an array of shape {sequence.shape}")
    wrong = xp.sort(sequence) != xp.arange(n)
    if any_of(wrong):
        # The first place of the sorted array that differs: what is there is too small, occurs twice, or is too large.
        place = int(wrong.argmax())
        found = int(xp.sort(sequence)[place])
        raise ValueError(f"{wanted}, got {found} {'twice' if 0 <= found < place else 'and not ' + str(place)}")
    return sequence.astype(np.int32)


def by_keys(keys: Any, xp: Any) -> Any:
    """Return the vertices by rising keys, which are non-negative and below 2^32; ties in row order."""
    # NumPy sorts words several times faster than it sorts stably by keys.
    words = keys.astype(np.uint64) << np.uint64(32) | xp.arange(len(keys), dtype=np.uint64)
    words.sort()
    return words.astype(np.uint32).astype(np.int32)


@KERNELS.per_item
def random_keys(first, end, seed, keys):
    """What a random order sorts by."""
    for v in range(first, end):
        keys[v] = mix(v, seed)


@compile_part
def smallest_degree_last(indptr, indices, degrees):
    """SDL, exactly: remove a vertex of the smallest remaining degree, again and again; the last one is colored first.

    Of several, the one of smallest number is removed. A vertex then has at most `degeneracy` neighbors that are colored
    before it (Matula, Beck 1983). Serial, on the host.
    """
    n = len(degrees)
    key = -degrees.astype(np.int64) * n - np.arange(n)
    heap, place = heap_of(key)
    sequence = np.empty(n, np.int32)
    for length in range(n, 0, -1):
        v = take_first(heap, place, key, length)
        sequence[length - 1] = v
        for k in range(indptr[v], indptr[v + 1]):
            if place[indices[k]] >= 0:
                raise_key(heap, place, key, indices[k], n)
    return sequence


def smallest_degrees_last(graph: Graph) -> Any:
    """SDL in parallel: with d = 0, 1, 2, ..., remove all vertices of remaining degree at most d, again and again.

    Those of the last batch are colored first, those of a batch in row order. Within a batch degrees are not updated;
    still at most `degeneracy` neighbors of a vertex are colored before it, since it had no more left when its batch was
    removed. Alabandi et al. (Section 4) describe this form.
    """
    xp, n = graph.backend.xp, graph.n
    left, batch = graph.degrees.copy(), xp.empty(n, np.int32)
    removed, scratch = xp.empty((2, n), np.int32), xp.zeros(8, np.int32)
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype)
    run.remove_in_batches(n, graph.indptr, graph.indices, left, batch, removed, scratch)
    return by_keys(n - batch, xp)


@compile_loop
def remove_batch(first, end, d, number, vertices, indptr, indices, left, batch, following, length):
    """Take a batch out of its neighbors' degrees; whoever comes down to d is of the next batch."""
    for i in range(first, end):
        v = vertices[i]
        for k in range(indptr[v], indptr[v + 1]):
            u = indices[k]
            if u != v and atomic_add(left, u, np.int32(-1)) == d + 1:
                batch[u] = number + 1
                following[atomic_add(length, 0, np.int32(1))] = u


@KERNELS.resident
def remove_in_batches(n, indptr, indices, left, batch, removed, scratch):
    """Number the batches; `left` holds the degrees before, `removed` the vertices of a batch and of the next one."""
    batch[:] = -1
    number = gone = d = 0
    while gone < n:
        vertices = np.flatnonzero((batch < 0) & (left <= d)).astype(np.int32)
        batch[vertices] = number
        while len(vertices):
            length = np.zeros(1, np.int32)
            remove_batch(
                0, len(vertices), d, number, vertices, indptr, indices, left, batch, removed[number % 2], length
            )
            gone += len(vertices)
            vertices = removed[number % 2, : length[0]].copy()
            number += 1
        d += 1
