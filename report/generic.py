"""Pages that TOML describes: which runs, and for each table its loops and an expression of Python for each cell.

`pages/NAME.toml` has a section for each kind of run, with `file` or `files` of benchmarks/results, `values` and
`tables`. Expressions see HELPERS, the names of `report/NAME.py`, if there is one, the `modules` of report and the
`names` that the file has, and the fields of a run; a value may be a function. A loop, "case in cases", adds the
fields of what it goes through; "row in? rows" has no turn where a field is missing. A cell is the text of an
f-string, and is empty where a field is missing. The template NAME.md gets a section under its name: one run, or a
list of runs.
"""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from report.noise import Range, asked, fastest, held, total_ms, verdict
from report.results import (
    MARKS,
    OURS,
    PAPERS,
    RESULTS,
    WATCHED,
    Document,
    measured,
    origin,
    place,
    plain,
    runs,
    versions,
)
from report.tables import by_name, mean, number, render, table

PAGES = Path(__file__).with_name("pages")
#: What a missing field raises.
MISSING = (NameError, KeyError, AttributeError, StopIteration)

Scope = dict[str, Any]


class Fields(dict[str, Any]):
    """The fields of a part of a run, also as attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return of_fields(self[name])
        except KeyError as error:
            raise AttributeError(name) from error


def of_fields(value: Any) -> Any:
    return Fields(value) if isinstance(value, dict) else value


def named(rows: list[Scope]) -> dict[str, Fields]:
    """The rows of a case by their names."""
    return {row["name"]: Fields(row) for row in rows}


#: What expressions of all pages see.
HELPERS: dict[str, Any] = {
    tool.__name__: tool
    for tool in (Range, asked, fastest, held, mean, named, number, place, plain, runs, total_ms, verdict)
} | {"MARKS": MARKS, "PAPERS": PAPERS, "RESULTS": RESULTS, "WATCHED": WATCHED}


class Page:
    """What TOML describes, with `load`, `page` and the `draw` of the page's module, if there is one."""

    def __init__(self, name: str, module: ModuleType | None = None) -> None:
        self.name = name
        if hasattr(module, "draw"):
            self.draw = module.draw
        self.described: dict[str, Any] = tomllib.loads((PAGES / f"{name}.toml").read_text())
        used = {other: importlib.import_module(f"report.{other}") for other in self.described.pop("modules", [])}
        self.scope = HELPERS | (vars(module) if module else {}) | used | self.described.pop("names", {})

    def load(self, results: Path = RESULTS) -> dict[str, Document]:
        """The runs that exist, by the names of their files."""
        return runs([file for part in self.described.values() for file in files_of(part)], results)

    def page(self, found: dict[str, Document]) -> str:
        """The whole page, in Markdown."""
        return render(f"{self.name}.md", **self.sections(found))

    def sections(self, found: dict[str, Document]) -> dict[str, Any]:
        """What the template gets."""
        shown = {}
        for name, part in self.described.items():
            there = [facts(part, self.scope, found[file]) for file in files_of(part) if file in found]
            shown[name] = there if "files" in part else next(iter(there), None)
        return shown


def files_of(part: Scope) -> list[str]:
    return part["files"] if "files" in part else [part["file"]]


def facts(part: Scope, scope: Scope, document: Document) -> Scope:
    """A run with the values and tables of its section, and what every page says of a run."""
    said = {"origin": origin, "measured": measured, "place": place, "versions": versions}
    if OURS not in document["versions"]:
        said = {}
    inside = scope | document | {"document": Fields(document)}
    values: Scope = {}
    for name, text in part.get("values", {}).items():
        values[name] = inside[name] = evaluated(text, inside)
    tables = {name: made(spec, inside) for name, spec in part.get("tables", {}).items()}
    return {**document, **{name: say(document) for name, say in said.items()}, **values, **tables}


def made(spec: Scope, scope: Scope) -> Any:
    """A table: of lines with `columns`, or with a column for each turn of the loop `across`; empty without any line.

    With a loop `per`, a table for each of its turns, by its `title`.
    """
    if "per" in spec:
        one = {key: part for key, part in spec.items() if key != "per"}
        return {text_of(spec["title"], turn): made(one, turn) for turn in turns_of(spec["per"], scope)}
    if "across" in spec:
        turns = list(turns_of(spec["across"], scope))
        cells = [dict(labeled(spec["lines"], turn)) for turn in turns]
        labels = dict.fromkeys(label for column in cells for label in column)
        head = [text_of(spec["head"], turn) for turn in turns]
        rows = {label: [column.get(label, "") for column in cells] for label in labels}
        return by_name(text_of(spec.get("corner", ""), scope), head, rows) if rows else ""
    columns = [column for entry in spec["columns"] for column in expanded(entry, scope)]
    lines = [[text_of(cell, turn | more) for _, cell, more in columns] for turn in turns_of(spec["each"], scope)]
    heads = [head for head, _, _ in columns]
    if empty := [head for head, *cells in zip(heads, *lines, strict=True) if not any(cells)]:
        raise ValueError(f"a table has no cell under {empty}; see the names in its expressions")
    return table(heads, lines, names=spec.get("names", 1)) if lines else ""


def expanded(entry: Any, scope: Scope) -> Iterator[tuple[str, str, Scope]]:
    """Columns: one, or one for each turn of a loop; each with its head, its cell and what the loop adds."""
    if isinstance(entry, list):
        yield text_of(entry[0], scope), entry[1], {}
    else:
        for turn in turns_of(entry["each"], scope):
            yield text_of(entry["head"], turn), entry["cell"], {name: turn[name] for name in turn.keys() - scope.keys()}


def labeled(lines: list[Any], scope: Scope) -> Iterator[tuple[str, str]]:
    """The labels and cells of a column."""
    for line in lines:
        if isinstance(line, list):
            label, cell = (text_of(text, scope) for text in line)
            if cell:
                yield label, cell
        else:
            for turn in turns_of(line["each"], scope):
                yield from labeled(line["lines"], turn)


def turns_of(each: str, scope: Scope) -> Iterator[Scope]:
    """The scopes of nested loops, "case in cases; row in solvers"."""
    loop, _, others = each.partition("; ")
    name, way, expression = loop.split(" ", 2)
    for value in evaluated_or(expression, scope, ()) if way == "in?" else evaluated(expression, scope):
        turn = scope | (value if isinstance(value, dict) else {}) | {name: of_fields(value)}
        yield from turns_of(others, turn) if others else [turn]


def evaluated(expression: str, scope: Scope) -> Any:
    """The value of an expression; the files are ours, and so is what runs."""
    return eval(expression, dict(scope))


def text_of(cell: str, scope: Scope) -> str:
    """The text of a cell, without what is missing."""
    return str(evaluated_or(f'f"""{cell}"""', scope, ""))


def evaluated_or(expression: str, scope: Scope, nothing: Any) -> Any:
    """The value of an expression, or nothing where a field is missing."""
    try:
        return evaluated(expression, scope)
    except MISSING:
        return nothing
