"""FENL from 17,576 to 27 million unknowns on a GPU: what an iteration, an application and a product cost per unknown.

    python benchmarks/weak_scaling.py                    # n = 25 to 300
    python benchmarks/weak_scaling.py 25 50 --output x.json

writes benchmarks/results/weak-scaling-gpu.json (or where --output says). Device times of replayed graphs, but for the
library's product (queued calls); the iteration is that of PCG in Eisenstat's form.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
from measure import application, begin_endless, graph_ms, measure_each, parser_of, queued_ms

from mcprecond import MulticolorSGS, problems
from mcprecond.backends import get_backend
from mcprecond.solvers.iteration import RUNNING

SEED = 0
SIZES = [25, 50, 75, 100, 150, 200, 250, 300]
#: Row of the results -> coloring. On a GPU "greedy" is `jp` in row order.
COLORINGS = {"natural": "greedy", "eb": "eb"}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("n", type=int, nargs="*", help="by default those of the record")
    arguments = parser.parse_args()
    sizes = arguments.n or ([8] if arguments.small else SIZES)
    cases = {f"fenl_{n}": partial(measure_case, n, arguments.device, arguments.repeats) for n in sizes}
    measure_each("weak-scaling", arguments, cases)


def measure_case(n: int, device: str, repeats: int) -> dict[str, Any]:
    backend = get_backend(device)
    xp, problem = backend.xp, problems.fenl(n, device=device)
    A = problem.jacobian(problem.exact())
    b = A @ xp.asarray(np.random.default_rng(SEED).uniform(-1, 1, A.shape[0]))
    case: dict[str, Any] = {"unknowns": A.shape[0], "nnz": int(A.nnz)}
    case["spmv_ms"] = queued_ms(lambda: A @ b, repeats=repeats)
    for label, coloring in COLORINGS.items():
        case[label] = measure_coloring(A, b, coloring, backend, repeats)
        xp.get_default_memory_pool().free_all_blocks()
    return case


def measure_coloring(A: Any, b: Any, coloring: str, backend: Any, repeats: int) -> dict[str, Any]:
    backend.synchronize()
    started = time.perf_counter()
    M, z = MulticolorSGS(A, coloring), backend.xp.empty_like(b)
    backend.synchronize()
    # Setting up is timed once; the first case compiles kernels.
    row = {"colors": M.n_colors, "setup_once_ms": 1e3 * (time.perf_counter() - started)}
    row["apply_ms"] = graph_ms(application(M, b, z), repeats=repeats)
    iteration = begin_endless(A, M, b, backend)
    row["iteration_ms"] = graph_ms(iteration._step, repeats=repeats)
    assert iteration.read_state() == RUNNING, "an iteration that did nothing was timed"
    return row


if __name__ == "__main__":
    main()
