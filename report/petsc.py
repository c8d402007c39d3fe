"""The page of PETSc on GPUs and its picture: one rank a GPU, with PETSc's preconditioners and ours."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any

from report.pictures import MARKERS, picture, plain_ticks
from report.results import RESULTS, Document, measured, runs, versions
from report.tables import number, render, table

RUN, PICTURE = "petsc-gpu", "petsc.svg"
SGS, OURS = "MulticolorSGS", "DistributedSmoothedAggregation"
RATIOS = [
    "system and ranks",
    f"{SGS}: application in PETSc / outside",
    f"jacobi / {SGS}, in total",
    f"gamg / {OURS}, setup",
    "the same, solve",
    f"throughput of {OURS} / that of one rank",
]

Case = dict[str, Any]
Row = dict[str, Any]


def load(results: Path = RESULTS) -> Document | None:
    """The run, if it exists."""
    return runs([RUN], results).get(RUN)


def page(document: Document | None) -> str:
    """The whole page, in Markdown."""
    return render("petsc.md", picture=f"../images/{PICTURE}", run=document and facts(document))


def facts(document: Document) -> dict[str, Any]:
    """A table of times for each system, and one of ratios."""
    systems = systems_of(document)
    alone = {name: next((case for case in cases if case["ranks"] == 1), {}) for name, cases in systems.items()}
    ratios = [ratios_of(name, case, alone[name]) for name, cases in systems.items() for case in cases]
    return {
        "measured": measured(document),
        "versions": versions(document),
        "rtol": document["rtol"],
        "ratios": table(RATIOS, ratios),
        "systems": [{"name": name, "times": times_of(cases)} for name, cases in systems.items()],
    }


def systems_of(document: Document) -> dict[str, list[Case]]:
    """The cases of each system: one rank, more of them with a cube each, and more that share one."""
    systems: dict[str, list[Case]] = {}
    by_system = operator.itemgetter("points", "edge", "strong", "ranks")
    for case in sorted(document["cases"], key=by_system):
        systems.setdefault(f"{case['points']} points, {case['edge']}³", []).append(case)
    return systems


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


def ratio(rows: dict[str, Row], above: str, below: str, of: str = "") -> str:
    """How many times as long as another one a configuration takes; nothing where one of them has not run."""
    if not {above, below} <= rows.keys():
        return ""
    times = (rows[name][of] if of else total_ms(rows[name]) for name in (above, below))
    return number(next(times) / next(times))


def ratios_of(system: str, case: Case, alone: Case) -> list[str]:
    """A line of the table of ratios."""
    rows, first = rows_of(case), rows_of(alone)
    applied, throughput = "", ""
    if SGS in rows:
        applied = f"{rows[SGS]['application_ms'] / rows[SGS]['application_outside_ms']:.2f}"
    if case["ranks"] > 1 and OURS in rows and OURS in first:
        share = case["unknowns"] / alone["unknowns"]
        throughput = f"{share * first[OURS]['solve_ms'] / rows[OURS]['solve_ms']:.2f}"
    parts = [ratio(rows, "jacobi", SGS), *(ratio(rows, "gamg", OURS, of) for of in ("setup_ms", "solve_ms"))]
    return [f"{system}, {place_of(case)}", applied, *parts, throughput]


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


def draw(document: Document | None, folder: Path) -> None:
    """A panel for each system: setup and solve together."""
    if document is None:
        return
    systems = systems_of(document)
    names = list(dict.fromkeys(row["name"] for case in document["cases"] for row in case["solvers"]))
    with picture(folder / PICTURE, salt="petsc") as plt:
        columns = min(len(systems), 2)
        lines = -(-len(systems) // columns)
        size = (9, 0.6 + lines * (0.7 + 0.25 * len(names)))
        _, panels = plt.subplots(lines, columns, figsize=size, squeeze=False, sharey=True, layout="constrained")
        for panel, (system, cases) in zip(panels.flat, systems.items(), strict=False):
            for k, case in enumerate(cases):
                rows = rows_of(case)
                style = {"marker": MARKERS[k], "linestyle": "none", "markeredgecolor": "black", "color": str(k / 2)}
                places = [names.index(name) for name in rows]
                panel.plot([total_ms(row) for row in rows.values()], places, **style, label=place_of(case))
            panel.set(title=system, xscale="log", yticks=range(len(names)), yticklabels=names)
            panel.set_ylim(len(names) - 0.5, -0.5)
            panel.set_xlabel("setup and solve [ms]")
            plain_ticks(panel.xaxis)
            panel.grid(axis="both", color="0.85")
            panel.set_axisbelow(True)
            panel.legend(frameon=False, fontsize=7, loc="lower right")
