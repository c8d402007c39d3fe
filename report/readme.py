"""What README shows of the results: a small table for each run, and a chart.

Both compare with the CG of SciPy or CuPy and Jacobi's preconditioner, which is what a reader has without this package.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from report import IMAGES, PAGES, README, ROOT
from report.noise import total_ms
from report.pictures import picture, plain_ticks
from report.results import RESULTS, Document, busy, measured, place, runs
from report.tables import number, render, replaced, table

PICTURE = "race.svg"
RACES = ("multigrid-gpu", "multigrid-cpu")
LIBRARY = "library Jacobi"
#: Solvers of ours by the names in files, with the names they get here. Of both factorizations the chart has the faster.
OURS = {
    "CG": "CG",
    "Jacobi": "CG with Jacobi",
    "SGS": "SGS",
    "DILU": "DILU",
    "ILU0": "ILU(0)",
    "multigrid": "multigrid",
}
BARS = {
    "our CG": (("CG",), "0.6"),
    "Gauss-Seidel": (("SGS",), "#1b9e77"),
    "DILU or ILU(0)": (("DILU", "ILU0"), "#7570b3"),
    "multigrid": (("multigrid",), "#d95f02"),
}
#: Problems by the names in files.
PROBLEMS = {
    "circuit": "random circuit",
    "triangulation": "triangulation",
    "elasticity": "elasticity",
    "poisson2d": "Poisson, 5 points",
    "fenl": "FENL, 27 points",
}

Races = dict[str, Document]
Row = dict[str, Any]


def load(results: Path = RESULTS) -> Races:
    """The runs that exist, by the names of their files."""
    return runs(list(RACES), results)


def page(races: Races) -> str:
    """README as it is, with its summary replaced."""
    return replaced(PAGES[README].read_text(), "summary", summary(races))


def summary(races: Races) -> str:
    """The part between the markers, in Markdown."""
    path = (IMAGES / PICTURE).relative_to(ROOT).as_posix()
    shown = [{"measured": measured(run), "notes": busy(run), "table": table_of(run)} for run in races.values()]
    return render("readme.md", picture=path, races=shown)


def table_of(document: Document) -> str:
    """A line for each problem: milliseconds of setup and solve by three solvers, and their iterations."""
    rows = []
    for problem, unknowns, found in shown_cases(document):
        solved = [found[LIBRARY], found["CG"], best(found)]
        ms = [number(total_ms(row)) for row in solved]
        iterations = ", ".join(f"{row['iterations']:,}" for row in solved)
        rows.append([f"{problem}, {unknowns:,}", *ms[:2], f"**{ms[2]}** {OURS[solved[2]['name']]}", iterations])
    header = [
        "ms, with setup",
        f"{library(document)}'s CG with Jacobi",
        "our CG",
        "best of ours",
        "iterations of these",
    ]
    return table(header, rows)


def library(document: Document) -> str:
    return "CuPy" if document["machine"]["gpu"] else "SciPy"


def shown_cases(document: Document) -> list[tuple[str, int, dict[str, Row]]]:
    """Problem, unknowns, and the rows of all solvers by name."""
    cases = {case["name"]: case for case in document["cases"]}
    return [
        (title, cases[name]["unknowns"], {row["name"]: row for row in cases[name]["solvers"]})
        for name, title in PROBLEMS.items()
        if name in cases
    ]


def best(found: dict[str, Row], names: tuple[str, ...] = tuple(OURS)) -> Row:
    """The fastest of solvers, setup included."""
    return min((found[name] for name in names if name in found), key=total_ms)


def draw(races: Races, folder: Path) -> None:
    """A panel a run: for each problem a bar a solver, as long as it is faster than the library's CG with Jacobi."""
    with picture(folder / PICTURE, salt="race") as plt:
        figure, panels = plt.subplots(len(races), 1, figsize=(5.2, 7.6), layout="constrained", squeeze=False)
        handles = {}
        for panel, document in zip(panels[:, 0], races.values(), strict=True):
            y, ticks, longest = 0.0, {}, 1.0
            for problem, _, found in shown_cases(document):
                first = y
                for label, (names, color) in BARS.items():
                    if not any(name in found for name in names):
                        continue
                    times = total_ms(found[LIBRARY]) / total_ms(best(found, names))
                    handles[label] = panel.barh(y, times - 1, 0.9, left=1, color=color)[0]
                    side, offset = ("left", 3) if times >= 1 else ("right", -3)
                    where: dict[str, Any] = {"xytext": (offset, 0), "textcoords": "offset points", "ha": side}
                    panel.annotate(f"{times:#.2g}".rstrip("."), (times, y), va="center", fontsize=7.5, **where)
                    longest, y = max(longest, times), y + 1
                ticks[(first + y - 1) / 2] = problem
                y += 0.8
            panel.set_xscale("log")
            panel.set_xlim(panel.get_xlim()[0] / 1.3, 1.5 * longest)
            plain_ticks(panel.xaxis)
            panel.axvline(1, color="0.3", linewidth=0.8)
            panel.set_yticks(list(ticks), list(ticks.values()))
            panel.set_title(f"{place(document)}: times faster than {library(document)}'s CG with Jacobi", fontsize=9)
            panel.invert_yaxis()
            panel.spines[["top", "right"]].set_visible(False)
        labels = [label for label in BARS if label in handles]
        figure.legend([handles[label] for label in labels], labels, loc="outside lower center", ncols=4, frameon=False)
