"""Whether SciPy's direct solver is predicted to be faster than an iteration, as it is for small systems."""

from __future__ import annotations

import math

from mcprecond.tuning.general_stages import ROW_IN_SPACE
from mcprecond.tuning.stages import Prediction, iterations_of_multigrid

#: Seconds of the direct solver for each entry of A, and for each row times the square of the width, which is how far
#: the farthest entry of a row is from the diagonal on average. They fit grids in two and three dimensions of 100 to
#: 22,500 unknowns on a core of a CPU. Where rows are numbered at random the prediction is far too high.
OF_ENTRY, OF_WORK = 1e-7, 1.5e-10
#: A direct solver that takes longer is not considered, nor one for a matrix with more entries.
LONGEST, MOST_ENTRIES = 0.1, 10**5
#: Seconds until the first iteration runs: on a GPU a graph is captured before.
START = {"cpu": 0.0, "gpu": 2e-3}
#: CG takes about so many times the number of points along a side of a grid to win eight digits: in two and in three
#: dimensions.
IN_PLANE, IN_SPACE = 2.0, 2.3


def seconds_of_direct(n: int, entries: int, width: float) -> float:
    """Predict the time of a direct solve."""
    return OF_ENTRY * entries + OF_WORK * n * width**2


def seconds_of_cg(predicted: dict[str, Prediction], n: int, entries: int, digits: float) -> float:
    """Predict the time of CG without a preconditioner or with multigrid, whichever is faster, for so many digits."""
    is_plane = entries < ROW_IN_SPACE * n
    side = IN_PLANE * n ** (1 / 2) if is_plane else IN_SPACE * n ** (1 / 3)
    plain, multigrid = predicted["none"], predicted["multigrid"]
    return min(
        plain.setup + side * digits / 8 * plain.iteration,
        multigrid.setup + math.ceil(iterations_of_multigrid(digits)) * multigrid.iteration,
    )
