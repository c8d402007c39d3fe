"""One pass over the values of A, before multigrid makes levels.

It finds whether A is Hermitian, which of the two multigrids fits, and whether unknowns have different units.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mcprecond.backends import KernelSet, compile_inlined, compile_loop
from mcprecond.backends.team.atomics import atomic_add, atomic_max
from mcprecond.linalg.csr import lanes_for
from mcprecond.linalg.diagonal import sizes_of
from mcprecond.linalg.hermitian import difference_across
from mcprecond.matrix import AdmittedMatrix
from mcprecond.multigrid.splitting import THETA
from mcprecond.multigrid.strength import SHARE_OF_AVERAGE
from mcprecond.multigrid.units import SMALL_SUM, inverse_roots, is_even

KERNELS = KernelSet(__file__, "OFFSET VALUE LANES")

BEHIND, ANY_ROUNDED, ONE_SIDED, LONELY, STIFF_POINTS, OF_ONES, OF_ROOTS = range(REPORTED := 7)
#: Entries of an average row for each thread that shares it: with more threads, sums over them take the most time.
PER_LANE = 4
#: A point counts as stiff here if its positive entries are more than this share of its diagonal entry.
STIFF = 0.25
CUDA_CONSTANTS = {
    **{"BEHIND": BEHIND, "ANY_ROUNDED": ANY_ROUNDED, "ONE_SIDED": ONE_SIDED},
    **{"SMALL_SUM": SMALL_SUM, "STIFF": STIFF},
}


class Features(NamedTuple):
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


class Findings(NamedTuple):
    """The results of the pass. Each a_ij is compared with the conjugate of a_ji, which is zero if it is not stored.

    Attributes
    ----------
    first_unsymmetric : int or None
        The index of the first stored entry that differs by more than rounding.
    is_hermitian : bool
        Whether all are exactly equal.
    features : Features or None
        None where they were not asked for.
    """

    first_unsymmetric: int | None
    is_hermitian: bool
    features: Features | None


def examine(A: AdmittedMatrix, *, with_features: bool) -> Findings:
    """Examine a canonical matrix with a positive diagonal."""
    backend, n, entries = A.backend, A.shape[0], A.indices.size
    report, nothing = backend.zeros(REPORTED, np.int64), backend.xp.empty(0)
    scales = nothing, nothing
    if with_features:
        scales = sizes_of(A, per_neighbor=True), backend.xp.ones(n) if is_even(A) else inverse_roots(A)
    lanes = lanes_for(entries / max(n, 1), PER_LANE)
    run = backend.kernels(KERNELS, OFFSET=A.indptr.dtype, VALUE=A.dtype, LANES=lanes)
    arrays = A.indptr, A.indices, A.data, A.diagonal(), *scales
    tolerance = float(np.sqrt(np.finfo(A.dtype).eps))
    how = int(A.is_symmetric), int(with_features), SHARE_OF_AVERAGE, THETA
    run.examine_rows(n, *arrays, tolerance, entries, *how, report)
    behind, any_rounded, one_sided, *of_rows = (int(number) for number in backend.to_host(report))
    features = Features(one_sided / max(entries - n, 1), *(count / max(n, 1) for count in of_rows))
    return Findings(entries - behind if behind else None, not any_rounded, features if with_features else None)


# On the CPU.


@compile_inlined
def compare_row(i, indptr, indices, values, diagonal, tolerance, entries, is_symmetric):
    """Compare the entries of row i with their counterparts in column i. If entry k is the first that differs by more
    than a tolerance, return ``entries - k``, otherwise 0. Also return whether any entry differs at all.

    If the pattern is symmetric, only entries on the diagonal and to the right of it are compared.
    """
    any_rounded = False
    for k in range(indptr[i], indptr[i + 1]):
        j = np.uint32(indices[k])
        if is_symmetric and j < i:
            continue
        difference = abs(difference_across(k, i, indptr, indices, values))
        if difference > 0:
            any_rounded = True
            size = np.sqrt(np.float64(abs(diagonal[i])))
            if difference > tolerance * size * np.sqrt(np.float64(abs(diagonal[j]))):
                return entries - k, True
    return 0, any_rounded


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
def examine_rows(
    n, indptr, indices, values, diagonal, sizes, roots, tolerance, entries, is_symmetric, with_features, share, theta,
    report,
):  # fmt: skip
    """Compare all rows as `compare_row` does. Report the largest number that it returns, which belongs to the first
    entry that differs, and a 1 if any entry differs at all. Count the features of all rows.
    """
    of_matrix = indptr, indices, values, diagonal
    compare_rows(0, n, *of_matrix, tolerance, entries, is_symmetric, report)
    if with_features:
        count_features(0, n, *of_matrix, sizes, roots, share, theta, report)


@compile_loop
def compare_rows(first, end, indptr, indices, values, diagonal, tolerance, entries, is_symmetric, report):
    """Compare some rows."""
    most, any_rounded = 0, False
    for i in range(first, end):
        behind, is_rounded = compare_row(i, indptr, indices, values, diagonal, tolerance, entries, is_symmetric)
        most, any_rounded = max(most, behind), any_rounded or is_rounded
    atomic_max(report, BEHIND, np.int64(most))
    if any_rounded:
        report[ANY_ROUNDED] = 1


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
