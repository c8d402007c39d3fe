"""The sentences with times on the pages of the gallery."""

from __future__ import annotations

from pathlib import Path

from report.results import RESULTS, place, runs
from report.tables import number

RUNS = ["gallery-cpu", "gallery-gpu"]


def sentences(results: Path = RESULTS) -> dict[str, str]:
    """How long an example takes here and without this package, by the names of examples."""
    found: dict[str, list[str]] = {}
    for document in runs(RUNS, results).values():
        for case in document["cases"]:
            ours, default = (number(case[who]["ms"] / 1e3) for who in ("ours", "default"))
            said = f"{ours} s on {place(document)}, and {default} s on the CPU by {case['beside']}"
            found.setdefault(case["name"], []).append(f"At size {case['size']} it takes {said}.")
    return {name: " ".join(parts) for name, parts in found.items()}
