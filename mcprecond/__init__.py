"""Multicolor Gauss-Seidel, ILU(0) and multigrid for sparse systems, on CPU (Numba) and GPU (CuPy and CUDA).

>>> import scipy.sparse
>>> from mcprecond import MulticolorSGS, pcg
>>> A = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(100, 100), format="csr")
>>> x, info = pcg(A, A.sum(axis=1), M=MulticolorSGS(A))
"""

from mcprecond import multigrid, problems, studies
from mcprecond.backends.determinism import deterministic
from mcprecond.coloring import COLORINGS, Coloring, color
from mcprecond.configuration import configure
from mcprecond.matrix import PatternChangedError
from mcprecond.multigrid import ClassicalAMG, SmoothedAggregation
from mcprecond.preconditioners import ILU0, AutoColoring, MulticolorDILU, MulticolorGS, MulticolorSGS, smooth
from mcprecond.solvers import PCG, SolveResult, bicgstab, gmres, minres, pcg
from mcprecond.storage import ColorBlocks
from mcprecond.systems import solve
from mcprecond.version import __version__


def __dir__() -> list[str]:
    """The names that users call, without those of modules that hold them."""
    return __all__


__all__ = [
    "COLORINGS",
    "ILU0",
    "PCG",
    "AutoColoring",
    "ClassicalAMG",
    "ColorBlocks",
    "Coloring",
    "MulticolorDILU",
    "MulticolorGS",
    "MulticolorSGS",
    "PatternChangedError",
    "SmoothedAggregation",
    "SolveResult",
    "__version__",
    "bicgstab",
    "color",
    "configure",
    "deterministic",
    "gmres",
    "minres",
    "multigrid",
    "pcg",
    "problems",
    "smooth",
    "solve",
    "studies",
]
