"""What ``benchmarks/automatic.py`` says: how good ``M="auto"`` is beside the best of all preconditioners with their
defaults, and where CG is better off without any of ours. Times include setup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from report.noise import Range, verdict
from report.results import Document, date, place
from report.tables import mean, number, table

AUTO = "auto"
FILES = ("automatic-gpu", "automatic-cpu")
#: CG runs alone or with Jacobi, whichever is faster, and is compared with the fastest of the other preconditioners.
CG = ("none", "Jacobi")
HEADER = ["", "CG was the fastest on", "a preconditioner on", "none was faster below", "CG was never the fastest above"]
#: The preconditioners that "auto" is compared with, and the words that the page uses for each.
FIXED = {"none": "without one"} | {name: f"with {name}" for name in ("Jacobi", "SGS", "DILU", "ILU0", "multigrid")}

Case = dict[str, Any]


def time(case: Case, name: str) -> Range | None:
    """The time of setup and solve, or None if the solve did not converge."""
    row = next(row for row in case["solvers"] if row["name"] == name)
    return Range.of(row) if row["converged"] else None


def times(case: Case) -> dict[str, Range]:
    """The times of the preconditioners with which CG converged."""
    return {name: found for name in FIXED if (found := time(case, name))}


def multiple(case: Case, name: str = AUTO) -> float:
    """The time divided by that of the best preconditioner. A solve that failed counts as the slowest one."""
    others = times(case)
    found = time(case, name) or max(others.values())
    return found.found / min(others.values()).found


def fixed(cases: list[Case]) -> str:
    """What always taking one preconditioner would come to, on the matrices where it converged."""
    means = {name: mean([multiple(case, name) for case in cases if time(case, name)]) for name in FIXED}
    return ", ".join(f"{means[name]:.2f} times {said}" for name, said in FIXED.items())


def failures(name: str, cases: list[Case]) -> int:
    """The number of matrices on which CG did not converge with this preconditioner."""
    return sum(time(case, name) is None for case in cases)


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
    found = times(case)
    alone = [name for name in CG if name in found]
    others = [time for name, time in found.items() if name not in CG]
    if not alone or not others:
        return None
    fastest = min(alone, key=lambda name: found[name].found)
    row = next(row for row in case["solvers"] if row["name"] == fastest)
    rival = min(others, key=lambda time: time.found)
    return Compared(row["iterations"], row["ms"], verdict(rival / found[fastest], 1.0, at_most=True))
