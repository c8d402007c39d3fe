"""The choice between the two multigrids, by features of the matrix that one pass over its entries finds.

Smoothed aggregation has fewer entries on its levels, and needs few iterations where each connection is strong for both
of its points or weak for both. Where coefficients jump, the strongest connection of a point may be weak for its
neighbor. At a few flat triangles, errors are rough along positive entries. There classical multigrid needs fewer
iterations. Where most points have large positive entries, as with elements of higher order, it relaxes no rows of P,
and its longer setup does not pay.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mcprecond.backends import KernelSet, compile_inlined
from mcprecond.backends.arguments import describe
from mcprecond.backends.team.atomics import atomic_add
from mcprecond.linalg.csr import lanes_for
from mcprecond.linalg.diagonal import sizes_of
from mcprecond.matrix import AdmittedMatrix
from mcprecond.multigrid.built import BuiltMultigrid, compared_across
from mcprecond.multigrid.classical import ClassicalAMG
from mcprecond.multigrid.hierarchy import MOST_DENSE
from mcprecond.multigrid.smoothed_aggregation import SmoothedAggregation
from mcprecond.multigrid.spectrum import fall_of_residual
from mcprecond.multigrid.splitting import THETA
from mcprecond.multigrid.strength import SHARE_OF_AVERAGE
from mcprecond.multigrid.units import SMALL_SUM
from mcprecond.preconditioners.setup import admit
from mcprecond.typing import Device, DeviceArray, HostArray, Matrix

KERNELS = KernelSet(__file__, "OFFSET VALUE LANES")

ONE_SIDED, LONELY, STIFF_POINTS = range(FEATURES := 3)
#: Entries of an average row for each thread that shares it: with more threads, sums over them take the most time.
PER_LANE = 4
#: A point counts as stiff here if its positive entries are more than this share of its diagonal entry.
STIFF = 0.25
CUDA_CONSTANTS = {
    **{"ONE_SIDED": ONE_SIDED, "LONELY": LONELY, "STIFF_POINTS": STIFF_POINTS},
    **{"SMALL_SUM": SMALL_SUM, "STIFF": STIFF},
}
#: Classical multigrid is chosen if one of the two shares is above its limit. Both shares are about zero on meshes,
#: anisotropic ones included, and on graphs without weights. They are far larger where coefficients jump.
MOST_ONE_SIDED, MOST_LONELY = 0.05, 0.002
#: It is chosen, too, if some points have large positive entries, as at flat triangles, but at most this share of them.
MOST_FLAT = 0.1
#: A graph has hubs if its longest row has more than HUB times as many entries as the average row. Coarse levels are
#: dense on such graphs, and their setup takes as long as hundreds of products with A. So the hierarchy has one level if
#: CG with Jacobi's preconditioner probably reduces the residual by the factor TOLERANCE within FEW steps. We assume
#: that it goes on to converge as fast as in its first STEPS steps.
HUB, STEPS, FEW, TOLERANCE = 50, 20, 60, 1e-8


class Features(NamedTuple):
    """What decides between the two multigrids.

    Attributes
    ----------
    one_sided : float
        The share of entries that are strong in their rows and weak beside both diagonal entries. Entries of rows
        that are dominated by the diagonal are not counted.
    lonely : float
        The share of points without a strong connection by the diagonal, whose rows sum to about zero.
    stiff : float
        The share of points whose positive entries are more than a quarter of the diagonal entry together.
    """

    one_sided: float
    lonely: float
    stiff: float

    @property
    def reason(self) -> str | None:
        """Why classical multigrid fits better; None if it does not."""
        if 0 < self.stiff <= MOST_FLAT:
            return f"{self.stiff:.2%} of the points have large positive entries"
        if self.lonely > MOST_LONELY:
            return f"{self.lonely:.2%} of the points have strong connections in their own rows only"
        if self.one_sided > MOST_ONE_SIDED:
            return f"{self.one_sided:.1%} of the connections are strong for one of their points only"
        return None


def features_of(A: AdmittedMatrix) -> Features:
    """Return the features of a canonical matrix with a positive diagonal."""
    n, counts = A.shape[0], A.backend.zeros(FEATURES, np.int64)
    lanes = lanes_for(A.indices.size / max(n, 1), PER_LANE)
    run = A.backend.kernels(KERNELS, OFFSET=A.indptr.dtype, VALUE=A.dtype, LANES=lanes)
    arrays = A.indptr, A.indices, A.data, A.diagonal(), sizes_of(A, per_neighbor=True)
    run.count_features(n, *arrays, SHARE_OF_AVERAGE, THETA, counts)
    one_sided, lonely, stiff = (int(count) for count in A.backend.to_host(counts))
    return Features(one_sided / max(A.indices.size - n, 1), lonely / max(n, 1), stiff / max(n, 1))


def needs_no_levels(A: AdmittedMatrix) -> bool:
    """Whether the smoother alone serves a canonical matrix with a positive diagonal whose graph has hubs."""
    if A.shape[0] <= MOST_DENSE or (A.max_degree + 1) * A.shape[0] <= HUB * A.indices.size:
        return False  # one level of so few unknowns would be inverted
    return fall_of_residual(A, STEPS) < TOLERANCE ** (STEPS / FEW)


def fitting_multigrid(
    A: Matrix,
    B: HostArray | DeviceArray | None = None,
    *,
    block_size: int = 1,
    device: Device | None = None,
    **options: Any,
) -> BuiltMultigrid:
    """Return a hierarchy by the multigrid that fits a matrix: `SmoothedAggregation` or `ClassicalAMG`.

    Classical multigrid is taken where A is not symmetric, or more than 5 % of the entries are strong for one of their
    points only, or more than 0.2 % of the points have no connection that is strong for both and rows that sum to about
    zero, or some points, but no more than 10 %, have positive entries of more than a quarter of their diagonal entries
    together. With B or with several unknowns to a node it is smoothed aggregation. Where a graph has hubs, rows of more
    than 50 times the average length, and an estimate says that CG with the diagonal takes fewer than 60 iterations, the
    hierarchy has one level, its smoother.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, shape (n, n)
        As for `SmoothedAggregation`.
    B : array, shape (n,) or (n, k), optional
        Near-null-space candidates.
    block_size : int
        Unknowns of a node.
    device : {"cpu", "gpu"}, optional
    **options
        `smoother`, `coloring`, `presweeps`, `postsweeps`, `cycle`, `max_levels`, `max_coarse` and `dtype`, as of both
        classes.

    Returns
    -------
    SmoothedAggregation or ClassicalAMG
        ``print(M)`` says which, and why.

    Raises
    ------
    TypeError, ValueError
        As `SmoothedAggregation`.

    Examples
    --------
    >>> from mcprecond import multigrid, problems
    >>> type(multigrid.fitting_multigrid(problems.laplacian((60, 60)))).__name__
    'SmoothedAggregation'
    """
    matrix = admit(A, device, finite=True)[0].canonical()
    reason, of_points = "connections are strong for both of their points, or weak for both", None
    if B is not None:
        reason = "B is given"
    elif block_size != 1:
        reason = f"block_size is {describe(block_size)}"
    elif matrix.extremes[0] > 0:
        matrix = compared_across(matrix)
        if matrix.first_unsymmetric is not None:
            of_points = "A is not symmetric"
        elif needs_no_levels(matrix):
            options["max_levels"] = 1
            reason = "the graph has hubs, and smoothing alone is expected to take few iterations"
        else:
            of_points = features_of(matrix).reason
    given: Any = matrix if device is None else A  # where vectors are, only A tells
    if of_points:
        M: BuiltMultigrid = ClassicalAMG(given, device=device, **options)
        M.reason = of_points
        return M
    M = SmoothedAggregation(given, B, block_size=block_size, device=device, **options)
    M.reason = reason
    return M


# On the CPU.


@compile_inlined
def features_of_row(i, indptr, indices, values, diagonal, sizes, share, theta):
    """How many entries of a row are one-sided, and whether it is lonely and stiff."""
    most = total = positive = 0.0
    connects, pivot = False, np.float64(diagonal[i].real)
    for k in range(indptr[i], indptr[i + 1]):
        j, a = np.uint32(indices[k]), np.float64(values[k].real)
        total += a
        if j != i:
            most, positive = max(most, -a), positive + max(a, 0.0)
            connects |= a < 0 and abs(values[k]) >= share * (sizes[i] * sizes[j])
    one_sided = 0
    for k in range(indptr[i], indptr[i + 1]):
        j, a = np.uint32(indices[k]), values[k].real
        one_sided += j != i and -a > 0 and -a >= theta * most and abs(values[k]) < share * (sizes[i] * sizes[j])
    has_neighbors = indptr[i + 1] - indptr[i] > 1
    is_dominated = total >= SMALL_SUM * pivot
    is_lonely = has_neighbors and not connects and not is_dominated
    return 0 if is_dominated else one_sided, is_lonely, positive > STIFF * pivot


@KERNELS.per_item
def count_features(first, end, indptr, indices, values, diagonal, sizes, share, theta, counts):
    """The features of some rows, counted."""
    entries = lonely = stiff = 0
    for i in range(first, end):
        row = features_of_row(i, indptr, indices, values, diagonal, sizes, share, theta)
        one_sided, is_lonely, is_stiff = row
        entries, lonely, stiff = entries + one_sided, lonely + is_lonely, stiff + is_stiff
    atomic_add(counts, ONE_SIDED, np.int64(entries))
    atomic_add(counts, LONELY, np.int64(lonely))
    atomic_add(counts, STIFF_POINTS, np.int64(stiff))
