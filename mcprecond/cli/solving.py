"""The commands that color a matrix and solve with it."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

import mcprecond
from mcprecond.backends import Backend, get_backend
from mcprecond.backends.arguments import integer, one_of, real
from mcprecond.backends.inputs import shaped_vector
from mcprecond.cli.arguments import backend_for, check_output, coloring_method, read, refuse_diagonal, symmetric, write
from mcprecond.cli.parsing import AsJson, File, Option
from mcprecond.cli.terminal import print_facts, working
from mcprecond.problems.files import vector
from mcprecond.problems.placing import placed
from mcprecond.typing import ColoringMethod

PRECONDITIONERS = ("sgs", "multigrid", "jacobi", "none")
#: Rows of the matrix that a solve is rehearsed with, so that what is timed is compiled already.
REHEARSED = 2000


def color(
    file: File,
    method: Annotated[str, Option("Of `mcprecond info`, or auto.")] = "auto",
    distance: Annotated[int, Option("1, or 2: no common neighbor either.")] = 1,
    recolor: Annotated[int, Option("Passes of first-fit afterwards.")] = 0,
    output: Annotated[Path | None, Option("Write the colors, 0-based: .npy or .txt.")] = None,
    gpu: Annotated[bool, Option("Color on the GPU.")] = False,
    as_json: AsJson = False,
) -> None:
    """Color the graph of a sparse matrix: neighbors get different colors.

    Compiling, on first use, is not part of the seconds.

    Example: mcprecond color matrix.mtx.gz --method ecl_gc --output colors.npy
    """
    check_output(output, ".npy", ".txt")
    named = coloring_method(method, "--method")
    if distance not in (1, 2):
        raise ValueError(f"--distance must be 1 or 2, got {distance}")
    reach: Literal[1, 2] = 1 if distance == 1 else 2
    integer(recolor, "--recolor", 0)
    backend = backend_for(gpu)
    with working(f"reading {file}") as work:
        A = placed(read(file), backend)
        work.update("compiling, once")
        start = time.perf_counter()
        mcprecond.color(first_rows(A), named, distance=reach, recolor=recolor)
        backend.synchronize()
        compile_seconds = time.perf_counter() - start
        work.update(f"coloring {A.shape[0]:,} rows by {method}")
        start = time.perf_counter()
        coloring = mcprecond.color(A, named, distance=reach, recolor=recolor)
        backend.synchronize()
        seconds = time.perf_counter() - start
    if output is not None:
        write(output, backend.to_host(coloring.colors))
    facts = {"file": str(file), "rows": A.shape[0], "entries": int(A.nnz), "device": backend.name}
    facts |= {"method": coloring.method, "distance": distance, "recolor": recolor, "colors": coloring.n_colors}
    # An empty matrix has no classes.
    sizes = coloring.sizes.tolist() or [0]
    facts |= {"largest_class": max(sizes), "smallest_class": min(sizes)}
    facts |= {"rounds": coloring.rounds, "compile_seconds": compile_seconds, "seconds": seconds}
    print_facts(facts, as_json)


def solve(
    file: File,
    rhs: Annotated[Path | None, Option("The right-hand side, .npy or .mtx[.gz]; by default A times random x*.")] = None,
    preconditioner: Annotated[str, Option("sgs, multigrid, jacobi or none.")] = "sgs",
    coloring: Annotated[str, Option("For sgs and multigrid: auto, or one of `mcprecond info`.")] = "auto",
    rtol: Annotated[float, Option("Of the residual, relative to the right-hand side.")] = 1e-8,
    maxiter: Annotated[int | None, Option("By default ten times the number of rows.")] = None,
    output: Annotated[Path | None, Option("Write the solution: .npy or .mtx.")] = None,
    gpu: Annotated[bool, Option("Color and solve on the GPU.")] = False,
    as_json: AsJson = False,
) -> None:
    """Solve A x = b by conjugate gradients, for a symmetric (or complex Hermitian) positive definite matrix.

    The solve is rehearsed with the first 2000 rows, which compiles what has not been compiled yet: setup and solve
    are timed without that.

    Example: mcprecond solve matrix.mtx --rhs b.mtx --coloring greedy --rtol 1e-10 --output x.npy
    """
    check_output(output, ".npy", ".mtx")
    one_of(preconditioner, "--preconditioner", PRECONDITIONERS)
    named = coloring_method(coloring, "--coloring")
    real(rtol, "--rtol", least=0.0)
    if maxiter is not None:
        integer(maxiter, "--maxiter", 0)
    backend = backend_for(gpu)
    with working(f"reading {file}") as work:
        matrix = symmetric(read(file), file)
        n = matrix.shape[0]
        expected = np.random.default_rng(0).standard_normal(n) if rhs is None else None
        b = matrix @ expected if rhs is None else vector(rhs)
        b = shaped_vector(b, n, get_backend("cpu"))
        if preconditioner == "jacobi":
            refuse_diagonal(matrix, file)
        A, b = placed(matrix, backend), backend.xp.asarray(b)
        size = float(backend.xp.linalg.norm(b))
        rehearsed = first_rows(A)
        work.update("compiling, once")
        _, compile_seconds = made(rehearsed, preconditioner, named, backend, solved=True)
        work.update(f"setting up {preconditioner} for {n:,} unknowns")
        M, setup_seconds = made(A, preconditioner, named, backend)
        started = shown = time.perf_counter()

        def told(iterations: int, residual_norm: float) -> None:
            nonlocal shown
            now = time.perf_counter()
            if iterations and now > shown + 0.1:
                shown, seconds = now, now - started
                rate = iterations / seconds
                residual = residual_norm / size if size else 0.0
                message = f"iteration {iterations:,}, relative residual {residual:.1e}, {rate:,.0f} iterations a second"
                digits = -math.log10(max(rtol, 1e-16))
                work.advance(message, min(max(-math.log10(residual or 1.0), 0.0), digits), digits)
                work.interrupted = f"after {iterations} iterations at a relative residual of {residual:.1e}; x is lost"

        result = mcprecond.pcg(A, b, rtol=rtol, maxiter=maxiter, M=M, progress=told)
    x = backend.to_host(result.x)
    if output is not None:
        write(output, x)
    facts: dict[str, Any] = {"file": str(file), "rows": n, "entries": int(A.nnz), "device": backend.name}
    facts |= {"preconditioner": preconditioner}
    if preconditioner in ("sgs", "multigrid") and M.n_colors is not None:
        facts |= {"coloring": coloring, "colors": M.n_colors}
    facts |= {"iterations": result.iterations, "residual": result.residual_norm / size if size else 0.0}
    if expected is not None and n:
        facts |= {"error": float(np.linalg.norm(x - expected) / np.linalg.norm(expected))}
    solve_seconds = result.setup_seconds + result.solve_seconds
    facts |= {"compile_seconds": compile_seconds, "setup_seconds": setup_seconds, "solve_seconds": solve_seconds}
    facts |= {"converged": result.converged, "reason": result.reason.value}
    print_facts(facts, as_json)
    if not result.converged:
        raise SystemExit(1)


def first_rows(A: Any) -> Any:
    """The matrix of the first rows and columns, of the same kind."""
    k = min(A.shape[0], REHEARSED)
    return A[:k, :k]


def made(
    A: Any, preconditioner: str, coloring: ColoringMethod, backend: Backend, solved: bool = False
) -> tuple[Any, float]:
    """Return the preconditioner of A and the seconds that it took, with a solve if asked for."""
    started = time.perf_counter()
    M: Any = None
    if preconditioner == "sgs":
        M = mcprecond.MulticolorSGS(A, coloring)
    elif preconditioner == "multigrid":
        M = mcprecond.SmoothedAggregation(A, coloring=coloring)
    elif preconditioner == "jacobi":
        M = backend.sparse.csr_matrix(backend.sparse.diags(1 / A.diagonal()))
    if solved:
        mcprecond.pcg(A, backend.xp.ones(A.shape[0], A.dtype), maxiter=5, M=M)
    backend.synchronize()
    return M, time.perf_counter() - started
