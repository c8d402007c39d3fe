"""How good the advice of `advise` is: what its first choice loses against the best for another right-hand side."""

from __future__ import annotations

from typing import Any

from report.noise import Range, fastest
from report.results import Document, origin
from report.tables import mean, number, table

Case = dict[str, Any]


def facts(document: Document) -> dict[str, Any]:
    """The regret, and a line for each matrix."""
    cases = document["cases"]
    worst = max(cases, key=regret)
    return {
        "origin": origin(document),
        "matrices": len(cases),
        "mean": f"{100 * (mean([1 + regret(case) for case in cases]) - 1):.0f}%",
        "worst": f"{100 * regret(worst):.0f}% on {worst['name']}",
        "best": sum(is_best(case) == "yes" for case in cases),
        "lost": [case["name"] for case in cases if is_best(case) == "no"],
        "table": advised(cases),
    }


def verified(case: Case) -> list[Case]:
    """The solvers that converged, the quickest first."""
    return sorted((row for row in case["solvers"] if row["verified"]), key=lambda row: row["seconds"])


def best(case: Case) -> Case:
    return verified(case)[0]


def followed(case: Case) -> Case:
    """The row of what was advised, or, if that did not converge, the slowest: who followed the advice tried again."""
    rows = verified(case)
    return next((row for row in rows if row["name"] == case["advised"]), rows[-1])


def regret(case: Case) -> float:
    """The share of time lost."""
    return float(followed(case)["seconds"] / best(case)["seconds"] - 1)


def is_best(case: Case) -> str:
    """Whether the advice takes no longer than the others."""
    advised = followed(case)
    others = [row for row in verified(case) if row is not advised]
    return fastest(Range.of(advised, "seconds"), [Range.of(row, "seconds") for row in others])


def advised(cases: list[Case]) -> str:
    header = ["matrix", "advised", "best", "regret", "advice is best", "advised, ms", "best, ms"]
    rows = []
    for case in cases:
        times = [1e3 * followed(case)["seconds"], 1e3 * best(case)["seconds"]]
        cells = [case["name"], case["advised"], best(case)["name"], f"{100 * regret(case):.0f}%", is_best(case)]
        rows.append([*cells, *map(number, times)])
    return table(header, rows, names=3)
