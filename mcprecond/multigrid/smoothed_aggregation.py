"""Smoothed aggregation: a hierarchy from the matrix and its near-null space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mcprecond.backends import backend_of
from mcprecond.backends.arguments import integer, one_of, real
from mcprecond.backends.inputs import numbers_of
from mcprecond.matrix import AdmittedMatrix
from mcprecond.multigrid.built import BuiltMultigrid, admit_definite, examined, options_for, refuse_unfit
from mcprecond.multigrid.setup import Aggregation, update_candidates
from mcprecond.multigrid.strength import STRENGTHS
from mcprecond.multigrid.units import scale_candidates
from mcprecond.preconditioners.gauss_seidel import LARGEST_BLOCK
from mcprecond.tuning.least_time import ColoringArgument
from mcprecond.typing import Cycle, Device, DeviceArray, HostArray, Matrix, SmootherName, StoredDType, StrengthName


class SmoothedAggregation(BuiltMultigrid):
    """Algebraic multigrid by smoothed aggregation, with Chebyshev polynomials or multicolor sweeps as smoothers.

    ``M @ r`` is one cycle on A z = r from zero. With as many sweeps before the correction as after it M is symmetric
    positive definite for such an A, and fits CG.

    Setup, updates and cycles are run-to-run deterministic, with the smoothers of this package; see `deterministic`.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, shape (n, n)
        Symmetric or Hermitian positive definite, real or complex floats. Not changed; `levels` refers to it. If its
        diagonal comes near the ends of a dtype's range, the coarse levels are those of A scaled by powers of two.
    B : array, shape (n,) or (n, k), optional
        Near-null-space candidates, k at most 9: vectors x with small A x, as rigid body modes in elasticity. One
        constant for each unknown of a node by default. NumPy's arrays are moved to where the levels are.
    block_size : int
        b from 1 to 9: unknowns b i .. b i + b - 1 belong to node i. Nodes are aggregated, and swept, as a whole.
    strength : {"symmetric"}
        ``|a_ij| >= theta sqrt(|a_ii a_jj|)``; of blocks the Frobenius norms.
    theta : float, optional
        From 0 to 1, for the finest level; half of that of the level before on each coarser one. With 0 all neighbors
        are strong. By default connections are strong that have at least half the size of the average one in their
        rows: ``|a_ij| >= sqrt(|a_ii a_jj| / (m_i m_j)) / 2`` where rows i and j have m_i and m_j neighbors. Then, where
        nodes have one unknown, positive entries are weak, and weaken the connections to common neighbors. Where the
        aggregates of strong neighbors would leave more than 0.8 of a level's unknowns, all neighbors count as strong,
        and where that does not help either, the level is the coarsest one. Where nodes have one unknown and B one
        column, prolongators are smoothed along strong connections only: weak entries are added to the diagonal.
        Elsewhere a row of a prolongator reaches aggregates with at least a twelfth of its node's strong neighbors.
    smoother : {"auto", "gauss_seidel", "sgs", "dilu", "jacobi", "damped_jacobi", "chebyshev"} or function
        "chebyshev": a polynomial in D A of the fourth kind and of degree 2, where D has the inverse sums of the
        magnitudes of the rows, or, on levels whose nodes have several unknowns, the inverse diagonal over an estimate
        of the largest eigenvalue. "jacobi": its first degree. "damped_jacobi": two steps with 0.8 times the inverse
        diagonal, for A that is not symmetric. These need no coloring. "gauss_seidel": forward sweeps before the
        correction, backward sweeps after it. "sgs": symmetric ones. "dilu": solves with the M of `MulticolorDILU`, of
        points. "auto" is "gauss_seidel" where a coloring is given, and otherwise "chebyshev". A function, as the class
        `ILU0` is one, is called with the matrix of each level and returns an operator M: sweeps are then ``x += w M (b
        - A x)``, with the adjoint of M after the correction, and with a w that makes them converge.
    coloring : str, AutoColoring, Coloring or array of int
        Of the finest level, as in `MulticolorSGS`; a method's name is for all levels. For smoothers that sweep.
    presweeps, postsweeps : int
    cycle : {"V", "W", "K"}
        How each level calls the next coarser one: once, twice, or twice within two steps of CG. A second call is left
        out where all visits of levels would then read more than 4 times the entries that a V cycle reads, as where
        levels hardly shrink; that is decided from the finest level on, when they are built. K cycles are for `pcg`:
        they are not linear in r, and `pcg` makes its iteration flexible then, while other solvers, as SciPy's cg, may
        take more iterations or stop short of their tolerance. A K cycle helps where V cycles take more iterations on
        finer meshes, as with plain aggregation, not where the aggregates ignore which connections are strong.
    max_levels : int
    max_coarse : int, optional
        A level of so many unknowns or fewer is the coarsest one, and solved by a dense matrix; at most 2000, and by
        default 300 on a CPU and 1,000 on a GPU.
    dtype : {float32, float64}, or {complex64, complex128} for complex A, optional
        The dtype of the vectors of all levels, and of the values that a cycle reads. By default it is single
        precision, with two exceptions: the vectors of the finest level, and the values that sweeps read there, have
        the dtype of A; and all levels have that dtype where `smoother` is a function, or where the largest diagonal
        entry of A is more than 10^6 times the smallest one, since rounding might then hide weak couplings. r, M r and
        a dense coarsest level always have the dtype of A, and setup and updates compute in it. `levels` has the values
        that cycles read.
    device : {"cpu", "gpu"}, optional
        "gpu" for a SciPy matrix: vectors stay NumPy arrays, the cycles run on the GPU.

    Raises
    ------
    TypeError, ValueError
        If A is not a square sparse matrix of finite floats, is not symmetric up to rounding (names an entry), has a
        diagonal entry that is not positive, on whatever level (names the row), B does not fit it, or another argument
        is out of range.

    References
    ----------
    Vanek, Mandel, Brezina: Algebraic Multigrid by Smoothed Aggregation for Second and Fourth Order Elliptic Problems,
    Computing 56, 1996.
    Notay, Vassilevski: Recursive Krylov-based multigrid cycles, Numerical Linear Algebra with Applications 15, 2008.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from mcprecond import SmoothedAggregation, pcg
    >>> A = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(1000, 1000), format="csr")
    >>> x, info = pcg(A, np.ones(1000), M=SmoothedAggregation(A))
    >>> info
    0
    """

    def __init__(
        self,
        A: Matrix,
        B: HostArray | DeviceArray | None = None,
        *,
        block_size: int = 1,
        strength: StrengthName = "symmetric",
        theta: float | None = None,
        smoother: SmootherName | Callable[[Any], Any] = "auto",
        coloring: ColoringArgument = "auto",
        presweeps: int = 1,
        postsweeps: int = 1,
        cycle: Cycle = "V",
        max_levels: int = 10,
        max_coarse: int | None = None,
        dtype: StoredDType | None = None,
        device: Device | None = None,
    ) -> None:
        self.block_size = integer(block_size, "block_size", 1, LARGEST_BLOCK)
        self.theta = None if theta is None else real(theta, "theta", 0, 1)
        strength = one_of(strength, "strength", STRENGTHS)
        self._take_cycle(smoother, presweeps, postsweeps, cycle)
        matrix, origin = admit_definite(A, device)
        how = options_for(matrix, self.block_size, self.smoother, coloring, max_levels, max_coarse, dtype)
        if matrix.shape[0] % self.block_size:
            raise ValueError(f"block_size {block_size} does not divide the {matrix.shape[0]} unknowns of A")
        self._B = None if B is None else near_null_space(B, matrix, self.block_size)
        may_differ = B is None and self.block_size == 1
        refuse_unfit(matrix)
        matrix = examined(matrix) if may_differ else matrix
        self._choose_scales(matrix, how, may_differ=may_differ)
        # Scales that keep numbers in range may leave zeros in a vector of ones.
        may_vanish = not may_differ or self._is_extreme
        by_aggregates = Aggregation(self._candidates(matrix), self.block_size, strength, self.theta, may_vanish)
        self._build(matrix, origin, by_aggregates, how)

    def _candidates(self, matrix: AdmittedMatrix) -> Any:
        """The near-null space of the scaled matrix."""
        B = near_null_space(None, matrix, self.block_size) if self._B is None else self._B
        return scale_candidates(B, self._scales) if self._is_extreme else B

    def _take_scales(self, matrix: AdmittedMatrix) -> None:
        update_candidates(self.levels, self._candidates(matrix), self.block_size, self.backend)


def near_null_space(B: Any, matrix: AdmittedMatrix, block_size: int) -> Any:
    """Return B as an array of shape (n, k) on the device of a matrix, in its dtype; by default one constant for each
    unknown of a node.

    Raises
    ------
    TypeError, ValueError
        If it is on the GPU and the matrix is not, does not hold numbers that fit the matrix, or has another shape; if
        it is not finite, or a candidate is zero.
    """
    xp, n, dtype = matrix.backend.xp, matrix.shape[0], matrix.dtype
    if B is None:
        return xp.tile(xp.eye(block_size, dtype=dtype), (n // block_size, 1))
    place = backend_of(B)
    if place.name == "gpu" != matrix.backend.name:
        raise TypeError("B is on the gpu and must be on the cpu like A; move it with cupy.asnumpy(B)")
    array = numbers_of(B, place, "B")
    if array.dtype.kind not in "fiubc" or (array.dtype.kind == "c" and dtype.kind != "c"):
        raise TypeError(f"B must hold numbers that {dtype}, the dtype of A, has room for, got dtype {array.dtype}")
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[0] != n or not 1 <= array.shape[1] <= LARGEST_BLOCK:
        raise ValueError(
            f"B must have shape ({n},) or ({n}, k) with k from 1 to {LARGEST_BLOCK}: a row for each row of A; got "
            f"shape {place.xp.asarray(B).shape}"
        )
    array = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    parts = (array.real, array.imag) if array.dtype.kind == "c" else (array,)
    if n:  # rows of the transpose, since CuPy reduces columns of a matrix slowly
        columns = [place.xp.ascontiguousarray(abs(part).T) for part in parts]
        largest = np.max([place.to_host(part.max(axis=1)) for part in columns], axis=0)
    else:
        largest = np.ones(array.shape[1])
    if not np.isfinite(largest).all():
        raise ValueError("B holds NaN or infinity; every value must be finite")
    if not largest.all():
        raise ValueError(f"column {int((largest == 0).argmax())} of B is zero; leave it out")
    return xp.ascontiguousarray(xp.asarray(times_powers(array, -np.frexp(largest)[1], place.xp)).astype(dtype))


def times_powers(B: Any, exponents: Any, xp: Any) -> Any:
    """2^exponent times each column of B, in steps that a float has room for."""
    most = np.finfo(B.dtype).maxexp - 2
    while exponents.any():
        steps = np.clip(exponents, -most, most)
        B, exponents = B * xp.asarray(np.ldexp(1.0, steps)), exponents - steps
    return B
