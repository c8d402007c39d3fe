"""Systems one after the other, as of steps in time: `PCG(A, M)` with an update before each, for each M and "auto".

    python benchmarks/steps.py cpu                           # minutes
    python benchmarks/steps.py gpu --cases plate circuit
    python benchmarks/steps.py cpu --small

writes benchmarks/results/steps-cpu.json or steps-gpu.json (or where --output says). The matrices are some of those of
automatic.py. That of step s is D A D, where the diagonal D goes away from 1 a little more in each step, and is alike in
rows that A joins. b = A x* with another random x* in each step, to a relative residual of 1e-8. "auto, anew" calls
`pcg` with M="auto" for each step, which keeps nothing.

Each time is that of all steps, with the setup before the first of them, the median of some that are taken in turns. A
candidate takes no part if its first two steps tell that all of them would take SLOW times as long as with the best one.

`switch_ms` is the time of a change of stages in a solve with M="auto": from when the host has decided to leave a stage
until the first iteration of the next one is launched, without the setup of the next preconditioner, after which the
host waits for the device. It consists of the end of the first stage (its solution, the true residual of that, and the
release of its memory) and of the start of the next one: buffers, on a GPU a CUDA graph, and the residual again.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from functools import partial
from typing import Any
from unittest.mock import patch

# As automatic.py does: to be set before NumPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp
from automatic import AUTO, MAXITER, RTOL, matrix_of
from cases import SEED
from measure import MULTIGRID, Times, measure_each, parser_of, timed_in_turns

from mcprecond import PCG, pcg
from mcprecond.backends import Backend, get_backend
from mcprecond.matrix import rows_of
from mcprecond.solvers.automatic_cg import StagesOfCG
from mcprecond.solvers.iteration import Iteration
from mcprecond.solvers.preconditioned import PreconditionedCG
from mcprecond.solvers.result import SolveResult

CASES = (
    *("grid2d_1024", "triangulation", "fenl_50", "tetrahedra", "jumping", "circuit", "elasticity48", "rmat_18"),
    *("short heat step", "plate"),
)
STEPS = 12
#: By how much entries of D differ from 1 in the last step at most, and how many times D is averaged over neighbors.
DRIFT, AVERAGED = 0.1, 8
ANEW = "auto, anew"
#: What M is for each label; "auto, anew" has no solver that is kept.
SOLVERS = {
    **{"none": None, "Jacobi": "jacobi", "SGS": "sgs", "DILU": "dilu", "ILU0": "ilu0", "multigrid": "multigrid"},
    **{AUTO: "auto", ANEW: "auto"},
}
SLOW = 1.5
#: Iterations that compile kernels before anything is timed.
WARM_UP = 10
#: A switch is timed so many times; a solve with one does so many iterations, to a residual that these do not reach.
SWITCHES, AROUND_A_SWITCH, UNREACHED = 9, 200, 1e-12


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES)
    arguments = parser.parse_args()
    given = arguments.device, arguments.small, arguments.repeats
    cases = {name: partial(measure_case, name, *given) for name in arguments.cases}
    measure_each("steps", arguments, cases, MULTIGRID, rtol=RTOL, steps=STEPS)


def measure_case(name: str, device: str, small: bool, repeats: int) -> dict[str, Any]:
    backend = get_backend(device)
    A, _ = matrix_of(name, small, device)
    systems = list(systems_of(A, backend))
    rows: dict[str, dict[str, Any]] = {label: {"name": label, "converged": False} for label in SOLVERS}
    estimates: dict[str, float] = {}
    for label, row in rows.items():
        try:
            take_steps(label, systems[:2], WARM_UP)
            if (ms := estimate(label, systems)) is not None:
                estimates[label] = ms
        except ValueError as error:
            row |= {"reason": str(error)}
    most = SLOW * min(estimates.values())
    for label in [label for label, ms in estimates.items() if ms > most]:  # something else may have slowed it down
        estimates[label] = min(estimates[label], estimate(label, systems) or math.inf)
    chosen = {label for label, ms in estimates.items() if ms <= most or label in (AUTO, ANEW)}

    def run(label: str) -> None:
        results, ms = take_steps(label, systems)
        rows[label] |= {"converged": all(result.converged for result in results), "first_ms": ms[0]}
        rows[label] |= {"later_ms": Times(ms[1:]), "iterations": sum(result.iterations for result in results)}
        if label in (AUTO, ANEW):
            rows[label] |= {"first_stages": stages_of(results[0]), "last_stages": stages_of(results[-1])}

    turns = {label: partial(run, label) for label in SOLVERS if label in chosen}
    for label, times in timed_in_turns(turns, repeats, backend, small=small).items():
        rows[label] |= times
    slow = [{"name": label, "estimated_ms": ms} for label, ms in estimates.items() if label not in chosen]
    solvers = [row for label, row in rows.items() if label in chosen or label not in estimates]
    facts = {"unknowns": A.shape[0], "nnz": int(A.nnz), "solvers": solvers, "slow": slow}
    return facts | time_switches(*systems[0], backend)


def systems_of(A: Any, backend: Backend) -> Iterator[tuple[Any, Any]]:
    """The matrix and the right-hand side of each step."""
    host, random = sp.csr_matrix(A if backend.name == "cpu" else A.get()), np.random.default_rng(SEED)
    rows, weights, drift = rows_of(host.indptr, host.indices, np), abs(host), random.uniform(-1, 1, A.shape[0])
    sums = weights @ np.ones(A.shape[0])
    for _ in range(AVERAGED):
        drift = weights @ drift / sums
    drift *= DRIFT / abs(drift).max()
    for step in range(STEPS):
        D = 1 + step / (STEPS - 1) * drift
        values = host.data * (D[rows] * D[host.indices])  # as symmetric as A, to the last digit
        A_step = sp.csr_matrix((values, host.indices.copy(), host.indptr.copy()), shape=A.shape)
        b = A_step @ random.uniform(-1, 1, A.shape[0])
        yield backend.sparse.csr_matrix(A_step), backend.xp.asarray(b)


def estimate(label: str, systems: list[tuple[Any, Any]]) -> float | None:
    """The milliseconds of all steps, by the first two of them; None if these do not converge."""
    results, (first, later) = take_steps(label, systems[:2])
    return first + (STEPS - 1) * later if all(result.converged for result in results) else None


def take_steps(
    label: str, systems: list[tuple[Any, Any]], maxiter: int = MAXITER
) -> tuple[list[SolveResult[Any]], list[float]]:
    """Solve the systems one after the other; the results, and the milliseconds of each step with setup or update."""
    results, ms, solver = [], [], None
    for A, b in systems:
        began = time.perf_counter()
        if label == ANEW:
            results.append(pcg(A, b, M=SOLVERS[label], rtol=RTOL, maxiter=maxiter))
        else:
            if solver is None:
                solver = PCG(A, SOLVERS[label])
            else:
                solver.update(A)
            results.append(solver.solve(b, rtol=RTOL, maxiter=maxiter))
        ms.append(1e3 * (time.perf_counter() - began))
    if solver is not None:
        solver.release()
    return results, ms


def stages_of(result: SolveResult[Any]) -> list[str]:
    return [f"{stage.name} {stage.iterations}" for stage in result.stages]


class OneSwitch(StagesOfCG):
    """Stages that change once, as soon as they may: to multigrid, or from there to SGS. They note when.

    Attributes
    ----------
    left, begun : float
        When the host has decided to leave the first stage, and when the first iteration of the next one is launched.
    setup : float
        Seconds of the setup of the next preconditioner.
    """

    left = begun = setup = 0.0

    def run(self, b: Any, x0: Any, *limits: Any, **hooks: Any) -> SolveResult[Any]:
        enqueue = Iteration.enqueue

        def noting(iteration: Iteration, most: int) -> None:
            iteration._loop  # noqa: B018 - on a GPU the graph is captured now
            if self.left and not self.begun:
                self.begun = time.perf_counter()
            enqueue(iteration, most)

        with patch.object(Iteration, "enqueue", noting):
            return super().run(b, x0, *limits, **hooks)

    def _first_question(self, current: str, digits: float, known: Any) -> float:
        return 1.0

    def _next(self, current: str, known: Any, iteration: Iteration) -> str | None:
        if self.left:
            return None
        self.left = time.perf_counter()
        return "SGS" if current == "multigrid" else "multigrid"

    def _build(self, name: str) -> bool:
        began = time.perf_counter()
        is_built = super()._build(name)
        self._plain.matrix.backend.synchronize()
        self.setup = time.perf_counter() - began
        return is_built


def time_switches(A: Any, b: Any, backend: Backend) -> dict[str, Any]:
    """The names of two stages, and the time of the change from the first to the second one."""
    ms = []
    for _ in range(1 + SWITCHES):
        stages = OneSwitch(PreconditionedCG(A))
        backend.synchronize()
        result = stages.run(b, None, UNREACHED, 0.0, AROUND_A_SWITCH)
        stages.release()
        assert len(result.stages) == 2, result.stages
        ms.append(1e3 * (stages.begun - stages.left - stages.setup))
    names = [stage.name for stage in result.stages]
    return {"switch": " to ".join(names), "switch_ms": Times(ms[1:])}  # the first one compiles


if __name__ == "__main__":
    main()
