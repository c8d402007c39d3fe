"""What ``benchmarks/automatic.py`` says: how good ``solve(A, b)`` is beside the best of all that it chooses from, and
where CG is better off without a preconditioner of ours. Times include setup. ``benchmarks/steps.py`` says the same of
"auto" for several systems, one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from report.generic import named
from report.noise import Range, verdict
from report.pictures import COLORS, MARKERS, picture, plain_ticks
from report.results import Document, Row, date, place, plain
from report.tables import mean, number, table

SOLVE, DIRECT, LIBRARY = "solve", "direct", "library, Jacobi"
FILES = ("automatic-gpu", "automatic-cpu")
#: CG runs alone or with Jacobi, whichever is faster, and is compared with the fastest of the other preconditioners.
CG = ("none", "Jacobi")
HEADER = ["", "CG was the fastest on", "a preconditioner on", "none was faster below", "CG was never the fastest above"]
#: The page compares `solve` with a direct solver and with CG, preconditioned by each of these methods. Each value is
#: how the page names the method.
FIXED = {"none": "without one"} | {
    name: f"with {name}" for name in ("Jacobi", "SGS", "SGS, float32", "DILU", "ILU0", "multigrid")
}

#: How a table names the same methods.
CHOSEN = {
    "none": "CG",
    "Jacobi": "CG with Jacobi",
    "SGS": "Gauss-Seidel",
    "SGS, float32": "Gauss-Seidel in float32",
    "DILU": "DILU",
    "ILU0": "ILU(0)",
    "multigrid": "multigrid",
}

#: The chart shows these matrices. For each solver of COMPARED it shows the fastest of the variants listed there.
DRAWN = (
    *("grid2d_1024", "p1_delaunay", "anisotropic", "jumping", "circuit1259", "elasticity48", "plate", "fenl_100"),
    *("rgg", "delaunay", "roads", "constrained", "preferential", "rmat_20", "star", "short heat step"),
)
COMPARED = {
    "our CG, alone or with Jacobi": CG,
    "with Gauss-Seidel": ("SGS", "SGS, float32"),
    "with multigrid": ("multigrid",),
    "solve(A, b)": (SOLVE,),
}


def times(case: Row, names: Iterable[str] = FIXED) -> dict[str, Range]:
    """The times of setup and solve of those of these that converged."""
    rows = named(case["solvers"])
    return {name: Range.of(rows[name]) for name in names if name in rows and rows[name]["converged"]}


def candidates(case: Row) -> dict[str, Range]:
    """The times of CG with each preconditioner, and of the direct solver."""
    return times(case, [*FIXED, DIRECT])


def beside_best(case: Row, name: str = SOLVE) -> Range:
    """The time divided by that of the best candidate. A solve that failed counts as the slowest one."""
    others = candidates(case).values()
    return times(case, [name]).get(name, max(others)) / min(others)


def multiple(case: Row, name: str = SOLVE) -> float:
    """The median of that."""
    return beside_best(case, name).found


def beside_library(case: Row, names: Iterable[str]) -> float:
    """How many times as fast as the library's CG with Jacobi the fastest of these is; NaN if one of the two fails."""
    library, ours = times(case, [LIBRARY]), times(case, names)
    return library[LIBRARY].found / min(ours.values()).found if library and ours else math.nan


def draw(documents: list[Document], path: Path) -> None:
    """That, in a panel for each device, with a row for each matrix."""
    with picture(path, len(documents), figsize=(5.2, 0.3 + 4.1 * len(documents))) as panels:
        for axes, document in zip(panels[:, 0], documents, strict=True):
            known = named(document["cases"])
            cases = [known[name] for name in DRAWN[::-1] if name in known]
            for (label, names), marker, color in zip(COMPARED.items(), MARKERS, COLORS, strict=False):
                gains = [beside_library(case, names) for case in cases]
                axes.plot(gains, range(len(cases)), marker, label=label, color=color, alpha=0.8)
            axes.axvline(1, color="black", linewidth=0.8)
            axes.set_yticks(range(len(cases)), [plain(case["name"]) for case in cases])
            axes.set_xscale("log")
            plain_ticks(axes.xaxis)
            axes.grid(axis="y", color="0.85")
            axes.set_title(place(document), fontsize=9, loc="left")
            axes.set_xlabel(f"times as fast as {'CuPy' if document['machine']['gpu'] else 'SciPy'}'s CG with Jacobi")
        axes.figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)


def part(cases: list[Row], *, held_out: bool) -> list[Row]:
    """The matrices that were held out when the constants of the choice were fitted, or the others."""
    return [case for case in cases if case["held_out"] == held_out]


def of_library(case: Row) -> float:
    """The time of `solve`, divided by that of the library's CG with Jacobi; 0 where that fails."""
    found = times(case, [SOLVE, LIBRARY])
    return found[SOLVE].found / found[LIBRARY].found if len(found) == 2 else 0.0


def failures(name: str, cases: list[Row]) -> int:
    """The number of matrices on which CG did not converge with this preconditioner."""
    return sum(name not in times(case) for case in cases)


def rule(documents: list[Document]) -> str:
    """A table with a line for each run, and when SGS pays; empty without any."""
    lines = [line_of(document) for document in documents]
    return table(HEADER, lines) + said_of_sgs(documents) if lines else ""


def line_of(document: Document) -> list[str]:
    """On how many matrices each was faster beyond the noise, and the bounds that follow, of iterations and of times."""
    cases = [found for case in document["cases"] if (found := compared(case))]
    lost, won = ([(count, ms) for pays, count, ms in cases if pays == word] for word in ("no", "yes"))
    counts = f"{len(lost)} of {len(cases)} matrices", f"{len(won)}"
    return [f"{place(document)}, {date(document)}", *counts, bound(min, won), bound(max, lost)]


#: Systems with fewer entries are small.
SMALL = 10**6


class Pair(NamedTuple):
    """CG with Jacobi and with SGS on a matrix: the iterations of the former, how many times fewer SGS takes, and how
    many times longer the faster one of CG alone and with Jacobi takes.
    """

    iterations: int
    fewer: float
    times: float

    @classmethod
    def of(cls, case: Row) -> Pair | None:
        """Return None if CG fails with one of them."""
        rows, found = named(case["solvers"]), times(case)
        if not {"Jacobi", "SGS"} <= found.keys():
            return None
        best = min(found[name] for name in CG if name in found)
        fewer = rows["Jacobi"]["iterations"] / rows["SGS"]["iterations"]
        return cls(rows["Jacobi"]["iterations"], fewer, best.found / found["SGS"].found)


def crossing(pairs: list[Pair]) -> int:
    """The number of iterations that divides best the matrices on which SGS is slower from those where it is faster."""
    counts = sorted(pair.iterations for pair in pairs)
    return min(counts, key=lambda count: sum((pair.times > 1) != (pair.iterations >= count) for pair in pairs))


def when_sgs_pays(documents: list[Document]) -> str:
    """A table with a line for the small and for the large systems of each run."""
    lines = []
    for document in documents:
        for size, is_small in (("small", True), ("large", False)):
            if pairs := pairs_of(document, is_small=is_small):
                lines.append([f"{place(document)}, {size}", *cells_of(pairs)])
    header = ["", "matrices", "times fewer iterations", "crossing", "on the right side of it"]
    return table([*header, "times faster below", "above", "on all"], lines) if lines else ""


def pairs_of(document: Document, *, is_small: bool) -> list[Pair]:
    """The pairs of the small systems of a run, or of the large ones."""
    cases = [case for case in document["cases"] if (case["nnz"] < SMALL) == is_small]
    return list(filter(None, map(Pair.of, cases)))


def said_of_sgs(documents: list[Document]) -> str:
    """When SGS pays for large systems, in words."""
    found = {place(document): pairs_of(document, is_small=False) for document in documents}
    lines = []
    for where, pairs in found.items():
        if pairs:
            _, fewer, count, _, _, above, _ = cells_of(pairs)
            lines.append(
                f"- on {where} SGS takes {fewer} times fewer iterations than Jacobi; if Jacobi takes {count} or more, "
                f"SGS is\n  {above} times as fast as CG alone or with Jacobi, whichever takes less time.\n"
            )
    return "\nOn systems of a million entries or more,\n\n" + "".join(lines) if lines else ""


def cells_of(pairs: list[Pair]) -> list[str]:
    """The cells of a line of `when_sgs_pays`."""
    count = crossing(pairs)
    below, above = ([pair for pair in pairs if (pair.iterations >= count) == pays] for pays in (False, True))
    right = sum(pair.times <= 1 for pair in below) + sum(pair.times > 1 for pair in above)
    faster = [f"{mean([pair.times for pair in some]):.2f}" if some else "" for some in (below, above, pairs)]
    return [f"{len(pairs)}", f"{mean([pair.fewer for pair in pairs]):.2f}", f"{count:,}", f"{right}", *faster]


def bound(end: Callable[[Iterable[float]], float], found: list[tuple[int, float]]) -> str:
    """The least or the largest number of iterations, and the same of times; empty without a case."""
    counts, ms = [[each[k] for each in found] for k in (0, 1)]
    return f"{end(counts)} iterations, or {number(end(ms))} ms" if found else ""


def compared(case: Row) -> tuple[str, int, float] | None:
    """Whether the best preconditioner takes less time than CG, and the iterations and milliseconds of CG; None where
    either of them fails.
    """
    others = times(case)
    alone = {name: others.pop(name) for name in CG if name in others}
    if not alone or not others:
        return None
    fastest = min(alone, key=lambda name: alone[name].found)
    row = named(case["solvers"])[fastest]
    return verdict(min(others.values()) / alone[fastest], 1.0, at_most=True), row["iterations"], row["ms"]
