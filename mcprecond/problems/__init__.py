"""Problems to color, precondition and solve."""

from mcprecond.problems import graphs
from mcprecond.problems.elasticity import elasticity
from mcprecond.problems.fenl import FENL, NewtonStep, fenl

__all__ = ["FENL", "NewtonStep", "elasticity", "fenl", "graphs"]
