"""What times are uncertain by, and whether a relation between them holds nevertheless."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from mcprecond.studies.measure import NOISE

#: Where the range of a time stands, in files without quartiles.
RANGES = {"ms": "spread_ms", "seconds": "spread"}
#: How many times the range, where it stands for the quartiles: those of three times, as such files have, are half of it
#: apart.
HALF = NOISE / 2


def noise(row: Mapping[str, Any], key: str = "ms") -> float:
    """The share of a time that it is uncertain by: three times the distance of its quartiles, or one and a half times
    its range where they were not kept; 0 where neither was, and for what is no time.
    """
    if quartiles := quartiles_of(row, key):
        return float(NOISE * (quartiles[1] - quartiles[0]) / row[key])
    return float(HALF * row.get(RANGES.get(key, ""), 0.0) / row[key])


def quartiles_of(row: Mapping[str, Any], key: str) -> Any:
    """Both quartiles of a time; None where they were not kept. In a study they are columns of their own."""
    if f"{key}_first_quartile" in row:
        return row[f"{key}_first_quartile"], row[f"{key}_third_quartile"]
    return row.get(f"{key}_quartiles")


def known(row: Mapping[str, Any], key: str) -> bool:
    """Whether anything was kept of a time beside its median."""
    return bool(quartiles_of(row, key)) or RANGES.get(key) in row


def total_ms(row: Mapping[str, Any]) -> float:
    """The time of setup and solve together; some rows have no setup."""
    return float(row["total_ms"]) if "total_ms" in row else float(sum(part["ms"] for part in _parts(row)))


def of_total(row: Mapping[str, Any]) -> float:
    """The noise of that."""
    if "total_ms" in row:
        return noise(row, "total_ms")
    return float(sum(noise(part) * part["ms"] for part in _parts(row)) / total_ms(row))


def _parts(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [row[part] for part in ("setup", "solve") if part in row]


def slower(row: Mapping[str, Any], fastest: Mapping[str, Any]) -> bool:
    """Whether setup and solve take longer than in another row, beyond the noise."""
    return verdict(total_ms(fastest) / total_ms(row), 1.0, of_mean([of_total(row), of_total(fastest)])) == "no"


def of_mean(noises: Iterable[float], ratios: int = 1) -> float:
    """That of a geometric mean of so many ratios, from those of all their times."""
    return math.sqrt(sum(one**2 for one in noises)) / ratios


def verdict(found: float, bound: float, noise: float, *, at_most: bool = False) -> str:
    """Whether a value is at least the bound, or at most: "yes" or "no", unless the noise decides."""
    least, most = found / (1 + noise), found * (1 + noise)
    if least < bound < most:
        return "not decided"
    return "yes" if (most <= bound if at_most else least >= bound) else "no"
