"""Where CG is better off without a preconditioner of ours: what the runs of ``benchmarks/automatic.py`` say of it.

CG runs alone or with Jacobi, whichever is faster, and is compared with the fastest of the other preconditioners. Times
include setup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from report import automatic
from report.noise import verdict
from report.results import Document, date, place
from report.tables import number, table

FILES = ("automatic-gpu", "automatic-cpu")
CG = ("none", "Jacobi")
HEADER = ["", "CG was the fastest on", "a preconditioner on", "none was faster below", "CG was never the fastest above"]


class Compared(NamedTuple):
    """One matrix: the iterations and milliseconds of CG, and whether a preconditioner takes less time."""

    iterations: int
    ms: float
    pays: str


def rule(documents: list[Document]) -> str:
    """A table with a line for each run; empty without any."""
    lines = [line_of(document) for document in documents]
    return table(HEADER, lines) if lines else ""


def line_of(document: Document) -> list[str]:
    """On how many matrices each was faster beyond the noise, and the bounds that follow, of iterations and of times."""
    cases = [found for case in document["cases"] if (found := compared(case))]
    lost, won = ([case for case in cases if case.pays == word] for word in ("no", "yes"))
    counts = f"{len(lost)} of {len(cases)} matrices", f"{len(won)}"
    return [f"{place(document)}, {date(document)}", *counts, bound(min, won), bound(max, lost)]


def bound(end: Callable[[Iterable[float]], float], cases: list[Compared]) -> str:
    """The least or the largest number of iterations, and the same of times; empty without a case."""
    if not cases:
        return ""
    return f"{end(case.iterations for case in cases)} iterations, or {number(end(case.ms for case in cases))} ms"


def compared(case: dict[str, Any]) -> Compared | None:
    """CG beside the best preconditioner; None where either of them fails."""
    found = automatic.times(case)
    alone = [name for name in CG if name in found]
    others = [time for name, time in found.items() if name not in CG]
    if not alone or not others:
        return None
    fastest = min(alone, key=lambda name: found[name].found)
    row = next(row for row in case["solvers"] if row["name"] == fastest)
    rival = min(others, key=lambda time: time.found)
    return Compared(row["iterations"], row["ms"], verdict(rival / found[fastest], 1.0, at_most=True))
