"""Classical algebraic multigrid: a hierarchy of coarse points and interpolation between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcprecond.backends.arguments import real
from mcprecond.linalg.hermitian import is_hermitian
from mcprecond.multigrid.built import BuiltMultigrid, admit_definite, examined, options_for, refuse_unfit
from mcprecond.multigrid.setup import Splitting
from mcprecond.multigrid.splitting import OF_UNSYMMETRIC, THETA
from mcprecond.tuning.least_time import ColoringArgument
from mcprecond.typing import Cycle, Device, Matrix, SmootherName, StoredDType


class ClassicalAMG(BuiltMultigrid):
    """Classical algebraic multigrid: coarse points by PMIS, and extended+i interpolation.

    Its levels have more entries than those of `SmoothedAggregation` and take fewer iterations, above all where
    coefficients jump, on irregular meshes and on graphs with weights. It does not use near-null-space candidates: for
    elasticity take `SmoothedAggregation` with B.

    ``M @ r`` is one cycle on A z = r from zero. With as many sweeps before the correction as after it M is symmetric
    positive definite for such an A, and fits CG.

    A need not be symmetric: then M fits `gmres` and `bicgstab`. It is made for upwind differences of advection and
    diffusion and for other matrices with a large positive diagonal and mostly negative entries beside it. P is that of
    A, and R = P^H.

    Of the weights of a row of P the four largest are kept. Setup, updates and cycles are run-to-run deterministic, with
    the smoothers of this package.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, shape (n, n)
        The matrix, of real or complex floats. If it is symmetric or Hermitian, it must be positive definite; otherwise
        its diagonal must be positive. It is not changed; `levels` refers to it. If its diagonal comes near the ends of
        a dtype's range, the coarse levels are those of A scaled by powers of two.
    theta : float, optional
        The limit of strength, from 0 to 1: point i depends strongly on j if ``-a_ij >= theta max_k(-a_ik)``. By default
        0.25, or 0.4 where A is not symmetric.
    smoother, coloring, presweeps, postsweeps, cycle, max_coarse, dtype, device
        As in `SmoothedAggregation`. Where A is not symmetric, "auto" is "damped_jacobi" in place of "chebyshev", which
        needs real eigenvalues, and there are no K cycles.
    max_levels : int

    Raises
    ------
    TypeError, ValueError
        If A is not a square sparse matrix of finite floats, has a diagonal entry that is not positive, for a symmetric
        A on whatever level (names the row), or another argument is out of range.

    References
    ----------
    Ruge, Stuben: Algebraic Multigrid, in: Multigrid Methods, SIAM, 1987.
    De Sterck, Yang, Heys: Reducing Complexity in Parallel Algebraic Multigrid Preconditioners, SIAM J. Matrix Anal.
    Appl. 27, 2006: PMIS. Here a hash stands for its random numbers, and points at flat triangles come first.
    De Sterck, Falgout, Nolting, Yang: Distance-two interpolation for parallel algebraic multigrid, Numerical Linear
    Algebra with Applications 15, 2008: extended+i.
    Stuben: A review of algebraic multigrid, Journal of Computational and Applied Mathematics 128, 2001: P relaxed by
    Jacobi's method. Here that is done for rows near flat triangles only.

    Examples
    --------
    >>> import numpy as np
    >>> from mcprecond import ClassicalAMG, pcg, problems
    >>> A = problems.laplacian((60, 60))
    >>> M = ClassicalAMG(A)
    >>> [level.A.shape[0] for level in M.levels]
    [3600, 1342, 286]
    >>> pcg(A, np.ones(3600), M=M, rtol=1e-8).iterations
    8

    With advection along the rows:

    >>> import scipy.sparse
    >>> from mcprecond import bicgstab
    >>> wind = scipy.sparse.diags_array([-1.0, 1.0], offsets=[-1, 0], shape=(3600, 3600))
    >>> B = scipy.sparse.csr_array(0.01 * A + wind)
    >>> bicgstab(B, np.ones(3600), M=ClassicalAMG(B), rtol=1e-8).iterations
    9
    """

    def __init__(
        self,
        A: Matrix,
        *,
        theta: float | None = None,
        smoother: SmootherName | Callable[[Any], Any] = "auto",
        coloring: ColoringArgument = "auto",
        presweeps: int = 1,
        postsweeps: int = 1,
        cycle: Cycle = "V",
        max_levels: int = 25,
        max_coarse: int | None = None,
        dtype: StoredDType | None = None,
        device: Device | None = None,
    ) -> None:
        theta = None if theta is None else real(theta, "theta", 0, 1)
        self._take_cycle(smoother, presweeps, postsweeps, cycle)
        matrix, origin = admit_definite(A, device)
        refuse_unfit(matrix, has_to_be_symmetric=False)
        self.A_is_symmetric = is_hermitian(matrix)
        matrix = examined(matrix) if self.A_is_symmetric else matrix
        self.theta = theta if theta is not None else THETA if self.A_is_symmetric else OF_UNSYMMETRIC
        self._refuse_k_cycle(self.cycle)
        shape = matrix, 1, self.smoother, coloring, max_levels, max_coarse, dtype
        how = options_for(*shape, is_symmetric=self.A_is_symmetric)
        self._choose_scales(matrix, how, may_differ=self.A_is_symmetric)
        self._build(matrix, origin, Splitting(self.theta, self.A_is_symmetric), how)
