"""The command line. Exit codes: 0 converged, 1 not converged, 2 bad input."""

from __future__ import annotations

import dataclasses
import json
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import numba
import typer
from rich import box
from rich.console import Console
from rich.table import Table

import mcprecond
from mcprecond.backends import gpu_problem

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
out, err = Console(), Console(stderr=True)


def main() -> None:
    """Run a command; bad input ends in one line, not in a traceback."""
    try:
        app()
    except (ValueError, TypeError) as error:
        # No markup: messages name extras, such as mcprecond[gpu-cuda13].
        err.print(f"mcprecond: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)


@app.callback(invoke_without_command=True)
def options(
    show_version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Multicolor Gauss-Seidel preconditioners for sparse solvers. Example: mcprecond fenl --n 50"""
    if show_version:
        print(mcprecond.__version__)
        raise typer.Exit


@app.command()
def fenl(
    n: Annotated[int, typer.Option(help="Elements per edge; (n + 1)^3 unknowns.")] = 50,
    gpu: Annotated[bool, typer.Option("--gpu", help="Assemble, color and solve on the GPU.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
) -> None:
    """Solve the FENL problem by Newton's method and compare preconditioners of CG.

    Example: mcprecond fenl --n 100 --gpu
    """
    if gpu and (problem := gpu_problem()):
        raise ValueError(f"--gpu cannot be used: {problem}")
    from mcprecond.studies import table_v

    with err.status("starting") as status:
        rows = table_v(n, device="gpu" if gpu else "cpu", progress=status.update)
    if as_json:
        print(json.dumps([dataclasses.asdict(row) for row in rows], indent=1))
    else:
        title = f"FENL, {n}³ elements, {(n + 1) ** 3:,} unknowns, on the {'GPU' if gpu else 'CPU'}"
        table = Table(title=title, box=box.SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)  # 80 columns have to do
        table.add_column("method", no_wrap=True)
        for heading in ("colors", "iterations", "setup\n[s]", "precond.\n[s]", "total\n[s]", "residual", "max\nerror"):
            table.add_column(heading.replace("[", r"\["), justify="right", no_wrap=True)
        for row in rows:
            table.add_row(
                row.method,
                "" if row.colors is None else str(row.colors),
                "+".join(map(str, row.iterations)),
                f"{row.setup_seconds:.3f}",
                f"{row.preconditioner_seconds:.3f}",
                f"{row.total_seconds:.3f}",
                f"{row.residual:.1e}",
                f"{row.error:.1e}",
            )
        out.print(table)
        out.print(
            "Iterations: of CG in each Newton step (whose right-hand sides vary in z only here, which flatters "
            "Jacobi). Setup: first build and later updates. Precond.: iterations times one application, timed by "
            "itself. Residual: relative. Max error: against the exact solution.",
            style="dim",
        )
    failed = [row.method for row in rows if not row.converged]
    if failed:
        err.print(f"not converged: {', '.join(failed)}", style="red")
        raise typer.Exit(1)


@app.command()
def info(as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False) -> None:
    """Print versions, the processor and the GPU, or why none can be used. Example: mcprecond info --json"""
    facts = {"mcprecond": mcprecond.__version__, "python": platform.python_version()}
    facts |= {name: version(name) for name in ("numpy", "scipy", "numba")}
    facts["cpu threads"] = str(numba.get_num_threads())
    facts["methods"] = ", ".join(mcprecond.COLORINGS)
    facts["gpu"] = gpu_problem() or _gpu_name()
    if as_json:
        print(json.dumps(facts, indent=1))
    else:
        for name, value in facts.items():
            out.print(f"{name:12} {value}", markup=False, highlight=False)


def _gpu_name() -> str:
    import cupy

    return str(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()) + f", CuPy {cupy.__version__}"


@app.command()
def advise(
    file: Annotated[Path, typer.Argument(help="A Matrix Market file: symmetric positive definite.")],
    gpu: Annotated[bool, typer.Option("--gpu", help="Solve on the GPU.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
) -> None:
    """Try preconditioners of CG on a matrix and say which to use. Example: mcprecond advise thermal.mtx"""
    if gpu and (problem := gpu_problem()):
        raise ValueError(f"--gpu cannot be used: {problem}")
    import scipy.io
    import scipy.sparse

    from mcprecond import studies
    from mcprecond.backends import get_backend

    try:
        read = scipy.io.mmread(file)
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror or error}") from error
    if not scipy.sparse.issparse(read) or read.dtype.kind not in "iuf":
        raise ValueError(f"{file} must hold a sparse matrix of real numbers (coordinate, real or integer)")
    A = read.tocsr().astype(float)
    with err.status("starting") as status:
        found = studies.advise(get_backend("gpu").sparse.csr_matrix(A) if gpu else A, progress=status.update)
    if as_json:
        print(json.dumps(found.rows, indent=1))
    else:
        table = Table(title=f"{file.name}: {A.shape[0]:,} rows, {A.nnz:,} entries", box=box.SIMPLE)
        table.padding, table.pad_edge = (0, 1, 0, 0), False  # 80 columns have to do
        table.add_column("method", no_wrap=True)
        for heading in ("iterations", "colors", "setup\n[s]", "solve\n[s]", "applic."):
            table.add_column(heading.replace("[", r"\["), justify="right", no_wrap=True)
        for row in found.rows:
            ran = row["iterations"] is not None
            table.add_row(
                row["method"],
                str(row["iterations"]) if ran else "",
                "" if row["colors"] is None else str(row["colors"]),
                f"{row['setup_seconds']:.4f}" if ran else "",
                f"{row['solve_seconds']:.4f}" if ran else "",
                f"{row['application']:.1f}" if ran else "",
                style=None if row["verified"] else "red",
            )
        out.print(table)
        for row in found.rows:
            if not row["verified"]:
                out.print(f"{row['method']} failed: {row['reason']}", style="red", markup=False, highlight=False)
        out.print(
            "CG to a relative residual of 1e-6, in order of setup and solve together. Applic.: time of M @ r relative "
            "to A @ x.",
            style="dim",
        )
    if not found.rows[0]["verified"]:
        err.print("none of them converged", style="red")
        raise typer.Exit(1)
    if not as_json:
        print(f"Use: {found.rows[0]['python']}")


@app.command()
def study(
    name: Annotated[str, typer.Argument(help="Name of a study; an unknown one prints them all.")],
    gpu: Annotated[bool, typer.Option("--gpu", help="Run it on the GPU.")] = False,
    small: Annotated[bool, typer.Option("--small", help="Small problems: seconds on two cores.")] = False,
    output: Annotated[Path | None, typer.Option(help="Folder that gets NAME.json and NAME.csv.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
) -> None:
    """Run a study of the papers' questions. Example: mcprecond study time-quality --small"""
    from mcprecond.studies.named import STUDIES

    if name not in STUDIES:
        raise ValueError(f"unknown study {name!r}; known are {', '.join(STUDIES)}")
    if gpu and (problem := gpu_problem()):
        raise ValueError(f"--gpu cannot be used: {problem}")
    with err.status(name):
        found = STUDIES[name]("gpu" if gpu else "cpu", small)
    if output:
        found.save(output / f"{name}.json", name)
    # Wider than a screen: lines are not folded, so that they can be piped.
    print(json.dumps(found.rows, indent=1) if as_json else found)
    if not all(row["verified"] for row in found.rows):
        err.print("some cases are not verified: improper, or not converged", style="red")
        raise typer.Exit(1)
