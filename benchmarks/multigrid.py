"""Matrices of several kinds, solved by the library's CG, ours, one-level preconditioners and multigrid, all in one run.

    python benchmarks/multigrid.py gpu                   # the full sizes
    python benchmarks/multigrid.py cpu                   # beside PyAMG's smoothed aggregation
    python benchmarks/multigrid.py cpu --small           # the same kinds, small

writes benchmarks/results/multigrid-gpu.json or multigrid-cpu.json (or where --output says), which README shows. All
options are the defaults, but that multigrid and Gauss-Seidel know the nodes of elasticity. b = A x* with random x*.
Jacobi's preconditioner multiplies two vectors element by element, in the library's CG and in ours. On the CPU solvers
take turns, so that what else runs there meets all of them. PyAMG runs twice: with its own default smoothers, and with
Gauss-Seidel forward before and backward after, as ours; but not on the graph with hubs, where its setup takes minutes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

# PyAMG's setup calls a BLAS for short products; where cores are shared with others, waiting threads of that make it
# several times slower. To be set before NumPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from cases import MATRICES, SEED
from measure import MULTIGRID, measure_each, parser_of, timed_in_turns, timed_row

from mcprecond import ILU0, MulticolorDILU, MulticolorSGS, SmoothedAggregation, pcg
from mcprecond.backends import get_backend
from mcprecond.linalg.diagonal import Diagonal
from mcprecond.multigrid import rigid_body_modes

RTOL, MAXITER = 1e-8, 10_000
ENOUGH = 60.0  # seconds of repeats on a GPU
CASES = ["circuit", "triangulation", "elasticity", "poisson2d", "poisson3d", "fenl", "hubs"]
#: One more: on a CPU of the size that it has on a GPU, and on a GPU as large as others have solved it.
ONE_MORE = {"cpu": "poisson2d_1024", "gpu": "fenl_180"}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--cases", nargs="+", choices=[*CASES, *ONE_MORE.values()])
    arguments = parser.parse_args()
    given = arguments.device, arguments.small, arguments.repeats
    names = arguments.cases or [*CASES, ONE_MORE[arguments.device]]
    cases = {name: partial(measure_case, name, *given) for name in names}
    peers = ("pyamg",) if arguments.device == "cpu" else ()
    blas_threads = os.environ["OPENBLAS_NUM_THREADS"]
    facts = {"rtol": RTOL, "blas_threads": blas_threads, "jacobi": "elementwise"}
    measure_each("multigrid", arguments, cases, MULTIGRID, peers=peers, **facts)


def measure_case(name: str, device: str, small: bool, repeats: int) -> dict[str, Any]:
    backend, A, n = get_backend(device), MATRICES[name](small, device), MATRICES[name].size(small, device)
    xp = backend.xp
    b = A @ xp.asarray(np.random.default_rng(SEED).uniform(-1, 1, A.shape[0]))
    norm, B, blocks = float(xp.linalg.norm(b)), None, {}
    if name == "elasticity":
        z, y, x = xp.meshgrid(*[xp.linspace(0, 1, n)] * 3, indexing="ij")
        B, blocks = rigid_body_modes(xp.stack([x.ravel(), y.ravel(), z.ravel()], axis=1)), {"block_size": 3}

    def by_pcg(M: Any) -> tuple[Any, int]:
        result = pcg(A, b, M=M, rtol=RTOL, maxiter=MAXITER)
        assert result.converged
        return result.x, result.iterations

    def jacobi_of_library() -> Any:
        d = 1 / A.diagonal()
        return backend.linalg.LinearOperator(A.shape, matvec=lambda r: d * r, dtype=A.dtype)

    def by_library(M: Any, callback: Any = None) -> tuple[Any, int]:
        return backend.linalg.cg(A, b, M=M, rtol=RTOL, maxiter=MAXITER, callback=callback)[0], 0

    solvers: dict[str, tuple[Callable[[], Any], Callable[[Any], tuple[Any, int]]]] = {
        "library CG": (lambda: None, by_library),
        "library Jacobi": (jacobi_of_library, by_library),
        "CG": (lambda: None, by_pcg),
        "Jacobi": (lambda: Diagonal(1 / A.diagonal(), backend), by_pcg),
        "SGS": (lambda: MulticolorSGS(A, **blocks), by_pcg),
        "DILU": (lambda: MulticolorDILU(A), by_pcg),
        "ILU0": (lambda: ILU0(A), by_pcg),
        "multigrid": (lambda: SmoothedAggregation(A, B, **blocks), by_pcg),
        "auto": (lambda: "auto", by_pcg),
        "library SGS": (lambda: MulticolorSGS(A, **blocks), by_library),
    }
    if device == "cpu" and name != "hubs":
        solvers |= peers(A, b, B, blocks)
    made = {label: setup() for label, (setup, _) in solvers.items()}
    found = {label: solve(made[label]) for label, (_, solve) in solvers.items()}
    for label in ("library CG", "library Jacobi", "library SGS"):
        counted: list[None] = []  # by a callback; what is timed has none
        x, _ = by_library(made[label], lambda x, counted=counted: counted.append(None))
        found[label] = x, len(counted)
    setups: dict[str, Callable[[], Any]] = {label: setup for label, (setup, _) in solvers.items()}
    setups["multigrid, update"] = lambda: made["multigrid"].update(A)
    solves = {label: lambda s=solve, M=made[label]: s(M) for label, (_, solve) in solvers.items()}
    if device == "cpu":
        setup_rows, solve_rows = (timed_in_turns(calls, repeats, backend, small=small) for calls in (setups, solves))
    else:
        setup_rows, solve_rows = (
            {label: timed_row(call, backend.synchronize, repeats, ENOUGH) for label, call in calls.items()}
            for calls in (setups, solves)
        )
    M = made["multigrid"]
    case: dict[str, Any] = {
        "size": n,
        "unknowns": A.shape[0],
        "nnz": int(A.nnz),
        "levels": [level.A.shape[0] for level in M.levels],
        "colors": [None if level.smoother is None else level.smoother.n_colors for level in M.levels],
        "operator_complexity": M.operator_complexity,
        "bytes_over_matrix": M.nbytes / (A.data.nbytes + A.indices.nbytes + A.indptr.nbytes),
        "update": setup_rows.pop("multigrid, update"),
        "solvers": [],
    }
    for label, (x, iterations) in found.items():
        row = {"name": label, "iterations": iterations, "setup": setup_rows[label], "solve": solve_rows[label]}
        case["solvers"].append(row | {"relative_residual": float(xp.linalg.norm(b - A @ x)) / norm})
    return case


def peers(A: Any, b: Any, B: Any, blocks: dict[str, int]) -> dict[str, Any]:
    """PyAMG's smoothed aggregation, with CG to the same residual."""
    import pyamg

    matrix = A.tobsr((blocks["block_size"],) * 2) if blocks else A
    relaxation = "block_gauss_seidel" if blocks else "gauss_seidel"
    sweeps = [(relaxation, {"sweep": sweep}) for sweep in ("forward", "backward")]

    def solve(ml: Any) -> tuple[Any, int]:
        residuals: list[float] = []
        x = ml.solve(b, tol=RTOL, maxiter=MAXITER, accel="cg", residuals=residuals)
        return x, len(residuals) - 1

    return {
        "PyAMG": (lambda: pyamg.smoothed_aggregation_solver(matrix, B), solve),
        "PyAMG, forward and backward": (
            lambda: pyamg.smoothed_aggregation_solver(matrix, B, presmoother=sweeps[0], postsmoother=sweeps[1]),
            solve,
        ),
    }


if __name__ == "__main__":
    main()
