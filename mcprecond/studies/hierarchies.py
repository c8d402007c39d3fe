"""Multigrid hierarchies of a matrix, built with different options, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcprecond.backends.arguments import integer, mapping, real
from mcprecond.multigrid import SmoothedAggregation
from mcprecond.solvers import pcg
from mcprecond.studies.compare import (
    Matrices,
    Progress,
    System,
    finite,
    options_as_text,
    run_cases,
    solve_case,
    system_with,
)
from mcprecond.studies.table import Record, Table

#: Label -> options of `SmoothedAggregation`: the defaults, and one choice after the other.
HIERARCHIES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "theta 0": {"theta": 0.0},
    "theta 0.08": {"theta": 0.08},
    "SGS": {"smoother": "sgs"},
    "Jacobi": {"smoother": "jacobi"},
    "Gauss-Seidel": {"smoother": "gauss_seidel"},
    "W cycle": {"cycle": "W"},
    "K cycle": {"cycle": "K"},
}


def multigrid(
    matrices: Matrices,
    hierarchies: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    rtol: float = 1e-8,
    maxiter: int | None = None,
    seed: int = 0,
    path: str | Path | None = None,
    study: str = "multigrid",
    repeats: int = 3,
    progress: Progress | None = None,
) -> Table:
    """Solve a system with every matrix by CG and every hierarchy: levels, complexities, iterations, times, residuals.

    The right-hand side is that of `convergence`. `plots.multigrid` draws the residuals.

    Parameters
    ----------
    matrices : dict of str to sparse matrix or function
        As in `convergence`.
    hierarchies : dict of str to dict, optional
        Label -> options of `SmoothedAggregation`. By default its defaults, and beside them other limits of strength,
        smoothers and cycles, one at a time. Where a hierarchy cannot be built, the error is the case's reason.
    rtol, maxiter
        Of `pcg`.
    seed, path, study, repeats, progress
        As in `convergence`. A case is a matrix's name, a label with its options, rtol, maxiter, seed and repeats.

    Returns
    -------
    Table
        The columns of `convergence` without solver, and: levels (how many), operator_complexity, grid_complexity,
        factor (by which an iteration reduces the residual, in the geometric mean), residuals (a list of norms, at the
        start and after every iteration, relative to the first), options.

    Raises
    ------
    ValueError
        If repeats is not positive, or the file at `path` holds another study, machine or versions.
    TypeError, ValueError
        As `pcg`; or `SmoothedAggregation` has no such option.

    Examples
    --------
    >>> from mcprecond import problems, studies
    >>> choices = {"defaults": {}, "Gauss-Seidel": {"smoother": "gauss_seidel"}}
    >>> table = studies.multigrid({"grid": problems.laplacian((40, 40))}, choices, repeats=1)
    >>> [(row["method"], row["verified"], row["levels"]) for row in table.rows]
    [('defaults', True, 2), ('Gauss-Seidel', True, 2)]
    """
    mapping(matrices, "matrices")
    chosen = HIERARCHIES if hierarchies is None else mapping(hierarchies, "hierarchies")
    for label, options in chosen.items():
        mapping(options, f"the options of {label!r} in hierarchies")
    shared = {"rtol": real(rtol, "rtol", 0.0), "maxiter": maxiter, "seed": integer(seed, "seed", 0), "repeats": repeats}
    if maxiter is not None:
        integer(maxiter, "maxiter", 0)
    record = Record(study, ("matrix", "method", "options", *shared), path)
    cases = [
        {"matrix": matrix, "method": label, "options": options_as_text(options), **shared}
        for matrix in matrices
        for label, options in chosen.items()
    ]

    def measure(system: System, case: dict[str, Any]) -> dict[str, Any]:
        options = chosen[case["method"]]
        row, M, result = solve_case(system, lambda A: SmoothedAggregation(A, **options), pcg, rtol, maxiter, repeats)
        if M is not None:
            row |= {"levels": len(M.levels)}
            row |= {"operator_complexity": M.operator_complexity, "grid_complexity": M.grid_complexity}
        if result is not None:
            relative = result.residuals / (result.residuals[0] or 1.0)
            row["factor"] = finite(float(relative[-1]) ** (1 / max(result.iterations, 1)))
            row["residuals"] = [finite(float(norm)) for norm in relative]
        return row

    return run_cases(record, matrices, cases, lambda A: system_with(A, seed, repeats), measure, progress)
