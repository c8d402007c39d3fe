"""Orders of rows: by colors of rows, in blocks of several sizes, and row order; symmetric Gauss-Seidel and ILU(0).

    python benchmarks/blocks.py cpu
    python benchmarks/blocks.py gpu fenl_180 elasticity48     # some of the matrices

writes benchmarks/results/blocks-cpu.json or blocks-gpu.json (or where --output says). b = A x* with random x*. What is
timed, from call to result, is coloring in blocks, setup with it, and solve; those of one matrix and preconditioner take
turns. A coloring of rows is found in its setup. `steps` are the levels on a GPU. Blocks are clusters of at most so many
rows, colored first-fit; slabs are rows that follow each other, in a compact order where their own is bad, so many to a
matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from cases import MATRICES, SEED, SOLVED
from measure import measure_each, parser_of, timed_in_turns

from mcprecond import ILU0, MulticolorSGS, color, pcg
from mcprecond.backends import get_backend
from mcprecond.coloring import Graph
from mcprecond.matrix import admitted
from mcprecond.ordering.levels import levels_of

RTOL, MAXITER = 1e-8, 20_000
NAMES = {
    "cpu": [
        "fenl_50",
        "fenl_100",
        "elasticity48",
        "grid2d_1024",
        "circuit1259",
        "shuffled_fenl_50",
        "p1_delaunay",
        "jumping",
        "rgg",
        "constrained",
    ],
    "gpu": ["fenl_50", "fenl_100", "fenl_180", "elasticity48", "circuit1259", "grid2d_1024"],
}
SIZES = {"cpu": (8, 64, 512), "gpu": (4, 8, 16, 32)}
SLABS = {"cpu": (64,), "gpu": ()}
KINDS: dict[str, Callable[..., Any]] = {"SGS": MulticolorSGS, "ILU0": partial(ILU0, ordering="color")}
FEWEST = 16  # blocks that a matrix is cut into


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SOLVED))
    arguments = parser.parse_args()
    given = arguments.small, arguments.device, arguments.repeats
    cases = {name: partial(measure_case, name, *given) for name in arguments.names or NAMES[arguments.device]}
    measure_each("blocks", arguments, cases, rtol=RTOL)


def orders_of(A: Any, device: str) -> dict[str, Callable[[], Any]]:
    """What `coloring` may be, by the names in the results; row order is that of its levels."""
    n = A.shape[0]
    found: dict[str, Callable[[], Any]] = {"rows": lambda: "auto"}
    if device == "cpu":
        found["row order"] = lambda: levels_of(Graph.of(A), None)
    for size in SIZES[device]:
        if size * FEWEST <= n:
            found[f"blocks of {size}"] = partial(color, A, "greedy", blocks=size)
    for count in SLABS[device]:
        found[f"{count} slabs"] = partial(in_slabs, A, count)
    return found


def in_slabs(A: Any, count: int) -> Any:
    """The coloring of so many slabs, on a CPU."""
    labels = np.arange(A.shape[0]) * count // A.shape[0]
    order = admitted(A).compact_order
    if order is not None:
        labels[order] = labels.copy()
    return color(A, "greedy", blocks=labels)


def measure_case(name: str, small: bool, device: str, repeats: int) -> dict[str, Any]:
    backend, A = get_backend(device), (MATRICES | SOLVED)[name](small, device)
    b = A @ backend.xp.asarray(np.random.default_rng(SEED).standard_normal(A.shape[0]))
    orders, rows = orders_of(A, device), []
    colorings = {order: find() for order, find in orders.items()}
    coloring = timed_in_turns(orders, repeats, backend.synchronize)
    for title, kind in KINDS.items():
        makers = {order: partial(kind, A, coloring=found) for order, found in colorings.items()}
        operators = {order: make() for order, make in makers.items()}
        results = {order: pcg(A, b, M=M, rtol=RTOL, maxiter=MAXITER) for order, M in operators.items()}
        solves = {
            order: partial(pcg, A, b, M=M, rtol=RTOL, maxiter=MAXITER)
            for order, M in operators.items()
            if results[order].converged
        }
        setup = timed_in_turns(makers, repeats, backend.synchronize)
        solve = timed_in_turns(solves, repeats, backend.synchronize)
        for order, M in operators.items():
            row = {
                "preconditioner": title,
                "order": order,
                "colors": M.coloring.n_colors,
                "steps": len(M.blocks.offsets) - 1,
                "iterations": results[order].iterations,
                "converged": results[order].converged,
                "coloring_ms": coloring[order]["ms"],
                "setup_ms": setup[order]["ms"],
                "solve_ms": solve[order]["ms"] if order in solve else None,
            }
            rows.append(row)
    return {"unknowns": A.shape[0], "nnz": int(A.nnz), "rows": rows}


if __name__ == "__main__":
    main()
