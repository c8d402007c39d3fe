"""Which color comes first: the order in which sweeps take the colors of a coloring.

A method numbers the colors as it happens to find them. Sweeps may take them in any order, but not every order is as
good a preconditioner. Symmetric Gauss-Seidel adds to a symmetric A the remainder transpose(U) inv(D) U, with U all that
comes later in the order, and the less it adds for smooth vectors, the fewer iterations CG takes. For the smoothest one,
all ones, and with all neighbors of a vertex taken for coupled to it equally, that is proportional to

    sum over vertices of (neighbors of a later color)^2 / (all neighbors).

It is least where every vertex has half of its neighbors before it (Doi, Washio: Ordering strategies and related
techniques to overcome the trade-off between parallelism and convergence in incomplete factorizations, Parallel
Computing 25, 1999). The first color has all of its neighbors behind it, so what counts is that colors with many edges
between them follow each other: then what is left for later ones gets less with every color.

With the vertices of a color taken for equal, too, the sum depends only on how many edges there are between any two
colors. They are counted in a sample of the rows. Then single colors are moved to their best places until no move helps,
from the numbers of the method and from random orders. Among orders with nearly the same sum those are better that have
few edges from one color to the next, since a sweep on a GPU then waits less: these edges, weighted, are a part of the
sum that is made small. Only the pattern of A counts, so that new values do not ask for another order, and the order is
the same on every device.

The last color should be a large one: the first half of a sweep finishes its rows, and the second half skips them.
Methods mostly number small colors last. Where the last color is small, the largest one but for the first color is moved
to the end; a single move hardly changes the number of iterations.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, backend_of, compile_loop, compile_part
from mcprecond.backends.hashing import mix
from mcprecond.backends.team.atomics import atomic_add
from mcprecond.coloring import Coloring, coloring_of
from mcprecond.matrix import AdmittedMatrix, admit_matrix

KERNELS = KernelSet(__file__, "OFFSET LANES")

MOST_COLORS = 64  # of more, any order is close to a random one, whose remainder is 4/3 of the least
SAMPLED, SAMPLED_ENTRIES = 2**13, 2**10  # rows, and entries of a row
PARTS = 64  # of the sample, on a CPU
STARTS = 8
WAITING = 0.3  # in shares of the remainder, if all edges led to the color just before
WORTH_IT = 0.95  # of the remainder; a sample does not tell smaller differences
LARGE = 0.5  # of the rows of the largest color
CUDA_CONSTANTS = {"MOST_COLORS": MOST_COLORS, "SAMPLED_ENTRIES": SAMPLED_ENTRIES}


def swept_coloring(matrix: AdmittedMatrix, coloring: Any) -> Coloring:
    """Return the coloring that a preconditioner's `coloring` argument stands for, its colors in the order of sweeps.

    A method's name leaves the order open, so it is chosen; a Coloring or an array has given it.

    Raises
    ------
    TypeError, ValueError
        As `coloring_of`.
    """
    checked = coloring_of(matrix, coloring)
    return reorder(matrix, checked) if isinstance(coloring, str) else checked


def in_best_order(A: Any, coloring: Coloring) -> Coloring:
    """Return the same color classes, numbered so that the remainder of a sweep gets small, and its last color is large.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, shape (n, n)
        Only its pattern is read.
    coloring : Coloring
        Of A, and on its device.

    Returns
    -------
    Coloring
        `coloring` itself if no order was found that is clearly better than its own, and its last color is large; or if
        it has more than 64 colors.

    Raises
    ------
    TypeError, ValueError
        If A is not a square sparse matrix, or the coloring has another length, is on another device, or has colors that
        its sizes do not count.

    Examples
    --------
    On this grid colors that meet diagonally have more edges between them than those that meet side by side, so the two
    of a diagonal follow each other.

    >>> import numpy as np, scipy.sparse
    >>> from mcprecond import color
    >>> from mcprecond.ordering import in_best_order
    >>> line = scipy.sparse.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(4, 4))
    >>> A = scipy.sparse.kron(line, line, format="csr")
    >>> coloring = color(A, "greedy")
    >>> coloring.colors.reshape(4, 4)
    array([[0, 1, 0, 1],
           [2, 3, 2, 3],
           [0, 1, 0, 1],
           [2, 3, 2, 3]], dtype=int32)
    >>> in_best_order(A, coloring).colors.reshape(4, 4)
    array([[2, 0, 2, 0],
           [1, 3, 1, 3],
           [2, 0, 2, 0],
           [1, 3, 1, 3]], dtype=int32)
    """
    matrix = admit_matrix(A)
    backend, n = matrix.backend, matrix.shape[0]
    if not isinstance(coloring, Coloring):
        raise TypeError(f"coloring must be a Coloring, got {type(coloring).__name__}; color(A, ...) returns one")
    if backend_of(coloring.colors).name != backend.name:
        raise TypeError(f"coloring must be on the {backend.name} like A")
    if len(coloring.colors) != n:
        raise ValueError(f"coloring must be of {n} vertices to match A, got {len(coloring.colors)}")
    if n and not 0 <= int(coloring.colors.min()) <= int(coloring.colors.max()) < coloring.n_colors:
        raise ValueError(f"coloring has colors outside of 0..{coloring.n_colors - 1}, which are those of its sizes")
    return reorder(matrix, coloring)


def reorder(matrix: AdmittedMatrix, coloring: Coloring) -> Coloring:
    """`in_best_order` for a coloring that is known to be one of the matrix."""
    backend = matrix.backend
    if not 2 < coloring.n_colors <= MOST_COLORS:  # two are the same backwards
        return coloring
    given_order = np.arange(coloring.n_colors)
    order, share = best_order(couplings_of(matrix, coloring))
    order = with_large_last(order if share <= WORTH_IT else given_order, coloring.sizes)
    if (order == given_order).all():
        return coloring
    numbers = np.empty(len(order), np.int32)
    numbers[order] = np.arange(len(order), dtype=np.int32)
    colors = backend.xp.asarray(numbers)[coloring.colors]
    return replace(coloring, colors=colors, sizes=coloring.sizes[order])


def with_large_last(order: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the order with the largest color but for the first one at the end, unless the last is about as large."""
    largest = order[1:][sizes[order[1:]].argmax()]
    if sizes[order[-1]] >= LARGE * sizes[largest]:
        return order
    return np.append(order[order != largest], largest)


def couplings_of(matrix: AdmittedMatrix, coloring: Coloring, samples: int = SAMPLED) -> np.ndarray:
    """Count the entries from color to color in a sample of the rows: int64, shape (n_colors, n_colors), on the host."""
    backend, n, n_colors = matrix.backend, matrix.shape[0], coloring.n_colors
    table = backend.xp.zeros(n_colors**2, np.int64)
    backend.kernels(KERNELS, OFFSET=matrix.indptr.dtype, LANES=8).count_couplings(
        min(n, samples), n, matrix.indptr, matrix.indices, coloring.colors, n_colors, table
    )
    return backend.to_host(table).reshape(n_colors, n_colors)


def best_order(couplings: np.ndarray) -> tuple[np.ndarray, float]:
    """The colors in the best order found, and its remainder as a share of that of their own order."""
    edges = (couplings + couplings.T) / 2
    return best_from(first_orders(len(couplings)).copy(), edges, np.maximum(edges.sum(axis=1), 1))


@functools.cache
def first_orders(n_colors: int) -> np.ndarray:
    """Where the search for the best order begins: in the order of the numbers, and in some random ones; a row each."""
    given_order = np.arange(n_colors)
    random = (np.argsort(mix.py_func(given_order, start), kind="stable") for start in range(1, STARTS))
    return np.stack([given_order, *random])


@compile_part
def best_from(orders, edges, edges_of):
    """The same from these orders, a row each, which are overwritten; `edges_of` counts all edges of each color."""
    given = max(remainder_of_order(orders[0], edges, edges_of), 1.0)
    total = 0.0
    for color in range(len(edges_of)):
        total += edges_of[color]
    per_edge = WAITING / max(total / 2, 1.0)
    best, least = 0, np.inf
    for start in range(len(orders)):
        improve(orders[start], edges, edges_of, given, per_edge)
        cost = remainder_of_order(orders[start], edges, edges_of) / given + per_edge * waiting(orders[start], edges)
        if cost < least:
            best, least = start, cost
    return orders[best], remainder_of_order(orders[best], edges, edges_of) / given


@compile_part
def remainder_of_order(order, edges, edges_of):
    """The sum over vertices of (neighbors of a later color)^2 / (all neighbors)."""
    total = 0.0
    for place in range(len(order)):
        later = 0.0
        for other in range(place + 1, len(order)):
            later += edges[order[place], order[other]]
        total += later**2 / edges_of[order[place]]
    return total


@compile_part
def waiting(order, edges):
    """The edges to the color just before."""
    total = 0.0
    for place in range(1, len(order)):
        total += edges[order[place - 1], order[place]]
    return total


@compile_part
def improve(order, edges, edges_of, given, per_edge):
    """Move each color to its best place, again and again until no move helps."""
    n_colors = len(order)
    later = np.zeros(n_colors)  # neighbors of each color that are behind it
    for place in range(n_colors):
        c = order[place]
        for other in range(place + 1, n_colors):
            later[c] += edges[c, order[other]]
    unlike = True
    while unlike:
        unlike = False
        for c in range(n_colors):
            place = 0
            while order[place] != c:
                place += 1
            target, gain = place, 1e-9
            for step in (-1, 1):
                behind, gained, last, i = later[c], 0.0, place - step, place + step
                while 0 <= i < n_colors:  # past the color d at place i, between those at `last` and beyond d
                    d = order[i]
                    moved, theirs = behind - step * edges[c, d], later[d] + step * edges[d, c]
                    gained += ((behind**2 - moved**2) / edges_of[c] + (later[d] ** 2 - theirs**2) / edges_of[d]) / given
                    if 0 <= last < n_colors:
                        gained += per_edge * (edges[order[last], c] - edges[order[last], d])
                    if 0 <= i + step < n_colors:
                        gained += per_edge * (edges[d, order[i + step]] - edges[c, order[i + step]])
                    if gained > gain:
                        target, gain = i, gained
                    behind, last, i = moved, i, i + step
            if target != place:
                step = 1 if target > place else -1
                for i in range(place, target, step):
                    d = order[i + step]
                    later[c] -= step * edges[c, d]
                    later[d] += step * edges[d, c]
                    order[i] = d
                order[target] = c
                unlike = True


@KERNELS.strided
def count_couplings(samples, n, indptr, indices, colors, n_colors, table):
    """Count entries by the colors of row and column, in all rows if there are no more; each part by itself first."""
    count_parts(0, PARTS, samples, n, indptr, indices, colors, n_colors, table)


@compile_loop(grain=1)
def count_parts(first, end, samples, n, indptr, indices, colors, n_colors, table):
    """The parts of `count_couplings`."""
    for part in range(first, end):
        counts = np.zeros(n_colors * n_colors, np.int64)
        for sample in range(part * samples // PARTS, (part + 1) * samples // PARTS):
            i = sample if samples == n else mix(sample, 0) % n
            each = (indptr[i + 1] - indptr[i]) // SAMPLED_ENTRIES + 1  # one for so many
            for k in range(indptr[i], indptr[i + 1], each):
                if indices[k] != i:
                    counts[colors[i] * n_colors + colors[indices[k]]] += each
        for place in range(len(counts)):
            atomic_add(table, place, counts[place])
