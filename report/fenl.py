"""The page of FENL and its picture: colorings, sweeps and solvers."""

from __future__ import annotations

from pathlib import Path

from report.pictures import gray_dots, picture, plain_ticks
from report.results import Document, place
from report.tables import names

PICTURE = "fenl.svg"


def draw(found: dict[str, Document], folder: Path) -> None:
    """A row per run: iterations on the left, time with setup on the right; gray, with a marker per case."""
    documents = list(found.values())
    heights = [len(solver_names(document)) for document in documents]
    look = {"figsize": (8, 0.9 + 0.3 * sum(heights)), "sharey": "row", "height_ratios": heights}
    with picture(folder / PICTURE, len(documents), 2, **look) as panels:
        for (left, right), document in zip(panels, documents, strict=True):
            solvers = solver_names(document)
            cases = document["cases"]
            for panel, column in ((left, "iterations"), (right, "total_ms")):
                found = {case["name"]: {row["name"]: row[column] for row in case["solvers"]} for case in cases}
                gray_dots(panel, solvers, found, white=len(cases) - 1)
            left.set(xlabel="iterations", yticks=range(len(solvers)), yticklabels=solvers, title=place(document))
            left.set_xlim(left=0)
            left.invert_yaxis()
            right.set(xlabel="time with setup [ms]", xscale="log")
            plain_ticks(right.xaxis)
            right.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)


def solver_names(document: Document) -> list[str]:
    """Every solver of the run, in order of appearance."""
    return names(row for case in document["cases"] for row in case["solvers"])
