"""The runs in benchmarks/results, and what is said of each: where, when, with which versions."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS, DOCS = ROOT / "benchmarks" / "results", ROOT / "docs"
IMAGES = DOCS / "images"
#: Figures that the papers print.
PAPERS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("papers.toml").read_text())
#: Bounds that were set for this package.
MARKS: dict[str, Any] = tomllib.loads((ROOT / "benchmarks" / "marks.toml").read_text())

Document = dict[str, Any]


def runs(names: list[str], folder: Path = RESULTS) -> dict[str, Document]:
    """The runs that exist, by the names of their files."""
    paths = {name: folder / f"{name}.json" for name in names}
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}


def place(document: Document) -> str:
    """The GPU, or the processor and how many of its cores."""
    machine = document["machine"]
    cores = f"{machine['cpu']}, {machine['cores']} cores" if "cores" in machine else machine["cpu"]
    return str(machine["gpu"] or cores)


def date(document: Document) -> str:
    return str(document["date"][:10])


def versions(document: Document) -> str:
    return ", ".join(f"{name} {version}" for name, version in document["versions"].items())


def origin(document: Document) -> str:
    """The line above the tables of a run."""
    return f"**{place(document)}**, {date(document)}, {versions(document)}."
