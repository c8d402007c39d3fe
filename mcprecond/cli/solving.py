"""The commands that color a matrix and solve with it."""

from __future__ import annotations

import math
import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

import mcprecond
from mcprecond.backends import Backend, get_backend
from mcprecond.backends.arguments import integer, one_of, real
from mcprecond.backends.first_use import NUMBA, NVRTC
from mcprecond.backends.inputs import shape_vector
from mcprecond.cli.arguments import (
    backend_for,
    check_output,
    coloring_method,
    is_symmetric,
    null_space,
    read,
    write,
)
from mcprecond.cli.parsing import AsJson, File, NearNullSpace, NullSpaceFile, Option
from mcprecond.cli.terminal import print_facts, working
from mcprecond.preconditioners.setup import admit
from mcprecond.problems.files import columns, vector
from mcprecond.problems.placing import place_matrix
from mcprecond.solvers import SOLVERS
from mcprecond.solvers.named import BUILDERS
from mcprecond.solvers.nullspace import null_space_basis
from mcprecond.studies.advice import has_constant_null_space, project
from mcprecond.typing import ColoringMethod

#: The solvers that need a symmetric matrix.
SYMMETRIC = "pcg", "minres"
PRECONDITIONERS = ("auto", "sgs", "dilu", "ilu0", "multigrid", "jacobi", "spilu", "none")
#: Those whose colors are shown.
COLORED = ("sgs", "dilu", "ilu0", "multigrid")
#: Iterations that a solve is rehearsed with, so that what is timed is compiled already.
REHEARSED = 5


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

    Compiling is not part of the seconds: where something had to be compiled for this matrix, it is colored once more.

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
        A = place_matrix(read(file), backend)
        before = compiling_seconds()
        for _ in range(2):
            work.update(f"coloring {A.shape[0]:,} rows by {method}")
            start = time.perf_counter()
            coloring = mcprecond.color(A, named, distance=reach, recolor=recolor)
            backend.synchronize()
            seconds = time.perf_counter() - start
            if (compile_seconds := compiling_seconds() - before) == 0:
                break
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
    solver: Annotated[str | None, Option(f"{', '.join(SOLVERS)}; by default pcg if A is symmetric.")] = None,
    preconditioner: Annotated[
        str | None,
        Option("auto, sgs, dilu, ilu0, multigrid, jacobi, spilu or none; by default sgs with pcg, else auto."),
    ] = None,
    coloring: Annotated[str, Option("For sgs, dilu and multigrid: auto, or one of `mcprecond info`.")] = "auto",
    block_size: Annotated[int, Option("Unknowns of a node, such as 3 in elasticity.")] = 1,
    near_null_space: NearNullSpace = None,
    nullspace: NullSpaceFile = None,
    rtol: Annotated[float, Option("Of the residual, relative to the right-hand side.")] = 1e-8,
    maxiter: Annotated[int | None, Option("By default ten times the number of rows.")] = None,
    output: Annotated[Path | None, Option("Write the solution: .npy or .mtx.")] = None,
    gpu: Annotated[bool, Option("Color and solve on the GPU.")] = False,
    as_json: AsJson = False,
) -> None:
    """Solve A x = b: by conjugate gradients if A is symmetric (or complex Hermitian), otherwise by BiCGSTAB.

    Setup and solve are timed without compiling: where something had to be compiled for this matrix, they are run once
    more. The error is shown where the right-hand side was made here, for a singular matrix without the parts in the
    null space, which no solver can know.

    Example: mcprecond solve matrix.mtx --rhs b.mtx --coloring greedy --rtol 1e-10 --output x.npy
    """
    check_output(output, ".npy", ".mtx")
    if solver is not None:
        one_of(solver, "--solver", SOLVERS)
    if preconditioner is not None:
        one_of(preconditioner, "--preconditioner", PRECONDITIONERS)
    named = coloring_method(coloring, "--coloring")
    real(rtol, "--rtol", least=0.0)
    integer(block_size, "--block-size", 1)
    if maxiter is not None:
        integer(maxiter, "--maxiter", 0)
    backend = backend_for(gpu)
    with working(f"reading {file}") as work:
        matrix = read(file)
        solver = solver or ("pcg" if is_symmetric(matrix, file) else "bicgstab")
        preconditioner = preconditioner or ("sgs" if solver in SYMMETRIC else "auto")
        refuse_unfit(matrix, file, solver, preconditioner)
        n = matrix.shape[0]
        expected = np.random.default_rng(0).standard_normal(n) if rhs is None else None
        b = matrix @ expected if rhs is None else vector(rhs)
        b = shape_vector(b, n, get_backend("cpu"))
        space = null_space(nullspace)
        if space is None and solver == "pcg" and has_constant_null_space(admit(matrix, finite=True)[0]):
            space = "constant"
        if space is not None and solver != "pcg":
            raise ValueError(f"--nullspace needs --solver pcg, got {solver}")
        A, b = place_matrix(matrix, backend), backend.xp.asarray(b)
        B = None if near_null_space is None else columns(near_null_space)
        make = partial(set_up, A, preconditioner, named, backend, block_size, B)
        run = partial(
            getattr(mcprecond, solver), A, b, rtol=rtol, **({"nullspace": space} if space is not None else {})
        )
        size = float(backend.xp.linalg.norm(b))
        work.update(f"setting up {preconditioner} for {n:,} unknowns")
        before = compiling_seconds()
        M, setup_seconds = make()
        run(M=M, maxiter=REHEARSED)
        if (compile_seconds := compiling_seconds() - before) > 0:
            work.update(f"setting up {preconditioner} once more, now that all is compiled")
            M, setup_seconds = make()
        started = shown = time.perf_counter()

        def tell(iterations: int, residual_norm: float) -> None:
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

        result = run(maxiter=maxiter, M=M, progress=tell)
    x = backend.to_host(result.x)
    if output is not None:
        write(output, x)
    facts: dict[str, Any] = {"file": str(file), "rows": n, "entries": int(A.nnz), "device": backend.name}
    facts |= {"solver": solver, "preconditioner": preconditioner}
    if preconditioner in COLORED and M.n_colors is not None:
        facts |= {"coloring": coloring, "colors": M.n_colors}
    if preconditioner == "auto":
        facts |= {"stages": ", ".join(f"{stage.name} {stage.iterations}" for stage in result.stages)}
    facts |= {"iterations": result.iterations, "residual": result.residual_norm / size if size else 0.0}
    if expected is not None and n:
        if space is not None:
            basis = null_space_basis(space, admit(matrix, finite=True)[0])
            x, expected = project(x, basis), project(expected, basis)
        facts |= {"error": float(np.linalg.norm(x - expected) / np.linalg.norm(expected))}
    solve_seconds = result.setup_seconds + result.solve_seconds
    facts |= {"compile_seconds": compile_seconds, "setup_seconds": setup_seconds, "solve_seconds": solve_seconds}
    facts |= {"converged": result.converged, "reason": result.reason.value}
    facts |= {"detail": result.detail} if result.detail else {}
    print_facts(facts, as_json)
    if not result.converged:
        raise SystemExit(1)


def refuse_unfit(matrix: Any, file: Path, solver: str, preconditioner: str) -> None:
    """Raise ValueError for a solver that does not fit the matrix, or a preconditioner that does not fit the solver."""
    if solver in SYMMETRIC and not is_symmetric(matrix, file):
        needed = "Hermitian" if matrix.dtype.kind == "c" else "symmetric"
        raise ValueError(f"{file} holds a matrix that is not {needed}, which {solver} needs; try --solver gmres")
    if solver in SYMMETRIC and preconditioner == "spilu":
        raise ValueError(f"--preconditioner spilu is not symmetric, as {solver} needs it; try --preconditioner ilu0")
    if solver == "minres" and preconditioner == "auto":
        raise ValueError("--preconditioner auto is not for minres; try --preconditioner multigrid")


def set_up(
    A: Any, preconditioner: str, coloring: ColoringMethod, backend: Backend, block_size: int = 1, B: Any = None
) -> tuple[Any, float]:
    """Return the preconditioner of A and the seconds that it took."""
    colors: dict[str, Any] = {"coloring": coloring}
    nodes = colors | {"block_size": block_size}
    options = {"sgs": nodes, "dilu": colors, "ilu0": colors, "multigrid": nodes | {"B": B}}
    started = time.perf_counter()
    M: Any = "auto" if preconditioner == "auto" else None
    if preconditioner in BUILDERS:
        M = BUILDERS[preconditioner](admit(A, finite=True)[0], **options.get(preconditioner, {}))
    backend.synchronize()
    return M, time.perf_counter() - started


def compiling_seconds() -> float:
    """How long the compilers have been at work in this process."""
    return NUMBA.spent + NVRTC.spent
