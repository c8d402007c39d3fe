"""Advection and diffusion on a square: multigrid beside ILU(0), and on a CPU beside SciPy and PyAMG.

    python benchmarks/advection.py gpu
    python benchmarks/advection.py cpu --small

writes benchmarks/results/advection-gpu.json or advection-cpu.json (or where --output says). Times are medians of setup
and solve together. b = A x* with random x*, to a relative residual of 1e-8. The larger systems are solved by multigrid
alone, which shows how its iterations grow. "auto" stands for M="auto"; the result says what that has chosen.
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
import scipy.sparse.linalg as splinalg
from cases import SEED
from flows import FLOWS, ROTATING, SCHEMES
from measure import MULTIGRID, measure_each, parser_of, timed_in_turns

from mcprecond import ILU0, ClassicalAMG, bicgstab, gmres
from mcprecond.backends import Backend, get_backend

RTOL, MAXITER, RESTART = 1e-8, 500, 30
DIFFUSIONS = 1e-2, 1e-4, 1e-6
SIZES, SMALL_SIZES = (240, 1000), (24, 48)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--flows", nargs="+", default=list(FLOWS), choices=FLOWS)
    arguments = parser.parse_args()
    backend, sizes = get_backend(arguments.device), SMALL_SIZES if arguments.small else SIZES
    cases = {
        f"{flow}, {scheme}, {diffusion:.0e}, {n}": partial(
            measure, SCHEMES[scheme](n, diffusion, flow), n == sizes[0], backend, arguments
        )
        for n in sizes
        for scheme in SCHEMES
        for flow in arguments.flows
        if scheme == "upwind" or flow in ROTATING
        for diffusion in DIFFUSIONS
    }
    measure_each("advection", arguments, cases, MULTIGRID, peers=("pyamg",), rtol=RTOL)


def measure(host: Any, has_opponents: bool, backend: Backend, arguments: Any) -> dict[str, Any]:
    """The solvers that reach the tolerance, by their times."""
    n = host.shape[0]
    A, x = backend.sparse.csr_matrix(host), np.random.default_rng(SEED).uniform(-1, 1, n)
    b = backend.xp.asarray(host @ x)
    M = ClassicalAMG(A)
    methods: dict[str, Callable[[], Any]] = {
        "bicgstab, multigrid": lambda: bicgstab(A, b, M=ClassicalAMG(A), rtol=RTOL, maxiter=MAXITER),
        "gmres, multigrid": lambda: gmres(A, b, M=ClassicalAMG(A), rtol=RTOL, restart=RESTART, maxiter=MAXITER),
    }
    if has_opponents:
        methods |= {
            "bicgstab, auto": lambda: bicgstab(A, b, M="auto", rtol=RTOL, maxiter=MAXITER),
            "bicgstab, ILU0": lambda: bicgstab(A, b, M=ILU0(A), rtol=RTOL, maxiter=MAXITER),
            "bicgstab": lambda: bicgstab(A, b, rtol=RTOL, maxiter=MAXITER),
        }
    if has_opponents and backend.name == "cpu":
        others = {"SciPy's spilu": spilu, "PyAMG's air": air, "direct": direct}
        methods |= {name: partial(solve, A, b) for name, solve in others.items()}
    rows, calls = {}, {}
    for name, solve in methods.items():
        x, iterations, stages = found(solve())
        residual = float(backend.xp.linalg.norm(b - A @ x) / backend.xp.linalg.norm(b))
        rows[name] = {"iterations": iterations, "residual": residual, "converged": residual <= 1.1 * RTOL}
        rows[name] |= {"stages": stages} if stages else {}
        if rows[name]["converged"]:
            calls[name] = solve
    for name, times in timed_in_turns(calls, arguments.repeats, backend, small=arguments.small).items():
        rows[name] |= times
    return {
        "unknowns": n,
        "nnz": int(A.nnz),
        "levels": [level.A.shape[0] for level in M.levels],
        "operator_complexity": M.operator_complexity,
        "solves": rows,
    }


def found(result: Any) -> tuple[Any, int | None, list[str]]:
    """x, the iterations and the stages, of ours and of others."""
    if hasattr(result, "reason"):
        return result.x, result.iterations, [stage.name for stage in result.stages]
    return (*result, [])


def spilu(A: Any, b: Any) -> tuple[Any, None]:
    """SciPy's incomplete LU with its GMRES."""
    M = splinalg.LinearOperator(A.shape, splinalg.spilu(A.tocsc()).solve)
    return splinalg.gmres(A, b, M=M, rtol=RTOL, restart=RESTART, maxiter=MAXITER // RESTART)[0], None


def air(A: Any, b: Any) -> tuple[Any, int]:
    """PyAMG's approximate ideal restriction with its GMRES."""
    residuals: list[float] = []
    x = pyamg.air_solver(A).solve(b, tol=RTOL, accel="gmres", maxiter=60, residuals=residuals)
    return x, len(residuals) - 1


def direct(A: Any, b: Any) -> tuple[Any, None]:
    """SciPy's direct solver."""
    return splinalg.splu(A.tocsc()).solve(b), None


if __name__ == "__main__":
    main()
