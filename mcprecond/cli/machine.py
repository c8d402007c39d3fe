"""The commands about this machine: what it is, and what is compiled on it ahead."""

from __future__ import annotations

import time
from functools import partial
from typing import Annotated

import mcprecond
from mcprecond.cli import terminal
from mcprecond.cli.arguments import backend_for
from mcprecond.cli.parsing import AsJson, Option
from mcprecond.cli.small_systems import solve_small_systems
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
    """Compile ahead what first solves in float64 need: CG, Gauss-Seidel, ILU(0) and multigrid, by small systems.

    Example: mcprecond warmup --gpu
    """
    backend = backend_for(gpu)
    start = time.perf_counter()
    with terminal.err.status("solving small systems"):
        solve_small_systems(backend, partial(place_matrix, backend=backend))
    print_facts({"device": backend.name, "seconds": time.perf_counter() - start}, as_json)
