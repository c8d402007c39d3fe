"""The pages that are written from what the benchmarks have measured; no figure on them is typed.

A page is a template of `templates`, in which its prose stands, and a module that makes the tables and pictures in it.
What the papers print is in `papers.toml`.
"""

from __future__ import annotations

import importlib
from types import ModuleType

#: Each is a module with the path PAGE, `load()`, which reads the runs, and `page` of what it returns, the text; one
#: with pictures has `draw` of that and a folder.
PAGES = (
    "readme",
    "fenl",
    "solves",
    "colorings",
    "sweeps",
    "studies",
    "papers",
    "factorizations",
    "opponents",
    "bounds",
    "variants",
    "map",
)


def page_module(name: str) -> ModuleType:
    """Return the module of a page."""
    return importlib.import_module(f"report.{name}")
