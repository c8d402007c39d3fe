"""Studies of a user's own matrices: comparisons, advice, pictures. Those of the papers are in `benchmarks/papers`."""

from mcprecond.studies import plots
from mcprecond.studies.advice import advise
from mcprecond.studies.compare import coloring, convergence
from mcprecond.studies.demo import demo
from mcprecond.studies.hierarchies import multigrid
from mcprecond.studies.table import Table

__all__ = ["Table", "advise", "coloring", "convergence", "demo", "multigrid", "plots"]
