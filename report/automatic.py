"""How good ``M="auto"`` is: its times beside those of the best of all preconditioners with their defaults."""

from __future__ import annotations

from typing import Any

from report.noise import Range, fastest
from report.results import Document, origin
from report.tables import mean, number, table

AUTO = "auto"
#: The preconditioners that "auto" is compared with, and the words that the page uses for each.
FIXED = {"none": "without one"} | {name: f"with {name}" for name in ("Jacobi", "SGS", "DILU", "ILU0", "multigrid")}

Case = dict[str, Any]


def facts(document: Document) -> dict[str, Any]:
    """The figures and the table that the page shows of a run."""
    cases = document["cases"]
    worst = max(cases, key=multiple)
    return {
        "origin": origin(document),
        "rtol": document["rtol"],
        "matrices": len(cases),
        "mean": f"{mean([multiple(case) for case in cases]):.2f}",
        "worst": f"{multiple(worst):.1f} times on {worst['name']}",
        "fixed": ", ".join(f"{mean(multiples(name, cases)):.2f} times {said}" for name, said in FIXED.items()),
        "failed": [f"{said} on {count}" for name, said in FIXED.items() if (count := failures(name, cases))],
        "table": chosen(cases),
    }


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


def multiples(name: str, cases: list[Case]) -> list[float]:
    """These quotients for one preconditioner, on the matrices where it converged."""
    return [multiple(case, name) for case in cases if time(case, name)]


def failures(name: str, cases: list[Case]) -> int:
    """The number of matrices on which CG did not converge with this preconditioner."""
    return sum(time(case, name) is None for case in cases)


def chosen(cases: list[Case]) -> str:
    header = ["matrix", "the best", "auto: iterations", "times the best", "auto is best", "auto, ms", "the best, ms"]
    rows = []
    for case in cases:
        auto, others = time(case, AUTO), times(case)
        best = min(others, key=lambda name: others[name].found)
        stages = next(row for row in case["solvers"] if row["name"] == AUTO)["stages"]
        cells = [case["name"], best, ", ".join(stages) or "none"]
        if auto is None:
            rows.append([*cells, "not solved", "no", "", number(others[best].found)])
            continue
        decided = fastest(auto, others.values())
        rows.append([*cells, f"{multiple(case):.2f}", decided, number(auto.found), number(others[best].found)])
    return table(header, rows, names=3)
