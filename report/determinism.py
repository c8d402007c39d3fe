"""What it costs that all GPUs give the same bits, and whether they do."""

from __future__ import annotations

from pathlib import Path

from report.results import RESULTS, Document, runs
from report.tables import mean

FILE = "determinism-gpu"


def sentence(results: Path = RESULTS) -> str:
    """The cost on each GPU that was measured, and how many results are the same on all of them."""
    found = runs([FILE], results)
    return " ".join(cost(case) for case in found[FILE]["cases"]) + agreement(found[FILE]) if found else ""


def cost(case: Document) -> str:
    """The mean of all matrices, and the largest, by preconditioner."""
    said = []
    for name in ("MulticolorSGS", "SmoothedAggregation"):
        ratios = [
            solve["ways"][f"{name} gpu_to_gpu"]["ms"] / solve["ways"][f"{name} default"]["ms"]
            for solve in case["solves"]
        ]
        said.append(f"{100 * (mean(ratios) - 1):.0f}% with `{name}` ({100 * (max(ratios) - 1):.0f}% at most)")
    matrices = ", ".join(solve["name"] for solve in case["solves"])
    return f"On an {case['name']} a solve takes longer by {' and '.join(said)}, in the mean of {matrices}."


def agreement(document: Document) -> str:
    """How many digests are the same on all GPUs."""
    first, *others = document["cases"]
    if not others:
        return ""
    digests, names = first["digests"], " and ".join(case["name"] for case in document["cases"])
    same = sum(all(case["digests"].get(name) == one for case in others) for name, one in digests.items())
    return f" Of {len(digests)} results, {same} have the same bits on {names}."
