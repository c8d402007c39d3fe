"""The debug build: MCPRECOND_DEBUG=1 makes kernels say which index is outside."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mcprecond.backends import checking
from mcprecond.backends.cuda_source import CUDA_CONSTANTS

ROOT = Path(__file__).resolve().parents[2]

LOOP = """
import numpy as np
from mcprecond.backends import compile_loop, compile_part

@compile_part
def at(x, i):
    return x[i]

@compile_loop
def clear(first, end, x):
    for i in range(first, end):
        x[i] = 0

x = np.ones(3)
try:
    at(x, 3)
except IndexError as error:
    print(error)
clear(0, 3, x)
try:
    clear(0, 4, x)
except MemoryError:
    print("a chunk failed")
"""

KERNEL = """
import numpy as np
from emulated import EmulatedBackend
from mcprecond.coloring.orders import KERNELS

run = EmulatedBackend().kernels(KERNELS, OFFSET=np.int32)
n, indptr, indices = 2, np.array([0, 1, 2], np.int32), np.array([1, 7], np.int32)
left, batch, removed, scratch = (np.ones(length, np.int32) for length in (n, n, 2 * n, 8))
scratch[:] = 0
run.remove_in_batches(n, indptr, indices, left, batch, removed, scratch)
"""


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"MCPRECOND_DEBUG": "1", "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(folder)}
    # The program is in a file, because Numba does not cache functions of a program that is passed by `python -c`.
    (folder / "program.py").write_text(program)
    return subprocess.run([sys.executable, folder / "program.py"], capture_output=True, text=True, env=environment)


def test_numba_checks_indices(tmp_path):
    done = run(LOOP, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "index is out of bounds" in done.stdout and done.stdout.endswith("a chunk failed\n")
    assert "index 3 is out of bounds" in done.stdout  # of the loop, whose exception has no words


@pytest.mark.skipif(not shutil.which("g++"), reason="kernels are emulated by g++")
def test_a_kernel_names_the_line_and_the_index(tmp_path):
    done = run(KERNEL, tmp_path)
    assert done.returncode < 0  # it is stopped
    assert "mcprecond/coloring/orders.cu, line " in done.stdout
    assert ": 7 is no index here: u >= 0 && u < n" in done.stdout


def test_checks_are_nothing_by_default():
    if checking.DEBUG:
        pytest.skip("this is a debug build")
    assert "CHECKED" not in CUDA_CONSTANTS and checking.NUMBA_OPTIONS == {}
