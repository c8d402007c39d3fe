"""What vertex-based colorings share (Deveci et al., IPDPS 2016): who gives way, and FORBIDDEN of a color range."""

from __future__ import annotations

import numpy as np

from mcprecond.backends import compile_row
from mcprecond.backends.arguments import one_of

RESOLUTIONS = ("index", "degree")
MAXFORBID = 64


def check_resolution(resolution: str) -> None:
    """Raise TypeError or ValueError for a rule that `gives_way` does not know."""
    one_of(resolution, "resolution", RESOLUTIONS)


@compile_row
def gives_way(v, u, by_degree, degrees):
    """Whether v is the end of a conflicting edge (v, u) that is recolored: a strict total order."""
    if by_degree and degrees[v] != degrees[u]:
        return degrees[v] < degrees[u]
    return v < u


@compile_row
def allow_all(forbidden):
    """Forbid no color of the range."""
    for word in range(len(forbidden)):
        forbidden[word] = 0


@compile_row
def forbid_color(forbidden, color, bitwise):
    """Forbid a color of the range: `forbidden` is 64 flags or one word."""
    if bitwise:
        forbidden[0] |= np.uint64(1) << np.uint64(color)
    else:
        forbidden[color] = 1


@compile_row
def set_color(forbidden, bitwise):
    """The first color of the range that is not forbidden; MAXFORBID if there is none."""
    color = 0
    if bitwise:
        while color < MAXFORBID and (forbidden[0] >> np.uint64(color)) & np.uint64(1):
            color += 1
    else:
        while color < MAXFORBID and forbidden[color]:
            color += 1
    return color
