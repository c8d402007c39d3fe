"""Table V of Deveci et al. for FENL: CG and SGS-preconditioned CG with several colorings, through Newton's method."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from mcprecond import problems
from mcprecond.preconditioners import MulticolorSGS
from mcprecond.problems import FENL
from mcprecond.solvers import SolveResult, pcg

#: The methods by the names that the table shows.
METHODS = ("CG", "Jacobi", "SGS eb", "SGS ecl_gc", "SGS jpl", "SGS greedy")

RTOL, MAXITER = 1e-7, 2000
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
    progress: Callable[[str], None] = lambda message: None,
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
    methods = list(methods)
    for method in methods:
        if method not in METHODS:
            raise ValueError(f"unknown method {method!r}; known are {', '.join(METHODS)}")
    # Compiling kernels is no part of any method's time.
    progress("compiling kernels")
    small = problems.fenl(2, device=device)
    for method in methods:
        _solve(small, method, lambda message: None)
    problem = problems.fenl(n, device=device)
    return [_solve(problem, method, progress) for method in methods]


def _solve(problem: FENL, method: str, progress: Callable[[str], None]) -> Row:
    linear = _LinearSolver(problem, method, progress)
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


class _LinearSolver:
    """pcg with the preconditioner of a method, built once and updated in later Newton steps."""

    def __init__(self, problem: FENL, method: str, progress: Callable[[str], None]) -> None:
        self.backend, self.method, self.progress = problem.backend, method, progress
        self.M: Any = None
        self.setup_seconds = 0.0
        self.results: list[SolveResult] = []

    def __call__(self, J: Any, rhs: Any) -> SolveResult:
        started = time.perf_counter()
        self._set_up(J)
        self.backend.synchronize()
        self.setup_seconds += time.perf_counter() - started
        self.progress(f"{self.method}: solving, Newton step {len(self.results) + 1}")
        self.results.append(pcg(J, rhs, rtol=RTOL, maxiter=MAXITER, M=self.M))
        return self.results[-1]

    def _set_up(self, J: Any) -> None:
        if self.method == "Jacobi":
            self.M = self.backend.sparse.csr_matrix(self.backend.sparse.diags(1 / J.diagonal()))
        elif self.method != "CG" and self.M is None:
            self.progress(f"{self.method}: coloring")
            self.M = MulticolorSGS(J, self.method.removeprefix("SGS "))
        elif self.method != "CG":
            self.M.update(J)

    def application_seconds(self) -> float:
        """The median time of one application; 0 without a preconditioner."""
        if self.M is None:
            return 0.0
        r = self.backend.xp.ones(self.M.shape[0])
        self.M @ r  # sets up buffers
        times = []
        for _ in range(APPLICATIONS):
            self.backend.synchronize()
            started = time.perf_counter()
            self.M @ r
            self.backend.synchronize()
            times.append(time.perf_counter() - started)
        return statistics.median(times)
