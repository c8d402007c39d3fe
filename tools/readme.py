"""Write README's measured part and its picture from benchmarks/results; figures are never typed by hand.

python tools/readme.py            rewrite both
python tools/readme.py --check    say whether README is current, and exit with 1 if not
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
README, PICTURE = ROOT / "README.md", ROOT / "docs" / "images" / "fenl.svg"
RESULTS = ROOT / "benchmarks" / "results"
BEGIN, END = "<!-- begin: measured -->", "<!-- end: measured -->"
MARKERS = "osD^v"  # told apart without color

Document = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    arguments = parser.parse_args()
    documents, text = load(RESULTS), README.read_text()
    current = with_measured(text, measured(documents))
    if arguments.check:
        sys.exit(None if text == current else "README.md is not what benchmarks/results says; run `make readme`")
    README.write_text(current)
    if documents:
        draw(documents, PICTURE)


def load(results: Path) -> list[Document]:
    """The runs that exist, the GPU's first."""
    paths = (results / f"fenl-{device}.json" for device in ("gpu", "cpu"))
    return [json.loads(path.read_text()) for path in paths if path.exists()]


def with_measured(text: str, part: str) -> str:
    """The text with what is between the markers replaced."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{part}{END}{after}"


def measured(documents: list[Document]) -> str:
    """The part between the markers, in Markdown."""
    if not documents:
        return "Nothing is measured yet: run `python benchmarks/fenl.py`, then `make readme`.\n"
    alt = "Iterations and time to solution of each solver on FENL"
    picture = f"![{alt}]({PICTURE.relative_to(ROOT).as_posix()})\n"
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
            table("coloring: ms / colors", cases, [
                {name: f"{number(row['ms'])} / {row['colors']}" for name, row in rows.items()} for rows in colorings
            ]),
            table("one application + setup, ms", cases, applied),
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


def solver_names(document: Document) -> list[str]:
    """Every solver of the run, in order of appearance."""
    return list(dict.fromkeys(row["name"] for case in document["cases"] for row in case["solvers"]))


if __name__ == "__main__":
    main()
