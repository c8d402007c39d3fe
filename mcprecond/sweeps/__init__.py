"""Sweeps with the triangles of color blocks."""

from mcprecond.sweeps.plan import Sweeps, make_empty

__all__ = ["Sweeps", "make_empty"]
