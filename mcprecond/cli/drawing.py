"""The command that draws."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np

import mcprecond
from mcprecond.backends import get_backend
from mcprecond.backends.arguments import one_of
from mcprecond.cli.arguments import check_output, coloring_method, read, symmetric
from mcprecond.cli.parsing import File, Option
from mcprecond.cli.solving import set_up
from mcprecond.cli.terminal import working
from mcprecond.studies.whole_files import write_whole

#: What `plot` can show.
PICTURES = ("pattern", "levels", "convergence")


def plot(
    file: File,
    output: Annotated[Path, Option("The picture: .png or .svg.")],
    what: Annotated[str, Option("pattern, levels or convergence.")] = "pattern",
    coloring: Annotated[str, Option("A method of `mcprecond info`, or auto.")] = "greedy",
) -> None:
    """Draw a matrix: its pattern by color blocks, the levels of triangular solves, or how CG converges on it.

    Needs matplotlib, which the extra studies brings.

    Example: mcprecond plot matrix.mtx --what pattern --output pattern.png
    """
    check_output(output, ".png", ".svg")
    one_of(what, "--what", PICTURES)
    named = coloring_method(coloring, "--coloring")
    from mcprecond.studies import plots

    with working(f"reading {file}") as work:
        A = read(file) if what == "pattern" else symmetric(read(file), file)
        work.update(f"drawing {what}")
        if what == "pattern":
            ax = plots.color_blocks(A, mcprecond.color(A, named))
        elif what == "levels":
            orders = {
                "row order": mcprecond.ILU0(A, ordering="natural"),
                f"{coloring} colors": mcprecond.ILU0(A, coloring=named),
            }
            ax = plots.level_sizes({name: M.levels for name, M in orders.items()})
        else:
            b = A @ np.random.default_rng(0).standard_normal(A.shape[0])
            makers = {"none": "none", "Jacobi": "jacobi", f"SGS {coloring}": "sgs", "multigrid": "multigrid"}
            results = {}
            for name, kind in makers.items():
                work.update(f"solving with {name}")
                M, _ = set_up(A, kind, named, get_backend("cpu"))
                results[name] = mcprecond.pcg(A, b, rtol=1e-8, M=M)
            ax = plots.residual_history(results)
        ax.set_title(file.name)
        with write_whole(output) as part:
            ax.figure.savefig(part, dpi=150, bbox_inches="tight", format=output.suffix[1:])
    print(output)
