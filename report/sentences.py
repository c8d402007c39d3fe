"""Sentences with figures on pages that are written by hand."""

from __future__ import annotations

from pathlib import Path

from report.noise import Range, mean, verdict
from report.results import OURS, RESULTS, Document, busy, date, measured, place, runs
from report.tables import number

#: The runs of the gallery.
GALLERY = ("gallery-cpu", "gallery-gpu")


def of_gallery(results: Path = RESULTS) -> dict[str, str]:
    """The gallery: how long an example takes here and without this package, by the names of examples."""
    found: dict[str, list[str]] = {}
    on_gpu = set()
    for document in runs([*GALLERY], results).values():
        for case in document["cases"]:
            ours, default = (number(case[who]["ms"] / 1e3) for who in ("ours", "default"))
            said = f"{ours} s on {place(document)}, and {default} s on the CPU by {case['beside']}"
            found.setdefault(case["name"], []).append(f"At size {case['size']} it takes {said}{who_is_faster(case)}.")
            found[case["name"]] += [warning] if (warning := busy(document)) else []
            on_gpu |= {case["name"]} if document["machine"]["gpu"] else set()
    for name in found.keys() - on_gpu:
        found[name].append("It was not measured on a GPU.")
    return {name: " ".join(parts) for name, parts in found.items()}


def who_is_faster(case: Document) -> str:
    """Said of examples where ours is not the faster one."""
    is_faster = verdict(Range.of(case["default"]) / Range.of(case["ours"]), 1.0)
    lost = {"no": ": **there the default is faster**", "not decided": "; which one is faster is not decided"}
    return lost.get(is_faster, "")


def of_determinism(results: Path = RESULTS) -> str:
    """What it costs that all GPUs give the same bits: on each GPU that was measured, and whether they do."""
    found = runs(["determinism-gpu"], results).values()
    return "".join(" ".join(map(cost, document["cases"])) + agreement(document) for document in found)


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


def of_error_estimates(results: Path = RESULTS) -> str:
    """How near estimates of the error in the energy norm come to the true error, on each device that was measured."""
    found = runs(["error-estimates-cpu", "error-estimates-gpu"], results).values()
    return " ".join(map(estimates, found))


def estimates(document: Document) -> str:
    """The solves, the share of right estimates, and the worst of them."""
    found = document["summaries"]["all"]
    solves = f"{found['ended']} of {found['solves']} solves of {found['systems']} random systems end by the energy norm"
    right = f"{100 * found['within']:.1f}% of these have an estimate within a factor of 2 of the true error"
    worst = f"{found['far_too_small']} have one that is more than 10 times too small"
    above = f"In {found['above_rtol']} of them the true error is more than twice `rtol`"
    largest = f"the largest one is {number(found['largest_over_rtol'])} times `rtol`"
    more = f"In the median the correction takes {100 * found['more_iterations']:.0f}% more iterations"
    ratios = [case["ratio"] for case in document["norms"]]
    each = f"an iteration takes {min(ratios):.2f} to {max(ratios):.2f} times as long as one by the residual's norm"
    return f"{solves} on {measured(document)}: {right}, and {worst}. {above}; {largest}. {more}, and {each}."


def of_alarms(results: Path = RESULTS) -> str:
    """How many solves say that the residual may hide an error, and how many of these are wrong about that."""
    return " ".join(map(alarms, runs(["alarms-cpu", "alarms-gpu"], results).values()))


def alarms(document: Document) -> str:
    """The solves of all matrices, and those of the gallery."""
    matrices = [case for case in document["cases"] if "solves" in case]
    solves = [solve for case in matrices for solve in case["solves"] if "alarm" in solve]
    count, false, missed = (sum(solve[kind] for solve in solves) for kind in ("alarm", "false", "missed"))
    gallery = [case for case in document["cases"] if "alarms" in case]
    in_gallery, of_gallery = sum(case["alarms"] for case in gallery), sum(case["count"] for case in gallery)
    of_matrices = f"Of {len(solves)} solves for {len(matrices)} matrices of the benchmarks on {measured(document)}"
    right = f"{count} end as `CONVERGED_IN_RESIDUAL`, and for {false} of them no error is above 1%"
    wrong = f"{missed} end as `CONVERGED` with an error in the energy norm above 1%"
    return f"{of_matrices}, {right}. {wrong}. Of {of_gallery} solves in the gallery {in_gallery} are alarms."
