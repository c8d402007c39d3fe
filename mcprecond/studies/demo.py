"""The demonstration compares CG alone, CG with preconditioners, and `solve`, on five problems of four kinds."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba.core import event

from mcprecond import problems
from mcprecond.backends import Backend, get_backend
from mcprecond.backends.arguments import function
from mcprecond.multigrid import SmoothedAggregation, rigid_body_modes
from mcprecond.preconditioners import MulticolorSGS
from mcprecond.problems.placing import place_matrix
from mcprecond.solvers import SolveResult, pcg
from mcprecond.studies.table import Table
from mcprecond.systems import solve

SOLVE = "solve"
#: The names under which the demonstration shows the choices of `solve` that are not preconditioners.
CALLED = {"none": "CG alone", "direct": "a direct solver"}
METHODS = ("CG", "Jacobi", "SGS", "multigrid", SOLVE)
RTOL, MAXITER, SEED = 1e-8, 10_000, 0
EQUAL = 0.1  # of the time: less is no difference

#: Told what happens now, how many solves are done, and of how many.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class System:
    """What is solved.

    Attributes
    ----------
    name : str
    A : csr_matrix of SciPy or CuPy
        The matrix, or the first of several with one pattern.
    solve : function of a LinearSolver
        Calls it for each linear system.
    near_null_space : array, optional
        For multigrid and `solve`.
    block_size : int
        For multigrid and `solve`.
    """

    name: str
    A: Any
    solve: Callable[[LinearSolver], Any]
    near_null_space: Any = None
    block_size: int = 1

    @property
    def nodes(self) -> dict[str, Any]:
        """B and block_size, as keyword arguments of `solve`, `pcg` and `SmoothedAggregation`."""
        return {"B": self.near_null_space, "block_size": self.block_size}


class LinearSolver:
    """CG with a preconditioner, which is built for the first matrix and updated for later ones; or `solve`, which
    begins anew with each matrix.
    """

    def __init__(self, system: System, method: str, backend: Backend) -> None:
        self.system, self.method, self.backend = system, method, backend
        self.M: Any = None
        self.iterations, self.setup_seconds, self.solve_seconds, self.converged = 0, 0.0, 0.0, True
        self.chosen = ""

    def __call__(self, A: Any, rhs: Any) -> SolveResult:
        """Solve ``A x = rhs``."""
        self.backend.synchronize()
        started = time.perf_counter()
        if self.method == SOLVE:
            result = solve(A, rhs, rtol=RTOL, maxiter=MAXITER, **self.system.nodes)
            self.backend.synchronize()
            self.setup_seconds += time.perf_counter() - started - result.solve_seconds
            self.solve_seconds += result.solve_seconds
            names = [stage.name for stage in result.stages] or [result.method]
            self.chosen = ", then ".join(CALLED.get(name, name) for name in names)
        else:
            self._set_up(A)
            self.backend.synchronize()
            self.setup_seconds += time.perf_counter() - started
            result = pcg(A, rhs, rtol=RTOL, maxiter=MAXITER, M=self.M)
            self.solve_seconds += result.setup_seconds + result.solve_seconds
        self.iterations += result.iterations
        self.converged &= result.converged
        return result

    @property
    def seconds(self) -> float:
        """Of setup and solves together."""
        return self.setup_seconds + self.solve_seconds

    def _set_up(self, A: Any) -> None:
        if self.method == "Jacobi":
            self.M = self.backend.sparse.csr_matrix(self.backend.sparse.diags(1 / A.diagonal()))
        elif self.method != "CG" and self.M is not None:
            self.M.update(A)
        elif self.method == "SGS":
            self.M = MulticolorSGS(A)
        elif self.method == "multigrid":
            self.M = SmoothedAggregation(A, **self.system.nodes)


def demo(
    *, device: str = "cpu", small: bool = False, repeats: int = 3, progress: Progress = lambda *told: None
) -> Iterator[Table]:
    """Solve five problems by CG alone, with Jacobi, symmetric Gauss-Seidel and multigrid as preconditioners, and by
    `solve`, which chooses among them.

    A random network of resistors; the Laplacian of a random triangulation with one vertex grounded; elasticity of
    tetrahedra; FENL, and then all steps of Newton's method for FENL. But for Newton's method, right-hand sides are
    random. Every solve is run once without being counted, on the CPU with small problems, which compiles what has not
    been compiled yet; then the methods take turns.

    Parameters
    ----------
    device : {"cpu", "gpu"}
    small : bool
        Small problems, to try it.
    repeats : int
        Timed runs of each method, of which the fastest counts.
    progress : function of a str and two int, optional
        Told what happens now, how many solves are done, and of how many.

    Yields
    ------
    Table
        One for each problem, with a row for each method. Columns: problem, device, unknowns, entries, method, chosen
        (by `solve`, for the last system), iterations (of all linear systems together), setup_seconds (building and
        updating the preconditioner, and the choice), solve_seconds, total_seconds (both; assembly is not counted),
        verified, times_faster (the total of CG divided by this one).

    Raises
    ------
    TypeError, ValueError
        If progress is no function, or the device is unknown or missing.

    Examples
    --------
    >>> from mcprecond import studies
    >>> for table in studies.demo(small=True, repeats=1):
    ...     print(table.rows[0]["problem"], [row["method"] for row in table.rows if row["verified"]])
    circuit ['CG', 'Jacobi', 'SGS', 'multigrid', 'solve']
    random triangulation ['CG', 'Jacobi', 'SGS', 'multigrid', 'solve']
    elasticity ['CG', 'Jacobi', 'SGS', 'multigrid', 'solve']
    FENL ['CG', 'Jacobi', 'SGS', 'multigrid', 'solve']
    FENL, Newton's method ['CG', 'Jacobi', 'SGS', 'multigrid', 'solve']
    """
    function(progress, "progress")
    backend = get_backend(device)
    sizes = SIZES["small" if small else backend.name]
    total = len(MAKERS) * len(METHODS) * (repeats + 1)
    done = 0

    def tell(what: str) -> None:
        progress(what, done, total)

    def rehearse(systems: list[System], method: str) -> None:
        nonlocal done
        for system in systems:
            tell(f"{system.name}: warming up {method}")
            system.solve(LinearSolver(system, method, backend))
            done += 1

    if backend.name == "cpu":
        with _tell_compiling(lambda: tell("compiling, once")), _compile_beside() as compiled:
            tell("assembling")
            rehearsals = _small_systems(backend)
            for method in METHODS:
                if method == "multigrid":
                    _compile_smoothers(rehearsals)
                    tell("compiling, once")
                    compiled.wait()
                if method == SOLVE:
                    _compile_choice(rehearsals)
                rehearse(rehearsals, method)
    for make, size in zip(MAKERS, sizes, strict=True):
        tell("assembling")
        system = make(size, backend)
        if backend.name == "gpu":
            for method in METHODS:
                rehearse([system], method)
        runs: dict[str, list[LinearSolver]] = {method: [] for method in METHODS}
        for _ in range(repeats):
            for method in METHODS:
                tell(f"{system.name}: {method}")
                linear = LinearSolver(system, method, backend)
                system.solve(linear)
                runs[method].append(linear)
                done += 1
        tell(system.name)
        yield Table(_rows(system, runs, backend))


def _rows(system: System, runs: dict[str, list[LinearSolver]], backend: Backend) -> list[dict[str, Any]]:
    rows = []
    for method, solvers in runs.items():
        linear = min(solvers, key=lambda run: run.seconds)
        row = {"problem": system.name, "device": backend.name, "unknowns": system.A.shape[0]}
        row |= {"entries": int(system.A.nnz), "method": method, "chosen": linear.chosen}
        row |= {"iterations": linear.iterations}
        row |= {"setup_seconds": linear.setup_seconds, "solve_seconds": linear.solve_seconds}
        row |= {"total_seconds": linear.seconds}
        row["verified"] = all(run.converged for run in solvers)
        rows.append(row)
    for row in rows:
        both = row["verified"] and rows[0]["verified"]
        row["times_faster"] = rows[0]["total_seconds"] / row["total_seconds"] if both else None
    return rows


def verdict(rows: list[dict[str, Any]]) -> str:
    """Say which method of a table is the fastest, or which are about equal, and what `solve` chose.

    Totals, as the table shows them, are about equal if they are less than a tenth apart. Where CG is among the fastest,
    it is said what the best preconditioner costs in its iterations.
    """
    converged = sorted((row for row in rows if row["verified"]), key=lambda row: row["total_seconds"])
    if not converged:
        return "No method converged."
    near = [row for row in converged if row["total_seconds"] <= (1 + EQUAL) * converged[0]["total_seconds"]]
    said = f"{_fastest(rows[0], near)}{_costs(rows[0], near, converged)}."
    automatic = next((row for row in converged if row["method"] == SOLVE), None)
    if automatic is None:
        return said
    times = automatic["total_seconds"] / converged[0]["total_seconds"]
    took = "" if automatic in near else f", and took {times:.1f} times as long"
    return f"{said} solve(A, b) chose {automatic['chosen']}{took}."


def _fastest(CG: dict[str, Any], near: list[dict[str, Any]]) -> str:
    """Say which methods are the fastest, and how much faster than CG they are."""
    names = [row["method"] for row in near]
    if len(names) > 1:
        said = f"{', '.join(names[:-1])} and {names[-1]} are about equal"
    else:
        said = f"{names[0]} is the fastest"
    return said if CG in near or not CG["verified"] else f"{said}, {near[0]['times_faster']:.1f} times as fast as CG"


def _costs(CG: dict[str, Any], near: list[dict[str, Any]], converged: list[dict[str, Any]]) -> str:
    """Say what the best preconditioner costs if CG is among the fastest; otherwise return an empty string."""
    M = next((row for row in converged if row["method"] in ("SGS", "multigrid")), None)
    if CG not in near or M is None:
        return ""
    one = CG["solve_seconds"] / CG["iterations"]
    return (
        f": CG needs {CG['iterations']:,} iterations. {M['method']} needs {M['iterations']:,}, each as long as "
        f"{M['solve_seconds'] / M['iterations'] / one:.1f} of CG's, and its setup takes as long as "
        f"{M['setup_seconds'] / one:,.0f} of them"
    )


def _fenl(n: int, backend: Backend) -> System:
    problem = problems.fenl(n, device=backend.name)
    return _with_random_rhs("FENL", problem.jacobian(problem.exact()), backend)


def _newton(n: int, backend: Backend) -> System:
    problem = problems.fenl(n, device=backend.name)
    return System("FENL, Newton's method", problem.jacobian(problem.initial()), problem.solve)


def _circuit(n: int, backend: Backend) -> System:
    return _with_random_rhs("circuit", problems.circuit(n, seed=SEED, device=backend.name), backend)


def triangulation(n: int) -> sp.csr_matrix:
    """Return the Laplacian of a triangulation of n random points, with one vertex grounded.

    SciPy alone makes it: `problems.graphs.delaunay` would have to be compiled.
    """
    from scipy.spatial import Delaunay  # fifty milliseconds of every import of this package otherwise

    points = np.random.default_rng(SEED).random((n, 2))
    points = points[np.lexsort((points[:, 0], np.floor(points[:, 1] * n**0.5)))]
    corners = Delaunay(points).simplices
    edges = sp.csr_matrix((np.ones(corners.size), (corners.ravel(), np.roll(corners, 1, axis=1).ravel())), shape=(n, n))
    graph = edges.maximum(edges.T)  # sides inside are listed in both directions, those of the hull in one
    degrees = np.diff(graph.indptr).astype(float)
    degrees[0] += 1  # the vertex that is grounded
    return sp.csr_matrix(sp.diags(degrees) - graph)


def _triangulation(n: int, backend: Backend) -> System:
    return _with_random_rhs("random triangulation", place_matrix(triangulation(n), backend), backend)


def _elasticity(n: int, backend: Backend) -> System:
    A = problems.elasticity(n, elements="tetrahedra", device=backend.name)
    z, y, x = np.meshgrid(*[np.linspace(0, 1, n)] * 3, indexing="ij")
    nodes = backend.xp.asarray(np.stack([x.ravel(), y.ravel(), z.ravel()], axis=1))
    return _with_random_rhs("elasticity", A, backend, near_null_space=rigid_body_modes(nodes), block_size=3)


def _with_random_rhs(name: str, A: Any, backend: Backend, **options: Any) -> System:
    b = backend.xp.asarray(np.random.default_rng(SEED).standard_normal(A.shape[0]))
    return System(name, A, lambda linear: linear(A, b), **options)


MAKERS = (_circuit, _triangulation, _elasticity, _fenl, _newton)
SIZES = {"small": (24, 600, 7, 7, 7), "cpu": (160, 30_000, 16, 36, 24), "gpu": (1000, 500_000, 40, 100, 64)}


def _small_systems(backend: Backend) -> list[System]:
    return [make(size, backend) for make, size in zip(MAKERS, SIZES["small"], strict=True)]


def _compile_smoothers(systems: list[System]) -> None:
    """Have Numba compile the sweeps of multigrid's cycles."""
    for system in systems:
        M = MulticolorSGS(system.A, block_size=system.block_size)
        M.smooth(np.zeros(M.shape[0]), M @ np.ones(M.shape[0]))


def _compile_choice(systems: list[System]) -> None:
    """Have Numba compile the functions that choose a preconditioner. For such small systems `solve` takes its direct
    solver, and does not call them.
    """
    for system in systems:
        pcg(system.A, np.ones(system.A.shape[0]), M="auto", **system.nodes)


def compile_setups() -> None:
    """Have Numba compile the setup of multigrid, for another process: half of what the demonstration compiles."""
    A = _triangulation(600, get_backend("cpu")).A
    for block_size in (1, 3):
        SmoothedAggregation(sp.kron(A, np.eye(block_size), "csr"), block_size=block_size, smoother="jacobi")


@contextmanager
def _compile_beside() -> Iterator[subprocess.Popen[bytes]]:
    """A process that compiles the setup of multigrid, since Numba compiles one function at a time in each process."""
    command = [sys.executable, "-c", f"from {__name__} import compile_setups; compile_setups()"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


class _Compilation(event.Listener):
    def __init__(self, tell: Callable[[], None]) -> None:
        self.tell = tell

    def on_start(self, event: Any) -> None:
        self.tell()

    def on_end(self, event: Any) -> None:
        pass


@contextmanager
def _tell_compiling(tell: Callable[[], None]) -> Iterator[None]:
    """Call `tell` whenever Numba compiles a function, rather than finding it in its cache."""
    with event.install_listener("numba:compile", _Compilation(tell)):
        yield
