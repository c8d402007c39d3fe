"""What is said when kernels are compiled, and what happens where they cannot be kept."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
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


#: This program runs before another one. It records each function that Numba compiles or loads from its cache, and the
#: types of the arguments.
NOTED = """
import atexit, os, pathlib
from numba.core.dispatcher import Dispatcher
asked, compile_ = set(), Dispatcher.compile
def noted(self, types):
    if self.py_func.__module__.startswith("mcprecond."):
        asked.add(f"{self.py_func.__module__}.{self.py_func.__qualname__}{types}")
    return compile_(self, types)
Dispatcher.compile = noted
atexit.register(lambda: pathlib.Path(os.environ["ASKED"]).write_text("\\n".join(asked)))
"""

#: A function that is compiled for the types of its arguments.
DIVIDE = """
import sys
from mcprecond.backends import compile_part
import halves
halves.half.__module__ = "mcprecond.halves"
sys.modules["mcprecond.halves"] = halves
half = compile_part(halves.half)
for word in sys.argv[1:]:
    print(half(float(word) if "." in word else int(word)))
"""
#: A program that receives Ctrl-C while LLVM passes compiled code to a callback. An exception that is raised in a
#: callback is printed and lost.
INTERRUPTED = """
import signal, sys
from numba.core.registry import cpu_target
from mcprecond.backends import compile_part
import halves
halves.half.__module__ = "mcprecond.halves"
sys.modules["mcprecond.halves"] = halves
engine, left = cpu_target.target_context.codegen()._engine._ee, [1]
notify = engine._object_cache_notify
def interrupted(*arguments):
    if left:
        left.pop()
        signal.raise_signal(signal.SIGINT)
    notify(*arguments)
engine._object_cache_notify = interrupted
half = compile_part(halves.half)
try:
    print(half(5.5), "goes on")
except KeyboardInterrupt:
    print(half(5.5), "after an interrupt", left)
"""
#: A program with a parallel loop. The compilation of the function that distributes its chunks fails or is interrupted.
SHARED = """
import sys
import numpy as np
from mcprecond.backends.team import threads
from mcprecond.backends.kernels import compile_loop
import loops
loops.count.__module__ = "mcprecond.loops"
sys.modules["mcprecond.loops"] = loops
count, found = compile_loop(loops.count, grain=1), np.zeros(1000, np.int64)
original = threads._c_address
def failing(*arguments):
    threads._c_address = original
    if sys.argv[1] == "interrupted":
        import signal
        signal.raise_signal(signal.SIGINT)
        return original(*arguments)
    raise ValueError("no compiler")
threads._c_address = failing
try:
    count(0, 1000, found)
    for _ in range(1000):
        __import__("time").sleep(0.01)
except (KeyboardInterrupt, MemoryError) as error:
    print(type(error).__name__, found.sum())
count(0, 1000, found)
print(found.sum())
"""
#: Keep nothing beside the module.
ELSEWHERE = {"NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator"}
FULL = """
import builtins, errno, os
whole = builtins.open
class Full:
    def __init__(self, file): self.file = file
    def __enter__(self): return self
    def __exit__(self, *error): self.file.close()
    def write(self, data): self.file.write(data[:10]); raise OSError(errno.ENOSPC, "No space left on device")
def open(name, mode="r", *arguments, **options):
    kept = str(name).startswith(os.environ["NUMBA_CACHE_DIR"]) and "w" in mode
    if kept and os.environ["FAULT"] == "read-only":
        raise OSError(errno.EROFS, "Read-only file system")
    return Full(whole(name, mode, *arguments)) if kept else whole(name, mode, *arguments, **options)
import numba.core.caching
numba.core.caching.open = open
"""


@pytest.fixture
def process(tmp_path):
    """Run a program, or a command of the package, with a folder for Numba's cache, or with the usual one if that is
    None; return its outputs.
    """

    def run(*arguments: str, cache: str | None = "cache", **environment: str) -> tuple[str, str]:
        if cache is not None:
            environment |= {"NUMBA_CACHE_DIR": str(tmp_path / cache)}
        environment = os.environ | {"PYTHONPATH": os.getcwd() + ":."} | environment
        command = [sys.executable, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr

    return run


def test_warmup_compiles_what_first_solves_need(process, tmp_path):
    """Whatever a solve, README and the tutorial ask Numba for, the command has asked for. With an empty cache all would
    take minutes.
    """

    def asked_by(*program: str) -> tuple[str, set[str]]:
        said, _ = process("-c", NOTED + program[0], *program[1:], cache=None, ASKED=str(tmp_path / "asked"))
        return said, set((tmp_path / "asked").read_text().splitlines())

    said, by_warmup = asked_by("from mcprecond.cli import main; main()", "warmup", "--json")
    assert '"device": "cpu"' in said and '"seconds"' in said
    said, by_solve = asked_by(SOLVE)
    assert said == "True\nTrue\n"
    for part in ("solvers.eisenstat", "storage.values", "coloring"):
        assert any(part in function for function in by_solve)
    assert by_solve - by_warmup == set()
    for page in ("README.md", "docs/tutorial.md"):
        code = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
        _, by_page = asked_by("\n".join(code))
        assert by_page - by_warmup == set()


def test_compiling_is_said_once_where_logging_is_not_set_up(process, tmp_path):
    program = CALL.replace("logging.basicConfig", "dict")
    said, complaint = process("-c", program, **ELSEWHERE)
    assert said == "3\n" and complaint.count("\n") == 1 and "seconds" in complaint
    assert (
        complaint.count("Numba compiles") == 1
        and f"kept in {tmp_path / 'cache'}, so that this happens once for each method" in complaint
    )
    assert process("-c", program, **ELSEWHERE) == ("3\n", "")


def test_each_kind_of_solve_is_named_once(process):
    program = CALL.replace("late.f.__module__ = late.g", "late.f.__module__ = 'mcprecond.multigrid.late'; late.g")
    program = program.replace('["mcprecond.late"]', '["mcprecond.multigrid.late"] = sys.modules["mcprecond.late"]')
    said, logged = process("-c", program, **ELSEWHERE)
    multigrid, sweeps = logged.splitlines()
    assert said == "3\n" and "for multigrid, now those of multigrid.late" in multigrid
    assert "for CG, sweeps and what they need, now those of late" in sweeps


@pytest.mark.parametrize("cache", ["file", "folder"])
def test_the_cache_cannot_be_written(process, tmp_path, cache):
    """From the start, as it is a file; or later, as the folder becomes one."""
    (tmp_path / "file").write_text("")
    said, logged = process("-c", KEEP, cache=cache, **ELSEWHERE)
    assert said == "3\n"
    warned, told = sorted(logged.splitlines(), key=lambda line: "compiles the kernels" in line)
    assert warned.startswith("mcprecond WARNING") and "NUMBA_CACHE_DIR" in warned
    assert told.startswith("mcprecond WARNING") and ("every process" in told or cache == "folder")


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_files_that_are_cut_off_are_dropped(process, tmp_path, kind):
    """Functions are compiled anew then, kept, and found by the next process."""
    name = {"cache": "kept"} | ELSEWHERE
    assert process("-c", CALL, **name)[0] == "3\n"
    for lengths in ((0, 1), (40, -1)):
        files = sorted((tmp_path / "kept").rglob(f"*.{kind}"))
        for file, length in zip(files, lengths, strict=True):
            file.write_bytes(file.read_bytes()[:length])
        cut = [file.read_bytes() for file in files]
        said, logged = process("-c", CALL, **name)
        assert said == "3\n" and "Numba compiles" in logged
        assert all(file.read_bytes() != before for file, before in zip(files, cut, strict=True))
    assert process("-c", CALL, **name) == ("3\n", "")


@pytest.fixture
def halves(tmp_path):
    (tmp_path / "halves.py").write_text("def half(x):\n    return x / 2 if x > 1 else x / 2\n")


@pytest.mark.nightly
def test_files_of_other_types_are_other_files(process, halves, tmp_path):
    """A process that has begun with an empty folder writes an index that leads to none of another one's files."""
    assert process("-c", DIVIDE, "5", **ELSEWHERE)[0] == "2.5\n"
    first = {file.name: file.read_bytes() for file in (tmp_path / "cache").rglob("*halves.half*.nbc")}
    for file in (tmp_path / "cache").rglob("*halves.half*"):
        file.unlink()
    assert process("-c", DIVIDE, "5.0", **ELSEWHERE)[0] == "2.5\n"
    (kept,) = (tmp_path / "cache").rglob("*halves.half*.nbc")
    assert len(first) == 1 and kept.name not in first
    for name, content in first.items():  # both processes are through
        kept.with_name(name).write_bytes(content)
    assert process("-c", DIVIDE, "5.5", "5", **ELSEWHERE)[0] == "2.75\n2.5\n"


def test_processes_that_start_at_once(process, halves):
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(process, "-c", DIVIDE, *words, **ELSEWHERE) for words in (["5", "6.5"], ["7.5", "3"])]
        assert [each.result() for each in asked] == [("2.5\n3.25\n", ""), ("3.75\n1.5\n", "")]
    assert process("-c", DIVIDE, "5", "6.5", "7.5", **ELSEWHERE) == ("2.5\n3.25\n3.75\n", "")


@pytest.mark.nightly
@pytest.mark.parametrize("fault", ["full", "read-only"])
def test_a_disk_that_is_full_or_read_only(process, halves, tmp_path, fault):
    said, logged = process("-c", FULL + DIVIDE, "5", "6.5", FAULT=fault, **ELSEWHERE)
    assert said == "2.5\n3.25\n" and logged.count("\n") == 1 and "NUMBA_CACHE_DIR" in logged
    assert process("-c", DIVIDE, "5", "6.5", **ELSEWHERE) == ("2.5\n3.25\n", "")


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_files_of_something_else_are_dropped(process, halves, tmp_path, kind):
    process("-c", DIVIDE, "5", **ELSEWHERE)
    (file,) = (tmp_path / "cache").rglob(f"*halves.half*.{kind}")
    for content in (b"garbage", bytes(1000)):
        file.write_bytes(content)
        assert process("-c", DIVIDE, "5", **ELSEWHERE) == ("2.5\n", "")
        assert file.read_bytes() != content


def test_an_interrupt_while_llvm_compiles(process, halves):
    assert process("-c", INTERRUPTED, **ELSEWHERE) == ("2.75 after an interrupt []\n", "")


@pytest.mark.parametrize(("fault", "found"), [("interrupted", "KeyboardInterrupt 1000"), ("failing", "MemoryError 0")])
def test_a_loop_is_done_or_an_error(process, tmp_path, fault, found):
    """Where the first one lets its own machinery be compiled."""
    (tmp_path / "loops.py").write_text(
        "def count(first, end, found):\n    for i in range(first, end):\n        found[i] += 1\n"
    )
    said, logged = process("-c", SHARED, fault, **ELSEWHERE)
    assert said.splitlines() == [found, "2000" if fault == "interrupted" else "1000"]
    assert ("no compiler" in logged) == (fault == "failing") and "ignored" not in logged


@pytest.mark.skipif(sys.platform == "win32", reason="there are no signals here")
def test_an_interrupted_demo_ends_in_one_line(tmp_path):
    """While it compiles."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": os.getcwd()}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [sys.executable, "-c", "from mcprecond.command import main; main()", "demo", "--small"]
    running = subprocess.Popen(command, env=environment | ELSEWHERE, **pipes)
    assert "Numba compiles" in running.stderr.readline()
    running.send_signal(signal.SIGINT)
    _, complaint = running.communicate(timeout=100)
    lines = [line for line in complaint.splitlines() if "Numba compiles" not in line]
    assert running.returncode == 130 and len(lines) == 1 and lines[0].startswith("interrupted")
