"""The page of PETSc on GPUs and its picture: one rank a GPU, with PETSc's preconditioners and ours."""

from __future__ import annotations

import operator
from pathlib import Path

from report.generic import Fields
from report.pictures import gray_dots, picture, plain_ticks
from report.results import Document, Row
from report.tables import names, number

RUN, PICTURE = "petsc-gpu", "petsc.svg"


def systems_of(document: Document) -> list[Row]:
    """The cases of each system: one rank, more of them with a cube each, and more that share one."""
    systems: dict[str, list[Row]] = {}
    for case in sorted(document["cases"], key=operator.itemgetter("points", "edge", "strong", "ranks")):
        systems.setdefault(f"{case['points']} points, {case['edge']}³", []).append(case | {"rows": rows_of(case)})
    return [
        {"name": name, "cases": [*map(Fields, cases)], "alone": cases[0] if cases[0]["ranks"] == 1 else {}}
        for name, cases in systems.items()
    ]


def place_of(case: Row) -> str:
    """How many ranks, and what they share."""
    if case["ranks"] == 1:
        return "1 rank"
    return f"{case['ranks']} ranks{', one cube' if case['strong'] else ''}"


def rows_of(case: Row) -> dict[str, Row]:
    """What ran, by name."""
    return {row["name"]: row for row in case.get("solvers", ()) if "failed" not in row}


def sentence(document: Document) -> str:
    """The sentence of README: the throughput of two ranks, with and without setup, for the systems that one rank was
    measured on as well, the one that gains most first; and how much faster two ranks solve one system.
    """
    name, found, shared = "solve, multigrid", list[tuple[str, str, str]](), ""
    for system in systems_of(document):
        alone = system["alone"].get("rows", {})
        for case in system["cases"]:
            if case["ranks"] != 2 or name not in alone or name not in case["rows"]:
                continue
            if case["strong"]:
                faster = alone[name]["solve_ms"] / case["rows"][name]["solve_ms"]
                shared = f" They solve one system of {case['edge']}³ unknowns {faster:.2f} times as fast as one."
                continue
            times = (throughput_of(name, case, system, parts) for parts in (("solve_ms",), ("setup_ms", "solve_ms")))
            found.append((*times, f"{case['points']}-point stencil, {case['edge']}³ unknowns per GPU"))
    if not found:
        return ""
    said = "; ".join(f"{solves} and {whole} ({what})" for solves, whole, what in sorted(found)[::-1])
    gpu = document["machine"]["gpu"]
    begin = f"By multigrid two {gpu} solve the following multiples of the unknowns per second that one solves, without"
    return f"{begin} and with setup: {said}.{shared}\n"


def ratio_of(case: Row, first: str, second: str, parts: tuple[str, ...]) -> str:
    """How many times as long one configuration takes as another; empty where one of them is missing."""
    rows = case["rows"]
    if not {first, second} <= rows.keys():
        return ""
    ours, theirs = (sum(rows[name][part] for part in parts) for name in (second, first))
    return number(theirs / ours)


def throughput_of(name: str, case: Row, system: Row, parts: tuple[str, ...] = ("solve_ms",)) -> str:
    """Unknowns a second in these parts of a row, as a multiple of those of one rank; empty on one rank, and where it is
    missing.
    """
    alone = system["alone"].get("rows", {})
    if case["ranks"] == 1 or name not in alone or name not in case["rows"]:
        return ""
    growth = case["unknowns"] / system["alone"]["unknowns"]
    before, now = (sum(row[part] for part in parts) for row in (alone[name], case["rows"][name]))
    return f"{growth * before / now:.2f}"


def total_ms(row: Row) -> float:
    """Of a setup and a solve."""
    return float(row["setup_ms"] + row["solve_ms"])


def draw(found: dict[str, Document], folder: Path) -> None:
    """A panel for each system: setup and solve together."""
    if RUN not in found:
        return
    document = found[RUN]
    systems = systems_of(document)
    solvers = names(row for case in document["cases"] for row in case["solvers"])
    columns = min(len(systems), 2)
    lines = -(-len(systems) // columns)
    size = (9, 0.6 + lines * (0.7 + 0.25 * len(solvers)))
    with picture(folder / PICTURE, lines, columns, figsize=size, sharey=True) as panels:
        for panel, system in zip(panels.flat, systems, strict=False):
            times = {
                place_of(case): {name: total_ms(row) for name, row in case.rows.items()} for case in system["cases"]
            }
            gray_dots(panel, solvers, times, white=2)
            panel.set(title=system["name"], xscale="log", yticks=range(len(solvers)), yticklabels=solvers)
            panel.set_ylim(len(solvers) - 0.5, -0.5)
            panel.set_xlabel("setup and solve [ms]")
            plain_ticks(panel.xaxis)
            panel.legend(frameon=False, fontsize=7, loc="lower right")
