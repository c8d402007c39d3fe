"""Ten systems by this package and by others, beside each other, on a CPU or on a GPU.

    python benchmarks/side_by_side.py cpu --python PETSc=.venv-petsc/bin/python "hypre=env PYTHONPATH=... python3"
    python benchmarks/side_by_side.py gpu --python torch-sla=python3 "AmgX=env AMGX=... python3"

writes benchmarks/results/side-by-side-<device>.json (or where --output says). Solvers of other packages run in a
process of the Python that has them, one after the other; PyAMG's and CuPy's is this one, and packages without a Python
are left out. PETSc is that of the extra `petsc`, hypre that in Debian's python3-petsc4py-real, Pardiso that of MKL, by
pypardiso, and AmgX a folder with its library; see opponents/solvers.py.

All get the same matrix and the same b = A x* for a random x*, no candidates, and solve to a relative residual of 1e-8.
On a GPU both are there, also for AmgX, and PyAMG solves on the host, once. On a CPU PyAMG, gamg and BoomerAMG use one
thread. Pardiso and this package use all, and this package runs with one thread, too. Each solver solves once to warm
up; the times are medians of the solves that follow. A solver counts as failed if its residual is above 1e-7.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from cases import SEED
from measure import MULTIGRID, Times, measure_each, parser_of
from robustness import FAMILIES, System

WORKER, RTOL, MOST_RESIDUAL = Path(__file__).parent / "opponents" / "solvers.py", 1e-8, 1e-7
PATIENCE = {"cpu": 180, "gpu": 60}  # seconds that a process has for each of its solvers
#: For each system: its family in benchmarks/robustness.py, and its sizes on a CPU, on a GPU and with --small.
CASES = {
    "Poisson, 5 points": ("poisson2d", 500, 1000, 30),
    "Poisson, 7 points": ("poisson3d", 60, 100, 10),
    "FENL, 27 points": ("fenl", 45, 100, 10),
    "anisotropy along the grid": ("anisotropy 1e-4", 500, 1000, 30),
    "rotated anisotropy": ("anisotropy 1e-2, 30 degrees", 500, 1000, 30),
    "jumps of 5 decades": ("random jumps, 5 decades", 500, 1000, 30),
    "triangulation": ("triangulation", 200_000, 1_000_000, 1000),
    "circuit": ("circuit", 400, 1000, 30),
    "elasticity in 3D": ("elasticity in 3D", 24, 48, 6),
    "graph with hubs": ("hubs", 16, 19, 9),
}
#: For each device, the solvers of opponents/solvers.py that are compared, and the package that each of them needs.
OPPONENTS = {
    "cpu": {
        "PyAMG, smoothed aggregation": "PyAMG",
        "PyAMG, Ruge-Stuben": "PyAMG",
        "PETSc's gamg": "PETSc",
        "hypre's BoomerAMG": "hypre",
        "hypre's BoomerAMG, for 3D": "hypre",
        "Pardiso": "Pardiso",
    },
    "gpu": {
        "CuPy's CG": "CuPy",
        "CuPy's CG with Jacobi": "CuPy",
        "AmgX, classical": "AmgX",
        "AmgX, aggregation": "AmgX",
        "torch-sla's CG with Jacobi": "torch-sla",
        "PyAMG, smoothed aggregation": "PyAMG",
    },
}
OURS = """
import json, sys
import numpy as np, scipy.sparse
import mcprecond
system = np.load(sys.argv[1])
A, b = scipy.sparse.csr_matrix((system["data"], system["indices"], system["indptr"])), system["b"]
if sys.argv[3] == "gpu":
    import cupy, cupyx.scipy.sparse
    A, b = cupyx.scipy.sparse.csr_matrix(A), cupy.asarray(b)
rows = []
for _ in range(int(sys.argv[2]) + 1):
    result = mcprecond.solve(A, b, rtol=float(system["rtol"]))
    rows.append((1e3 * result.setup_seconds, 1e3 * result.solve_seconds))
r = b - A @ result.x
residual = float((r @ r) ** 0.5 / (b @ b) ** 0.5)
setups, solves = (list(each) for each in zip(*rows[1:]))
stages = [f"{stage.name} {stage.iterations}" for stage in result.stages]
found = {"setup_ms": setups, "solve_ms": solves, "iterations": result.iterations, "residual": residual}
print(json.dumps(found | {"stages": stages}))
"""


def main() -> None:
    parser = parser_of(__doc__, repeats=3)
    parser.add_argument("--python", nargs="*", default=[], metavar="NAME=COMMAND", help="of other packages")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=[*CASES])
    arguments = parser.parse_args()
    pythons = dict.fromkeys(("PyAMG", "CuPy"), sys.executable) | dict(each.split("=", 1) for each in arguments.python)
    given = arguments.device, arguments.small, arguments.repeats, pythons
    cases = {name: partial(measure_case, name, *given) for name in arguments.cases}
    measure_each("side-by-side", arguments, cases, MULTIGRID, peers=("pyamg",), rtol=RTOL)


def measure_case(name: str, device: str, small: bool, repeats: int, pythons: dict[str, str]) -> dict[str, Any]:
    family, of_cpu, of_gpu, trial = CASES[name]
    made = FAMILIES[family].make(trial if small else of_gpu if device == "gpu" else of_cpu)
    A = made.A if isinstance(made, System) else made.tocsr()
    b = A @ np.random.default_rng(SEED).uniform(-1, 1, A.shape[0])
    threads = str(os.cpu_count())
    with tempfile.NamedTemporaryFile(suffix=".npz") as file:
        np.savez(file.name, data=A.data, indices=A.indices, indptr=A.indptr, b=b, rtol=RTOL)
        ours = [sys.executable, "-c", OURS, file.name, str(repeats), device]
        rows = measured(ours, ["solve(A, b)"], threads, device)
        if device == "cpu":
            rows += measured(ours, ["solve(A, b), one thread"], "1", device)
        together: dict[tuple[str, int], list[str]] = {}
        for solver, owner in OPPONENTS[device].items():
            times = 0 if device == "gpu" and owner == "PyAMG" else repeats
            if owner in pythons:
                together.setdefault((pythons[owner], times), []).append(solver)
        for (python, times), solvers in together.items():
            rows += measured([*shlex.split(python), str(WORKER), file.name, str(times)], solvers, threads, device)
    return {"unknowns": A.shape[0], "nnz": int(A.nnz), "solvers": rows}


def measured(command: list[str], names: list[str], threads: str, device: str) -> list[dict[str, Any]]:
    """Run solvers in a process, which prints a line for each of them, and return their rows.

    A solver that fails ends the process. The remaining solvers run in a new one.
    """
    environment = os.environ | {"MCPRECOND_NUM_THREADS": threads, "MKL_NUM_THREADS": threads, "OMP_NUM_THREADS": "1"}
    rows, left = [], names
    while left:
        patience = PATIENCE[device] * len(left)
        try:
            run = subprocess.run([*command, *left], capture_output=True, text=True, env=environment, timeout=patience)
            printed, ended = run.stdout, (run.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        except subprocess.TimeoutExpired as error:
            printed, ended = (error.stdout or b"").decode(), f"it took more than {patience} s"
        lines = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
        rows += [row_of(name, found) for name, found in zip(left, lines, strict=False)]
        left = left[len(lines) :]
        if left and not (lines and "reason" in lines[-1]):  # it has not come to a line about the solver it was at
            rows.append(row_of(left[0], {"reason": ended}))
            left = left[1:]
    return rows


def row_of(name: str, found: dict[str, Any]) -> dict[str, Any]:
    """Return the row of a solver, by what its process has printed."""
    if "reason" in found:
        return {"name": name, "converged": False, **found}
    setup, solve = Times(found.pop("setup_ms")), Times(found.pop("solve_ms"))
    converged = found["residual"] <= MOST_RESIDUAL
    return {"name": name, "converged": converged, "setup_ms": setup, "solve_ms": solve, **found}


if __name__ == "__main__":
    main()
