"""Krylov solvers: CG, MINRES, BiCGSTAB and GMRES. Those of SciPy and CuPy take the same preconditioners."""

from mcprecond.solvers.bicgstab import bicgstab
from mcprecond.solvers.gmres import gmres
from mcprecond.solvers.minres import minres
from mcprecond.solvers.pcg import PCG, pcg
from mcprecond.solvers.result import ColumnsResult, Reason, SolveResult

__all__ = ["PCG", "ColumnsResult", "Reason", "SolveResult", "bicgstab", "gmres", "minres", "pcg"]

#: What solves by a Krylov method, by name.
SOLVERS = {solver.__name__: solver for solver in (pcg, minres, bicgstab, gmres)}
