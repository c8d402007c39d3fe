"""``solve(A, b)`` and ``pcg(A, b, M="auto")`` beside all that they choose from, and the library's CG with Jacobi.

    python benchmarks/automatic.py cpu                       # many minutes
    python benchmarks/automatic.py gpu --cases fenl_100 tree
    python benchmarks/automatic.py cpu --small

writes benchmarks/results/automatic-cpu.json or automatic-gpu.json (or where --output says). The matrices are those of
the benchmarks of solves and of robustness, by which the choice was fitted, and those of held_out.py, by which it was
not. Each time is that of setup and solve together, the median of some that are taken in turns. b = A x* with random x*,
to a relative residual of 1e-8. `error` is the largest |x - x*|, divided by the largest |x*|. A solve that ends as
CONVERGED_IN_RESIDUAL counts as one that has not converged.
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
from held_out import HELD_OUT
from measure import MULTIGRID, measure_each, parser_of, timed_in_turns
from robustness import FAMILIES
from scipy.sparse.linalg import splu

from mcprecond import ILU0, MulticolorDILU, MulticolorSGS, pcg, solve
from mcprecond.backends import Backend, get_backend
from mcprecond.solvers.result import Reason, SolveResult

RTOL, MAXITER = 1e-8, 20_000
AUTO, SOLVE, LIBRARY = "auto", "solve", "library, Jacobi"
#: SciPy's direct solver takes part up to so many entries.
DIRECT = 3 * 10**5


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument(
        "--cases", nargs="+", choices=[*SOLVED, *FAMILIES, *HELD_OUT], default=[*SOLVED, *FAMILIES, *HELD_OUT]
    )
    arguments = parser.parse_args()
    given = arguments.device, arguments.small, arguments.repeats
    cases = {name: partial(measure_case, name, *given) for name in arguments.cases}
    measure_each("automatic", arguments, cases, MULTIGRID, rtol=RTOL)


def measure_case(name: str, device: str, small: bool, repeats: int) -> dict[str, Any]:
    backend = get_backend(device)
    A, nullspace = matrix_of(name, small, device)
    exact = backend.xp.asarray(np.random.default_rng(SEED).uniform(-1, 1, A.shape[0]))
    b = A @ exact

    def jacobi() -> Any:
        return backend.sparse.csr_matrix(backend.sparse.diags(1 / A.diagonal()))

    def with_M(build: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: pcg(A, b, M=build(), rtol=RTOL, maxiter=MAXITER, nullspace=nullspace)

    solvers: dict[str, Callable[[], Any]] = {
        "none": with_M(lambda: None),
        "Jacobi": with_M(lambda: "jacobi"),
        "SGS": with_M(lambda: MulticolorSGS(A)),
        "SGS, float32": with_M(lambda: MulticolorSGS(A, dtype=np.float32)),
        "DILU": with_M(lambda: MulticolorDILU(A)),
        "ILU0": with_M(lambda: ILU0(A)),
        "multigrid": with_M(lambda: "multigrid"),
        AUTO: with_M(lambda: "auto"),
        SOLVE: lambda: solve(A, b, rtol=RTOL, maxiter=MAXITER, nullspace=nullspace),
        LIBRARY: lambda: backend.linalg.cg(A, b, M=jacobi(), rtol=RTOL, maxiter=MAXITER),
    }
    if A.nnz <= DIRECT and nullspace is None:
        solvers["direct"] = lambda: solve_directly(A, b, backend)
    rows: dict[str, dict[str, Any]] = {}
    for label, run in solvers.items():
        try:
            result = run()
        except ValueError as error:
            rows[label] = {"name": label, "converged": False, "reason": str(error)}
            continue
        x, info = result
        rows[label] = {"name": label, "converged": info == 0, "error": error_of(x, exact, nullspace)}
        if isinstance(result, SolveResult):
            is_doubtful = result.reason is Reason.CONVERGED_IN_RESIDUAL
            rows[label] |= {"converged": result.converged and not is_doubtful, "iterations": result.iterations}
        if label in (AUTO, SOLVE):
            rows[label]["stages"] = [f"{stage.name} {stage.iterations}" for stage in result.stages]
    converged = {label: solvers[label] for label, row in rows.items() if row["converged"]}
    for label, times in timed_in_turns(converged, repeats, backend, small=small).items():
        rows[label] |= times
    facts = {"unknowns": A.shape[0], "nnz": int(A.nnz), "held_out": name in HELD_OUT}
    return facts | {"solvers": list(rows.values())}


def matrix_of(name: str, small: bool, device: str) -> tuple[Any, str | None]:
    """The matrix of a case on a device, and its null space if it has one."""
    if name in SOLVED or name in HELD_OUT:
        return (SOLVED if name in SOLVED else HELD_OUT)[name](small, device), None
    system = FAMILIES[name](small)
    return get_backend(device).sparse.csr_matrix(system.A), system.nullspace


def error_of(x: Any, exact: Any, nullspace: str | None) -> float:
    """How far x is from x*, divided by |x*|; both up to a constant if that is the null space."""
    if nullspace is not None:
        x, exact = x - x.mean(), exact - exact.mean()
    return float(abs(x - exact).max() / abs(exact).max())


def solve_directly(A: Any, b: Any, backend: Backend) -> tuple[Any, int]:
    """SciPy's direct solver, as `solve` calls it for a positive definite A; x, and 0 as it does not iterate."""
    host = A if backend.name == "cpu" else A.get()
    options = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
    factors = splu(host.tocsc(), permc_spec="MMD_AT_PLUS_A", **options)
    return backend.xp.asarray(factors.solve(backend.to_host(b))), 0


if __name__ == "__main__":
    main()
