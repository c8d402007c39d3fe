"""docs/factorizations.md: which preconditioner wins where, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from report.noise import fastest
from report.noise import total as time_of
from report.results import RESULTS, Document, origin, place, runs
from report.tables import by_case, number, render

ORDERS = ("color", "first-fit")  # of colorings
OURS = (
    "plain CG",
    "Jacobi",
    *(f"{kind} {order}" for order in ORDERS for kind in ("SGS", "DILU", "ILU0")),
    "ILU0 natural",
)

Row = dict[str, Any]


def load(results: Path = RESULTS) -> list[Document]:
    """The runs that exist, the GPU's first."""
    return list(runs(["ilu-gpu", "ilu-cpu"], results).values())


def page(documents: list[Document]) -> str:
    """The whole page."""
    return render("factorizations.md", runs=[facts(document) for document in documents])


def facts(document: Document) -> dict[str, Any]:
    """The winners and all tables of a run."""
    cases = document["cases"]
    rows = [{row["name"]: row for row in case["factorizations"]} for case in cases]

    def columns(cell: Any) -> list[dict[str, str]]:
        return [{name: text for name, row in of_case.items() if (text := cell(row))} for of_case in rows]

    tables = {
        "levels": columns(lambda row: f"{row['levels']}" if row.get("levels") else ""),
        f"setup + solve to {document['rtol']:g}, ms (iterations)": columns(total),
        "factorization + one application, ms": columns(parts),
        "ratios of times": [ratios(of_case) for of_case in rows],
        "how the library's solves ran": columns(remark),
    }
    return {
        "place": place(document),
        "origin": origin(document),
        "winners": [winner(case["name"], of_case) for case, of_case in zip(cases, rows, strict=True)],
        "tables": [by_case(title, cases, cells) for title, cells in tables.items() if any(cells)],
    }


def winner(name: str, rows: dict[str, Row]) -> str:
    """Which of ours is the fastest on a matrix, and what the next one and the last one lose by."""
    ours = sorted((rows[kind] for kind in OURS if kind in rows), key=lambda row: row["total_ms"])
    best, others = ours[0], ours[1:]
    text = f"**{name}**: {best['name']} has the least time, {number(best['total_ms'])} ms: {cost(best)}"
    if best["setup_ms"]:
        text += f" and {number(best['setup_ms'])} ms of setup"
    losses = []
    for which, row in zip(("next", "slowest"), [*others[:1], *others[1:][-1:]], strict=False):
        loss = f"The {which}, {row['name']}, takes {row['total_ms'] / best['total_ms']:.2f} times as long"
        decided = fastest(time_of(best), [time_of(row)]) == "yes"
        losses.append(loss if decided else f"{loss}, which is not decided")
    return ". ".join([text, *losses]) + "."


def cost(row: Row) -> str:
    return f"{row['iterations']} iterations of {number(row['solve_ms'] / max(row['iterations'], 1))} ms"


def total(row: Row) -> str:
    return f"{number(row['total_ms'])} ({row['iterations']})" if "total_ms" in row else ""


def parts(row: Row) -> str:
    if "apply_ms" not in row:
        return ""
    return f"{number(row['factor_ms'])} + {number(row['apply_ms'])}" if "factor_ms" in row else number(row["apply_ms"])


def remark(row: Row) -> str:
    """What a reader has to know of an opponent."""
    if "failed" in row:
        return f"failed: {row['failed']}"
    if "captured" not in row:
        return ""
    facts = ["captured in CG" if row["captured"] else "not captured in CG"]
    return ", ".join(facts if row["own_factorization"] else [*facts, "our factors: this cuSPARSE has no csrilu02"])


def first(row: Row) -> float:
    """All that a first application needs, with it."""
    return float(row["setup_ms"] + row["apply_ms"])


def ratios(rows: dict[str, Row]) -> dict[str, str]:
    """How ILU(0) in the orders of colors compares."""
    cells: dict[str, float] = {}
    for order in ORDERS:
        name, ours = f"ILU0 {order}", rows.get(f"ILU0 {order}")
        if ours is None:
            continue
        if "Jacobi" in rows:
            cells[f"Jacobi / {name}, setup + solve"] = rows["Jacobi"]["total_ms"] / ours["total_ms"]
        cells[f"{name}, application / SGS {order}"] = ours["apply_ms"] / rows[f"SGS {order}"]["apply_ms"]
        cells[f"{name}, application to four vectors / to one"] = ours["apply_four_ms"] / ours["apply_ms"]
        cells[f"{name}, factorization / application"] = ours["factor_ms"] / ours["apply_ms"]
        natural, colored = rows.get("cuSPARSE natural"), rows.get(f"cuSPARSE {order}")
        if natural and "factor_ms" in natural:
            cells[f"cuSPARSE natural / {name}, factorization + application"] = (
                natural["factor_ms"] + natural["apply_ms"]
            ) / (ours["factor_ms"] + ours["apply_ms"])
            cells[f"cuSPARSE natural / {name}, setup + application"] = first(natural) / first(ours)
            if colored and "factor_ms" in colored:
                cells[f"cuSPARSE natural / cuSPARSE {order}, factorization + application"] = (
                    natural["factor_ms"] + natural["apply_ms"]
                ) / (colored["factor_ms"] + colored["apply_ms"])
        if colored:
            cells[f"cuSPARSE {order} / {name}, application"] = colored["apply_ms"] / ours["apply_ms"]
            cells[f"cuSPARSE {order} / {name}, setup + application"] = first(colored) / first(ours)
        for library in ("CuPy", "SciPy"):
            spilu = rows.get(f"{library} spilu", {})
            if "factor_ms" in spilu:
                cells[f"{library} spilu / {name}, factorization"] = spilu["factor_ms"] / ours["factor_ms"]
                cells[f"{library} spilu / {name}, application"] = spilu["apply_ms"] / ours["apply_ms"]
    return {name: f"{value:.2f}" for name, value in cells.items()}
