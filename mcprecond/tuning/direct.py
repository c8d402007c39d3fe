"""Whether SciPy's direct solver is predicted to be faster than an iteration, as it is for small systems."""

from __future__ import annotations

import math

from mcprecond.tuning.general_stages import ROW_IN_SPACE
from mcprecond.tuning.stages import Prediction, iterations_of_multigrid

#: A direct solve is predicted to take OF_ENTRY seconds for each entry of A, plus OF_WORK n w^2 seconds. Here w is the
#: distance from the diagonal to the farthest entry of a row, averaged over the rows. The constants were fitted to grids
#: in two and three dimensions with 100 to 22,500 unknowns, on one core of a CPU. If the rows are numbered at random,
#: the prediction is far too high.
OF_ENTRY, OF_WORK = 1e-7, 1.5e-10
#: The direct solver is not used if it is predicted to take more than LONGEST seconds, or if A has more than
#: MOST_ENTRIES entries.
LONGEST, MOST_ENTRIES = 0.1, 10**5
#: Seconds that pass before the first iteration of an iterative method. On a GPU a CUDA graph is captured first.
START = {"cpu": 0.0, "gpu": 2e-3}
#: To reduce the residual by eight decimal digits, CG takes about IN_PLANE n^(1/2) iterations on grids in two
#: dimensions, and IN_SPACE n^(1/3) in three.
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
