"""Who gets its color first in ECL-GC: a strict total order, which nobody has to list."""

from __future__ import annotations

from mcprecond.backends import compile_row
from mcprecond.backends.hashing import mix

ORDERS = ("ldf", "ldf_natural", "natural")
LDF, LDF_NATURAL, ROW_ORDER = range(3)
LOW_DEGREE = 32  # from here on, possible colors do not fit into an integer
CUDA_CONSTANTS = {"LDF": LDF, "LDF_NATURAL": LDF_NATURAL, "ROW_ORDER": ROW_ORDER, "LOW_DEGREE": LOW_DEGREE}


@compile_row
def precedes(u, v, degrees, order, seed):
    """Whether u has the higher priority."""
    if order != ROW_ORDER and degrees[u] != degrees[v]:
        return degrees[u] > degrees[v]
    return mix(u, seed) > mix(v, seed) if order == LDF else u < v


@compile_row
def lowest_bit(mask):
    """The number of the lowest bit that is set."""
    bit = 0
    while not (mask >> bit) & 1:
        bit += 1
    return bit
