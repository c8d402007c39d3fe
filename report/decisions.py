"""docs/development/decisions/index.md: the records of decisions, one a file beside it, by what they are about."""

from __future__ import annotations

import re
from pathlib import Path

from report.results import DOCS
from report.tables import render, table

FOLDER = DOCS / "development" / "decisions"
PAGE = FOLDER / "index.md"
HEAD = re.compile(
    r"# (?P<number>\d{4})\. (?P<title>.+)\n\n"
    r"- \*\*Area:\*\* (?P<area>.+)\n"
    r"- \*\*Verdict:\*\* (?P<verdict>kept|kept in part|dropped)\n"
    r"- \*\*Commit:\*\* (?P<commits>.+)\n"
    r"- \*\*Figures of what stands:\*\* `(?P<results>benchmarks/results/.+\.json)`\n"
)
PARTS = ("**Hypothesis.**", "**Found.**", "**Verdict.**")

Record = dict[str, str]


def load(folder: Path = FOLDER) -> list[Record]:
    """The heads of all records, by number.

    Raises
    ------
    ValueError
        If a file is not a record, or its number is not that of its name or follows no other.
    """
    records = []
    for place, path in enumerate(sorted(folder.glob("[0-9]*.md")), start=1):
        text = path.read_text()
        head = HEAD.match(text)
        if head is None or not all(part in text for part in PARTS):
            raise ValueError(f"{path.name} is no record; see {FOLDER.name}/0001 for its head and parts")
        if not head["number"] == path.name[:4] == f"{place:04d}":
            raise ValueError(f"{path.name} says that it is {head['number']}; it should be {place:04d}")
        records.append(head.groupdict() | {"file": path.name})
    return records


def page(records: list[Record]) -> str:
    """The index, in Markdown."""
    areas = dict.fromkeys(record["area"] for record in records)
    tables = {
        area: table(
            ["number", "decision", "verdict"],
            [
                [record["number"], f"[{record['title']}]({record['file']})", record["verdict"]]
                for record in records
                if record["area"] == area
            ],
            names=3,
        )
        for area in areas
    }
    return render("decisions.md", tables=tables, count=len(records))
