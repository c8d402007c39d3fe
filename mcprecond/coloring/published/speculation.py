"""What speculative colorings share: who gives way where neighbors have one color, and what one thread does."""

from __future__ import annotations

from mcprecond.backends import compile_part, compile_row
from mcprecond.backends.arguments import one_of
from mcprecond.coloring.graph import UNCOLORED
from mcprecond.coloring.greedy import first_fit
from mcprecond.coloring.history import log_round

RESOLUTIONS = ("index", "degree")


def check_resolution(resolution: str) -> None:
    """Raise TypeError or ValueError for a rule that `gives_way` does not know."""
    one_of(resolution, "resolution", RESOLUTIONS)


@compile_row
def gives_way(v, u, by_degree, degrees):
    """Whether v is the end of a conflicting edge (v, u) that is recolored: a strict total order."""
    if by_degree and degrees[v] != degrees[u]:
        return degrees[v] < degrees[u]
    return v < u


@compile_part
def color_alone(indptr, indices, sequence, C, log):
    """Color as one thread does: first-fit in the order of the worklist, which leaves no conflicts to the next round."""
    C[:] = UNCOLORED
    first_fit(1, indptr, indices, sequence, C)
    if len(C):
        log_round(log, len(C), 0)
