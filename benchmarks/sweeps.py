"""Sweeps and solvers on matrices of several kinds: what an application, an iteration and a solve cost, all in one run.

    python benchmarks/sweeps.py gpu                      # the full sizes
    python benchmarks/sweeps.py cpu --small              # the same kinds, small

writes benchmarks/results/sweeps-gpu.json or sweeps-cpu.json (or where --output says). b = A x* with random x*.
Baselines in the same run: the library's product and CG and ours, plain and with Jacobi, one pass over the matrix
at the speed of a copy, and the cost model of a sweep with one launch per color. Elasticity is swept point by point, and
in blocks of the three unknowns of a node.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from cases import MATRICES, SEED
from measure import application, begin_endless, graph_ms, measure_each, parser_of, queued_ms, wall_ms

from mcprecond import ILU0, MulticolorDILU, MulticolorSGS, color, pcg
from mcprecond.backends import get_backend
from mcprecond.matrix import admit_matrix
from mcprecond.solvers.eisenstat import eisenstat_incompatibility
from mcprecond.solvers.iteration import RUNNING
from mcprecond.storage.node_blocks import node_pattern

RTOL = 1e-8
CASES = ["fenl_50", "fenl_100", "fenl_180", "elasticity48", "grid2d_1024"]
#: Row of the results -> coloring. On a GPU "greedy" is `jp` in row order.
COLORINGS = {"eb": "eb", "natural": "greedy"}
#: Case -> unknowns per block, where not only points are swept.
BLOCKS = {"elasticity48": 3}
# The model of one launch per color: seconds between dependent launches, and the vector read at each of them.
LAUNCH, VECTOR_BYTES = 1.9e-6, 16


def main() -> None:
    parser = parser_of(__doc__, repeats=10)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES)
    arguments = parser.parse_args()
    given = arguments.device, arguments.small, arguments.repeats
    cases = {name: partial(measure_case, name, *given) for name in arguments.cases}
    measure_each("sweeps", arguments, cases, rtol=RTOL, launch_seconds=LAUNCH, copied_by="kernel")


def measure_case(name: str, device: str, small: bool, repeats: int) -> dict[str, Any]:
    backend = get_backend(device)
    xp, A = backend.xp, MATRICES[name](small, device)
    b = A @ xp.asarray(np.random.default_rng(SEED).uniform(-1, 1, A.shape[0]))

    def wall(call: Callable[[], Any]) -> float:
        return wall_ms(call, backend.synchronize, repeats)

    def device_ms(call: Callable[[], Any]) -> float:
        return graph_ms(call, repeats=repeats) if device == "gpu" else wall(call)

    copied = xp.zeros(A.nnz * 12 // 8, xp.float64)
    target = xp.empty_like(copied)
    case: dict[str, Any] = {
        "unknowns": A.shape[0],
        "nnz": int(A.nnz),
        "spmv_ms": queued_ms(lambda: A @ b) if device == "gpu" else wall(lambda: A @ b),
        # It reads and writes as many bytes as the matrix has: half of its time is one pass.
        "pass_ms": device_ms(lambda: xp.negative(copied, out=target)) / 2,
        "solvers": [],
        "sweeps": [],
    }

    def measure_sweeps(coloring: str, size: int, blocks: dict[str, Any]) -> dict[str, Any]:
        def setup(**options: Any) -> MulticolorSGS:
            return MulticolorSGS(A, coloring, **blocks, **options)

        M, z = setup(), xp.empty_like(b)
        rounded = setup(dtype="float32")
        as_numbered = color(A if size == 1 else node_pattern(admit_matrix(A), size), coloring)
        # In blocks, entries share a column index.
        matrix_bytes = (8 + 4 / size**2) * A.nnz
        launches, bandwidth = 2 * M.n_colors - 1, 12 * A.nnz / case["pass_ms"]
        model_ms = (matrix_bytes + VECTOR_BYTES * A.shape[0] * M.n_colors) / bandwidth + 1e3 * launches * LAUNCH
        row = {
            "block_size": size,
            "colors": M.n_colors,
            "matrix_bytes": matrix_bytes,
            "vector_bytes_per_color": VECTOR_BYTES * A.shape[0],
            "launches": launches,
            "model_ms": model_ms,
            "setup_ms": wall(setup),
            "update_ms": wall(lambda: M.update(A)),
            "apply_ms": device_ms(application(M, b, z)),
            "float32_apply_ms": device_ms(application(rounded, b, z)),
            "iterations_as_numbered": pcg(A, b, M=MulticolorSGS(A, as_numbered, **blocks), rtol=RTOL).iterations,
            "float32_iterations": pcg(A, b, M=rounded, rtol=RTOL).iterations,
            "bytes_over_matrix": M.nbytes / (A.data.nbytes + A.indices.nbytes + A.indptr.nbytes),
        }
        if eisenstat_incompatibility(A, M) is None:
            iteration = begin_endless(A, M, b, backend)
            row["iteration_ms"] = device_ms(iteration._step)
            assert iteration.read_state() == RUNNING, "an iteration that did nothing was timed"
        if size == 1:
            row["coloring_ms"] = wall(lambda: color(A, coloring))
        return row

    norm = float(xp.linalg.norm(b))

    def add(
        label: str,
        setup: Callable[[], Any],
        solve: Callable[[Any], tuple[Any, int]],
        count: Callable[[Any], int] | None = None,
    ) -> None:
        M = setup()
        x, iterations = solve(M)
        iterations = count(M) if count else iterations
        row = {"name": label, "iterations": iterations, "setup_ms": wall(setup), "solve_ms": wall(lambda: solve(M))}
        row |= {"total_ms": row["setup_ms"] + row["solve_ms"]}
        case["solvers"].append(row | {"relative_residual": float(xp.linalg.norm(b - A @ x)) / norm})
        if hasattr(M, "enqueue"):
            z = xp.empty_like(b)
            case["solvers"][-1]["apply_ms"] = device_ms(application(M, b, z))

    def jacobi() -> Any:
        return backend.sparse.csr_matrix(backend.sparse.diags(1 / A.diagonal()))

    def library_cg(M: Any, callback: Any = None) -> tuple[Any, int]:
        return backend.linalg.cg(A, b, M=M, maxiter=20000, rtol=RTOL, callback=callback)[0], 0

    def counted(M: Any) -> int:
        """Iterations of the library, which a callback counts; what is timed has none."""
        steps: list[None] = []
        library_cg(M, lambda x: steps.append(None))
        return len(steps)

    def our_cg(M: Any) -> tuple[Any, int]:
        result = pcg(A, b, M=M, rtol=RTOL)
        return result.x, result.iterations

    library = "cupyx" if device == "gpu" else "scipy"
    add(f"{library} cg", lambda: None, library_cg, counted)
    add(f"{library} cg Jacobi", jacobi, library_cg, counted)
    add("pcg", lambda: None, our_cg)
    add("pcg Jacobi", jacobi, our_cg)
    for label, coloring in COLORINGS.items():
        for size in dict.fromkeys([1, BLOCKS.get(name, 1)]):
            full = label if size == 1 else f"{label}, blocks of {size}"
            blocks: dict[str, Any] = {} if size == 1 else {"block_size": size}
            case["sweeps"].append({"name": full} | measure_sweeps(coloring, size, blocks))
            add(f"pcg SGS {full}", lambda: MulticolorSGS(A, coloring, **blocks), our_cg)
        add(f"pcg DILU {label}", lambda: MulticolorDILU(A, coloring), our_cg)
        add(f"pcg ILU0 {label} colors", lambda: ILU0(A, coloring=coloring), our_cg)
    add("pcg ILU0 natural order", lambda: ILU0(A, ordering="natural"), our_cg)
    case["auto"] = {"choice": str(MulticolorSGS(A, "auto").choice)}
    add("pcg SGS auto", lambda: MulticolorSGS(A, "auto"), our_cg)
    return case


if __name__ == "__main__":
    main()
