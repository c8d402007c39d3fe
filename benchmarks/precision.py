"""Preconditioners that store float32 beside those that store float64: iterations and times of pcg.

    python benchmarks/precision.py gpu
    python benchmarks/precision.py cpu --small

writes benchmarks/results/precision-gpu.json or precision-cpu.json (or where --output says). Times are medians of warm
solves in milliseconds, the two in turns; setup is not in them. b = A x* with random x*, to a relative residual of 1e-8.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # to be set before NumPy is imported

import numpy as np
from cases import BLOCK_SIZES, MATRICES, SEED, SOLVED
from measure import MULTIGRID, measure_each, parser_of, timed_in_turns

from mcprecond import PCG, MulticolorDILU, MulticolorSGS, SmoothedAggregation
from mcprecond.backends import Backend, get_backend

RTOL = 1e-8
MADE = MATRICES | SOLVED
SYSTEMS = "fenl_50", "fenl_100", "fenl_180", "elasticity48", "grid2d_300", "grid2d_1024", "circuit1259", "jumping"
PRECONDITIONERS: dict[str, Callable[..., Any]] = {
    "SGS": MulticolorSGS,
    "DILU": MulticolorDILU,
    "multigrid": SmoothedAggregation,
}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--systems", nargs="+", default=SYSTEMS, choices=list(MADE))
    arguments = parser.parse_args()
    given = get_backend(arguments.device), arguments.small, arguments.repeats
    cases = {name: partial(compared, name, *given) for name in arguments.systems}
    measure_each("precision", arguments, cases, MULTIGRID, rtol=RTOL)


def compared(name: str, backend: Backend, small: bool, repeats: int) -> dict[str, Any]:
    A, rows = MADE[name](small, backend.name), []
    b = A @ backend.xp.asarray(np.random.default_rng(SEED).uniform(-1, 1, A.shape[0]))
    for label, build in PRECONDITIONERS.items():
        if label == "SGS" and name in BLOCK_SIZES:
            build = partial(build, block_size=BLOCK_SIZES[name])
        row: dict[str, Any] = {"M": label}
        solvers = {dtype: PCG(A, build(A, dtype=dtype)) for dtype in ("float64", "float32")}
        solves = {dtype: lambda s=solver: s.solve(b, rtol=RTOL) for dtype, solver in solvers.items()}
        for dtype, solve in solves.items():
            result = solve()
            row |= {f"iterations_{dtype}": result.iterations, f"reason_{dtype}": result.reason.name}
        times = timed_in_turns(solves, repeats, backend, small=small)
        rows.append(row | {dtype: times[dtype]["ms"] for dtype in solves})
        for solver in solvers.values():
            solver.release()
    return {"unknowns": A.shape[0], "nnz": int(A.nnz), "solves": rows}


if __name__ == "__main__":
    main()
