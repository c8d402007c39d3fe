"""docs/development/map.md: where each algorithm is. Files are those of the imported modules, so none is typed."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import tomllib
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import mcprecond
from mcprecond import COLORINGS
from report import ROOT
from report.tables import render, table

ALGORITHMS: list[dict[str, str]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["algorithms"]
MOST_TESTS = 3


def load() -> dict[str, ModuleType]:
    """All modules of the package, by name."""
    found = pkgutil.walk_packages(mcprecond.__path__, "mcprecond.")
    return {info.name: importlib.import_module(info.name) for info in found}


def page(modules: dict[str, ModuleType]) -> str:
    """The whole page, in Markdown."""
    header = ["module", "kernels", "tests"]
    colorings = [
        [f'"{name}"', *places(inspect.getmodule(method.function), name), method.paper]
        for name, method in COLORINGS.items()
    ]
    algorithms = [
        [entry["what"], *places(defining(entry["name"], modules)), entry.get("paper", "")] for entry in ALGORITHMS
    ]
    rooms: dict[str, list[list[str]]] = {}
    for name, module in modules.items():
        rooms.setdefault(name.split(".")[1], []).append([summary(module), *places(module)])
    return render(
        "map.md",
        colorings=table(["method", *header, "paper"], colorings, names=5),
        algorithms=table(["algorithm", *header, "paper"], algorithms, names=5),
        rooms={room: table(["what", *header], rows, names=4) for room, rows in rooms.items()},
    )


def defining(name: str, modules: dict[str, ModuleType]) -> ModuleType:
    """The module in which a function or class is defined; what other packages call has names of ours again.

    Raises
    ------
    LookupError
        If there is none or more than one.
    """
    found = [
        module
        for module in modules.values()
        if getattr(vars(module).get(name), "__module__", "") == module.__name__
        and not module.__name__.startswith("mcprecond.interop.")
    ]
    if len(found) != 1:
        where = ", ".join(module.__name__ for module in found) or "no module"
        raise LookupError(f"{name} of report/map.toml is defined in {where}; name what one module defines")
    return found[0]


def places(module: ModuleType, *names: str) -> list[str]:
    """Where a module is, its CUDA files and its tests."""
    return [shown([Path(str(module.__file__))]), shown(cuda_files(module)), shown(tests_of(module, *names))]


def shown(paths: list[Path]) -> str:
    return ", ".join(f"`{path.relative_to(ROOT).as_posix()}`" for path in paths)


def summary(module: ModuleType) -> str:
    """The first sentence or line of what a module says of itself."""
    text = " ".join((module.__doc__ or "").strip().split("\n\n")[0].split())
    return text.split(". ")[0].removesuffix(".").replace("|", "\\|")


def cuda_files(module: ModuleType) -> list[Path]:
    """The .cu files of a module's kernel sets, its own first; of a module without any, those of what it imports."""
    used = {inspect.getmodule(value) for value in vars(module).values()} - {None}
    ours = sorted((m for m in used if str(m.__name__).startswith("mcprecond.")), key=lambda m: str(m.__name__))
    own = Path(str(module.__file__)).with_suffix(".cu")
    files = sources(module) or {path for other in ours for path in sources(other)}
    return sorted(files, key=lambda path: (path != own, path))


def sources(module: Any) -> set[Path]:
    """The .cu files of the kernel sets among a module's names."""
    paths = {value.source for value in vars(module).values() if isinstance(getattr(value, "source", None), Path)}
    return {path for path in paths if path.suffix == ".cu"}


def tests_of(module: ModuleType, *names: str) -> list[Path]:
    """The tests that bear one of the names; else the most special that import from the module; else those that say its
    name most often.
    """
    name = module.__name__.rsplit(".", 1)[1]
    imports = imports_of_tests()
    named = [path for path in imports if path.stem in {f"test_{word}" for word in (name, *names)}]
    if names:  # methods of color
        named.append(ROOT / "tests" / "test_coloring.py")
    users = [path for path, imported in imports.items() if module.__name__ in imported]
    users.sort(key=lambda path: (len(imports[path]), path))
    if not named and not users:
        said = {path: len(re.findall(rf"\b{name}[=(]", path.read_text())) for path in imports}
        users = sorted((path for path in said if said[path]), key=lambda path: (-said[path], path))
    return list(dict.fromkeys(named or users[:MOST_TESTS]))


@cache
def imports_of_tests() -> dict[Path, set[str]]:
    """Test file -> the modules of the package in which what it imports is defined."""
    found = {}
    for path in sorted((ROOT / "tests").glob("test_*.py")):
        nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
        pairs = [(node.module or "", name.name) for node in nodes for name in node.names]
        found[path] = {defined_in(module, name) for module, name in pairs if module.split(".")[0] == "mcprecond"}
    return found


def defined_in(module: str, name: str) -> str:
    """Where what is imported by `from module import name` comes from."""
    value: Any = getattr(importlib.import_module(module), name, None)
    if value is None:
        return f"{module}.{name}"
    if inspect.ismodule(value):
        return value.__name__
    origin = getattr(value, "__module__", None)
    return origin if isinstance(origin, str) and origin.startswith("mcprecond") else module
