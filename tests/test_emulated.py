"""A little of `make test-emulated`: CUDA kernels of colorings and sweeps, as C++, give what tests ask of the CPU."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent


@pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("g++") is None, reason="CUDA code is emulated on Linux with g++"
)
def test_kernels_pass_the_tests_for_the_cpu():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "emulated", "-p", "no:cacheprovider"]
    command += ["-m", "not gpu", "--hypothesis-profile", "gpu"]  # as make test-emulated
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}
    run = subprocess.run(
        [*command, *(str(TESTS / f"test_{name}.py") for name in ("graphblas", "smooth"))],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,  # a value that nobody writes is waited for as long
    )
    assert run.returncode == 0 and " passed" in run.stdout, run.stdout + run.stderr
