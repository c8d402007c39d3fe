"""Advice for one matrix: preconditioners, and other solvers, tried on it."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from mcprecond.backends import backend_of
from mcprecond.backends.arguments import flag, function, integer, real
from mcprecond.backends.inputs import any_of, refuse_not_finite, shape_vector
from mcprecond.backends.team import get_threads, set_threads
from mcprecond.linalg.hermitian import is_hermitian
from mcprecond.matrix import AdmittedMatrix
from mcprecond.multigrid.smoothed_aggregation import near_null_space
from mcprecond.preconditioners.gauss_seidel import LARGEST_BLOCK
from mcprecond.preconditioners.setup import admit
from mcprecond.solvers import gmres
from mcprecond.solvers.automatic import times_for, weakest_for
from mcprecond.solvers.nullspace import null_space_basis
from mcprecond.studies.candidates import Candidate, Factors, candidates, general_candidates
from mcprecond.studies.compare import System, finite, system_with
from mcprecond.studies.measure import Timing, time_calls
from mcprecond.studies.table import Table
from mcprecond.tuning.features import with_features
from mcprecond.tuning.forecast import digits_of
from mcprecond.tuning.symmetric import forecast_cg
from mcprecond.typing import NullSpace

MAXITER = 10_000
#: A solve is given up after so many times the time of the fastest so far, but not before so many seconds; and what took
#: so many times as long in the first timed run is not timed again.
LONGER, LEAST_SECONDS = 10.0, 2.0
#: What is tried with one thread, too: what was fastest with all of them, and what waits for others at every level.
FASTEST, OF_MANY_STEPS = 3, "ILU0 row order"

SEED = 0  # of the right-hand side
APPLICATIONS = 5  # of M that are timed
CONVERGED = "converged"
#: The columns of the table, in order.
COLUMNS = [
    "method",
    "threads",
    "verified",
    "decided",
    "advised",
    "iterations",
    "colors",
    "seconds",
    "seconds_first_quartile",
]
COLUMNS += ["seconds_third_quartile", "predicted_seconds", "setup_seconds", "solve_seconds", "application", "residual"]
COLUMNS += ["reason", "python", "command"]
#: What `quick` tries, behind the name of the solver.
QUICK = ("multigrid", "SGS", "DILU", "ILU0 row order", "ILU0 colors", "Jacobi", "none")
LONGEST_REASON = 100  # characters
#: A constant vector counts as one of the null space if A times it is zero up to so many units of rounding.
ROUNDING = 100
#: Blocks are full if they have at least this share of their entries.
FULL = 0.9

#: Told what happens now, how many runs are done, and of how many.
Progress = Callable[[str, int, int], None]


def advise(
    A: Any,
    b: Any = None,
    *,
    B: Any = None,
    block_size: int = 1,
    nullspace: NullSpace = None,
    rtol: float = 1e-8,
    repeats: int = 3,
    quick: bool = False,
    progress: Progress | None = None,
) -> Table:
    """Try solvers on a matrix and rank them by the time of setup and solve together.

    For a symmetric or Hermitian A they are CG with the preconditioners of this package; where PyAMG is installed, with
    a classical hierarchy of PyAMG, and on the CPU with PyAMG's preconditioners; and a direct solver: SciPy's on the
    CPU, if it is predicted to take seconds only, and cuDSS on the GPU, where nvmath is installed. For any other A they
    are `bicgstab` and `gmres` with ILU0, DILU and Gauss-Seidel, and on the CPU with SciPy's spilu, and SciPy's direct
    solver. On the CPU all threads are used; what is fastest with them, and ILU0 in the order of the rows, is tried with
    one thread, too.

    Each is run once to warm up, and given up if it takes ten times as long as the fastest so far. Then they take
    turns, so that what else runs on the machine meets all of them; what took ten times as long as the fastest is timed
    once only. The threads of this process are changed meanwhile.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, shape (n, n)
        It is solved where it lives.
    b : array, shape (n,), optional
        The right-hand side; A times a random vector by default.
    B : array, shape (n,) or (n, k), optional
        Near-null space, for smoothed aggregation: rigid body modes in elasticity.
    block_size : int
        Unknowns of a node, for Gauss-Seidel and smoothed aggregation.
    nullspace : "constant", "detect" or array, shape (n,) or (n, k), optional
        The null space of a singular symmetric or Hermitian A, as for `pcg`. Where the rows of such an A sum to zero,
        "constant" is the default.
    rtol : float
        Of the residual, relative to b.
    repeats : int
        Timed runs of each, after the one to warm up.
    quick : bool
        Try only the usual ones, once each after the run to warm up.
    progress : function of a str and two int, optional
        Told what happens now, how many runs are done, and of how many.

    Returns
    -------
    Table
        In the order of seconds; those that did not converge, or refused, come last, with the reason in a line. Columns:
        method, threads (None where they do not matter, or there is only one), verified (the true residual is within
        rtol), decided (whether a row is slower than the first one beyond the noise, which is three times the distance
        of the quartiles; of the first row, whether all others are), advised (of the rows that are about as fast as the
        first one, the one to take: first those with default options, among them with all threads, and of these the one
        with the fewest iterations), iterations (0 of a direct solver), colors (of ILU0 the levels; None for what has no
        colors, as multigrid on a CPU), seconds (setup and solve, median), seconds_first_quartile,
        seconds_third_quartile, predicted_seconds (the same as ``pcg(A, b, M="auto")`` predicts it from the iterations
        that Jacobi took; None for what that does not consider), setup_seconds, solve_seconds, application (time of
        M @ r relative to A @ x), residual, reason, python (how to use it), command (the options of
        ``mcprecond solve``, which takes the number of threads from MCPRECOND_NUM_THREADS; None if there are none for
        it).

    Raises
    ------
    TypeError
        If A is not a sparse matrix of real or complex floats, or an argument has another type.
    ValueError
        If A is not square, empty, or holds NaN or infinity; if b, B, block_size or nullspace does not fit A, or another
        argument is out of range.

    Examples
    --------
    >>> from mcprecond import studies
    >>> from mcprecond.problems import graphs
    >>> table = studies.advise(graphs.grid2d(16))
    >>> rows = {row["method"]: row for row in table.rows}
    >>> for method in ("none", "SGS greedy", "ILU0 row order"):
    ...     print(method, rows[method]["colors"], rows[method]["iterations"])
    none None 50
    SGS greedy 2 25
    ILU0 row order 31 18
    """
    matrix, _ = admit(A, finite=True)
    if not matrix.shape[0]:
        raise ValueError("A has no rows; there is nothing to solve")
    block_size = integer(block_size, "block_size", 1, LARGEST_BLOCK)
    if matrix.shape[0] % block_size:
        raise ValueError(f"block_size {block_size} does not divide the {matrix.shape[0]} unknowns of A")
    if B is not None:
        B = near_null_space(B, matrix, block_size)
    rtol, repeats = real(rtol, "rtol", least=0.0), integer(repeats, "repeats", 1)
    repeats = 1 if flag(quick, "quick") else repeats
    system, _ = system_with(matrix.csr, SEED, repeats)
    if b is not None:
        b = shape_vector(b, matrix.shape[0], matrix.backend)
        refuse_not_finite(b, matrix.backend)
        system = system._replace(b=b)
    for_cg = is_hermitian(matrix)
    if for_cg:
        if nullspace is None and has_constant_null_space(matrix):
            nullspace = "constant"
        if nullspace is not None:
            system = system._replace(b=project(system.b, null_space_basis(nullspace, matrix)))
        tried = candidates(matrix.backend, B, block_size, nullspace)
    elif nullspace is not None:
        raise ValueError("nullspace needs a symmetric or Hermitian A; leave it out")
    else:
        tried = general_candidates(matrix.backend)
    if quick:
        tried = [candidate for candidate in tried if candidate.method.rpartition(", ")[2] in QUICK]
    trials = contest(system, tried, rtol, repeats, function(progress, "progress"), tries_one_thread=not quick)
    return Table(rank(trials, predict_seconds(matrix, rtol) if for_cg else {}))


def has_constant_null_space(matrix: AdmittedMatrix) -> bool:
    """Whether the rows of A sum to zero, up to rounding."""
    ones = matrix.backend.xp.ones(matrix.shape[0], matrix.dtype)
    sums, sizes = abs(matrix.operand() @ ones), matrix.magnitudes() @ abs(ones)
    return not any_of(~(sums <= ROUNDING * np.finfo(matrix.dtype).eps * sizes))


def project(v: Any, basis: Any) -> Any:
    """A vector less its parts in an orthonormal basis, taken off twice for what rounding has left."""
    for _ in range(2):
        v = v - basis.T @ (basis.conj() @ v)
    return v


def full_block_size(A: Any) -> int:
    """The largest size up to 6 of square blocks of a SciPy matrix that are nearly full; 1 if there is none."""
    for size in (6, 5, 4, 3, 2):
        if A.shape[0] % size == 0 and A.shape[0] > 4 * size and A.nnz:
            blocks = A.tobsr((size, size))
            if blocks.data.size * FULL <= A.nnz and len(blocks.indices) > A.shape[0] // size:
                return size
    return 1


class Trial:
    """A candidate with a number of threads, and what its runs have shown.

    Attributes
    ----------
    candidate : Candidate
    threads : int or None
        None where they do not matter, or there is only one.
    verified : bool
    facts : dict
        Columns of `advise`.
    setups, solves : list of float
        Seconds of the timed runs.
    """

    def __init__(self, candidate: Candidate, threads: int | None) -> None:
        self.candidate, self.threads, self.verified = candidate, threads, False
        self.facts: dict[str, Any] = {}
        self.setups: list[float] = []
        self.solves: list[float] = []

    def __str__(self) -> str:
        return f"{self.candidate.method}, 1 thread" if self.threads == 1 else self.candidate.method

    @property
    def total(self) -> Timing:
        """Of setup and solve together."""
        return Timing.of([sum(pair) for pair in zip(self.setups, self.solves, strict=True)])

    def warm_up(self, system: System, rtol: float, most: float) -> float:
        """Run once, with at most so many seconds for the solve, and time an application of M; the seconds."""
        self.run(system, rtol, most)
        return self.setups.pop() + self.solves.pop() if self.verified else math.inf

    def run(self, system: System, rtol: float, most: float = math.inf) -> None:
        """Set up and solve; whatever is raised becomes the reason why there is no result."""
        backend = backend_of(system.A)
        try:
            with sharing(self.threads):
                started = time.perf_counter()
                M = None if self.candidate.build is None else self.candidate.build(system.A)
                backend.synchronize()
                ready = time.perf_counter()
                x, iterations, reason = solve_system(system, self.candidate, M, rtol, most)
                backend.synchronize()
                finished = time.perf_counter()
                if not self.facts and M is not None:
                    application = time_calls(lambda: M @ system.b, backend.synchronize, APPLICATIONS)
                    self.facts = {"application": application.median / system.product}
            norm = backend.xp.linalg.norm
            residual = float(norm(system.b - system.A @ x)) / (float(norm(system.b)) or 1.0)
        except Exception as error:  # other packages raise what they like, and the ranking goes on
            self.verified = False
            refused = f"refused: {describe_error(error)}"
            self.facts["reason"] = str(error) if isinstance(error, TakesTooLong) else refused[:LONGEST_REASON]
            return
        self.setups.append(ready - started)
        self.solves.append(finished - ready)
        # The solver measures the residual in its own way; rounding may differ.
        self.verified = reason == CONVERGED and residual <= rtol * (1 + 1e-6)
        if reason == CONVERGED and not self.verified:
            reason = "the true residual is larger than rtol"
        self.facts = {"application": 0.0} | self.facts | {"iterations": iterations, "reason": reason}
        self.facts |= {"colors": getattr(M, "n_colors", None), "residual": finite(residual)}


class TakesTooLong(Exception):
    """A solve takes much longer than the fastest one."""


def solve_system(system: System, candidate: Candidate, M: Any, rtol: float, most: float) -> tuple[Any, int, str]:
    """The solution, by a Krylov method or a direct solver, iterations and reason.

    Raises
    ------
    TakesTooLong
        If the method is still running `most` seconds after its first iteration. The clock starts there, since kernels
        may be compiled before it.
    """
    if isinstance(M, Factors):
        return M @ system.b, 0, CONVERGED
    started: list[float] = []

    def watch(count: int, norm: float) -> None:
        if count and not started:
            started.append(time.perf_counter())
        elif count and time.perf_counter() - started[0] > most:
            others = f"another one is at least {LONGER:.0f} times as fast"
            raise TakesTooLong(f"given up after {most:.3g} s and {count} iterations: {others}")

    hook = watch if most < math.inf else None
    most_cycles = -(-MAXITER // 20) if candidate.solver is gmres else MAXITER
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SciPy's factors may overflow
        result = candidate.solver(system.A, system.b, rtol=rtol, maxiter=most_cycles, M=M, progress=hook)
    return result.x, result.iterations, CONVERGED if result.converged else result.reason.name.lower()


def describe_error(error: Exception) -> str:
    """The first line of an error."""
    first = next(iter(str(error).strip().splitlines()), "")
    return " ".join(f"{type(error).__name__}: {first}".split())


@contextmanager
def sharing(threads: int | None) -> Iterator[None]:
    """Have so many threads share loops meanwhile; None leaves them alone."""
    before = get_threads()
    try:
        if threads:
            set_threads(threads)
        yield
    finally:
        set_threads(before)


def contest(
    system: System,
    tried: list[Candidate],
    rtol: float,
    repeats: int,
    progress: Progress | None,
    *,
    tries_one_thread: bool = True,
) -> list[Trial]:
    """Try candidates in turns, with all threads, and some of them with one."""
    threads = get_threads() if backend_of(system.A).name == "cpu" and get_threads() > 1 else None
    trials = [Trial(candidate, threads if candidate.shares_loops else None) for candidate in tried]
    fastest, done, extra = math.inf, 0, (FASTEST + 1 if threads and tries_one_thread else 0)
    planned = (1 + repeats) * (len(trials) + extra)

    def tell(what: str) -> None:
        if progress:
            progress(what, done, planned)

    def warm_up(some: list[Trial]) -> None:
        nonlocal fastest, done, planned
        for trial in some:
            tell(f"warming up {trial}")
            fastest = min(fastest, trial.warm_up(system, rtol, max(LONGER * fastest, LEAST_SECONDS)))
            done += 1
            planned -= 0 if trial.verified else repeats

    def go_round(some: list[Trial], times: int) -> None:
        nonlocal done
        for _ in range(times):
            for trial in some:
                if trial.verified and len(trial.solves) < repeats:
                    tell(f"timing {trial}")
                    trial.run(system, rtol)
                    done += 1

    warm_up(trials)
    going_on = [trial for trial in trials if trial.verified]
    go_round(going_on, 1)
    near = sorted((trial for trial in going_on if trial.verified), key=lambda trial: trial.total.median)
    near = [trial for trial in near if trial.total.median <= LONGER * near[0].total.median]
    planned -= (repeats - 1) * (len(going_on) - len(near))
    if extra:
        parallel = [trial for trial in near if trial.threads]
        with_many_steps = [trial for trial in parallel[FASTEST:] if OF_MANY_STEPS in trial.candidate.method]
        alone = [Trial(trial.candidate, 1) for trial in parallel[:FASTEST] + with_many_steps]
        planned -= (1 + repeats) * (extra - len(alone))
        warm_up(alone)
        trials += alone
        near += [trial for trial in alone if trial.verified]
    go_round(near, repeats)
    return trials


def rank(trials: list[Trial], predicted: dict[str, float]) -> list[dict[str, Any]]:
    """The rows of `advise`."""
    good = sorted((trial for trial in trials if trial.verified), key=lambda trial: trial.total.median)
    decided = [trial.total.exceeds(good[0].total) for trial in good[1:]]
    rows = []
    for trial, verdict in zip(good, [all(decided), *decided], strict=bool(good)):
        setup, solve = Timing.of(trial.setups).median, Timing.of(trial.solves).median
        rows.append(trial.facts | {"decided": verdict, "setup_seconds": setup, "solve_seconds": solve})
        rows[-1] |= trial.total.columns("seconds")
    near = [trial for trial, verdict in zip(good, [False, *decided], strict=bool(good)) if not verdict]
    advised = min(near, key=preference, default=None)
    bad = [trial for trial in trials if not trial.verified]
    rows += [trial.facts for trial in bad]
    for row, trial in zip(rows, good + bad, strict=True):
        method, alone = trial.candidate.method, trial.threads == 1
        row |= {"method": method, "threads": trial.threads, "verified": trial.verified, "advised": trial is advised}
        row["command"] = trial.candidate.command
        row["predicted_seconds"] = None if alone else predicted.get(method)
        row["python"] = f"configure(threads=1); {trial.candidate.python}" if alone else trial.candidate.python
    return [{name: row.get(name) for name in COLUMNS} for row in rows]


def preference(trial: Trial) -> tuple[Any, ...]:
    """What decides between trials that are about as fast: the least is preferred."""
    is_default = trial.candidate.is_default and trial.threads != 1
    return not is_default, trial.threads == 1, trial.facts["iterations"], trial.candidate.method


def predict_seconds(matrix: AdmittedMatrix, rtol: float) -> dict[str, float]:
    """The predictions by which ``pcg(A, b, M="auto")`` chooses, by candidate."""
    matrix = with_features(matrix)
    forecast = forecast_cg(
        times_for(matrix), matrix.features, weakest_for(matrix), matrix.backend.name, has_candidates=False
    )
    seconds = {name: forecast.seconds(name, digits_of(rtol)) for name in forecast.predicted}
    return {"ILU0 row order" if name == "ILU0" else name: found for name, found in seconds.items()}
