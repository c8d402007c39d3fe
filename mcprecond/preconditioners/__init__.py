"""Preconditioners built from color blocks: LinearOperators of SciPy, with vectors on either device."""

from mcprecond.preconditioners.base import Preconditioner
from mcprecond.preconditioners.dilu import MulticolorDILU
from mcprecond.preconditioners.gauss_seidel import MulticolorGS, MulticolorSGS, smooth
from mcprecond.preconditioners.ilu import ILU0
from mcprecond.preconditioners.pivots import Shifts
from mcprecond.tuning.least_time import AutoColoring, Candidate, Choice

__all__ = [
    "ILU0",
    "AutoColoring",
    "Candidate",
    "Choice",
    "MulticolorDILU",
    "MulticolorGS",
    "MulticolorSGS",
    "Preconditioner",
    "Shifts",
    "smooth",
]
