"""What `advise` tries on a matrix: solvers with the line of Python that stands for each."""

from __future__ import annotations

import json
import os
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mcprecond.backends import Backend, backend_of, get_backend
from mcprecond.backends.memory import available_bytes, format_bytes
from mcprecond.matrix import admit_matrix
from mcprecond.multigrid import ClassicalAMG, SmoothedAggregation, from_pyamg
from mcprecond.preconditioners import ILU0, MulticolorDILU, MulticolorGS, MulticolorSGS
from mcprecond.solvers import bicgstab, gmres, pcg
from mcprecond.solvers.named import BUILDERS

#: Operations that a direct solver on the CPU may be predicted to need: those of some seconds.
MOST_OPERATIONS = 3e11
BYTES_PER_ENTRY = 12  # of a factor
#: What ``mcprecond solve`` calls our preconditioners.
COMMANDS = {
    "SmoothedAggregation": "--preconditioner multigrid",
    "ClassicalAMG": "--preconditioner multigrid",
    "MulticolorSGS": "--preconditioner sgs",
    "MulticolorDILU": "--preconditioner dilu",
    "ILU0": "--preconditioner ilu0",
}
LONGEST_ROWS = 200  # on average over all entries of A, for PyAMG; 81 are those of elasticity


class Candidate(NamedTuple):
    """A way to solve A x = b.

    Attributes
    ----------
    method : str
        What it is called.
    build : function of A, or None
        Returns M for CG, or `Factors`; None for CG without M.
    python : str
        How to do the same.
    shares_loops : bool
        Whether this package's threads do the work.
    solver : function
        ``solver(A, b, M=M, rtol=..., maxiter=..., progress=...)``, of this package.
    is_default : bool
        Whether it has no options but those that say what A is.
    command : str or None
        The options of ``mcprecond solve`` for the same; None if there are none.
    """

    method: str
    build: Callable[[Any], Any] | None
    python: str
    shares_loops: bool = True
    solver: Callable[..., Any] = pcg
    is_default: bool = False
    command: str | None = None


class Factors:
    """A factorization of A: ``factors @ b`` is the solution."""

    def __init__(self, solve: Callable[[Any], Any]) -> None:
        self._solve = solve

    def __matmul__(self, b: Any) -> Any:
        return self._solve(b)


def candidates(backend: Backend, B: Any = None, block_size: int = 1, nullspace: Any = None) -> list[Candidate]:
    """What there is for Hermitian matrices on a backend; at first what is rarely slow.

    Parameters
    ----------
    backend : Backend
    B : array, optional
        A near-null space, for smoothed aggregation.
    block_size : int
        Unknowns of a node, for what goes by nodes.
    nullspace : "constant", "detect" or array, optional
        The null space of a singular matrix: then there is no direct solver.
    """
    nodes = {} if block_size == 1 else {"block_size": block_size}
    given = {} if B is None else {"B": B}
    found = [
        _ours("multigrid", SmoothedAggregation, given | nodes),
        _ours("SGS", MulticolorSGS, nodes),
        *(_ours(f"SGS {name}", MulticolorSGS, nodes, coloring=name) for name in ("eb", "ecl_gc", "greedy")),
        _ours("DILU", MulticolorDILU),
        *_ilu0(backend),
        _named("Jacobi", "jacobi"),
        Candidate("none", None, "pcg(A, b)", is_default=True, command="--preconditioner none"),
    ]
    if find_spec("pyamg"):
        found += _of_pyamg(backend, B, block_size)
    if nullspace is not None:
        return [_for_singular(candidate, nullspace) for candidate in found]
    if backend.name == "cpu":
        found.append(Candidate("direct", _superlu, _SUPERLU, shares_loops=False))
    elif find_spec("nvmath"):
        found.append(Candidate("direct", _cudss, "nvmath.sparse.advanced.direct_solver(A, b)", shares_loops=False))
    return found


def general_candidates(backend: Backend) -> list[Candidate]:
    """What there is for matrices that are not Hermitian."""
    found = []
    for solver in (bicgstab, gmres):
        found += [
            _of(solver, candidate)
            for candidate in (
                _ours("multigrid", ClassicalAMG),
                *_ilu0(backend),
                _ours("DILU", MulticolorDILU),
                _ours("Gauss-Seidel", MulticolorGS),
                Candidate("none", None, "pcg(A, b)", is_default=True, command="--preconditioner none"),
            )
        ]
    if backend.name == "cpu":
        found.append(_of(gmres, _named("spilu", "spilu")._replace(shares_loops=False)))
        direct = "scipy.sparse.linalg.splu(A.tocsc()).solve(b)"
        found.append(Candidate("direct", _superlu_of_any, direct, shares_loops=False))
    return found


def _ours(method: str, kind: Callable[..., Any], of_matrix: Mapping[str, Any] = {}, **options: Any) -> Candidate:
    """A preconditioner of this package, with what is known of the matrix, and further options."""
    known = {**of_matrix, **options}
    simple = {name: json.dumps(value) if isinstance(value, str | int) else name for name, value in known.items()}
    words = ", ".join(["A", *(f"{name}={value}" for name, value in simple.items())])
    command = COMMANDS.get(kind.__name__)
    if command:
        command += "".join(f" --{name.replace('_', '-')} {value}" for name, value in known.items() if name != "B")
        command += " --near-null-space PATH" if "B" in known else ""
    python = f"pcg(A, b, M={kind.__name__}({words}))"
    return Candidate(method, lambda A: kind(A, **known), python, is_default=not options, command=command)


def _named(method: str, name: str) -> Candidate:
    """A preconditioner that solvers know by a name."""

    def build(A: Any) -> Any:
        return BUILDERS[name](admit_matrix(A, finite=True))

    return Candidate(method, build, f'pcg(A, b, M="{name}")', command=f"--preconditioner {name}")


def _ilu0(backend: Backend) -> list[Candidate]:
    """ILU(0) in both orders, of which one is the default of a device."""
    return [
        _ours(f"ILU0 {name}", ILU0, ordering=ordering)._replace(
            is_default=default == backend.name, command=COMMANDS["ILU0"] if default == backend.name else None
        )
        for name, ordering, default in (("colors", "color", "gpu"), ("row order", "natural", "cpu"))
    ]


def _of(solver: Callable[..., Any], candidate: Candidate) -> Candidate:
    """The same with another solver than CG."""
    name = solver.__name__
    return candidate._replace(
        method=f"{name}, {candidate.method}",
        python=candidate.python.replace("pcg(", f"{name}(", 1),
        solver=solver,
        command=candidate.command and f"--solver {name} {candidate.command}",
    )


def _for_singular(candidate: Candidate, nullspace: Any) -> Candidate:
    """The same where A has a null space."""
    is_word = isinstance(nullspace, str)
    word = json.dumps(nullspace) if is_word else "nullspace"
    command = candidate.command and f"{candidate.command} --nullspace {nullspace if is_word else 'PATH'}"
    return candidate._replace(
        python=f"{candidate.python[:-1]}, nullspace={word})",
        solver=partial(pcg, nullspace=nullspace),
        command=command,
    )


def _of_pyamg(backend: Backend, B: Any, block_size: int) -> list[Candidate]:
    """PyAMG's classical hierarchy with smoothers of this package; on the CPU PyAMG as it is, too."""

    def classical(A: Any) -> Any:
        import pyamg

        _refuse_hubs(A)
        with _quiet():
            return pyamg.ruge_stuben_solver(sp.csr_matrix(A if backend.name == "cpu" else A.get()))

    def aggregation(A: Any) -> Any:
        import pyamg

        _refuse_hubs(A)
        nodes = A if block_size == 1 else A.tobsr((block_size, block_size))
        return pyamg.smoothed_aggregation_solver(nodes, B=B).aspreconditioner()

    theirs = "pyamg.ruge_stuben_solver(A)"
    ours = f"{theirs}" if backend.name == "cpu" else 'pyamg.ruge_stuben_solver(A.get()), device="gpu"'
    moved = Candidate(
        "classical",
        lambda A: from_pyamg(classical(A), device=backend.name),
        f"pcg(A, b, M=multigrid.from_pyamg({ours}))",
    )
    if backend.name == "gpu":
        return [moved]
    nodes = "A" if block_size == 1 else f"A.tobsr(({block_size}, {block_size}))"
    given = "" if B is None else ", B=B"
    return [
        moved,
        Candidate(
            "PyAMG classical", lambda A: classical(A).aspreconditioner(), f"pcg(A, b, M={theirs}.aspreconditioner())"
        ),
        Candidate(
            "PyAMG aggregation",
            aggregation,
            f"pcg(A, b, M=pyamg.smoothed_aggregation_solver({nodes}{given}).aspreconditioner())",
        ),
    ]


def _refuse_hubs(A: Any) -> None:
    """Raise ValueError where PyAMG's setup could take minutes, and cannot be stopped: its products and interpolations
    visit the rows of all neighbors of a row.
    """
    lengths = (A.indptr[1:] - A.indptr[:-1]).astype(np.float64)
    length = float((lengths**2).sum()) / max(A.nnz, 1)
    if length > LONGEST_ROWS:
        raise ValueError(
            f"A has hubs: the rows of neighbors have {length:,.0f} entries; PyAMG may take minutes for that"
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what compiled code prints from the process's stdout: PyAMG has a line for each row that it cannot
    interpolate.
    """
    sys.stdout.flush()
    with open(os.devnull, "w") as nowhere:
        kept = os.dup(1)
        try:
            os.dup2(nowhere.fileno(), 1)
            yield
        finally:
            os.dup2(kept, 1)
            os.close(kept)


_SUPERLU = (
    'scipy.sparse.linalg.splu(A.tocsc(), "MMD_AT_PLUS_A", diag_pivot_thresh=0, options={"SymmetricMode": True})'
    ".solve(b)"
)


def _superlu(A: Any) -> Factors:
    """SciPy's direct solver, for symmetric matrices."""
    _refuse_much_work(A)
    from scipy.sparse.linalg import splu

    return Factors(splu(A.tocsc(), "MMD_AT_PLUS_A", diag_pivot_thresh=0, options={"SymmetricMode": True}).solve)


def _superlu_of_any(A: Any) -> Factors:
    """SciPy's direct solver."""
    _refuse_much_work(A)
    from scipy.sparse.linalg import splu

    return Factors(splu(A.tocsc()).solve)


def _refuse_much_work(A: sp.csr_matrix) -> None:
    """Raise MemoryError where a factor would take too long, or too much memory, in the order of Cuthill and McKee.

    There a row of the factor reaches from the first entry of the row to the diagonal. SuperLU's own order is seldom
    worse.
    """
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    order = reverse_cuthill_mckee(sp.csr_matrix(A), symmetric_mode=True)
    new = np.empty(len(order), np.int64)
    new[order] = np.arange(len(order))
    rows, columns = np.repeat(new, np.diff(A.indptr)), new[A.indices]
    first = np.arange(len(order))
    np.minimum.at(first, rows, columns)
    widths = np.arange(1.0, len(order) + 1) - first
    operations, memory = float((widths**2).sum()), BYTES_PER_ENTRY * int(widths.sum())
    if operations > MOST_OPERATIONS:
        most = f"more than {MOST_OPERATIONS:.0g} are not tried"
        raise MemoryError(f"its factor is predicted to take {operations:.1g} operations; {most}")
    if memory > available_bytes(get_backend("cpu")):
        raise MemoryError(f"its factor is predicted to take {format_bytes(memory)}, which are not there")


def _cudss(A: Any) -> Factors:
    """The direct solver cuDSS, by nvmath."""
    from nvmath.sparse import advanced

    kinds, xp = advanced.DirectSolverMatrixType, backend_of(A).xp
    kind = kinds.HPD if A.dtype.kind == "c" else kinds.SPD
    options = advanced.DirectSolverOptions(sparse_system_type=kind)
    solver = advanced.DirectSolver(A, xp.zeros(A.shape[0], A.dtype), options=options)
    try:
        solver.plan()
        solver.factorize()
    except BaseException:
        solver.free()
        raise

    def solve(b: Any) -> Any:
        solver.reset_operands(b=b)
        return solver.solve()

    factors = Factors(solve)
    weakref.finalize(factors, solver.free)
    return factors
