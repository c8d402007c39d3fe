"""What neither the residual nor the coefficients of CG see: weakly coupled parts of the graph with a wrong mean.

Where entries of A differ by many orders of magnitude, as the weights of a random walker on an image, unknowns form
parts, with strong entries inside and weak ones across. If x is wrong by a constant on a part, the residual is as small
as the weak entries, and CG may not have found that vector yet. With the indicator c of a part and the residual r, the
constant c'r / c'A c is the best correction of x there, and it would reduce the square of the error's energy norm by
(c'r)^2 / c'A c, whatever CG believes.

The parts are the connected components of the graph of entries above a limit, for a limit in each decade. They are found
on the host, by joining sets (Tarjan 1975): a level begins with the sets of the level of larger entries.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from mcprecond.backends import compile_part
from mcprecond.matrix import AdmittedMatrix

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
    levels : list of (array of int64, shape (n,), array of float64, shape (n,))
        For each limit the part of each unknown, which is the number of one of its unknowns, and there c'A c of the
        part, 0 where that is rounding.
    """

    def __init__(self, matrix: AdmittedMatrix, weak: float) -> None:
        arrays = [matrix.backend.to_host(part) for part in (matrix.indptr, matrix.indices, matrix.data)]
        n = matrix.shape[0]
        joined, largest = np.arange(n), find_largest(n, *arrays)
        self.levels: list[tuple[Any, Any]] = []
        above, count = math.inf, n
        for limit in largest * 10.0 ** np.arange(math.ceil(math.log10(weak)), math.log10(LEAST) - 1, -1):
            if count > 1 and (joins := join_strong(n, *arrays, limit, above, joined)):
                count -= joins
                parts, energies = np.empty(n, np.int64), np.zeros(n)
                name_parts(n, joined, parts)
                add_up_parts(n, *arrays, parts, energies, np.zeros(n))
                self.levels.append((parts, energies))
            above = limit

    def find_hidden(self, r: Any) -> Hidden:
        """Return what the best corrections for a residual change, on the level of parts that matters most."""
        energy = largest = 0.0
        for parts, energies in self.levels:
            of_level = find_corrections(len(parts), parts, energies, r.real.astype(np.float64), np.zeros(len(parts)))
            energy, largest = max(energy, of_level[0]), max(largest, of_level[1])
        return Hidden(energy, largest)


@compile_part
def root_of(i, joined):
    """The unknown that stands for the set of unknown i; the way there becomes shorter."""
    while joined[i] != i:
        joined[i] = joined[joined[i]]
        i = joined[i]
    return i


@compile_part
def find_largest(n, indptr, indices, values):
    """The largest magnitude beside the diagonal."""
    largest = 0.0
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            if indices[k] != i:
                largest = max(largest, np.float64(abs(values[k])))
    return largest


@compile_part
def join_strong(n, indptr, indices, values, limit, above, joined):
    """Join the sets of unknowns between which entries are at least the limit and below the one before; how many joins
    there were.
    """
    joins = 0
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            if indices[k] < i and limit <= abs(values[k]) < above:
                one, other = root_of(i, joined), root_of(np.int64(indices[k]), joined)
                if one != other:
                    joined[max(one, other)] = min(one, other)
                    joins += 1
    return joins


@compile_part
def name_parts(n, joined, parts):
    """The set of each unknown."""
    for i in range(n):
        parts[i] = root_of(i, joined)


@compile_part
def add_up_parts(n, indptr, indices, values, parts, energies, sizes):
    """c'A c for the indicator c of each part, 0 where that is rounding of the sum of magnitudes."""
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            if parts[indices[k]] == parts[i]:
                energies[parts[i]] += np.float64(values[k].real)
                sizes[parts[i]] += np.float64(abs(values[k]))
    for i in range(n):
        if energies[i] <= ROUNDING * sizes[i]:
            energies[i] = 0


@compile_part
def find_corrections(n, parts, energies, r, sums):
    """By how much the best constants on parts reduce the square of the error, and the largest of the constants."""
    for i in range(n):
        sums[parts[i]] += r[i]
    energy = largest = 0.0
    for i in range(n):
        if energies[i] > 0:
            energy += sums[i] / energies[i] * sums[i]
            largest = max(largest, abs(sums[i]) / energies[i])
    return energy, largest
