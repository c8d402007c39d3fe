"""The command line. Exit codes: 0 converged, 1 not converged, 2 bad input, 130 interrupted."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import json
import logging
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, NoReturn, get_args, get_origin

import numpy as np
import scipy.io
import scipy.sparse
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Table

import mcprecond
from mcprecond.backends import Backend, get_backend, gpu_problem
from mcprecond.backends.arguments import integer, one_of, real
from mcprecond.backends.inputs import shaped_vector
from mcprecond.problems.files import matrix_market, npz, vector
from mcprecond.problems.placing import placed
from mcprecond.studies.surroundings import surroundings
from mcprecond.typing import ColoringMethod

out, err = Console(), Console(stderr=True)

DESCRIPTION = (
    "Preconditioners for sparse linear systems: multicolor Gauss-Seidel, ILU(0) and multigrid. To begin with: "
    "mcprecond demo"
)


@dataclasses.dataclass(frozen=True)
class Option:
    """How a parameter of a command is given: by a name, or by its place.

    Attributes
    ----------
    help : str
    named : bool
        Whether it is given as ``--name``.
    """

    help: str
    named: bool = True


File = Annotated[Path, Option("A sparse matrix: .mtx or .mtx.gz (Matrix Market), or .npz (SciPy).", named=False)]
AsJson = Annotated[bool, Option("Print as JSON.")]
PRECONDITIONERS = ("sgs", "multigrid", "jacobi", "none")
#: Rows of the matrix that a solve is rehearsed with, so that what is timed is compiled already.
REHEARSED = 2000
#: Columns of a terminal below which `advise` shows less.
NARROW = 60
LEGEND = " Applic.: time of M @ r relative to A @ x. Of ILU0 the levels are shown, which it solves one after the other."
#: What `plot` can show.
PICTURES = ("pattern", "levels", "convergence")
#: So far, relative to the largest entry, may a matrix be from symmetric: files are rounded.
SYMMETRY = 1e-8


#: What bad input and machines that are too small raise.
REFUSALS = (ValueError, TypeError, OSError, MemoryError, ImportError, OverflowError, RuntimeError)


def _beside() -> Console:
    """Where a bar and the log go: to stderr, but by the console of stdout where both are terminals. What two consoles
    write to one terminal runs into each other.
    """
    return out if out.is_terminal and err.is_terminal else err


class _ToStderr(logging.Handler):
    """Prints what the package logs, such as that kernels are compiled."""

    def emit(self, record: logging.LogRecord) -> None:
        _beside().print(f"mcprecond: {record.getMessage()}", style="dim", markup=False, highlight=False, soft_wrap=True)


LOG_HANDLER = _ToStderr()


#: The functions behind the commands, by name.
COMMANDS: dict[str, Callable[..., None]] = {}


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Let a function be called from the command line; its parameters are annotated with an `Option` each."""
    COMMANDS[function.__name__] = function
    return function


class Paragraphs(argparse.HelpFormatter):
    """Help whose paragraphs stay apart."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n\n".join(super(Paragraphs, self)._fill_text(part, width, indent) for part in text.split("\n\n"))


class Parser(argparse.ArgumentParser):
    """Arguments of a command, without abbreviations; what is wrong with them is a ValueError."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=Paragraphs, **options)

    def error(self, message: str) -> NoReturn:
        """See `argparse.ArgumentParser`."""
        raise ValueError(f"{message}; see {self.prog} --help")


def parser() -> Parser:
    """The parser of all commands, made from the signatures and docstrings of their functions."""
    whole = Parser(prog="mcprecond", description=DESCRIPTION)
    whole.add_argument("--version", action="version", version=mcprecond.__version__, help="Print the version and stop.")
    commands = whole.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, function in COMMANDS.items():
        text = inspect.getdoc(function) or ""
        first = text.split("\n")[0].partition(". ")[0].rstrip(".")
        own = commands.add_parser(name, help=f"{first}.", description=text)
        for parameter in inspect.signature(function, eval_str=True).parameters.values():
            _add(own, parameter)
    return whole


def _add(parser: Parser, parameter: inspect.Parameter) -> None:
    """Add what a parameter of a function stands for."""
    kind, option = get_args(parameter.annotation)
    default, text = parameter.default, option.help.replace("%", "%%")
    name = parameter.name.removeprefix("as_")
    kinds = [one for one in get_args(kind) if one is not NoneType] if NoneType in get_args(kind) else [kind]
    if not option.named:
        parser.add_argument(name, type=kinds[0], metavar=name.upper(), help=text)
    elif kinds == [bool]:
        parser.add_argument(f"--{name}", dest=parameter.name, action="store_true", help=text)
    else:
        repeated = get_origin(kinds[0]) is list
        required = default is inspect.Parameter.empty
        told = "" if required or default is None else f" Default: {default}."
        parser.add_argument(
            f"--{name}",
            type=get_args(kinds[0])[0] if repeated else kinds[0],
            action="append" if repeated else "store",
            required=required,
            default=None if required else default,
            metavar=kinds[0].__name__.upper() if kinds[0] in (int, float) else "PATH" if kinds[0] is Path else "NAME",
            help=text + told,
        )


def main() -> None:
    """Run a command; bad input ends in one line, not in a traceback."""
    logger = logging.getLogger("mcprecond")
    logger.addHandler(LOG_HANDLER)
    logger.setLevel(logging.INFO)
    try:
        arguments = vars(parser().parse_args())
        name = arguments.pop("command")
        if name is None:
            parser().print_help()
            sys.exit(2)
        COMMANDS[name](**arguments)
        sys.exit(0)
    except REFUSALS as error:
        _refuse(str(error) or type(error).__name__)
    except KeyboardInterrupt:
        err.print("interrupted", style="red")
        sys.exit(130)


class Work:
    """What a command says while it works: a line with a bar, on a terminal only.

    Attributes
    ----------
    interrupted : str
        What Ctrl-C prints behind "interrupted": how far the command has come.
    """

    def __init__(self, bar: Progress, message: str) -> None:
        self._bar = bar
        self._task = bar.add_task(escape(message), total=None)
        self.interrupted = f"while {message}"

    def update(self, message: str) -> None:
        """Say what happens now; nobody knows for how long."""
        self.interrupted = f"while {message}"
        self._bar.update(self._task, description=escape(message), total=None)

    def advance(self, message: str, done: float, total: float) -> None:
        """Say what happens now, and how much of it is done."""
        self.interrupted = f"while {message}"
        self._bar.update(self._task, description=escape(message), completed=done, total=total)


@contextmanager
def _working(message: str) -> Iterator[Work]:
    """Show what goes on. Ctrl-C prints one line with how far it has come, and exits with 130."""
    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24)
    bar = Progress(*columns, console=_beside(), transient=True, disable=not err.is_terminal)
    with bar if err.is_terminal else nullcontext():  # up to Rich 14 a disabled bar ends in an empty line
        work = Work(bar, message)
        try:
            yield work
        except KeyboardInterrupt:
            stopped = work.interrupted
        else:
            return
    err.print(f"interrupted {stopped}", style="red", markup=False, highlight=False, soft_wrap=True)
    raise SystemExit(130)


def _refuse(message: str) -> None:
    # No markup: messages name extras, such as mcprecond[gpu-cuda13].
    err.print(f"mcprecond: {' '.join(message.split())}", style="red", markup=False, highlight=False, soft_wrap=True)
    sys.exit(2)


@command
def demo(
    small: Annotated[bool, Option("Small problems, to try it.")] = False,
    cpu: Annotated[bool, Option("Run on the CPU, even if there is a GPU.")] = False,
    as_json: Annotated[bool, Option("Print the rows as JSON.")] = False,
) -> None:
    """Solve five problems by CG alone, and with Jacobi, Gauss-Seidel and multigrid, on the GPU if there is one.

    Example: mcprecond demo
    """
    from mcprecond import studies
    from mcprecond.studies.demo import verdict

    problem = "--cpu was given" if cpu else gpu_problem()
    rows = []
    with _working("starting") as work:
        for found in studies.demo(device="gpu" if problem is None else "cpu", small=small, progress=work.advance):
            rows += found.rows
            if not as_json:
                out.print(_race(found.rows))
                out.print(f"{verdict(found.rows)}\n", markup=False, highlight=False)
    if as_json:
        print(json.dumps(rows, indent=1))
    else:
        out.print(
            "Relative residual 1e-8. Setup builds the preconditioner, and updates it in Newton's method; total is "
            "setup and solve. The fastest of three runs, after one that compiled and does not count.",
            style="dim",
            highlight=False,
        )
        out.print(
            "It ran on the GPU. For the CPU: mcprecond demo --cpu"
            if problem is None
            else f"It ran on the CPU. No GPU was used: {problem}",
            markup=False,
            highlight=False,
        )
        out.print(
            "Which is best depends on the matrix. To try all of them on your own: mcprecond advise MATRIX.mtx",
            markup=False,
            highlight=False,
        )
    failed = [f"{row['problem']}: {row['method']}" for row in rows if not row["verified"]]
    if failed:
        err.print(f"not converged: {', '.join(failed)}", style="red", markup=False, soft_wrap=True)
        raise SystemExit(1)


def _race(rows: list[dict[str, Any]]) -> Table:
    """A table of one problem, with the fastest in color."""
    first = rows[0]
    title = f"{first['problem']}, {first['unknowns']:,} unknowns, {first['device'].upper()}"
    fastest = min((row for row in rows if row["verified"]), key=lambda row: row["total_seconds"], default=None)
    table = Table(title=title, box=box.SIMPLE, padding=(0, 1, 0, 0), pad_edge=False, title_justify="left")
    table.add_column("method", no_wrap=True, min_width=10)
    for heading in ("iterations", "setup [s]", "solve [s]", "total [s]", "times faster\nthan CG"):
        table.add_column(escape(heading), justify="right", no_wrap=True)
    for row in rows:
        times = "failed" if row["times_faster"] is None else f"{row['times_faster']:.2f}"
        seconds = (f"{row[name]:.3f}" for name in ("setup_seconds", "solve_seconds", "total_seconds"))
        style = "bold green" if row is fastest else None
        table.add_row(row["method"], f"{row['iterations']:,}", *seconds, times, style=style)
    return table


@command
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
    _check_output(output, ".npy", ".txt")
    named = _coloring_method(method, "--method")
    if distance not in (1, 2):
        raise ValueError(f"--distance must be 1 or 2, got {distance}")
    reach: Literal[1, 2] = 1 if distance == 1 else 2
    integer(recolor, "--recolor", 0)
    backend = _backend(gpu)
    with _working(f"reading {file}") as work:
        A = placed(_read(file), backend)
        work.update("compiling, once")
        start = time.perf_counter()
        mcprecond.color(_first_rows(A), named, distance=reach, recolor=recolor)
        backend.synchronize()
        compile_seconds = time.perf_counter() - start
        work.update(f"coloring {A.shape[0]:,} rows by {method}")
        start = time.perf_counter()
        coloring = mcprecond.color(A, named, distance=reach, recolor=recolor)
        backend.synchronize()
        seconds = time.perf_counter() - start
    if output is not None:
        _write(output, backend.to_host(coloring.colors))
    facts = {"file": str(file), "rows": A.shape[0], "entries": int(A.nnz), "device": backend.name}
    facts |= {"method": coloring.method, "distance": distance, "recolor": recolor, "colors": coloring.n_colors}
    # An empty matrix has no classes.
    sizes = coloring.sizes.tolist() or [0]
    facts |= {"largest_class": max(sizes), "smallest_class": min(sizes)}
    facts |= {"rounds": coloring.rounds, "compile_seconds": compile_seconds, "seconds": seconds}
    _print_facts(facts, as_json)


@command
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
    _check_output(output, ".npy", ".mtx")
    one_of(preconditioner, "--preconditioner", PRECONDITIONERS)
    named = _coloring_method(coloring, "--coloring")
    real(rtol, "--rtol", least=0.0)
    if maxiter is not None:
        integer(maxiter, "--maxiter", 0)
    backend = _backend(gpu)
    with _working(f"reading {file}") as work:
        matrix = _symmetric(_read(file), file)
        n = matrix.shape[0]
        expected = np.random.default_rng(0).standard_normal(n) if rhs is None else None
        b = matrix @ expected if rhs is None else vector(rhs)
        b = shaped_vector(b, n, get_backend("cpu"))
        if preconditioner == "jacobi":
            _refuse_diagonal(matrix, file)
        A, b = placed(matrix, backend), backend.xp.asarray(b)
        size = float(backend.xp.linalg.norm(b))
        rehearsed = _first_rows(A)
        work.update("compiling, once")
        _, compile_seconds = _made(rehearsed, preconditioner, named, backend, solved=True)
        work.update(f"setting up {preconditioner} for {n:,} unknowns")
        M, setup_seconds = _made(A, preconditioner, named, backend)
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
        _write(output, x)
    facts: dict[str, Any] = {"file": str(file), "rows": n, "entries": int(A.nnz), "device": backend.name}
    facts |= {"preconditioner": preconditioner}
    if preconditioner in ("sgs", "multigrid"):
        facts |= {"coloring": coloring, "colors": M.n_colors}
    facts |= {"iterations": result.iterations, "residual": result.residual_norm / size if size else 0.0}
    if expected is not None and n:
        facts |= {"error": float(np.linalg.norm(x - expected) / np.linalg.norm(expected))}
    solve_seconds = result.setup_seconds + result.solve_seconds
    facts |= {"compile_seconds": compile_seconds, "setup_seconds": setup_seconds, "solve_seconds": solve_seconds}
    facts |= {"converged": result.converged, "reason": result.reason.value}
    _print_facts(facts, as_json)
    if not result.converged:
        raise SystemExit(1)


@command
def info(as_json: AsJson = False) -> None:
    """Print what a report of a bug needs: versions, the machine, the GPU or why none can be used, settings, caches.

    Example: mcprecond info --json
    """
    _print_facts(surroundings() | {"methods": ", ".join(mcprecond.COLORINGS)}, as_json)


@command
def warmup(
    gpu: Annotated[bool, Option("Compile for the GPU.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compile ahead what first solves in float64 need: CG, Gauss-Seidel and multigrid, by a small system.

    Example: mcprecond warmup --gpu
    """
    backend = _backend(gpu)
    start = time.perf_counter()
    with err.status("solving a small system"):
        # A product by SciPy, whose rows are not sorted: that is checked and mended, which `problems` do not need.
        grid = scipy.sparse.diags_array([-1.0, -1, 4, -1, -1], offsets=[-30, -1, 0, 1, 30], shape=(900, 900)).tocsr()
        for A in (mcprecond.problems.laplacian((30, 30)), grid @ grid):
            A = placed(A, backend)
            b = A @ backend.xp.ones(A.shape[0])
            for M in (None, mcprecond.MulticolorSGS(A), mcprecond.SmoothedAggregation(A)):
                mcprecond.pcg(A, b, M=M)
        backend.synchronize()
    _print_facts({"device": backend.name, "seconds": time.perf_counter() - start}, as_json)


def _backend(gpu: bool) -> Backend:
    if gpu and (problem := gpu_problem()):
        raise ValueError(f"--gpu cannot be used: {problem}")
    return get_backend("gpu" if gpu else "cpu")


def _read(file: Path) -> Any:
    if file.name.endswith((".mtx", ".mtx.gz")):
        return matrix_market(file)
    if file.suffix == ".npz":
        return npz(file)
    raise ValueError(f"{file} must end in .mtx, .mtx.gz or .npz")


@np.errstate(over="ignore")
def _symmetric(A: Any, file: Path) -> Any:
    """Return the matrix, if conjugate gradients can be tried on it."""
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"{file} holds a matrix of shape {A.shape}; it must be square")
    largest = abs(A.data).max(initial=0.0)
    if not np.isfinite(largest):
        raise ValueError(f"{file} holds a NaN or an infinity; every value must be finite")
    if A.nnz and abs(A - A.conj().T).max() > SYMMETRY * largest:
        needed = "Hermitian" if A.dtype.kind == "c" else "symmetric"
        raise ValueError(f"{file} holds a matrix that is not {needed}; conjugate gradients need a {needed} one")
    return A


def _first_rows(A: Any) -> Any:
    """The matrix of the first rows and columns, of the same kind."""
    k = min(A.shape[0], REHEARSED)
    return A[:k, :k]


def _coloring_method(name: str, option: str) -> ColoringMethod:
    """The method that an option names."""
    known: list[ColoringMethod] = [*mcprecond.COLORINGS, "auto"]
    return one_of(name, option, known)


def _made(
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


def _refuse_diagonal(A: Any, file: Path) -> None:
    """Jacobi divides by the diagonal."""
    diagonal = A.diagonal()
    if not diagonal.all():
        row = int(np.argmin(diagonal != 0))
        raise ValueError(f"{file} has a zero on the diagonal, in row {row}; try --preconditioner none")
    with np.errstate(over="ignore"):
        inverse = 1 / diagonal
    if not np.isfinite(inverse).all():
        row = int(np.argmin(np.isfinite(inverse)))
        raise ValueError(f"{file} has {diagonal[row]} on the diagonal, in row {row}, whose inverse overflows")


def _check_output(file: Path | None, *suffixes: str) -> None:
    """Before the work, not after it."""
    if file is not None and file.suffix not in suffixes:
        raise ValueError(f"--output must end in {' or '.join(suffixes)}, got {file}")
    if file is not None and not file.parent.is_dir():
        raise ValueError(f"--output: there is no folder {file.parent}")
    if file is not None and (file.is_dir() or not os.access(file if file.exists() else file.parent, os.W_OK)):
        raise ValueError(f"--output: {file} cannot be written")


def _write(file: Path, values: np.ndarray) -> None:
    if file.suffix == ".txt":
        np.savetxt(file, values, fmt="%d")
    elif file.suffix == ".mtx":
        scipy.io.mmwrite(file, values[:, None], precision=17)
    else:
        np.save(file, values)


def _print_facts(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        # JSON has no NaN.
        print(json.dumps({k: None if v in (np.inf, -np.inf) or v != v else v for k, v in facts.items()}, indent=1))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        shown = f"{value:.3g}" if isinstance(value, float) else value
        out.print(f"{name.replace('_', ' '):{width}} {shown}", markup=False, highlight=False, soft_wrap=True)


@command
def advise(
    file: File,
    gpu: Annotated[bool, Option("Solve on the GPU.")] = False,
    as_json: Annotated[bool, Option("Print the rows as JSON.")] = False,
) -> None:
    """Try preconditioners of CG on a matrix and say which to use. Example: mcprecond advise thermal.mtx"""
    backend = _backend(gpu)
    from mcprecond import studies

    with _working(f"reading {file}") as work:
        A = _read(file)
        found = studies.advise(placed(A, backend), progress=work.update)
    if as_json:
        print(json.dumps(found.rows, indent=1))
    else:
        table = Table(title=f"{file.name}: {A.shape[0]:,} rows, {A.nnz:,} entries", box=box.SIMPLE)
        table.padding, table.pad_edge = (0, 1, 0, 0), False  # 80 columns have to do
        columns: dict[str, Callable[[dict[str, Any]], str]] = {
            "iterations": lambda row: str(row["iterations"]),
            "colors\nor levels": lambda row: "" if row["colors"] is None else str(row["colors"]),
            "setup\n[s]": lambda row: f"{row['setup_seconds']:.4f}",
            "solve\n[s]": lambda row: f"{row['solve_seconds']:.4f}",
            "applic.": lambda row: f"{row['application']:.1f}",
        }
        if out.width < NARROW:
            columns = {"iter.": columns["iterations"], "total\n[s]": lambda row: f"{row['seconds']:.4f}"}
        table.add_column("method", no_wrap=True)
        for heading in columns:
            table.add_column(escape(heading), justify="right", no_wrap=True)
        for row in found.rows:
            ran = row["iterations"] is not None
            cells = [show(row) if ran else "" for show in columns.values()]
            table.add_row(row["method"], *cells, style=None if row["verified"] else "red")
        out.print(table)
        for row in found.rows:
            if not row["verified"]:
                out.print(f"{row['method']} failed: {row['reason']}", style="red", markup=False, highlight=False)
        out.print(
            "CG to a relative residual of 1e-6, in order of setup and solve together."
            + ("" if out.width < NARROW else LEGEND),
            style="dim",
        )
    if not found.rows[0]["verified"]:
        err.print("none of them converged", style="red")
        raise SystemExit(1)
    if not as_json:
        print(f"Use: {found.rows[0]['python']}")
        out.print(_why(found.rows), markup=False, highlight=False)


def _why(rows: list[dict[str, Any]]) -> str:
    """Why the first row of advice is the first one."""
    best, others = rows[0], [row for row in rows[1:] if row["verified"]]
    parts = [f"It took {best['seconds']:.3g} s, {best['setup_seconds']:.3g} s of them to set up"]
    plain = next((row for row in others if row["method"] == "none"), None)
    if plain:
        times = plain["seconds"] / best["seconds"]
        parts.append(
            f"{times:.1f} times less than CG without a preconditioner, with {best['iterations']} iterations instead of "
            f"{plain['iterations']}"
        )
    if others:
        parts.append(f"the next best is {others[0]['method']}, with {others[0]['seconds']:.3g} s")
    quickest = min(rows[:1] + others, key=lambda row: row["solve_seconds"])
    if quickest is not best:
        parts.append(
            f"for many right-hand sides with one matrix, {quickest['method']} solves fastest once it is set up, "
            f"in {quickest['solve_seconds']:.3g} s"
        )
    return "; ".join(parts) + "."


@command
def plot(
    file: File,
    output: Annotated[Path, Option("The picture: .png or .svg.")],
    what: Annotated[str, Option("pattern, levels or convergence.")] = "pattern",
    coloring: Annotated[str, Option("A method of `mcprecond info`, or auto.")] = "greedy",
) -> None:
    """Draw a matrix: its pattern by color blocks, the levels of triangular solves, or how CG converges on it.

    Needs matplotlib, which mcprecond[studies] brings.

    Example: mcprecond plot matrix.mtx --what pattern --output pattern.png
    """
    _check_output(output, ".png", ".svg")
    one_of(what, "--what", PICTURES)
    named = _coloring_method(coloring, "--coloring")
    from mcprecond.studies import plots

    with _working(f"reading {file}") as work:
        A = _read(file) if what == "pattern" else _symmetric(_read(file), file)
        work.update(f"drawing {what}")
        if what == "pattern":
            ax = plots.color_blocks(A, mcprecond.color(A, named))
        elif what == "levels":
            orders = {
                "row order": mcprecond.ILU0(A, ordering="natural"),
                f"{coloring} colors": mcprecond.ILU0(A, coloring=named),
            }
            ax = plots.level_sizes({name: M.levels for name, M in orders.items()})
        else:
            b = A @ np.random.default_rng(0).standard_normal(A.shape[0])
            makers = {"none": "none", "Jacobi": "jacobi", f"SGS {coloring}": "sgs", "multigrid": "multigrid"}
            results = {}
            for name, kind in makers.items():
                work.update(f"solving with {name}")
                if kind == "jacobi":
                    _refuse_diagonal(A, file)
                M, _ = _made(A, kind, named, get_backend("cpu"))
                results[name] = mcprecond.pcg(A, b, rtol=1e-8, M=M)
            ax = plots.residual_history(results)
        ax.set_title(file.name)
        ax.figure.savefig(output, dpi=150, bbox_inches="tight")
    print(output)
