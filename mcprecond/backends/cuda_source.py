"""The text that is compiled for a .cu file: what it includes, in place, and constants of Python modules.

``#include "cuda/grid.cuh"`` is looked for beside the file that has it, then in the package's folder. A file is included
once. Lines keep their numbers and files their names, so that the compiler's messages name them.

A CUDA file sees the constants of the Python module that has its name: ``CUDA_CONSTANTS = {"PARTS": PARTS}`` in
``coloring/graph.py`` is ``#define PARTS (64)`` in front of ``coloring/graph.cuh``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path

from mcprecond.backends import checking

PACKAGE = Path(__file__).resolve().parent.parent

BLOCK = 256  # threads of a block, in all kernels
WARP = 32

#: Constants of all files.
CUDA_CONSTANTS = {"BLOCK": BLOCK, "WARP": WARP, **checking.CUDA_CONSTANTS}

INCLUDE = re.compile(r'\s*#\s*include\s*"(.+)"\s*')
CONDITION = re.compile(r"\s*#\s*(if|endif)")


def cuda_source(source: Path, replaced: Mapping[str, Path] | None = None) -> str:
    """The text that is compiled for a .cu file; `replaced` names files of the package to take others for."""
    return "\n".join([*define(CUDA_CONSTANTS), *_lines(source.resolve(), replaced or {}, set())]) + "\n"


def define(constants: Mapping[str, int | float]) -> list[str]:
    """Constants as macros. (A constexpr variable would be a variable in the machine code, too.)"""
    return [f"#define {name} ({literal(value)})" for name, value in constants.items()]


def literal(value: int | float) -> str:
    """A number as C++ has it, with all its digits: a float in double precision."""
    if isinstance(value, float):
        return repr(value)
    return f"{int(value)}{'ll' if abs(value) >= 2**31 else ''}"


def constants_of(module: Path) -> Mapping[str, int | float]:
    """The constants that a Python module has for the CUDA files of its name; the module need not exist."""
    if not module.exists():
        return {}
    name = ".".join([PACKAGE.name, *module.relative_to(PACKAGE).with_suffix("").parts])
    return getattr(import_module(name), "CUDA_CONSTANTS", {})


def _lines(path: Path, replaced: Mapping[str, Path], seen: set[Path]) -> Iterator[str]:
    """The lines of a file and of those that it includes; `seen` are the files, and modules with constants, so far."""
    if path in seen:
        return
    module, name = path.with_suffix(".py"), path.relative_to(PACKAGE).as_posix()
    if module not in seen:
        yield from define(constants_of(module))
    seen |= {path, module}
    yield f'#line 1 "{name}"'
    depth = 0
    for number, line in enumerate(replaced.get(name, path).read_text(encoding="utf-8").splitlines(), 1):
        if match := CONDITION.match(line):
            depth += 1 if match[1] == "if" else -1
        if match := INCLUDE.fullmatch(line):
            if depth:
                raise ValueError(f"{name}, line {number}: no #include inside of #if, since a file is included once")
            beside = path.parent / match[1]
            yield from _lines((beside if beside.exists() else PACKAGE / match[1]).resolve(), replaced, seen)
            yield f'#line {number + 1} "{name}"'
        else:
            yield "" if line == "#pragma once" else line
