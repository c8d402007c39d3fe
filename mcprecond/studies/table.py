"""The table that a study returns, and the files that hold it."""

from __future__ import annotations

import csv
import html
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcprecond.backends import gpu_problem
from mcprecond.backends.arguments import describe
from mcprecond.studies.measure import provenance
from mcprecond.studies.whole_files import write_whole


@dataclass(frozen=True)
class Table:
    """The cases of a study, one a row.

    ``print(table)`` shows it as aligned text, a notebook as HTML.

    Attributes
    ----------
    rows : list of dict
        Column name -> str, int, float, bool, None, or a list of floats, whose length is shown. Times are in seconds.

    Examples
    --------
    >>> from mcprecond.studies import Table
    >>> print(Table([{"method": "eb", "colors": 8}, {"method": "greedy", "colors": None}]))
    method  colors
    eb           8
    greedy
    """

    rows: list[dict[str, Any]]

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order of appearance."""
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def __str__(self) -> str:
        cells = [self.columns, *([_show(row.get(name)) for name in self.columns] for row in self.rows)]
        columns = []
        for name, *column in zip(*cells, strict=True):
            width = max(map(len, (name, *column)))
            numbers = not any(isinstance(row.get(name), str) for row in self.rows)
            columns.append([cell.rjust(width) if numbers else cell.ljust(width) for cell in (name, *column)])
        return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))

    def save(self, path: str | Path, study: str) -> None:
        """Write a .json file, with machine, versions, date, command and hashes of the code, and the .csv beside it.

        Raises
        ------
        ValueError
            If the path does not end in .json.
        """
        path = _json_path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        document = {"study": study, **provenance(_gpu_is_there()), "cases": self.rows}
        with write_whole(path) as part:
            part.write_text(json.dumps(document, indent=1) + "\n")
        with write_whole(path.with_suffix(".csv")) as part, part.open("w", newline="") as file:
            writer = csv.DictWriter(file, self.columns)
            writer.writeheader()
            writer.writerows(self.rows)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_show(row.get(name)))}</td>" for name in self.columns) + "</tr>"
            for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _show(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return f"{len(value)} numbers"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _gpu_is_there() -> bool:
    return gpu_problem() is None  # one study may have matrices on both devices


def _json_path(path: str | Path) -> Path:
    if not isinstance(path, str | Path):
        raise TypeError(f"path must be that of a .json file, got {describe(path)}")
    if Path(path).suffix != ".json":
        raise ValueError(f"path must end in .json (the .csv is written beside it), got {str(path)!r}")
    for folder in Path(path).parents:
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"{path} cannot be written: {folder} is a file, and no folder; give another one")
    return Path(path)


def difference(document: Any, study: str) -> str | None:
    """In what a record differs from one of this study that is made here and now; None if rows may be added to it.

    Times of two machines in one table would be compared.
    """
    ours = {"study": study, **provenance(_gpu_is_there())}
    names = ("study", "machine", "versions", "code")
    return next((n for n in names if not isinstance(document, dict) or document.get(n) != ours[n]), None)


class Record:
    """The rows of a study so far: in memory, and in a JSON and a CSV file if there is a path.

    A row is found again by what identifies its case, the values in the columns `keys`.

    Raises
    ------
    ValueError
        If the path does not end in .json or leads through a file, or the file there is no record of this study,
        machine, versions and code.
    """

    def __init__(self, study: str, keys: Iterable[str], path: str | Path | None) -> None:
        if not isinstance(study, str):
            raise TypeError(f"study must be a string, got {describe(study)}")
        self.keys = tuple(keys)
        self.path = None if path is None else _json_path(path)
        self.study = study
        self.rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        if self.path is not None and self.path.exists():
            document = json.loads(self.path.read_text())
            if name := difference(document, study):
                there = document.get(name) if isinstance(document, dict) else type(document).__name__
                words = there if isinstance(there, str) else describe(there)
                raise ValueError(f"{self.path} is a record of another {name}: {words}; give another path")
            self.rows = {self.key(row): row for row in document["cases"]}

    def key(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the values in the columns that identify a case."""
        return tuple(row[name] for name in self.keys)

    def find(self, case: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the row of a case if it was measured before."""
        return self.rows.get(self.key(case))

    def add(self, row: dict[str, Any]) -> None:
        """Take a row and write the files."""
        self.rows[self.key(row)] = row
        if self.path is not None:
            Table(list(self.rows.values())).save(self.path, self.study)
