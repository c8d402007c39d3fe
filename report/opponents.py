"""docs/opponents.md: what other packages take for colorings, solves and multigrid, as another run has measured it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from report.results import RESULTS, Document, date, measured, origin, runs, versions
from report.tables import by_name, number, render

FILES = ["colorings", "colorings-elasticity", "ecl-natural", "kokkos-kernels", "cupy", "amgx", "amgx-multigrid"]
OURS, SOLVES, MULTIGRID, CPU = "coloring-gpu", "sweeps-gpu", "multigrid-gpu", "graphblas-cpu"

Lines = list[dict[str, Any]]
Test = Callable[[dict[str, Any]], bool]

#: Matrices and graphs in the order of the columns.
ORDER = (
    *("fenl_50", "fenl_100", "fenl_180", "elasticity48", "grid2d_1024"),
    *("delaunay20", "rgg20", "rmat20", "rmat22", "mycielskian15"),
)
#: Codes by the names in the files.
COLORINGS = {
    "csrcolor": "csrcolor",
    "ecl-gc": "ECL-GC",
    "sirg": "SIRG",
    "chengc": "Chen et al.",
    "gunrock-color": "Gunrock",
}
KOKKOS = {
    "COLORING_EB": "edge-based",
    "COLORING_VB": "vertex-based",
    "COLORING_VBBIT": "vertex-based, bits",
    "COLORING_VBD": "deterministic",
    "COLORING_VBDBIT": "deterministic, bits",
}
NATURAL = {"ecl-gc": "its own priorities", "ecl-ldfnat": "by degree, then in the order of rows"}
#: Methods of ours beside csrcolor in our run.
METHODS = ["eb", "ecl_gc", "sirg", "chen_wlc", "jp natural"]
#: The problems and sizes of benchmarks/multigrid.py by the names of the others.
OUR_NAMES = {
    ("fenl", 100): "fenl_100",
    ("fenl", 180): "fenl_180",
    ("elasticity", 48): "elasticity48",
    ("poisson2d", 1024): "grid2d_1024",
}
#: Smoothers of AmgX in kinds.
SMOOTHERS = {
    "Jacobi": ("JACOBI_L1", "BLOCK_JACOBI"),
    "multicolor Gauss-Seidel or DILU": ("MULTICOLOR_GS", "MULTICOLOR_DILU"),
    "Chebyshev": ("CHEBYSHEV",),
}
COARSENINGS: dict[str, Test] = {
    "classical, an aggressive level": lambda row: "aggressive_levels=1" in row["params"]["extra"],
    "classical": lambda row: "aggressive_levels=0" in row["params"]["extra"],
    "aggregation": lambda row: row["precond"] == "AMG_AGGREGATION",
}


def load(results: Path = RESULTS) -> dict[str, Document]:
    """The runs that exist: the opponents', and ours on graphs and matrices of the same names."""
    return runs([*FILES, CPU], results / "opponents") | runs([OURS, SOLVES, MULTIGRID], results)


def page(documents: dict[str, Document]) -> str:
    """The whole page, in Markdown."""
    theirs = {name: lines_of(documents[name]) for name in FILES}
    colored = {
        graph: lines + theirs["colorings-elasticity"].get(graph, []) for graph, lines in theirs["colorings"].items()
    }
    return render(
        "opponents.md",
        files={name: about(documents[name]) for name in FILES},
        dates=" and ".join(sorted({date(documents[name]) for name in FILES})),
        sizes=sizes(theirs),
        colorings=table_of(colored, COLORINGS, colored_in),
        ratios=ratios(colored, documents[OURS]),
        ours=measured(documents[OURS]),
        kokkos_colorings=table_of(theirs["kokkos-kernels"], KOKKOS, colored_in),
        natural=table_of(theirs["ecl-natural"], NATURAL, colored_in),
        solves=solves(theirs["cupy"], theirs["amgx"]),
        our_solves=our_solves(documents[SOLVES]),
        our_solves_origin=origin(documents[SOLVES]),
        kokkos=kokkos(theirs["kokkos-kernels"]),
        multigrid=multigrid(theirs["amgx-multigrid"]),
        our_multigrid=our_multigrid(documents[MULTIGRID]),
        our_multigrid_origin=origin(documents[MULTIGRID]),
        tried={name: len(trials(lines)) for name, lines in theirs["amgx-multigrid"].items()},
        cpu=on_a_cpu(documents[CPU]) if CPU in documents else None,
    )


def lines_of(document: Document) -> dict[str, Lines]:
    """The lines of a run, by matrix or graph, in the order of the other pages."""
    return {
        case["name"]: case["lines"] for case in sorted(document["cases"], key=lambda case: ORDER.index(case["name"]))
    }


def about(document: Document) -> str:
    what = document["about"].replace("*", r"\*")
    return f"{what}. {document['machine']['gpu']}, {date(document)}, {versions(document)}"


def best(lines: Iterable[dict[str, Any]], *keys: str) -> dict[str, Any] | None:
    """The line with the least sum of these times, of those that have them and did not fail."""
    done = [row for row in lines if all(row.get(key) is not None for key in keys) and succeeded(row)]
    return min(done, key=lambda row: sum(row[key] for key in keys), default=None)


def succeeded(row: dict[str, Any]) -> bool:
    return "error" not in row and row.get("status", "success") == "success" and row.get("valid", True)


def table_of(theirs: dict[str, Lines], codes: dict[str, str], cell: Callable[[Lines, str], str]) -> str:
    """A row for each code, and a column for each matrix that has any."""
    return by_name(
        "", list(theirs), {code: [cell(theirs[name], key) for name in theirs] for key, code in codes.items()}
    )


def colored_in(lines: Lines, code: str) -> str:
    """Time and colors, or why there are none."""
    tried = [row for row in lines if row["kind"] == "color" and row["algo"] == code]
    row = best(tried, "ms")
    if row is None:
        return failure(tried)
    return f"{number(row['ms'])} / {row['colors']}"


def failure(tried: Lines) -> str:
    if not tried:
        return "not run"
    told = str(tried[0].get("error", "not converged"))
    return "timeout" if told.startswith("timeout") else "out of memory" if "failed to allocate" in told else "failed"


def sizes(theirs: dict[str, dict[str, Lines]]) -> str:
    """Entries off the diagonal of each graph in the colorings and in the matrices that were solved with."""
    colored = {name: row["edges"] for name, lines in theirs["colorings"].items() for row in lines if "edges" in row}
    solved = {
        name: row["nnz"] - row["n"]
        for name, lines in theirs["kokkos-kernels"].items()
        for row in lines
        if row["kind"] == "info"
    }
    names = [*theirs["colorings"]]
    return by_name(
        "",
        names,
        {
            "colored with zeros": [f"{colored[name]:,}" if name in colored else "" for name in names],
            "without zeros": [f"{solved[name]:,}" if name in solved else "" for name in names],
        },
    )


def ratios(theirs: dict[str, Lines], ours: Document) -> str:
    """Times relative to csrcolor, each in the run that it is from."""
    cases = {case["name"]: case["methods"] for case in ours["cases"]}
    names = [name for name in theirs if name in cases]
    rows: dict[str, list[str]] = {}
    for key, code in COLORINGS.items():
        if key != "csrcolor":
            rows[f"{code}, their run"] = [
                relative(best_by(theirs[n], key), best_by(theirs[n], "csrcolor")) for n in names
            ]
    for method in METHODS:
        rows[f"`{method}`, our run"] = [relative(cases[n].get(method), cases[n]["csrcolor"]) for n in names]
    return by_name("", names, rows)


def best_by(lines: Lines, code: str) -> dict[str, Any] | None:
    return best((row for row in lines if row["kind"] == "color" and row["algo"] == code), "ms")


def relative(row: dict[str, Any] | None, base: dict[str, Any] | None) -> str:
    return "" if row is None or base is None else f"{row['ms'] / base['ms']:.3f}"


def solves(cupy: dict[str, Lines], amgx: dict[str, Lines]) -> str:
    """PCG to 1e-8 without setup: ms (iterations; colors)."""
    rows: dict[str, list[str]] = {"CuPy: A @ x by cuSPARSE": []}
    for lines in cupy.values():
        rows["CuPy: A @ x by cuSPARSE"].append(number(best([r for r in lines if r["kind"] == "spmv"], "ms")["ms"]))  # type: ignore[index]
    for precond, name in {"none": "cg", "jacobi": "cg, Jacobi", "spilu0": "cg, spilu without fill"}.items():
        rows[f"CuPy: {name}"] = [solved(by_precond(lines, precond), "ms") for lines in cupy.values()]
    for precond, name in {
        "NONE": "PCG",
        "BLOCK_JACOBI": "PCG, block-Jacobi",
        "MULTICOLOR_GS": "PCG, MULTICOLOR_GS, the best coloring",
        "MULTICOLOR_DILU": "PCG, MULTICOLOR_DILU, the best coloring",
    }.items():
        rows[f"AmgX: {name}"] = [solved(by_precond(amgx[matrix], precond), "solve_ms") for matrix in cupy]
    return by_name("", list(cupy), rows)


def our_solves(document: Document) -> str:
    """Ours in our run, with their setup: the rows of the same names."""
    cases = {case["name"]: {row["name"]: row for row in case["solvers"]} for case in document["cases"]}
    names = [name for name in ORDER if name in cases]
    rows = {}
    for solver in ("cupyx cg", "cupyx cg Jacobi", "pcg", "pcg SGS eb", "pcg SGS natural"):
        found = [cases[name][solver] for name in names]
        rows[solver] = [f"{number(row['total_ms'])} ({row['iterations']})" for row in found]
    return by_name("", names, rows)


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


def kokkos(theirs: dict[str, Lines]) -> str:
    """Sweeps and PCG of Kokkos Kernels."""
    theirs = {name: lines for name, lines in theirs.items() if any(row["kind"] == "pcg" for row in lines)}
    rows = {}
    for algo, what in {"sgs_point": "as it is", "sgs_point_permuted": "permuted storage"}.items():
        swept = [[row for row in lines if row["kind"] == "sgs" and row["algo"] == algo] for lines in theirs.values()]
        rows[f"one SGS application, {what}, ms"] = [number(lines[0]["apply_ms"]) if lines else "" for lines in swept]
    for precond, what in {
        "none": "PCG",
        "sgs_point": "PCG, SGS",
        "sgs_point_permuted": "PCG, SGS in permuted storage",
        "sgs_twostage": "PCG, two-stage Gauss-Seidel",
    }.items():
        rows[f"{what}, ms (iterations)"] = [kokkos_solved(by_precond(lines, precond)) for lines in theirs.values()]
    return by_name("", list(theirs), rows)


def kokkos_solved(tried: Lines) -> str:
    if not tried:
        return "not run"
    (row,) = tried
    if row["relres"] is None or row["relres"] > 2e-8:
        return "not converged"
    return f"{number(row['ms'])} ({row['iters']})"


def trials(lines: Lines) -> Lines:
    """The hierarchies that were tried under PCG. FGMRES's warm solves took no time, so they were none."""
    return [
        row
        for row in lines
        if row["kind"] == "pcg" and "algorithm" in row["params"] and row["params"]["solver"] == "PCG"
    ]


def multigrid(theirs: dict[str, Lines]) -> str:
    """The best of each kind: setup + solve, ms (iterations), and setup again with the same structure."""
    rows = {}
    for coarsening, is_of in COARSENINGS.items():
        for smoother, names in SMOOTHERS.items():
            found = [
                best(
                    (r for r in trials(lines) if is_of(r) and r["params"]["smoother"] in names), "setup_ms", "solve_ms"
                )
                for lines in theirs.values()
            ]
            if any(found):
                rows[f"{coarsening}; {smoother}"] = [hierarchy(row) for row in found]
    return by_name("", list(theirs), rows)


def our_multigrid(document: Document) -> str:
    """Ours in our run: setup + solve, ms (iterations), and an update with new values."""
    known = {(case["name"].split("_")[0], case["size"]): case for case in document["cases"]}
    cases = {name: known[ours] for ours, name in OUR_NAMES.items() if ours in known}
    names = [name for name in ORDER if name in cases]
    cells = []
    for name in names:
        row = next(row for row in cases[name]["solvers"] if row["name"] == "multigrid")
        times = {"setup_ms": row["setup"]["ms"], "solve_ms": row["solve"]["ms"], "iters": row["iterations"]}
        cells.append(hierarchy(times | {"resetup_ms": cases[name]["update"]["ms"]}))
    return by_name("", names, {"`SmoothedAggregation`": cells})


def hierarchy(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    again = f" [{number(row['resetup_ms'])}]" if row.get("resetup_ms") else ""
    return f"{number(row['setup_ms'])} + {number(row['solve_ms'])} ({row['iters']}){again}"


def on_a_cpu(document: Document) -> dict[str, Any]:
    """SuiteSparse:GraphBLAS beside the same methods by our kernels."""
    cases = document["cases"]
    methods = list(dict.fromkeys(name for case in cases for name in case["methods"]))
    cells = {
        name: [
            f"{number(row['ms'])} / {row['colors']}" if (row := case["methods"].get(name)) else "not run"
            for case in cases
        ]
        for name in methods
    }
    return {
        "origin": origin(document),
        "table": by_name("", [case["name"] for case in cases], cells),
        "loads": " to ".join(f"{end(case['load'] for case in cases):.1f}" for end in (min, max)),
        "threads": document["machine"]["threads"],
    }
