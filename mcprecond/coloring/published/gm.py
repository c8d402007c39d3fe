"""GM, the three-step coloring of Gebremedhin and Manne (Concurrency: Practice and Experience 12, 2000).

1. Every processor has a contiguous block of the vertices and colors it first-fit, one vertex after the other, while all
   others color theirs.
2. In parallel, the smaller end of every edge in conflict loses its color.
3. Serially, those that lost theirs are colored first-fit.

A processor is a warp of a GPU, where one block of threads shares the rows of step 3. That step is the bottleneck of the
method; IPGC (`vertex_based`) repeats steps 1 and 2 instead. Summarized by Sistla and Nandivada (Section 1) and by Osama
et al. (Section II-A). On a CPU one processor colors all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet
from mcprecond.coloring.graph import Graph
from mcprecond.coloring.history import new_log
from mcprecond.coloring.published.speculation import color_alone

KERNELS = KernelSet(__file__, "OFFSET")


def gm(graph: Graph, *, seed: int = 0) -> tuple[Any, Any]:
    """Color by GM: speculate once, then repair serially.

    Parameters
    ----------
    graph : Graph
    seed : int
        Accepted for uniformity; no random numbers are drawn.

    Returns
    -------
    colors : array of int32, shape (n,)
        At most max_degree + 1 of them; not reproducible from run to run on a GPU, since threads race by design.
    log : array of int32, shape (rows, 2)
        The parallel steps, and the serial one where there is anything to repair. See `Coloring.history`.

    Examples
    --------
    >>> import scipy.sparse
    >>> from mcprecond import color
    >>> A = scipy.sparse.diags_array([1.0, 2.0, 1.0], offsets=[-1, 0, 1], shape=(6, 6), format="csr")
    >>> color(A, "gm").n_colors <= 3
    True
    """
    xp, n = graph.backend.xp, graph.n
    C, conflicts = xp.empty(n, np.int32), xp.empty(n, np.int32)
    scratch, log = xp.zeros(4, np.int32), new_log(graph)
    run = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype)
    run.color_and_repair(n, graph.indptr, graph.indices, graph.degrees, C, conflicts, scratch, log)
    return C, log


@KERNELS.resident
def color_and_repair(n, indptr, indices, degrees, C, conflicts, scratch, log):
    """Step 1 of one processor, which leaves nothing to repair."""
    color_alone(indptr, indices, np.arange(n), C, log)
