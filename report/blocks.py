"""docs/benchmarks/blocks.md: what colorings of blocks save in iterations, and what becomes of it in time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from report.noise import Range, verdict
from report.pictures import MARKERS, picture, plain_ticks
from report.results import RESULTS, Document, origin, place, runs
from report.tables import mean, number, render, table

ROWS = "rows"
Row = dict[str, Any]


def load(results: Path = RESULTS) -> list[Document]:
    """The runs that exist, the CPU's first."""
    return list(runs(["blocks-cpu", "blocks-gpu"], results).values())


def page(documents: list[Document]) -> str:
    """The whole page."""
    return render("blocks.md", runs=[facts(document) for document in documents])


def facts(document: Document) -> dict[str, Any]:
    """The tables of a run, for each preconditioner, and what they come to."""
    kinds = dict.fromkeys(row["preconditioner"] for case in document["cases"] for row in case["rows"])
    return {
        "place": place(document),
        "origin": origin(document),
        "on": "a GPU" if document["machine"]["gpu"] else "a CPU",
        "with_coloring": all("coloring_ms" in row for case in document["cases"] for row in case["rows"]),
        "kinds": [
            {
                "name": kind,
                "sentence": sentence(document["cases"], kind),
                "iterations": shown(document["cases"], kind, lambda row, rows: str(row["iterations"])),
                "solve": shown(document["cases"], kind, solve),
                "setup": shown(document["cases"], kind, setup),
            }
            for kind in kinds
        ],
    }


def by_order(case: Row, kind: str) -> dict[str, Row]:
    """The rows of a matrix with one preconditioner, by their orders."""
    return {row["order"]: row for row in case["rows"] if row["preconditioner"] == kind}


def orders(cases: list[Row], kind: str) -> list[str]:
    """All of them, that of rows first."""
    found = dict.fromkeys(order for case in cases for order in by_order(case, kind))
    return sorted(found, key=lambda order: (order != ROWS, order == "row order", "slabs" in order, size(order)))


def size(order: str) -> int:
    """The number in the name of an order, or 0."""
    return int("".join(filter(str.isdigit, order)) or 0)


def shown(cases: list[Row], kind: str, cell: Any) -> str:
    """A table with a line for each matrix and a column for each order."""
    columns = orders(cases, kind)
    lines = []
    for case in cases:
        rows = by_order(case, kind)
        lines.append([case["name"], *(cell(rows[c], rows) if c in rows else "" for c in columns)])
    return table(["matrix", *columns], lines)


def solve(row: Row, rows: dict[str, Row]) -> str:
    """Milliseconds, and how many times faster that is than with a coloring of rows."""
    if row["solve_ms"] is None:
        return "not solved"
    return f"{number(row['solve_ms'])} ({rows[ROWS]['solve_ms'] / row['solve_ms']:.2f})"


def setup(row: Row, rows: dict[str, Row]) -> str:
    """Setup, with the coloring where that was timed."""
    return number(row.get("coloring_ms", 0.0) + row["setup_ms"])


def sentence(cases: list[Row], kind: str) -> str:
    """The most that an order in blocks saves, in iterations and in the time of a solve, in the mean."""
    fewer, faster = [], []
    names: dict[str, list[str]] = {"yes": [], "no": [], "not decided": []}
    for case in cases:
        rows = by_order(case, kind)
        blocks = [row for order, row in rows.items() if size(order) and row["solve_ms"] is not None]
        if not blocks or rows[ROWS]["solve_ms"] is None:
            continue
        fewer.append(rows[ROWS]["iterations"] / min(row["iterations"] for row in blocks))
        ratio = Range.of(rows[ROWS], "solve_ms") / min(Range.of(row, "solve_ms") for row in blocks)
        faster.append(ratio.found)
        names[verdict(ratio, 1.0)].append(case["name"])
    if not fewer:
        return ""
    text = (
        f"With the best of these orders for each matrix, {kind} takes {mean(fewer):.2f} times fewer iterations than by "
        f"rows in the geometric mean of {len(fewer)} matrices, and a solve is {mean(faster):.2f} times as fast"
    )
    decided = f"{text}; it is faster for {', '.join(names['yes']) or 'none of them'}"
    return f"{decided}, and not decided for {', '.join(names['not decided']) or 'none'}."


def draw(documents: list[Document], folder: Path) -> None:
    """Iterations and time against the size of blocks, each relative to a coloring of rows, on the first device."""
    for document in documents[:1]:
        with picture(folder / "blocks.svg") as plt:
            figure, axes = plt.subplots(2, 2, figsize=(7.2, 5.4), sharex=True, sharey="row", layout="constrained")
            for (above, below), kind in zip(axes.T, ("SGS", "ILU0"), strict=True):
                for number_of, case in enumerate(document["cases"]):
                    rows = by_order(case, kind)
                    found = [(size(order), row) for order, row in rows.items() if order.startswith("blocks")]
                    found = [(1, rows[ROWS]), *found]
                    style = {"marker": MARKERS[number_of % len(MARKERS)], "markersize": 3, "label": case["name"]}
                    for axis, key in ((above, "iterations"), (below, "solve_ms")):
                        pairs = [(k, row[key] / rows[ROWS][key]) for k, row in found if row[key] is not None]
                        axis.plot(*zip(*pairs, strict=True), **style)
                above.set_title(kind)
                below.set_xlabel("rows of a block")
                below.set_xscale("log")
                plain_ticks(below.xaxis)
            axes[0, 0].set_ylabel("iterations, relative to rows")
            axes[1, 0].set_ylabel("time of a solve, relative to rows")
            handles, labels = axes[0, 0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside right center", fontsize=7)
