"""Colorings of random geometric and R-MAT graphs of growing size, beside cuSPARSE's csrcolor in the same run.

    python benchmarks/coloring_scaling.py gpu            # RGG of 2^15 to 2^24 points, R-MAT of scales 20, 22 and 24
    python benchmarks/coloring_scaling.py gpu --rgg 15 16 17 18 19 20 21 22 --rmat 20 22      # without the largest
    python benchmarks/coloring_scaling.py cpu --small    # the same kinds, small, on this machine

writes benchmarks/results/coloring-scaling-gpu.json or coloring-scaling-small.json (or where --output says), anew after
each graph, so that a run that was cut off leaves what it had. Times are taken as in coloring.py. These are Figure 3 of
Osama et al. (2019) and Figure 4 of Deveci et al. (2016).
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from cases import GROWING, SEED
from coloring import METHODS, measure_matrix
from measure import COLORING, RESULTS, record, save

SCALING = ["eb", "ecl_gc", "sirg", "vb_bit", "jp"]
RGG, RMAT = list(range(15, 25)), [20, 22, 24]
SMALL_RGG, SMALL_RMAT = [8, 10], [8, 10]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", choices=["cpu", "gpu"])
    parser.add_argument("--rgg", nargs="*", type=int, help="log2 of the numbers of points")
    parser.add_argument("--rmat", nargs="*", type=int, help="scales")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=SCALING)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    small = arguments.small
    rgg = arguments.rgg if arguments.rgg is not None else SMALL_RGG if small else RGG
    rmat = arguments.rmat if arguments.rmat is not None else SMALL_RMAT if small else RMAT
    output = arguments.output or RESULTS / f"coloring-scaling-{'small' if small else arguments.device}.json"
    cases = []
    for family, scale in [*(("rgg", scale) for scale in rgg), *(("rmat", scale) for scale in rmat)]:
        started = time.perf_counter()
        matrix = GROWING[family](scale)
        generated = time.perf_counter()
        case = {"name": f"{family}{scale}", "family": family, "scale": scale}
        cases.append(case | measure_matrix(matrix, arguments.device, arguments.methods, arguments.repeats))
        seconds = f"{generated - started:.1f} s to generate, {time.perf_counter() - generated:.1f} s to measure"
        print(f"{family}{scale}: {seconds}", flush=True)
        save(record("coloring-scaling", arguments.device, cases, COLORING, seed=SEED, small=small), output)


if __name__ == "__main__":
    main()
