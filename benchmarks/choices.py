"""What coloring="auto" predicts for the matrices of solves.py, without a solve: no device is needed.

    python benchmarks/choices.py gpu             # by the speeds of an H200 that the cost model has
    python benchmarks/choices.py cpu rmat_18     # some of the matrices

writes benchmarks/results/choices-gpu.json or choices-cpu.json (or where --output says). The pages hold this against the
times in solves-gpu.json and solves-cpu.json. A run of solves.py records the same beside its times.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from cases import BLOCK_SIZES, SOLVED
from measure import measure_each, parser_of

from mcprecond.matrix import admit_matrix
from mcprecond.tuning.cost_model import MEASURED, Speeds
from mcprecond.tuning.least_time import choose

ITERATIONS = 100  # as "auto" counts on


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("names", nargs="*", default=list(SOLVED), metavar="NAME", help=", ".join(SOLVED))
    arguments = parser.parse_args()
    cases = {name: partial(measure, name, arguments.device, arguments.small) for name in arguments.names}
    measure_each("choices", arguments, cases, on="cpu", speeds=arguments.device)


def measure(name: str, device: str, small: bool) -> dict[str, Any]:
    matrix = SOLVED[name]
    A = matrix.make(matrix.size(small, device), "cpu")
    candidates = predicted(A, MEASURED[device], BLOCK_SIZES.get(name, 1))
    return {"unknowns": A.shape[0], "nnz": int(A.nnz), "candidates": candidates}


def predicted(A: Any, speeds: Speeds, block_size: int = 1) -> list[dict[str, Any]]:
    """The candidates of "auto" for 100 iterations, best first, with what is predicted for them."""
    return [
        {
            "method": candidate.method,
            "colors": candidate.n_colors,
            "coloring_ms": 1e3 * candidate.coloring_seconds,
            "iteration_ms": 1e3 * candidate.iteration_seconds,
            "total_ms": 1e3 * candidate.total_seconds,
        }
        for candidate in choose(admit_matrix(A, finite=True), ITERATIONS, speeds, block_size).candidates
    ]


if __name__ == "__main__":
    main()
