"""The commands that compare preconditioners: on problems of the package, and on a matrix of the user's."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from rich import box
from rich.markup import escape
from rich.table import Table

from mcprecond.backends import gpu_problem
from mcprecond.backends.arguments import integer, real
from mcprecond.cli import terminal
from mcprecond.cli.arguments import backend_for, null_space, read
from mcprecond.cli.parsing import File, NearNullSpace, NullSpaceFile, Option
from mcprecond.cli.terminal import working
from mcprecond.problems.files import columns, vector
from mcprecond.problems.placing import place_matrix

#: Columns of a terminal below which `advise` shows less.
NARROW = 60
LEGEND = " Applic.: time of M @ r relative to A @ x. Of ILU0 the levels are shown, which it solves one after the other."


def demo(
    small: Annotated[bool, Option("Small problems, to try it.")] = False,
    cpu: Annotated[bool, Option("Run on the CPU, even if there is a GPU.")] = False,
    as_json: Annotated[bool, Option("Print the rows as JSON.")] = False,
) -> None:
    """Solve five problems by CG alone, with Jacobi, Gauss-Seidel and multigrid, and by solve(A, b), on the GPU if there
    is one.

    Example: mcprecond demo
    """
    from mcprecond import studies
    from mcprecond.studies.demo import verdict

    problem = "--cpu was given" if cpu else gpu_problem()
    rows = []
    with working("starting") as work:
        for found in studies.demo(device="gpu" if problem is None else "cpu", small=small, progress=work.advance):
            rows += found.rows
            if not as_json:
                terminal.out.print(_race(found.rows))
                terminal.out.print(f"{verdict(found.rows)}\n", markup=False, highlight=False)
    if as_json:
        print(json.dumps(rows, indent=1))
    else:
        terminal.out.print(
            "Relative residual 1e-8. Setup builds the preconditioner, and updates it in Newton's method, where "
            "solve(A, b) builds it anew; total is setup and solve. The fastest of three runs, after one that compiled "
            "and does not count.",
            style="dim",
            highlight=False,
        )
        terminal.out.print(
            "It ran on the GPU. For the CPU: mcprecond demo --cpu"
            if problem is None
            else f"It ran on the CPU. No GPU was used: {problem}",
            markup=False,
            highlight=False,
        )
        terminal.out.print(
            "Which is best depends on the matrix. To try all of them on your own: mcprecond advise MATRIX.mtx",
            markup=False,
            highlight=False,
        )
    failed = [f"{row['problem']}: {row['method']}" for row in rows if not row["verified"]]
    if failed:
        terminal.err.print(f"not converged: {', '.join(failed)}", style="red", markup=False, soft_wrap=True)
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


def advise(
    file: File,
    rtol: Annotated[float, Option("Of the residual, relative to the right-hand side.")] = 1e-8,
    rhs: Annotated[Path | None, Option("The right-hand side, .npy or .mtx[.gz]; by default A times random x.")] = None,
    block_size: Annotated[int, Option("Unknowns of a node, such as 3 in elasticity.")] = 1,
    near_null_space: NearNullSpace = None,
    nullspace: NullSpaceFile = None,
    repeats: Annotated[int, Option("Timed runs of each.")] = 3,
    quick: Annotated[bool, Option("Try only the usual ones, once each.")] = False,
    gpu: Annotated[bool, Option("Solve on the GPU.")] = False,
    as_json: Annotated[bool, Option("Print the rows as JSON.")] = False,
) -> None:
    """Try solvers on a matrix and say which to use. Example: mcprecond advise thermal.mtx --rtol 1e-8"""
    real(rtol, "--rtol", least=0.0)
    integer(block_size, "--block-size", 1)
    integer(repeats, "--repeats", 1)
    backend = backend_for(gpu)
    from mcprecond import studies

    with working(f"reading {file}") as work:
        A = read(file)
        b = None if rhs is None else backend.xp.asarray(vector(rhs))
        B = None if near_null_space is None else columns(near_null_space)

        def tell(what: str, done: int, total: int) -> None:
            work.advance(f"{what}, {done} of {total} runs done", done, total)

        options = {"B": B, "block_size": block_size, "nullspace": null_space(nullspace), "quick": quick}
        found = studies.advise(place_matrix(A, backend), b, rtol=rtol, repeats=repeats, progress=tell, **options)
    if as_json:
        print(json.dumps(found.rows, indent=1))
    else:
        table = Table(title=f"{file.name}: {A.shape[0]:,} rows, {A.nnz:,} entries", box=box.SIMPLE)
        table.padding, table.pad_edge = (0, 1, 0, 0), False  # 80 columns have to do
        shown: dict[str, Callable[[dict[str, Any]], str]] = {
            "iterations": lambda row: str(row["iterations"]),
            "colors\nor levels": lambda row: "" if row["colors"] is None else str(row["colors"]),
            "setup\n[s]": lambda row: f"{row['setup_seconds']:.4f}",
            "solve\n[s]": lambda row: f"{row['solve_seconds']:.4f}",
            "applic.": lambda row: f"{row['application']:.1f}",
        }
        if terminal.out.width < NARROW:
            shown = {"iter.": shown["iterations"], "total\n[s]": lambda row: f"{row['seconds']:.4f}"}
        table.add_column("method", no_wrap=True)
        for heading in shown:
            table.add_column(escape(heading), justify="right", no_wrap=True)
        for row in found.rows:
            cells = [show(row) if row["verified"] else "" for show in shown.values()]
            label = _label(row).replace(", 1 thread", " (1)") if terminal.out.width < NARROW else _label(row)
            table.add_row(label, *cells, style=None if row["verified"] else "red")
        terminal.out.print(table)
        failed: dict[str, list[str]] = {}
        for row in found.rows:
            if not row["verified"]:
                failed.setdefault(row["reason"], []).append(_label(row))
        for reason, labels in failed.items():
            terminal.out.print(f"{', '.join(labels)} failed: {reason}", style="red", markup=False, highlight=False)
        terminal.out.print(
            f"To a relative residual of {rtol:g}, in order of setup and solve together: "
            + ("one run each." if quick or repeats == 1 else f"medians of {repeats}.")
            + (" (1): with one thread." if terminal.out.width < NARROW else LEGEND),
            style="dim",
        )
    if not found.rows[0]["verified"]:
        terminal.err.print("none of them converged", style="red")
        raise SystemExit(1)
    if not as_json:
        advised = next(row for row in found.rows if row["advised"])
        near = [_label(row) for row in found.rows if row["verified"] and not row["decided"]]
        if len(near) > 1:
            said = (
                f"{', '.join(near[:-1])} and {near[-1]} differ by no more than the noise: of these take the one with "
                "default options, and then the one with the fewest iterations."
            )
            terminal.out.print(said, markup=False, highlight=False)
        print(f"Use: {advised['python']}")
        if advised["command"]:
            chosen = f"{advised['command']} --rtol {rtol:g}" + (" --gpu" if gpu else "")
            alone = "MCPRECOND_NUM_THREADS=1 " if advised["threads"] == 1 else ""
            print(f"  or: {alone}mcprecond solve {shlex.quote(str(file))} {chosen}")
        terminal.out.print(_why(advised, found.rows), markup=False, highlight=False)
        if block_size == 1 and (size := studies.advice.full_block_size(A)) > 1:
            hint = f"The entries of A come in full blocks of {size} x {size}: --block-size {size} may be faster."
            terminal.out.print(hint, markup=False, highlight=False)


def _label(row: dict[str, Any]) -> str:
    """What a row of advice is called."""
    return f"{row['method']}, 1 thread" if row["threads"] == 1 else str(row["method"])


def _why(best: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    """What speaks for the row that is advised, beside all rows in their order."""
    others = [row for row in rows if row["verified"] and row is not best]
    parts = [f"It took {best['seconds']:.3g} s, {best['setup_seconds']:.3g} s of them to set up"]
    plain = next((row for row in others if row["method"] == "none" != best["method"]), None)
    if plain:
        instead = (
            f", with {best['iterations']} iterations instead of {plain['iterations']}" if best["iterations"] else ""
        )
        times = plain["seconds"] / best["seconds"]
        parts.append(f"{times:.1f} times less than CG without a preconditioner{instead}")
    slower = [row for row in others if row["seconds"] >= best["seconds"]]
    if slower:
        parts.append(f"the next best is {_label(slower[0])}, with {slower[0]['seconds']:.3g} s")
    quickest = min([best, *others], key=lambda row: row["solve_seconds"])
    if quickest is not best:
        parts.append(
            f"for many right-hand sides with one matrix, {_label(quickest)} solves fastest once it is set up, "
            f"in {quickest['solve_seconds']:.3g} s"
        )
    return "; ".join(parts) + "."
