"""docs/solves.md: solves with many kinds of matrices, beside our own CG, and what coloring="auto" chooses.

A choice loses time against the best: its loss is the time of a solve, with setup, by "auto" over that by the best of
the methods that were timed beside it, "auto" itself included, less one.
"""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from report import automatic
from report.generic import named
from report.noise import fastest, total, total_ms
from report.pictures import COLORS, MARKERS, picture, plain_ticks
from report.results import RESULTS, Document, Row, plain, runs
from report.tables import mean

BESIDE_LIBRARY = "solves-beside-library.svg"
BASELINES = ("pcg CG", "pcg Jacobi")  # the faster of them
#: What is compared with it, and what it is called on the page.
COMPARED = {
    "library CG": "the library's CG",
    "library Jacobi": "the library's, Jacobi",
    "pcg CG": "our CG",
    "pcg Jacobi": "ours, Jacobi",
    "SGS auto": "SGS",
}


def draw(found: dict[str, Document], folder: Path) -> None:
    """How many times faster than the baseline, a row for each matrix; and what automatic.py says, in one picture."""
    if documents := [found[name] for name in automatic.FILES if name in found]:
        automatic.draw(documents, folder / BESIDE_LIBRARY)
    for document in [found[name] for name in found if name.startswith("solves-")]:
        cases = document["cases"][::-1]
        with picture(folder / image_of(document), figsize=(6.4, 0.4 + 0.24 * len(cases))) as ((axes,),):
            for (solver, label), marker in zip(COMPARED.items(), MARKERS, strict=False):
                axes.plot([gain(case, solver) for case in cases], range(len(cases)), marker, label=label, alpha=0.8)
            axes.axvline(1, color="black", linewidth=0.8)
            axes.set_yticks(range(len(cases)), [plain(case["name"]) for case in cases])
            axes.set_xscale("log")
            plain_ticks(axes.xaxis)
            axes.set_xlabel("times faster than the better of our CG and our CG with Jacobi")
            axes.legend(loc="upper center", bbox_to_anchor=(0.4, -0.08), ncols=4, frameon=False)
        if predicted := points(with_candidates(document), fitted()):
            with picture(folder / f"choices-{image_of(document)}", 1, 2, figsize=(7.5, 3.6)) as (panels,):
                draw_predictions(predicted, *panels)


def image_of(document: Document) -> str:
    return f"solves-{'gpu' if document['machine']['gpu'] else 'cpu'}.svg"


def gain(case: Row, solver: str) -> float:
    """How many times faster than the baseline."""
    return total_ms(baseline(case)) / total_ms(named(case["solvers"])[solver])


def baseline(case: Row) -> Row:
    """The faster of our solvers that need no coloring."""
    return min((row for row in case["solvers"] if row["name"] in BASELINES), key=total_ms)


# What coloring="auto" predicted and what it lost.


class Point(NamedTuple):
    """What was predicted for a matrix and a method, and what was measured, in ms: an iteration, and all of it."""

    matrix: str
    method: str
    fitted: bool
    iteration: tuple[float, float]
    total: tuple[float, float]


def fitted(results: Path = RESULTS) -> set[str]:
    """The matrices that the cost model was fitted to: those of the record of sweeps."""
    return {case["name"] for document in runs(["sweeps-gpu"], results).values() for case in document["cases"]}


def with_candidates(document: Document, results: Path = RESULTS) -> list[Row]:
    """The cases of a run of solves with the candidates of "auto": their own, or those of choices.py."""
    name = f"choices-{'gpu' if document['machine']['gpu'] else 'cpu'}"
    same = itemgetter("name", "unknowns", "nnz")
    found = {same(case): case["candidates"] for other in runs([name], results).values() for case in other["cases"]}
    return [{"candidates": found.get(same(case), [])} | case for case in document["cases"]]


def sgs(case: Row) -> dict[str, Row]:
    """SGS by method, "auto" among them."""
    rows = [row for row in case["solvers"] if row["name"].startswith("SGS") and "setup" in row]
    return {row["name"].removeprefix("SGS "): row for row in rows}


def quickest(case: Row) -> str:
    """The method of the least time; "auto" may beat the method that it takes, by numbering rows anew or by noise."""
    return min(rows := sgs(case), key=lambda name: total_ms(rows[name]))


def loss(case: Row, method: str = "auto") -> float:
    """The share of time lost."""
    return total_ms(sgs(case)[method]) / total_ms(sgs(case)[quickest(case)]) - 1


def is_best(case: Row) -> str:
    """Whether "auto" takes no longer than the others."""
    times = {name: total(row) for name, row in sgs(case).items()}
    return fastest(times.pop("auto"), times.values())


def points(cases: list[Row], known: set[str]) -> list[Point]:
    """All methods that were both predicted and measured."""
    found = []
    for case, candidate in [(each, candidate) for each in cases for candidate in each["candidates"]]:
        rows, method, predicted = sgs(case), candidate["method"], candidate["iteration_ms"]
        if row := rows.get(method, rows["auto"] if rows["auto"]["method"] == method else None):
            iteration = predicted, row["solve"]["ms"] / row["iterations"]
            total = candidate["coloring_ms"] + row["iterations"] * predicted, total_ms(row)
            found.append(Point(case["name"], method, case["name"] in known, iteration, total))
    return found


def off(found: list[Point]) -> str:
    """How far from what was measured predictions of an iteration are, in the mean and at most; empty without any."""
    if not found:
        return ""
    factors = [max(p.iteration) / min(p.iteration) for p in found]
    worst = plain(found[factors.index(max(factors))].matrix)
    return f"a factor of {mean(factors):.2f} in the geometric mean, and {max(factors):.1f} at most, on {worst}"


def taken(case: Row, known: set[str]) -> Point | None:
    """Of the method that "auto" took."""
    return next((point for point in points([case], known) if point.method == sgs(case)["auto"]["method"]), None)


def percent(share: float) -> str:
    return f"{100 * share:.0f}%"


def draw_predictions(found: list[Point], left: Any, right: Any) -> None:
    """Predicted against measured: on the diagonal both are the same; hollow marks are of the fit."""
    for ax, key, title in ((left, "iteration", "an iteration"), (right, "total", "a solve")):
        ax.set(xscale="log", yscale="log")
        for method, marker, color in (("greedy", "o", COLORS[0]), ("ecl_gc", "s", COLORS[2])):
            for known in (False, True):
                some = [getattr(p, key) for p in found if p.method == method and p.fitted == known]
                look = {"fillstyle": "none" if known else "full", "linestyle": "none", "markersize": 4, "color": color}
                predicted, measured = [[pair[k] for pair in some] for k in (0, 1)]
                ax.plot(measured, predicted, marker, label=f"{method}{', fitted' if known else ''}", **look)
        plain_ticks(ax.xaxis)
        plain_ticks(ax.yaxis)
        both = [value for p in found for value in getattr(p, key)]
        ax.plot([min(both), max(both)], [min(both), max(both)], color="black", linewidth=0.8)
        ax.set(title=title, xlabel="measured [ms]", ylabel="predicted [ms]")
    right.legend(loc="upper left", frameon=False, fontsize="small")
