"""Whether what `advise` recommends is what solves fastest, on matrices that it was not made for.

    python benchmarks/advice.py cpu
    python benchmarks/advice.py gpu rmat_18 star     # some of the matrices

writes benchmarks/results/advice-cpu.json or advice-gpu.json (or where --output says). `advise` tries preconditioners
once, to a relative residual of 1e-6. Then all of them solve to 1e-8 for another right-hand side, several times:
what following the advice loses.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from cases import SEED, SOLVED
from measure import MULTIGRID, RESULTS, record, save

from mcprecond import studies
from mcprecond.studies.advice import CANDIDATES

RTOL, MAXITER = 1e-8, 5000
SHOWN = ("seconds", "seconds_first_quartile", "seconds_third_quartile", "spread", "iterations", "verified", "reason")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", choices=["cpu", "gpu"])
    parser.add_argument("names", nargs="*", default=list(SOLVED), metavar="NAME", help=", ".join(SOLVED))
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    device, cases = arguments.device, []
    for name in arguments.names:
        A = SOLVED[name](arguments.small, device)
        cases.append({"name": name, "unknowns": A.shape[0], "nnz": int(A.nnz)} | measure(A, arguments.repeats))
        print(name, cases[-1]["advised"], flush=True)
        facts = {"seed": SEED, "rtol": RTOL, "small": arguments.small}
        save(record("advice", device, cases, MULTIGRID, **facts), arguments.output or RESULTS / f"advice-{device}.json")


def measure(A: Any, repeats: int) -> dict[str, Any]:
    """The best row of the advice, and what each candidate takes for another system."""
    advice = studies.advise(A).rows
    kept = {row["method"]: CANDIDATES[row["method"]][0] for row in advice if row["verified"]}
    options: dict[str, Any] = {"rtol": RTOL, "maxiter": MAXITER, "seed": SEED + 1, "repeats": repeats}
    rows = studies.convergence({"A": A}, kept, **options).rows
    solvers = [{"name": row["method"]} | {key: row[key] for key in SHOWN if key in row} for row in rows]
    return {"advised": advice[0]["method"], "solvers": solvers}


if __name__ == "__main__":
    main()
