"""Studies: the papers' experiments, reproducible."""

from mcprecond.studies.peclet import PecletRow, peclet
from mcprecond.studies.table_v import METHODS, Row, table_v

__all__ = ["METHODS", "PecletRow", "Row", "peclet", "table_v"]
