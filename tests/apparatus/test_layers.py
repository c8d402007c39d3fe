"""Imports point down the list of rooms, and no module imports one that imports it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import mcprecond
from mcprecond.studies.sources import FOR_CPU

PACKAGE = Path(mcprecond.__file__).parent
#: From the bottom to the top; a module may import what stands before it, and other modules of its own room.
ROOMS = [
    "interrupts",
    "version",
    "typing",
    "backends",
    "configuration",
    "numbering",
    "matrix",
    "linalg",
    "coloring",
    "ordering",
    "storage",
    "sweeps",
    "tuning",
    "preconditioners",
    "solvers",
    "multigrid",
    "systems",
    "interop",
    "problems",
    "studies",
    "__init__",
    "cli",
    "command",
]
MODULES = {".".join(path.relative_to(PACKAGE).with_suffix("").parts): path for path in PACKAGE.rglob("*.py")}


def room(module: str) -> str:
    return module.split(".")[0]


def imported(module: str) -> set[str]:
    """The modules of the package that one imports, inside of functions as well."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").startswith("mcprecond"):
            base = (node.module or "").removeprefix("mcprecond").removeprefix(".")
            for name in node.names:
                candidates = (f"{base}.{name.name}".strip("."), f"{base}.{name.name}.__init__".strip("."))
                candidates += (base, f"{base}.__init__".strip("."))
                found.add(next((c for c in candidates if c in MODULES), "__init__"))
        elif isinstance(node, ast.Import):
            found |= {"__init__" for name in node.names if name.name.split(".")[0] == "mcprecond"}
    return found - {module}


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_point_down(module):
    rank = ROOMS.index(room(module))
    for other in imported(module):
        assert ROOMS.index(room(other)) <= rank, f"{module} imports {other}, which stands above it"


def test_there_are_no_circles():
    """A package stands for its __init__, which imports its modules: they import each other by their own names."""
    graph = {module: {other for other in imported(module) if not other.endswith("__init__")} for module in MODULES}
    list(TopologicalSorter(graph).static_order())  # raises CycleError, which names the circle


def test_llvm_is_written_in_one_room():
    emitting = re.compile(r"^\s*(?:from|import) (?:llvmlite|numba\.extending)", re.MULTILINE)
    modules = {module for module, path in MODULES.items() if emitting.search(path.read_text())}
    assert modules and all(module.startswith("backends.team.") for module in modules)


def test_tests_have_the_folders_of_the_package():
    tests = Path(__file__).resolve().parents[1]
    folders = {path.parent.relative_to(tests).as_posix() for path in tests.rglob("test_*.py")}
    assert {folder for folder in folders if not (PACKAGE / folder).is_dir()} == {"apparatus", "petsc"}


def test_the_papers_colorings_are_imported_on_demand():
    """Neither a default nor "auto" needs them, and each of them is found by its name."""
    program = """
import sys
import scipy.sparse
import mcprecond

def imported():
    return sorted(name for name in sys.modules if name.startswith("mcprecond.coloring.published"))

A = scipy.sparse.csr_array(scipy.sparse.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(50, 50)))
assert len(mcprecond.COLORINGS) > 20
for distance in (1, 2):
    mcprecond.color(A, distance=distance, recolor=1, balance=True)
mcprecond.MulticolorSGS(A)
mcprecond.ILU0(A)
mcprecond.SmoothedAggregation(A)
assert not imported(), imported()
assert mcprecond.color(A, "gm").is_valid(A)
assert "mcprecond.coloring.published.gm" in imported()
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_compiled_functions_copy_arrays_in_loops():
    """An assignment of an array to a slice takes long to compile; see `mcprecond.backends.kernels`."""
    nodes = [node for path in MODULES.values() for node in ast.walk(ast.parse(path.read_text()))]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    compiled = [f for f in functions if any(FOR_CPU.match(ast.unparse(mark)) for mark in f.decorator_list)]
    assigned = [node for f in compiled for node in ast.walk(f) if isinstance(node, ast.Assign)]
    to_slices = [node for node in assigned if any(map(is_slice, node.targets))]
    assert to_slices and [ast.unparse(node) for node in to_slices if not is_constant(node.value)] == []


def is_slice(target: ast.expr) -> bool:
    return isinstance(target, ast.Subscript) and any(isinstance(node, ast.Slice) for node in ast.walk(target.slice))


def is_constant(value: ast.expr) -> bool:
    return all(node.id.isupper() for node in ast.walk(value) if isinstance(node, ast.Name))
