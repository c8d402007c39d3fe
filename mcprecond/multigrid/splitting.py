"""Coarse and fine points: which neighbors a point depends on, and an independent set by weights of these (PMIS).

Point i depends strongly on j if -a_ij is at least theta times the largest such number of its row: entries of the other
sign do not count, since errors need not be smooth along them. Coarse points are a maximal independent set of the strong
connections, found in the order of the weights |{j depends on i}| + r(i). In the paper r(i) is a random number; here it
is a hash of i, so that the set is the same on every device and in every run. And a point gives way only to coarse
points of larger weight on which it depends, not to those that depend on it.

A point is stiff if its positive entries add up to more than a seventh of its diagonal entry. Errors are rough along
positive entries, which flat triangles of a mesh cause, and interpolation from neighbors cannot represent such errors.
Where few points are stiff all of them are coarse, also neighbors that depend on each other: a stiff point that is fine
spoils the two-grid method of its level, whichever weights its row of P has. Where many are, they come first. So they do
where A is not symmetric: convection causes positive entries, too, and with all of them coarse levels have more entries
and take as many iterations.

Strength of connection: Ruge, Stuben: Algebraic Multigrid, in: Multigrid Methods, SIAM, 1987, Section 4.6.1.
PMIS: De Sterck, Yang, Heys: Reducing Complexity in Parallel Algebraic Multigrid Preconditioners, SIAM J. Matrix
Anal. Appl. 27, 2006, Section 4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mcprecond.backends import KernelSet, compile_inlined, compile_loop
from mcprecond.backends.hashing import mix
from mcprecond.backends.inputs import count_true
from mcprecond.backends.team.atomics import atomic_add
from mcprecond.linalg.csr import lanes_for
from mcprecond.matrix import AdmittedMatrix

KERNELS = KernelSet(__file__, "OFFSET VALUE LANES")

#: Bits of the flags of an entry: whether its row depends strongly on its column, and whether interpolation may pass
#: through the column. For this, entries of the other sign count by their magnitudes.
DEPENDS, INTERPOLATES = 1, 2
UNDECIDED, FINE, COARSE = 0, 1, 2  # states of points
#: The default thresholds of strength, relative to the largest entry of a row. THETA is for symmetric matrices, and is
#: the value of the papers. For other matrices a larger threshold saves iterations; it may be anything from 0.35 to 0.5.
THETA, OF_UNSYMMETRIC = 0.25, 0.4
#: A point is stiff if its row has a positive entry of more than STIFF times the diagonal entry. All stiff points become
#: coarse if they are at most MOST_STIFF of a level. Otherwise FIRST is added to their measures, so that PMIS considers
#: them first.
STIFF, FIRST, MOST_STIFF = 1 / 7, 1000, 0.01
CUDA_CONSTANTS = {
    **{"DEPENDS": DEPENDS, "INTERPOLATES": INTERPOLATES, "UNDECIDED": UNDECIDED, "FINE": FINE, "COARSE": COARSE},
    **{"STIFF": STIFF, "FIRST": FIRST},
}


class Dependences(NamedTuple):
    """On whom the points of a level depend.

    Attributes
    ----------
    flags : array of uint8
        For each entry of A, the bits DEPENDS and INTERPOLATES.
    influences : array of int32, shape (n,)
        How many points depend on each, and what puts it first.
    is_stiff : array of uint8, shape (n,), or None
        1 for a point whose positive off-diagonal entries add up to more than `STIFF` times its diagonal entry. None if
        no point is stiff, or if more than a share of `MOST_STIFF` are, or if they do not count.
    """

    flags: Any
    influences: Any
    is_stiff: Any = None


def classical_strength(A: AdmittedMatrix, theta: float, finds_stiff: bool = True) -> Dependences:
    """Return the strong dependences ``-a_ij >= theta max_k -a_ik`` of a canonical matrix with a positive diagonal.
    `finds_stiff` says whether stiff points count, if there are few of them.
    """
    xp, n = A.backend.xp, A.shape[0]
    flags, influences, is_stiff = xp.empty(A.indices.size, np.uint8), xp.zeros(n, np.int32), xp.empty(n, np.uint8)
    least = theta * (1 - 8 * float(np.finfo(A.dtype).eps))  # entries at the limit count, however they are rounded
    run = kernels_for(A)
    run.find_dependences(n, A.indptr, A.indices, A.data, A.diagonal(), least, flags, influences, is_stiff)
    has_few = finds_stiff and 0 < count_true(is_stiff, xp) <= MOST_STIFF * n
    return Dependences(flags, influences, is_stiff if has_few else None)


def split(A: AdmittedMatrix, found: Dependences) -> Any:
    """Return the state of each point, COARSE or FINE, as int32, by PMIS. A few stiff points are coarse; of the others
    those on which nobody depends are fine.
    """
    xp, n = A.backend.xp, A.shape[0]
    states, weights = xp.full(n, np.int32(UNDECIDED)), xp.empty(n, np.uint64)
    if found.is_stiff is not None:
        states[found.is_stiff > 0] = COARSE
    worklists, scratch = xp.empty((2, n), np.int32), A.backend.zeros(4, np.int32)
    pattern = A.indptr, A.indices, found.flags
    kernels_for(A).split_points(n, *pattern, found.influences, weights, states, worklists.reshape(-1), scratch)
    return states


def kernels_for(A: AdmittedMatrix) -> Any:
    """The kernels for a matrix, whose rows teams share."""
    return A.backend.kernels(KERNELS, OFFSET=A.indptr.dtype, VALUE=A.dtype, LANES=lanes_of(A))


def lanes_of(A: AdmittedMatrix) -> int:
    """How many threads of a GPU share a row."""
    return lanes_for(A.indices.size / max(A.shape[0], 1))


# On the CPU.


@KERNELS.per_item
def find_dependences(first, end, indptr, indices, values, diagonal, theta, flags, influences, is_stiff):
    """The flags of some rows, and the points that they depend on."""
    for i in range(first, end):
        most, size, positive = 0.0, 0.0, 0.0
        for k in range(indptr[i], indptr[i + 1]):
            if indices[k] != i:
                most, size = max(most, -values[k].real), max(size, np.float64(abs(values[k])))
                positive += max(values[k].real, 0.0)
        for k in range(indptr[i], indptr[i + 1]):
            j, a = np.uint32(indices[k]), values[k].real
            depends = i != j and -a > 0 and -a >= theta * most
            passes = depends or (i != j and a > 0 and a >= theta * size)
            flags[k] = DEPENDS * depends + INTERPOLATES * passes
            if depends:
                atomic_add(influences, j, np.int32(1))
        is_stiff[i] = positive > STIFF * abs(diagonal[i])
        if is_stiff[i]:
            atomic_add(influences, i, np.int32(FIRST))


@compile_inlined
def state_of(v, indptr, indices, flags, weights, states):
    """The state of an undecided point, by the states of the points of larger weight that it depends on."""
    waits = False
    for k in range(indptr[v], indptr[v + 1]):
        u = np.uint32(indices[k])
        if flags[k] & DEPENDS and weights[u] > weights[v]:
            if states[u] == COARSE:
                return FINE
            waits |= states[u] == UNDECIDED
    return UNDECIDED if waits else COARSE


@compile_loop
def decide(first, end, left, indptr, indices, flags, weights, states):
    """Decide points of a list as far as possible. A point that reads an outdated state waits for the next round."""
    for place in range(first, end):
        v = left[place]
        states[v] = state_of(v, indptr, indices, flags, weights, states)


@KERNELS.resident
def split_points(n, indptr, indices, flags, influences, weights, states, worklists, scratch):
    """The states of all points that are undecided."""
    length = 0
    for v in range(n):
        weights[v] = (np.uint64(influences[v]) << np.uint64(32)) | np.uint64(mix(v, 0))
        if states[v] == UNDECIDED and influences[v] == 0:
            states[v] = FINE
        if states[v] == UNDECIDED:
            worklists[length] = v
            length += 1
    while length:
        decide(0, length, worklists, indptr, indices, flags, weights, states)
        left = 0
        for place in range(length):
            v = worklists[place]
            if states[v] == UNDECIDED:
                worklists[left] = v
                left += 1
        length = left
