"""Table V of Deveci et al.: CG and SGS-preconditioned CG with several colorings, for FENL through Newton's method."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from mcprecond import problems
from mcprecond.backends import Backend, backend_of
from mcprecond.backends.arguments import function, labeled, names
from mcprecond.preconditioners import MulticolorSGS
from mcprecond.problems import FENL
from mcprecond.solvers import SolveResult, pcg
from mcprecond.studies.compare import Progress, finite, run_cases
from mcprecond.studies.csrcolor import csrcolor
from mcprecond.studies.measure import Timing, timed, timed_on_device
from mcprecond.studies.table import Record, Table
from mcprecond.typing import ColoringMethod

#: The methods by the names that the table shows.
METHODS = ("CG", "Jacobi", "SGS eb", "SGS ecl_gc", "SGS jpl", "SGS greedy")
CSRCOLOR = "csrcolor"  # cuSPARSE's own coloring, on a GPU

RTOL, MAXITER = 1e-7, 2000
MOST_ITERATIONS = 20000  # where systems are worse conditioned than FENL
APPLICATIONS = 15  # of the preconditioner, to time it


@dataclass(frozen=True)
class Row:
    """One method.

    Attributes
    ----------
    method : str
    colors : int or None
        Of the preconditioner; None where it has none.
    iterations : tuple of int
        Of the linear solver in each Newton step.
    setup_seconds : float
        Building the preconditioner in the first Newton step and updating it in the others.
    preconditioner_seconds : float
        Iterations times the median time of one application, measured by itself.
    total_seconds : float
        All Newton steps, assembly included.
    residual : float
        ``||R||`` at the end, relative to the initial guess.
    error : float
        The largest difference from the exact solution at a node.
    converged : bool
        Whether Newton's method and every linear solve met their tolerances.
    """

    method: str
    colors: int | None
    iterations: tuple[int, ...]
    setup_seconds: float
    preconditioner_seconds: float
    total_seconds: float
    residual: float
    error: float
    converged: bool


def table_v(
    n: int,
    *,
    device: str = "cpu",
    methods: Iterable[str] = METHODS,
    progress: Progress = lambda message: None,
) -> list[Row]:
    """Solve FENL with each method.

    Parameters
    ----------
    n : int
        Elements per edge.
    device : {"cpu", "gpu"}
    methods : iterable of str
        Out of `METHODS`.
    progress : function of a str
        Told what happens now.

    Returns
    -------
    list of Row

    Raises
    ------
    ValueError
        If n is out of range, a method is unknown, or there is no GPU.

    Examples
    --------
    >>> from mcprecond import studies
    >>> [row.converged for row in studies.table_v(4, methods=["CG", "SGS eb"])]
    [True, True]
    """
    function(progress, "progress")
    methods = names(methods, "methods")
    for method in methods:
        if method not in METHODS:
            raise ValueError(f"unknown method {method!r}; known are {', '.join(METHODS)}")
    problem = problems.fenl(n, device=device)
    # Compiling kernels is no part of any method's time.
    progress("compiling kernels")
    small = problems.fenl(2, device=device)
    for method in methods:
        _solve(small, method, lambda message: None)
    return [_solve(problem, method, progress) for method in methods]


def _solve(problem: FENL, method: str, progress: Progress) -> Row:
    linear = LinearSolver(problem.backend, method, progress)
    started = time.perf_counter()
    T, steps = problem.solve(linear, callback=lambda step: progress(f"{method}: residual {step.residual:.1e}"))
    total = time.perf_counter() - started
    iterations = tuple(result.iterations for result in linear.results)
    return Row(
        method,
        getattr(linear.M, "n_colors", None),
        iterations,
        linear.setup_seconds,
        sum(iterations) * linear.application_seconds(),
        total,
        steps[-1].residual,
        float(abs(T - problem.exact()).max()),
        steps[-1].residual <= RTOL and all(result.converged for result in linear.results),
    )


class LinearSolver:
    """pcg with the preconditioner of a method, built for the first matrix and updated for later ones.

    Parameters
    ----------
    backend : Backend
    method : str
        "CG", "Jacobi", or "SGS" and a coloring.
    progress : function of a str
    maxiter : int
    """

    def __init__(self, backend: Backend, method: str, progress: Progress, maxiter: int = MAXITER) -> None:
        self.backend, self.method, self.progress, self.maxiter = backend, method, progress, maxiter
        self.M: Any = None
        self.setup_seconds = 0.0
        self.results: list[SolveResult] = []

    def __call__(self, J: Any, rhs: Any) -> SolveResult:
        """Solve ``J x = rhs``."""
        started = time.perf_counter()
        self._set_up(J)
        self.backend.synchronize()
        self.setup_seconds += time.perf_counter() - started
        self.progress(f"{self.method}: solving, system {len(self.results) + 1}")
        self.results.append(pcg(J, rhs, rtol=RTOL, maxiter=self.maxiter, M=self.M))
        return self.results[-1]

    def _set_up(self, J: Any) -> None:
        if self.method == "Jacobi":
            self.M = self.backend.sparse.csr_matrix(self.backend.sparse.diags(1 / J.diagonal()))
        elif self.method != "CG" and self.M is None:
            self.progress(f"{self.method}: coloring")
            name = self.method.removeprefix("SGS ")
            self.M = MulticolorSGS(J, csrcolor()(J)[0] if name == CSRCOLOR else cast(ColoringMethod, name))
        elif self.method != "CG":
            self.M.update(J)

    @property
    def seconds(self) -> float:
        """Of all solves, with what the preconditioner took before them."""
        return self.setup_seconds + sum(result.setup_seconds + result.solve_seconds for result in self.results)

    def application_seconds(self) -> float:
        """The median time of one application; 0 without a preconditioner."""
        return self.applied().median

    def applied(self) -> Timing:
        """The time of ``M @ r``, as a user calls it; 0 without a preconditioner."""
        if self.M is None:
            return Timing.of([0.0])
        r = self.backend.xp.ones(self.M.shape[0])
        return timed(lambda: self.M @ r, self.backend.synchronize, APPLICATIONS)

    def captured(self) -> Timing | None:
        """The time of an application within a captured solve; None for what is not captured."""
        if not isinstance(self.M, MulticolorSGS):
            return None
        r, z = (self.backend.xp.ones(self.M.shape[0]) for _ in range(2))
        return timed_on_device(lambda: self.M.enqueue(r, z), self.backend, APPLICATIONS)


def published_table_v(
    matrices: Mapping[str, Callable[[], Any]],
    methods: Iterable[str],
    *,
    path: str | Path | None = None,
    repeats: int = 3,
    progress: Progress | None = None,
) -> Table:
    """Make Table V with all its columns, for FENL and for linear systems.

    Parameters
    ----------
    matrices : dict of str to function
        Each returns a `FENL`, solved by Newton's method, or a sparse matrix, with a random solution.
    methods : iterable of str
        "CG", "Jacobi", or "SGS" and a coloring: a name in `COLORINGS`, or "csrcolor", which is cuSPARSE's own, on a
        GPU.
    path, repeats, progress
        As in `coloring`. Every case is solved once to warm up.

    Returns
    -------
    Table
        Columns: matrix, method, device, vertices (rows), entries, assembly_seconds, colors, iterations (of all
        Newton steps together), steps (of Newton), setup_seconds (coloring, building and updating), sgs_seconds
        (iterations times one application, ``M @ r``), sgs_captured_seconds (the same within a captured graph, on a
        GPU), seconds (setup and all solves: the median), their first and third quartiles, spread, residual, verified,
        reason, rtol, maxiter, repeats.
    """
    shared = {"rtol": RTOL, "maxiter": MOST_ITERATIONS, "repeats": repeats}
    labeled(matrices, "matrices")
    methods = names(methods, "methods")
    record = Record("table-v", ("matrix", "method", *shared), path)
    cases = [{"matrix": matrix, "method": method, **shared} for matrix in matrices for method in methods]

    def timed_assembly(make: Callable[[], Any]) -> tuple[Any, float]:
        started = time.perf_counter()
        problem = make()
        A = problem.jacobian(problem.initial()) if isinstance(problem, FENL) else problem
        backend_of(A).synchronize()
        return problem, time.perf_counter() - started

    def prepare(assembled: tuple[Any, float]) -> tuple[Any, dict[str, Any]]:
        problem, seconds = assembled
        newton = isinstance(problem, FENL)
        A = problem.jacobian(problem.initial()) if newton else problem
        backend = backend_of(A)
        size = {"device": backend.name, "vertices": A.shape[0], "entries": int(A.nnz), "assembly_seconds": seconds}

        def solve(linear: LinearSolver) -> float:
            """Return the relative residual."""
            if newton:
                return float(problem.solve(linear)[1][-1].residual)
            return linear(A, b).residual_norm / norm

        if not newton:
            b = A @ backend.xp.asarray(np.random.default_rng(0).standard_normal(A.shape[0]))
            norm = float(backend.xp.linalg.norm(b))
        return (solve, backend), size

    def measure(system: Any, case: dict[str, Any]) -> dict[str, Any]:
        solve, backend = system
        told = progress or (lambda message: None)
        times = []
        for run in range(repeats + 1):
            linear = LinearSolver(
                backend, case["method"], lambda message: told(f"{case['matrix']}: {message}"), MOST_ITERATIONS
            )
            residual = solve(linear)
            if run:  # the first one compiles kernels
                times.append(linear.seconds)
        iterations, time = sum(result.iterations for result in linear.results), Timing.of(times)
        applied, captured = linear.applied().scaled(iterations), linear.captured()
        reasons = {result.reason.name.lower(): None for result in linear.results if not result.converged}
        return {
            "colors": getattr(linear.M, "n_colors", None),
            "iterations": iterations,
            "steps": len(linear.results),
            "setup_seconds": linear.setup_seconds,
            **(applied.columns("sgs_seconds") if linear.M is not None else {"sgs_seconds": None}),
            **(captured.scaled(iterations).columns("sgs_captured_seconds") if captured else {}),
            **time.columns("seconds"),
            "spread": time.spread,
            "residual": finite(residual),
            "verified": not reasons and residual <= RTOL * (1 + 1e-6),
            "reason": ", ".join(reasons) or "converged",
        }

    makers = {name: partial(timed_assembly, make) for name, make in matrices.items()}
    return run_cases(record, makers, cases, prepare, measure, progress)
