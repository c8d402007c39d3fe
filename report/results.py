"""The runs in benchmarks/results, and what is said of each: which version ran, where, when and with what."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from benchmarks.unaffected import settled
from mcprecond.studies.sources import code
from report import ROOT

RESULTS = ROOT / "benchmarks" / "results"
#: Figures that the papers print.
PAPERS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("papers.toml").read_text())
#: What was seen in runs that were not recorded, by the page that shows it: figures that no file of results has.
WATCHED: dict[str, Any] = tomllib.loads(Path(__file__).with_name("watched.toml").read_text())
#: The names that pages print for matrices and graphs, by their names in the results files.
NAMES: dict[str, str] = tomllib.loads(Path(__file__).with_name("names.toml").read_text())
#: Bounds that were set for this package.
MARKS: dict[str, Any] = tomllib.loads((ROOT / "benchmarks" / "marks.toml").read_text())

#: A run, or a part of one: a case, or a row of it.
Document = dict[str, Any]
Row = dict[str, Any]
OURS = "mcprecond"
APPARATUS = {"studies", "cli"}  # rooms that measure and show, and compute nothing that is timed
OPPONENTS = "opponents"  # the benchmark of files that hold runs of other packages


def runs(names: list[str], folder: Path = RESULTS) -> dict[str, Document]:
    """The runs that exist, by the names of their files."""
    paths = {name: folder / f"{name}.json" for name in names}
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}


def plain(name: str) -> str:
    """What pages call a matrix or a graph."""
    return NAMES.get(name, name)


def place(document: Document) -> str:
    """The GPU, or the processor and how many of its cores."""
    machine = document["machine"]
    cores = f"{machine['cpu']}, {machine['cores']} cores" if "cores" in machine else machine["cpu"]
    return str(machine["gpu"] or cores)


def date(document: Document) -> str:
    return str(document["date"][:10])


def versions(document: Document) -> str:
    """The versions of other packages."""
    return ", ".join(f"{name} {version}" for name, version in document["versions"].items() if name != OURS)


def measured(document: Document) -> str:
    """Our version, the card and the date: what every figure is of."""
    return f"{OURS} {document['versions'][OURS]}, {place(document)}, {date(document)}"


def origin(document: Document) -> str:
    """The line above the tables of a run."""
    of_all = f"**{measured(document)}**, with {versions(document)}."
    return " ".join(filter(None, [of_all, spread_of(document), busy(document)]))


def spread_of(document: Document) -> str:
    """What is known of times beside their medians, where that is less than quartiles."""
    return "" if "_quartile" in json.dumps(document["cases"]) else "The quartiles of its times were not kept."


def busy(document: Document) -> str:
    """A warning where other processes took a processor's time: a twentieth of all, and more than half of one."""
    others, cores = document.get("others"), document["machine"].get("cores", 1)
    if others is None or others <= max(0.5, cores / 20):
        return ""
    return f"The machine was busy: other processes used {others:.1f} of its {cores} processors."


def changed(document: Document) -> list[str] | None:
    """The kernel sets, and rooms with other modules, whose code is another today, whatever it is called; None for a run
    that has no hashes.
    """
    then, now = document.get("code"), set(settled(code(bool(document["machine"]["gpu"]))).values())
    if not isinstance(then, dict):
        return None
    return [part for part, digest in settled(then).items() if digest not in now and part not in APPARATUS]


def stale(folder: Path = RESULTS) -> list[str]:
    """A line for each file of results whose code is another today; what opponents did has none of ours."""
    lines = []
    for path in sorted(folder.rglob("*.json")):
        document = json.loads(path.read_text())
        if document.get("benchmark") == OPPONENTS:
            continue
        parts = changed(document)
        if parts is None or parts:
            said = "no hashes of kernel sets" if parts is None else ", ".join(parts)
            lines.append(f"{path.relative_to(folder).as_posix()}: {said}")
    return lines
