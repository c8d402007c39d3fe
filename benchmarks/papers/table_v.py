"""Table V of Deveci et al.: CG alone, with SGS by several colorings, with Jacobi, and with multigrid, for FENL through
Newton's method.

All colorings keep the order of their numbers, in which the paper sweeps; "ordered" ones are in the order that this
package looks for, as preconditioners have them by default.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from benchmarks.papers.csrcolor import csrcolor
from mcprecond.backends import Backend, backend_of
from mcprecond.coloring import color, coloring_of
from mcprecond.matrix import admit_matrix
from mcprecond.multigrid import fitting_multigrid
from mcprecond.ordering import in_best_order
from mcprecond.preconditioners import MulticolorSGS
from mcprecond.problems import FENL
from mcprecond.solvers import SolveResult, pcg
from mcprecond.studies.compare import Progress, finite, run_cases
from mcprecond.studies.measure import Timing, count_columns, time_calls
from mcprecond.studies.table import Record, Table
from mcprecond.typing import ColoringMethod

CSRCOLOR = "csrcolor"  # cuSPARSE's own coloring, on a GPU

TOLERANCE, MOST_ITERATIONS = 1e-7, 20000
APPLICATIONS = 15  # of the preconditioner, to time it


class LinearSolver:
    """pcg with the preconditioner of a method, built for the first matrix and updated for later ones.

    Parameters
    ----------
    backend : Backend
    method : str
        "CG", "Jacobi", "multigrid", or "SGS" and a coloring, with ", ordered" behind it or not.
    stop : dict
        The tolerances of `pcg`.
    progress : function of a str
    """

    def __init__(self, backend: Backend, method: str, stop: dict[str, float], progress: Progress) -> None:
        self.backend, self.method, self.stop, self.progress = backend, method, stop, progress
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
        self.results.append(pcg(J, rhs, **self.stop, maxiter=MOST_ITERATIONS, M=self.M))
        return self.results[-1]

    def _set_up(self, J: Any) -> None:
        if self.method == "Jacobi":
            self.M = self.backend.sparse.csr_matrix(self.backend.sparse.diags(1 / J.diagonal()))
        elif self.M is not None:
            self.M.update(J)
        elif self.method == "multigrid":
            self.M = fitting_multigrid(J)
        elif self.method != "CG":
            self.progress(f"{self.method}: coloring")
            self.M = MulticolorSGS(J, self._color(J))

    def _color(self, J: Any) -> Any:
        name, *ordered = self.method.removeprefix("SGS ").split(", ")
        if name == CSRCOLOR:
            found = coloring_of(admit_matrix(J), csrcolor()(J)[0])
        else:
            found = color(J, cast(ColoringMethod, name))
        return in_best_order(J, found) if ordered else found

    @property
    def seconds(self) -> float:
        """Of all solves, with what the preconditioner took before them."""
        return self.setup_seconds + sum(result.setup_seconds + result.solve_seconds for result in self.results)

    def applied(self) -> Timing:
        """The time of ``M @ r``, as a user calls it; 0 without a preconditioner."""
        if self.M is None:
            return Timing.of([0.0])
        r = self.backend.xp.ones(self.M.shape[0])
        return time_calls(lambda: self.M @ r, self.backend.synchronize, APPLICATIONS)

    def captured(self) -> Timing | None:
        """The time of an application within a captured solve; None for what is not captured."""
        if not isinstance(self.M, MulticolorSGS):
            return None
        state, (r, z) = self.M.new_state(), (self.backend.xp.ones(self.M.shape[0]) for _ in range(2))
        return timed_on_device(lambda: self.M.enqueue(state, r, z), self.backend, APPLICATIONS)


def timed_on_device(function: Callable[[], Any], backend: Backend, repeats: int, calls: int = 10) -> Timing:
    """Time a call that only launches kernels: on a GPU so many of them in a captured graph, on a CPU by itself."""
    if backend.name == "cpu":
        return time_calls(function, backend.synchronize, repeats)
    import cupy

    stream = cupy.cuda.Stream(non_blocking=True)
    function()
    cupy.cuda.Device().synchronize()
    times = []
    with stream:
        stream.begin_capture()
        for _ in range(calls):
            function()
        graph = stream.end_capture()
        for _ in range(repeats + 1):
            start, end = cupy.cuda.Event(), cupy.cuda.Event()
            start.record()
            graph.launch()
            end.record()
            end.synchronize()
            times.append(cupy.cuda.get_elapsed_time(start, end) / calls / 1e3)
    return Timing.of(times[1:])


def table_v(
    matrices: Mapping[str, Callable[[], Any]],
    methods: Iterable[str],
    *,
    absolute: Collection[str] = (),
    path: str | Path | None = None,
    repeats: int = 5,
    progress: Progress | None = None,
) -> Table:
    """Make Table V of Deveci et al. with all its columns, for FENL and for linear systems.

    A solve ends when the norm of its residual, relative to that of the right-hand side, is at most TOLERANCE.

    Parameters
    ----------
    matrices : dict of str to function
        Each returns a `FENL`, solved by Newton's method, or a sparse matrix, with a random solution.
    methods : iterable of str
        "CG", "Jacobi", "multigrid", or "SGS" and a coloring: a name in `COLORINGS`, or "csrcolor", which is cuSPARSE's
        own, on a GPU; with ", ordered" behind it, the colors are put into the best order.
    absolute : collection of str
        The matrices for which a solve ends when the norm itself is at most TOLERANCE.
    path, repeats, progress
        As in `coloring`. Every case is solved once to warm up.

    Returns
    -------
    Table
        Columns: matrix, method, device, vertices (rows), entries, assembly_seconds, colors and iterations (of all
        Newton steps together; medians, with the least, the most and the mean beside them), steps (of Newton),
        setup_seconds (coloring, building and updating), sgs_seconds (iterations times one application, ``M @ r``),
        sgs_captured_seconds (the same within a captured graph, on a GPU), seconds (setup and all solves: the median),
        their first and third quartiles, spread, residual, verified, reason, rtol, atol, maxiter, repeats.
    """
    relative, own = {"rtol": TOLERANCE, "atol": 0.0}, {"rtol": 0.0, "atol": TOLERANCE}
    shared = {"maxiter": MOST_ITERATIONS, "repeats": repeats}
    record = Record("table-v", ("matrix", "method", *relative, *shared), path)
    cases = [
        {"matrix": matrix, "method": method, **(own if matrix in absolute else relative), **shared}
        for matrix in matrices
        for method in methods
    ]

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
        times, counts, colors = list[float](), list[int](), list[int | None]()
        stop = {name: case[name] for name in relative}
        for run in range(repeats + 1):
            linear = LinearSolver(backend, case["method"], stop, lambda message: told(f"{case['matrix']}: {message}"))
            residual = solve(linear)
            if run:  # the first one compiles kernels
                times.append(linear.seconds)
                counts.append(sum(result.iterations for result in linear.results))
                colors.append(getattr(linear.M, "n_colors", None))
        time = Timing.of(times)
        applied, captured = linear.applied().scale(counts[-1]), linear.captured()
        reasons = {result.reason.name.lower(): None for result in linear.results if not result.converged}
        return {
            **count_columns("colors", colors),
            **count_columns("iterations", counts),
            "steps": len(linear.results),
            "setup_seconds": linear.setup_seconds,
            **(applied.columns("sgs_seconds") if linear.M is not None else {"sgs_seconds": None}),
            **(captured.scale(counts[-1]).columns("sgs_captured_seconds") if captured else {}),
            **time.columns("seconds"),
            "spread": time.spread,
            "residual": finite(residual),
            "verified": not reasons and residual <= TOLERANCE * (1 + 1e-6),
            "reason": ", ".join(reasons) or "converged",
        }

    makers = {name: partial(timed_assembly, make) for name, make in matrices.items()}
    return run_cases(record, makers, cases, prepare, measure, progress)
