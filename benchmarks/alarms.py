"""Which solves say that their small residual may hide an error, and whether there is one.

    python benchmarks/alarms.py cpu                       # minutes
    python benchmarks/alarms.py gpu --cases fenl_50 tree

writes benchmarks/results/alarms-cpu.json or alarms-gpu.json (or where --output says). The matrices are those of the
benchmarks of solves, of robustness and of held_out.py; b = A x* with random x*, to a relative residual of 1e-8. A solve
that ends as CONVERGED_IN_RESIDUAL is an alarm. It is false if neither the error in the energy norm nor that in the
maximum norm is above 1 %, relative to x*, up to the null space. A solve that ends as CONVERGED with an error in the
energy norm above 1 % is missed. Of the examples of the gallery, at their size "test", the solves and alarms are
counted.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # to be set before NumPy is imported

import numpy as np
from automatic import matrix_of
from cases import SEED, SOLVED
from gallery import EXAMPLES, has_device
from held_out import HELD_OUT
from measure import MULTIGRID, measure_each, parser_of
from robustness import FAMILIES

from mcprecond import pcg
from mcprecond.backends import get_backend
from mcprecond.solvers.result import Reason, SolveResult
from mcprecond.solvers.solver import Solver

RTOL, MAXITER, WRONG = 1e-8, 20_000, 1e-2
NAMES = None, "jacobi", "sgs", "multigrid", "auto"


def main() -> None:
    parser, known = parser_of(__doc__), [*SOLVED, *FAMILIES, *HELD_OUT]
    examples = sorted(path.stem for path in EXAMPLES.glob("*.py"))
    parser.add_argument("--cases", nargs="+", choices=[*known, *examples], default=[*known, *examples])
    arguments = parser.parse_args()
    sys.path.insert(0, str(EXAMPLES))
    given = arguments.device, arguments.small
    cases: dict[str, Callable[[], dict[str, Any]]] = {
        name: partial(measure_example if name in examples else measure_case, name, *given) for name in arguments.cases
    }
    measure_each("alarms", arguments, cases, MULTIGRID, rtol=RTOL)


def measure_case(name: str, device: str, small: bool) -> dict[str, Any]:
    """The solves for a matrix: each has its reason, and the relative errors in both norms."""
    backend = get_backend(device)
    A, nullspace = matrix_of(name, small, device)
    exact = backend.xp.asarray(np.random.default_rng(SEED).uniform(-1, 1, A.shape[0]))
    if nullspace is not None:
        exact -= exact.mean()
    b, solves = A @ exact, []
    for M in NAMES:
        try:
            result = pcg(A, b, M=M, rtol=RTOL, maxiter=MAXITER, nullspace=nullspace)
        except ValueError as error:
            solves.append({"M": M or "none", "reason": str(error)})
            continue
        error = result.x - exact
        if nullspace is not None:
            error -= error.mean()
        in_energy = float(abs(error @ (A @ error)) / (exact @ b)) ** 0.5
        largest = float(abs(error).max() / abs(exact).max())
        row = {"M": M or "none", "reason": result.reason.name, "energy_error": in_energy, "largest_error": largest}
        solves.append(row | kind_of(result.reason, in_energy, largest))
    return {"unknowns": A.shape[0], "solves": solves}


def kind_of(reason: Reason, in_energy: float, largest: float) -> dict[str, bool]:
    """Whether a solve is an alarm, a false one, or one that is missed."""
    is_alarm = reason is Reason.CONVERGED_IN_RESIDUAL
    return {
        "alarm": is_alarm,
        "false": is_alarm and max(in_energy, largest) <= WRONG,
        "missed": reason is Reason.CONVERGED and in_energy > WRONG,
    }


def measure_example(name: str, device: str, small: bool) -> dict[str, Any]:
    """How many solves an example of the gallery takes, and how many of them are alarms."""
    example, reasons = importlib.import_module(name), []
    explain = Solver.explain

    def recorded(solver: Solver, result: SolveResult[Any]) -> SolveResult[Any]:
        reasons.append(result.reason)
        return explain(solver, result)

    problem = example.prepare(example.SIZES["test"])
    Solver.explain = recorded  # type: ignore[method-assign]
    try:
        example.solve(problem, **({"device": device} if has_device(example) else {}))
    finally:
        Solver.explain = explain  # type: ignore[method-assign]
    return {"count": len(reasons), "alarms": sum(reason is Reason.CONVERGED_IN_RESIDUAL for reason in reasons)}


if __name__ == "__main__":
    main()
