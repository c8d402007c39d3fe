"""Colorings of random geometric and R-MAT graphs of growing size, beside cuSPARSE's csrcolor in the same run.

    python benchmarks/coloring_scaling.py gpu            # RGG of 2^15 to 2^24 points, R-MAT of scales 20, 22 and 24
    python benchmarks/coloring_scaling.py gpu --rgg 15 16 17 18 19 20 21 22 --rmat 20 22      # without the largest
    python benchmarks/coloring_scaling.py cpu --small    # the same kinds, small, on this machine

writes benchmarks/results/coloring-scaling-gpu.json or coloring-scaling-small.json (or where --output says), anew after
each graph, so that a run that was cut off leaves what it had. Times are taken as in coloring.py. These are Figure 3 of
Osama et al. (2019) and Figure 4 of Deveci et al. (2016).
"""

from __future__ import annotations

from functools import partial
from typing import Any

from cases import GROWING
from coloring import METHODS, measure_matrix
from measure import COLORING, measure_each, parser_of

SCALING = ["eb", "ecl_gc", "sirg", "vb_bit", "jp"]
RGG, RMAT = list(range(15, 25)), [20, 22, 24]
SMALL_RGG, SMALL_RMAT = [8, 10], [8, 10]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rgg", nargs="*", type=int, help="log2 of the numbers of points")
    parser.add_argument("--rmat", nargs="*", type=int, help="scales")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=SCALING)
    arguments = parser.parse_args()
    rgg = arguments.rgg if arguments.rgg is not None else SMALL_RGG if arguments.small else RGG
    rmat = arguments.rmat if arguments.rmat is not None else SMALL_RMAT if arguments.small else RMAT

    def measure(family: str, scale: int) -> dict[str, Any]:
        case = {"family": family, "scale": scale}
        matrix = GROWING[family](scale)
        return case | measure_matrix(matrix, arguments.device, arguments.methods, arguments.repeats)

    graphs = [*(("rgg", scale) for scale in rgg), *(("rmat", scale) for scale in rmat)]
    cases = {f"{family}{scale}": partial(measure, family, scale) for family, scale in graphs}
    measure_each("coloring-scaling", arguments, cases, COLORING)


if __name__ == "__main__":
    main()
