"""How good the advice of `advise` is: what its first choice loses against the best for another right-hand side."""

from __future__ import annotations

from typing import Any

from report.noise import Range, fastest

Case = dict[str, Any]


def verified(case: Case) -> list[Case]:
    """The solvers that converged, the quickest first."""
    return sorted((row for row in case["solvers"] if row["verified"]), key=lambda row: row["seconds"])


def followed(case: Case) -> Case:
    """The row of what was advised, or, if that did not converge, the slowest: who followed the advice tried again."""
    rows = verified(case)
    return next((row for row in rows if row["name"] == case["advised"]), rows[-1])


def regret(case: Case) -> float:
    """The share of time lost."""
    return float(followed(case)["seconds"] / verified(case)[0]["seconds"] - 1)


def is_best(case: Case) -> str:
    """Whether the advice takes no longer than the others."""
    advised = followed(case)
    others = [row for row in verified(case) if row is not advised]
    return fastest(Range.of(advised, "seconds"), [Range.of(row, "seconds") for row in others])
