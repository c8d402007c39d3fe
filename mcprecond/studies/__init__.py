"""Studies: the papers' experiments, reproducible, and comparisons on a user's own matrices."""

from mcprecond.studies import plots
from mcprecond.studies.advice import advise
from mcprecond.studies.compare import coloring, convergence
from mcprecond.studies.demo import demo
from mcprecond.studies.named import STUDIES, run
from mcprecond.studies.peclet import PecletRow, peclet
from mcprecond.studies.table import Table
from mcprecond.studies.table_v import METHODS, Row, published_table_v, table_v

__all__ = [
    "METHODS",
    "STUDIES",
    "PecletRow",
    "Row",
    "Table",
    "advise",
    "coloring",
    "convergence",
    "demo",
    "peclet",
    "plots",
    "published_table_v",
    "run",
    "table_v",
]
