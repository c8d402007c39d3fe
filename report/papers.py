"""docs/papers.md: from the papers to the code, and each of their tables and figures: whether it was run, and holds."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from report import colorings, studies
from report.generic import made
from report.results import PAPERS, RESULTS, runs
from report.tables import render

#: What the sentence of a relation may begin with.
LABEL = re.compile(r"(?:.*, )?(Table|Figure|Section|Abstract|Conclusion)s?(?: ([\w.-]+))?(?:, published)?:")

Names = dict[str, set[str]]


class Found(NamedTuple):
    """What the files of results have: by file the names of all matrices and methods in it, and the verdict on each
    relation that was measured, with its study or paper and its sentence or item.
    """

    names: Names
    verdicts: list[tuple[str, str, str]]


def load(results: Path = RESULTS) -> Found:
    """See `Found`."""
    needed = {name for shown in PAPERS["shown"] for name in shown.get("results", [])}
    names = {name: names_in(json.loads((results / name).read_text())) for name in needed if (results / name).exists()}
    verdicts, found = [], studies.load(results / "studies")
    for study in studies.STUDIES:
        if study["name"] in found:
            rows = [row for row in found[study["name"]]["cases"] if row["verified"]]
            verdicts += [(study["name"], cells[0], cells[-1]) for cells in studies.relations_of(study, rows)]
    if document := runs(["coloring-gpu"], results).get("coloring-gpu"):
        for relation in PAPERS["relations"]:
            if colorings.together(document["cases"], [relation["above"], relation["below"]]):
                holds = colorings.held(document["cases"], relation)[-1]
                verdicts.append((relation["paper"], relation["item"], holds))
    return Found(names, verdicts)


def names_in(document: dict[str, Any]) -> set[str]:
    """What a run has of matrices and methods, as far as its rows name them."""
    return {str(row[key]) for row in document["cases"] for key in ("matrix", "method", "name") if key in row}


def page(found: Found) -> str:
    """The whole page."""
    scope = {"found": found, "shown_of": PAPERS["shown"], "held": held, "kinds_of": kinds, "places": places}
    return render("papers.md", **made(PAPERS["table"], scope | {"waiting": waiting}))


def held(shown: dict[str, Any], verdicts: list[tuple[str, str, str]]) -> str:
    """How many of the relations of a table or figure hold; empty where there is none."""
    item = shown["item"]
    own = [
        holds
        for of, said, holds in verdicts
        if (of == shown.get("study") and is_about(said, item)) or (of, said) == (shown["paper"], item)
    ]
    holding = own.count("yes")
    word = "yes" if holding == len(own) else "in part" if holding else "no"
    return f"{word}: {holding} of {len(own)}" if own else ""


def is_about(sentence: str, item: str) -> bool:
    """Whether the sentence of a relation is about a table or figure; without a label it is about all of its study."""
    kind, number = label.groups() if (label := LABEL.match(sentence)) else ("", None)
    return item.startswith(kind) and (number is None or number in re.findall(r"[\w.-]+", item))


def places(shown: dict[str, Any]) -> str:
    """Links to the pages that show it."""
    links = [f"[{Path(shown['where']).stem}]({shown['where']})"] if "where" in shown else []
    links += [f"study [{shown['study']}](studies.md)"] if "study" in shown else []
    return ", ".join(links)


def names_of(shown: dict[str, Any], found: Names) -> set[str]:
    """The matrices and methods in its files."""
    return set().union(*(found.get(name, set()) for name in shown.get("results", [])))


def kinds(shown: dict[str, Any], found: Names) -> list[str]:
    """Which kinds of the paper's graphs its files have."""
    names = names_of(shown, found)
    said: dict[str, list[str]] = {"Here": [], "Not here": []}
    for kind, begins in shown.get("kinds", {}).items():
        said["Here" if any(name.startswith(tuple(begins)) for name in names) else "Not here"].append(kind)
    return [f"{where}: {', '.join(some)}." for where, some in said.items() if some]


def waiting(shown: dict[str, Any], found: Names) -> list[str]:
    """What there is code for, but no run yet."""
    names = names_of(shown, found)
    files = [name for name in shown.get("results", []) if name not in found]
    missing = [f"`{name}`" for name in [*files, *shown.get("missing", [])] if name not in names]
    where = " in the study" if "study" in shown else ""
    return [f"*Code is there, not yet run{where}: {', '.join(missing)}.*"] if missing else []
