"""The command line of the adversary."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
if __name__ == "__main__":
    # Not the folder that is run, whose modules are those of a package.
    sys.path[:1] = [str(HERE.parent), str(ROOT), str(ROOT / "benchmarks")]

from fuzz.categories import SHARES  # noqa: E402
from fuzz.driver import Run  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(prog="python tests/fuzz", description=__doc__)
    parser.add_argument("--device", choices=("cpu", "gpu", "emulated"), default="cpu")
    parser.add_argument("--seconds", type=float, default=600.0, help="the time for all categories together")
    parser.add_argument("--cases", type=int, help="so many of each category instead")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--category", action="append", choices=(*SHARES, "broken"), help="only this one; can be given again"
    )
    parser.add_argument("--only", type=int, metavar="SEED", help="one case again, with the seed that a failure prints")
    parser.add_argument("--workers", type=int, help="processes at a time: one on a GPU, otherwise one for each core")
    parser.add_argument(
        "--patience",
        type=float,
        help="seconds after which a case is taken to hang: 180, or 600 where kernels are compiled",
    )
    parser.add_argument("--output", type=Path, help="a JSON file for what was counted")
    asked = parser.parse_args()
    shares = {name: SHARES.get(name, 1) for name in asked.category or SHARES}
    asked.patience = asked.patience or (180.0 if asked.device == "cpu" else 600.0)
    run = Run(asked.device, shares, asked.seed, patience=asked.patience, say=lambda line: print(line, flush=True))
    if asked.only is not None or asked.cases is not None:
        run.for_cases(asked.cases if asked.only is None else 1, asked.only)
    else:
        run.for_seconds(asked.seconds, asked.workers or (1 if asked.device == "gpu" else os.cpu_count() or 1))
    print(run.table())
    if asked.output:
        write(asked.output, run)
    return bool(run.failures)


def write(path: Path, run: Run) -> None:
    """Write what was counted, and on what."""
    from measure import MULTIGRID, record, save

    rows = [tally.row(category) for category, tally in run.tallies.items()]
    counts = {name: sum(row[name] for row in rows) for name in ("cases", "checks", "failures")}
    save(record("fuzz", run.device, rows, MULTIGRID, seed=run.seed, totals=counts), path)


if __name__ == "__main__":
    sys.exit(main())
