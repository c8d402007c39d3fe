"""A little of `make test-emulated`: CUDA kernels of colorings, sweeps and multigrid, as C++, give what tests ask of the
CPU.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent
#: Modules of tests, and for `-k` what is taken of each; in that of multigrid there are tests that take minutes.
TAKEN = {
    "coloring/test_graphblas.py": "test",
    "preconditioners/test_smooth.py": "test",
    # Strength, aggregation, patterns, the Galerkin product, Chebyshev's polynomials, two steps,
    # and below transfers whose long rows are in pieces.
    "multigrid/test_multigrid.py": "serial_search or at_the_limit or transposed or (much_to_unite and 300) "
    "or (galerkin and 1) or (every_smoother and chebyshev) or (two_steps and float64)",
    "multigrid/test_classical.py": "rows_that_are_cut and float64 and Smoothed",
    "linalg/test_long_rows.py": "transfers and chebyshev",
}


@pytest.mark.nightly
@pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("g++") is None, reason="CUDA code is emulated on Linux with g++"
)
def test_kernels_pass_the_tests_for_the_cpu():
    taken = " or ".join(f"({Path(module).name} and ({tests}))" for module, tests in TAKEN.items())
    command = [sys.executable, "-m", "pytest", "-v", "-p", "emulated", "-p", "no:cacheprovider", "-k", taken]
    command += ["-m", "not gpu", "--hypothesis-profile", "gpu"]  # as make test-emulated
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}
    run = subprocess.run(
        [*command, *(TESTS / module for module in TAKEN)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,  # a value that nobody writes is waited for as long
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert all(re.search(rf"{module}::.* PASSED", run.stdout) for module in TAKEN)
