"""docs/papers.md: from the papers to the code, and each of their tables and figures: whether it was run, and holds."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from report import colorings, studies
from report.generic import made
from report.results import OURS, PAPERS, RESULTS, date
from report.tables import render

#: What the sentence of a relation may begin with.
LABEL = re.compile(r"(?:.*, )?(Table|Figure|Section|Abstract|Conclusion)s?(?: ([\w.-]+))?(?:, published)?:")

#: What stands for a figure of the paper in a comparison of ours.
NOT_GIVEN = "not given"

Names = dict[str, set[str]]


class Verdict(NamedTuple):
    """A relation that was measured: its study or paper, its sentence or item, whether it holds, and what was found."""

    of: str
    said: str
    holds: str
    sentence: str = ""
    paper: str = ""
    asked: str = ""
    found: str = ""


class Found(NamedTuple):
    """What the files of results have: by file the names of all matrices and methods in it, and where it was measured;
    and the verdict on each relation.
    """

    names: Names
    places: dict[str, dict[str, str]]
    verdicts: list[Verdict]


def load(results: Path = RESULTS) -> Found:
    """See `Found`."""
    needed = dict.fromkeys(name for shown in PAPERS["shown"] for name in shown.get("results", []))
    documents = {name: json.loads((results / name).read_text()) for name in needed if (results / name).exists()}
    verdicts, found = [], studies.load(results / "studies")
    for study in studies.STUDIES:
        if study["name"] in found:
            rows = [row for row in found[study["name"]]["cases"] if row["verified"]]
            for sentence, name, paper, asked, value, holds in studies.relations_of(study, rows):
                verdicts.append(Verdict(name, sentence, holds, sentence, paper, asked, value))
    for relation, (asked, value, holds) in colorings.relations(colorings.runs_of_both(results)):
        told = (relation["sentence"], f"{relation['least']:g}", asked, value)
        verdicts.append(Verdict(relation["paper"], relation["item"], holds, *told))
    names = {name: names_in(document) for name, document in documents.items()}
    return Found(names, {name: place_of(document) for name, document in documents.items()}, verdicts)


def names_in(document: dict[str, Any]) -> set[str]:
    """What a run has of matrices and methods, as far as its rows name them."""
    return {str(row[key]) for row in document["cases"] for key in ("matrix", "method", "name") if key in row}


def place_of(document: dict[str, Any]) -> dict[str, str]:
    """The card and the host of a run, its version and its day, as far as it says them."""
    machine = document["machine"]
    cores = f"{machine['cpu']}, {machine['cores']} cores" if "cores" in machine else machine.get("cpu", "not kept")
    version = document["versions"].get(OURS, "none of ours")
    return {"card": machine.get("gpu") or "none", "host": cores, "version": version, "day": date(document)}


def page(found: Found) -> str:
    """The whole page."""
    scope = {"found": found, "shown_of": PAPERS["shown"], "held": held, "kinds_of": kinds, "places": places}
    scope |= {"waiting": waiting, "items": items}
    tables = {part: made(PAPERS[part], scope) for part in ("table", "relations_table", "files_table")}
    return render("papers.md", relations=tables["relations_table"], files=tables["files_table"], **tables["table"])


def held(shown: dict[str, Any], verdicts: list[Verdict]) -> str:
    """How many of the relations that the paper states of a table or figure hold; empty where there is none."""
    own = [verdict.holds for verdict in verdicts if verdict.paper != NOT_GIVEN and concerns(verdict, shown)]
    holding = own.count("yes")
    word = "yes" if holding == len(own) else "in part" if holding else "no"
    return f"{word}: {holding} of {len(own)}" if own else ""


def items(verdict: Verdict, paper: str) -> list[str]:
    """The tables and figures of a paper that a relation is about."""
    return [shown["item"] for shown in PAPERS["shown"] if shown["paper"] == paper and concerns(verdict, shown)]


def concerns(verdict: Verdict, shown: dict[str, Any]) -> bool:
    """Whether a relation is about a table or figure."""
    of_its_study = verdict.of == shown.get("study") and is_about(verdict.said, shown["item"])
    return of_its_study or (verdict.of, verdict.said) == (shown["paper"], shown["item"])


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
