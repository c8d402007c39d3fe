"""``pcg(A, b, M="auto")`` beside the preconditioners it chooses from, and the library's CG with Jacobi.

    python benchmarks/automatic.py cpu                       # many minutes
    python benchmarks/automatic.py gpu --cases fenl_100 tree
    python benchmarks/automatic.py cpu --small

writes benchmarks/results/automatic-cpu.json or automatic-gpu.json (or where --output says). The matrices are those of
the benchmarks of solves and of robustness. Each time is that of setup and solve together, the least of some that are
taken in turns. All preconditioners have their defaults. b = A x* with random x*, to a relative residual of 1e-8.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Threads of a BLAS that wait for each other make the library's CG slow where cores are shared with others. To be set
# before NumPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from cases import SEED, SOLVED
from measure import MULTIGRID, RESULTS, record, save
from robustness import FAMILIES

from mcprecond import MulticolorDILU, MulticolorSGS, SmoothedAggregation, pcg
from mcprecond.backends import get_backend

RTOL, MAXITER = 1e-8, 20_000
AUTO, LIBRARY = "auto", "library, Jacobi"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", choices=["cpu", "gpu"])
    parser.add_argument("--cases", nargs="+", choices=[*SOLVED, *FAMILIES], default=[*SOLVED, *FAMILIES])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no further matrix after so many")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    started, cases = time.perf_counter(), []
    for name in arguments.cases:
        if time.perf_counter() - started > arguments.seconds:
            break
        cases.append(measure_case(name, arguments.device, arguments.small, arguments.repeats))
        print(shown(cases[-1]), flush=True)
        facts = {"seed": SEED, "rtol": RTOL, "small": arguments.small, "of_best": of_best(cases)}
        document = record("automatic", arguments.device, cases, MULTIGRID, **facts)
        save(document, arguments.output or RESULTS / f"automatic-{arguments.device}.json")
    print(of_best(cases))


def measure_case(name: str, device: str, small: bool, repeats: int) -> dict[str, Any]:
    backend, nullspace = get_backend(device), None
    if name in SOLVED:
        A = SOLVED[name](small, device)
    else:
        system = FAMILIES[name](small)
        A, nullspace = backend.sparse.csr_matrix(system.A), system.nullspace
    b = A @ backend.xp.asarray(np.random.default_rng(SEED).uniform(-1, 1, A.shape[0]))

    def jacobi() -> Any:
        return backend.sparse.csr_matrix(backend.sparse.diags(1 / A.diagonal()))

    def with_M(build: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: pcg(A, b, M=build(), rtol=RTOL, maxiter=MAXITER, nullspace=nullspace)

    solvers: dict[str, Callable[[], Any]] = {
        "none": with_M(lambda: None),
        "Jacobi": with_M(jacobi),
        "SGS": with_M(lambda: MulticolorSGS(A)),
        "DILU": with_M(lambda: MulticolorDILU(A)),
        "multigrid": with_M(lambda: SmoothedAggregation(A)),
        AUTO: with_M(lambda: "auto"),
        LIBRARY: lambda: backend.linalg.cg(A, b, M=jacobi(), rtol=RTOL, maxiter=MAXITER),
    }
    rows: dict[str, dict[str, Any]] = {}
    for label, solve in solvers.items():
        try:
            result = solve()
        except ValueError as error:
            rows[label] = {"name": label, "converged": False, "reason": str(error)}
            continue
        rows[label] = {"name": label, "converged": result[1] == 0 if label == LIBRARY else result.converged}
        if label != LIBRARY:
            rows[label] |= {"iterations": result.iterations}
        if label == AUTO:
            rows[label]["stages"] = [f"{stage.name} {stage.iterations}" for stage in result.stages]
    times: dict[str, list[float]] = {label: [] for label, row in rows.items() if row["converged"]}
    for _ in range(repeats):
        for label, seconds in times.items():
            backend.synchronize()
            started = time.perf_counter()
            solvers[label]()
            backend.synchronize()
            seconds.append(time.perf_counter() - started)
    for label, seconds in times.items():
        rows[label]["ms"] = 1e3 * min(seconds)
    return {"name": name, "unknowns": A.shape[0], "nnz": int(A.nnz), "solvers": list(rows.values())}


def ratios(case: dict[str, Any]) -> tuple[float, float]:
    """The time of "auto" relative to the best of the others of ours, and to the library's CG."""
    ms = {row["name"]: row.get("ms", math.inf) for row in case["solvers"]}
    best = min(value for name, value in ms.items() if name not in (AUTO, LIBRARY))
    return ms[AUTO] / best, ms[AUTO] / ms[LIBRARY]


def of_best(cases: list[dict[str, Any]]) -> dict[str, float]:
    """The ratios over all cases."""
    best, library = np.array([ratios(case) for case in cases]).T
    mean = float(np.exp(np.log(best).mean()))
    return {"geometric_mean": mean, "largest": float(best.max()), "largest_of_library": float(library.max())}


def shown(case: dict[str, Any]) -> str:
    """A case in a line."""
    best, library = ratios(case)
    times = ", ".join(f"{row['name']} {row.get('ms', math.nan):.3g}" for row in case["solvers"])
    stages = next(row.get("stages") for row in case["solvers"] if row["name"] == AUTO)
    return f"{case['name']} ({case['unknowns']}, {case['nnz']}): {best:.2f}, {library:.2f}: {times}; {stages}"


if __name__ == "__main__":
    main()
