"""Points without a strong connection whose rows sum to about zero: they join the aggregates of neighbors.

Beside the geometric mean of two diagonal entries all connections of a point may be weak although none of them is weak
for the point itself: so it is where a cell conducts badly among cells that conduct well. The point is in no aggregate
then, and constants would not be in the range of P. It joins the aggregate of the neighbor with the largest connection,
in up to three rounds, and its row of P is smoothed along its own strong connections ``-a_ij >= max_k(-a_ik) / 4``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_inlined
from mcprecond.matrix import AdmittedMatrix
from mcprecond.multigrid.splitting import THETA, lanes_of
from mcprecond.multigrid.strength import Connections
from mcprecond.multigrid.units import SMALL_SUM

KERNELS = KernelSet(__file__, "OFFSET VALUE LANES")

ROUNDS = 3
CUDA_CONSTANTS = {"SMALL_SUM": SMALL_SUM}


def join_lonely(A: AdmittedMatrix, C: Connections, labels: Any) -> tuple[Any, Connections]:
    """Return the labels with those of lonely points, and the connections with the strong ones of their own rows.

    Parameters
    ----------
    A : AdmittedMatrix
        Canonical, with values and a diagonal.
    C : Connections
        Its strong connections.
    labels : array of int32, shape (n,)
        The aggregate of each point, -1 where there is none.
    """
    backend, xp, n = A.backend, A.backend.xp, A.shape[0]
    run = backend.kernels(KERNELS, OFFSET=A.indptr.dtype, VALUE=A.dtype, LANES=lanes_of(A))
    arrays, is_lonely = (A.indptr, A.indices, A.data), xp.empty(n, np.int32)
    any_lonely = A.backend.zeros(1, np.int32)
    run.find_lonely(n, *arrays, labels, is_lonely, any_lonely)
    if not int(any_lonely[0]):
        return labels, C
    for _ in range(ROUNDS):
        before, labels = labels, xp.empty_like(labels)
        run.join_largest(n, *arrays, is_lonely, before, labels)
    counts = xp.zeros(n + 1, A.indptr.dtype)
    strong = C.indptr, C.indices, is_lonely, THETA
    run.count_kept(n, *arrays, *strong, counts[1:])
    indptr = xp.cumsum(counts, dtype=A.indptr.dtype)
    indices = xp.empty(int(indptr[-1]), np.int32)
    run.list_kept(n, *arrays, *strong, indptr, indices)
    return labels, Connections(C.graph, indptr, indices)


# On the CPU.


@KERNELS.per_item
def find_lonely(first, end, indptr, indices, values, labels, is_lonely, any_lonely):
    """Whether each point, and any of them, is lonely: in no aggregate, with neighbors, and with a row that sums to
    about zero.
    """
    for i in range(first, end):
        is_lonely[i] = 0
        if labels[i] < 0:
            total = diagonal = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                total += values[k].real
                if indices[k] == i:
                    diagonal = values[k].real
            is_lonely[i] = indptr[i + 1] - indptr[i] > 1 and total < SMALL_SUM * diagonal
            if is_lonely[i]:
                any_lonely[0] = 1


@KERNELS.per_item
def join_largest(first, end, indptr, indices, values, is_lonely, labels, joined):
    """Give each lonely point without an aggregate that of the neighbor with the largest connection that has one."""
    for i in range(first, end):
        joined[i] = labels[i]
        if is_lonely[i] and labels[i] < 0:
            most = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                j, size = np.uint32(indices[k]), np.float64(abs(values[k]))
                if j != i and labels[j] >= 0 and size > most:
                    most, joined[i] = size, labels[j]


@compile_inlined
def put_kept(i, indptr, indices, values, strong_indptr, strong_indices, is_lonely, theta, found, begin, end):
    """Put the columns that smooth row i of P into `found` between two places; returns how many they are."""
    count = 0
    if not is_lonely[i]:
        for k in range(strong_indptr[i], strong_indptr[i + 1]):
            if begin + count < end:
                found[begin + count] = strong_indices[k]
            count += 1
        return count
    most = 0.0
    for k in range(indptr[i], indptr[i + 1]):
        if indices[k] != i:
            most = max(most, np.float64(-values[k].real))
    for k in range(indptr[i], indptr[i + 1]):
        if indices[k] == i or (values[k].real < 0 and -values[k].real >= theta * most):
            if begin + count < end:
                found[begin + count] = indices[k]
            count += 1
    return count


@KERNELS.per_item
def count_kept(first, end, indptr, indices, values, strong_indptr, strong_indices, is_lonely, theta, counts):
    """How many these are."""
    nothing = np.empty(0, np.int32)
    for i in range(first, end):
        strong = strong_indptr, strong_indices, is_lonely, theta
        counts[i] = put_kept(i, indptr, indices, values, *strong, nothing, 0, 0)


@KERNELS.per_item
def list_kept(first, end, indptr, indices, values, strong_indptr, strong_indices, is_lonely, theta, kept_indptr, kept):
    """These."""
    for i in range(first, end):
        strong = strong_indptr, strong_indices, is_lonely, theta
        put_kept(i, indptr, indices, values, *strong, kept, kept_indptr[i], kept_indptr[i + 1])
