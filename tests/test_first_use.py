"""What is said when kernels are compiled, and what happens where they cannot be kept."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# Another matrix than the one that warmup solves with.
SOLVE = """
import logging
import numpy as np, scipy.sparse
logging.basicConfig(level=logging.INFO, format="%(name)s %(levelname)s %(message)s")
from mcprecond import MulticolorSGS, pcg
A = scipy.sparse.random_array((500, 500), density=0.02, rng=0)
A = A @ A.T + 10 * scipy.sparse.eye_array(500)
for matrix in (A, A.sorted_indices()):
    print(pcg(matrix, np.ones(500), M=MulticolorSGS(matrix)).converged)
"""
CALL = """
from mcprecond.backends import first_use
first_use.SILENT = 0
import logging, pathlib, sys
logging.basicConfig(level=logging.INFO, format="%(name)s %(levelname)s %(message)s")
from mcprecond.backends import compile_part
if not pathlib.Path("late.py").exists():
    pathlib.Path("late.py").write_text("def f(x): return x\\ndef g(x): return x")
import late
late.f.__module__ = late.g.__module__ = "mcprecond.late"
sys.modules["mcprecond.late"] = late
f, g = compile_part(late.f), compile_part(late.g)
print(f(1) + g(2))
"""
KEEP = """
import logging, shutil, os, pathlib
logging.basicConfig(level=logging.INFO, format="%(name)s %(levelname)s %(message)s")
from mcprecond.backends import compile_part, first_use
first_use.SILENT = 0
pathlib.Path("early.py").write_text("def f(x): return x\\ndef g(x): return x")
import early
early.f.__module__ = early.g.__module__ = "mcprecond.early"
f, g = compile_part(early.f), compile_part(early.g)
if (kept := pathlib.Path(os.environ["NUMBA_CACHE_DIR"])).is_dir():
    shutil.rmtree(kept)
    kept.write_text("")
print(f(1) + g(2))
"""


@pytest.fixture
def process(tmp_path):
    """Run a program, or a command of the package, with a folder for Numba's cache; return its outputs."""

    def run(*arguments: str, cache: str = "cache", **environment: str) -> tuple[str, str]:
        environment |= os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / cache), "PYTHONPATH": os.getcwd() + ":."}
        command = [sys.executable, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr

    return run


def test_warmup_compiles_what_a_first_solve_needs(process, tmp_path):
    command = ("-c", "from mcprecond.cli import main; main()", "warmup", "--json")
    said, complaint = process(*command)
    assert '"device": "cpu"' in said
    assert complaint.count("Numba compiles") == 1 and f"kept in {tmp_path / 'cache'}\n" in complaint
    assert complaint.count("\n") == 1 and "seconds" in complaint
    solved, logged = process("-c", SOLVE)
    assert (solved, [line for line in logged.splitlines() if line.startswith("mcprecond")]) == ("True\nTrue\n", [])


@pytest.mark.parametrize("cache", ["file", "folder"])
def test_the_cache_cannot_be_written(process, tmp_path, cache):
    """From the start, as it is a file; or later, as the folder becomes one."""
    (tmp_path / "file").write_text("")
    said, logged = process("-c", KEEP, cache=cache, NUMBA_CACHE_LOCATOR_CLASSES="UserProvidedCacheLocator")
    assert said == "3\n"
    warned, told = sorted(logged.splitlines(), key=lambda line: "compiles the" in line)
    assert warned.startswith("mcprecond WARNING") and "NUMBA_CACHE_DIR" in warned
    assert told.startswith("mcprecond WARNING") and ("every process" in told or cache == "folder")


@pytest.mark.parametrize("left", [0, 1, 40, -1])
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_files_that_are_cut_off_are_dropped(process, tmp_path, kind, left):
    """A function is compiled anew then, kept, and found by the next process."""
    name = {"cache": "kept", "NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator"}
    assert process("-c", CALL, **name)[0] == "3\n"
    files = sorted((tmp_path / "kept").rglob(f"*.{kind}"))
    assert files
    for file in files:
        file.write_bytes(file.read_bytes()[: left if left >= 0 else -1])
    said, logged = process("-c", CALL, **name)
    assert said == "3\n" and "Numba compiles" in logged
    assert process("-c", CALL, **name) == ("3\n", "")
