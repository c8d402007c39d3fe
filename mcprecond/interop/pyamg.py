"""PyAMG's solvers with multicolor sweeps in the places of their smoothers."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends.arguments import integer, one_of, real
from mcprecond.preconditioners import MulticolorGS
from mcprecond.preconditioners.gauss_seidel import SWEEPS
from mcprecond.typing import ColoringMethod, Sweep

__all__ = ["Smoother", "change_smoothers"]


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
    >>> x = ml.solve(np.ones(3600), tol=1e-8, accel="cg")
    >>> bool(np.linalg.norm(A @ x - 1) < 1e-6)
    True
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
