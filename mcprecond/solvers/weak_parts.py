"""What neither the residual nor the coefficients of CG see: weakly coupled parts of the graph with a wrong mean.

Where entries of A differ by many orders of magnitude, as the weights of a random walker on an image, unknowns form
parts, with strong entries inside and weak ones across. If x is wrong by a constant on a part, the residual is as small
as the weak entries, and CG may not have found that vector yet. With the indicator c of a part and the residual r, the
constant c'r / c'A c is the best correction of x there, and it would reduce the square of the error's energy norm by
(c'r)^2 / c'A c, whatever CG believes.

The parts are the connected components of the graph of entries above a limit, for a limit in each decade. SciPy finds
them, on the host.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from mcprecond.matrix import AdmittedMatrix

#: A graph has weak parts only if at least the share FEW of its entries, in a sample of so many, are between the shares
#: LEAST and WEAK of the largest magnitude. Entries below LEAST are rounding, as of a finite-element assembly.
WEAK, LEAST, FEW, SAMPLE = 1e-5, 1e-14, 1e-3, 2**12
#: Sums are rounding below so many units of rounding of their terms.
ROUNDING = 64


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


def spans_decades(matrix: AdmittedMatrix) -> bool:
    """Whether entries of a matrix differ so much that its graph may have weakly coupled parts."""
    if matrix.least is not None and matrix.largest is not None and matrix.least > WEAK * matrix.largest:
        return False
    sizes = abs(matrix.backend.to_host(matrix.data[:: max(matrix.data.size // SAMPLE, 1)]))
    largest = sizes.max(initial=0)
    return bool(np.mean((sizes >= LEAST * largest) & (sizes <= WEAK * largest)) >= FEW) if sizes.size else False


class WeakParts:
    """The parts of the graph of a Hermitian matrix, for each limit of strength.

    Parameters
    ----------
    matrix : AdmittedMatrix
        In canonical form.

    Attributes
    ----------
    levels : list of (array of int, shape (n,), array of float)
        For each limit the part of each unknown, and c'A c of each part, 0 where that is rounding.
    """

    def __init__(self, matrix: AdmittedMatrix) -> None:
        backend, n = matrix.backend, matrix.shape[0]
        columns, values = (backend.to_host(part) for part in (matrix.indices, matrix.data))
        rows = np.repeat(np.arange(n), np.diff(backend.to_host(matrix.indptr)))
        sizes = abs(values)
        beside = (rows != columns) & (sizes > 0)
        self.levels: list[tuple[Any, Any]] = []
        if not beside.any():
            return
        largest, least = float(sizes[beside].max()), float(sizes[beside].min())
        decades = math.ceil(math.log10(largest / max(least, LEAST * largest)))
        before = 0
        for limit in largest * 10.0 ** -np.arange(decades + 1):
            strong = beside & (sizes >= limit)
            graph = coo_matrix((np.ones(strong.sum(), bool), (rows[strong], columns[strong])), shape=(n, n))
            count, parts = connected_components(graph, directed=False)
            if count == before:
                continue
            before, inside = count, parts[rows] == parts[columns]
            of_part = parts[rows[inside]]
            energies = np.bincount(of_part, values[inside].real, count)
            rounding = ROUNDING * float(np.finfo(np.float64).eps) * np.bincount(of_part, sizes[inside], count)
            self.levels.append((parts, np.where(energies > rounding, energies, 0)))

    def find_hidden(self, r: Any) -> Hidden:
        """Return what the best corrections for a residual change, on the level of parts that matters most."""
        energy = largest = 0.0
        for parts, energies in self.levels:
            known = energies > 0
            sums = np.bincount(parts, r.real, len(energies))[known]
            with np.errstate(all="ignore"):
                energy = max(energy, float(np.sum(sums**2 / energies[known])))
                largest = max(largest, float(np.max(abs(sums) / energies[known], initial=0.0)))
        return Hidden(energy, largest)
