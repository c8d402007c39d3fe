"""The choice of a coloring by predicted time."""

from mcprecond.tuning.auto import AutoColoring, Candidate, Choice, chosen

__all__ = ["AutoColoring", "Candidate", "Choice", "chosen"]
