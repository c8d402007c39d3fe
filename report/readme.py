"""What README shows of the results: a chart of one system of a million unknowns, a small table for each run, and
where CG needs no preconditioner of ours.

All compare with the CG of SciPy or CuPy, alone or with Jacobi's preconditioner, whichever is faster: that is what a
reader has without this package.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

from report import IMAGES, PAGES, README, ROOT, automatic, petsc
from report.generic import Page, named
from report.noise import fastest, total, total_ms
from report.opponents import trials
from report.pictures import picture
from report.results import RESULTS, Document, Row, busy, date, place, runs
from report.tables import number, render, replaced

PICTURE = "race.svg"
RACES = ("multigrid-gpu", "multigrid-cpu")
#: AmgX's run, and its name for the matrix of our Poisson system with a million unknowns.
AMGX, AMGX_CASE = "amgx-multigrid", "grid2d_1024"
MILLION = 1024**2
#: The colors of the bars, by group of solvers.
OURS_IN_CHART = "mcprecond"
COLORS = {"CG": "0.65", "multigrid of others": "#1b6ca8", OURS_IN_CHART: "#d95f02"}
#: CG without and with Jacobi's preconditioner, of which the faster one is shown: the library's, and ours.
LIBRARY, BASELINE = ("library CG", "library Jacobi"), ("CG", "Jacobi")
Races = dict[str, Document]


class Bar(NamedTuple):
    """Who solves the system of a million unknowns, and the milliseconds of setup and solve."""

    who: str
    ms: float
    kind: str


def load(results: Path = RESULTS) -> Races:
    """The runs that exist, by the names of their files."""
    return runs([*RACES, *automatic.FILES, petsc.RUN], results) | runs([AMGX], results / "opponents")


def page(found: Races) -> str:
    """README as it is, with what stands between markers replaced."""
    with_summary = replaced(PAGES[README].read_text(), "summary", summary(found))
    with_rule = replaced(
        with_summary, "rule", automatic.rule([found[name] for name in automatic.FILES if name in found])
    )
    return replaced(with_rule, "ranks", petsc.sentence(found[petsc.RUN]) if petsc.RUN in found else "")


def summary(found: Races) -> str:
    """The part between the markers, in Markdown."""
    shown = {
        "picture": (IMAGES / PICTURE).relative_to(ROOT).as_posix(),
        "headline": headline(found),
        "amgx": amgx(found),
    }
    return render("readme.md", **shown, **Page("readme", sys.modules[__name__]).sections(found))


def notes(document: Document) -> str:
    """How its baseline was run, and whether the machine was busy."""
    threads = document["blas_threads"]
    blas = "" if document["machine"]["gpu"] else f"SciPy's BLAS has {threads} thread{'s' * (threads != '1')}."
    jacobi = "multiplies elementwise" if document.get("jacobi") == "elementwise" else "is a sparse matrix"
    return " ".join(filter(None, [f"Jacobi's preconditioner {jacobi}.", blas, busy(document)]))


def headline(found: Races) -> list[dict[str, str]]:
    """For each run the place, and the times of the chart."""
    return [
        {"place": where, "times": ", ".join(f"{bar.who} {seconds(bar.ms)}" for bar in bars)}
        for where, bars in bars_of(found).items()
    ]


def bars_of(found: Races) -> dict[str, list[Bar]]:
    """Place -> bars, the slowest first, for each run that has the system of a million unknowns."""
    places: dict[str, list[Bar]] = {}
    runs_of_all = [(found[name], case) for name in RACES if name in found for case in found[name]["cases"]]
    for document, case in runs_of_all:
        if case["unknowns"] != MILLION or not case["name"].startswith("poisson2d"):
            continue
        rows = named(case["solvers"])
        bars = [Bar(f"{library(document)}'s CG", least(rows, LIBRARY), "CG")]
        if "PyAMG" in rows:
            bars.append(Bar("PyAMG", least(rows, ("PyAMG", "PyAMG, forward and backward")), "multigrid of others"))
        if document["machine"]["gpu"] and (theirs := amgx(found)):
            bars.append(Bar("AmgX", theirs["ms"], "multigrid of others"))
        bars.append(Bar(OURS_IN_CHART, total_ms(rows["multigrid"]), OURS_IN_CHART))
        places[place(document)] = bars
    return places


def amgx(found: Races) -> Row | None:
    """The fastest of AmgX's hierarchies for that system, setup included, and of how many."""
    if AMGX not in found:
        return None
    document = found[AMGX]
    tried = [row for case in document["cases"] if case["name"] == AMGX_CASE for row in trials(case["lines"])]
    times = [row["setup_ms"] + row["solve_ms"] for row in tried if row["status"] == "success"]
    return {"ms": min(times), "settings": len(times), "place": document["machine"]["gpu"], "date": date(document)}


def seconds(ms: float) -> str:
    return f"{number(ms / 1e3)} s" if ms >= 1e3 else f"{number(ms)} ms"


def best_of_ours(found: dict[str, Row], ours: dict[str, str]) -> str:
    """The least time of ours and whose it is; bold if it is the least of all beyond the noise."""
    best = min((found[name] for name in ours if name in found), key=total_ms)
    others = [total(row) for row in found.values() if row is not best]
    mark = "**" * (fastest(total(best), others) == "yes")
    return f"{mark}{number(total_ms(best))}{mark} {ours[best['name']]}"


def library(document: Document) -> str:
    return "CuPy" if document["machine"]["gpu"] else "SciPy"


def least(found: dict[str, Row], names: tuple[str, ...]) -> float:
    """The least time of solvers, setup included, of those that have run."""
    return min(total_ms(found[name]) for name in names if name in found)


def draw(found: Races, folder: Path) -> None:
    """A panel for each place, with a bar for each who solves."""
    places = bars_of(found)
    with picture(folder / PICTURE, max(len(places), 1), figsize=(5, 3.4)) as panels:
        panels[0, 0].figure.suptitle("Time to solve for a million unknowns, setup included", fontsize=12)
        for panel, (where, bars) in zip(panels[:, 0], places.items(), strict=False):
            for y, (who, ms, kind) in enumerate(bars):
                panel.barh(y, ms, 0.85, color=COLORS[kind])
                weight = "bold" if who == OURS_IN_CHART else "normal"
                panel.text(ms, y, f" {seconds(ms)}", va="center", fontsize=12, weight=weight)
            panel.set_title(where, fontsize=11, loc="left")
            panel.set_yticks(range(len(bars)), [bar.who for bar in bars], fontsize=12)
            panel.set_xlim(0, 1.25 * max(bar.ms for bar in bars))
            panel.set_xticks([])
            panel.invert_yaxis()
            panel.spines[["top", "right", "bottom"]].set_visible(False)
