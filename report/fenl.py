"""The page of FENL and its picture: colorings, sweeps and solvers."""

from __future__ import annotations

from pathlib import Path

from report.pictures import MARKERS, picture, plain_ticks
from report.results import Document, place

PICTURE = "fenl.svg"


def draw(found: dict[str, Document], folder: Path) -> None:
    """A row per run: iterations on the left, time with setup on the right; gray, with a marker per case."""
    documents = list(found.values())
    heights = [len(solver_names(document)) for document in documents]
    with picture(folder / PICTURE, salt="fenl") as plt:
        size = (8, 0.9 + 0.3 * sum(heights))
        _, panels = plt.subplots(
            len(documents), 2, figsize=size, squeeze=False, sharey="row", layout="constrained", height_ratios=heights
        )
        for (left, right), document in zip(panels, documents, strict=True):
            names = solver_names(document)
            for k, case in enumerate(document["cases"]):
                rows = case["solvers"]
                y = [names.index(row["name"]) for row in rows]
                style = {"marker": MARKERS[k % len(MARKERS)], "linestyle": "none", "markeredgecolor": "black"}
                style |= {"color": str(k / max(len(document["cases"]) - 1, 1)), "label": case["name"]}
                left.plot([row["iterations"] for row in rows], y, **style)
                right.plot([row["total_ms"] for row in rows], y, **style)
            left.set(xlabel="iterations", yticks=range(len(names)), yticklabels=names, title=place(document))
            left.set_xlim(left=0)
            left.invert_yaxis()
            right.set(xlabel="time with setup [ms]", xscale="log")
            plain_ticks(right.xaxis)
            right.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
            for panel in (left, right):
                panel.grid(axis="both", color="0.85")
                panel.set_axisbelow(True)


def solver_names(document: Document) -> list[str]:
    """Every solver of the run, in order of appearance."""
    return list(dict.fromkeys(row["name"] for case in document["cases"] for row in case["solvers"]))
