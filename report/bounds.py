"""docs/development/bounds.md: bounds that were missed, what limits the kernels, and what was watched of it."""

from __future__ import annotations

from typing import Any

from report.noise import asked, held
from report.results import MARKS
from report.sweeps import asked_of

#: Bytes of an entry and of an unknown: what a product reads and writes, and an application with diagonals.
PRODUCT, APPLICATION, PASS = (12, 20), (8, 70), (12, 0)


def missed_by_sweeps(case: dict[str, Any]) -> dict[str, str]:
    """The bounds of sweeps and solves that do not hold, or are not decided, and what was found."""
    return missed(asked_of(case))


def missed_by_factorizations(case: dict[str, Any], order: str) -> dict[str, str]:
    """The same of ILU(0)."""
    rows = {row["name"].removesuffix(f" {order}"): row for row in case["factorizations"]}
    marks = MARKS["factorizations"].items()
    return missed({what: held(asked(mark, rows), mark["bound"], mark["limit"]) for what, mark in marks})


def missed(found: dict[str, str]) -> dict[str, str]:
    return {what: said for what, said in found.items() if not said.endswith(": yes")}


def bytes_of(case: dict[str, Any], each: tuple[int, int]) -> float:
    """Bytes, with so many for each entry and each unknown."""
    return float(each[0] * case["nnz"] + each[1] * case["unknowns"])
