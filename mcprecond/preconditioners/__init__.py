"""Preconditioners built from color blocks: LinearOperators of SciPy on the CPU and of CuPy on the GPU."""

from mcprecond.preconditioners.base import Preconditioner
from mcprecond.preconditioners.gauss_seidel import MulticolorGS, MulticolorSGS

__all__ = ["MulticolorGS", "MulticolorSGS", "Preconditioner"]
