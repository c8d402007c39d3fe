"""The choice between the two multigrids, by features of the matrix, which `examination` finds in one pass over it.

Smoothed aggregation has fewer entries on its levels, and needs few iterations where each connection is strong for both
of its points or weak for both. Where coefficients jump, the strongest connection of a point may be weak for its
neighbor. At a few flat triangles, errors are rough along positive entries. There classical multigrid needs fewer
iterations. Where most points have large positive entries, as with elements of higher order, it relaxes no rows of P,
and its longer setup does not pay.
"""

from __future__ import annotations

from typing import Any

from mcprecond.backends.arguments import describe
from mcprecond.linalg.hermitian import is_hermitian, with_symmetry
from mcprecond.matrix import AdmittedMatrix
from mcprecond.multigrid.built import BuiltMultigrid, examined
from mcprecond.multigrid.classical import ClassicalAMG
from mcprecond.multigrid.examination import Findings
from mcprecond.multigrid.hierarchy import MOST_DENSE
from mcprecond.multigrid.smoothed_aggregation import SmoothedAggregation
from mcprecond.multigrid.spectrum import fall_of_residual
from mcprecond.preconditioners.setup import admit
from mcprecond.typing import Device, DeviceArray, HostArray, Matrix

#: Classical multigrid is chosen if one of the two shares is above its limit. Both shares are about zero on meshes,
#: anisotropic ones included, and on graphs without weights. They are far larger where coefficients jump.
MOST_ONE_SIDED, MOST_LONELY = 0.05, 0.002
#: It is chosen, too, if some points have large positive entries, as at flat triangles, but at most this share of them.
MOST_FLAT = 0.1
#: Coarse levels are dense on graphs with hubs, and their setup takes as long as hundreds of products with A. So the
#: hierarchy has one level if CG with Jacobi's preconditioner probably reduces the residual by the factor TOLERANCE
#: within FEW steps. We assume that it goes on to converge as fast as in its first STEPS steps.
STEPS, FEW, TOLERANCE = 20, 60, 1e-8


def why_points(found: Findings) -> str | None:
    """Why classical multigrid fits better; None if it does not."""
    if 0 < found.stiff <= MOST_FLAT:
        return f"{found.stiff:.2%} of the points have large positive entries"
    if found.lonely > MOST_LONELY:
        return f"{found.lonely:.2%} of the points have strong connections in their own rows only"
    if found.one_sided > MOST_ONE_SIDED:
        return f"{found.one_sided:.1%} of the connections are strong for one of their points only"
    return None


def needs_no_levels(A: AdmittedMatrix) -> bool:
    """Whether the smoother alone serves a canonical matrix with a positive diagonal whose graph has hubs."""
    if A.shape[0] <= MOST_DENSE or not A.has_hubs:
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
        matrix = with_symmetry(matrix)
        if not is_hermitian(matrix):
            of_points = "A is not symmetric"
        elif needs_no_levels(matrix):
            options["max_levels"] = 1
            reason = "the graph has hubs, and smoothing alone is expected to take few iterations"
        else:
            matrix = examined(matrix)
            of_points = why_points(matrix.findings)
    given: Any = matrix if device is None else A  # where vectors are, only A tells
    if of_points:
        M: BuiltMultigrid = ClassicalAMG(given, device=device, **options)
        M.reason = of_points
        return M
    M = SmoothedAggregation(given, B, block_size=block_size, device=device, **options)
    M.reason = reason
    return M
