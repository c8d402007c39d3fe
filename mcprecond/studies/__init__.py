"""Studies: the papers' experiments, reproducible."""

from mcprecond.studies.table_v import METHODS, Row, table_v

__all__ = ["METHODS", "Row", "table_v"]
