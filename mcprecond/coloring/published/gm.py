"""GM, the three-step coloring of Gebremedhin and Manne (Concurrency: Practice and Experience 12, 2000).

1. Every processor has a contiguous block of the vertices and colors it first-fit, one vertex after the other, while all
   others color theirs.
2. In parallel, the smaller end of every edge in conflict loses its color.
3. Serially, those that lost theirs are colored first-fit.

A processor is a thread on the CPU and a warp on the GPU, where one block of threads shares the rows of step 3. That
step is the bottleneck of the method; IPGC (`vertex_based`) repeats steps 1 and 2 instead. Summarized by Sistla and
Nandivada (Section 1) and by Osama et al. (Section II-A).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_loop
from mcprecond.coloring.graph import UNCOLORED, Graph
from mcprecond.coloring.history import log_round, new_log
from mcprecond.coloring.jp import smallest_free_color
from mcprecond.coloring.published.vertex_based import detect_conflicts

KERNELS = KernelSet(__file__, "OFFSET")

PROCESSORS = 64  # on the CPU: blocks of vertices, for as many threads as there are


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
        At most max_degree + 1 of them; not reproducible from run to run, since threads race by design.
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


@compile_loop(grain=1)
def color_blocks(first, end, n, indptr, indices, C):
    """Step 1."""
    share = -(-n // PROCESSORS)
    for t in range(first, end):
        for v in range(t * share, min((t + 1) * share, n)):
            C[v] = smallest_free_color(v, 1, indptr, indices, C)


@KERNELS.resident
def color_and_repair(n, indptr, indices, degrees, C, conflicts, scratch, log):
    """All three steps."""
    C[:] = UNCOLORED
    color_blocks(0, PROCESSORS, n, indptr, indices, C)
    lost = detect_conflicts(np.arange(n), 1, indptr, indices, degrees, False, C)
    for v in lost:
        C[v] = smallest_free_color(v, 1, indptr, indices, C)
    if n:
        log_round(log, n, len(lost))
    if len(lost):
        log_round(log, len(lost), 0)
