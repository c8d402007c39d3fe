"""What a coloring adds to the preconditioner: by how much iterations differ between colorings.

Where U is what comes later in the order of colors, M - A = transpose(U) inv(D) U, and the iterations of CG grow like
the square root of what M adds to A for smooth vectors. For the smoothest, all ones, that is the

    remainder = sum over i of (sum of a_ij over all j of a later color)^2 / |a_ii|.

In blocks, j is of another node. It is smallest where every unknown has half of its neighbors before it, 4/3 of that in
random orders, and up to twice as large with two colors. (Doi, Washio: Ordering strategies and related techniques to
overcome the trade-off between parallelism and convergence in incomplete factorizations, Parallel Computing 25, 1999,
explain why many colors converge faster.) For elasticity, whose smooth vectors are not all of this kind, the ratio comes
out too small.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import prange

from mcprecond.backends import KernelSet
from mcprecond.matrix import AdmittedMatrix

KERNELS = KernelSet(__file__)

AVERAGE_ORDER = 4 / 3  # the remainder of a random order over the smallest one


def remainder_of(matrix: AdmittedMatrix, colors: Any | None, block_size: int = 1) -> float:
    """The remainder of a coloring, of nodes in blocks; without one, the least that any order may have."""
    backend, n = matrix.backend, matrix.shape[0]
    xp = backend.xp
    every = colors is None
    if every:
        colors = xp.zeros(n, np.int32)
    terms = xp.empty(n, np.float64)
    backend.kernels(KERNELS, OFFSET=matrix.indptr.dtype, VALUE=matrix.dtype, LANES=8).remainders(
        n, matrix.indptr, matrix.indices, matrix.data, block_size, colors, int(every), terms
    )
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(terms.sum())
    return total if math.isfinite(total) else 0.0


@KERNELS.twin
def remainders(n, indptr, indices, values, block_size, colors, every, terms):
    """(sum_j a_ij)^2 / |a_ii| over the j of a later color, or half of that over all j of other nodes; real parts."""
    for i in prange(n):
        node = i // block_size
        total = diagonal = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            other = indices[k] // block_size
            if indices[k] == i:
                diagonal += values[k].real
            elif other != node and (every or colors[other] > colors[node]):
                total += values[k].real
        if every:
            total *= 0.5
        terms[i] = total * total / abs(diagonal) if diagonal != 0 else 0.0
