"""Studies: the papers' experiments, reproducible, and comparisons on a user's own matrices."""

from mcprecond.studies.compare import coloring, convergence
from mcprecond.studies.table import Table
from mcprecond.studies.table_v import METHODS, Row, table_v

__all__ = ["METHODS", "Row", "Table", "coloring", "convergence", "table_v"]
