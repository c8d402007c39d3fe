"""Markdown tables, how numbers are shown in them, and the templates around them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2

TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    autoescape=False,
)


def render(template: str, **values: Any) -> str:
    """A page: the template of that name with these values in it."""
    return TEMPLATES.get_template(template).render(values)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, names: int = 1) -> str:
    """A Markdown table; the first columns hold names, the others are aligned to the right."""
    rule = ["---"] * names + ["---:"] * (len(header) - names)
    return spelled_out("".join(f"| {' | '.join(line)} |\n" for line in [header, rule, *rows]))


def spelled_out(text: str) -> str:
    """The names of graphs without an abbreviation that only this package uses: random geometric ones, by log2 of n."""
    return re.sub(r"\brgg(?=_?\d|$)", "geometric", text)


def by_name(corner: str, columns: Sequence[str], rows: Mapping[str, Sequence[str]]) -> str:
    """A table whose rows have names."""
    return table([corner, *columns], [[name, *cells] for name, cells in rows.items()])


def number(value: float) -> str:
    """Three significant digits, no exponent."""
    if 0 < value < 0.001:
        return "<0.001"
    return f"{value:.0f}" if value >= 100 else f"{value:#.3g}".rstrip(".")


def shown(cell: float | None) -> str:
    """A count in full, and other numbers with three digits."""
    return "" if cell is None else f"{cell:,}" if isinstance(cell, int) else number(cell)


def counted(row: Mapping[str, Any], name: str) -> str:
    """The median of a count, and its range where it differs from run to run."""
    least, most = row.get(f"{name}_least"), row.get(f"{name}_most")
    return shown(row[name]) + (f" [{shown(least)}-{shown(most)}]" if least != most else "")


def names(rows: Iterable[Mapping[str, Any]], key: str = "name") -> list[Any]:
    """What rows have under a key, in order of appearance."""
    return list(dict.fromkeys(row[key] for row in rows))


def only(decided: Mapping[str, str], word: str) -> list[str]:
    """The names of what was decided so."""
    return [name for name, said in decided.items() if said == word]


TEMPLATES.filters |= {"number": number, "only": only}


def yes_or_no(holds: bool) -> str:
    return "yes" if holds else "no"


def mean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def replaced(text: str, name: str, part: str) -> str:
    """A text with what stands between the markers of a name replaced."""
    begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
    before, rest = text.split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}\n{part}{end}{after}"
