"""What EB keeps and how (Deveci et al., IPDPS 2016, Algorithms 6 and 9): one bit for a color within a set of 31."""

from __future__ import annotations

import numpy as np

from mcprecond.backends import compile_loop, compile_part, compile_row
from mcprecond.backends.team.atomics import atomic_add, atomic_or

SET_SIZE = 31
STRETCHES = 64  # pieces of the pattern and of the edge list that the CPU takes up on their own
ALL_FORBIDDEN = 2**SET_SIZE - 1
CUDA_CONSTANTS = {"SET_SIZE": SET_SIZE, "ALL_FORBIDDEN": ALL_FORBIDDEN}


@compile_row
def first_available(forbidden):
    """The lowest bit that is zero among the 31 of a color set, as a one-bit mask; 0 if there is none."""
    return ~forbidden & (forbidden + 1) & ALL_FORBIDDEN


@compile_row
def beyond(degree, color_set):
    """The colors of a set that a vertex of this degree never needs."""
    needed = degree + 1 - color_set * SET_SIZE
    return ALL_FORBIDDEN if needed <= 0 else (0 if needed >= SET_SIZE else ALL_FORBIDDEN & ~((1 << needed) - 1))


@compile_row
def assign_color(v, degree, C, CS, VF, TVF):
    """Algorithm 9 on one vertex without a final color."""
    forbidden = VF[v] | TVF[v]
    if C[v] < 0:
        C[v] = -C[v]
    elif forbidden != ALL_FORBIDDEN:
        C[v] = first_available(forbidden)
    elif VF[v] == ALL_FORBIDDEN:
        CS[v] += 1
        VF[v] = beyond(degree, CS[v])
    TVF[v] = 0


@compile_row
def forbid_color(u, v, C, CS, VF):
    """Algorithm 6 on one edge, and whether the edge has to stay in the list (the three rules of Section III-B3).

    Colors that survived conflict detection are final, so an edge is used up once one end has noted the color of the
    other, once both ends are colored, or once the uncolored end has moved to a higher color set.
    """
    if C[u] != 0 and C[v] != 0:
        return False
    if C[u] == 0 and C[v] == 0:
        return True
    colored, other = (u, v) if C[u] != 0 else (v, u)
    if CS[colored] == CS[other]:
        atomic_or(VF, other, np.int32(C[colored]))
    return CS[colored] > CS[other]


@compile_row
def detect_conflict(low, high, C, CS):
    """Uncolor the low end if both ends of an edge have the same color."""
    if C[low] != 0 and C[low] == C[high] and CS[low] == CS[high]:
        C[low] = 0


@compile_row
def to_number(bit, color_set):
    """CS(v) * 31 + log2 C(v)."""
    color = 0
    while bit >> (color + 1):
        color += 1
    return color_set * SET_SIZE + color


@compile_loop
def from_bits(first, end, C, CS):
    """From bits to numbers."""
    for v in range(first, end):
        C[v] = to_number(C[v], CS[v])


@compile_loop
def detect_conflicts(first, end, E, C, CS):
    """DETECTCONFLICTS."""
    for e in range(first, end):
        detect_conflict(E[e, 0], E[e, 1], C, CS)


@compile_loop(grain=1)
def keep_stretches(first, end, stretch, length, E, C, CS, VF, counts):
    """Keep edges of some stretches, each at its own beginning, and count them."""
    for t in range(first, end):
        begin = min(t * stretch, length)
        count = 0
        for e in range(begin, min(begin + stretch, length)):
            if forbid_color(E[e, 0], E[e, 1], C, CS, VF):
                E[begin + count, 0], E[begin + count, 1] = E[e, 0], E[e, 1]
                count += 1
        counts[t + 1] = count


@compile_loop(grain=1)
def join_stretches(first, end, stretch, length, E, counts, kept):
    """Copy what is kept of some stretches to where it belongs."""
    for t in range(first, end):
        begin = min(t * stretch, length)
        for k in range(counts[t], counts[t + 1]):  # a copy of slices takes Numba seconds to compile
            kept[k, 0], kept[k, 1] = E[begin + k - counts[t], 0], E[begin + k - counts[t], 1]


@compile_part
def keep_in_order(length, E, C, CS, VF, kept):
    """FORBIDCOLORS and CREATENEWEDGELIST by prefix sum; returns the new length."""
    stretch = -(-length // STRETCHES)
    counts = np.zeros(STRETCHES + 1, np.int64)
    keep_stretches(0, STRETCHES, stretch, length, E, C, CS, VF, counts)
    for t in range(STRETCHES):
        counts[t + 1] += counts[t]
    join_stretches(0, STRETCHES, stretch, length, E, counts, kept)
    return counts[STRETCHES]


@compile_loop
def keep_scattered(first, end, E, C, CS, VF, kept, counter):
    """FORBIDCOLORS and CREATENEWEDGELIST by an atomic counter, which starts at zero."""
    for e in range(first, end):
        if forbid_color(E[e, 0], E[e, 1], C, CS, VF):
            position = atomic_add(counter, 0, np.int64(1))
            kept[position, 0], kept[position, 1] = E[e, 0], E[e, 1]


@compile_part
def keep_edges(pps, length, E, C, CS, VF, kept, counter):
    """FORBIDCOLORS and CREATENEWEDGELIST, by a prefix sum or by an atomic counter; returns the new length."""
    if pps:
        return keep_in_order(length, E, C, CS, VF, kept)
    counter[0] = 0
    keep_scattered(0, length, E, C, CS, VF, kept, counter)
    return counter[0]
