"""Unsymmetric systems: bicgstab and gmres against the mesh Péclet number, with the rows in several orders."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from mcprecond import problems
from mcprecond.coloring import color
from mcprecond.preconditioners import ILU0, MulticolorDILU, MulticolorGS
from mcprecond.problems import FENL
from mcprecond.problems.fenl import CONDUCTIVITY
from mcprecond.studies import Table

ORDERINGS = ("natural", "colored", "downwind")
PRECONDITIONERS = ("none", "GS", "DILU", "ILU0")
SOLVERS = ("bicgstab", "gmres")

RTOL, MOST_PRODUCTS, RESTART = 1e-7, 2000, 30


def peclet(
    n: int = 16,
    *,
    numbers: Iterable[float] = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0),
    device: str = "cpu",
) -> Table:
    """Solve the first Newton step of FENL with advection along (1, 1, 1), by SciPy's or CuPy's solvers.

    Preconditioners are forward Gauss-Seidel, DILU and ILU(0), each with the rows in natural order (by its levels), by
    the colors of `color`, and by the same colors renumbered downwind: colors whose rows lie further upstream on average
    come first. Bad pivots are shifted. The right-hand side belongs to a random solution with a fixed seed.

    From a mesh Péclet number of about 5 on most combinations fail, in every order. The matrix has much to do with it:
    Galerkin's method is not stabilized, and natural boundary conditions hold where the flow enters at the sides. There
    the diagonal gets negative entries, first on the edge x = y = 0, and at 20 many eigenvalues have negative real
    parts. SciPy's spilu(fill_factor=1, drop_tol=0) calls such matrices exactly singular, and gmres with spilu converges
    only with most of the fill of a complete factorization. At 5, gmres without a preconditioner still converges, so
    there the preconditioners break down before the matrix does.

    Parameters
    ----------
    n : int
        Elements per edge.
    numbers : iterable of float
        Mesh Péclet numbers.
    device : {"cpu", "gpu"}

    Returns
    -------
    Table
        A row for each solve. Columns: peclet (the mesh Péclet number ``|a| h / (2 k)``), solver, preconditioner,
        ordering (empty without a preconditioner), colors (levels of the sweeps; 0 without a preconditioner), products
        (with the matrix: two per iteration of bicgstab, one per inner iteration of gmres(30), and some for residuals),
        verified (whether the solver says that it converged, and the true residual is below 1e-5).
    """
    rows: list[dict[str, Any]] = []
    for number in numbers:
        advection = 2 * number * CONDUCTIVITY * n / np.sqrt(3)
        problem = problems.fenl(n, advection=advection, device=device)
        J = problem.jacobian(problem.initial())
        x = problem.backend.xp.asarray(np.random.default_rng(0).uniform(-1, 1, problem.unknowns))
        b = J @ x
        colorings = _colorings(problem, J)
        for kind in PRECONDITIONERS:
            for ordering in ORDERINGS if kind != "none" else ("",):
                M = _preconditioner(J, kind, ordering, colorings)
                for solver in SOLVERS:
                    products, converged = _solve(problem, solver, J, b, M)
                    rows.append(
                        {
                            "peclet": number,
                            "solver": solver,
                            "preconditioner": kind,
                            "ordering": ordering,
                            "colors": getattr(M, "n_colors", 0),
                            "products": products,
                            "verified": converged,
                        }
                    )
    return Table(rows)


def _colorings(problem: FENL, J: Any) -> dict[str, Any]:
    """Natural order as the levels of ILU(0), the colors of `color`, and the same renumbered downwind."""
    backend = problem.backend
    found = color(J)
    colors = backend.to_host(found.colors)
    stream = backend.to_host(problem.coordinates) @ np.array(problem.advection)
    along = np.bincount(colors, weights=stream) / found.sizes
    new_number = np.empty(found.n_colors, np.int32)
    new_number[np.argsort(along, kind="stable")] = np.arange(found.n_colors)
    return {
        "natural": ILU0(J, ordering="natural").coloring,
        "colored": found,
        "downwind": backend.xp.asarray(new_number[colors]),
    }


def _preconditioner(J: Any, kind: str, ordering: str, colorings: dict[str, Any]) -> Any:
    if kind == "none":
        return None
    if kind == "GS":
        return MulticolorGS(J, colorings[ordering], sweep="forward")
    if kind == "DILU":
        return MulticolorDILU(J, colorings[ordering], pivot="shift")
    return ILU0(J, coloring=colorings[ordering], pivot="shift")


def _solve(problem: FENL, solver: str, J: Any, b: Any, M: Any) -> tuple[int, bool]:
    """Products with J that a library's solver makes, and whether it succeeds."""
    xp, linalg = problem.backend.xp, problem.backend.linalg
    products = 0

    def multiply(x: Any) -> Any:
        nonlocal products
        products += 1
        return J @ x

    operator = linalg.LinearOperator(J.shape, matvec=multiply, dtype=J.dtype)
    options = {"maxiter": MOST_PRODUCTS // 2}
    if solver == "gmres":
        # SciPy counts restarts, CuPy iterations.
        options = {
            "maxiter": MOST_PRODUCTS // RESTART if problem.backend.name == "cpu" else MOST_PRODUCTS,
            "restart": RESTART,
        }
    x, info = getattr(linalg, solver)(operator, b, rtol=RTOL, M=M, **options)
    residual = float(xp.linalg.norm(b - J @ x) / xp.linalg.norm(b))
    return products, info == 0 and residual <= 1e-5
