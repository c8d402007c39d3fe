"""Graphs with hubs: products, sweeps and solves with Laplacians of R-MAT graphs, beside the library, all in one run.

    python benchmarks/hubs.py gpu            # 2^18 vertices
    python benchmarks/hubs.py cpu --small

writes benchmarks/results/hubs-gpu.json or hubs-cpu.json (or where --output says). The matrix is L + 0.01 I, which is
positive definite; b = A x* with random x*. Products and applications are timed on the device, solves from call to
result.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from measure import RESULTS, queued_ms, record, save, timed_row, wall_ms

from mcprecond import MulticolorSGS, color, pcg
from mcprecond.backends import get_backend
from mcprecond.matrix import admitted
from mcprecond.problems import graphs
from mcprecond.solvers.iteration import Product

SEED, RTOL, MAXITER = 0, 1e-6, 20_000
METHODS = ("eb", "ecl_gc", "jp")


def laplacian(scale: int, device: str) -> Any:
    """The graph's Laplacian, with 0.01 more on the diagonal."""
    G = sp.csr_array(graphs.rmat(scale, seed=SEED))
    G = abs(G) + abs(G.T)
    G.setdiag(0)
    G.eliminate_zeros()
    G.data[:] = -1.0
    return get_backend(device).sparse.csr_matrix(
        sp.csr_matrix(G + sp.diags_array(0.01 - np.asarray(G.sum(axis=1)).ravel()))
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", choices=["cpu", "gpu"])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    case = measure_case(10 if arguments.small else 18, arguments.device, arguments.repeats)
    document = record("hubs", arguments.device, [case], seed=SEED, rtol=RTOL, small=arguments.small)
    save(document, arguments.output or RESULTS / f"hubs-{arguments.device}.json")


def measure_case(scale: int, device: str, repeats: int) -> dict[str, Any]:
    backend, A = get_backend(device), laplacian(scale, device)
    xp, n = backend.xp, A.shape[0]

    def device_ms(function: Any) -> float:
        return wall_ms(function, backend.synchronize, repeats) if device == "cpu" else queued_ms(function)

    x, y = xp.asarray(np.random.default_rng(SEED).standard_normal(n)), xp.empty(n)
    b, product = A @ x, Product(admitted(A, finite=True))
    jacobi = backend.sparse.diags(1 / A.diagonal(), format="csr")
    case: dict[str, Any] = {
        "name": f"rmat_{scale}",
        "unknowns": n,
        "nnz": int(A.nnz),
        "longest_row": int(xp.diff(A.indptr).max()),
        "product_ms": device_ms(lambda: product.enqueue(x, y)),
        "library_product_ms": device_ms(lambda: A @ x),
        "solvers": [],
    }

    def add(name: str, solve: Any, iterations: int, **more: Any) -> None:
        residual = float(xp.linalg.norm(b - A @ solve()) / xp.linalg.norm(b))
        times = timed_row(solve, backend.synchronize, repeats)
        case["solvers"].append({"name": name, "iterations": iterations, "solve": times, "residual": residual} | more)
        print(case["name"], case["solvers"][-1], flush=True)

    for label, M in (("CG", None), ("Jacobi", jacobi)):
        counted: list[int] = []
        backend.linalg.cg(A, b, rtol=RTOL, maxiter=MAXITER, M=M, callback=lambda _, counted=counted: counted.append(1))
        add(f"library {label}", lambda M=M: backend.linalg.cg(A, b, rtol=RTOL, maxiter=MAXITER, M=M)[0], len(counted))
        result = pcg(A, b, rtol=RTOL, maxiter=MAXITER, M=M)
        add(f"pcg {label}", lambda M=M: pcg(A, b, rtol=RTOL, maxiter=MAXITER, M=M).x, result.iterations)
    for method in METHODS:
        coloring = color(A, method)
        M = MulticolorSGS(A, coloring)
        iterations = pcg(A, b, rtol=RTOL, maxiter=MAXITER, M=M).iterations
        add(
            f"pcg SGS {method}",
            lambda M=M: pcg(A, b, rtol=RTOL, maxiter=MAXITER, M=M).x,
            iterations,
            colors=M.n_colors,
            setup_ms=wall_ms(lambda method=method: MulticolorSGS(A, method), backend.synchronize, repeats),
            apply_ms=device_ms(lambda M=M: M.enqueue(b, y)),
        )
    return case


if __name__ == "__main__":
    main()
