"""The pages that are written from what the benchmarks have measured; no figure on them is typed.

A page is a template of `templates`, in which its prose stands, and a file of `pages`, which describes the tables in
it; a module of its name has what takes more than that. What the papers print is in `papers.toml`. Of the pages README
is committed, and git ignores the others.
"""

from __future__ import annotations

import importlib
import importlib.util
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
IMAGES = DOCS / "images"
README = "readme"
#: The file of each page. The module of a page has `load()`, which reads the runs, and `page(runs)`, which returns the
#: text; a module with pictures also has `draw(runs, folder)`.
PAGES = {
    README: ROOT / "README.md",
    "advection": DOCS / "benchmarks" / "advection.md",
    "fenl": DOCS / "benchmarks" / "fenl.md",
    "krylov": DOCS / "benchmarks" / "krylov.md",
    "hierarchies": DOCS / "benchmarks" / "hierarchies.md",
    "petsc": DOCS / "benchmarks" / "petsc.md",
    "robustness": DOCS / "benchmarks" / "robustness.md",
    "side-by-side": DOCS / "benchmarks" / "side-by-side.md",
    "solves": DOCS / "solves.md",
    "colorings": DOCS / "colorings.md",
    "sweeps": DOCS / "sweeps.md",
    "studies": DOCS / "studies.md",
    "papers": DOCS / "papers.md",
    "factorizations": DOCS / "factorizations.md",
    "opponents": DOCS / "opponents.md",
    "bounds": DOCS / "development" / "bounds.md",
    "variants": DOCS / "development" / "compile-time-choices.md",
}


def page_module(name: str) -> Any:
    """Return what has `load` and `page`: the module of a page, or what pages/NAME.toml describes."""
    module = importlib.import_module(f"report.{name}") if importlib.util.find_spec(f"report.{name}") else None
    return module if hasattr(module, "page") else importlib.import_module("report.generic").Page(name, module)


def write(name: str) -> None:
    """Write a page and its pictures.

    Each file appears at once, and the page last: several processes may write at the same time, and where there is a
    page, there are its pictures.
    """
    module, built = page_module(name), DOCS / "_build"
    found = module.load()
    built.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=built) as folder:
        (page := Path(folder, "page")).write_text(module.page(found))
        if hasattr(module, "draw"):
            module.draw(found, pictures := Path(folder, "pictures"))
            for path in pictures.iterdir():
                path.replace(IMAGES / path.name)
        page.replace(PAGES[name])


def write_missing() -> None:
    """Write the pages that are not there."""
    for name, path in PAGES.items():
        if not path.exists():
            write(name)
