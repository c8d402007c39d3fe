"""Model problems: where the matrices of the studies come from."""

from mcprecond.problems.fenl import FENL, NewtonStep, fenl

__all__ = ["FENL", "NewtonStep", "fenl"]
