"""Write what README and the page of FENL show of benchmarks/results; figures are never typed by hand.

python tools/readme.py            rewrite both, and their pictures
python tools/readme.py --check    say whether they are current, and exit with 1 if not
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
README, PAGE = ROOT / "README.md", ROOT / "docs" / "benchmarks" / "fenl.md"
PICTURE, RACE = (ROOT / "docs" / "images" / name for name in ("fenl.svg", "race.svg"))
RESULTS = ROOT / "benchmarks" / "results"
#: What README compares: a file of results, the list of its solvers, and those that are shown by the names they get.
RACES = {
    "ilu-gpu": ("factorizations", {
        "plain CG": "CG", "SGS color": "SGS", "DILU color": "DILU", "ILU0 color": "ILU(0)",
        "ILU0 natural": "ILU(0), row order",
    }),
    "multigrid-gpu": ("solvers", {"CG": "CG", "Jacobi": "Jacobi", "SGS": "SGS", "multigrid": "multigrid"}),
    "multigrid-cpu": ("solvers", {
        "CG": "CG", "Jacobi": "Jacobi", "SGS": "SGS", "multigrid": "multigrid", "PyAMG": "PyAMG",
    }),
}  # fmt: skip
COLORS = {
    "CG": "0.55", "Jacobi": "#c9b458", "SGS": "#1b9e77", "multigrid": "#d95f02", "DILU": "#66a61e",
    "ILU(0)": "#7570b3", "ILU(0), row order": "#bdb9dd", "PyAMG": "#e6ab92",
}  # fmt: skip
MARKERS = "osD^v"  # told apart without color

Document = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    arguments = parser.parse_args()
    documents, races = load(RESULTS), load_races(RESULTS)
    current = {
        README: replaced(README.read_text(), "summary", summary(races)),
        PAGE: replaced(PAGE.read_text(), "measured", measured(documents)),
    }
    if arguments.check:
        stale = [path.name for path, text in current.items() if text != path.read_text()]
        sys.exit(f"{', '.join(stale)}: not what benchmarks/results says; run `make readme`" if stale else None)
    for path, text in current.items():
        path.write_text(text)
    draw_race(races, RACE)
    if documents:
        draw(documents, PICTURE)


def load(results: Path) -> list[Document]:
    """The runs that exist, the GPU's first."""
    paths = (results / f"fenl-{device}.json" for device in ("gpu", "cpu"))
    return [json.loads(path.read_text()) for path in paths if path.exists()]


def load_races(results: Path) -> dict[str, Document]:
    """The runs that README compares and that exist, by the names of their files."""
    paths = {name: results / f"{name}.json" for name in RACES}
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}


def replaced(text: str, name: str, part: str) -> str:
    """The text with what is between the markers of a name replaced."""
    begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
    before, rest = text.split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}\n{part}{end}{after}"


def totals(name: str, case: Document) -> dict[str, tuple[float, int]]:
    """Milliseconds of setup and solve, and iterations, of the solvers that README shows."""
    kind, shown = RACES[name]
    found = {}
    for row in case[kind]:
        if row["name"] in shown:
            ms = row["total_ms"] if "total_ms" in row else row["setup"]["ms"] + row["solve"]["ms"]
            found[shown[row["name"]]] = ms, row["iterations"]
    return found


def summary(races: dict[str, Document]) -> str:
    """The part of README: a chart, and a small table for each run."""
    alt = "Times faster than plain CG, setup included, for each solver and problem on a GPU and on a CPU"
    parts = [f"![{alt}]({RACE.relative_to(ROOT).as_posix()})\n"]
    for name, document in races.items():
        labels = list(RACES[name][1].values())
        lines = [["ms with setup (iterations)", *labels], ["---", *("---:" for _ in labels)]]
        for case in document["cases"]:
            cells = totals(name, case)
            best = min(cells, key=lambda label: cells[label][0])
            shown = {label: f"{number(ms)} ({count:,})" for label, (ms, count) in cells.items()}
            shown[best] = f"**{shown[best]}**"
            lines.append([f"{case['name']}, {case['unknowns']:,}", *(shown.get(label, "") for label in labels)])
        parts.append(f"**{place(document)}**, {document['date'][:10]}, to a relative residual of 1e-8:\n")
        parts.append("".join(f"| {' | '.join(line)} |\n" for line in lines))
    parts.append(
        "The number behind a problem is that of its unknowns. CG is `pcg` of this package without a preconditioner,\n"
        "and SGS is symmetric Gauss-Seidel in the order of the default coloring. The fastest is in bold.\n"
    )
    return "\n".join(parts)


def measured(documents: list[Document]) -> str:
    """The part between the markers, in Markdown."""
    if not documents:
        return "Nothing is measured yet: run `python benchmarks/fenl.py`, then `make readme`.\n"
    alt = "Iterations and time to solution of each solver on FENL"
    picture = f"![{alt}](../images/{PICTURE.name})\n"
    return "\n".join([picture, *(tables(document) for document in documents)])


def tables(document: Document) -> str:
    """What was measured where, then a table each of colorings, preconditioners and solvers."""
    cases = document["cases"]
    # The same rows in every case, unless a case could not run one: that cell stays empty.
    colorings = [case["colorings"] | {name: case[name] for name in ["csrcolor"] if name in case} for case in cases]
    solvers = [{row["name"]: row for row in case["solvers"]} for case in cases]
    applied = [{"A @ x": f"{number(case['spmv_ms'])}"} for case in cases]
    for cells, rows in zip(applied, solvers, strict=True):
        for name, row in rows.items():
            if row["apply_ms"] is not None:
                cells[name] = f"{number(row['apply_ms'])} + {number(row['setup_ms'])}"
    return "\n".join(
        [
            f"**{place(document)}**, {document['date'][:10]}, {versions(document)}. {clock(document)}\n",
            "<details><summary>Colorings and single applications</summary>\n",
            table("coloring: ms / colors", cases, [
                {name: f"{number(row['ms'])} / {row['colors']}" for name, row in rows.items()} for rows in colorings
            ]),
            table("one application + setup, ms", cases, applied),
            "</details>\n",
            f"b = A x\\* with random x\\*, relative residual {document['rtol']:g}:\n",
            table("solver: ms with setup (iterations)", cases, [
                {name: f"{number(row['total_ms'])} ({row['iterations']})" for name, row in rows.items()}
                for rows in solvers
            ]),
        ]
    )  # fmt: skip


def table(title: str, cases: list[Document], columns: list[dict[str, str]]) -> str:
    """A Markdown table with a column per case and a row per name."""
    names = list(dict.fromkeys(name for column in columns for name in column))
    lines = [
        [title, *(f"{case['name']}, {case['unknowns']:,} unknowns" for case in cases)],
        ["---", *("---:" for _ in cases)],
        *([name, *(column.get(name, "") for column in columns)] for name in names),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def place(document: Document) -> str:
    """The GPU, or the processor and how many of its cores."""
    machine = document["machine"]
    cores = f"{machine['cpu']}, {machine['cores']} cores" if "cores" in machine else machine["cpu"]
    return str(machine["gpu"] or cores)


def clock(document: Document) -> str:
    """What the times are: on a GPU, benchmarks/fenl.py does not time everything alike."""
    if not document["machine"]["gpu"]:
        return "Medians of wall times."
    return (
        "Medians of wall times, but for A @ x (queued calls) and one application (a replayed graph): these are device "
        "times, without what the host needs to launch them."
    )


def versions(document: Document) -> str:
    return ", ".join(f"{name} {version}" for name, version in document["versions"].items())


def number(value: float) -> str:
    """Three significant digits, no exponent."""
    if 0 < value < 0.001:
        return "<0.001"
    return f"{value:.0f}" if value >= 100 else f"{value:#.3g}".rstrip(".")


def draw(documents: list[Document], path: Path) -> None:
    """A row per run: iterations on the left, time with setup on the right; gray, with a marker per case."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    heights = [len(solver_names(document)) for document in documents]
    # A fixed salt and no date: the same figures give the same file.
    with plt.rc_context({"svg.hashsalt": "fenl", "font.size": 9}):
        figure, panels = plt.subplots(
            len(documents), 2, figsize=(8, 0.9 + 0.3 * sum(heights)), squeeze=False, sharey="row", layout="constrained",
            height_ratios=heights,
        )  # fmt: skip
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
            right.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            right.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            right.xaxis.set_minor_formatter(NullFormatter())
            right.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
            for panel in (left, right):
                panel.grid(axis="both", color="0.85")
                panel.set_axisbelow(True)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def draw_race(races: dict[str, Document], path: Path) -> None:
    """A panel a run: for each problem a bar a solver, as long as it is faster than plain CG."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    with plt.rc_context({"svg.hashsalt": "race", "font.size": 9}):
        figure, panels = plt.subplots(1, len(races), figsize=(9, 4.2), layout="constrained")
        handles = {}
        for panel, (name, document) in zip(panels, races.items(), strict=True):
            y, ticks = 0.0, []
            for case in document["cases"]:
                cells = totals(name, case)
                first = y
                for label, (ms, _) in cells.items():
                    times = cells["CG"][0] / ms
                    bar = panel.barh(y, times - 1, 0.9, left=1, color=COLORS[label])
                    if label == "CG":
                        bar = panel.plot([1], [y], marker="D", color=COLORS[label], linestyle="none")
                    handles.setdefault(label, bar[0])
                    panel.annotate(
                        "" if label == "CG" else f"{times:.2g}",
                        (times, y), (3 if times >= 1 else -3, 0), textcoords="offset points",
                        va="center", ha="left" if times >= 1 else "right", fontsize=7,
                    )  # fmt: skip
                    y += 1
                ticks.append(((first + y - 1) / 2, case["name"]))
                y += 1
            panel.set_xscale("log")
            panel.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            panel.xaxis.set_minor_formatter(NullFormatter())
            low, high = panel.get_xlim()
            panel.set_xlim(low / 1.5, high * 1.5)
            panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,), numticks=12))
            panel.axvline(1, color="0.3", linewidth=0.8)
            panel.set(yticks=[at for at, _ in ticks], yticklabels=[label for _, label in ticks], title=place(document))
            panel.set_xlabel("times faster than plain CG, setup included")
            panel.invert_yaxis()
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles), frameon=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def solver_names(document: Document) -> list[str]:
    """Every solver of the run, in order of appearance."""
    return list(dict.fromkeys(row["name"] for case in document["cases"] for row in case["solvers"]))


if __name__ == "__main__":
    main()
