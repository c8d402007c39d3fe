"""Advice for one matrix: the preconditioners of this package tried on it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mcprecond.backends import backend_of
from mcprecond.linalg.hermitian import is_hermitian
from mcprecond.matrix import AdmittedMatrix, admitted
from mcprecond.multigrid import SmoothedAggregation
from mcprecond.preconditioners import ILU0, MulticolorDILU, MulticolorSGS
from mcprecond.solvers.automatic import predicted_for
from mcprecond.studies.compare import Progress, convergence
from mcprecond.studies.table import Table
from mcprecond.tuning.stages import OF_JACOBI, iterations_of_multigrid

RTOL, MAXITER = 1e-6, 1000


def _jacobi(A: Any) -> Any:
    sparse, diagonal = backend_of(A).sparse, A.diagonal()
    if not (diagonal.real > 0).all():
        raise ValueError("A has a diagonal entry that is not positive")
    return sparse.csr_matrix(sparse.diags(1 / diagonal))


#: Label -> function of A, and the same in a line of Python.
CANDIDATES: dict[str, tuple[Callable[[Any], Any] | None, str]] = {
    "SGS": (lambda A: MulticolorSGS(A), "pcg(A, b, M=MulticolorSGS(A))"),
    "SGS eb": (lambda A: MulticolorSGS(A, "eb"), 'pcg(A, b, M=MulticolorSGS(A, "eb"))'),
    "SGS ecl_gc": (lambda A: MulticolorSGS(A, "ecl_gc"), 'pcg(A, b, M=MulticolorSGS(A, "ecl_gc"))'),
    "SGS greedy": (lambda A: MulticolorSGS(A, "greedy"), 'pcg(A, b, M=MulticolorSGS(A, "greedy"))'),
    "DILU": (lambda A: MulticolorDILU(A), "pcg(A, b, M=MulticolorDILU(A))"),
    "ILU0 colors": (lambda A: ILU0(A, ordering="color"), 'pcg(A, b, M=ILU0(A, ordering="color"))'),
    "ILU0 row order": (lambda A: ILU0(A, ordering="natural"), 'pcg(A, b, M=ILU0(A, ordering="natural"))'),
    "multigrid": (lambda A: SmoothedAggregation(A), "pcg(A, b, M=SmoothedAggregation(A))"),
    "Jacobi": (_jacobi, "pcg(A, b, M=scipy.sparse.diags_array(1 / A.diagonal()).tocsr())"),
    "none": (None, "pcg(A, b)"),
}


def advise(A: Any, *, repeats: int = 1, progress: Progress | None = None) -> Table:
    """Try preconditioners of CG on a matrix and rank them by the time of a solve.

    The right-hand side is A times a random vector; the solves go to a relative residual of 1e-6, with 1000 iterations
    at most.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, shape (n, n)
        Symmetric, or complex Hermitian, and positive definite. It is solved where it lives.
    repeats : int
        Timed solves for each preconditioner, after one to warm up.
    progress : function of a str, optional
        Told what is tried.

    Returns
    -------
    Table
        Best first; those that did not converge come last, with the reason. Columns: method, verified, iterations,
        colors (of ILU0 the levels; None for what has no colors, as multigrid on a CPU), seconds (setup and solve),
        predicted_seconds (the same as ``pcg(A, b, M="auto")`` predicts it from the iterations that Jacobi took; None
        for what that does not consider), setup_seconds, solve_seconds, application (time of M @ r relative to A @ x),
        residual, reason, python (how to use it; for a CuPy matrix Jacobi's is written with cupyx.scipy).

    Raises
    ------
    TypeError
        If A is not a sparse matrix of real or complex floats.
    ValueError
        If A is not square, empty, not symmetric or Hermitian, or holds NaN or infinity.

    Examples
    --------
    >>> from mcprecond import studies
    >>> from mcprecond.problems import graphs
    >>> table = studies.advise(graphs.grid2d(16))
    >>> len(table.rows), all(row["verified"] for row in table.rows)
    (10, True)
    """
    matrix = admitted(A, finite=True)
    A, backend = matrix.csr, matrix.backend
    if not A.shape[0]:
        raise ValueError("A has no rows; there is nothing to solve")
    if not is_hermitian(matrix):
        raise ValueError(f"A is not {'Hermitian' if A.dtype.kind == 'c' else 'symmetric'}, which CG needs")
    found = convergence(
        {"A": A},
        {label: build for label, (build, _) in CANDIDATES.items()},
        rtol=RTOL,
        maxiter=MAXITER,
        repeats=repeats,
        progress=progress,
    )
    shown = ["method", "verified", "iterations", "colors", "seconds", "predicted_seconds", "setup_seconds"]
    shown += ["solve_seconds", "application", "residual", "reason"]
    predicted, rows = predicted_seconds(matrix, found), []
    for row in sorted(found.rows, key=lambda row: (not row["verified"], row.get("seconds", math.inf))):
        python = CANDIDATES[row["method"]][1]
        if backend.name == "gpu":
            python = python.replace("scipy.sparse.diags_array", "cupyx.scipy.sparse.diags")
        row = row | {"predicted_seconds": predicted.get(row["method"])}
        rows.append({name: row.get(name) for name in shown} | {"python": python})
    return Table(rows)


def predicted_seconds(matrix: AdmittedMatrix, found: Table) -> dict[str, float]:
    """What ``pcg(A, b, M="auto")`` predicts for solves, of which it knows how many iterations Jacobi takes."""
    taken = {row["method"]: row["iterations"] for row in found.rows if row.get("verified")}
    iterations = {name: taken[name] for name in ("none", "Jacobi") if name in taken}
    iterations["multigrid"] = iterations_of_multigrid(-math.log10(RTOL))
    if "Jacobi" in taken:
        iterations["SGS"] = OF_JACOBI * taken["Jacobi"]
    predictions = predicted_for(matrix)
    return {name: predictions[name].setup + count * predictions[name].iteration for name, count in iterations.items()}
