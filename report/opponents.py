"""docs/opponents.md: what other packages take for colorings, solves and multigrid, as another run has measured it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from report.results import RESULTS, Document, Row, date, place, runs, versions
from report.tables import counted, mean, number, table

Lines = list[Row]

#: Matrices and graphs in the order of the columns.
ORDER = (
    *("fenl_50", "fenl_100", "fenl_180", "elasticity48", "grid2d_1024"),
    *("delaunay20", "rgg20", "rmat20", "rmat22", "mycielskian15"),
)


@cache
def document_of(name: str) -> Document:
    """A run of others."""
    return runs([name], RESULTS / "opponents")[name]


@cache
def theirs(name: str) -> dict[str, Lines]:
    return lines_of(document_of(name))


def lines_of(document: Document) -> dict[str, Lines]:
    """The lines of a run, by matrix or graph, in the order of the other pages."""
    cases = {case["name"]: case["lines"] for case in document["cases"]}
    return {name: cases[name] for name in sorted(cases, key=ORDER.index)}


def described(document: Document) -> str:
    what = document["about"].replace("*", r"\*")
    return f"{what}. {document['machine']['gpu']}, {date(document)}, {versions(document)}"


def best(lines: Iterable[Row], *keys: str) -> Row | None:
    """The line with the least sum of these times, of those that have them and did not fail."""
    done = [row for row in lines if all(row.get(key) is not None for key in keys) and succeeded(row)]
    return min(done, key=lambda row: sum(row[key] for key in keys), default=None)


def succeeded(row: Row) -> bool:
    return "error" not in row and row.get("status", "success") == "success" and row.get("valid", True)


def colored_in(lines: Lines, code: str) -> str:
    """Time and colors, or why there are none."""
    row = best_by(lines, code)
    return f"{number(row['ms'])} / {row['colors']}" if row else failure(by_code(lines, code))


def failure(tried: Lines) -> str:
    if not tried:
        return "not run"
    told = str(tried[0].get("error", "not converged"))
    return "timeout" if told.startswith("timeout") else "out of memory" if "failed to allocate" in told else "failed"


def by_code(lines: Lines, code: str) -> Lines:
    return [row for row in lines if row["kind"] == "color" and row["algo"] == code]


def best_by(lines: Lines, code: str) -> Row | None:
    return best(by_code(lines, code), "ms")


def ratios_beside(graphs: dict[str, Lines], code: str, other: str) -> dict[str, float]:
    """How many times as long as a code another one takes, by graph, where both were run."""
    pairs = {graph: (best_by(lines, code), best_by(lines, other)) for graph, lines in graphs.items()}
    return {graph: theirs["ms"] / own["ms"] for graph, (own, theirs) in pairs.items() if own and theirs}


def vb_beside_eb(graphs: dict[str, Lines]) -> str:
    """How many times faster Kokkos Kernels' vertex-based coloring is than its edge-based one, which its authors' paper
    found to be the faster one, and where it is not.
    """
    ratios = ratios_beside(graphs, "COLORING_VB", "COLORING_EB")
    faster = {graph: ratio for graph, ratio in ratios.items() if ratio > 1}
    slower = {graph: 1 / ratio for graph, ratio in ratios.items() if ratio <= 1}
    said = f"On {len(faster)} of {len(ratios)} graphs VB is {times(faster)} faster than EB" if faster else ""
    other = f"EB is {times(slower)} faster than VB on {', '.join(slower)}" if slower else ""
    return "; ".join(filter(None, (said, other)))


def times(ratios: dict[str, float]) -> str:
    """The geometric mean and both ends."""
    found = [number(value) for value in (mean([*ratios.values()]), min(ratios.values()), max(ratios.values()))]
    return f"{found[1]} to {found[2]} times ({found[0]} in the geometric mean)"


def relative(row: Row | None, base: Row | None) -> str:
    return "" if row is None or base is None else f"{row['ms'] / base['ms']:.3f}"


def by_precond(lines: Lines, precond: str) -> Lines:
    """The solves with a preconditioner, if all rows were colored."""
    of_it = [row for row in lines if row["kind"] == "pcg" and row["precond"] == precond]
    return [row for row in of_it if not row.get("max_uncolored")]


def solved(tried: Lines, key: str) -> str:
    row = best(tried, key)
    if row is None:
        return failure(tried)
    colors = f"; {row['colors']} colors" if row.get("colors") else ""
    return f"{number(row[key])} ({row['iters']}{colors})"


def kokkos_solved(tried: Lines) -> str:
    if not tried:
        return "not run"
    (row,) = tried
    converged = row["relres"] is not None and row["relres"] <= 2e-8
    return f"{number(row['ms'])} ({row['iters']})" if converged else "not converged"


def trials(lines: Lines) -> Lines:
    """The hierarchies that were tried under PCG. FGMRES's warm solves took no time, so they were none."""
    solves = [row for row in lines if row["kind"] == "pcg"]
    return [row for row in solves if "algorithm" in row["params"] and row["params"]["solver"] == "PCG"]


def best_hierarchy(lines: Lines, coarsening: str, smoothers: list[str]) -> Row | None:
    """The best of a kind, by setup and solve."""
    of_it = [row for row in trials(lines) if coarsening in row["params"]["extra"] or coarsening == row["precond"]]
    return best([row for row in of_it if row["params"]["smoother"] in smoothers], "setup_ms", "solve_ms")


def our_hierarchy(case: Row) -> str:
    """Ours in our run, with an update for the second setup."""
    row = next(row for row in case["solvers"] if row["name"] == "multigrid")
    times = {"setup_ms": row["setup"]["ms"], "solve_ms": row["solve"]["ms"], "iters": row["iterations"]}
    return hierarchy(times | {"resetup_ms": case["update"]["ms"]})


def hierarchy(row: Row | None) -> str:
    if row is None:
        return ""
    again = f" [{number(row['resetup_ms'])}]" if row.get("resetup_ms") else ""
    return f"{number(row['setup_ms'])} + {number(row['solve_ms'])} ({row['iters']}){again}"


def first_fit() -> str:
    """A table of first-fit here, in row order and by degree, and of Kokkos Kernels' deterministic coloring."""
    document, kokkos = runs(["coloring-gpu"])["coloring-gpu"], theirs("kokkos-kernels")
    lines = []
    for case in document["cases"]:
        rows = [case["methods"].get(name) for name in ("jp natural", "jp ldf")]
        if all(rows) and case["name"] in kokkos:
            cells = [f"{number(row['ms'])} / {counted(row, 'colors')}" for row in rows]
            theirs_best = colored_in(kokkos[case["name"]], "COLORING_VBDBIT")
            lines.append([case["name"], f"{rows[0]['rounds']:,}", *cells, theirs_best])
    there = document_of("kokkos-kernels")
    when = f"{place(document)}, {date(document)}"
    header = ["ms / colors", "fronts", f"in row order, {when}", "by degree, the same"]
    return table([*header, f"Kokkos Kernels, {there['machine']['gpu']}, {date(there)}"], lines)
