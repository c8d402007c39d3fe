"""PyAMG's interface to the hierarchies of this package, and multicolor sweeps as smoothers in PyAMG's own solvers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from mcprecond.backends import Backend
from mcprecond.backends.arguments import describe, flag, integer, one_of, real
from mcprecond.multigrid import ClassicalAMG, SmoothedAggregation, from_pyamg
from mcprecond.multigrid.hierarchy import Multigrid
from mcprecond.preconditioners import MulticolorGS
from mcprecond.preconditioners.gauss_seidel import SWEEPS
from mcprecond.typing import ColoringMethod, DeviceArray, HostArray, Matrix, Sweep

__all__ = ["Smoother", "change_smoothers", "from_pyamg", "ruge_stuben_solver", "smoothed_aggregation_solver"]

#: PyAMG's smoothers by name -> those of this package. Blocks are swept where A has blocks.
SMOOTHERS = {
    "gauss_seidel": "gauss_seidel",
    "block_gauss_seidel": "gauss_seidel",
    "jacobi": "jacobi",
    "block_jacobi": "jacobi",
    "chebyshev": "chebyshev",
}
#: Its direct solvers of the coarsest level, in whose place there is a pseudo-inverse.
DIRECT = ("pinv", "pinv2", "splu", "lu", "cholesky")


class Smoother:
    """Multicolor sweeps as PyAMG calls a smoother: ``smoother(A, x, b)`` changes x in place.

    Parameters
    ----------
    M : MulticolorGS
        Of the level's matrix; the A that PyAMG passes is ignored.
    sweep : {"forward", "backward", "symmetric"}
    iterations : int
    """

    def __init__(self, M: MulticolorGS, sweep: Sweep, iterations: int) -> None:
        self.M, self.sweep, self.iterations = M, sweep, iterations

    def __call__(self, A: Any, x: np.ndarray, b: np.ndarray) -> None:
        """Sweep on A x = b; x is changed."""
        dtype, M = self.M.dtype, self.M
        own = np.ascontiguousarray(x, dtype=dtype).reshape(-1)
        right = np.ascontiguousarray(b, dtype=dtype).reshape(-1)
        M.enqueue_sweep(own, right, self.sweep, sweeps=self.iterations)
        if not np.shares_memory(own, x):
            x[...] = own.reshape(x.shape)


def change_smoothers(
    ml: Any,
    sweeps: tuple[str, str] = ("forward", "backward"),
    *,
    iterations: int = 1,
    omega: float = 1.0,
    coloring: ColoringMethod = "auto",
) -> None:
    """Replace the smoothers of a PyAMG solver by multicolor Gauss-Seidel or SOR, in place.

    All else stays with PyAMG: levels, transfers, cycles and acceleration. The sweeps run on all cores.

    Parameters
    ----------
    ml : pyamg.MultilevelSolver
        Changed: `presmoother` and `postsmoother` of every level but the coarsest one.
    sweeps : two of {"forward", "backward", "symmetric"}
        Before and after the correction from the coarser level.
    iterations : int
        How many sweeps each makes.
    omega : float
        Relaxation factor, 0 < omega < 2.
    coloring : str
        A method of `color`.

    Raises
    ------
    TypeError, ValueError
        If ml has no levels, an argument is out of range, or a level has a zero on the diagonal (names the row).

    Examples
    --------
    >>> import numpy as np, pyamg
    >>> from mcprecond.interop.pyamg import change_smoothers
    >>> A = pyamg.gallery.poisson((60, 60), format="csr")
    >>> ml = pyamg.smoothed_aggregation_solver(A)
    >>> change_smoothers(ml)
    >>> residuals = []
    >>> x = ml.solve(np.ones(3600), tol=1e-8, accel="cg", residuals=residuals)
    >>> len(residuals) - 1  # iterations
    12
    """
    levels = getattr(ml, "levels", None)
    if not levels or not all(hasattr(level, "A") for level in levels):
        raise TypeError(f"ml must be a solver of PyAMG, with levels, got {type(ml).__name__}")
    if len(sweeps) != 2 or isinstance(sweeps, str):
        raise ValueError(f"sweeps must be two names, before and after the correction, got {sweeps!r}")
    before, after = (one_of(sweep, "sweeps", SWEEPS) for sweep in sweeps)
    iterations, omega = integer(iterations, "iterations", 1), real(omega, "omega", 0, 2)
    made = [MulticolorGS(level.A, coloring, sweep="symmetric", omega=omega) for level in levels[:-1]]
    for level, M in zip(levels, made, strict=False):
        level.presmoother, level.postsmoother = Smoother(M, before, iterations), Smoother(M, after, iterations)
    ml.symmetric_smoothing = {before, after} in ({"forward", "backward"}, {"symmetric"})


class Complexity(float):
    """A number that can be called, for its value: in PyAMG's solvers complexities are methods."""

    def __call__(self) -> float:
        """The number itself."""
        return float(self)


class CalledAsPyAMG(Multigrid):
    """A hierarchy that is called as PyAMG's solvers are."""

    @property
    def operator_complexity(self) -> Complexity:
        """As `SmoothedAggregation` has it; it can be called."""
        return Complexity(super().operator_complexity)

    @property
    def grid_complexity(self) -> Complexity:
        """As `SmoothedAggregation` has it; it can be called."""
        return Complexity(super().grid_complexity)

    def solve(self, b: Any, x0: Any = None, tol: float | None = None, *arguments: Any, **options: Any) -> Any:
        """Solve A x = b as `SmoothedAggregation.solve` does, and return x unless `rtol` or `atol` is given."""
        if tol is None and not {"rtol", "atol"} & options.keys():
            tol = 1e-5
        return super().solve(b, x0, tol, *arguments, **options)

    def add_aggregations(self) -> None:
        """Give each level `AggOp`: a row for each node, with a 1 in the column of the node's aggregate."""
        level: Any
        for level in self.levels:
            level.AggOp = None if level.T is None else aggregation_matrix(level.T.labels, self.backend)


class SmoothedAggregationSolver(CalledAsPyAMG, SmoothedAggregation):
    """What `smoothed_aggregation_solver` returns."""

    def __init__(self, A: Any, B: Any, **options: Any) -> None:
        super().__init__(A, B, **options)
        self.add_aggregations()


class RugeStubenSolver(CalledAsPyAMG, ClassicalAMG):
    """What `ruge_stuben_solver` returns."""


def aggregation_matrix(labels: Any, backend: Backend) -> Any:
    """The aggregate of each node, or -1 where it is in none, as a sparse matrix of ones."""
    xp, within = backend.xp, labels >= 0
    columns = labels[within]
    indptr = xp.concatenate((xp.zeros(1, np.int32), xp.cumsum(within, dtype=np.int32)))
    shape = len(within), int(columns.max()) + 1 if len(columns) else 0
    return backend.sparse.csr_matrix((xp.ones(len(columns)), columns, indptr), shape=shape)


def smoothed_aggregation_solver(
    A: Matrix,
    B: HostArray | DeviceArray | None = None,
    BH: None = None,
    symmetry: str = "hermitian",
    strength: Any = "symmetric",
    aggregate: str = "standard",
    smooth: Any = "jacobi",
    presmoother: Any = None,
    postsmoother: Any = None,
    improve_candidates: Any = None,
    max_levels: int = 10,
    max_coarse: int | None = None,
    diagonal_dominance: bool = False,
    keep: bool = False,
    *,
    coarse_solver: Any = "pinv",
) -> SmoothedAggregation:
    """Return a `SmoothedAggregation` by the arguments of PyAMG's function of this name.

    Its `solve` returns x, as PyAMG's does, and its complexities can be called. So this function takes the place of
    PyAMG's by one changed import, or where a library imports PyAMG, by one line:
    ``pyamg.smoothed_aggregation_solver = mcprecond.interop.pyamg.smoothed_aggregation_solver``. What PyAMG has and this
    package does not have, such as other strengths, is left out with a warning: the levels are others then, not the
    solution.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, shape (n, n)
        Symmetric or Hermitian, and positive definite; semidefinite will do. Levels are built where it lives. In BSR
        format its blocks are nodes.
    B : array, shape (n, k), optional
        Near-null-space candidates; by default one constant for each unknown of a node.
    symmetry : {"hermitian", "symmetric"}
    strength : {"symmetric"}, ("symmetric", {"theta": t}) or None
        None connects all neighbors. Without a theta there is a limit for each row, see `SmoothedAggregation`; in PyAMG
        it is 0.
    aggregate : {"standard"}
        The aggregates are those of a maximal independent set of distance two, which is found in parallel.
    smooth : {"jacobi"}
        How prolongators are smoothed: as in `SmoothedAggregation`.
    presmoother, postsmoother : str, (str, options), or None
        "gauss_seidel", "block_gauss_seidel", "jacobi", "block_jacobi" or "chebyshev", the same for both, with the
        options "iterations" and "sweep": forward before and backward after the correction, or symmetric for both.
        None is the default of `SmoothedAggregation`, which takes least time; in PyAMG it is a symmetric sweep of
        Gauss-Seidel by blocks.
    max_levels : int
    max_coarse : int, optional
        As `SmoothedAggregation`, whose default suits the device; in PyAMG it is 10.
    keep : bool
        Of what PyAMG keeps, levels always have A, P, R and AggOp.
    coarse_solver : {"pinv", "splu", "lu", "cholesky"}
        All of them stand for a pseudo-inverse.
    BH, improve_candidates, diagonal_dominance : optional
        Not here: the defaults are the only values without a warning.

    Returns
    -------
    SmoothedAggregation

    Warns
    -----
    UserWarning
        If an argument asks for what is only in PyAMG, which says what is left out. Let PyAMG build such levels, and
        convert them by `from_pyamg`.

    Raises
    ------
    ValueError
        If symmetry is "nonsymmetric", which needs other transfers. As `SmoothedAggregation`.
    TypeError
        As `SmoothedAggregation`.

    Examples
    --------
    >>> import numpy as np
    >>> from mcprecond import problems
    >>> from mcprecond.interop.pyamg import smoothed_aggregation_solver
    >>> A = problems.laplacian((60, 60))
    >>> ml, residuals = smoothed_aggregation_solver(A, max_coarse=50), []
    >>> x = ml.solve(np.ones(3600), tol=1e-8, accel="cg", residuals=residuals)
    >>> len(ml.levels), round(ml.operator_complexity(), 1), len(residuals) - 1
    (4, 1.5, 10)
    """
    if symmetry not in ("hermitian", "symmetric"):
        raise ValueError(
            f"symmetry must be 'hermitian' or 'symmetric', got {describe(symmetry)}; for other matrices let PyAMG "
            "build the levels and convert them by from_pyamg, or use ILU0 with gmres or bicgstab"
        )
    left_out: list[str] = []
    of_pyamg = {"BH": BH, "improve_candidates": improve_candidates, "diagonal_dominance": diagonal_dominance or None}
    left_out += [f"{name}={describe(value)}" for name, value in of_pyamg.items() if value is not None]
    _recognize("aggregate", aggregate, ("standard",), (), left_out)
    _recognize("smooth", smooth, ("jacobi",), (), left_out)
    _recognize("coarse_solver", coarse_solver, DIRECT, (), left_out)
    theta: float | None = 0.0
    if strength is not None:
        theta = _recognize("strength", strength, ("symmetric",), ("theta",), left_out)[1].get("theta")
    smoothing = _smoothing(presmoother, postsmoother, left_out)
    _warn_of(left_out)
    flag(keep, "keep")
    return SmoothedAggregationSolver(
        A, B, block_size=_block_size(A), theta=theta, max_levels=max_levels, max_coarse=max_coarse, **smoothing
    )


def ruge_stuben_solver(
    A: Matrix,
    strength: Any = ("classical", {"theta": 0.25}),
    CF: Any = "RS",
    interpolation: Any = "classical",
    presmoother: Any = None,
    postsmoother: Any = None,
    max_levels: int = 30,
    max_coarse: int | None = None,
    keep: bool = False,
    *,
    coarse_solver: Any = "pinv",
) -> ClassicalAMG:
    """Return a `ClassicalAMG` by the arguments of PyAMG's function of this name.

    Its `solve` returns x, as PyAMG's does, and its complexities can be called. The coarse points are those of PMIS,
    which is found in parallel, and interpolation is extended+i, whatever PyAMG calls them: the levels are others, and
    CG takes fewer iterations in most cases.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, shape (n, n)
        Symmetric or Hermitian, and positive definite; semidefinite will do. Levels are built where it lives.
    strength : ("classical", {"theta": t}) or "classical"
    CF : {"RS", "PMIS", "PMISc", "CLJP", "CLJPc"}, or (str, options)
    interpolation : {"classical", "direct"}, or (str, options)
    presmoother, postsmoother, keep, coarse_solver
        As in `smoothed_aggregation_solver`.
    max_levels : int
    max_coarse : int, optional
        As `ClassicalAMG`, whose default suits the device; in PyAMG it is 10.

    Returns
    -------
    ClassicalAMG

    Warns
    -----
    UserWarning
        If an argument asks for what is only in PyAMG, which says what is left out. Let PyAMG build such levels, and
        convert them by `from_pyamg`.

    Raises
    ------
    TypeError, ValueError
        As `ClassicalAMG`.

    Examples
    --------
    >>> import numpy as np
    >>> from mcprecond import problems
    >>> from mcprecond.interop.pyamg import ruge_stuben_solver
    >>> A = problems.laplacian((60, 60))
    >>> ml, residuals = ruge_stuben_solver(A), []
    >>> x = ml.solve(np.ones(3600), tol=1e-8, accel="cg", residuals=residuals)
    >>> len(ml.levels), len(residuals) - 1
    (3, 8)
    """
    left_out: list[str] = []
    theta = _recognize("strength", strength, ("classical",), ("theta", "norm"), left_out)[1].get("theta")
    _recognize("CF", CF, ("RS", "PMIS", "PMISc", "CLJP", "CLJPc"), ("second_pass",), left_out)
    _recognize("interpolation", interpolation, ("classical", "direct"), ("modified",), left_out)
    _recognize("coarse_solver", coarse_solver, DIRECT, (), left_out)
    smoothing = _smoothing(presmoother, postsmoother, left_out)
    _warn_of(left_out)
    flag(keep, "keep")
    return RugeStubenSolver(A, theta=theta, max_levels=max_levels, max_coarse=max_coarse, **smoothing)


def _block_size(A: Any) -> int:
    """That of a matrix in BSR format; 1 for others."""
    rows, columns = getattr(A, "blocksize", (1, 1))
    return int(rows) if rows == columns else 1


def _smoothing(presmoother: Any, postsmoother: Any, left_out: list[str]) -> dict[str, Any]:
    """The smoother and its sweeps, as arguments of `SmoothedAggregation`; none where there is no counterpart."""
    if presmoother is None and postsmoother is None:
        return {}
    of_pyamg = tuple(SMOOTHERS), ("sweep", "iterations"), left_out
    before, of_before = _recognize("presmoother", presmoother, *of_pyamg)
    after, of_after = _recognize("postsmoother", postsmoother, *of_pyamg)
    if before is None or after is None:
        return {}
    smoother = SMOOTHERS[before]
    if smoother == "gauss_seidel":
        directions = of_before.get("sweep", "forward"), of_after.get("sweep", "forward")
        smoother = {("forward", "backward"): "gauss_seidel", ("symmetric",) * 2: "sgs"}.get(directions, "")
    if not smoother or SMOOTHERS[after] != SMOOTHERS[before]:
        left_out.append(f"presmoother={describe(presmoother)} with postsmoother={describe(postsmoother)}")
        return {}
    sweeps = {"presweeps": of_before.get("iterations", 1), "postsweeps": of_after.get("iterations", 1)}
    return {"smoother": smoother} | sweeps


def _recognize(
    argument: str, value: Any, names: tuple[str, ...], options: tuple[str, ...], left_out: list[str]
) -> tuple[str | None, dict[str, Any]]:
    """The name and the options in an argument of PyAMG's form; none where one is not among these, which is noted."""
    name, given = value if isinstance(value, tuple | list) and len(value) == 2 else (value, {})
    if name in names and isinstance(given, dict) and given.keys() <= {*options}:
        return name, given
    left_out.append(f"{argument}={describe(value)}")
    return None, {}


def _warn_of(left_out: list[str]) -> None:
    """Say what has no counterpart here, to who called the function that calls this."""
    if left_out:
        warnings.warn(
            f"{', '.join(left_out)} has no counterpart in mcprecond, and is left out; let PyAMG build such levels, and "
            "convert them by mcprecond.interop.pyamg.from_pyamg",
            stacklevel=3,
        )
