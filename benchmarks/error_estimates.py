"""How near the estimates of the error in the energy norm come to the true errors, on random definite systems.

    python benchmarks/error_estimates.py cpu                 # minutes
    python benchmarks/error_estimates.py gpu --count 20      # fewer systems

writes benchmarks/results/error-estimates-cpu.json or error-estimates-gpu.json (or where --output says).
`tests/reference/definite.py` draws the systems, with conditions and contrasts up to 1e12, and finds their solutions on
the host by integers, without rounding. `PCG(A, M, norm="energy")` solves each with every M. A case is a system:
`condition` is that of A with a diagonal of 1, in the 1-norm. Each of its solves has

- `iterations`, `error_iterations`, `energy_error` and `energy_delay`, as the result has them;
- `true_error`, the energy norm of the error of x, relative to that of the solution;
- `ratio`, the true error over the estimate: if it is above 1, the estimate is too small.

Summaries are of the solves that ended by the estimate, as CONVERGED: `within` is the share of the estimates within a
factor of 2 of the true error, `too_small` and `too_large` are the shares of the others, `far_too_small` is the number
that are more than 10 times too small, `largest_ratio` is the largest true error over its estimate, but for the number
of those that are `unknown`, where there is no estimate or zero, and `largest_over_rtol` the largest one over rtol;
`above_rtol` is the number of true errors above 2 rtol, and `told` how many of their estimates are above rtol;
`more_iterations` is the median of the iterations that have told the error, relative to the others. Other solves are
counted by their reasons. There is a summary of all solves, of each family and of each M, and one of the
systems that double precision can solve to the tolerance, "well- posed": their condition times the machine epsilon is at
most rtol.

`norms` has what the energy norm costs in an iteration: for each M the times of as many iterations with either norm,
taken in turns, and their ratio.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # to be set before NumPy is imported

import numpy as np
from measure import MULTIGRID, RESULTS, parser_of, record, save, timed_in_turns

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from reference.definite import FAMILIES, SIZES, Exact, draw

from mcprecond import PCG, problems
from mcprecond.backends import Backend, get_backend

PRECONDITIONERS = None, "jacobi", "sgs", "ilu0", "multigrid"
#: The iterations that a solve may take, and the factor within which an estimate is right.
MAXITER, RIGHT = 20_000, 2.0
EPS = float(np.finfo(np.float64).eps)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--count", type=int, default=120, help="the number of systems")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first one")
    arguments = parser.parse_args()
    backend, count = get_backend(arguments.device), len(FAMILIES) if arguments.small else arguments.count
    cases = []
    for seed in range(arguments.seed, arguments.seed + count):
        cases.append(measure(seed, backend, 150 if arguments.small else SIZES[1]))
        print(f"{seed + 1 - arguments.seed} of {count}: {summary([cases[-1]])}", flush=True)
    costs = [cost_of_norm(M, backend, arguments.small, arguments.repeats) for M in (None, "sgs", "multigrid")]
    facts = {"norms": costs, "seed": arguments.seed, "count": count, "small": arguments.small, "maxiter": MAXITER}
    document = record("error-estimates", backend.name, cases, MULTIGRID, **facts, summaries=summaries(cases))
    save(document, arguments.output or RESULTS / f"error-estimates-{backend.name}.json")


def measure(seed: int, backend: Backend, most: int) -> dict[str, Any]:
    """The case of a seed."""
    system = draw(seed, most)
    exact = Exact(system.A, system.b)
    A, b = backend.sparse.csr_matrix(system.A), backend.xp.asarray(system.b)
    solves = []
    for M in PRECONDITIONERS:
        result = PCG(A, M, norm="energy").solve(b, rtol=system.rtol, maxiter=MAXITER)
        estimate, true = float(result.energy_error), exact.error(backend.to_host(result.x))
        solve = {"M": M or "none", "reason": result.reason.name, "iterations": result.iterations}
        solve |= {"error_iterations": result.error_iterations, "energy_error": estimate}
        solve |= {"energy_delay": result.energy_delay, "true_error": true}
        solves.append(solve | {"ratio": true / estimate if estimate > 0 else None})
    return {
        "name": f"{system.family}, {seed}",
        "family": system.family,
        "seed": seed,
        "source": system.source,
        "unknowns": len(system.b),
        "nnz": int(system.A.nnz),
        "condition": exact.condition,
        "rtol": system.rtol,
        "solves": solves,
    }


def cost_of_norm(M: str | None, backend: Backend, small: bool, repeats: int) -> dict[str, Any]:
    """The times of some iterations, none of which comes near the solution, with each norm."""
    side, count = (40, 5) if small else (1000, 20 if M == "multigrid" else 200)
    A, b = backend.sparse.csr_matrix(problems.laplacian((side, side))), backend.xp.ones(side * side)
    solvers = {norm: PCG(A, M, norm=norm) for norm in ("residual", "energy")}
    calls = {norm: partial(solver.solve, b, rtol=0, maxiter=count) for norm, solver in solvers.items()}
    assert all(call().iterations == count for call in calls.values())
    times = timed_in_turns(calls, repeats, backend, small=small)
    found = {"M": M or "none", "unknowns": side * side, "iterations": count, "times": times}
    return found | {"ratio": times["energy"]["ms"] / times["residual"]["ms"]}


def summaries(cases: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The summaries by their names."""
    found = {
        "all": summary(cases),
        "well-posed": summary([case for case in cases if case["condition"] * EPS <= case["rtol"]]),
    }
    for family in dict.fromkeys(case["family"] for case in cases):
        found[family] = summary([case for case in cases if case["family"] == family])
    for M in dict.fromkeys(solve["M"] for case in cases for solve in case["solves"]):
        found[f"M={M}"] = summary(cases, M)
    return found


def summary(cases: list[dict[str, Any]], M: str | None = None) -> dict[str, Any]:
    """How good the estimates of these solves are, with an M or with all."""
    solves = [(case["rtol"], solve) for case in cases for solve in case["solves"] if M in (None, solve["M"])]
    reasons = Counter(solve["reason"] for _, solve in solves)
    ended = [(rtol, solve) for rtol, solve in solves if solve["reason"] == "CONVERGED"]
    found: dict[str, Any] = {
        "systems": len(cases),
        "solves": len(solves),
        "reasons": dict(reasons),
        "ended": len(ended),
    }
    if not ended:
        return found
    ratios = np.array([np.inf if solve["ratio"] is None else solve["ratio"] for _, solve in ended])
    known = ratios[np.isfinite(ratios)]
    return found | {
        "within": float(np.mean((ratios >= 1 / RIGHT) & (ratios <= RIGHT))),
        "too_small": float(np.mean(ratios > RIGHT)),
        "too_large": float(np.mean(ratios < 1 / RIGHT)),
        "unknown": len(ratios) - len(known),
        "largest_ratio": float(known.max(initial=0)),
        "far_too_small": int(np.sum(ratios > 10)),
        "largest_over_rtol": max(solve["true_error"] / rtol for rtol, solve in ended),
        "above_rtol": len(above := [(rtol, solve) for rtol, solve in ended if solve["true_error"] > RIGHT * rtol]),
        "told": sum(solve["energy_error"] > rtol for rtol, solve in above),
        "more_iterations": float(np.median([solve["error_iterations"] / solve["iterations"] for _, solve in ended])),
    }


if __name__ == "__main__":
    main()
