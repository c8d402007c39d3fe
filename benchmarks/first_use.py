"""A first solve in a fresh process: with empty caches of compiled kernels, and with what that has left there.

    python benchmarks/first_use.py cpu
    python benchmarks/first_use.py gpu

writes benchmarks/results/first-use-<device>.json (or where --output says). Each process imports the package, makes a
5-point grid of 200^2 rows by SciPy, and solves it in double precision in one way of WAYS, twice. What the imports take
is told apart, and the second solve says what is left when all is compiled. With --small the grid is small, and the
caches are those that are there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from measure import MULTIGRID, RESULTS, Times, record, save

#: How to solve A x = b, by m, the package.
WAYS = {
    "solve": "m.solve(A, b)",
    "SGS": "m.pcg(A, b, M=m.MulticolorSGS(A), rtol=1e-8)",
    "ILU(0)": "m.pcg(A, b, M=m.ILU0(A), rtol=1e-8)",
    "smoothed aggregation": "m.pcg(A, b, M=m.SmoothedAggregation(A), rtol=1e-8)",
    "classical multigrid": "m.pcg(A, b, M=m.ClassicalAMG(A), rtol=1e-8)",
}
SOLVE = """
import json, sys, time
started = time.perf_counter()
import numpy as np, scipy.sparse as sp
import mcprecond as m
if sys.argv[1] == "gpu":
    import cupy, cupyx.scipy.sparse
    cupy.zeros(1)
imported = time.perf_counter()
n = int(sys.argv[2])
line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
A = sp.csr_matrix(sp.kron(line, sp.eye_array(n)) + sp.kron(sp.eye_array(n), line))
b = A @ np.random.default_rng(0).standard_normal(n * n)
if sys.argv[1] == "gpu":
    A, b = cupyx.scipy.sparse.csr_matrix(A), cupy.asarray(b)
found = {"imports_s": imported - started}
for name in ("first", "again"):
    wall, cpu = time.perf_counter(), time.process_time()
    result = eval(sys.argv[3])
    found |= {f"{name}_s": time.perf_counter() - wall, f"{name}_cpu_s": time.process_time() - cpu}
assert result.converged
print(json.dumps(found))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", choices=("cpu", "gpu"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=[*WAYS])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    found = {f"{way}, {process}": [] for way in arguments.ways for process in ("empty caches", "second process")}
    for _ in range(arguments.repeats):
        for way in arguments.ways:
            with tempfile.TemporaryDirectory() as folder:
                empty = {"NUMBA_CACHE_DIR": f"{folder}/numba", "CUPY_CACHE_DIR": f"{folder}/cupy"}
                for process in ("empty caches", "second process"):
                    of_grid = (20, {}) if arguments.small else (200, empty)
                    found[f"{way}, {process}"].append(solved(arguments.device, way, *of_grid))
    cases = [
        {"name": name} | {key: Times([times[key] for times in runs]) for key in runs[0]} for name, runs in found.items()
    ]
    for case in cases:
        print(case, flush=True)
    output = arguments.output or RESULTS / f"first-use-{arguments.device}.json"
    save(record("first-use", arguments.device, cases, MULTIGRID, seed=0, small=arguments.small), output)


def solved(device: str, way: str, n: int, caches: dict[str, str]) -> dict[str, Any]:
    """What a process says that keeps what it compiles in these folders."""
    command = [sys.executable, "-c", SOLVE, device, str(n), WAYS[way]]
    done = subprocess.run(command, env=os.environ | caches, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


if __name__ == "__main__":
    main()
