"""docs/sweeps.md: what sweeps and solves cost, what limits them, growing FENL, short formats, marks for a CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from report.noise import Range, asked, held
from report.pictures import COLORS, MARKERS, picture
from report.results import MARKS, Document, place

PICTURE = "weak-scaling.svg"


def asked_of(case: dict[str, Any]) -> dict[str, str]:
    """What was measured of each quantity that has a bound, the bound, and whether it holds."""
    rows = {row["name"].removesuffix(", blocks of 3"): row for row in case["sweeps"]}  # blocks come last
    rows["the quickest"] = min(rows.values(), key=lambda row: row["iteration_ms"])
    solves = sorted(case["solvers"], key=lambda row: row["total_ms"])
    rows["the best solve"] = next(row for row in solves if row["name"].startswith("pcg SGS"))
    rows["the library's"] = next(row for row in solves if not row["name"].startswith("pcg"))
    cells = {}
    for what, mark in MARKS["sweeps"].items():
        if case["name"] in mark:
            limit, unit = mark[case["name"]]
            found = asked(mark, rows).scale(1e3 if unit == "µs" else 1)
            found = found / Range.of(case, "spmv_ms") if unit == "x" else found
            cells[what] = held(found, mark["bound"], limit, unit)
    return cells


def quantities(case: dict[str, Any]) -> dict[str, float]:
    """What is shown of a case, in ms."""
    parts = {"iteration": "iteration_ms", "application": "apply_ms"}
    values = {f"{part}, {label}": case[label][key] for label in ("natural", "eb") for part, key in parts.items()}
    return values | {"A @ x": case["spmv_ms"]}


def draw(documents: dict[str, Document], folder: Path) -> None:
    """Nanoseconds per unknown over unknowns."""
    if "weak-scaling-gpu" not in documents:
        return
    document = documents["weak-scaling-gpu"]
    cases = document["cases"]
    unknowns = [case["unknowns"] for case in cases]
    with picture(folder / PICTURE, figsize=(7, 4)) as ((axes,),):
        for k, name in enumerate(quantities(cases[0])):
            times = [1e6 * quantities(case)[name] / case["unknowns"] for case in cases]
            style = {"marker": MARKERS[k % len(MARKERS)], "color": COLORS[k % len(COLORS)]}
            axes.plot(unknowns, times, label=name, linestyle="-" if name.startswith("iteration") else "--", **style)
        axes.set(xscale="log", xlabel="unknowns", ylabel="time per unknown [ns]", title=place(document))
        axes.set_ylim(bottom=0)
        axes.grid(color="0.85")
        axes.set_axisbelow(True)
        axes.legend(frameon=False)
