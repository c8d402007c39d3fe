"""What an installed package has to do: run by `tools/try_release.py`, outside of the source tree."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import numpy as np
import scipy.sparse.linalg

import mcprecond
from mcprecond import MulticolorSGS, SmoothedAggregation, color, pcg, problems
from mcprecond.studies import plots


def data_files() -> list[str]:
    """The CUDA sources and the mark of types, as the installed package has them."""
    package = Path(str(files("mcprecond")))
    found = [path for path in package.rglob("*") if path.suffix in (".cu", ".cuh") or path.name == "py.typed"]
    return sorted(path.relative_to(package.parent).as_posix() for path in found)


def called(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command that was installed beside this Python."""
    command = [str(Path(sys.executable).parent / "mcprecond"), *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def main(expected_version: str, expected_files: list[str]) -> None:
    """Raise an error for anything that is not as it should be."""
    assert Path(mcprecond.__file__).is_relative_to(sys.prefix), f"{mcprecond.__file__} is not the installed package"
    assert mcprecond.__version__ == version("mcprecond") == expected_version
    assert data_files() == expected_files

    A = problems.laplacian((60, 60))
    b = A @ np.random.default_rng(0).uniform(-1, 1, A.shape[0])
    plain, sweeps, levels = (pcg(A, b, M=M, rtol=1e-8) for M in (None, MulticolorSGS(A), SmoothedAggregation(A)))
    assert plain.converged and sweeps.converged and levels.converged
    assert plain.iterations > sweeps.iterations > levels.iterations
    x, info = scipy.sparse.linalg.cg(A, b, M=MulticolorSGS(A, "jp"), rtol=1e-8)
    assert info == 0 and np.linalg.norm(A @ x - b) <= 1e-7 * np.linalg.norm(b)

    # The extras that have wheels for every Python.
    import pyamg

    from mcprecond.interop.pyamg import change_smoothers

    ml = pyamg.smoothed_aggregation_solver(A)
    change_smoothers(ml)
    assert np.linalg.norm(A @ ml.solve(b, tol=1e-8, accel="cg") - b) <= 1e-6 * np.linalg.norm(b)
    import matplotlib

    matplotlib.use("Agg")
    plots.color_blocks(A, color(A, "jp")).figure.savefig("blocks.png")

    facts = json.loads(called("info", "--json").stdout)
    assert facts["mcprecond"] == expected_version and facts["numpy"] == np.__version__
    assert "--preconditioner" in called("solve", "--help").stdout
    refused = called("solve")
    assert refused.returncode == 2 and refused.stderr.startswith("mcprecond: ") and refused.stderr.count("\n") == 1
    print(", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba", "rich")))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
