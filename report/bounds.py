"""docs/development/bounds.md: bounds that were missed, what limits the kernels, and what was watched of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from report.noise import Range, verdict
from report.results import MARKS
from report.sweeps import asked_of
from report.tables import number

#: Bytes of an entry and of an unknown: what a product reads and writes, and an application with diagonals.
PRODUCT, APPLICATION, PASS = (12, 20), (8, 70), (12, 0)


def missed_by_sweeps(case: dict[str, Any]) -> list[tuple[str, str]]:
    """The bounds of sweeps and solves that do not hold, or are not decided, and what was found."""
    return [(what, said) for what, said in asked_of(case).items() if not said.endswith(": yes")]


def missed_by(rows: dict[str, dict[str, Any]], order: str) -> Iterator[tuple[str, str]]:
    """The bounds of ILU(0) that do not hold, or are not decided, and what was found."""
    ours, theirs = rows[f"ILU0 {order}"], rows[f"cuSPARSE {order}"]
    parts = {
        "factorization / application": ((ours, "factor_ms"), (ours, "apply_ms")),
        "application to four vectors / to one": ((ours, "apply_four_ms"), (ours, "apply_ms")),
        "cuSPARSE's application / ours": ((theirs, "apply_ms"), (ours, "apply_ms")),
    }
    for what, (above, below) in parts.items():
        mark, found = MARKS["factorizations"][what], Range.of(*above) / Range.of(*below)
        holds = verdict(found, mark["limit"], at_most=mark["bound"] == "at most")
        if holds != "yes":
            yield what, f"{number(found.found)} ({mark['bound']} {mark['limit']:g}): {holds}"


def bytes_of(case: dict[str, Any], each: tuple[int, int]) -> float:
    """Bytes, with so many for each entry and each unknown."""
    return float(each[0] * case["nnz"] + each[1] * case["unknowns"])


def asked_in_products(matrix: str) -> float:
    """The bound of an application in natural order."""
    return float(MARKS["sweeps"]["application, natural"][matrix][0])
