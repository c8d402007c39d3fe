"""The page of hierarchies: how long a setup, an update and a solve take with multigrid on a GPU, and their memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from report.noise import Range, fastest
from report.results import RESULTS, Document, measured, runs, versions
from report.tables import number, render, table

RUN = "hierarchies-gpu"
TIMES = ["matrix", "unknowns", "product", "setup", "update", "solve", "one level: setup", "solve"]
SIZES = ["matrix", "unknowns of the levels", "operator complexity", "cycle", "peak of a setup", "figure of merit"]

Row = dict[str, Any]


def load(results: Path = RESULTS) -> Document | None:
    """The run, if it exists."""
    return runs([RUN], results).get(RUN)


def page(document: Document | None) -> str:
    """The whole page, in Markdown."""
    return render("hierarchies.md", run=document and facts(document))


def facts(document: Document) -> dict[str, Any]:
    """A line for each matrix in both tables, and where one level is done earlier."""
    cases = document["cases"]
    return {
        "measured": measured(document),
        "versions": versions(document),
        "rtol": document["rtol"],
        "times": table(TIMES, map(times_of, cases)),
        "sizes": table(SIZES, map(sizes_of, cases)),
        "lost": [case["name"] for case in cases if is_faster(case) == "no"],
        "undecided": [case["name"] for case in cases if is_faster(case) == "not decided"],
    }


def is_faster(case: Row) -> str:
    """Whether multigrid is done before one level, with a setup and a solve."""
    ours, other = (Range.of(case, f"{way}setup_ms") + Range.of(case, f"{way}solve_ms") for way in ("", "one_level_"))
    return fastest(ours, [other])


def times_of(case: Row) -> list[str]:
    solves = {way: f"{number(case[f'{way}solve_ms'])} ({case[f'{way}iterations']})" for way in ("", "one_level_")}
    parts = [number(case[f"{part}_ms"]) for part in ("product", "setup", "update")]
    own = [case["name"], f"{case['unknowns']:,}", *parts, solves[""]]
    return [*own, number(case["one_level_setup_ms"]), solves["one_level_"]]


def sizes_of(case: Row) -> list[str]:
    levels = ", ".join(f"{unknowns:,}" for unknowns in case["levels"])
    multiples = [f"{case[name]:.2f}" for name in ("operator_complexity", "bytes_over_matrix", "peak_over_matrix")]
    return [case["name"], levels, *multiples, f"{case['figure_of_merit']:.2e}"]
