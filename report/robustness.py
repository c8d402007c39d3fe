"""The page of robustness: iterations with our multigrid and with PyAMG's, on matrices from easy to hard."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from report.results import RESULTS, Document, measured, runs, versions
from report.tables import render, table

RUN, OURS, ALIKE = "robustness-cpu", "ours", "ours, Gauss-Seidel"
#: Of ours, to be called fewer iterations.
CLEARLY_FEWER = 0.8

Row = dict[str, Any]


def load(results: Path = RESULTS) -> Document | None:
    """The run, if it exists."""
    return runs([RUN], results).get(RUN)


def page(document: Document | None) -> str:
    """The whole page, in Markdown."""
    return render("robustness.md", run=document and facts(document))


def facts(document: Document) -> dict[str, Any]:
    """A line for each matrix, and where others take fewer iterations."""
    cases = document["cases"]
    names = list(dict.fromkeys(row["name"] for case in cases for row in case["hierarchies"]))
    header = ["iterations (operator complexity)", "unknowns", *names]
    return {
        "measured": measured(document),
        "versions": versions(document),
        "rtol": document["rtol"],
        "maxiter": f"{document['maxiter']:,}",
        "cases": len(cases),
        "fewest": sum(iterations(own(case)) <= iterations(best_other(case)) for case in cases),
        "least": sum(entries(own(case, ALIKE)) <= min(map(entries, others(case))) for case in cases),
        "lost": [said(case) for case in cases if is_lost(case)],
        "failed": [
            f"{row['name']} on {case['name']}" for case in cases for row in case["hierarchies"] if not row["converged"]
        ],
        "table": table(header, [line(case, names) for case in cases]),
    }


def line(case: Row, names: list[str]) -> list[str]:
    """A matrix and the cells of all hierarchies; empty where one was not built."""
    rows = {row["name"]: row for row in case["hierarchies"]}
    return [case["name"], f"{case['unknowns']:,}", *(cell(rows[name]) if name in rows else "" for name in names)]


def cell(row: Row) -> str:
    iterations = str(row["iterations"]) if row["converged"] else f"more than {row['iterations']:,}"
    return f"{iterations} ({row['operator_complexity']:.2f})"


def own(case: Row, name: str = OURS) -> Row:
    """With our defaults, or with the smoother that others have."""
    return next(row for row in case["hierarchies"] if row["name"] == name)


def others(case: Row) -> list[Row]:
    return [row for row in case["hierarchies"] if not row["name"].startswith(OURS)]


def iterations(row: Row) -> float:
    return float(row["iterations"]) if row["converged"] else math.inf


def entries(row: Row) -> float:
    """Those of all levels, in all iterations, as multiples of those of A."""
    return iterations(row) * float(row["operator_complexity"])


def best_other(case: Row) -> Row:
    """The hierarchy of others with the fewest iterations; of several, the smallest one."""
    return min(others(case), key=lambda row: (iterations(row), row["operator_complexity"]))


def is_lost(case: Row) -> bool:
    """Whether another takes clearly fewer iterations."""
    return iterations(best_other(case)) <= CLEARLY_FEWER * iterations(own(case))


def said(case: Row) -> str:
    """What ours takes, and the best of others."""
    other = best_other(case)
    return f"{case['name']}: {cell(own(case))}, and {cell(other)} with {other['name']}"
