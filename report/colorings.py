"""docs/colorings.md and its pictures: what colorings cost and find, beside csrcolor and what the papers print.

A section is there if the run that it shows is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from mcprecond.studies import Table, plots
from report import opponents
from report.noise import Range, related
from report.noise import mean as mean_of
from report.pictures import over_size, picture, plain_ticks
from report.results import PAPERS, RESULTS, Document, Row, runs
from report.tables import by_name, counted, mean, names, spelled_out

#: What the authors' own codes took, and the name of ours for each that several papers compare with.
AUTHORS, THEIR_NAMES = "colorings", {"csrcolor": "csrcolor", "chen_wlc": "chengc"}

#: What lends the panels of a picture.
Lent = Callable[..., Any]

TABLE_II_ROWS = ["csrcolor", "vb", "eb", "greedy"]
WITHOUT_SHORTCUTS = "ecl_gc, no shortcut"
#: Methods in the right half of the performance profile: the fastest of each kind.
OF_EACH_KIND = ["csrcolor", "eb", "vb_bit", "sirg", "chen_wlc", "ecl_gc", "jp natural", "is_minmax", "cc"]
TRADE_OFF_ON = ["fenl_100", "delaunay20", "rgg20", "rmat20"]


def runs_of_both(results: Path = RESULTS) -> dict[str, Document]:
    """Our run and that of the authors' codes, by name, as far as there are files of them."""
    return runs(["coloring-gpu"], results) | runs([AUTHORS], results / "opponents")


def with_quickest(case: Row) -> dict[str, Any]:
    """The methods of a case, and the fastest of ours that takes one color more than ecl_gc at most."""
    rows = case["methods"]
    few = [row for name, row in rows.items() if name != "csrcolor" and row["colors"] <= rows["ecl_gc"]["colors"] + 1]
    return rows | {"the quickest": min(few, key=lambda row: row["ms"])}


def compared(method: str, documents: dict[str, Document]) -> str:
    """A method beside csrcolor and Chen et al.: ours, the authors' own, and in the paper."""
    paper = PAPERS["compared"][method]
    cases = together(documents["coloring-gpu"]["cases"], [method])

    def cells(some: list[Row], left_out: Sequence[str] = ()) -> list[str]:
        faster = [(other, method, "ms") for other in paper["over"]]
        fewer = [(method, other, "colors") for other in paper["colors"]]
        return [
            "" if other in left_out or not together(some, [other, method]) else f"{gain(some, above, below, what):.2f}"
            for other, (above, below, what) in zip([*paper["over"], *paper["colors"]], [*faster, *fewer], strict=True)
        ]

    own = partial(cells, left_out=paper.get("not_ours", ()))
    rows = {case["name"]: own([case]) for case in cases} | {f"geometric mean of these {len(cases)}": own(cases)}
    theirs = of_the_authors(THEIR_NAMES | {method: paper["code"]}, documents)
    theirs = [case for case in theirs if case["name"] in rows]
    if theirs:
        rows[f"geometric mean of {len(theirs)}, the authors' own codes"] = cells(theirs)
        same = {case["name"] for case in theirs}
        rows["the same graphs, ours"] = own([case for case in cases if case["name"] in same])
    for where, printed in paper["paper"].items():
        rows[where] = [printed[what].get(other, "") for what in ("over", "colors") for other in paper[what]]
    columns = [*(f"over {other}" for other in paper["over"]), *(f"colors / {other}" for other in paper["colors"])]
    return by_name("graph", columns, rows)


def of_the_authors(codes: dict[str, str], documents: dict[str, Document]) -> list[Row]:
    """Their run as ours: graphs with what these codes took there, under names of ours."""
    cases = []
    for graph, lines in (opponents.lines_of(documents[AUTHORS]) if AUTHORS in documents else {}).items():
        found = {name: row for name, code in codes.items() if (row := opponents.best_by(lines, code))}
        cases.append({"name": graph, "methods": {name: with_bounds(row) for name, row in found.items()}})
    return together(cases, ["csrcolor"])


def with_bounds(row: Row) -> Row:
    """A line of theirs with its bounds, the fastest and the slowest call, as `Range` takes them."""
    if "ms_min" not in row:
        return row
    counts = {"colors_least": row["colors_min"], "colors_most": row["colors_max"]}
    return row | {"ms_quartiles": (row["ms_min"], row["ms_max"])} | counts


def arithmetic_mean(cases: list[Row]) -> Row:
    """The last line of Table 4 of Alabandi et al."""
    ratio, printed = fmean(case["steps"] / case["steps_with_shortcuts"] for case in cases), PAPERS["table_4_mean"]
    theirs = {"paper": f"their {printed['graphs']} graphs", "printed": printed["ratio"]}
    return {"name": "arithmetic mean", "ratio": ratio} | theirs


def most_steps(cases: list[Row]) -> Row:
    """The case that shows best what shortcuts do."""
    return max(cases, key=lambda case: case["steps"])


def names_of(cases: list[Row]) -> list[str]:
    """Every method of a run, in order of appearance."""
    return list(dict.fromkeys(row for case in cases for row in case["methods"]))


def together(cases: list[Row], rows: list[str]) -> list[Row]:
    """The cases in which all of these methods ran."""
    return [case for case in cases if all(row in case["methods"] for row in rows)]


def gain(cases: list[Row], slow: str, fast: str, what: str) -> float:
    """The geometric mean of a ratio, over the cases that have both."""
    return mean([c["methods"][slow][what] / c["methods"][fast][what] for c in together(cases, [slow, fast])])


def relations(documents: dict[str, Document]) -> list[tuple[dict[str, Any], list[str]]]:
    """What the papers say of one method beside another, and of each what is asked and found, and whether it holds."""
    ours = documents["coloring-gpu"]["cases"] if "coloring-gpu" in documents else []
    theirs, lines = of_the_authors(THEIR_NAMES | {"sirg": "sirg", "ecl_gc": "ecl-gc"}, documents), []
    for relation in PAPERS["relations"]:
        above, below, what = relation["above"], relation["below"], relation["of"]
        cases = theirs if relation.get("by") == "the authors" else ours
        compared = [case["methods"] for case in together(cases, [above, below])]
        if compared:
            found = mean_of([Range.of(rows[above], what) / Range.of(rows[below], what) for rows in compared])
            lines.append((relation, related(found, relation["least"])))
    return lines


def ratio(cases: list[Row], row: str, base: str = "csrcolor") -> str:
    """The time relative to that of another method, in the geometric mean; empty where a time is missing."""
    return f"{gain(cases, row, base, 'ms'):.2f}" if together(cases, [row, base]) == cases else ""


def cell(row: Row | None) -> str:
    return f"{ms(row['ms'])} / {counted(row, 'colors')}" if row else "not run"


def ms(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def count(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}".removesuffix(".0")


def draw(documents: dict[str, Document], folder: Path) -> None:
    """The pictures of the runs that exist."""
    drawn = {"coloring-gpu": (draw_trade_off, draw_profile)}
    drawn |= {"coloring-scaling-gpu": (draw_scaling,), "coloring-steps": (draw_steps,)}
    for run, functions in drawn.items():
        for one in functions if run in documents else ():
            name = one.__name__.removeprefix("draw_").replace("_", "-")
            one(documents[run]["cases"], partial(picture, folder / f"colorings-{name}.svg", salt="colorings"))


def draw_trade_off(cases: list[Row], panels_of: Lent) -> None:
    """A panel per graph, one legend for all."""
    shown = [case for case in cases if case["name"] in TRADE_OFF_ON]
    methods = [row for row in names_of(cases) if "," not in row]  # shortcuts change no color
    with panels_of(1, len(shown), figsize=(3 * len(shown), 5.5)) as (panels,):
        for case, ax in zip(shown, panels, strict=True):
            plots.time_against_colors(as_table([case], methods), ax).set(title=spelled_out(case["name"]))
            plain_ticks(ax.xaxis)
        with_one_legend(panels[0].figure, 7)


def draw_profile(cases: list[Row], panels_of: Lent) -> None:
    """The methods of the paper on the left, one or two of each kind on the right."""
    with panels_of(1, 2, figsize=(10, 4)) as (panels,):
        for ax, methods in zip(panels, (PAPERS["table_iii"], OF_EACH_KIND), strict=True):
            plots.performance_profile(as_table(cases, [m for m in methods if together(cases, [m])]), ax)


def draw_scaling(cases: list[Row], panels_of: Lent) -> None:
    """For each family time and colors over the number of vertices."""
    methods, families = names_of(cases), names(cases, "family")
    with panels_of(len(families), 2, figsize=(8, 3.2 * len(families))) as panels:
        for family, (times, colors) in zip(families, panels, strict=True):
            rows = as_table([case for case in cases if case["family"] == family], methods)
            over_size(rows, "seconds", times).set(title=spelled_out(family))
            over_size(rows, "colors", colors).set(title=spelled_out(family))
            plain_ticks(colors.yaxis)
        with_one_legend(panels[0, 0].figure, 6)


def draw_steps(cases: list[Row], panels_of: Lent) -> None:
    """Alabandi et al., Figure 6: how many vertices each step colors."""
    case = most_steps(cases)
    with panels_of(figsize=(6, 3.5)) as ((ax,),):
        for key, label, look in (("colored", "no shortcuts", "--"), ("colored_with_shortcuts", "both shortcuts", "-")):
            ax.plot(range(1, len(case[key]) + 1), case[key], look, label=label)
        ax.set(xlabel="step", ylabel="vertices colored", xscale="log", yscale="log", title=case["name"])
        ax.legend(frameon=False)


def with_one_legend(figure: Any, columns: int) -> None:
    for ax in figure.axes:
        ax.get_legend().remove()
    entries = {label: line for ax in figure.axes for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=columns, frameon=False)


def as_table(cases: list[Row], methods: list[str]) -> Any:
    """The rows that studies.plots draws; a method that was not run is not verified."""
    rows, nothing = [], {"ms": math.inf, "colors": None}
    for case, method in itertools.product(cases, methods):
        row = case["methods"].get(method, nothing)
        found = {"seconds": row["ms"] / 1e3, "colors": row["colors"], "verified": row is not nothing}
        rows.append({"matrix": case["name"], "vertices": case["vertices"], "method": method} | found)
    return Table(rows)
