"""The page of robustness: iterations with our multigrid and with PyAMG's, on matrices from easy to hard."""

from __future__ import annotations

import math
from typing import Any

from report.generic import named

OURS, ALIKE = "ours", "ours, Gauss-Seidel"
#: Of ours, to be called fewer iterations.
CLEARLY_FEWER = 0.8

Row = dict[str, Any]


def cell(row: Row) -> str:
    count = f"{row['iterations']}" if row["converged"] else f"more than {row['iterations']:,}"
    return f"{count} ({row['operator_complexity']:.2f})"


def own(case: Row, name: str = OURS) -> Row:
    """With our defaults, or with the smoother that others have."""
    return named(case["hierarchies"])[name]


def rivals(case: Row) -> list[Row]:
    return [row for row in case["hierarchies"] if not row["name"].startswith(OURS)]


def iterations(row: Row) -> float:
    return float(row["iterations"]) if row["converged"] else math.inf


def entries(row: Row) -> float:
    """Those of all levels, in all iterations, as multiples of those of A."""
    return iterations(row) * float(row["operator_complexity"])


def best_other(case: Row) -> Row:
    """The hierarchy of others with the fewest iterations; of several, the smallest one."""
    return min(rivals(case), key=lambda row: (iterations(row), row["operator_complexity"]))


def said(case: Row) -> str:
    """What ours takes, and the best of others."""
    other = best_other(case)
    return f"{case['name']}: {cell(own(case))}, and {cell(other)} with {other['name']}"
