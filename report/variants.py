"""docs/development/compile-time-choices.md: the choices that multiply kernels, and the figures that support them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from report.results import RESULTS, Document, origin, runs
from report.tables import render
from report.watched import WATCHED, shown

SWEEPS, FACTORIZATIONS = "sweeps-gpu", "ilu-gpu"


def load(results: Path = RESULTS) -> dict[str, Document]:
    return runs([SWEEPS, FACTORIZATIONS], results)


def page(documents: dict[str, Document]) -> str:
    """The whole page, in Markdown."""
    cases = {case["name"]: case for case in documents[SWEEPS]["cases"]}
    factorizations = {case["name"]: case for case in documents[FACTORIZATIONS]["cases"]}

    def ratio(matrix: str, over: str, key: str, under: str, below: str | None = None) -> str:
        """A quantity of one row of the sweeps relative to that of another, or to another of its own."""
        rows = {row["name"]: row for row in cases[matrix]["sweeps"]}
        return f"{rows[over][key] / rows[under][below or key]:.2f}"

    def four(matrix: str, order: str) -> str:
        rows = {row["name"]: row for row in factorizations[matrix]["factorizations"]}
        return f"{rows[f'ILU0 {order}']['apply_four_ms'] / rows[f'ILU0 {order}']['apply_ms']:.2f}"

    return render(
        "variants.md",
        origin=origin(documents[SWEEPS]),
        chosen=chosen(cases),
        ratio=ratio,
        four=four,
        seen=lambda key: shown(WATCHED["variants"][key]),
    )


def chosen(cases: dict[str, Any]) -> str:
    """What coloring="auto" takes on each matrix of the sweeps."""
    matrices: dict[str, list[str]] = {}
    for name, case in cases.items():
        if "auto" in case:
            matrices.setdefault(case["auto"]["choice"].split()[0], []).append(name)
    return "; ".join(f'"{method}" on {", ".join(names)}' for method, names in matrices.items())
