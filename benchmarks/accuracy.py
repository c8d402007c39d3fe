"""All solvers on random systems of known condition, compared with a direct solve in extended precision.

    python benchmarks/accuracy.py cpu --count 500
    python benchmarks/accuracy.py gpu --count 50

writes benchmarks/results/accuracy-cpu.json or accuracy-gpu.json (or where --output says): counts for each solver, form
and preconditioner. `tests/reference/systems.py` makes the systems. Each is solved to a random tolerance, and with
``rtol=0``, which asks for all that the dtype has. The counts are these.

- `false_converged`: the solver says that it converged, and ||b - A x||, computed in extended precision, exceeds the
  tolerance by more than the rounding of a residual in double precision.
- `residual_off`: `residual_norm` is not within a tenth of the true one, beyond that rounding.
- `false_reasons`: the reason says that A or M is not definite, not symmetric, or singular, and A is definite and has a
  condition of at most a thousandth of the inverse of the unit of rounding.
- `inaccurate`: of the solves that end as STAGNATED, or as CONVERGED with ``rtol=0``, those whose error is more than 10
  times the best one; `compared` is their number, and `worst` the largest multiple. The best error is what one error of
  rounding in each product of an entry of A and a number of x comes to. For `pcg` it is the error of x in the norm of A,
  which no scaling of the unknowns changes; for the other solvers it is the norm of the residual, which is all that they
  reduce. Systems are compared if the condition that the solver sees is at most such a share: for `pcg` that of A
  without its scales, or none if there are scales and no preconditioner; for the others that of A M.
- `indefinite`: preconditioners that say that they are symmetric, and whose matrix is not positive definite for such a
  definite system; `unsymmetric`, those whose matrix is not symmetric.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # to be set before NumPy is imported

import numpy as np
import scipy.sparse as sp
from measure import MULTIGRID, RESULTS, record, save

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from reference import precision
from reference.systems import WORST_CONDITION, System, draw

from mcprecond import (
    ILU0,
    PCG,
    ClassicalAMG,
    MulticolorDILU,
    MulticolorGS,
    MulticolorSGS,
    SmoothedAggregation,
    bicgstab,
    gmres,
    minres,
    pcg,
)
from mcprecond.backends import Backend, backend_of, get_backend
from mcprecond.solvers import Reason, SolveResult


def inverse_diagonal(A: Any) -> Any:
    """Jacobi's preconditioner as a sparse matrix."""
    backend, n = backend_of(A), A.shape[0]
    places = backend.xp.arange(n + 1, dtype=np.int32)
    return backend.sparse.csr_matrix((1 / A.diagonal(), places[:n], places), shape=A.shape)


PRECONDITIONERS: dict[str, Callable[[Any], Any]] = {
    "none": lambda A: None,
    "Jacobi": inverse_diagonal,
    "GS": lambda A: MulticolorGS(A, sweep="forward"),
    "SGS": MulticolorSGS,
    "DILU": MulticolorDILU,
    "ILU0, color": lambda A: ILU0(A, ordering="color"),
    "ILU0, natural": lambda A: ILU0(A, ordering="natural"),
    "multigrid": SmoothedAggregation,
    "classical multigrid": ClassicalAMG,
    "auto": lambda A: "auto",
}
#: The largest error of x, as a multiple of the best one, and the largest relative error of `residual_norm`.
MOST_ERROR, MOST_OFF = 10.0, 0.1
#: The share of the tolerance by which a residual may exceed it, in addition to rounding.
SLACK = 1e-6
#: Reasons that are not true of definite systems that are far from singular.
FALSE = Reason.INDEFINITE_A, Reason.INDEFINITE_M, Reason.UNSYMMETRIC_A, Reason.INCONSISTENT
#: The decimal exponent of the smallest tolerance, by dtype.
LEAST_RTOL = {"f": -6.0, "F": -6.0, "d": -14.0, "D": -14.0}


class Solve(NamedTuple):
    """A way to solve for one column of B, or for all of them."""

    solver: str
    form: str
    M: str
    run: Callable[[float], SolveResult]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", choices=["cpu", "gpu"])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="few small systems")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    backend, count = get_backend(arguments.device), 4 if arguments.small else arguments.count
    totals: dict[tuple[str, ...], Counter[str]] = {}
    for seed in range(arguments.seed, arguments.seed + count):
        for way, found in judged_solves(seed, backend, 20 if arguments.small else 120):
            add(totals.setdefault(way, Counter()), found)
        print(f"{seed + 1 - arguments.seed} of {count}", flush=True)
    cases = [{"name": ", ".join(way), **case} for way, case in totals.items()]
    facts = {"seed": arguments.seed, "count": count, "small": arguments.small}
    save(
        record("accuracy", backend.name, cases, MULTIGRID, **facts),
        arguments.output or RESULTS / f"accuracy-{backend.name}.json",
    )


def add(total: Counter[str], found: dict[str, float]) -> None:
    """Add up counts; of `worst` take the larger one."""
    worst = max(total["worst"], found.get("worst", 0))
    total.update({name: int(value) for name, value in found.items() if name != "worst"})
    total["worst"] = worst


def judged_solves(seed: int, backend: Backend, most: int) -> Iterator[tuple[tuple[str, ...], dict[str, float]]]:
    """Solver, form and preconditioner of each solve of the system of a seed, and what is counted of it; and those of
    each preconditioner.
    """
    system = draw(seed, most)
    rng = np.random.default_rng(seed)
    A, B = put(system.A, backend), backend.xp.asarray(system.B)
    built, conditions = {}, {}
    for label, build in PRECONDITIONERS.items():
        try:
            built[label] = build(A)
        except ValueError:
            yield ("setup", "", label), {"refused": 1}
            continue
        if label != "auto":
            conditions[label] = condition_with(system, built[label], backend)
        if system.is_definite and getattr(built[label], "symmetric", False):
            yield ("setup", "", label), judged_preconditioner(system, built[label], backend)
    for rtol in (0.0, 10 ** rng.uniform(LEAST_RTOL[system.dtype.char], -2)):
        for solve in solves(system, A, B, built):
            result = solve.run(rtol)
            for column in range(3 if solve.form == "columns" else 1):
                claim = of_column(result, column)
                found = judged(system, column, claim, rtol, backend)
                if sees_good_condition(system, solve, conditions):
                    found |= judged_further(system, column, claim, rtol, solve, backend)
                yield solve[:3], found


def put(A: sp.csr_matrix, backend: Backend) -> Any:
    """A on the device."""
    return backend.sparse.csr_matrix(A)


def solves(system: System, A: Any, B: Any, built: dict[str, Any]) -> Iterator[Solve]:
    """All ways to solve a system with these preconditioners."""
    b = B[:, 0].copy()
    for label, M in built.items():
        if label != "auto":
            yield Solve("bicgstab", "plain", label, lambda rtol, M=M: bicgstab(A, b, M=M, rtol=rtol))
            yield Solve("gmres", "plain", label, lambda rtol, M=M: gmres(A, b, M=M, rtol=rtol))
        if not system.is_definite or not getattr(M, "symmetric", True):
            continue
        if label != "auto":
            yield Solve("minres", "plain", label, lambda rtol, M=M: minres(A, b, M=M, rtol=rtol))
        yield Solve("pcg", "plain", label, lambda rtol, M=M: pcg(A, b, M=M, rtol=rtol, form="plain"))
        yield Solve("pcg", "columns", label, lambda rtol, M=M: pcg(A, B, M=M, rtol=rtol, form="plain"))
        yield Solve("pcg", "object", label, lambda rtol, M=M: solved_again(PCG(A, M), B, b, rtol))
        if getattr(M, "eisenstat_incompatibility", "no triangles") is None:
            yield Solve("pcg", "eisenstat", label, lambda rtol, M=M: pcg(A, b, M=M, rtol=rtol, form="eisenstat"))


def solved_again(solver: PCG, B: Any, b: Any, rtol: float) -> SolveResult:
    """The result of an object that has solved for other right-hand sides before."""
    solver.solve(B, rtol=rtol)
    solver.solve(B[:, 1].copy(), rtol=rtol)
    return solver.solve(b, rtol=rtol)


class Claim(NamedTuple):
    """What a solver says of one column."""

    x: Any
    reason: Reason
    converged: bool
    residual_norm: float


def of_column(result: SolveResult, column: int) -> Claim:
    """Of a result for one column or for several."""
    if result.x.ndim == 1:
        return Claim(result.x, result.reason, result.converged, result.residual_norm)
    reason = result.reasons[column]
    return Claim(result.x[:, column], reason, reason is Reason.CONVERGED, float(result.residual_norm[column]))


def judged(system: System, column: int, claim: Claim, rtol: float, backend: Backend) -> dict[str, float]:
    """What is counted of one column of a solve, whatever the condition."""
    b, x = system.B[:, column], backend.to_host(claim.x)
    found: dict[str, float] = {"solves": 1, claim.reason.name: 1, "converged": claim.converged}
    if not np.isfinite(x).all():
        return found | {"false_converged": claim.converged}
    true, rounding = precision.residual(system.dense, x, b)
    found["false_converged"] = claim.converged and true > rtol * precision.norm(b) * (1 + SLACK) + rounding
    found["residual_off"] = not abs(claim.residual_norm - true) <= MOST_OFF * true + rounding
    return found


def sees_good_condition(system: System, solve: Solve, conditions: dict[str, float]) -> bool:
    """Whether rounding leaves the matrix that the solver sees far from all singular and indefinite ones."""
    if solve.solver == "pcg":
        return system.is_regular and not (solve.M == "none" and system.scaling == "rows and columns")
    return conditions[solve.M] * float(np.finfo(system.dtype).eps) <= WORST_CONDITION


def judged_further(
    system: System, column: int, claim: Claim, rtol: float, solve: Solve, backend: Backend
) -> dict[str, float]:
    """What is counted besides where the condition is good."""
    false = FALSE if system.is_definite else (Reason.INCONSISTENT,)
    found: dict[str, float] = {"false_reasons": claim.reason in false}
    if claim.reason is Reason.STAGNATED or (claim.converged and rtol == 0):
        x = backend.to_host(claim.x)
        if solve.solver == "pcg":
            multiple = system.error(column, x) / system.best_error(column)
        else:
            multiple = precision.residual(system.dense, x, system.B[:, column])[0] / system.best_residual(column)
        found |= {"compared": 1, "inaccurate": multiple > MOST_ERROR, "worst": multiple}
    return found


def condition_with(system: System, M: Any, backend: Backend) -> float:
    """The condition of A M, which solvers see that have M on the right."""
    scales = system.scales[0]
    applied = np.diag(scales) if M is None else matrix_of(M, scales, system, backend)
    if not np.isfinite(applied).all():
        return np.inf  # numbers of M do not fit into the dtype
    product = system.dense @ applied / scales
    return float(np.linalg.cond((product / np.abs(product).max()).astype(np.complex128)))


def matrix_of(M: Any, scales: np.ndarray, system: System, backend: Backend) -> np.ndarray:
    """M times a diagonal matrix, in extended precision."""
    columns = np.diag(scales.astype(system.dtype))
    return precision.wide(np.stack([backend.to_host(M @ backend.xp.asarray(column)) for column in columns], axis=1))


def judged_preconditioner(system: System, M: Any, backend: Backend) -> dict[str, float]:
    """Whether the matrix of M is symmetric and positive definite as far as rounding lets it be, for a definite system.

    The scales of the unknowns are taken out first.
    """
    least, asymmetry = spectrum(system, M, backend)
    found = {"operators": 1, "unsymmetric": asymmetry > 1}
    return found | ({"indefinite": not least > 0} if system.is_regular else {})


def spectrum(system: System, M: Any, backend: Backend) -> tuple[float, float]:
    """The smallest eigenvalue of the matrix of M as a share of the largest one, and how far it is from symmetric as a
    multiple of the error that a stable solve with A has.
    """
    n, scales = len(system.B), system.scales[0]
    matrix = matrix_of(M, scales, system, backend) * scales[:, None]
    matrix = (matrix / np.abs(matrix).max()).astype(np.complex128)
    eps = float(np.finfo(system.dtype).eps)
    asymmetry = float(np.abs(matrix - matrix.conj().T).max()) / (n * eps * system.condition)
    values = np.linalg.eigvalsh((matrix + matrix.conj().T) / 2)
    return float(values[0] / values[-1]), asymmetry


if __name__ == "__main__":
    main()
