"""Whether what `advise` recommends is what solves fastest, on matrices that it was not made for.

    python benchmarks/advice.py cpu
    python benchmarks/advice.py gpu rmat_18 star     # some of the matrices

writes benchmarks/results/advice-cpu.json or advice-gpu.json (or where --output says). Other matrices stay in that file
if the same code has measured them on the same machine. `advise` ranks solvers to a
relative residual of 1e-8. Then those that took at most three times as long as the best solve for another right-hand
side, in turns: what following the advice loses.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from cases import BLOCK_SIZES, SEED, SOLVED
from measure import MULTIGRID, measure_each, parser_of

from mcprecond import studies
from mcprecond.backends import backend_of
from mcprecond.studies.advice import Trial, rank
from mcprecond.studies.candidates import candidates
from mcprecond.studies.compare import system_with

RTOL, CLOSE = 1e-8, 3.0
SHOWN = ("seconds", "seconds_first_quartile", "seconds_third_quartile", "iterations", "verified", "reason")


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("names", nargs="*", default=list(SOLVED), metavar="NAME", help=", ".join(SOLVED))
    arguments = parser.parse_args()
    given = arguments.small, arguments.device, arguments.repeats
    cases = {name: partial(measure, name, *given) for name in arguments.names}
    measure_each("advice", arguments, cases, MULTIGRID, rtol=RTOL)


def measure(name: str, small: bool, device: str, repeats: int) -> dict[str, Any]:
    """The best row of the advice, and what those close to it take for another system."""
    A, block_size = SOLVED[name](small, device), BLOCK_SIZES.get(name, 1)
    advice = [row for row in studies.advise(A, rtol=RTOL, block_size=block_size).rows if row["verified"]]
    close = [row for row in advice if row["seconds"] <= CLOSE * advice[0]["seconds"]]
    known = {candidate.method: candidate for candidate in candidates(backend_of(A), block_size=block_size)}
    trials = [Trial(known[row["method"]], row["threads"]) for row in close]
    system, _ = system_with(A, SEED + 1, repeats)
    for trial in trials:
        trial.warm_up(system, RTOL, math.inf)
    for _ in range(repeats):
        for trial in trials:
            trial.run(system, RTOL)
    names = [str(trial) for trial in trials]
    solvers = [
        {"name": f"{row['method']}, 1 thread" if row["threads"] == 1 else row["method"]}
        | {key: row[key] for key in SHOWN}
        for row in rank(trials, {})
    ]
    size = {"unknowns": A.shape[0], "nnz": int(A.nnz)}
    return size | {"advised": names[0], "decided": advice[0]["decided"], "solvers": solvers}


if __name__ == "__main__":
    main()
