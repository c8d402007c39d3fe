"""Write docs/colorings.md from benchmarks/results/coloring-gpu.json; figures are never typed by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS, PAGE = ROOT / "benchmarks" / "results" / "coloring-gpu.json", ROOT / "docs" / "colorings.md"

#: What the papers and our goals say, as (sentence, row in the numerator, row in the denominator, least ratio).
RELATIONS = [
    ("eb is at least 3 times faster than csrcolor (Deveci et al.: 1.49)", "csrcolor", "eb", "ms", 3.0),
    ("eb needs at least 4 times fewer colors than csrcolor (Deveci et al.: 4.12)", "csrcolor", "eb", "colors", 4.0),
    ("sirg is at least 3.4 times faster than csrcolor (Sistla, Nandivada: 3.42)", "csrcolor", "sirg", "ms", 3.4),
    ("ecl_gc is at least 2.6 times faster than jp in the same order (Alabandi et al.)", "jp ldf", "ecl_gc", "ms", 2.6),
    ("is_minmax is at least 1.3 times faster than jpl (Osama et al.)", "jpl", "is_minmax", "ms", 1.3),
    ("eb with a prefix sum is faster than with an atomic counter (Deveci et al.)", "eb atomic", "eb", "ms", 1.0),
    ("vb_bit is faster than vb (Deveci et al.)", "vb", "vb_bit", "ms", 1.0),
]


def main() -> None:
    PAGE.write_text(page(json.loads(RESULTS.read_text())))


def page(document: dict[str, Any]) -> str:
    """The whole page, in Markdown."""
    cases = document["cases"]
    rows = list(cases[0]["methods"])
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
    return "\n".join(
        [
            "# Colorings on a GPU",
            "",
            "Written by `tools/colorings.py` from `benchmarks/results/coloring-gpu.json`, which "
            "`python benchmarks/coloring.py gpu` makes.",
            "",
            f"{document['machine']['gpu']}, {document['date'][:10]}, {versions}. Medians of wall times of the method "
            "alone, on a graph that is on the device; cuSPARSE's csrcolor gets the same matrix in the same run. Every "
            "coloring was checked. *Pattern* is the check for symmetry and order that `color` makes first.",
            "",
            "## Graphs",
            "",
            *table(
                "graph",
                ["vertices", "entries", "largest degree", "pattern, ms"],
                {
                    c["name"]: [*(f"{c[k]:,}" for k in ("vertices", "entries", "max_degree")), ms(c["pattern_ms"])]
                    for c in cases
                },
            ),
            "## Time in ms / colors",
            "",
            *table("graph", rows, {c["name"]: [cell(c["methods"].get(row)) for row in rows] for c in cases}),
            "## Time relative to csrcolor",
            "",
            *table(
                "graph",
                rows[1:],
                {c["name"]: [ratio([c], row) for row in rows[1:]] for c in cases}
                | {"geometric mean": [ratio(cases, row) for row in rows[1:]]},
            ),
            "## Do the papers' relations hold here?",
            "",
            "Geometric means over the graphs above.",
            "",
            *table("relation", ["found", "holds"], {sentence: verdict(cases, *rest) for sentence, *rest in RELATIONS}),
        ]
    )


def table(corner: str, columns: list[str], rows: dict[str, list[str]]) -> list[str]:
    """A Markdown table and an empty line."""
    lines = [[corner, *columns], ["---", *("---:" for _ in columns)], *([name, *cells] for name, cells in rows.items())]
    return ["| " + " | ".join(line) + " |" for line in lines] + [""]


def verdict(cases: list[dict[str, Any]], slow: str, fast: str, what: str, least: float) -> list[str]:
    found = mean([c["methods"][slow][what] / c["methods"][fast][what] for c in cases])
    return [f"{found:.2f}", "yes" if found >= least else "no"]


def ratio(cases: list[dict[str, Any]], row: str) -> str:
    """The time relative to csrcolor, in the geometric mean; empty where a time is missing."""
    if any(row not in case["methods"] for case in cases):
        return ""
    return f"{mean([case['methods'][row]['ms'] / case['methods']['csrcolor']['ms'] for case in cases]):.2f}"


def mean(values: list[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "not run"
    return f"{ms(row['ms'])} / {row['colors']}"


def ms(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


if __name__ == "__main__":
    main()
