"""The uncertainty of measured times, and the rule that decides whether a relation between them holds.

Every page applies this rule; `templates/rule.md` explains it to the readers.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from report import tables

#: Quantities that are counted. Their bounds are the least and the most of several runs, where they differ.
COUNTS = {"colors", "conflicts", "iterations", "largest_level", "levels", "mean_level", "peak_bytes", "rounds"}


class Range(NamedTuple):
    """A value with a lower and an upper bound: the quartiles of the times, and the range of counts.

    The bounds are NaN, so that nothing is decided, if a time was measured once or its quartiles were not kept.
    """

    found: float
    least: float
    most: float

    @classmethod
    def of(cls, row: Mapping[str, Any], key: str = "ms") -> Range:
        """A time or a count; in a study quartiles are columns of their own."""
        value = row[key]
        if key in COUNTS:
            return cls(value, row.get(f"{key}_least", value), row.get(f"{key}_most", value))
        if f"{key}_first_quartile" in row:
            quartiles = row[f"{key}_first_quartile"], row[f"{key}_third_quartile"]
        else:
            quartiles = row.get(f"{key}_quartiles", (math.nan, math.nan))
        once = row.get(f"{key}_repeats", row.get("repeats")) == 1
        return cls(value, *((math.nan, math.nan) if once else quartiles))

    def __add__(self, other: Range) -> Range:  # type: ignore[override]
        return Range(*(sum(pair) for pair in zip(self, other, strict=True)))

    def __truediv__(self, other: Range) -> Range:
        return Range(self.found / other.found, self.least / other.most, self.most / other.least)

    def scale(self, factor: float) -> Range:
        return Range(*(factor * value for value in self))


def mean(ranges: Sequence[Range]) -> Range:
    """The geometric mean of the values, and those of the lower and of the upper bounds."""
    return Range(*(tables.mean(values) for values in zip(*ranges, strict=True)))


def average(ranges: Sequence[Range]) -> Range:
    """The arithmetic mean of the values, and those of the bounds."""
    return Range(*map(statistics.fmean, zip(*ranges, strict=True)))


def total(row: Mapping[str, Any]) -> Range:
    """The time of setup and solve together; some rows have no setup."""
    if "total_ms" in row:
        return Range.of(row, "total_ms")
    first, *others = [Range.of(row[part]) for part in ("setup", "solve") if part in row]
    return first + others[0] if others else first


def total_ms(row: Mapping[str, Any]) -> float:
    """Its median."""
    return total(row).found


def verdict(value: Range, bound: float, *, at_most: bool = False) -> str:
    """Whether a value is at least the bound, or at most: "yes" or "no" if the quartiles say so as well."""
    if value.most <= bound if at_most else value.least >= bound:
        return "yes"
    return "no" if (value.least > bound if at_most else value.most < bound) else "not decided"


def asked(mark: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]]) -> Range:
    """The time, or the ratio of times, that a mark of benchmarks/marks.toml bounds, from rows by name."""
    found, *divisor = [Range.of(rows[name], key) for name, key in (mark[part] for part in ("of", "by") if part in mark)]
    return found / divisor[0] if divisor else found


def held(found: Range, bound: str, limit: float, unit: str = "") -> str:
    """What was found, the bound, and whether it holds."""
    holds = verdict(found, limit, at_most=bound == "at most")
    return f"{tables.number(found.found)} ({bound} {limit:g} {unit}".rstrip() + f"): {holds}"


def related(found: Range, bound: float, *, at_most: bool = False) -> list[str]:
    """Cells of a relation: what is asked, what was found with its bounds, and whether it holds."""
    return [
        f"at {'most' if at_most else 'least'} {bound:g}",
        shown(found),
        verdict(found, bound, at_most=at_most),
    ]


def shown(found: Range) -> str:
    """A value and its bounds, "1.36 (1.33 to 1.37)"; of a count, and where there are none, the value alone."""
    counted = found.least == found.most == found.found
    bounds = "" if counted or math.isnan(found.least) else f" ({found.least:.2f} to {found.most:.2f})"
    return f"{found.found:.2f}{bounds}"


def fastest(time: Range, others: Iterable[Range]) -> str:
    """Whether a time is the least, or as short as the least of the others."""
    found = {verdict(time / other, 1.0, at_most=True) for other in others}
    return "no" if "no" in found else "not decided" if "not decided" in found else "yes"
