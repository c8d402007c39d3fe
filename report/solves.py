"""docs/solves.md: solves with many kinds of matrices, beside our own CG, without a preconditioner or with Jacobi."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from report import advice, automatic, choices
from report.noise import fastest, total, total_ms
from report.pictures import MARKERS, picture, plain_ticks
from report.results import RESULTS, Document, origin, place, runs
from report.tables import mean, number, render, table

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


def load(results: Path = RESULTS) -> list[Document]:
    """The runs that exist, the GPU's first; those of ``M="auto"``, advice and first solves behind."""
    solves = runs(["solves-gpu", "solves-cpu"], results).values()
    others = [f"{name}-{device}" for name in ("automatic", "advice", "first-use") for device in ("gpu", "cpu")]
    return [*(choices.with_candidates(document, results) for document in solves), *runs(others, results).values()]


def page(documents: list[Document]) -> str:
    """The whole page."""
    first = [document for document in documents if document["benchmark"] == "first-use"]
    return render(
        "solves.md",
        runs=[facts(document) for document in documents if document["benchmark"] == "solves"],
        automatic=[automatic.facts(document) for document in documents if document["benchmark"] == "automatic"],
        advice=[advice.facts(document) for document in documents if document["benchmark"] == "advice"],
        first_origins=[origin(document) for document in first],
        first=first_uses(first),
    )


def first_uses(documents: list[Document]) -> str:
    """A table of processes, in seconds."""
    header = ["", "caches of compiled kernels", "imports", "first solve", "CPU time of it", "the same again"]
    caches = {"empty caches": "empty", "second process": "filled by a process before"}
    columns = ("imports_s", "first_s", "first_cpu_s", "again_s")
    rows = [
        [place(document), caches[case["name"]], *(number(case[column]) for column in columns)]
        for document in documents
        for case in document["cases"]
    ]
    return table(header, rows, names=2)


def draw(documents: list[Document], folder: Path) -> None:
    """How many times faster than the baseline, a row for each matrix."""
    for document in documents:
        if document["benchmark"] != "solves":
            continue
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
        if found := choices.points(document["cases"], choices.fitted()):
            with picture(folder / f"choices-{image_of(document)}") as plt:
                _, panels = plt.subplots(1, 2, figsize=(7.5, 3.6), layout="constrained")
                choices.draw(found, *panels)


def image_of(document: Document) -> str:
    return f"solves-{'gpu' if document['machine']['gpu'] else 'cpu'}.svg"


def facts(document: Document) -> dict[str, Any]:
    """The tables of a run, and what they come to."""
    cases = document["cases"]
    return {
        "origin": origin(document),
        "image": f"images/{image_of(document)}",
        "rtol": document["rtol"],
        "gains": gains(cases),
        "colorings": colorings(cases),
        "lost": [case["name"] for case in cases if faster(case) == "no"],
        "undecided": [case["name"] for case in cases if faster(case) == "not decided"],
        "mean": mean([gain(case, "SGS auto") for case in cases]),
        "library_mean": mean([library_beside(case) for case in cases]),
        "choice": choices.facts(cases, choices.fitted()),
        "choices_image": f"images/choices-{image_of(document)}",
    }


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


def gains(cases: list[Case]) -> str:
    header = ["matrix", "unknowns", "the better of ours, ms", *COMPARED.values(), "iterations of SGS"]
    rows = []
    for case in cases:
        sgs, base = solver_of(case, "SGS auto"), baseline(case)
        cells = [case["name"], f"{case['unknowns']:,}", number(total_ms(base))]
        cells += [f"{gain(case, solver):.2f}" for solver in COMPARED]
        rows.append([*cells, f"{sgs['iterations']} for {base['iterations']}"])
    return table(header, rows)


def colorings(cases: list[Case]) -> str:
    names = [row["name"] for row in cases[0]["solvers"] if row["name"].startswith("SGS")]
    header = ["matrix", "auto takes", *(f"{name.removeprefix('SGS ')}, ms" for name in names)]
    header += ["colors", "product / library's", "application / product", "memory in setup / matrix"]
    rows = []
    for case in cases:
        auto = solver_of(case, "SGS auto")
        cells = [case["name"], auto["method"], *(number(total_ms(solver_of(case, name))) for name in names)]
        cells += [str(auto["colors"]), f"{case['product_ms'] / case['library_product_ms']:.2f}"]
        cells += [f"{auto['apply_ms'] / case['product_ms']:.1f}", f"{auto['peak_over_matrix']:.1f}"]
        rows.append(cells)
    return table(header, rows, names=2)
