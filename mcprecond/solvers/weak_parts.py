"""What neither the residual nor the coefficients of CG see: weakly coupled parts of the graph with a wrong mean.

Where entries of A differ by many orders of magnitude, as the weights of a random walker on an image, unknowns form
parts, with strong entries inside and weak ones across. If x is wrong by a constant on a part, the residual is as small
as the weak entries, and CG may not have found that vector yet. With the indicator c of a part and the residual r, the
constant c'r / c'A c is the best correction of x there, and it would reduce the square of the error's energy norm by
(c'r)^2 / c'A c, whatever CG believes.

The parts are the connected components of the graph of entries above a limit, for a limit in each decade. The device
finds those of the first limit by union-find, all entries at once (Jaiganesh, Burtscher: A high-performance connected
components implementation for GPUs, HPDC 2018). Few entries connect these, and the host joins them further, limit by
limit.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from mcprecond.backends import Backend, KernelSet, compile_row, get_backend
from mcprecond.linalg.csr import Csr, product_with
from mcprecond.matrix import AdmittedMatrix, rows_of, transpose

KERNELS = KernelSet(__file__)

#: The solver searches for weakly coupled parts only if at least the fraction FEW of a sample of about SAMPLE entries is
#: weak. An off-diagonal entry is weak if its magnitude is at most `weak_for` times the largest off-diagonal magnitude.
#: Entries below LEAST times that magnitude are ignored, because in an assembled matrix they are rounding errors. The
#: diagonal is ignored as well: a vertex of high degree or a Dirichlet condition can make a diagonal entry very large
#: without any strong coupling.
LEAST, FEW, SAMPLE = 1e-14, 2e-3, 2**12
#: If a solve has reduced the residual by the factor rtol, entries below SEEN times rtol times the largest one have
#: hardly any effect on it. WEAK has the bounds of SEEN times rtol.
SEEN, WEAK = 10.0, (1e-6, 1e-4)
#: Sums are rounding below this share of the sum of magnitudes.
ROUNDING = 1e-14


class Hidden(NamedTuple):
    """What corrections by constants on parts would change.

    Attributes
    ----------
    energy : float
        The square of the error's energy norm would be less by this.
    largest : float
        The largest constant.
    """

    energy: float
    largest: float


def weak_for(rtol: float) -> float:
    """The largest magnitude of weak entries, relative to the largest entry, after a solve to a tolerance."""
    return float(np.clip(SEEN * rtol, *WEAK))


def spans_decades(matrix: AdmittedMatrix, weak: float) -> bool:
    """Whether entries of a matrix differ so much that its graph may have weakly coupled parts."""
    if matrix.least is not None and matrix.largest is not None and matrix.least > weak * matrix.largest:
        return False
    xp = matrix.backend.xp
    places = xp.arange(0, matrix.data.size, max(matrix.data.size // SAMPLE, 1), dtype=matrix.indptr.dtype)
    rows = xp.searchsorted(matrix.indptr, places, side="right") - 1
    sizes = matrix.backend.to_host(xp.where(matrix.indices[places] != rows, abs(matrix.data[places]), 0))
    largest = sizes.max(initial=0)
    return bool(largest > 0 and np.mean((sizes >= LEAST * largest) & (sizes <= weak * largest)) >= FEW)


class Level(NamedTuple):
    """The parts for a limit of strength.

    Attributes
    ----------
    parts : array of int64
        The part of each part of the level before.
    energies : array of float64
        c'A c of each part, 0 where that is rounding.
    """

    parts: np.ndarray
    energies: np.ndarray


class WeakParts:
    """The parts of the graph of a Hermitian matrix, for each limit of strength.

    Parameters
    ----------
    matrix : AdmittedMatrix
        In canonical form.
    weak : float
        See `weak_for`.

    Attributes
    ----------
    members : Csr
        Which unknowns the first parts consist of: a matrix of ones, shape (n_parts, n).
    levels : list of Level
        The first level consists of the parts that `members` lists; later levels join these. The list is empty if A
        stores no off-diagonal entries.
    """

    def __init__(self, matrix: AdmittedMatrix, weak: float) -> None:
        backend, xp, n = matrix.backend, matrix.backend.xp, matrix.shape[0]
        rows = rows_of(matrix.indptr, matrix.indices, xp)
        places = xp.flatnonzero(matrix.indices < rows)
        ends, others = (v[places].astype(np.int32) for v in (rows, matrix.indices))
        values = matrix.data[places]
        sizes = abs(values).astype(np.float64)
        self._backend, self.levels = backend, list[Level]()
        if not len(sizes):
            return
        first, *lower = float(sizes.max()) * 10.0 ** np.arange(math.ceil(math.log10(weak)), math.log10(LEAST) - 1, -1)
        parts = find_components(n, ends, others, sizes, first, backend)
        self.members = select_members(parts, backend)
        ends, others = parts[ends], parts[others]
        across = xp.flatnonzero(ends != others)
        ends, others, sizes, values = (backend.to_host(array[across]) for array in (ends, others, sizes, values.real))
        with np.errstate(all="ignore"):
            wide = np.result_type(matrix.dtype, np.float64)
            sums = self.sums_of(product_with(matrix, dtype=wide).times(xp.ones(n, wide)))
            magnitudes = self.sums_of(matrix.magnitudes().astype(np.float64) @ xp.ones(n))
        self._add_levels(sums, magnitudes, ends, others, sizes, values, lower)

    def sums_of(self, v: Any) -> np.ndarray:
        """The sums of the real parts of numbers over each of the first parts, on the host."""
        v = self._backend.xp.ascontiguousarray(v.real, dtype=np.float64)
        return self._backend.to_host(self.members.times(v))

    def _add_levels(
        self,
        sums: np.ndarray,
        magnitudes: np.ndarray,
        ends: np.ndarray,
        others: np.ndarray,
        sizes: np.ndarray,
        values: np.ndarray,
        limits: list[float],
    ) -> None:
        """Join the first parts. Their rows of A have these sums. Of the entries of A between them, one of each pair is
        given by its ends, its magnitude and its real part.
        """
        for end in (ends, others):
            sums = sums - np.bincount(end, values, len(sums))
        parts = np.arange(len(sums))
        self.levels.append(Level(parts, np.where(sums > ROUNDING * magnitudes, sums, 0.0)))
        for limit in limits:
            parts = find_components(len(sums), ends, others, sizes, limit, get_backend("cpu"))
            ends, others = parts[ends], parts[others]
            inside = ends == others
            if not inside.any():
                continue
            sums, magnitudes = np.bincount(parts, sums), np.bincount(parts, magnitudes)
            sums += 2 * np.bincount(ends[inside], values[inside], len(sums))
            ends, others, sizes, values = (array[~inside] for array in (ends, others, sizes, values))
            self.levels.append(Level(parts, np.where(sums > ROUNDING * magnitudes, sums, 0.0)))

    def find_hidden(self, r: Any) -> Hidden:
        """Return what the best corrections for a residual change, on the level of parts that matters most."""
        energy = largest = 0.0
        sums = self.sums_of(r)
        for parts, energies in self.levels:
            sums = np.bincount(parts, sums)
            known = energies > 0
            corrections = sums[known] / energies[known]
            energy = max(energy, float(np.sum(corrections * sums[known])))
            largest = max(largest, float(abs(corrections).max(initial=0.0)))
        return Hidden(energy, largest)


def find_components(n: int, ends: Any, others: Any, sizes: Any, limit: float, backend: Backend) -> Any:
    """Return the connected component of each of n vertices, in the graph of edges whose sizes are at least the limit.

    Components are numbered in the order of their first vertices.
    """
    xp, run = backend.xp, backend.kernels(KERNELS)
    parts = xp.arange(n, dtype=np.int32)
    run.join_strong(len(sizes), ends, others, sizes, limit, parts)
    run.name_parts(n, parts)
    return (xp.cumsum(parts == xp.arange(n), dtype=np.int32) - 1)[parts]


def select_members(parts: Any, backend: Backend) -> Csr:
    """The matrix of ones that adds up numbers over each part."""
    xp, n = backend.xp, len(parts)
    by_unknown = backend.sparse.csr_matrix((xp.ones(n), parts, xp.arange(n + 1)), shape=(n, int(parts.max()) + 1))
    members = transpose(by_unknown, backend)
    return Csr(members, backend, longest_row=int((members.indptr[1:] - members.indptr[:-1]).max()))


# On the CPU.


@compile_row
def root_of(i, parts):
    """Return the root of the tree of vertex i. Vertices on the path get their grandparents as parents."""
    while parts[i] != i:
        parts[i] = parts[parts[i]]
        i = parts[i]
    return i


@KERNELS.per_item_driver
def join_strong(edges, ends, others, sizes, limit, parts):
    """Join the sets of the two ends of each edge whose size is at least the limit. The root is the first vertex."""
    for k in range(edges):
        if sizes[k] >= limit:
            one, other = root_of(ends[k], parts), root_of(others[k], parts)
            parts[max(one, other)] = min(one, other)


@KERNELS.per_item
def name_parts(first, end, parts):
    """Store the root of each vertex as its parent. No iteration changes the parents of other vertices."""
    for i in range(first, end):
        root = parts[i]
        while parts[root] != root:
            root = parts[root]
        parts[i] = root
