"""One pass over the values of A, before multigrid makes levels.

The results decide between smoothed aggregation and classical multigrid, and tell whether unknowns have different units.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mcprecond.backends import KernelSet, compile_inlined, compile_loop
from mcprecond.backends.cuda_source import WARP
from mcprecond.backends.team.atomics import atomic_add
from mcprecond.linalg.csr import lanes_for
from mcprecond.linalg.diagonal import sizes_of
from mcprecond.matrix import AdmittedMatrix
from mcprecond.multigrid.splitting import THETA
from mcprecond.multigrid.strength import SHARE_OF_AVERAGE
from mcprecond.multigrid.units import SMALL_SUM, inverse_roots, is_even

KERNELS = KernelSet(__file__, "OFFSET VALUE LANES")

ONE_SIDED, LONELY, STIFF_POINTS, OF_ONES, OF_ROOTS = range(REPORTED := 5)
#: The number of threads per row is chosen so that each loads about PER_LANE entries of an average row, but at least two
#: threads share a row. With more threads, the sums over the threads of a row take most of the time.
PER_LANE = 8
#: A point counts as stiff here if its positive entries are more than this share of its diagonal entry.
STIFF = 0.25
CUDA_CONSTANTS = {"ONE_SIDED": ONE_SIDED, "SMALL_SUM": SMALL_SUM, "STIFF": STIFF}


class Findings(NamedTuple):
    """What decides between the two multigrids, and whether units differ.

    Attributes
    ----------
    one_sided : float
        The share of entries that are strong in their rows and weak beside both diagonal entries. Entries of rows
        that are dominated by the diagonal are not counted.
    lonely : float
        The share of points without a strong connection by the diagonal, whose rows sum to about zero.
    stiff : float
        The share of points whose positive entries are more than a quarter of the diagonal entry together.
    of_ones, of_roots : float
        The shares of rows in which A x is about zero, where x is the vector of ones, and where it is
        ``1 / sqrt(a_ii)``. If the diagonal is even, both are for the vector of ones.
    """

    one_sided: float
    lonely: float
    stiff: float
    of_ones: float
    of_roots: float


def examine(A: AdmittedMatrix) -> Findings:
    """Examine a canonical matrix with a positive diagonal."""
    roots = A.backend.xp.ones(A.shape[0]) if is_even(A) else inverse_roots(A)
    return examine_rows_of(A, sizes_of(A, per_neighbor=True), roots)


def examine_rows_of(A: AdmittedMatrix, sizes: Any, roots: Any) -> Findings:
    """Examine a matrix that may have more columns than rows. For each column, `sizes` has what `sizes_of` returns with
    `per_neighbor`, and `roots` has 1 / sqrt(a_ii) or 1.
    """
    backend, n, entries = A.backend, A.shape[0], A.indices.size
    report = backend.zeros(REPORTED, np.int64)
    lanes = WARP if A.has_hubs else max(lanes_for(entries / max(n, 1), PER_LANE), 2)
    run = backend.kernels(KERNELS, OFFSET=A.indptr.dtype, VALUE=A.dtype, LANES=lanes)
    run.examine_rows(n, A.indptr, A.indices, A.data, A.diagonal(), sizes, roots, SHARE_OF_AVERAGE, THETA, report)
    one_sided, *of_rows = (int(number) for number in backend.to_host(report))
    return Findings(one_sided / max(entries - n, 1), *(count / max(n, 1) for count in of_rows))


# On the CPU.


@compile_inlined
def features_of_row(i, indptr, indices, values, diagonal, sizes, roots, share, theta):
    """How many entries of a row are one-sided; whether it is lonely and stiff; and whether A x is about zero in it for
    the vector of ones and for `roots`.
    """
    most = positive = 0.0
    of_ones = of_roots = values.dtype.type(0)
    connects, pivot = False, np.float64(diagonal[i].real)
    for k in range(indptr[i], indptr[i + 1]):
        j, a = np.uint32(indices[k]), np.float64(values[k].real)
        of_ones += values[k]
        of_roots += values[k] * values.real.dtype.type(roots[j])
        if j != i:
            most, positive = max(most, -a), positive + max(a, 0.0)
            connects |= a < 0 and abs(values[k]) >= share * (sizes[i] * sizes[j])
    one_sided = 0
    for k in range(indptr[i], indptr[i + 1]):
        j, a = np.uint32(indices[k]), values[k].real
        one_sided += j != i and -a > 0 and -a >= theta * most and abs(values[k]) < share * (sizes[i] * sizes[j])
    has_neighbors = indptr[i + 1] - indptr[i] > 1
    is_dominated = of_ones.real >= SMALL_SUM * pivot
    is_lonely = has_neighbors and not connects and not is_dominated
    are_small = abs(of_ones) <= SMALL_SUM * pivot, abs(of_roots) <= SMALL_SUM * pivot * roots[i]
    return 0 if is_dominated else one_sided, is_lonely, positive > STIFF * pivot, *are_small


@KERNELS.strided
def examine_rows(n, indptr, indices, values, diagonal, sizes, roots, share, theta, report):
    """Count the features of all rows."""
    count_features(0, n, indptr, indices, values, diagonal, sizes, roots, share, theta, report)


@compile_loop
def count_features(first, end, indptr, indices, values, diagonal, sizes, roots, share, theta, report):
    """Count the features of some rows."""
    one_sided = lonely = stiff = of_ones = of_roots = 0
    for i in range(first, end):
        row = features_of_row(i, indptr, indices, values, diagonal, sizes, roots, share, theta)
        one_sided, lonely, stiff = one_sided + row[0], lonely + row[1], stiff + row[2]
        of_ones, of_roots = of_ones + row[3], of_roots + row[4]
    atomic_add(report, ONE_SIDED, np.int64(one_sided))
    atomic_add(report, LONELY, np.int64(lonely))
    atomic_add(report, STIFF_POINTS, np.int64(stiff))
    atomic_add(report, OF_ONES, np.int64(of_ones))
    atomic_add(report, OF_ROOTS, np.int64(of_roots))
