"""Algebraic multigrid with Chebyshev polynomials or multicolor sweeps as smoothers, on the CPU and the GPU."""

from mcprecond.multigrid.choice import fitting_multigrid
from mcprecond.multigrid.classical import ClassicalAMG
from mcprecond.multigrid.from_pyamg import PyAMGHierarchy, from_pyamg
from mcprecond.multigrid.hierarchy import Level, Multigrid
from mcprecond.multigrid.near_null_space import rigid_body_modes
from mcprecond.multigrid.smoothed_aggregation import SmoothedAggregation
from mcprecond.solvers.named import BUILDERS

BUILDERS["multigrid"] = fitting_multigrid

__all__ = [
    "ClassicalAMG",
    "Level",
    "Multigrid",
    "PyAMGHierarchy",
    "SmoothedAggregation",
    "fitting_multigrid",
    "from_pyamg",
    "rigid_body_modes",
]
