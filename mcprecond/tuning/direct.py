"""How long SciPy's direct solver is predicted to take, which is faster than an iteration for small systems."""

from __future__ import annotations

from mcprecond.tuning.features import Features

#: A direct solve is predicted to take OF_ENTRY seconds for each entry of A, plus OF_WORK n w^2 seconds, where w is
#: `Features.width`. The constants were fitted to grids in two and three dimensions with 100 to 22,500 unknowns, on one
#: core of a CPU. If the rows are numbered at random, the prediction is far too high.
OF_ENTRY, OF_WORK = 1e-7, 1.5e-10
#: The direct solver is not used if it is predicted to take more than LONGEST seconds, as with more than MOST_ENTRIES
#: entries.
LONGEST = 0.1
MOST_ENTRIES = round(LONGEST / OF_ENTRY)
#: Seconds that pass before the first iteration of an iterative method. On a GPU a CUDA graph is captured first.
START = {"cpu": 0.0, "gpu": 2e-3}


def seconds_of_direct(features: Features) -> float:
    """Predict the time of a direct solve."""
    return OF_ENTRY * features.entries + OF_WORK * features.n * features.width**2
