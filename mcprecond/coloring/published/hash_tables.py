"""The hash tables of Gunrock's hash coloring (Osama et al., Section IV-B2): the colors that a vertex cannot use."""

from __future__ import annotations

from mcprecond.backends import compile_row
from mcprecond.backends.hashing import mix

# What a place in a hash table holds besides colors. NO_REUSE, in the first place: do not ask this table any more.
EMPTY, NO_REUSE = -1, -2
LARGEST_TABLE = 63  # one bit less than a word of the search for a color
CUDA_CONSTANTS = {"EMPTY": EMPTY, "NO_REUSE": NO_REUSE, "LARGEST_TABLE": LARGEST_TABLE}


@compile_row
def number_of(v, seed):
    """The random number of a vertex and, below it, the vertex itself: no two are equal."""
    return mix(v, seed) << 31 | v


@compile_row
def prohibit(tables, v, color):
    """Enter a color into the table of v, unless it is there already or the table is full."""
    for j in range(tables.shape[1]):
        if tables[v, j] == color or tables[v, j] == NO_REUSE:
            return
        if tables[v, j] == EMPTY:
            tables[v, j] = color
            return


@compile_row
def color_of(proposal, new, tables, v):
    """The smallest color of an earlier round that the table of v does not prohibit, or else the new one proposed."""
    if tables[v, 0] == NO_REUSE:
        return proposal
    prohibited = 0  # bit c: color c is; a color below the size of a table + 1 is not
    for j in range(tables.shape[1]):
        if EMPTY < tables[v, j] <= LARGEST_TABLE:
            prohibited |= 1 << tables[v, j]
    c = 0
    while (prohibited >> c) & 1:
        c += 1
    return c if c < new else proposal
