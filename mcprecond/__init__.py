"""Multicolor Gauss-Seidel preconditioners for sparse solvers, on CPU (Numba) and GPU (CuPy and CUDA).

>>> import scipy.sparse
>>> from mcprecond import MulticolorSGS, pcg
>>> A = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(100, 100), format="csr")
>>> x, info = pcg(A, A.sum(axis=1), M=MulticolorSGS(A, coloring="eb"))
"""

from mcprecond import problems, studies
from mcprecond.coloring import COLORINGS, Coloring, color
from mcprecond.matrix import PatternChangedError
from mcprecond.preconditioners import ILU0, AutoColoring, MulticolorDILU, MulticolorGS, MulticolorSGS, smooth
from mcprecond.reordering import ColorBlocks
from mcprecond.solvers import SolveResult, pcg

__version__ = "0.1.0"

__all__ = [
    "COLORINGS",
    "ILU0",
    "AutoColoring",
    "ColorBlocks",
    "Coloring",
    "MulticolorDILU",
    "MulticolorGS",
    "MulticolorSGS",
    "PatternChangedError",
    "SolveResult",
    "__version__",
    "color",
    "pcg",
    "problems",
    "smooth",
    "studies",
]
