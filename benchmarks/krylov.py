"""Unsymmetric systems beside the library's solvers, several right-hand sides beside one, and hubs with fewer colors.

    python benchmarks/krylov.py gpu
    python benchmarks/krylov.py cpu --small

writes benchmarks/results/krylov-gpu.json or krylov-cpu.json (or where --output says). Times are medians of warm solves;
setup is not in them, unless M is "auto", and has its own time. What does not converge is not timed. b = A x* with
random x*, to a relative residual of 1e-8.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

# Threads of a BLAS that wait for each other make the library's solvers slow where cores are shared with others. To be
# set before NumPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pyamg
from cases import SEED, SOLVED
from measure import MULTIGRID, measure_each, parser_of, timed_in_turns, wall_ms

from mcprecond import (
    ILU0,
    PCG,
    ClassicalAMG,
    MulticolorDILU,
    MulticolorGS,
    MulticolorSGS,
    SmoothedAggregation,
    bicgstab,
    gmres,
    pcg,
    problems,
)
from mcprecond.backends import Backend, get_backend

RTOL, MAXITER, CYCLES, COLUMNS = 1e-8, 1000, 60, 8
ADVECTIONS = 0, 1, 10, 100, 1000
UNSYMMETRIC = *(f"fenl, advection {advection}" for advection in ADVECTIONS), "recirculating flow"
PRECONDITIONERS: dict[str, Callable[[Any], Any]] = {
    "none": lambda A: None,
    "GS": lambda A: MulticolorGS(A),
    "DILU": lambda A: MulticolorDILU(A),
    "ILU0 by color": lambda A: ILU0(A, ordering="color"),
    "ILU0 natural": lambda A: ILU0(A, ordering="natural"),
    "multigrid": lambda A: ClassicalAMG(A),
    "auto": lambda A: "auto",
}


def main() -> None:
    arguments = parser_of(__doc__).parse_args()
    given = get_backend(arguments.device), arguments.small, arguments.repeats
    cases = {
        **{name: partial(unsymmetric, name, *given) for name in UNSYMMETRIC},
        **{f"{name}, columns": partial(columns, name, *given) for name in ("fenl_100", "grid2d_1024")},
        **{f"{name}, hubs": partial(hubs, name, *given) for name in ("rmat_18", "rmat_20")},
    }
    measure_each("krylov", arguments, cases, MULTIGRID, rtol=RTOL)


def times_of(calls: dict[str, Callable[[], Any]], backend: Backend, repeats: int) -> dict[str, Any]:
    """Milliseconds of each, which take turns on a CPU."""
    if backend.name == "gpu":
        return {name: wall_ms(call, backend.synchronize, repeats) for name, call in calls.items()}
    return {name: row["ms"] for name, row in timed_in_turns(calls, repeats, backend).items()}


def right_hand_side(A: Any, backend: Backend, columns: tuple[int, ...] = ()) -> Any:
    return A @ backend.xp.asarray(np.random.default_rng(SEED).uniform(-1, 1, (A.shape[0], *columns)))


def unsymmetric_matrix(name: str, backend: Backend, small: bool) -> Any:
    if name == "recirculating flow":
        A = pyamg.gallery.load_example("recirc_flow")["A"].tocsr().astype(float)
        return backend.sparse.csr_matrix(A)
    problem = problems.fenl(10 if small else 50, advection=float(name.split()[-1]), device=backend.name)
    return problem.jacobian(problem.initial())


def unsymmetric(name: str, backend: Backend, small: bool, repeats: int) -> dict[str, Any]:
    """Our bicgstab and gmres, and the library's, with the same M."""
    A, rows = unsymmetric_matrix(name, backend, small), []
    b = right_hand_side(A, backend)
    norm = float(backend.xp.linalg.norm(b))
    for label, build in PRECONDITIONERS.items():
        try:
            M = build(A)
        except ValueError as error:
            rows.append({"M": label, "refused": str(error)})
            continue
        setup = wall_ms(lambda build=build: build(A), backend.synchronize, repeats)
        for method, options in ((bicgstab, {"maxiter": MAXITER}), (gmres, {"restart": 30, "maxiter": CYCLES})):
            calls = {"ours": partial(method, A, b, M=M, rtol=RTOL, **options)}
            result = calls["ours"]()
            row = {"M": label, "method": method.__name__, "iterations": result.iterations, "reason": result.reason.name}
            row |= {"stages": [stage.name for stage in result.stages]} if result.stages else {"setup": setup}
            if not result.converged:
                del calls["ours"]
            if hasattr(backend.linalg, method.__name__) and not isinstance(M, str):
                # The limit on iterations of CuPy's gmres counts those of all cycles.
                most = {"maxiter": CYCLES * 30} if method is gmres and backend.name == "gpu" else {}
                library = partial(getattr(backend.linalg, method.__name__), A, b, M=M, rtol=RTOL, **options | most)
                x, info = library()
                row |= {
                    "info_of_library": int(info),
                    "residual_of_library": float(backend.xp.linalg.norm(b - A @ x)) / norm,
                }
                calls |= {} if info else {"library": library}
            rows.append(row | times_of(calls, backend, repeats))
    return {"unknowns": A.shape[0], "nnz": int(A.nnz), "solves": rows}


def columns(name: str, backend: Backend, small: bool, repeats: int) -> dict[str, Any]:
    """Solves for eight right-hand sides beside those for one, set up once."""
    A, rows = SOLVED[name](small, backend.name), []
    B = right_hand_side(A, backend, (COLUMNS,))
    for label, build in (("SGS", MulticolorSGS), ("multigrid", SmoothedAggregation)):
        solver = PCG(A, build(A))
        one = lambda s=solver: s.solve(B[:, 0].copy(), rtol=RTOL)  # noqa: E731
        all_ = lambda s=solver: s.solve(B, rtol=RTOL)  # noqa: E731
        row = {"M": label, "iterations": one().iterations, "most_iterations": int(all_().iterations.max())}
        rows.append(row | times_of({"one": one, "all": all_}, backend, repeats))
        solver.release()
    return {"unknowns": A.shape[0], "nnz": int(A.nnz), "columns": COLUMNS, "solves": rows}


def hubs(name: str, backend: Backend, small: bool, repeats: int) -> dict[str, Any]:
    """SGS with all colors and with those that "auto" keeps, beside Jacobi and none."""
    A = SOLVED[name](small, backend.name)
    b, rows = right_hand_side(A, backend), []
    builds: dict[str, Callable[[], Any]] = {
        "all colors": lambda: MulticolorSGS(A, "ecl_gc"),
        "auto": lambda: MulticolorSGS(A),
        "Jacobi": lambda: backend.sparse.csr_matrix(backend.sparse.diags(1 / A.diagonal())),
        "pcg's choice": lambda: "auto",
    }
    for label, build in builds.items():
        M = build()
        total = lambda build=build: pcg(A, b, M=build(), rtol=RTOL)  # noqa: E731
        row = {"M": label, "iterations": total().iterations, "colors": getattr(M, "n_colors", None)}
        calls = {"total": total}
        if not isinstance(M, str):
            calls["20 applications"] = lambda M=M: [M @ b for _ in range(20)]
        rows.append(row | times_of(calls, backend, repeats))
    return {"unknowns": A.shape[0], "nnz": int(A.nnz), "solves": rows}


if __name__ == "__main__":
    main()
