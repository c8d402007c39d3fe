"""The history of a coloring: what each round did, logged by the kernels where they count their rounds.

A log lies on the device. Row 0 holds the number of rounds, row r what round r did: vertices colored, and conflicts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import compile_part
from mcprecond.coloring.graph import Graph

SPARE_ROUNDS = 64  # a log has room for n + 64 rounds, and later ones go into its last row; mirrored in device.cuh
FIRST_ROWS = 1024  # read together with the number of rounds; mostly that is all


def new_log(graph: Graph) -> Any:
    """Return an empty log on the graph's device: int32, shape (n + SPARE_ROUNDS + 1, 2)."""
    return graph.backend.xp.zeros((graph.n + SPARE_ROUNDS + 1, 2), np.int32)


def history_of(log: Any, graph: Graph) -> np.ndarray:
    """Return the rounds of a log on the host: int64, shape (rounds, 2); waits for the device."""
    rows = graph.backend.to_host(log[:FIRST_ROWS])
    end = int(rows[0, 0]) + 1
    if end > FIRST_ROWS:
        rows = graph.backend.to_host(log[:end])
    return rows[1:end].astype(np.int64)


def without_conflicts(colored: list[int]) -> np.ndarray:
    """Return the history of rounds that colored so many vertices for good."""
    return np.array([(count, 0) for count in colored], np.int64).reshape(-1, 2)


@compile_part
def log_round(log, colored, conflicts):
    """Log the next round: how many vertices it colored, and how many of those have to be colored again."""
    log[0, 0] = min(log[0, 0] + 1, len(log) - 1)
    log[log[0, 0], 0] += colored
    log[log[0, 0], 1] += conflicts
