"""Vertices taken one by one, largest priority first, while priorities rise: a binary heap that knows places.

`heap` holds the vertices, `place` where each stands in it (-1: taken), `key` the priorities, all different.
"""

from __future__ import annotations

import numpy as np

from mcprecond.backends import compile_part


@compile_part
def sink(heap, place, key, v, i, length):
    """Put v at place i of the first `length`, or below it: those of larger priority move up."""
    while 2 * i + 1 < length:
        child = 2 * i + 1
        if child + 1 < length and key[heap[child + 1]] > key[heap[child]]:
            child += 1
        if key[heap[child]] < key[v]:
            break
        heap[i] = heap[child]
        place[heap[i]] = i
        i = child
    heap[i] = v
    place[v] = i


@compile_part
def heap_of(key):
    """The heap of all vertices, and their places."""
    heap = np.arange(len(key), dtype=np.int32)
    place = heap.copy()
    for i in range(len(key) // 2 - 1, -1, -1):
        sink(heap, place, key, heap[i], i, len(key))
    return heap, place


@compile_part
def raise_key(heap, place, key, v, amount):
    """Raise the priority of v, which is still in the heap."""
    key[v] += amount
    i = place[v]
    while i > 0:
        parent = (i - 1) // 2
        if key[heap[parent]] > key[v]:
            break
        heap[i] = heap[parent]
        place[heap[i]] = i
        i = parent
    heap[i] = v
    place[v] = i


@compile_part
def take_first(heap, place, key, length):
    """Take the vertex of largest priority out of the first `length` places, which are the heap."""
    first = heap[0]
    sink(heap, place, key, heap[length - 1], 0, length - 1)
    place[first] = -1
    return first
