"""Incomplete factorizations on several matrices: what they cost, apart and in a solve, and what the libraries' cost.

    python benchmarks/ilu.py gpu                      # the full sizes
    python benchmarks/ilu.py cpu --small              # the same kinds, small

writes benchmarks/results/ilu-gpu.json or ilu-cpu.json (or where --output says). b = A x* with random x*.
Opponents in the same run: on a GPU cuSPARSE, csrilu02 and a pair of SpSV, on the matrix and on the matrix in the
orders of two colorings of ours, whose setup has the coloring, the permutation and all analysis in it, and CuPy's spilu
as it comes; on a CPU SciPy's spilu(fill_factor=1, drop_tol=0). cuSPARSE solves systems under our CG, which captures it
if that is possible; those in color order start from the permuted system. Where cuSPARSE has lost csrilu02, it solves
with our factors.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from cases import MATRICES, SEED
from measure import Times, application, graph_ms, measure_each, parser_of, queued_ms, wall_ms

from mcprecond import ILU0, MulticolorDILU, MulticolorSGS, color, pcg
from mcprecond.backends import get_backend

RTOL = 1e-8
LONG_SECONDS = 1.0  # a call that takes longer is not repeated after the one to warm up
VERY_LONG_SECONDS = 10.0  # nor is one that takes longer than this warmed up

CASES = ["fenl_50", "fenl_100", "grid2d_1024", "elasticity48", "circuit1259"]
ON_A_CPU = CASES[:1]  # on the others SciPy's spilu takes many minutes
#: Order -> coloring of a matrix.
COLORINGS: dict[str, Callable[[Any], Any]] = {"color": color, "first-fit": partial(color, method="jp", order="natural")}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--cases", nargs="+", choices=CASES)
    arguments = parser.parse_args()
    names = arguments.cases or (CASES if arguments.device == "gpu" else ON_A_CPU)

    def measure(name: str) -> dict[str, Any]:
        case = Case(name, arguments.device, arguments.small, arguments.repeats)
        case.measure_ours()
        case.measure_spilu()
        if arguments.device == "gpu":
            case.measure_cusparse()
        return case.document

    measure_each("ilu", arguments, {name: partial(measure, name) for name in names}, rtol=RTOL)


class Case:
    """One matrix, and a row for each factorization of it."""

    def __init__(self, name: str, device: str, small: bool, repeats: int) -> None:
        self.gpu, self.repeats = device == "gpu", repeats
        self.backend = get_backend(device)
        self.A = MATRICES[name](small, device)
        self.A.sum_duplicates()
        self.b = self._product_with_random(self.A)
        self.rows: list[dict[str, Any]] = []
        self.document: dict[str, Any] = {
            "unknowns": self.A.shape[0],
            "nnz": int(self.A.nnz),
            "factorizations": self.rows,
        }

    def measure_ours(self) -> None:
        """Plain CG, Jacobi, SGS, DILU and ILU(0) by color, ILU(0) in natural order."""
        A = self.A
        self.colorings = {order: colored(A) for order, colored in COLORINGS.items()}
        self._add("plain CG", lambda: self._solve(A, self.b, None), levels=None, setup_ms=0.0)
        diagonal = self.backend.sparse.diags(1 / A.diagonal(), format="csr")
        setup_ms = self._wall(lambda: self.backend.sparse.diags(1 / A.diagonal(), format="csr"))
        self._add("Jacobi", lambda: self._solve(A, self.b, diagonal), levels=None, setup_ms=setup_ms)
        kinds: dict[str, Callable[[Any], Any]] = {
            "SGS": lambda coloring: MulticolorSGS(A, coloring),
            "DILU": lambda coloring: MulticolorDILU(A, coloring),
            "ILU0": lambda coloring: ILU0(A, coloring=coloring),
        }
        builds: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
            f"{kind} {order}": (
                lambda build=build, order=order: build(self.colorings[order]),  # type: ignore[misc]
                lambda build=build, order=order: build(COLORINGS[order](A)),  # type: ignore[misc]
            )
            for order in COLORINGS
            for kind, build in kinds.items()
        }
        natural = partial(ILU0, A, ordering="natural")
        builds["ILU0 natural"] = natural, natural
        xp, four = self.backend.xp, self.backend.xp.stack([self.b] * 4, axis=1)
        z, four_results = xp.empty_like(self.b), xp.empty_like(four)
        for name, (build, setup) in builds.items():
            M = build()  # of one coloring for all
            costs = {"setup_ms": self._wall(setup), "update_ms": self._wall(lambda: M.update(A))}
            if isinstance(M, ILU0):
                costs["factor_ms"] = self._factor_ms(M)
            costs["apply_ms"] = self._device(application(M, self.b, z))
            costs["apply_four_ms"] = self._device(application(M, four, four_results))
            self._add(name, lambda M=M: self._solve(A, self.b, M), levels=M.n_colors, **costs)  # type: ignore[misc]

    def measure_cusparse(self) -> None:
        """csrilu02 and SpSV on A, and on A in the orders of colors, whose setup colors and permutes as ours does."""
        import cupy
        from csrilu import CsrIlu

        def set_up(ordering: str) -> CsrIlu:
            opponent = CsrIlu(self._permuted(ordering)[0])
            if opponent.can_factorize:
                opponent.analyze_factorization()
                opponent.factorize()
            opponent.analyze_solves()
            return opponent

        for ordering in (*COLORINGS, "natural"):
            costs: dict[str, Any] = {"setup_ms": self._wall(partial(set_up, ordering))}
            A, b = self._permuted(ordering)
            opponent = set_up(ordering)
            if opponent.can_factorize:
                costs["factor_ms"] = self._wall(opponent.factorize)
            else:
                opponent.values[...] = self._our_factors(A)
                opponent.analyze_solves()
            opponent.try_capture()
            z = cupy.empty_like(b)
            apply = graph_ms if opponent.captures else queued_ms
            costs["apply_ms"] = apply(application(opponent, b, z), repeats=self.repeats)
            self._add(
                f"cuSPARSE {ordering}",
                lambda A=A, b=b, opponent=opponent: self._solve(A, b, opponent),  # type: ignore[misc]
                levels=None,
                captured=opponent.captures,
                own_factorization=opponent.can_factorize,
                **costs,
            )

    def _permuted(self, ordering: str) -> tuple[Any, Any]:
        """The system in an order; its coloring is found anew."""
        A, b = self.A, self.b
        if ordering in COLORINGS:
            perm = COLORINGS[ordering](A).permutation()
            A, b = A[perm][:, perm].tocsr(), b[perm]
        A.sort_indices()
        return A, b

    def measure_spilu(self) -> None:
        """spilu of CuPy, which is ILU(0) for a fill factor of 1, or of SciPy; its CG is not timed."""
        linalg, A = self.backend.linalg, self.A if self.gpu else self.A.tocsc()
        library = "CuPy" if self.gpu else "SciPy"
        try:
            factors: list[Any] = []
            factor_ms = self._wall(lambda: factors.append(linalg.spilu(A, fill_factor=1, drop_tol=0)))
            self._add(
                f"{library} spilu",
                None,
                levels=None,
                factor_ms=factor_ms,
                apply_ms=self._wall(lambda: factors[0].solve(self.b)),
            )
        except RuntimeError as error:
            self._add(f"{library} spilu", None, levels=None, failed=str(error))

    def _factor_ms(self, M: ILU0) -> float:
        """Median wall time of the factorization alone, of a matrix that is stored already."""
        times = []
        for _ in range(self.repeats + 1):
            csr = M.blocks.update(self.A)
            times.append(self._wall_once(partial(M._factorize, csr)))
        return Times(times[1:])

    def _our_factors(self, A: Any) -> Any:
        """The values of L and U in one matrix with the rows of A, and its pattern, from our ILU(0) in that order."""
        import cupy

        M = ILU0(A, ordering="natural")
        L, U = M.factors()
        inverse = M.blocks.inverse
        both = (L - self.backend.sparse.eye(A.shape[0], dtype=A.dtype, format="csr") + U)[inverse][:, inverse].tocsr()
        both.sort_indices()
        if both.nnz != A.nnz or not bool(cupy.array_equal(both.indices, A.indices)):
            raise RuntimeError("the factors lost stored zeros, so they do not fit the pattern of A")
        return both.data

    def _product_with_random(self, A: Any) -> Any:
        return A @ self.backend.xp.asarray(np.random.default_rng(SEED).uniform(-1, 1, A.shape[0]))

    def _solve(self, A: Any, b: Any, M: Any) -> dict[str, Any]:
        """Iterations, time and residual of a solve."""
        results: list[Any] = []
        solve_ms = self._wall(lambda: results.append(pcg(A, b, M=M, rtol=RTOL)))
        xp, x = self.backend.xp, results[-1].x
        residual = float(xp.linalg.norm(b - A @ x) / xp.linalg.norm(b))
        return {"iterations": results[-1].iterations, "solve_ms": solve_ms, "relative_residual": residual}

    def _wall(self, call: Callable[[], Any]) -> float:
        """Median time of repeated calls after some to warm up; of a single one if they are long."""
        first = self._wall_once(call)
        if first > 1e3 * VERY_LONG_SECONDS:
            return first
        second = self._wall_once(call)
        return second if second > 1e3 * LONG_SECONDS else wall_ms(call, self.backend.synchronize, self.repeats)

    def _wall_once(self, call: Callable[[], Any]) -> float:
        self.backend.synchronize()
        started = time.perf_counter()
        call()
        self.backend.synchronize()
        return 1e3 * (time.perf_counter() - started)

    def _device(self, call: Callable[[], Any]) -> float:
        return graph_ms(call, repeats=self.repeats) if self.gpu else self._wall(call)

    def _add(self, name: str, solve: Callable[[], dict[str, Any]] | None, **costs: Any) -> None:
        """Add a row: what is known already, and then the solve, which may take long."""
        row = {"name": name, **costs}
        self.rows.append(row)
        if solve is not None:
            row |= solve()
            row["total_ms"] = row["setup_ms"] + row["solve_ms"]


if __name__ == "__main__":
    main()
