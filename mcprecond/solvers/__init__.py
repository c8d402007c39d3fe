"""Krylov solvers: our preconditioned CG. Others are SciPy's and CuPy's own, which take the preconditioners as M."""

from mcprecond.solvers.pcg import PCG, pcg
from mcprecond.solvers.result import ColumnsResult, Reason, SolveResult

__all__ = ["PCG", "ColumnsResult", "Reason", "SolveResult", "pcg"]
