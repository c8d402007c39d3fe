"""``pcg(A, b, M="auto")`` beside the preconditioners it chooses from, and the library's CG with Jacobi.

    python benchmarks/automatic.py cpu                       # many minutes
    python benchmarks/automatic.py gpu --cases fenl_100 tree
    python benchmarks/automatic.py cpu --small

writes benchmarks/results/automatic-cpu.json or automatic-gpu.json (or where --output says). The matrices are those of
the benchmarks of solves and of robustness. Each time is that of setup and solve together, the least of some that are
taken in turns. All preconditioners have their defaults. b = A x* with random x*, to a relative residual of 1e-8.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

# Threads of a BLAS that wait for each other make the library's CG slow where cores are shared with others. To be set
# before NumPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from cases import SEED, SOLVED
from measure import MULTIGRID, measure_each, parser_of, timed_in_turns
from robustness import FAMILIES

from mcprecond import ILU0, MulticolorDILU, MulticolorSGS, SmoothedAggregation, pcg
from mcprecond.backends import get_backend

RTOL, MAXITER = 1e-8, 20_000
AUTO, LIBRARY = "auto", "library, Jacobi"


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--cases", nargs="+", choices=[*SOLVED, *FAMILIES], default=[*SOLVED, *FAMILIES])
    arguments = parser.parse_args()
    given = arguments.device, arguments.small, arguments.repeats
    cases = {name: partial(measure_case, name, *given) for name in arguments.cases}
    measure_each("automatic", arguments, cases, MULTIGRID, rtol=RTOL)


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
        "ILU0": with_M(lambda: ILU0(A)),
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
    converged = {label: solvers[label] for label, row in rows.items() if row["converged"]}
    for label, times in timed_in_turns(converged, repeats, backend.synchronize).items():
        rows[label] |= times
    return {"unknowns": A.shape[0], "nnz": int(A.nnz), "solvers": list(rows.values())}


if __name__ == "__main__":
    main()
