"""docs/development/bounds.md: bounds that were missed, what limits the kernels, and what was watched of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from report.noise import Range, verdict
from report.results import MARKS, RESULTS, Document, origin, runs
from report.sweeps import asked_of
from report.tables import by_name, number, render, table
from report.watched import WATCHED, listed

SWEEPS, FACTORIZATIONS = "sweeps-gpu", "ilu-gpu"
#: Bytes of an entry and of an unknown: what a product reads and writes, and an application with diagonals.
PRODUCT, APPLICATION, PASS = (12, 20), (8, 70), (12, 0)
COUNTED = ("fenl_100", "fenl_180")
ORDERS = {"color": "eb", "first-fit": "first-fit"}


def load(results: Path = RESULTS) -> dict[str, Document]:
    return runs([SWEEPS, FACTORIZATIONS], results)


def page(documents: dict[str, Document]) -> str:
    """The whole page, in Markdown."""
    sweeps, factorizations = documents[SWEEPS], documents[FACTORIZATIONS]
    return render(
        "bounds.md",
        sweeps_origin=origin(sweeps),
        sweeps=missed(sweeps),
        factorizations_origin=origin(factorizations),
        factorizations=missed_by_factorizations(factorizations),
        counted=counted(sweeps),
        watched=listed(WATCHED["bounds"].values()),
    )


def missed(document: Document) -> str:
    """The bounds of sweeps and solves that do not hold, or are not decided."""
    lines = []
    for case in document["cases"]:
        lines += [[what, case["name"], said] for what, said in asked_of(case).items() if not said.endswith(": yes")]
    return table(["quantity", "matrix", "found (bound): does it hold?"], lines, names=3)


def missed_by_factorizations(document: Document) -> str:
    """The same of ILU(0)."""
    lines = []
    for case in document["cases"]:
        rows = {row["name"]: row for row in case["factorizations"]}
        for order, name in ORDERS.items():
            ours, theirs = rows[f"ILU0 {order}"], rows[f"cuSPARSE {order}"]
            parts = {
                "factorization / application": ((ours, "factor_ms"), (ours, "apply_ms")),
                "application to four vectors / to one": ((ours, "apply_four_ms"), (ours, "apply_ms")),
                "cuSPARSE's application / ours": ((theirs, "apply_ms"), (ours, "apply_ms")),
            }
            for what, ((row, key), (base, below)) in parts.items():
                said = asked(what, Range.of(row, key) / Range.of(base, below))
                if not said.endswith(": yes"):
                    lines.append([what, case["name"], name, said])
    return table(["quantity", "matrix", "colors", "found (bound): does it hold?"], lines, names=4)


def asked(what: str, found: Range) -> str:
    mark = MARKS["factorizations"][what]
    holds = verdict(found, mark["limit"], at_most=mark["bound"] == "at most")
    return f"{number(found.found)} ({mark['bound']} {mark['limit']:g}): {holds}"


def counted(document: Document) -> str:
    """What applications in natural order take, and would take by their bytes at the speed of one pass."""
    cases = [case for name in COUNTED for case in document["cases"] if case["name"] == name]
    rows: dict[str, list[str]] = {}
    for case in cases:
        natural = next(row for row in case["sweeps"] if row["name"] == "natural")
        per_ms = bytes_of(case, PASS) / case["pass_ms"]
        bound, _ = MARKS["sweeps"]["application, natural"][case["name"]]
        cells = {
            "asked, in products": number(bound),
            "found": number(natural["apply_ms"] / case["spmv_ms"]),
            "by its bytes at the speed of the pass": number(bytes_of(case, APPLICATION) / per_ms / case["spmv_ms"]),
            "its bytes / those of the product": number(bytes_of(case, APPLICATION) / bytes_of(case, PRODUCT)),
        }
        for what, cell in cells.items():
            rows.setdefault(what, []).append(cell)
    return by_name("applications in natural order", [case["name"] for case in cases], rows)


def bytes_of(case: dict[str, Any], each: tuple[int, int]) -> float:
    """Bytes, with so many for each entry and each unknown."""
    return float(each[0] * case["nnz"] + each[1] * case["unknowns"])
