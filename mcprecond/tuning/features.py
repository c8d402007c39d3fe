"""Features of a matrix that tell which preconditioner is the fastest, from a sample of its rows.

The rows are drawn at random, with a fixed seed. Only they, the neighbors of some and, for a few of them, the neighbors
of these are read, so that features take about the same time for matrices of all sizes.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from mcprecond.backends import KernelSet, compile_inlined, compile_row
from mcprecond.backends.cuda_source import BLOCK
from mcprecond.backends.sorting import lower_bound
from mcprecond.matrix import AdmittedMatrix

KERNELS = KernelSet(__file__, "OFFSET VALUE (LANES)")

#: At most ROWS rows are sampled. For the first NEAR of them, the rows of their neighbors are read, too. For the first
#: FAR of them, the rows that can be reached in at most three steps are counted, up to MOST_REACHED.
ROWS, NEAR, FAR, MOST_REACHED = 128, 16, 12, 2048
#: A graph counts as one-dimensional up to the first growth, as two-dimensional up to the second one, and as
#: three-dimensional up to the third one. In two dimensions, stencils of 5 and 9 points have a growth of 1.9 and 2.0; in
#: three dimensions, stencils of 7 and 27 points have 2.5 and 2.7.
GROWTH = 1.7, 2.35, 3.5
#: The surplus is computed for A, and for A scaled to a diagonal of ones. If the two differ by less than SAME_UNITS, all
#: unknowns are assumed to have the same unit.
SAME_UNITS = 0.1
#: Each entry is divided by the diagonal entry of its row. Quotients larger than HUGE are replaced by HUGE, which keeps
#: their sums finite.
HUGE = 1e30
HAS_PIVOT, BESIDE, EVEN, POSITIVE, NEGATIVE, FARTHEST, CONTRAST, IN_NODES, IN_TWO, IN_THREE, PRODUCTS, DROPPED = range(
    FIELDS := 12
)
CUDA_CONSTANTS = {
    **{"FIELDS": FIELDS, "HAS_PIVOT": HAS_PIVOT, "BESIDE": BESIDE, "FARTHEST": FARTHEST, "CONTRAST": CONTRAST},
    **{"IN_NODES": IN_NODES, "IN_TWO": IN_TWO, "IN_THREE": IN_THREE, "PRODUCTS": PRODUCTS, "DROPPED": DROPPED},
    **{"MOST_REACHED": MOST_REACHED, "HUGE_SHARE": HUGE},
}


class Features(NamedTuple):
    """What the predictions depend on.

    Attributes
    ----------
    n, entries : int
        Rows of the matrix, and its entries.
    has_hubs : bool
        See `AdmittedMatrix.has_hubs`. Then nothing is known of neighbors.
    surplus : float
        The median of ``(2 |a_ii| - sum_j |a_ij|) / |a_ii|``: how much the diagonal dominates. If unknowns have
        different units, in units in which the diagonal is even.
    positive, negative : float
        For each row, the sum of the off-diagonal entries that have the sign of the diagonal entry, and of those that
        have the other sign, divided by that entry; the means over the rows. Upwind differences have 0 and 1. Streamline
        diffusion has up to 1/3 positive ones, more of them the smaller the diffusion is.
    growth : float
        How many times as many rows can be reached in three steps as in two, along entries: from some rows, in all.
        Infinite if these are too many to count.
    width : float
        The distance from the diagonal to the farthest entry of a row: the mean.
    products, dropped : float
        What ILU0 changes in a row, if it factors A in the order of the rows, by the products ``l_ik u_kj`` of the
        entries of the triangles of A, divided by the diagonal entry. `products` is the sum of their magnitudes over all
        k and j, and `dropped` the magnitude of the real part of their sum over those for which a_ij is not stored.
        These are the 0.9 quantiles. They are 1/4 and 1/8 for the Laplacian on five points.
    contrast : float
        By how many decades the largest entry beside the diagonal of a row is below that of one of its neighbors: the
        0.9 quantile. About 0 where coefficients vary smoothly.
    in_nodes : float
        The share of rows that have entries in the same columns as the row before or the one after, as where a node has
        several unknowns.
    """

    n: int
    entries: int
    has_hubs: bool = False
    surplus: float = 0.0
    positive: float = 0.0
    negative: float = 0.0
    growth: float = 1.0
    width: float = 0.0
    products: float = 0.0
    dropped: float = 0.0
    contrast: float = 0.0
    in_nodes: float = 0.0

    @property
    def dimensions(self) -> int | None:
        """Those of the grid that the graph is like; None if it is like none, since more rows can be reached. A tree is
        like a line.
        """
        if self.entries <= 3 * self.n and not self.has_hubs:
            return 1
        return next((number for number, most in enumerate(GROWTH, 1) if self.growth <= most), None)


def with_features(matrix: AdmittedMatrix) -> AdmittedMatrix:
    """Return the matrix with its features, if it does not have them yet."""
    return matrix if matrix.features is not None else matrix.knowing(features=features_of(matrix))


def features_of(matrix: AdmittedMatrix) -> Features:
    """Find the features of a matrix."""
    A, n, backend = matrix.canonical(), matrix.shape[0], matrix.backend
    features = Features(n, A.indices.size, A.has_hubs)
    if not A.indices.size:
        return features
    rows = sampled_rows(n)
    count = len(rows)
    near, far = (0, 0) if A.has_hubs else (min(NEAR, count), min(FAR, count))
    run = backend.kernels(KERNELS, OFFSET=A.indptr.dtype, VALUE=A.dtype, LANES=BLOCK)
    of_rows = backend.zeros(count * FIELDS, np.float64).reshape(count, FIELDS)
    arrays = A.indptr, A.indices, A.data, A.diagonal()
    run.sample_rows(count, near, far, n, backend.xp.asarray(rows), *arrays, of_rows)
    found = backend.to_host(of_rows)
    of_pivots, sums, sums_of_far = found[found[:, HAS_PIVOT] > 0], found.sum(axis=0), found[:far].sum(axis=0)
    usually = np.sort(found[:near], axis=0)[math.ceil(0.9 * (near - 1))] if near else np.full(FIELDS, np.inf)
    is_counted = far and found[:far, IN_THREE].min() > 0
    return features._replace(
        surplus=surplus_of(of_pivots) if len(of_pivots) else 0.0,
        positive=float(sums[POSITIVE]) / count,
        negative=float(sums[NEGATIVE]) / count,
        width=float(sums[FARTHEST]) / count,
        growth=float(sums_of_far[IN_THREE] / sums_of_far[IN_TWO]) if is_counted else np.inf,
        contrast=math.log10(usually[CONTRAST]) if near else 0.0,
        in_nodes=float(found[:near, IN_NODES].sum()) / near if near else 0.0,
        products=float(usually[PRODUCTS]),
        dropped=float(usually[DROPPED]),
    )


@lru_cache(maxsize=64)
def sampled_rows(n: int) -> Any:
    """Draw the rows of a matrix with n rows: the same ones each time, in random order."""
    random = np.random.default_rng(0)
    rows = np.arange(n) if n <= ROWS else np.unique(random.integers(0, n, ROWS))
    return random.permutation(rows).astype(np.int32)


def surplus_of(of_rows: Any) -> float:
    """See `Features.surplus`. Where both sums are nearly the same, the units are those of the user."""
    # Of so few numbers NumPy's median takes much longer.
    ordered, n = np.sort(of_rows[:, [BESIDE, EVEN]], axis=0), len(of_rows)
    own, even = (float(1 - middle) for middle in (ordered[(n - 1) // 2] + ordered[n // 2]) / 2)
    return own if abs(own - even) < SAME_UNITS else min(own, even)


# On the CPU.


@KERNELS.per_item_driver
def sample_rows(count, near, far, n, rows, indptr, indices, values, diagonal, found):
    """Find the features of some rows: of the first `near` ones also those that depend on neighbors, and of the first
    `far` ones how many rows can be reached.
    """
    table, reached = np.empty(2 * MOST_REACHED, np.int32), np.empty(MOST_REACHED, np.int32)
    for sampled in range(count):
        i, of_row = rows[sampled], found[sampled]
        add_up_row(i, indptr, indices, values, diagonal, of_row)
        if sampled < near:
            own, beside = largest_beside(i, indptr, indices, values), 0.0
            for k in range(indptr[i], indptr[i + 1]):
                beside = max(beside, largest_beside(indices[k], indptr, indices, values))
            of_row[CONTRAST] = max(beside / own, 1.0) if own > 0 else 1.0
            alike = is_alike(i, i - 1, n, indptr, indices) or is_alike(i, i + 1, n, indptr, indices)
            of_row[IN_NODES] = 1.0 if alike else 0.0
            of_row[PRODUCTS], of_row[DROPPED] = products_of_ilu0(i, indptr, indices, values, diagonal)
        if sampled < far:
            of_row[IN_TWO], of_row[IN_THREE] = count_reached(i, indptr, indices, table, reached)


@compile_inlined
def bounded(share):
    """A share of the diagonal, cut off so that sums are finite; also where it is no number."""
    return share if share < HUGE else HUGE


@compile_row
def add_up_row(i, indptr, indices, values, diagonal, of_row):
    """The sums over row i of its entries beside the diagonal, divided by the diagonal entry."""
    begin, end, pivot = indptr[i], indptr[i + 1], diagonal[i]
    if end > begin:
        of_row[FARTHEST] = max(abs(np.int64(indices[begin]) - i), abs(np.int64(indices[end - 1]) - i))
    if not abs(pivot) > 0:
        return
    of_row[HAS_PIVOT] = 1.0
    for k in range(begin, end):
        j = indices[k]
        if j == i:
            continue
        size, other = bounded(np.float64(abs(values[k])) / np.float64(abs(pivot))), np.float64(abs(diagonal[j]))
        share = np.float64((values[k] / pivot).real)
        of_row[BESIDE] += size
        if other > 0:
            of_row[EVEN] += bounded(size * np.sqrt(np.float64(abs(pivot)) / other))
        of_row[POSITIVE if share > 0 else NEGATIVE] += bounded(abs(share))


@compile_row
def largest_beside(i, indptr, indices, values):
    """The largest magnitude beside the diagonal of row i."""
    largest = 0.0
    for k in range(indptr[i], indptr[i + 1]):
        if indices[k] != i:
            largest = max(largest, np.float64(abs(values[k])))
    return largest


@compile_row
def is_alike(i, other, n, indptr, indices):
    """Whether a row has its entries in the same columns as row i."""
    if other < 0 or other >= n:
        return False
    length = indptr[i + 1] - indptr[i]
    if length < 2 or indptr[other + 1] - indptr[other] != length:
        return False
    differ = 0
    for k in range(length):
        differ += indices[indptr[i] + k] != indices[indptr[other] + k]
    return differ == 0


@compile_row
def products_of_ilu0(i, indptr, indices, values, diagonal):
    """`Features.products` and `Features.dropped` of row i."""
    sizes = dropped = 0.0
    if not abs(diagonal[i]) > 0:
        return sizes, sizes
    for k in range(indptr[i], indptr[i + 1]):
        before = indices[k]
        pivot = diagonal[before]
        if before >= i or not abs(pivot) > 0:
            continue
        for m in range(indptr[before], indptr[before + 1]):
            j = indices[m]
            if j <= before:
                continue
            product = values[k] / diagonal[i] * (values[m] / pivot)
            sizes += bounded(np.float64(abs(product)))
            place = lower_bound(indices, indptr[i], indptr[i + 1], j)
            if not (place < indptr[i + 1] and indices[place] == j):
                dropped += np.float64(product.real)
    return sizes, bounded(abs(dropped))


@compile_inlined
def is_new(column, table):
    """Add a column to a hash table with open addresses; whether it was not there."""
    place = np.uint32(column) * np.uint32(2654435761) % np.uint32(len(table))
    while table[place] != column:
        if table[place] == -1:
            table[place] = column
            return True
        place = (place + np.uint32(1)) % np.uint32(len(table))
    return False


@compile_row
def count_reached(i, indptr, indices, table, reached):
    """How many rows can be reached from row i in two and in three steps; -1 if they are too many."""
    for place in range(len(table)):
        table[place] = -1
    reached[0] = i
    is_new(i, table)
    first, count, in_two = 0, 1, 0
    for step in range(1, 4):
        end = count
        for member in range(first, end):
            row = reached[member]
            for k in range(indptr[row], indptr[row + 1]):
                if is_new(indices[k], table):
                    if count + 1 >= len(reached):
                        return -1.0, -1.0
                    reached[count] = indices[k]
                    count += 1
        first = end
        if step == 2:
            in_two = count
    return np.float64(in_two), np.float64(count)
