"""The history of a coloring: what each round did, logged by the kernels where they count their rounds.

A log lies on the device. Row 0 holds the number of rounds, row r what round r did: vertices colored, and conflicts.
It is read where a coloring is finished, together with the sizes of its colors, so that the host waits once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import Backend, compile_part
from mcprecond.coloring.graph import Graph

SPARE_ROUNDS = 64  # a log has room for n + 64 rounds, and later ones go into its last row
CUDA_CONSTANTS = {"SPARE_ROUNDS": SPARE_ROUNDS}


def new_log(graph: Graph) -> Any:
    """Return an empty log on the graph's device: int32, shape (n + SPARE_ROUNDS + 1, 2)."""
    return graph.backend.xp.zeros((graph.n + SPARE_ROUNDS + 1, 2), np.int32)


def log_of_first_round(graph: Graph, colored: int) -> Any:
    """Return such a log with room for more after a first round that colored so many vertices; empty if none."""
    log = new_log(graph)
    if colored:
        log[0, 0], log[1, 0] = 1, colored
    return log


def log_of(colored: list[int], backend: Backend) -> Any:
    """Return the log of rounds that colored so many vertices for good."""
    return backend.xp.asarray(np.array([(len(colored), 0), *((count, 0) for count in colored)], np.int32))


@compile_part
def log_round(log, colored, conflicts):
    """Log the next round: how many vertices it colored, and how many of those have to be colored again."""
    log[0, 0] = min(log[0, 0] + 1, len(log) - 1)
    log[log[0, 0], 0] += colored
    log[log[0, 0], 1] += conflicts
