"""The kinds of cases, and which share of the time each gets."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

#: By name: each is a module with `case(trial)`.
SHARES = {
    "coloring": 2,
    "apply": 2,
    "scale": 3,
    "precision": 2,
    "pcg": 4,
    "solve": 2,
    "threads": 2,
    "update": 2,
    "multigrid": 2,
    "door": 3,
    "messages": 1,
    "pivots": 2,
    "files": 2,
}


def case_of(category: str) -> Callable[[Any], None]:
    """The function that runs a case. "broken" is there for tests of the driver alone."""
    return importlib.import_module(f"fuzz.categories.{category}").case
