"""What it costs that all GPUs give the same bits, and whether they do."""

from __future__ import annotations

from pathlib import Path

from report.noise import Range, mean, verdict
from report.results import OURS, RESULTS, Document, date, runs

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
            Range.of(solve["ways"][f"{name} gpu_to_gpu"]) / Range.of(solve["ways"][f"{name} default"])
            for solve in case["solves"]
        ]
        share, most = (f"{100 * (ratio.found - 1):.0f}%" for ratio in (mean(ratios), max(ratios)))
        doubt = "" if verdict(mean(ratios), 1.0) == "yes" else "; not decided"
        said.append(f"{share} with `{name}` ({most} at most{doubt})")
    matrices = ", ".join(solve["name"] for solve in case["solves"])
    where = f"an {case['name']} ({OURS} {case['version']}, {date(case)})"
    return f"On {where} a solve takes longer by {' and '.join(said)}, in the mean of {matrices}."


def agreement(document: Document) -> str:
    """How many digests are the same on all GPUs."""
    first, *others = document["cases"]
    if not others:
        return ""
    digests, names = first["digests"], " and ".join(case["name"] for case in document["cases"])
    same = sum(all(case["digests"].get(name) == one for case in others) for name, one in digests.items())
    return f" Of {len(digests)} results, {same} have the same bits on {names}."
