"""Solves with many kinds of matrices: our preconditioners and the library's CG, beside our own CG, all in one run.

    python benchmarks/solves.py gpu
    python benchmarks/solves.py cpu rmat_18 star     # some of the matrices

writes benchmarks/results/solves-gpu.json or solves-cpu.json (or where --output says). b = A x* with random x*. Setup
and solve are timed from call to result, and medians are taken; products and applications on a GPU are timed there.
`peak_over_matrix` is the memory that setup takes at most, beside the matrix. `candidates` is what "auto" predicts.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from cases import BLOCK_SIZES, SEED, SOLVED
from choices import predicted
from measure import application, measure_each, parser_of, queued_ms, timed_in_turns, wall_ms

from mcprecond import MulticolorSGS, pcg
from mcprecond.backends import get_backend
from mcprecond.linalg.csr import product_with
from mcprecond.matrix import admit_matrix
from mcprecond.studies.measure import peak_bytes
from mcprecond.tuning.cost_model import speeds_of

RTOL, MAXITER = 1e-8, 20_000
COLORINGS = ("auto", "eb", "ecl_gc", "greedy", "jp")


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("names", nargs="*", default=list(SOLVED), metavar="NAME", help=", ".join(SOLVED))
    parser.add_argument("--colorings", nargs="+", default=COLORINGS, help="of SGS")
    arguments = parser.parse_args()
    given = arguments.small, arguments.device, arguments.colorings, arguments.repeats
    cases = {name: partial(measure_case, name, *given) for name in arguments.names}
    measure_each("solves", arguments, cases, rtol=RTOL)


def measure_case(name: str, small: bool, device: str, colorings: list[str], repeats: int) -> dict[str, Any]:
    A = SOLVED[name](small, device)
    backend, n = get_backend(device), A.shape[0]
    xp = backend.xp
    x, y = xp.asarray(np.random.default_rng(SEED).standard_normal(n)), xp.empty(n)
    b, product = A @ x, product_with(admit_matrix(A, finite=True))
    bytes_of_A = A.data.nbytes + A.indices.nbytes + A.indptr.nbytes

    def device_ms(function: Any) -> float:
        return wall_ms(function, backend.synchronize, repeats) if device == "cpu" else queued_ms(function)

    case: dict[str, Any] = {
        "unknowns": n,
        "nnz": int(A.nnz),
        "longest_row": int(xp.diff(A.indptr).max()),
        "product_ms": device_ms(application(product, x, y)),
        "library_product_ms": device_ms(lambda: A @ x),
        "candidates": predicted(A, speeds_of(backend), BLOCK_SIZES.get(name, 1)),
        "solvers": [],
    }

    solves: dict[str, Any] = {}
    setups: dict[str, Any] = {}

    def add(solver: str, solve: Any, iterations: int, **more: Any) -> None:
        residual = float(xp.linalg.norm(b - A @ solve()) / xp.linalg.norm(b))
        case["solvers"].append({"name": solver, "iterations": iterations, "residual": residual} | more)
        solves[solver] = solve

    def jacobi() -> Any:
        return backend.sparse.diags(1 / A.diagonal(), format="csr")

    setups |= {"library Jacobi": jacobi, "pcg Jacobi": jacobi}
    for label, M in (("CG", None), ("Jacobi", jacobi())):
        counted: list[int] = []
        backend.linalg.cg(A, b, rtol=RTOL, maxiter=MAXITER, M=M, callback=lambda _, counted=counted: counted.append(1))
        add(f"library {label}", lambda M=M: backend.linalg.cg(A, b, rtol=RTOL, maxiter=MAXITER, M=M)[0], len(counted))
        result = pcg(A, b, rtol=RTOL, maxiter=MAXITER, M=M)
        add(f"pcg {label}", lambda M=M: pcg(A, b, rtol=RTOL, maxiter=MAXITER, M=M).x, result.iterations)
    for coloring in colorings:

        def build(coloring: str = coloring) -> Any:
            return MulticolorSGS(A, coloring, block_size=BLOCK_SIZES.get(name, 1))

        M = build()
        add(
            f"SGS {coloring}",
            lambda M=M: pcg(A, b, rtol=RTOL, maxiter=MAXITER, M=M).x,
            pcg(A, b, rtol=RTOL, maxiter=MAXITER, M=M).iterations,
            method=M.coloring.method,
            colors=M.n_colors,
            apply_ms=device_ms(application(M, b, y)),
            peak_over_matrix=peak_bytes(build, device) / bytes_of_A,
        )
        setups[f"SGS {coloring}"] = build
    for key, functions in (("setup", setups), ("solve", solves)):
        times = timed_in_turns(functions, repeats, backend, small=small)
        for row in case["solvers"]:
            if row["name"] in times:
                row[key] = times[row["name"]]
    return case


if __name__ == "__main__":
    main()
