"""How good ``M="auto"`` is: its times beside those of the best of all preconditioners with their defaults."""

from __future__ import annotations

from typing import Any

from report.noise import Range
from report.tables import mean

AUTO = "auto"
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
