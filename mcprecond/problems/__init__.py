"""Problems to color, precondition and solve."""

from mcprecond.problems.fenl import FENL, NewtonStep, fenl

__all__ = ["FENL", "NewtonStep", "fenl"]
