"""docs/solves.md: solves with many kinds of matrices, beside our own CG, without a preconditioner or with Jacobi."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from report import choices
from report.noise import fastest, total, total_ms
from report.pictures import MARKERS, picture, plain_ticks
from report.results import Document

BASELINES = ("pcg CG", "pcg Jacobi")  # the faster of them
#: What is compared with it, and what it is called on the page.
COMPARED = {
    "library CG": "the library's CG",
    "library Jacobi": "the library's, Jacobi",
    "pcg CG": "our CG",
    "pcg Jacobi": "ours, Jacobi",
    "SGS auto": "SGS",
}

Case = dict[str, Any]


def draw(found: dict[str, Document], folder: Path) -> None:
    """How many times faster than the baseline, a row for each matrix."""
    for document in [found[name] for name in found if name.startswith("solves-")]:
        cases = document["cases"][::-1]
        with picture(folder / image_of(document)) as plt:
            _, axes = plt.subplots(figsize=(6.4, 0.4 + 0.24 * len(cases)), layout="constrained")
            for (solver, label), marker in zip(COMPARED.items(), MARKERS, strict=False):
                axes.plot([gain(case, solver) for case in cases], range(len(cases)), marker, label=label, alpha=0.8)
            axes.axvline(1, color="black", linewidth=0.8)
            axes.set_yticks(range(len(cases)), [case["name"] for case in cases])
            axes.set_xscale("log")
            plain_ticks(axes.xaxis)
            axes.set_xlabel("times faster than the better of our CG and our CG with Jacobi")
            axes.legend(loc="upper center", bbox_to_anchor=(0.4, -0.08), ncols=4, frameon=False)
        if points := choices.points(choices.with_candidates(document), choices.fitted()):
            with picture(folder / f"choices-{image_of(document)}") as plt:
                _, panels = plt.subplots(1, 2, figsize=(7.5, 3.6), layout="constrained")
                choices.draw(points, *panels)


def image_of(document: Document) -> str:
    return f"solves-{'gpu' if document['machine']['gpu'] else 'cpu'}.svg"


def solver_of(case: Case, name: str) -> Case:
    return next(row for row in case["solvers"] if row["name"] == name)


def gain(case: Case, solver: str) -> float:
    """How many times faster than the baseline."""
    return total_ms(baseline(case)) / total_ms(solver_of(case, solver))


def baseline(case: Case) -> Case:
    """The faster of our solvers that need no coloring."""
    return min((solver_of(case, name) for name in BASELINES), key=total_ms)


def faster(case: Case) -> str:
    """Whether SGS is faster than the baseline."""
    return fastest(total(solver_of(case, "SGS auto")), [total(solver_of(case, name)) for name in BASELINES])


def library_beside(case: Case) -> float:
    """How many times as long as SGS the library's better CG takes."""
    library = min(total_ms(row) for row in case["solvers"] if row["name"].startswith("library"))
    return library / total_ms(solver_of(case, "SGS auto"))
