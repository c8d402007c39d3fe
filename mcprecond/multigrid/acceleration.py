"""Krylov methods by name, with a hierarchy as their preconditioner, called as PyAMG's solvers call them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from mcprecond.backends import Backend
from mcprecond.backends.arguments import describe, did_you_mean
from mcprecond.solvers import SOLVERS, SolveResult, gmres, pcg

OURS: dict[str, Callable[..., Any]] = {"cg": pcg} | {name: SOLVERS[name] for name in SOLVERS if name != "pcg"}
#: These, and methods of SciPy and CuPy that take M and a callback.
METHODS = ("cg", "bicg", "bicgstab", "cgs", "gcrotmk", "gmres", "lgmres", "minres")


def find_method(accel: Any, backend: Backend) -> Callable[..., Any]:
    """Return a Krylov method: `accel` itself if it is a function.

    Raises
    ------
    TypeError, ValueError
        If `accel` is neither a function nor the name of a method of ours, or of SciPy, or CuPy for a hierarchy on a
        GPU.
    """
    if callable(accel):
        return accel
    if not isinstance(accel, str):
        raise TypeError(f"accel must be a name or a function, got {describe(accel)}")
    known = [name for name in METHODS if name in OURS or hasattr(backend.linalg, name)]
    if accel not in known:
        hint = did_you_mean(accel, known)
        raise ValueError(f"accel must be one of {', '.join(known)}, or a function such as pcg, got {accel!r}{hint}")
    return OURS[accel] if accel in OURS else getattr(backend.linalg, accel)


def accelerate(
    accel: str | Callable[..., Any],
    A: Any,
    b: Any,
    x0: Any,
    *,
    tol: float,
    maxiter: int | None,
    M: Any,
    callback: Callable[[Any], object] | None,
    residuals: list[float] | None,
) -> tuple[Any, Any]:
    """Solve by the method of that name, or by a function with the arguments of PyAMG's or SciPy's; return x and info.

    `residuals` is filled with the norms of b - A x: by PyAMG's methods themselves, from the result of ours, and in the
    callback of other methods. The callback of gmres gets the norm of the residual relative to that of b.
    """
    method = find_method(accel, M.backend)
    norm, taken = M.backend.xp.linalg.norm, parameters(method)
    options: dict[str, Any] = {"maxiter": maxiter, "M": M, "callback": callback}
    if method in OURS.values():
        of_gmres = {"callback_type": "pr_norm"} if method is gmres else {}
        result: SolveResult[Any] = method(A, b, x0, rtol=tol, **options, **of_gmres)
        if residuals is not None:
            residuals[:] = result.residuals.tolist()
        return result.x, result.info
    if "residuals" in taken or not taken:
        x, info = method(A, b, x0=x0, tol=tol, residuals=residuals, **options)
        return x, info
    options |= {"tol": tol} if "tol" in taken else {"rtol": tol}
    if "atol" in taken:
        options["atol"] = 0.0
    if residuals is not None:
        residuals[:] = [float(norm(b if x0 is None else b - A @ x0))]

        def note(x: Any) -> None:
            residuals.append(float(norm(b - A @ x)))
            if callback is not None:
                callback(x)

        options["callback"] = note
    x, info = method(A, b, x0=x0, **options)
    return x, info


def parameters(method: Callable[..., Any]) -> frozenset[str]:
    """The names of a function's parameters; none where it does not tell."""
    try:
        return frozenset(inspect.signature(method).parameters)
    except (TypeError, ValueError):
        return frozenset()
