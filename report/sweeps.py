"""docs/sweeps.md: what sweeps and solves cost, what limits them, growing FENL, short formats, marks for a CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from report.noise import Range, verdict
from report.pictures import COLORS, MARKERS, picture
from report.results import MARKS, RESULTS, Document, origin, place, runs
from report.tables import by_case, by_name, number, render, table

PICTURE = "weak-scaling.svg"
LARGE_COLUMNS = {
    "colors": "colors",
    "coloring, s": "coloring_s",
    "setup without coloring, s": "setup_s",
    "update, s": "update_s",
    "application, s": "first_apply_s",
    "error of it": "error_of_application",
    "iterations": "iterations",
    "solve, s": "solve_s",
    "residual": "relative_residual",
    "of the last rows": "relative_residual_of_last_rows",
    "memory in use, GB": "used_GB",
}
LIMIT_COLUMNS = {
    "µs": "microseconds",
    "DRAM": "dram_share",
    "L2": "l2_share",
    "link": "link_share",
    "L1": "l1_share",
    "issue": "issue_share",
    "L1 hits": "l1_hits",
    "L2 hits": "l2_hits",
    "warps active": "warps_active",
    "DRAM, MB": "dram_megabytes",
    "L1, MB": "l1_megabytes",
}


def load(results: Path = RESULTS) -> dict[str, Document]:
    """The runs that exist; those of the sweeps come first."""
    sweeps = sorted(path.stem for path in results.glob("sweeps-*.json"))
    return runs(
        [*sweeps, "limits-gpu", "precision-gpu", "half-gpu", "weak-scaling-gpu", "large-gpu", "marks-cpu"], results
    )


def page(documents: dict[str, Document]) -> str:
    """The whole page, in Markdown."""
    sweeps = [document for name, document in documents.items() if name.startswith("sweeps-")]
    parts = {
        "limits": ("limits-gpu", limits),
        "precision": ("precision-gpu", precisions),
        "half": ("half-gpu", short_formats),
        "weak_scaling": ("weak-scaling-gpu", weak_scaling),
        "large": ("large-gpu", large),
        "marks": ("marks-cpu", marks),
    }
    found = {
        name: {"run": documents[run], "origin": origin(documents[run]), "table": made(documents[run])}
        if run in documents
        else None
        for name, (run, made) in parts.items()
    }
    return render("sweeps.md", first=sweeps[0], runs=[facts(document) for document in sweeps], **found)


def facts(document: Document) -> dict[str, Any]:
    """All tables of a run of the sweeps."""
    cases = document["cases"]
    return {
        "origin": origin(document),
        "sweeps": by_case("sweeps", cases, [sweeps_of(case) for case in cases]),
        "solves": by_case("solver: ms with setup (iterations)", cases, [solves_of(case) for case in cases]),
        "applications": by_case("of which setup + one application", cases, [applications_of(case) for case in cases]),
        "gains": by_case(
            "times faster than the better of our CG and our CG with Jacobi", cases, [gains_of(case) for case in cases]
        ),
        "asked": None if document["small"] else by_case("asked and found", cases, [asked_of(case) for case in cases]),
        "choices": [(case["name"], case["auto"]["choice"]) for case in cases if "auto" in case],
    }


def sweeps_of(case: dict[str, Any]) -> dict[str, str]:
    """What an application, an iteration, setup and update cost by each coloring."""
    spmv, iterations = case["spmv_ms"], {row["name"]: row["iterations"] for row in case["solvers"]}
    cells = {"A @ x": number(spmv), "one pass": number(case["pass_ms"])}
    for row in case["sweeps"]:
        label = row["name"]
        cells[f"{label}: colors"] = str(row["colors"])
        if "iterations_as_numbered" in row:
            cells[f"{label}: iterations as numbered by the method, in the order chosen"] = (
                f"{row['iterations_as_numbered']}, {iterations[f'pcg SGS {label}']}"
            )
        cells[f"{label}: application"] = f"{number(row['apply_ms'])} ({row['apply_ms'] / spmv:.2f})"
        cells[f"{label}: application / one pass"] = f"{row['apply_ms'] / case['pass_ms']:.2f}"
        if "matrix_bytes" in row:
            cells[f"{label}: MB of the matrix + of the vector per color"] = (
                f"{number(row['matrix_bytes'] / 1e6)} + {number(row['vector_bytes_per_color'] / 1e6)}"
            )
            cells[f"{label}: launches"] = str(row["launches"])
        cells[f"{label}: model"] = f"{number(row['model_ms'])} ({row['model_ms'] / case['pass_ms']:.2f} passes)"
        cells[f"{label}: application, float32"] = (
            f"{number(row['float32_apply_ms'])} ({row['apply_ms'] / row['float32_apply_ms']:.2f} x faster)"
        )
        if "iteration_ms" in row:
            cells[f"{label}: iteration"] = f"{number(row['iteration_ms'])} ({row['iteration_ms'] / spmv:.2f})"
        if "coloring_ms" in row:
            cells[f"{label}: coloring"] = number(row["coloring_ms"])
        cells[f"{label}: setup with coloring"] = number(row["setup_ms"])
        cells[f"{label}: update"] = f"{number(row['update_ms'])} ({row['update_ms'] / spmv:.1f})"
        cells[f"{label}: memory / matrix"] = f"{row['bytes_over_matrix']:.2f}"
    return cells


def solves_of(case: dict[str, Any]) -> dict[str, str]:
    return {
        row["name"]: number(row["total_ms"]) + (f" ({row['iterations']})" if row["iterations"] else "")
        for row in case["solvers"]
    }


def applications_of(case: dict[str, Any]) -> dict[str, str]:
    applied = [row for row in case["solvers"] if "apply_ms" in row]
    return {row["name"]: f"{number(row['setup_ms'])} + {number(row['apply_ms'])}" for row in applied}


def gains_of(case: dict[str, Any]) -> dict[str, str]:
    """All solvers beside ours without a preconditioner or with Jacobi, where that was run; the library's come first."""
    totals = {row["name"]: row["total_ms"] for row in case["solvers"]}
    base = min(totals[name] for name in ("pcg", "pcg Jacobi") if name in totals)
    return {name: f"{base / total:.2f}" for name, total in totals.items()}


def asked_of(case: dict[str, Any]) -> dict[str, str]:
    """What was measured of each quantity that has a bound, the bound, and whether it holds."""
    cells = {}
    rows = {row["name"].removesuffix(", blocks of 3"): row for row in case["sweeps"]}  # blocks come last
    solves = case["solvers"]
    best = min((row for row in solves if row["name"].startswith("pcg SGS")), key=lambda row: row["total_ms"])
    library = min((row for row in solves if not row["name"].startswith("pcg")), key=lambda row: row["total_ms"])
    quickest = min(rows.values(), key=lambda row: row["iteration_ms"])
    # A time, or one and what it is divided by.
    timed: dict[str, list[tuple[dict[str, Any], str]]] = {
        "application, eb": [(rows["eb"], "apply_ms")],
        "application, natural": [(rows["natural"], "apply_ms")],
        "iteration, the better of both": [(quickest, "iteration_ms")],
        "setup, eb": [(rows["eb"], "setup_ms")],
        "update, eb": [(rows["eb"], "update_ms")],
        "solve with setup": [(best, "total_ms")],
        "solve with setup, times faster than the library's better CG": [(library, "total_ms"), (best, "total_ms")],
        "application, natural, times faster in float32": [
            (rows["natural"], "apply_ms"),
            (rows["natural"], "float32_apply_ms"),
        ],
    }
    for what, asked in MARKS["sweeps"].items():
        if case["name"] in asked:
            (limit, unit), bound = asked[case["name"]], asked["bound"]
            found, *divisors = [Range.of(row, key) for row, key in timed[what]]
            for divisor in [*divisors, *([Range.of(case, "spmv_ms")] if unit == "x" else [])]:
                found = found / divisor
            found = found.scaled(1e3 if unit == "µs" else 1)
            holds = verdict(found, limit, at_most=bound == "at most")
            cells[what] = f"{number(found.found)} ({bound} {limit:g} {unit}".rstrip() + f"): {holds}"
    return cells


def limits(document: Document) -> str:
    """The counters, kernel by kernel."""
    lines = []
    for case in document["cases"]:
        for row in case["sweeps"]:
            variant = [row["coloring"]]
            variant += [row["dtype"]] if "dtype" in row else []
            variant += [f"blocks of {row['block_size']}"] if "block_size" in row else []
            variant += [f"{row['columns']} right-hand sides"] if "columns" in row else []
            variant += ["ILU(0)"] if "ilu" in row else []
            counters = (number(row[key]) for key in LIMIT_COLUMNS.values())
            lines.append([case["name"], ", ".join(variant), f"`{row['kernel']}`", *counters])
    return table(["matrix", "coloring", "kernel", *LIMIT_COLUMNS], lines, names=3)


def precisions(document: Document) -> str:
    """Iterations and times of solves in both precisions."""
    lines = []
    for case in document["cases"]:
        for row in case["solves"]:
            both = [row[f"iterations_{dtype}"] for dtype in ("float64", "float32")]
            relation = row["float64"] / row["float32"]
            lines.append([case["name"], row["M"], *map(str, both), *(number(row[d]) for d in ("float64", "float32"))])
            lines[-1].append(number(relation))
    names = ["matrix", "M", "iterations", "in float32", "float64, ms", "float32, ms", "times faster"]
    return table(names, lines, names=2)


def short_formats(document: Document) -> str:
    """Iterations and application by format."""
    lines = []
    for case in document["cases"]:
        for row in case["rows"]:
            apply = number(row["apply_ms"]) if "apply_ms" in row else ""
            lines.append([case["name"], row["coloring"], row["stored"], str(row["iterations"]), apply])
    return table(["matrix", "coloring", "stored", "iterations", "application, ms"], lines, names=3)


def weak_scaling(document: Document) -> str:
    """Nanoseconds per unknown."""
    cases = document["cases"]
    columns = [
        {name: number(1e6 * value / case["unknowns"]) for name, value in quantities(case).items()} for case in cases
    ]
    return by_case("ns per unknown", cases, columns)


def large(document: Document) -> str:
    """One row per coloring, of the first case."""
    case = document["cases"][0]
    rows = {}
    for row in case["colorings"]:
        values = (row[key] for key in LARGE_COLUMNS.values())
        rows[row["method"]] = [
            str(x) if isinstance(x, int) else f"{x:.1e}" if 0 < x < 1e-3 else number(x) for x in values
        ]
    return by_name("coloring", list(LARGE_COLUMNS), rows)


def quantities(case: dict[str, Any]) -> dict[str, float]:
    """What is shown of a case, in ms."""
    values = {}
    for label in ("natural", "eb"):
        values[f"iteration, {label}"] = case[label]["iteration_ms"]
        values[f"application, {label}"] = case[label]["apply_ms"]
    return values | {"A @ x": case["spmv_ms"]}


def marks(document: Document) -> str:
    """What is asked for, and what was measured."""
    rows = {}
    for row in document["cases"]:
        bound = "at most" if row["at_most"] else "at least"
        ours, theirs = Range.of(row, "ours_ms"), Range.of(row, "theirs_ms")
        ratio = ours / theirs if row["at_most"] else theirs / ours
        holds = verdict(ratio, row["mark"], at_most=row["at_most"])
        rows[row["name"]] = [f"{bound} {row['mark']:g}", f"{ratio.found:.2f}", holds]
    return by_name("what", ["mark", "measured", "holds"], rows)


def draw(documents: dict[str, Document], folder: Path) -> None:
    """Nanoseconds per unknown over unknowns."""
    if "weak-scaling-gpu" not in documents:
        return
    document = documents["weak-scaling-gpu"]
    cases = document["cases"]
    unknowns = [case["unknowns"] for case in cases]
    with picture(folder / PICTURE) as plt:
        _, axes = plt.subplots(figsize=(7, 4), layout="constrained")
        for k, name in enumerate(quantities(cases[0])):
            times = [1e6 * quantities(case)[name] / case["unknowns"] for case in cases]
            style = {"marker": MARKERS[k % len(MARKERS)], "color": COLORS[k % len(COLORS)]}
            axes.plot(unknowns, times, label=name, linestyle="-" if name.startswith("iteration") else "--", **style)
        axes.set(xscale="log", xlabel="unknowns", ylabel="time per unknown [ns]", title=place(document))
        axes.set_ylim(bottom=0)
        axes.grid(color="0.85")
        axes.set_axisbelow(True)
        axes.legend(frameon=False)
