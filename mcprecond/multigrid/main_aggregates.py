"""The aggregates that a row of P reaches where nodes have several unknowns: those with enough of the node's neighbors.

After a Jacobi step a row of P has a block for every aggregate with a neighbor of the node, even if that is a single
weak one of 26 neighbors. Blocks of such aggregates are small, but they couple more aggregates on the next level, each
by k^2 entries. They are left out, and the block of the node's own aggregate is changed so that P times the coarse
candidates stays the same. The filtered matrix does likewise when it adds weak entries to the diagonal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import Backend, KernelSet
from mcprecond.linalg.csr import lanes_for
from mcprecond.multigrid.patterns import Pattern, gather_rows, in_one_dtype

KERNELS = KernelSet(__file__, "OFFSET LANES")

#: A block of P is kept if at least one out of NEIGHBORS_OF_ONE strong neighbors of the node belongs to the aggregate of
#: the block. The node counts as its own neighbor.
NEIGHBORS_OF_ONE = 12
CUDA_CONSTANTS = {"NEIGHBORS_OF_ONE": NEIGHBORS_OF_ONE}


def main_aggregates(pattern: Pattern, strong: Pattern, labels: Any, backend: Backend) -> Pattern:
    """Return the pattern of P without the blocks that are left out.

    Parameters
    ----------
    pattern : pattern
        Of P, with all blocks, by nodes.
    strong : pattern
        The strong connections of nodes, with the diagonal.
    labels : array of int32, shape (n_nodes,)
        The aggregate of each node; rows of nodes without one keep all blocks.
    """
    xp, n, blocks = backend.xp, len(labels), len(pattern[1])
    of_P, of_strong = in_one_dtype(pattern[0], strong[0])
    counts, found = xp.empty(n + 1, of_P.dtype), xp.empty(blocks, np.int32)
    run = backend.kernels(KERNELS, OFFSET=of_P.dtype, LANES=lanes_for(blocks / max(n, 1)))
    run.find_main(n, of_P, pattern[1], of_strong, strong[1], labels, counts, found)
    return gather_rows(of_P, counts, found, backend)


@KERNELS.per_item
def find_main(first, end, P_indptr, columns, indptr, indices, labels, counts, found):
    """Write the blocks that stay in row v of P to `found`, from ``P_indptr[v]`` on, and their number to
    ``counts[v + 1]``.
    """
    for v in range(first, end):
        if v == 0:
            counts[0] = 0
        place = P_indptr[v]
        for e in range(P_indptr[v], P_indptr[v + 1]):
            count = 0
            for k in range(indptr[v], indptr[v + 1]):
                count += labels[indices[k]] == columns[e]
            is_own = labels[v] < 0 or labels[v] == columns[e]
            if is_own or count * NEIGHBORS_OF_ONE >= indptr[v + 1] - indptr[v]:
                found[place] = columns[e]
                place += 1
        counts[v + 1] = place - P_indptr[v]
