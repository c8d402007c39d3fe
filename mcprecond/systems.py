"""``solve(A, b)``, which chooses the method and the preconditioner.

Small systems are solved by SciPy's direct solver, if it is predicted to be faster. Otherwise, if A is Hermitian, CG
solves, and MINRES continues if A turns out to be indefinite. For any other A, BiCGSTAB solves, and GMRES continues if
BiCGSTAB fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
from scipy.sparse.linalg import splu

from mcprecond.backends import Backend
from mcprecond.backends.arguments import function, one_of
from mcprecond.backends.inputs import promote, refuse_not_finite
from mcprecond.linalg.hermitian import is_hermitian, with_symmetry
from mcprecond.linalg.powers import exponent_of, power_times, times_power
from mcprecond.matrix import AdmittedMatrix
from mcprecond.preconditioners import Preconditioner
from mcprecond.preconditioners.setup import admit
from mcprecond.solvers import PCG
from mcprecond.solvers.automatic import times_for, weakest_for
from mcprecond.solvers.bicgstab import BiCGStabSolver
from mcprecond.solvers.components import with_components
from mcprecond.solvers.gmres import GMRESSolver
from mcprecond.solvers.minres import MINRESSolver
from mcprecond.solvers.named import nodes_of
from mcprecond.solvers.nullspace import is_detected
from mcprecond.solvers.preconditioned import NORMS
from mcprecond.solvers.result import Reason, SolveResult, Stage, merge
from mcprecond.solvers.setup import admit_system
from mcprecond.solvers.solver import Solver
from mcprecond.tuning.direct import LONGEST, MOST_ENTRIES, START, seconds_of_direct
from mcprecond.tuning.features import with_features
from mcprecond.tuning.forecast import digits_of
from mcprecond.tuning.general import forecast_general
from mcprecond.tuning.symmetric import forecast_cg
from mcprecond.typing import Device, DeviceArray, HostArray, Norm, NullSpace, SystemMatrix

#: After BiCGSTAB has ended for one of these reasons, GMRES goes on.
FAILURES = Reason.STAGNATED, Reason.BREAKDOWN, Reason.DIVERGED, Reason.NOT_FINITE
INDEFINITE = "A is Hermitian but not positive definite, so MINRES was used; see minres for preconditioners"


def solve(
    A: SystemMatrix,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-8,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = "auto",
    B: HostArray | DeviceArray | None = None,
    block_size: int = 1,
    nullspace: NullSpace = None,
    norm: Norm = "residual",
    device: Device | None = None,
    callback: Callable[[Any], object] | None = None,
) -> SolveResult[Any]:
    """Solve A x = b for any square A, by a method and a preconditioner that fit it.

    A small system is solved directly, by SciPy's SuperLU, if that is predicted to take less time than an iterative
    method. If A is symmetric or Hermitian up to rounding, `pcg` solves; if it turns out not to be positive definite,
    `minres` goes on. For any other A it is `bicgstab`, and `gmres` goes on if that fails. For a LinearOperator, of
    which nothing is known, it is `gmres`.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, dense array, or LinearOperator, shape (n, n)
        Real or complex. Not changed.
    b : array, shape (n,), (n, 1) or (n, k)
        Where A is.
    x0 : array of the shape of b, optional
        Initial guess, zero by default. Not changed; a direct solver does not need it.
    rtol, atol : float
        Converged when ``||b - A x|| <= max(rtol ||b||, atol)``, tested on the true residual, unless `norm` says
        otherwise. Where such a residual may hide an error, CG goes on until an estimate of the error in the energy
        norm is at most ``max(rtol ||x||_A, atol)`` as well.
    maxiter : int, optional
        Iterations of all methods together; 10 n of each by default.
    M : preconditioner, sparse matrix, dense array, LinearOperator, str or None
        The preconditioner or its name, as for `pcg` and `bicgstab`. The direct solver is used only with "auto".
    B : array, shape (n,) or (n, k), optional
        Near-null-space candidates, as for `pcg`. A has to be Hermitian.
    block_size : int
        Unknowns of a node, as for `pcg`. A has to be Hermitian if it is not 1.
    nullspace : "constant", "detect" or array, shape (n,) or (n, k), optional
        The null space of a singular Hermitian A, as for `pcg`. If a solve fails for want of it, `detail` names it.
    norm : {"residual", "energy", "preconditioned"}
        What `rtol` and `atol` are for, as for `pcg`. If it is not "residual", A has to be Hermitian positive definite.
    device : {"cpu", "gpu"}, optional
        The device that solves, by default that of A. With "gpu" a SciPy matrix is copied to the GPU, and x is copied
        back.
    callback : function of one array, optional
        Called as ``callback(xk)`` after every iteration, and by `gmres` after every cycle. The direct solver is not
        used if there is a callback.

    Returns
    -------
    SolveResult
        Unpacks as ``x, info``. `method` is "direct", "pcg", "minres", "bicgstab" or "gmres", the last one that was
        used; `stages` has the preconditioners that "auto" took, and `M` the last one, for further solves.

    Raises
    ------
    TypeError, ValueError
        If A is not a square matrix of finite numbers or such an operator, b, x0, B or `nullspace` do not fit it or are
        not finite, or another argument has a wrong type or value (says which).

    Examples
    --------
    >>> import numpy as np
    >>> from mcprecond import problems, solve
    >>> A = problems.laplacian((300, 300))
    >>> result = solve(A, np.ones(90_000))
    >>> result.converged, result.method, result.iterations < 60
    (True, 'pcg', True)
    >>> solve(problems.laplacian((20, 20)), np.ones(400)).method
    'direct'
    """
    callback = function(callback, "callback", " of one array")
    system, origin = place(A, device)
    is_matrix = isinstance(system, AdmittedMatrix)
    backend = system.backend if is_matrix else origin
    is_moved = backend.name != origin.name
    vectors: list[Any] = [b, x0, B]
    if is_moved:
        vectors = [v if v is None or isinstance(v, str) else backend.xp.asarray(v) for v in vectors]
    b, x0, near_null = vectors
    told = callback if callback is None or not is_moved else lambda x: callback(backend.to_host(x))
    given = nodes_of(near_null, block_size, system.shape[0], M)
    if nullspace is not None:
        given["nullspace"] = nullspace
    if one_of(norm, "norm", NORMS) != "residual":
        given["norm"] = norm
    limits = {"rtol": rtol, "atol": atol, "maxiter": maxiter}
    attempt = solve_matrix if is_matrix else solve_operator
    result = attempt(system, b, x0, M, given, limits, told)
    return replace(result, x=backend.to_host(result.x)) if is_moved else result


def place(A: Any, device: Any) -> tuple[Any, Backend]:
    """Return A on the device that is asked for, as an AdmittedMatrix in canonical form or as an operator, and where it
    comes from.
    """
    system, origin = admit_system(A)
    if hasattr(system, "indptr"):
        return admit(system, device, finite=True)[0].canonical(), origin
    if device not in (None, origin.name):
        raise ValueError(f"device must be {origin.name!r} or None for an operator on the {origin.name}, got {device!r}")
    return system, origin


def solve_operator(
    A: Any, b: Any, x0: Any, M: Any, given: dict[str, Any], limits: dict[str, Any], callback: Any
) -> SolveResult[Any]:
    """Solve for an operator, of which nothing is known."""
    refuse_given(given, "a sparse or dense A, got an operator")
    return solve_by_gmres(A, b, x0, None if is_automatic(M) else M, limits, callback)


def solve_matrix(
    A: AdmittedMatrix, b: Any, x0: Any, M: Any, given: dict[str, Any], limits: dict[str, Any], callback: Any
) -> SolveResult[Any]:
    """Solve for a matrix in canonical form."""
    A = with_symmetry(A)
    may_be_definite, symmetric = bool(A.extremes[0] > 0), is_hermitian(A)
    suits_cg = symmetric and not (isinstance(M, Preconditioner) and not M.symmetric)
    if not suits_cg:
        refuse_given(given, "a symmetric or Hermitian A and M")
    if suits_cg and is_detected(given.get("nullspace")):
        A = with_components(A)
        if not A.components.n_singular:
            del given["nullspace"]
    has_nullspace, has_columns = "nullspace" in given, np.ndim(b) == 2 and np.shape(b)[1] > 1
    is_small = A.indices.size <= MOST_ENTRIES and not has_columns
    if is_small and is_automatic(M) and not has_nullspace and callback is None:
        A = with_features(A)
        found = solve_directly(A, b, x0, symmetric, may_be_definite, limits)
        if found is not None:
            return found
    needs_minres = not may_be_definite and not has_nullspace and is_automatic(M) and "norm" not in given
    if not suits_cg or (needs_minres and has_columns):  # MINRES solves for one column
        result = run(BiCGStabSolver(A, M), b, x0, limits, callback)
        if result.reason not in FAILURES or has_columns:
            return result
        return go_on(result, lambda x, left: solve_by_gmres(A, b, x, result.M or M, left, callback), limits)
    if needs_minres:
        result = run(MINRESSolver(A), b, x0, limits, callback)
        return replace(result, detail=result.detail or INDEFINITE)
    result = run(PCG(cast(Any, A), M, **given), b, x0, limits, callback)
    if result.reason is Reason.CONVERGED_IN_RESIDUAL and not has_columns:
        of_M = (M, given) if result.M is None else (result.M, {k: v for k, v in given.items() if k == "nullspace"})
        solver = lambda norm: PCG(cast(Any, A), of_M[0], norm=norm, **of_M[1])  # noqa: E731
        return solve_in_both_norms(result, solver, b, limits, callback)
    if result.reason is not Reason.INDEFINITE_A or has_nullspace or has_columns or "norm" in given:
        return result
    result = go_on(result, lambda x, left: run(MINRESSolver(A), b, x, left, callback), limits)
    return replace(result, detail=result.detail or INDEFINITE)


def solve_in_both_norms(
    first: SolveResult[Any], solver: Callable[[Norm], PCG], b: Any, limits: dict[str, Any], callback: Any
) -> SolveResult[Any]:
    """Go on from a solution that is good in the norm of its residual until the energy norm of the error is within the
    tolerance as well. Return the first result if that fails.

    In CG the energy norm of the error decreases in every iteration. The norm of the residual need not: it may exceed
    the tolerance again while the error decreases.
    """
    limit = max(limits["rtol"] * first.norm_of_b, limits["atol"] or 0.0)

    def proceed(result: SolveResult[Any], norm: Norm) -> SolveResult[Any]:
        return go_on(result, lambda x, left: run(solver(norm), b, x, left, callback), limits)

    result = proceed(first, "energy")
    if result.converged and result.residual_norm > limit:
        result = proceed(result, "residual")
    return result if result.converged and result.residual_norm <= limit else first


def is_automatic(M: Any) -> bool:
    """Whether M is left to the package."""
    return isinstance(M, str) and M == "auto"


def refuse_given(given: dict[str, Any], needed: str) -> None:
    """Raise ValueError if any of B, block_size, nullspace and norm is given."""
    if given:
        raise ValueError(f"{' and '.join(given)} needs {needed}; leave it out")


def run(solver: Solver, b: Any, x0: Any, limits: dict[str, Any], callback: Any) -> SolveResult[Any]:
    """Solve, and give back the memory of the solver."""
    result = solver.solve(b, x0, **limits, callback=callback)
    solver.release()
    return result


def solve_by_gmres(A: Any, b: Any, x0: Any, M: Any, limits: dict[str, Any], callback: Any) -> SolveResult[Any]:
    """Solve by GMRES; `maxiter` limits iterations."""
    solver = GMRESSolver(A, None if is_automatic(M) else M)
    solver.counts_cycles, solver.on_cycle = False, callback
    return run(solver, b, x0, limits, None)


def go_on(
    first: SolveResult[Any], solve: Callable[[Any, dict[str, Any]], SolveResult[Any]], limits: dict[str, Any]
) -> SolveResult[Any]:
    """Continue from a result by ``solve(x0, limits)``, where `maxiter` is what the first solve has left of it. Return
    the first result if nothing is left.
    """
    most = limits["maxiter"]
    left = None if most is None else most - first.iterations
    if left == 0:
        return first
    second = solve(None if first.reason is Reason.NOT_FINITE else first.x, limits | {"maxiter": left})
    stages = [*first.stages, Stage(second.method, second.iterations)]
    return merge([first, second], stages, M=first.M)


def solve_directly(
    A: AdmittedMatrix, b: Any, x0: Any, symmetric: bool, may_be_definite: bool, limits: dict[str, Any]
) -> SolveResult[Any] | None:
    """Solve by SciPy's SuperLU if that is predicted to be faster than an iteration. Return None if it is not, or if the
    residual is not within the tolerance, as where A is singular.
    """
    started = time.perf_counter()
    b, _, rtol, atol, _ = BiCGStabSolver(A).admit_arguments(b, x0, **limits)
    if not direct_is_faster(A, symmetric, digits_of(rtol)):
        return None
    refuse_not_finite(b, A.backend)
    csr = A.csr if A.backend.name == "cpu" else A.csr.get()
    wide = np.dtype(np.complex128 if "c" in (A.dtype.kind, b.dtype.kind) else np.float64)
    csr = csr.astype(wide)
    # Pivots on the diagonal give less fill-in. They are stable if A is definite, and otherwise the residual is tested.
    on_diagonal = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
    pivoting: dict[str, Any] = on_diagonal if symmetric and may_be_definite else {}
    try:
        factors = splu(csr.tocsc(), permc_spec="MMD_AT_PLUS_A", **pivoting)
    except RuntimeError:  # A is exactly singular
        return None
    ready = time.perf_counter()
    exponent = exponent_of(b, A.backend.xp)
    right = times_power(A.backend.to_host(b).astype(wide), -exponent, np)  # so that squares are in range
    norm = float(np.linalg.norm(right))
    with np.errstate(all="ignore"):
        x = factors.solve(right)
        x += factors.solve(right - csr @ x)
        x = times_power(x, exponent, np).astype(promote(A.dtype, b.dtype))
        residual = float(np.linalg.norm(right - csr @ times_power(x.astype(wide), -exponent, np)))
    if not residual <= max(rtol * norm, power_times(atol, -exponent)):  # or NaN
        return None
    norm, residual = power_times(norm, exponent), power_times(residual, exponent)
    seconds = ready - started, time.perf_counter() - ready
    history, stages = np.array([norm]), (Stage("splu", 0),)
    found = SolveResult(A.backend.xp.asarray(x), Reason.CONVERGED, 0, history, residual, *seconds, stages=stages)
    return replace(found, method="direct", norm_of_b=norm, _system=(A, b))


def direct_is_faster(A: AdmittedMatrix, symmetric: bool, digits: float) -> bool:
    """Whether a direct solver is predicted to be faster than an iterative method that reduces the residual by so many
    decimal digits.
    """
    seconds, device = seconds_of_direct(A.features), A.backend.name
    if seconds > LONGEST:
        return False
    common = times_for(A), A.features, weakest_for(A), device
    if symmetric:
        forecast = forecast_cg(*common, has_candidates=False)
    else:
        forecast = forecast_general(*common, BiCGStabSolver.products)
    best = forecast.fastest(digits, without=("spilu",))
    return best is not None and seconds < START[device] + forecast.seconds(best, digits)
