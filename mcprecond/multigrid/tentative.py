"""The tentative prolongator T, which has the near-null-space candidates in its range.

On each aggregate its columns are an orthonormal basis of them: T B_c = B.

Vanek, Mandel, Brezina: Algebraic Multigrid by Smoothed Aggregation for Second and Fourth Order Elliptic Problems,
Computing 56, 1996, Algorithm 5.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mcprecond.backends import NUMBERS, Backend, KernelSet, compile_row, offset_type
from mcprecond.backends.cuda_source import BLOCK, WARP
from mcprecond.linalg.csr import lanes_for
from mcprecond.multigrid.patterns import transpose_pattern
from mcprecond.multigrid.products import Rows

KERNELS = KernelSet(__file__, "OFFSET VALUE LANES")

#: A block of threads works on each aggregate if these are at most so many times the threads that a GPU runs at once.
MOST_BLOCKS = 8

#: A candidate is dropped on an aggregate if orthogonalization leaves less than this fraction of its norm.
DEPENDENT = {"f": 1e-5, "d": 1e-10}


@dataclass(frozen=True)
class Tentative:
    """T of a level, by its rows.

    Attributes
    ----------
    labels : array of int32, shape (n_nodes,)
        The aggregate of each node, or -1.
    count : int
        How many aggregates there are.
    Q : array, shape (n, k)
        Row i of T: its entries in columns k a .. k a + k - 1 of its aggregate a. Zero where there is none.
    B : array, shape (count * k, k)
        The candidates of the coarse level.
    vanished : array of int, or None
        Unknowns of the coarse level that stand for nothing: aggregates do without the candidates that depend on others.
    """

    labels: Any
    count: int
    Q: Any
    B: Any
    vanished: Any


def fit_tentative(
    labels: Any, count: int, B: Any, block_size: int, backend: Backend, may_vanish: bool = True
) -> Tentative:
    """Return T for some aggregates and candidates B of shape (n, k). If `may_vanish` is False, no candidate is zero on
    a whole aggregate, and the host does not have to wait for the result.
    """
    xp, k = backend.xp, B.shape[1]
    (offsets, members), _, _ = transpose_pattern((None, labels), count, backend)
    Q, coarse, any_vanished = xp.zeros_like(B), xp.empty((count * k, k), B.dtype), backend.zeros(1, np.int32)
    lanes = lanes_for(B.shape[0] / max(count, 1))
    if k == 1 and count * BLOCK <= MOST_BLOCKS * WARP * backend.resident_warps:
        lanes = BLOCK  # where a graph has hubs, some of a few aggregates are large
    run = backend.kernels(KERNELS, OFFSET=offsets.dtype, VALUE=B.dtype, LANES=lanes)
    tiny = DEPENDENT[B.dtype.char.lower()]
    run.fit_candidates(
        count, offsets, members, block_size, k, tiny, B.reshape(-1), Q.reshape(-1), coarse.reshape(-1), any_vanished
    )
    vanished = None
    if may_vanish and int(any_vanished[0]):
        vanished = xp.flatnonzero(xp.diagonal(coarse.reshape(count, k, k), axis1=1, axis2=2).reshape(-1) == 0)
    return Tentative(labels, count, Q, coarse, vanished)


def rows_of_labels(labels: Any, values: Any, backend: Backend) -> Rows:
    """The pattern of T, in which a row lists the label of a node, or nothing where that is -1; for numbers of the dtype
    of some values.
    """
    n = len(labels)
    begins, ends = backend.xp.empty((2, n), offset_type(n))
    run = backend.kernels(KERNELS, OFFSET=begins.dtype, VALUE=values.dtype, LANES=1)
    run.list_labels(n, labels, begins, ends)
    return Rows(begins, ends, labels, values[:0])


# On the CPU.


@KERNELS.per_item(grain=NUMBERS)
def list_labels(first, end, labels, begins, ends):
    """Where the list of each node begins and ends."""
    for v in range(first, end):
        begins[v], ends[v] = v, v + (labels[v] >= 0)


@compile_row
def orthogonalize(a, offsets, members, b, k, tiny, B, Q, R, any_vanished):
    """Modified Gram-Schmidt, twice, on the rows of aggregate a."""
    first, end, own = offsets[a], offsets[a + 1], a * k * k
    for place in range(own, own + k * k):
        R[place] = 0
    for c in range(k):
        before = after = 0.0
        for m in range(first, end):
            for i in range(members[m] * b, (members[m] + 1) * b):
                Q[i * k + c] = B[i * k + c]
                before += abs(Q[i * k + c]) ** 2
        for _ in range(2):
            for d in range(c):
                product = Q.dtype.type(0)
                for m in range(first, end):
                    for i in range(members[m] * b, (members[m] + 1) * b):
                        product += np.conj(Q[i * k + d]) * Q[i * k + c]
                for m in range(first, end):
                    for i in range(members[m] * b, (members[m] + 1) * b):
                        Q[i * k + c] -= product * Q[i * k + d]
                R[own + d * k + c] += product
        for m in range(first, end):
            for i in range(members[m] * b, (members[m] + 1) * b):
                after += abs(Q[i * k + c]) ** 2
        norm = np.sqrt(after)
        vanished = not norm > tiny * np.sqrt(before)
        R[own + c * k + c] = 0 if vanished else norm
        if vanished:
            any_vanished[0] = 1
        factor = Q.real.dtype.type(0 if vanished else 1 / norm)
        for m in range(first, end):
            for i in range(members[m] * b, (members[m] + 1) * b):
                Q[i * k + c] *= factor


@KERNELS.per_item
def fit_candidates(first, end, offsets, members, b, k, tiny, B, Q, R, any_vanished):
    """On each aggregate Q becomes an orthonormal basis of the candidates B, and R the factor in B = Q R.

    A candidate that depends on those before it is left out: its column, and its diagonal entry of R, are zero.
    """
    for a in range(first, end):
        orthogonalize(a, offsets, members, b, k, tiny, B, Q, R, any_vanished)
