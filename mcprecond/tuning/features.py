"""Features of a matrix that tell which preconditioner is the fastest, from a sample of its rows.

The rows are drawn at random, with a fixed seed. Only they, the neighbors of some and, for a few of them, the neighbors
of these are read, so that features take about the same time for matrices of all sizes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mcprecond.matrix import AdmittedMatrix

#: How many rows are read; of how many of them the neighbors are read, too, and of how many the neighbors of these.
ROWS, NEAR, FAR = 128, 16, 12
#: The neighbors of neighbors are not read if their rows have more than MOST_ENTRIES entries, and no neighbors if there
#: are hubs: if the longest row has more than HUB times as many entries as the average row.
MOST_ENTRIES, HUB = 10**6, 50
#: The largest growth of graphs that are like a line, a grid in a plane and a grid in space. Grids of 5, 9, 7 and 27
#: points have 1.9, 2.0, 2.5 and 2.7.
GROWTH = 1.7, 2.35, 3.5
#: Shares of the diagonal are cut off here, so that sums of them are finite.
HUGE = 1e30


class Features(NamedTuple):
    """What the predictions depend on.

    Attributes
    ----------
    n, entries, longest_row : int
        Rows of the matrix, all of its entries, and those of its longest row.
    surplus : float
        The median of ``(2 |a_ii| - sum_j |a_ij|) / |a_ii|``: how much the diagonal dominates.
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
        k and j, and `dropped` the magnitude of their sum over those for which a_ij is not stored. These are the 0.9
        quantiles. They are 1/4 and 1/8 for the Laplacian on five points.
    contrast : float
        By how many decades the largest entry beside the diagonal of a row is below that of one of its neighbors: the
        0.9 quantile. About 0 where coefficients vary smoothly.
    in_nodes : float
        The share of rows that have entries in the same columns as the row before or the one after, as where a node has
        several unknowns.
    """

    n: int
    entries: int
    longest_row: int = 0
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
    def has_hubs(self) -> bool:
        """Whether some rows are far longer than others."""
        return self.longest_row * self.n > HUB * self.entries

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
    A, n = matrix.canonical(), matrix.shape[0]
    found = Features(n, A.indices.size, A.max_degree + 1)
    if not A.indices.size:
        return found
    rows = np.arange(n) if n <= ROWS else np.unique(np.random.default_rng(0).integers(0, n, ROWS))
    part = read_rows(A, rows)
    row, ahead, shares = part.row, part.ahead, part.shares
    of_rows, of_columns = (sizes_of_diagonal(A, numbers) for numbers in (rows, part.columns))
    with np.errstate(all="ignore"):  # in units in which the diagonal is even
        even = np.minimum(np.nan_to_num(abs(shares) * np.sqrt(of_rows[row] / of_columns[part.csr.indices])), HUGE)
    beside, even_beside = (np.bincount(row, sizes, len(rows))[part.has_pivots] for sizes in (abs(shares), even))
    positive, negative = (float(np.maximum(sign * shares.real, 0).sum()) / max(len(beside), 1) for sign in (1, -1))
    farthest = np.zeros(len(rows))
    np.maximum.at(farthest, row, abs(ahead))
    found = found._replace(
        surplus=float(1 - max(np.median(beside), np.median(even_beside))) if len(beside) else 0.0,
        positive=positive,
        negative=negative,
        width=float(farthest.mean()),
    )
    if found.has_hubs:
        return found._replace(growth=np.inf, products=np.inf, dropped=np.inf)
    near = part.take(spread(len(rows), NEAR))
    around = read_rows(A, near.columns)
    few = near.take(spread(len(near.rows), FAR))
    products, dropped = changes_by_ilu0(near, around)
    return found._replace(
        growth=growth_of(A, few, around),
        products=products,
        dropped=dropped,
        contrast=contrast_of(near, around),
        in_nodes=share_in_nodes(near, around),
    )


class Part(NamedTuple):
    """Some rows of a matrix, on the host: their numbers, those of the columns with entries, and the entries."""

    rows: Any
    columns: Any
    csr: Any

    @classmethod
    def of(cls, rows: Any, indptr: Any, columns: Any, values: Any) -> Part:
        """From the rows' entries as in CSR form."""
        found, places = np.unique(columns, return_inverse=True)
        return cls(rows, found, sp.csr_array((values, places, indptr), shape=(len(rows), len(found))))

    @property
    def row(self) -> Any:
        """For each entry the place of its row."""
        return np.repeat(np.arange(len(self.rows)), np.diff(self.csr.indptr))

    @property
    def ahead(self) -> Any:
        """For each entry how many columns it is to the right of the diagonal."""
        return self.columns[self.csr.indices] - self.rows[self.row]

    @property
    def pivots(self) -> Any:
        """The diagonal entry of each row, 0 where none is stored."""
        found, on_diagonal = np.zeros(len(self.rows), self.csr.dtype), self.ahead == 0
        found[self.row[on_diagonal]] = self.csr.data[on_diagonal]
        return found

    @property
    def has_pivots(self) -> Any:
        """For each row whether it has a diagonal entry other than 0."""
        return self.pivots != 0

    @property
    def shares(self) -> Any:
        """The entries, divided by the diagonal entries of their rows; 0 on the diagonal, and in rows without one."""
        with np.errstate(all="ignore"):
            shares = self.csr.data / self.pivots[self.row]
        shares[(self.ahead == 0) | ~self.has_pivots[self.row]] = 0
        return np.clip(shares.real, -HUGE, HUGE) + (1j * shares.imag if np.iscomplexobj(shares) else 0)

    @property
    def largest(self) -> Any:
        """For each row the largest magnitude beside the diagonal."""
        found = np.zeros(len(self.rows))
        np.maximum.at(found, self.row, np.where(self.ahead == 0, 0, abs(self.csr.data)))
        return found

    def with_values(self, values: Any) -> Any:
        """The matrix with other values for its entries."""
        return sp.csr_array((values, self.csr.indices, self.csr.indptr), shape=self.csr.shape)

    def take(self, places: Any) -> Part:
        """The rows at these places."""
        csr = self.csr[places]
        return Part.of(self.rows[places], csr.indptr, self.columns[csr.indices], csr.data)


def read_rows(A: AdmittedMatrix, rows: Any) -> Part:
    """Copy some rows to the host."""
    xp, to_host = A.backend.xp, A.backend.to_host
    begins, ends = (to_host(A.indptr[xp.asarray(rows + next_one)]).astype(np.int64) for next_one in (0, 1))
    indptr = np.concatenate([[0], np.cumsum(ends - begins)])
    places = xp.asarray(np.arange(indptr[-1]) + np.repeat(begins - indptr[:-1], ends - begins))
    return Part.of(rows, indptr, to_host(A.indices[places]), to_host(A.data[places]))


def sizes_of_diagonal(A: AdmittedMatrix, rows: Any) -> Any:
    """Copy the magnitudes of some diagonal entries to the host."""
    return abs(A.backend.to_host(A.diagonal()[A.backend.xp.asarray(rows)])).astype(np.float64)


def count_entries(A: AdmittedMatrix, rows: Any) -> int:
    """How many entries some rows have."""
    rows = A.backend.xp.asarray(rows)
    return int((A.indptr[rows + 1] - A.indptr[rows]).sum())


def spread(n: int, most: int) -> Any:
    """At most so many of n places, evenly spread."""
    return np.arange(0, n, -(-n // most))


def growth_of(A: AdmittedMatrix, few: Part, around: Part) -> float:
    """See `Features.growth`: for a few rows, with their neighbors among the rows `around`."""
    places = np.searchsorted(around.rows, few.columns)
    second = around.take(places)
    reached = few.with_values(np.ones(few.csr.nnz)) @ second.with_values(np.ones(second.csr.nnz))
    if count_entries(A, second.columns) > MOST_ENTRIES:
        return np.inf
    third = read_rows(A, second.columns)
    farther = reached @ third.with_values(np.ones(third.csr.nnz))
    return float(farther.nnz / reached.nnz) if reached.nnz else 1.0


def changes_by_ilu0(near: Part, around: Part) -> tuple[float, float]:
    """`Features.products` and `Features.dropped`: for some rows, whose neighbors are the rows `around`."""
    lower = near.with_values(np.where(near.ahead < 0, near.shares, 0))
    upper = around.with_values(np.where(around.ahead > 0, around.shares, 0))
    sizes, products = (abs(lower) @ abs(upper)).sum(axis=1), lower @ upper
    columns = near.columns[near.csr.indices]
    known = np.isin(columns, around.columns)
    places = near.row[known], np.searchsorted(around.columns, columns[known])
    stored = sp.csr_array((np.ones(len(places[0])), places), shape=products.shape)
    changes = products.sum(axis=1) - products.multiply(stored).sum(axis=1)
    both = (float(np.quantile(abs(sums), 0.9, method="higher")) for sums in (sizes, changes))
    return next(both), next(both)


def contrast_of(near: Part, around: Part) -> float:
    """See `Features.contrast`: for some rows, whose neighbors are the rows `around`."""
    of_row, of_neighbor = near.largest, around.largest[near.csr.indices]
    row = near.row
    with np.errstate(all="ignore"):
        ratios = np.where(near.ahead == 0, 1, of_neighbor / of_row[row])
    most = np.ones(len(near.rows))
    np.maximum.at(most, row, np.nan_to_num(ratios, nan=1.0, posinf=1.0))
    return float(np.log10(np.quantile(most, 0.9, method="higher")))


def share_in_nodes(near: Part, around: Part) -> float:
    """See `Features.in_nodes`: for some rows, whose neighbors are the rows `around`."""

    def columns_in(row: int) -> Any:
        place = np.searchsorted(around.rows, row)
        is_there = place < len(around.rows) and around.rows[place] == row
        return around.csr.indices[slice(*around.csr.indptr[place : place + 2])] if is_there else None

    found = []
    for row in near.rows:
        own, *beside = (columns_in(row + step) for step in (0, -1, 1))
        found.append(own is not None and any(other is not None and np.array_equal(own, other) for other in beside))
    return float(np.mean(found))
