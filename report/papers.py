"""docs/papers.md: from the papers to the code, and each of their tables and figures, reproduced or not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from report.results import PAPERS, RESULTS
from report.tables import render, table

HEADER = ["in the paper", "what it shows", "reproduced", "where", "results", "what differs, what is missing"]

Names = dict[str, set[str]]


def load(results: Path = RESULTS) -> Names:
    """File of results -> the names of all matrices and methods in it, of the files that exist and are needed."""
    needed = {name for shown in PAPERS["shown"] for name in shown.get("results", [])}
    return {name: names_in(json.loads((results / name).read_text())) for name in needed if (results / name).exists()}


def names_in(document: dict[str, Any]) -> set[str]:
    """What a run has of matrices and methods, as far as its rows name them."""
    return {str(row[key]) for row in document["cases"] for key in ("matrix", "method", "name") if key in row}


def page(found: Names) -> str:
    """The whole page."""
    papers = dict.fromkeys(shown["paper"] for shown in PAPERS["shown"])
    return render("papers.md", **{paper: shown_of(paper, found) for paper in papers})


def shown_of(paper: str, found: Names) -> str:
    """The table of one paper, in its own order."""
    rows = []
    for shown in PAPERS["shown"]:
        if shown["paper"] == paper:
            places = [place_of(shown["where"])] if "where" in shown else []
            places += [f"study [{shown['study']}](studies.md)"] if "study" in shown else []
            there = [f"`{name}`" for name in shown.get("results", []) if name in found]
            left = waiting(shown, found)
            reproduced = "in part" if left and shown["reproduced"] == "yes" else shown["reproduced"]
            cells = [shown["what"], reproduced, ", ".join(places), ", ".join(there)]
            rows.append([shown["item"], *cells, " ".join([shown["remark"], *kinds(shown, found), *left])])
    return table(HEADER, rows, names=len(HEADER))


def place_of(where: str) -> str:
    """A link to a page of the docs, by the name of its file."""
    return f"[{Path(where).stem}]({where})"


def names_of(shown: dict[str, Any], found: Names) -> set[str]:
    """The matrices and methods in its files."""
    return set().union(*(found.get(name, set()) for name in shown.get("results", [])))


def kinds(shown: dict[str, Any], found: Names) -> list[str]:
    """Which kinds of the paper's graphs its files have."""
    names = names_of(shown, found)
    there = {
        kind: any(name.startswith(tuple(begins)) for name in names) for kind, begins in shown.get("kinds", {}).items()
    }
    said = {"Here": [kind for kind in there if there[kind]], "Not here": [kind for kind in there if not there[kind]]}
    return [f"{where}: {', '.join(some)}." for where, some in said.items() if some]


def waiting(shown: dict[str, Any], found: Names) -> list[str]:
    """What there is code for, but no run yet."""
    names = names_of(shown, found)
    files = [name for name in shown.get("results", []) if name not in found]
    missing = [f"`{name}`" for name in [*files, *shown.get("missing", [])] if name not in names]
    where = " in the study" if "study" in shown else ""
    return [f"*Code is there, not yet run{where}: {', '.join(missing)}.*"] if missing else []
