"""More than 2^31 entries on one GPU: is everything right there, and what does it take?

    python benchmarks/large.py                           # fenl_430: 80 million unknowns, 2.15 billion entries; fenl_320
    python benchmarks/large.py 50 --methods ecl_gc       # the same steps on a small matrix
    python benchmarks/large.py 380 --methods multigrid

writes benchmarks/results/large-gpu.json (or where --output says). FENL's Jacobian, b = A x* with random x*. For each
coloring: is it proper; is M @ r right in the last rows, by a computation on the host; does PCG reduce the residual,
measured by the library's product, and on the host in the last rows. The last also holds for "multigrid".
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from measure import RESULTS, record, save

from mcprecond import MulticolorSGS, SmoothedAggregation, color, pcg, problems
from mcprecond.backends import get_backend

SEED, RTOL, ENTRIES_AT_ONCE = 0, 1e-8, 2**29
LAST_ROWS = 1_000_000  # more than the last planes of nodes, whose temperature is given

#: The methods that are run for each n. The matrix for multigrid is smaller, because the hierarchy needs more memory.
CASES = {430: ["greedy", "ecl_gc", "eb"], 320: ["multigrid"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("n", type=int, nargs="?", help="by default all sizes of the record")
    parser.add_argument("--methods", nargs="+", default=["ecl_gc"], help="for this n")
    parser.add_argument("--output", type=Path, default=RESULTS / "large-gpu.json")
    arguments = parser.parse_args()
    cases: list[dict[str, Any]] = []
    for n, methods in (CASES if arguments.n is None else {arguments.n: arguments.methods}).items():
        cases.append({"name": f"fenl_{n}"})
        for _ in measured(n, methods, cases[-1]):
            print(cases[-1], flush=True)
            save(record("large", "gpu", cases, seed=SEED, rtol=RTOL), arguments.output)


def measured(n: int, methods: list[str], case: dict[str, Any]) -> Iterator[None]:
    """Measure one matrix, and yield after each method."""
    xp = get_backend("gpu").xp
    A, assembly = timed(lambda: matrix(n))
    case |= {"unknowns": A.shape[0], "nnz": int(A.nnz), "assembly_s": assembly, "index_type": str(A.indptr.dtype)}
    solution = xp.asarray(np.random.default_rng(SEED).uniform(-1, 1, A.shape[0]))
    b, case["spmv_s"] = timed(lambda: product(A, solution))
    error = residual_of_last_rows(A, solution, b)
    assert error < 1e-12, f"the library's product is wrong in the last rows: {error}"
    case["colorings"] = []
    for method in methods:
        case["colorings"].append(multigrid(A, b) if method == "multigrid" else measure(A, b, method))
        yield


def matrix(n: int) -> Any:
    problem = problems.fenl(n, device="gpu")
    return problem.jacobian(problem.exact())


def measure(A: Any, b: Any, method: str) -> dict[str, Any]:
    xp = get_backend("gpu").xp
    xp.get_default_memory_pool().free_all_blocks()
    coloring, coloring_s = timed(lambda: color(A, method))
    assert coloring.is_valid(A), f"{method} is improper"
    M, setup_s = timed(lambda: MulticolorSGS(A, coloring))
    _, update_s = timed(lambda: M.update(A))
    z, apply_s = timed(lambda: M @ b)
    wrong = error_of_application(A, M, b, z)
    assert wrong < 1e-10, f"an application is wrong: {wrong}"
    return {
        "method": method,
        "colors": coloring.n_colors,
        "coloring_s": coloring_s,
        "setup_s": setup_s,
        "update_s": update_s,
        "first_apply_s": apply_s,
        "error_of_application": wrong,
    } | solved(A, b, M)


def multigrid(A: Any, b: Any) -> dict[str, Any]:
    get_backend("gpu").xp.get_default_memory_pool().free_all_blocks()
    M, setup_s = timed(lambda: SmoothedAggregation(A))
    return {"method": "multigrid", "levels": len(M.levels), "setup_s": setup_s} | solved(A, b, M)


def solved(A: Any, b: Any, M: Any) -> dict[str, Any]:
    """Whether PCG converges, by other products; and the memory of all that."""
    xp = get_backend("gpu").xp
    result, solve_s = timed(lambda: pcg(A, b, M=M, rtol=RTOL))
    assert result.converged, result.reason
    relative = float(xp.linalg.norm(b - product(A, result.x)) / xp.linalg.norm(b))
    assert relative <= 1.01 * RTOL, relative
    free, total = xp.cuda.Device().mem_info
    return {
        "iterations": result.iterations,
        "solve_s": solve_s,
        "relative_residual": relative,
        "relative_residual_of_last_rows": residual_of_last_rows(A, result.x, b),
        "used_GB": (total - free) / 1e9,
    }


def product(A: Any, x: Any) -> Any:
    """A @ x by the library, some rows after the others: it fails on so many entries at once."""
    backend = get_backend("gpu")
    xp, rows = backend.xp, A.shape[0]
    cuts = xp.searchsorted(A.indptr, xp.arange(0, A.nnz, ENTRIES_AT_ONCE)).tolist()
    parts = []
    for first, end in zip(cuts, [*cuts[1:], rows], strict=True):
        ends = A.indptr[first : end + 1]
        begin, stop = int(ends[0]), int(ends[-1])
        arrays = A.data[begin:stop], A.indices[begin:stop].astype(np.int32), (ends - begin).astype(np.int32)
        parts.append(backend.sparse.csr_matrix(arrays, shape=(end - first, A.shape[1])) @ x)
    return xp.concatenate(parts)


def error_of_application(A: Any, M: Any, r: Any, z: Any) -> float:
    """By ``(D + L) y = r`` and ``(D + U) z = D y``: the largest relative error of a row, over the last rows of A.

    y is found from z, one product with U. What is of an earlier color than its row is L, what is of a later one U.
    """
    xp = get_backend("gpu").xp
    rows = np.arange(max(A.shape[0] - LAST_ROWS, 0), A.shape[0])
    near = rows_of(A, int(rows[0]))
    start = int(near.indices.min())  # their neighbors are all among the rows from here on
    around = rows_of(A, start)
    colors, z, r = (xp.asnumpy(array) for array in (M.coloring.colors, z, r))
    diagonal = around.tocsc()[:, start:].diagonal()
    entries = around.tocoo()
    later = colors[entries.col] > colors[entries.row + start]
    sums = np.bincount(entries.row[later], (entries.data * z[entries.col])[later], minlength=len(diagonal))
    y = z[start:] + sums / diagonal
    entries = near.tocoo()
    earlier = colors[entries.col] < colors[entries.row + rows[0]]
    sums = np.bincount(entries.row[earlier], (entries.data * y[entries.col - start])[earlier], minlength=len(rows))
    found = sums + diagonal[rows - start] * y[rows - start]
    return float(abs(found - r[rows]).max() / abs(r).max())


def rows_of(A: Any, first: int) -> sp.csr_matrix:
    """The rows of A from a first one on, on the host."""
    begin = int(A.indptr[first])
    return sp.csr_matrix(
        (A.data[begin:].get(), A.indices[begin:].get(), (A.indptr[first:] - begin).get()),
        shape=(A.shape[0] - first, A.shape[1]),
    )


def residual_of_last_rows(A: Any, x: Any, b: Any) -> float:
    """||b - A x|| / ||b|| in these rows, on the host."""
    first = max(A.shape[0] - LAST_ROWS, 0)
    part = b[first:].get()
    return float(np.linalg.norm(part - rows_of(A, first) @ x.get()) / np.linalg.norm(part))


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """A result, and the seconds that it took, once, kernels compiled included."""
    backend = get_backend("gpu")
    backend.synchronize()
    started = time.perf_counter()
    result = call()
    backend.synchronize()
    return result, time.perf_counter() - started


if __name__ == "__main__":
    main()
