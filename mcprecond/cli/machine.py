"""The commands about this machine: what it is, and what is compiled on it ahead."""

from __future__ import annotations

import time
from typing import Annotated

import scipy.sparse

import mcprecond
from mcprecond.cli import terminal
from mcprecond.cli.arguments import backend_for
from mcprecond.cli.parsing import AsJson, Option
from mcprecond.cli.terminal import print_facts
from mcprecond.problems.placing import place_matrix
from mcprecond.studies.surroundings import surroundings


def info(as_json: AsJson = False) -> None:
    """Print what a report of a bug needs: versions, the machine, the GPU or why none can be used, settings, caches.

    Example: mcprecond info --json
    """
    print_facts(surroundings() | {"methods": ", ".join(mcprecond.COLORINGS)}, as_json)


def warmup(
    gpu: Annotated[bool, Option("Compile for the GPU.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compile ahead what first solves in float64 need: CG, Gauss-Seidel and multigrid, by a small system.

    Example: mcprecond warmup --gpu
    """
    backend = backend_for(gpu)
    start = time.perf_counter()
    with terminal.err.status("solving a small system"):
        # A product by SciPy, whose rows are not sorted: that is checked and mended, which `problems` do not need.
        grid = scipy.sparse.diags_array([-1.0, -1, 4, -1, -1], offsets=[-30, -1, 0, 1, 30], shape=(900, 900)).tocsr()
        for A in (mcprecond.problems.laplacian((30, 30)), grid @ grid):
            A = place_matrix(A, backend)
            b = A @ backend.xp.ones(A.shape[0])
            for M in (None, mcprecond.MulticolorSGS(A), mcprecond.SmoothedAggregation(A)):
                mcprecond.pcg(A, b, M=M)
        backend.synchronize()
    print_facts({"device": backend.name, "seconds": time.perf_counter() - start}, as_json)
