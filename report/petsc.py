"""The page of PETSc on GPUs and its picture: one rank a GPU, with PETSc's preconditioners and ours."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any

from report.generic import Fields
from report.pictures import MARKERS, picture, plain_ticks
from report.results import Document
from report.tables import number, table

RUN, PICTURE = "petsc-gpu", "petsc.svg"

Case = dict[str, Any]
Row = dict[str, Any]


def systems_of(document: Document) -> list[dict[str, Any]]:
    """The cases of each system: one rank, more of them with a cube each, and more that share one; and their table."""
    systems: dict[str, list[Case]] = {}
    for case in sorted(document["cases"], key=operator.itemgetter("points", "edge", "strong", "ranks")):
        systems.setdefault(f"{case['points']} points, {case['edge']}³", []).append(case | {"rows": rows_of(case)})
    return [
        {
            "name": name,
            "cases": list(map(Fields, cases)),
            "alone": next((case for case in cases if case["ranks"] == 1), {}),
            "times": times_of(cases),
        }
        for name, cases in systems.items()
    ]


def place_of(case: Case) -> str:
    """How many ranks, and what they share."""
    if case["ranks"] == 1:
        return "1 rank"
    return f"{case['ranks']} ranks{', one cube' if case['strong'] else ''}"


def rows_of(case: Case) -> dict[str, Row]:
    """What ran, by name."""
    return {row["name"]: row for row in case.get("solvers", ()) if "failed" not in row}


def total_ms(row: Row) -> float:
    """Of a setup and a solve."""
    return float(row["setup_ms"] + row["solve_ms"])


def times_of(cases: list[Case]) -> str:
    """Iterations, setup and solve of each configuration, and an application."""
    names = dict.fromkeys(row["name"] for case in cases for row in case["solvers"])
    header = ["", *(f"{place_of(case)}: iterations, setup + solve (application)" for case in cases)]
    lines = [["product with A", *(f"({number(case['product_ms'])})" for case in cases)]]
    return table(header, lines + [[name, *(cell(case, name) for case in cases)] for name in names])


def cell(case: Case, name: str) -> str:
    """What is said of a configuration."""
    row = next((row for row in case["solvers"] if row["name"] == name), None)
    if row is None:
        return ""
    if "failed" in row:
        return "failed"
    times = (number(row[f"{part}_ms"]) for part in ("setup", "solve", "application"))
    return "{}, {} + {} ({})".format(row["iterations"], *times)


def draw(found: dict[str, Document], folder: Path) -> None:
    """A panel for each system: setup and solve together."""
    if RUN not in found:
        return
    document = found[RUN]
    systems = systems_of(document)
    names = list(dict.fromkeys(row["name"] for case in document["cases"] for row in case["solvers"]))
    with picture(folder / PICTURE, salt="petsc") as plt:
        columns = min(len(systems), 2)
        lines = -(-len(systems) // columns)
        size = (9, 0.6 + lines * (0.7 + 0.25 * len(names)))
        _, panels = plt.subplots(lines, columns, figsize=size, squeeze=False, sharey=True, layout="constrained")
        for panel, system in zip(panels.flat, systems, strict=False):
            for k, case in enumerate(system["cases"]):
                rows = case["rows"]
                style = {"marker": MARKERS[k], "linestyle": "none", "markeredgecolor": "black", "color": str(k / 2)}
                places = [names.index(name) for name in rows]
                panel.plot([total_ms(row) for row in rows.values()], places, **style, label=place_of(case))
            panel.set(title=system["name"], xscale="log", yticks=range(len(names)), yticklabels=names)
            panel.set_ylim(len(names) - 0.5, -0.5)
            panel.set_xlabel("setup and solve [ms]")
            plain_ticks(panel.xaxis)
            panel.grid(axis="both", color="0.85")
            panel.set_axisbelow(True)
            panel.legend(frameon=False, fontsize=7, loc="lower right")
