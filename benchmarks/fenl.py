"""FENL's Jacobian at the exact solution, b = A x* with random x*: colorings, sweeps and solvers, all in one run.

    python benchmarks/fenl.py cpu 50
    python benchmarks/fenl.py gpu 50 100 180

writes benchmarks/results/fenl-cpu.json or fenl-gpu.json (or where --output says). The baselines, SciPy's or CuPy's
product and CG and cuSPARSE's csrcolor, are measured beside ours.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from measure import application, graph_ms, measure_each, parser_of, queued_ms, wall_ms

from mcprecond import MulticolorSGS, color, pcg, problems
from mcprecond.backends import get_backend
from mcprecond.coloring import COLORINGS, Graph

SEED, RTOL = 0, 1e-8
SIZES = {"cpu": [50], "gpu": [50, 100, 180]}
METHODS = ("eb", "ecl_gc", "jpl", "greedy")


def main() -> None:
    parser = parser_of(__doc__, repeats=10)
    parser.add_argument("n", type=int, nargs="*", help="by default those of the record")
    arguments = parser.parse_args()
    sizes = arguments.n or ([8] if arguments.small else SIZES[arguments.device])
    cases = {f"fenl_{n}": partial(measure_case, n, arguments.device, arguments.repeats) for n in sizes}
    measure_each("fenl", arguments, cases, rtol=RTOL)


def measure_case(n: int, device: str, repeats: int) -> dict[str, Any]:
    backend = get_backend(device)
    xp, problem = backend.xp, problems.fenl(n, device=device)
    exact = problem.exact()
    A = problem.jacobian(exact)
    solution = xp.asarray(np.random.default_rng(SEED).uniform(-1, 1, A.shape[0]))
    b = A @ solution
    case: dict[str, Any] = {"unknowns": A.shape[0], "nnz": A.nnz}
    case["assembly_ms"] = wall_ms(lambda: problem.jacobian(exact), backend.synchronize, repeats)
    on_gpu = device == "gpu"
    case["spmv_ms"] = queued_ms(lambda: A @ b) if on_gpu else wall_ms(lambda: A @ b, backend.synchronize, repeats)
    case["colorings"] = measure_colorings(A, backend, repeats)
    if on_gpu:
        from papers.csrcolor import CsrColor

        csrcolor = CsrColor()
        case["csrcolor"] = {
            "ms": wall_ms(lambda: csrcolor(A), backend.synchronize, repeats),
            "colors": csrcolor(A)[1],
        }
    case["solvers"] = measure_solvers(A, b, backend, repeats)
    return case


def measure_colorings(A: Any, backend: Any, repeats: int) -> dict[str, Any]:
    """`color(A)` as a user calls it, and the method alone on a graph that is there already."""
    graph, result = Graph.of(A), {}
    for name in METHODS:
        coloring = color(A, name)
        result[name] = {
            "ms": wall_ms(lambda name=name: color(A, name), backend.synchronize, repeats),
            "method_ms": wall_ms(lambda name=name: COLORINGS[name](graph), backend.synchronize, repeats),
            "colors": coloring.n_colors,
            "rounds": coloring.rounds,
        }
    return result


def measure_solvers(A: Any, b: Any, backend: Any, repeats: int) -> list[dict[str, Any]]:
    xp, rows = backend.xp, []
    library = "cupyx" if backend.name == "gpu" else "scipy"
    norm = float(xp.linalg.norm(b))

    def jacobi() -> Any:
        return backend.sparse.csr_matrix(backend.sparse.diags(1 / A.diagonal()))

    def add(name: str, setup: Any, solve: Any, iterations: int, colors: int | None, apply_ms: float | None) -> None:
        M = setup()
        x = solve(M)
        row = {
            "name": name,
            "colors": colors,
            "iterations": iterations,
            "setup_ms": wall_ms(setup, backend.synchronize, repeats),
            "apply_ms": apply_ms,
            "solve_ms": wall_ms(lambda: solve(M), backend.synchronize, min(repeats, 5)),
            "relative_residual": float(xp.linalg.norm(b - A @ x)) / norm,
        }
        row["total_ms"] = row["setup_ms"] + row["solve_ms"]
        rows.append(row)

    def library_cg(M: Any) -> Any:
        return backend.linalg.cg(A, b, M=M, maxiter=10000, rtol=RTOL)[0]

    for name, setup in (("", lambda: None), (" Jacobi", jacobi)):
        steps: list[None] = []
        backend.linalg.cg(A, b, M=setup(), callback=lambda x, steps=steps: steps.append(None), rtol=RTOL)
        add(f"{library} cg{name}", setup, library_cg, len(steps), None, None)
        iterations = pcg(A, b, M=setup(), rtol=RTOL).iterations
        add(f"pcg{name}", setup, lambda M: pcg(A, b, M=M, rtol=RTOL).x, iterations, None, None)
    for name in METHODS:

        def setup(name: str = name) -> MulticolorSGS:
            return MulticolorSGS(A, name)

        M, z = setup(), xp.empty_like(b)

        apply = application(M, b, z)
        apply_ms = graph_ms(apply) if backend.name == "gpu" else wall_ms(apply, backend.synchronize, repeats)
        for form in ("plain", "eisenstat"):

            def solve(M: Any, form: str = form) -> Any:
                return pcg(A, b, M=M, rtol=RTOL, form=form).x

            iterations = pcg(A, b, M=M, rtol=RTOL, form=form).iterations
            label = f"pcg SGS {name}" + (", Eisenstat" if form == "eisenstat" else "")
            add(label, setup, solve, iterations, M.n_colors, apply_ms)
    return rows


if __name__ == "__main__":
    main()
