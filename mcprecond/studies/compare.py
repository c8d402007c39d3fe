"""Studies of a user's own: colorings and preconditioners side by side on a set of matrices."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from mcprecond.backends import backend_of
from mcprecond.backends.arguments import describe, function, integer, mapping, names, real
from mcprecond.coloring import Coloring, Graph, color, coloring_of
from mcprecond.coloring.priorities import LOW_DEGREE
from mcprecond.preconditioners.setup import admit
from mcprecond.solvers import SolveResult, pcg
from mcprecond.studies.measure import Timing, count_columns, peak_bytes, time_calls
from mcprecond.studies.table import Record, Table
from mcprecond.typing import ColoringMethod

#: What says that a preconditioner or a solver does not take a matrix.
REFUSALS = ValueError, ArithmeticError, MemoryError

Matrices = Mapping[str, Any]  # name -> sparse matrix, or function without arguments that returns one
Progress = Callable[[str], None]


class Call(NamedTuple):
    """A coloring to compare: a function of A and of a seed, and the name and the options by which a case is found
    again.
    """

    color: Callable[[Any, int], Any]
    name: str
    options: str = ""
    distance: int = 1

    @classmethod
    def of(cls, call: Any) -> Call:
        """What a user gave: a method's name and options, or a function."""
        if callable(call):
            return cls(lambda A, seed: call(A), f"{call.__module__}.{getattr(call, '__qualname__', repr(call))}")
        if not isinstance(call, tuple | list) or len(call) != 2 or not isinstance(call[0], str):
            wanted = "a name and a dict of options, or a function,"
            raise TypeError(f"methods must give {wanted} for each label, got {describe(call)}")
        method, options = cast(ColoringMethod, call[0]), mapping(call[1], "the options in methods")

        def run(A: Any, seed: int) -> Coloring:
            return color(A, method, **({"seed": seed} | dict(options)))

        return cls(run, method, options_as_text(options), options.get("distance", 1))


class System(NamedTuple):
    """A x = b with its solution, and how long A @ x takes, in seconds."""

    A: Any
    x: Any
    b: Any
    product: float


def size_of(A: Any, graph: Graph) -> dict[str, float]:
    """Columns about A and the degrees of its graph."""
    degrees = graph.degrees if graph.n else np.zeros(1)
    return {
        "vertices": graph.n,
        "entries": int(A.nnz),
        "max_degree": graph.max_degree,
        "mean_degree": float(degrees.mean()),
        "degree_deviation": float(degrees.std()),
        "share_of_degrees_from_32": float((degrees >= LOW_DEGREE).mean()),
    }


def coloring(
    matrices: Matrices,
    methods: Iterable[str] | Mapping[str, tuple[str, Mapping[str, Any]] | Callable[[Any], Any]],
    *,
    path: str | Path | None = None,
    study: str = "coloring",
    repeats: int = 3,
    progress: Progress | None = None,
) -> Table:
    """Color every matrix by every method: colors, rounds, time.

    Each call of a method has another seed, unless its options name one. Methods whose threads race, and those that draw
    numbers, may find another number of colors each time.

    Parameters
    ----------
    matrices : dict of str to sparse matrix or function
        Of SciPy or CuPy, each colored where it lives. A function is called without arguments when its turn comes.
    methods : list of str, or dict of str to (str, dict) or function
        Names of methods of `mcprecond.color`, or label -> (name, options). A function is another coloring to compare
        with: of A, returning a `Coloring` or the colors as an array.
    path : str or Path, optional
        A .json file; after each case it and the .csv beside it are written. Cases that it holds already are not run
        again, so an interrupted study goes on: a case is a name of a matrix, a label, a method with its options, and
        repeats.
    study : str
        What the file says it is a record of.
    repeats : int
        Timed calls of `color`, with seeds from 0 on, after one to warm up.
    progress : function of a str, optional
        Told what is run.

    Returns
    -------
    Table
        Columns: matrix, method (the label), device, vertices, entries, max_degree, mean_degree, degree_deviation (the
        standard deviation of the degrees), share_of_degrees_from_32 (of the vertices, those of degree 32 or more),
        colors, rounds and conflicts (how often a vertex had to be colored again): medians, with the least, the most and
        the mean of each beside it (colors_least, colors_most, colors_mean), seconds (median of `color`),
        seconds_first_quartile, seconds_third_quartile, spread (slowest less fastest), pattern_seconds (the part of it
        that makes the graph of A, which is the same for all methods; a function of yours does without), peak_bytes (the
        most memory that `color` has allocated at a time, by NumPy or CuPy), verified (all colorings are proper),
        coloring, options, repeats.

    Raises
    ------
    ValueError
        If repeats is not positive, or the file at `path` holds another study, machine or versions.
    TypeError, ValueError
        As `mcprecond.color`, and as `MulticolorSGS` for the colors that a function returns.

    Examples
    --------
    >>> from mcprecond import studies
    >>> from mcprecond.problems import graphs
    >>> table = studies.coloring({"grid": graphs.grid2d(8)}, {"by rows": ("greedy", {"order": "natural"})}, repeats=1)
    >>> [(row["method"], row["colors"], row["verified"]) for row in table.rows]
    [('by rows', 2, True)]
    """
    if isinstance(methods, Mapping):
        calls = {label: Call.of(call) for label, call in mapping(methods, "methods").items()}
    else:
        calls = {name: Call.of((name, {})) for name in names(methods, "methods")}
    mapping(matrices, "matrices")
    record = Record(study, ("matrix", "method", "coloring", "options", "repeats"), path)
    cases = [
        {"matrix": matrix, "method": label, "coloring": call.name, "options": call.options, "repeats": repeats}
        for matrix in matrices
        for label, call in calls.items()
    ]

    def prepare(A: Any) -> tuple[Any, dict[str, Any]]:
        backend = backend_of(A)
        pattern = time_calls(lambda: Graph.of(A), backend.synchronize, repeats).median
        return A, {"device": backend.name, **size_of(A, Graph.of(A)), "pattern_seconds": pattern}

    def measure(A: Any, case: dict[str, Any]) -> dict[str, Any]:
        call, backend = calls[case["method"]], backend_of(A)
        peak = peak_bytes(lambda: call.color(A, 0), backend.name)
        found: list[Any] = []
        # The first call is to warm up.
        timing = time_calls(lambda: found.append(call.color(A, max(len(found) - 1, 0))), backend.synchronize, repeats)
        colorings = [one if isinstance(one, Coloring) else coloring_of(admit(A)[0], one) for one in found[1:]]
        counts = count_columns("colors", [one.n_colors for one in colorings])
        counts |= count_columns("rounds", [one.rounds for one in colorings])
        counts |= count_columns("conflicts", [int(one.history[:, 1].sum()) for one in colorings])
        proper = all(one.is_valid(A) if call.distance == 1 else _is_valid_at_2(A, one) for one in colorings)
        times = {**timing.columns("seconds"), "spread": timing.spread}
        return {**counts, **times, "peak_bytes": peak, "verified": proper}

    return run_cases(record, matrices, cases, prepare, measure, progress)


def convergence(
    matrices: Matrices,
    preconditioners: Mapping[str, Callable[[Any], Any] | None],
    *,
    rtol: float = 1e-8,
    maxiter: int | None = None,
    solver: Callable[..., SolveResult] = pcg,
    seed: int = 0,
    path: str | Path | None = None,
    study: str = "convergence",
    repeats: int = 3,
    progress: Progress | None = None,
) -> Table:
    """Solve a system with every matrix and every preconditioner: iterations, times, and what an application costs.

    Each solve has a preconditioner of its own: where the threads of a coloring race, iterations may differ.

    The right-hand side is A times a random vector, normally distributed, from the seed.

    Parameters
    ----------
    matrices : dict of str to sparse matrix or function
        As in `coloring`; float32 or float64, and such as the solver takes.
    preconditioners : dict of str to function or None
        Label -> function of A that returns M; None for no preconditioner. Where such a function, or the solver with
        its M, raises a ValueError, an ArithmeticError or a MemoryError, that becomes the case's reason.
    rtol, maxiter
        Of the solver.
    solver : function
        ``solver(A, b, rtol=..., maxiter=..., M=...)`` that returns a `SolveResult`: `pcg` or another one.
    seed : int
    path, study, repeats, progress
        As in `coloring`. A case is a matrix's name, a label, the solver's name, rtol, maxiter, seed and repeats.

    Returns
    -------
    Table
        Columns: matrix, method (the label), device, vertices (rows), entries, colors, iterations (the median, beside
        it iterations_least, iterations_most and iterations_mean), seconds (setup and solve together), spread (of the
        solve: slowest less fastest), setup_seconds and solve_seconds (medians), product_seconds (of A @ x) and
        application (the time of M @ r relative to it), the first and third quartiles of seconds, solve_seconds and
        application, residual (the true one, relative to b), error (relative, in the 2-norm), verified (converged, and
        the true residual within rtol), reason, solver, rtol, maxiter, seed, repeats.

    Raises
    ------
    ValueError
        If repeats is not positive, or the file at `path` holds another study, machine or versions.
    TypeError, ValueError
        As the solver.

    Examples
    --------
    >>> from mcprecond import MulticolorSGS, studies
    >>> from mcprecond.problems import graphs
    >>> table = studies.convergence({"grid": graphs.grid2d(16)}, {"none": None, "SGS": MulticolorSGS}, repeats=1)
    >>> [(row["method"], row["iterations"]) for row in table.rows]
    [('none', 50), ('SGS', 25)]
    """
    if not callable(solver):
        raise TypeError(f"solver must be a function, got {describe(solver)}")
    solver_name = f"{solver.__module__}.{getattr(solver, '__qualname__', repr(solver))}"
    shared = {"solver": solver_name, "rtol": rtol, "maxiter": maxiter, "seed": seed, "repeats": repeats}
    mapping(matrices, "matrices")
    for label, build in mapping(preconditioners, "preconditioners").items():
        function(build, f"the preconditioner {label!r} in preconditioners")
    seed = integer(seed, "seed", 0)
    real(rtol, "rtol", least=0.0)
    if maxiter is not None:
        integer(maxiter, "maxiter", 0)
    record = Record(study, ("matrix", "method", *shared), path)
    cases = [{"matrix": matrix, "method": label, **shared} for matrix in matrices for label in preconditioners]

    def measure(system: System, case: dict[str, Any]) -> dict[str, Any]:
        return solve_case(system, preconditioners[case["method"]], solver, rtol, maxiter, repeats)[0]

    return run_cases(record, matrices, cases, lambda A: system_with(A, seed, repeats), measure, progress)


def system_with(A: Any, seed: int, repeats: int) -> tuple[System, dict[str, Any]]:
    """A system with a random solution, and the columns that all its cases share."""
    matrix, _ = admit(A, finite=True)
    csr, backend = matrix.csr, matrix.backend
    A = csr.copy()  # CuPy's products sort the rows of a matrix in place
    exact = np.random.default_rng(seed).standard_normal(A.shape[0]).astype(A.dtype)
    x = backend.xp.asarray(exact)
    product = time_calls(lambda: A @ x, backend.synchronize, 5 * repeats).median
    size = {"device": backend.name, "vertices": A.shape[0], "entries": int(A.nnz), "product_seconds": product}
    return System(A, x, A @ x, product), size


def solve_case(
    system: System,
    build: Callable[[Any], Any] | None,
    solver: Callable[..., SolveResult],
    rtol: float,
    maxiter: int | None,
    repeats: int,
) -> tuple[dict[str, Any], Any, SolveResult | None]:
    """The columns of `convergence` for one preconditioner, this, and the last result; None for what was refused."""
    A, x, b, product = system
    backend = backend_of(A)
    setups, solves, counts = list[float](), list[float](), list[int]()
    for _ in range(repeats + 1):
        try:
            started = time.perf_counter()
            M = None if build is None else build(A)
            backend.synchronize()
            ready = time.perf_counter()
        except REFUSALS as error:
            return {"verified": False, "reason": f"no preconditioner: {error}"}, None, None
        try:
            result = solver(A, b, rtol=rtol, maxiter=maxiter, M=M)
            backend.synchronize()
            solves.append(time.perf_counter() - ready)
        except REFUSALS as error:
            return {"verified": False, "reason": f"refused: {error}"}, M, None
        setups.append(ready - started)
        counts.append(result.iterations)
    # The first solve was to warm up.
    setup, solve = Timing.of([0.0] if build is None else setups[1:]), Timing.of(solves[1:])
    application = Timing.of([0.0]) if M is None else time_calls(lambda: M @ b, backend.synchronize, 5 * repeats)
    norm = backend.xp.linalg.norm
    residual = float(norm(b - A @ result.x)) / (float(norm(b)) or 1.0)
    row = {
        "colors": getattr(M, "n_colors", None),
        **count_columns("iterations", counts[1:]),
        **(setup + solve).columns("seconds"),
        "spread": solve.spread,
        "setup_seconds": setup.median,
        **solve.columns("solve_seconds"),
        **application.scale(1 / product).columns("application"),
        "residual": finite(residual),
        "error": finite(float(norm(result.x - x)) / (float(norm(x)) or 1.0)),
        # The solver measures the residual in its own way; rounding may differ.
        "verified": result.converged and residual <= rtol * (1 + 1e-6),
        "reason": result.reason.name.lower(),
    }
    return row, M, result


def run_cases(
    record: Record,
    matrices: Matrices,
    cases: list[dict[str, Any]],
    prepare: Callable[[Any], tuple[Any, dict[str, Any]]],
    measure: Callable[[Any, dict[str, Any]], dict[str, Any]],
    progress: Progress | None,
) -> Table:
    """Measure the cases that the record does not hold; a matrix is made only if it has one.

    ``prepare(matrix)`` returns what ``measure(prepared, case)`` needs, and columns that all cases of the matrix share.
    """
    for case in cases:
        integer(case["repeats"], "repeats", 1)
    function(progress, "progress")
    done = sum(record.find(case) is not None for case in cases)
    for name, matrix in matrices.items():
        open_cases = [case for case in cases if case["matrix"] == name and record.find(case) is None]
        if not open_cases:
            continue
        if progress:
            progress(f"{name} ({done} of {len(cases)} done)")
        prepared, size = prepare(matrix() if callable(matrix) else matrix)
        for case in open_cases:
            if progress:
                progress(f"{name}: {case['method']} ({done} of {len(cases)} done)")
            done += 1
            start = {"matrix": name, "method": case["method"], **size}
            record.add(start | measure(prepared, case) | case)
    return Table([record.rows[record.key(case)] for case in cases])


def options_as_text(options: Mapping[str, Any]) -> str:
    """The options as text, by which a case is found again."""
    return ", ".join(f"{name}={_name(value)}" for name, value in sorted(options.items()))


def _name(value: Any) -> str:
    """A value as text that no other has; NumPy shortens long arrays."""
    if not hasattr(value, "dtype"):
        return repr(value)
    array = np.ascontiguousarray(backend_of(value).to_host(value))
    return f"{array.dtype}{array.shape} {hashlib.sha256(array.tobytes()).hexdigest()[:16]}"


def _is_valid_at_2(A: Any, found: Any) -> bool:
    csr = A.tocsr()
    pattern = csr.astype(np.float64)
    pattern.data[:] = 1.0
    pattern = pattern + pattern.T
    return bool(found.is_valid(pattern @ pattern + pattern))


def finite(value: float) -> float | None:
    """The number, or None for one that JSON does not know."""
    return value if math.isfinite(value) else None
