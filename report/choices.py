"""How good the choices of coloring="auto" are: what it predicted beside what was measured, and the regret.

The regret of a choice is the time lost against the best: that of a solve, with setup, by "auto" over that by the best
of the methods that were timed beside it, "auto" itself included, less one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from report.noise import fastest, total, total_ms
from report.pictures import COLORS, plain_ticks
from report.results import RESULTS, Document, runs
from report.tables import mean

Case = dict[str, Any]


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


def with_candidates(document: Document, results: Path = RESULTS) -> list[Case]:
    """The cases of a run of solves with the candidates of "auto": their own, or those of choices.py."""
    name = f"choices-{'gpu' if document['machine']['gpu'] else 'cpu'}"
    found = {case["name"]: case for other in runs([name], results).values() for case in other["cases"]}

    def same(case: Case) -> bool:
        other = found.get(case["name"], {})
        return (case["unknowns"], case["nnz"]) == (other.get("unknowns"), other.get("nnz"))

    return [
        case if "candidates" in case or not same(case) else case | {"candidates": found[case["name"]]["candidates"]}
        for case in document["cases"]
    ]


def sgs(case: Case) -> dict[str, Case]:
    """SGS by method, "auto" among them."""
    return {
        row["name"].removeprefix("SGS "): row
        for row in case["solvers"]
        if row["name"].startswith("SGS") and "setup" in row
    }


def best(case: Case) -> str:
    """The method of the least time; "auto" may beat the method that it takes, by numbering rows anew or by noise."""
    rows = sgs(case)
    return min(rows, key=lambda name: total_ms(rows[name]))


def regret(case: Case) -> float:
    """The share of time lost."""
    rows = sgs(case)
    return total_ms(rows["auto"]) / total_ms(rows[best(case)]) - 1


def is_best(case: Case) -> str:
    """Whether "auto" takes no longer than the others."""
    times = {name: total(row) for name, row in sgs(case).items()}
    return fastest(times.pop("auto"), times.values())


def singles(cases: list[Case]) -> str:
    """What always taking one method would lose, by the same measure."""
    names = [name for name in sgs(cases[0]) if name != "auto"]
    lost = {
        name: mean([total_ms(sgs(case)[name]) / total_ms(sgs(case)[best(case)]) for case in cases]) for name in names
    }
    return ", ".join(f"{percent(ratio - 1)} with {name}" for name, ratio in lost.items())


def points(cases: list[Case], known: set[str]) -> list[Point]:
    """All methods that were both predicted and measured."""
    return [point for case in cases for point in of_case(case, known)]


def of_case(case: Case, known: set[str]) -> Iterator[Point]:
    rows, name = sgs(case), case["name"]
    for candidate in case.get("candidates", []):
        row = rows.get(candidate["method"])
        if row is None and rows["auto"]["method"] == candidate["method"]:
            row = rows["auto"]
        if row is not None:
            iterations = row["iterations"]
            iteration = candidate["iteration_ms"], row["solve"]["ms"] / iterations
            total = candidate["coloring_ms"] + iterations * candidate["iteration_ms"], total_ms(row)
            yield Point(name, candidate["method"], name in known, iteration, total)


def off(found: list[Point]) -> str:
    """How far from what was measured predictions of an iteration are, in the mean and at most; empty without any."""
    if not found:
        return ""
    factors = [max(p.iteration) / min(p.iteration) for p in found]
    worst = found[factors.index(max(factors))].matrix
    return f"a factor of {mean(factors):.2f} in the geometric mean, and {max(factors):.1f} at most, on {worst}"


def taken(case: Case, known: set[str]) -> Point | None:
    """Of the method that "auto" took."""
    return next((point for point in of_case(case, known) if point.method == sgs(case)["auto"]["method"]), None)


def percent(share: float) -> str:
    return f"{100 * share:.0f}%"


def draw(found: list[Point], left: Any, right: Any) -> None:
    """Predicted against measured: on the diagonal both are the same; hollow marks are of the fit."""
    for ax, key, title in ((left, "iteration", "an iteration"), (right, "total", "a solve")):
        ax.set(xscale="log", yscale="log")
        for method, marker, color in (("greedy", "o", COLORS[0]), ("ecl_gc", "s", COLORS[2])):
            for known in (False, True):
                some = [getattr(p, key) for p in found if p.method == method and p.fitted == known]
                look = {"fillstyle": "none" if known else "full", "linestyle": "none", "markersize": 4, "color": color}
                label = f"{method}{', fitted' if known else ''}"
                ax.plot(
                    [measured for _, measured in some],
                    [predicted for predicted, _ in some],
                    marker,
                    label=label,
                    **look,
                )
        plain_ticks(ax.xaxis)
        plain_ticks(ax.yaxis)
        both = [value for p in found for value in getattr(p, key)]
        ax.plot([min(both), max(both)], [min(both), max(both)], color="black", linewidth=0.8)
        ax.set(title=title, xlabel="measured [ms]", ylabel="predicted [ms]")
    right.legend(loc="upper left", frameon=False, fontsize="small")
