"""The page of FENL and its picture: colorings, sweeps and solvers."""

from __future__ import annotations

from pathlib import Path

from report.pictures import MARKERS, picture, plain_ticks
from report.results import RESULTS, Document, origin, place, runs
from report.tables import by_case, number, render

PICTURE = "fenl.svg"


def load(results: Path = RESULTS) -> list[Document]:
    """The runs that exist, the GPU's first."""
    return list(runs(["fenl-gpu", "fenl-cpu"], results).values())


def page(documents: list[Document]) -> str:
    """The whole page, in Markdown."""
    return render("fenl.md", picture=f"../images/{PICTURE}", runs=[facts(document) for document in documents])


def facts(document: Document) -> dict[str, object]:
    """What was measured where, and a table each of colorings, preconditioners and solvers."""
    cases = document["cases"]
    # The same rows in every case, unless a case could not run one: that cell stays empty.
    colorings = [case["colorings"] | {name: case[name] for name in ["csrcolor"] if name in case} for case in cases]
    solvers = [{row["name"]: row for row in case["solvers"]} for case in cases]
    applied = [{"A @ x": f"{number(case['spmv_ms'])}"} for case in cases]
    for cells, rows in zip(applied, solvers, strict=True):
        for name, row in rows.items():
            if row["apply_ms"] is not None:
                cells[name] = f"{number(row['apply_ms'])} + {number(row['setup_ms'])}"
    colored = [{name: f"{number(row['ms'])} / {row['colors']}" for name, row in rows.items()} for rows in colorings]
    solved = [
        {name: f"{number(row['total_ms'])} ({row['iterations']})" for name, row in rows.items()} for rows in solvers
    ]
    return {
        "origin": origin(document),
        "gpu": document["machine"]["gpu"],
        "rtol": document["rtol"],
        "colorings": by_case("coloring: ms / colors", cases, colored),
        "applications": by_case("one application + setup, ms", cases, applied),
        "solvers": by_case("solver: ms with setup (iterations)", cases, solved),
    }


def draw(documents: list[Document], folder: Path) -> None:
    """A row per run: iterations on the left, time with setup on the right; gray, with a marker per case."""
    if not documents:
        return
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
