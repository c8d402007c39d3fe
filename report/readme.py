"""What README shows of the results: a chart of one system of a million unknowns, a table of several problems, and
where CG needs no preconditioner of ours.

All compare with the CG of SciPy or CuPy: that is what a reader has without this package.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from report import IMAGES, PAGES, README, ROOT, automatic, petsc
from report.generic import named
from report.noise import total_ms
from report.opponents import trials
from report.pictures import ON_BLACK, picture
from report.results import RESULTS, Document, Row, busy, date, measured, place, plain, runs
from report.tables import number, render, replaced, table

PICTURES = ("race.svg", "race-dark.svg")  # on a white page, and on a black one
RACES = ("multigrid-gpu", "multigrid-cpu")
#: AmgX's run, and its name for the matrix of our Poisson system with a million unknowns.
AMGX, AMGX_CASE = "amgx-multigrid", "grid2d_1024"
#: Ten systems by other packages, too.
SIDE_BY_SIDE = ("side-by-side-gpu", "side-by-side-cpu")
MILLION = 1024**2
#: The colors of the bars, by group of solvers.
OURS_IN_CHART = "mcprecond"
COLORS = {"CG": "0.6", "multigrid of others": "#3c8dc5", OURS_IN_CHART: "#d95f02"}
#: The library's CG without and with Jacobi's preconditioner, of which the chart shows the faster one.
LIBRARY = ("library CG", "library Jacobi")
#: The matrices of the table.
SHOWN = (
    *("grid2d_1024", "p1_delaunay", "circuit1259", "elasticity48", "fenl_100"),
    *("plate", "rmat_20", "short heat step"),
)
Races = dict[str, Document]


class Bar(NamedTuple):
    """Who solves the system of a million unknowns, and the milliseconds of setup and solve."""

    who: str
    ms: float
    kind: str


def load(results: Path = RESULTS) -> Races:
    """The runs that exist, by the names of their files."""
    return runs([*RACES, *automatic.FILES, *SIDE_BY_SIDE, petsc.RUN], results) | runs([AMGX], results / "opponents")


def page(found: Races) -> str:
    """README as it is, with what stands between markers replaced."""
    with_summary = replaced(PAGES[README].read_text(), "summary", summary(found))
    with_rule = replaced(
        with_summary, "rule", automatic.rule([found[name] for name in automatic.FILES if name in found])
    )
    return replaced(with_rule, "ranks", petsc.sentence(found[petsc.RUN]) if petsc.RUN in found else "")


def summary(found: Races) -> str:
    """The part between the markers, in Markdown."""
    tabled = [found[name] for name in automatic.FILES if name in found]
    shown = {
        "pictures": [(IMAGES / name).relative_to(ROOT).as_posix() for name in PICTURES],
        "headline": headline(found),
        "amgx": amgx(found),
        "sides": [side(found[name]) for name in SIDE_BY_SIDE if name in found],
        "table": table(
            ["ms", "library", "`solve(A, b)`", "best of ours"], [line for run in tabled for line in lines_of(run)]
        ),
        "runs": [" ".join(filter(None, [f"{measured(run)}.", busy(run)])) for run in tabled],
    }
    return render("readme.md", **shown)


def lines_of(document: Document) -> list[list[str]]:
    """A line of the table for each of the matrices, under one for the machine."""
    cases = named(document["cases"])
    head = "GPU" if document["machine"]["gpu"] else "CPU"
    return [[f"**{head}**, beside {library(document)}", "", "", ""]] + [
        line_of(cases[name]) for name in SHOWN if name in cases
    ]


def line_of(case: Row) -> list[str]:
    """The times of the library's CG, of `solve` and of what is best if it is chosen by hand."""
    found, by_hand = automatic.times(case, [automatic.LIBRARY, automatic.SOLVE]), automatic.times(case)
    cells = [
        number(found[name].found) if name in found else "not solved" for name in (automatic.LIBRARY, automatic.SOLVE)
    ]
    best = min(by_hand, key=lambda name: by_hand[name].found)
    return [
        f"{plain(case['name'])}, {case['unknowns']:,}",
        *cells,
        f"{number(by_hand[best].found)} {automatic.CHOSEN[best]}",
    ]


def headline(found: Races) -> list[dict[str, str]]:
    """For each run the place, and the times of the chart as "A takes 3 s, B 2 s and C 1 s"."""
    rows = []
    for where, (slowest, *others) in bars_of(found).items():
        *between, fastest = (f"{bar.who} {seconds(bar.ms)}" for bar in others)
        first = ", ".join([f"{slowest.who} takes {seconds(slowest.ms)}", *between])
        rows.append({"place": where, "times": f"{first} and {fastest}"})
    return rows


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


def side(document: Document) -> Row:
    """On how many systems `solve` takes the least time beside other packages."""
    solved = [
        {row["name"]: row["setup_ms"] + row["solve_ms"] for row in case["solvers"] if row["converged"]}
        for case in document["cases"]
    ]
    ahead = [min(times, key=times.__getitem__).startswith("solve") for times in solved]
    return {"place": place(document), "ahead": sum(ahead), "systems": len(ahead)}


def seconds(ms: float) -> str:
    return f"{number(ms / 1e3)} s" if ms >= 1e3 else f"{number(ms)} ms"


def library(document: Document) -> str:
    return "CuPy" if document["machine"]["gpu"] else "SciPy"


def least(found: dict[str, Row], names: tuple[str, ...]) -> float:
    """The least time of solvers, setup included, of those that have run."""
    return min(total_ms(found[name]) for name in names if name in found)


def draw(found: Races, folder: Path) -> None:
    """A panel for each place, with a bar for each who solves."""
    places = bars_of(found)
    for name, look in zip(PICTURES, ({}, ON_BLACK), strict=True):
        with picture(folder / name, max(len(places), 1), figsize=(5, 3.4), style=look) as panels:
            panels[0, 0].figure.suptitle("Time to solve for a million unknowns, setup included", fontsize=12)
            for panel, (where, bars) in zip(panels[:, 0], places.items(), strict=False):
                draw_bars(panel, where, bars)


def draw_bars(panel: Any, where: str, bars: list[Bar]) -> None:
    """The bars of a place."""
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
