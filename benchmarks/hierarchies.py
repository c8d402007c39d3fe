"""Multigrid from the setup to the solution on a GPU, beside one level and a product with the same matrix.

    python benchmarks/hierarchies.py gpu              # the full sizes
    python benchmarks/hierarchies.py cpu --small      # the same matrices, small, to try the script

writes benchmarks/results/hierarchies-gpu.json (or where --output says): which multigrid fits, milliseconds of its
setup, of an update with new values and of a solve to 1e-8, which captures its iterations; the levels, the memory of a
cycle and the peak of a setup as multiples of the matrix; and hypre's figure of merit, the entries of all levels over
the seconds of setup and solve. b = A x* with random x*. One level is symmetric Gauss-Seidel, which may take 2,000
iterations.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from cases import MATRICES, SEED, Matrix, laplacian_of, linear_elements, poisson
from measure import MULTIGRID, measure_each, parser_of, wall_ms
from robustness import flat_triangles, random_jumps, random_tree, random_walker

from mcprecond import MulticolorSGS, pcg
from mcprecond.backends import get_backend
from mcprecond.multigrid import fitting_multigrid, rigid_body_modes
from mcprecond.problems import graphs
from mcprecond.problems.placing import place_matrix
from mcprecond.studies.measure import peak_bytes

RTOL, MAXITER = 1e-8, 2000


def placed(make: Callable[[int], Any], full: int, small: int) -> Matrix:
    """A matrix that is made on the host."""
    return Matrix(lambda n, device: place_matrix(make(n), get_backend(device)), full, small)


CASES: dict[str, Matrix] = {
    **{name: MATRICES[name] for name in ("grid2d_1024", "fenl_50", "fenl_100", "elasticity48", "fenl_180")},
    "grid3d_256": Matrix(partial(poisson, 3), 256, 16),
    "random jumps": placed(lambda n: random_jumps(n, 5), 900, 40),
    "random walker": placed(random_walker, 1000, 40),
    "triangulation": placed(linear_elements, 10**6, 2000),
    "flat triangles": placed(flat_triangles, 10**6, 2000),
    "tree": placed(random_tree, 10**6, 2000),
    "hubs": placed(lambda k: laplacian_of(graphs.rmat(k), 1e-3), 18, 10),
}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    arguments = parser.parse_args()
    given = arguments.device, arguments.small, arguments.repeats
    cases = {name: partial(measure_case, name, *given) for name in arguments.cases}
    measure_each("hierarchies", arguments, cases, MULTIGRID, rtol=RTOL)


def measure_case(name: str, device: str, small: bool, repeats: int) -> dict[str, Any]:
    backend, A, n = get_backend(device), CASES[name](small, device), CASES[name].size(small, device)
    xp = backend.xp
    x = xp.asarray(np.random.default_rng(SEED).uniform(-1, 1, A.shape[0]))
    b, B, blocks = A @ x, None, {}
    if name.startswith("elasticity"):
        z, y, x_ = xp.meshgrid(*[xp.linspace(0, 1, n)] * 3, indexing="ij")
        B, blocks = rigid_body_modes(xp.stack([x_.ravel(), y.ravel(), z.ravel()], axis=1)), {"block_size": 3}
    timed = partial(wall_ms, synchronize=backend.synchronize, repeats=repeats)
    setup = partial(fitting_multigrid, A, B, **blocks)
    M, one_level = setup(), MulticolorSGS(A, **blocks)
    result, alone = (pcg(A, b, M=each, rtol=RTOL, maxiter=MAXITER) for each in (M, one_level))
    assert result.converged
    bytes_of_A = A.data.nbytes + A.indices.nbytes + A.indptr.nbytes
    case = {
        "size": n,
        "unknowns": A.shape[0],
        "nnz": int(A.nnz),
        "multigrid": type(M).__name__,
        "levels": [level.A.shape[0] for level in M.levels],
        "operator_complexity": M.operator_complexity,
        "bytes_over_matrix": M.nbytes / bytes_of_A,
        "peak_over_matrix": peak_bytes(setup, device) / bytes_of_A,
        "iterations": result.iterations,
        "product_ms": timed(lambda: A @ b),
        "setup_ms": timed(setup),
        "update_ms": timed(lambda: M.update(A)),
        "solve_ms": timed(lambda: pcg(A, b, M=M, rtol=RTOL, maxiter=MAXITER)),
        "one_level_iterations": alone.iterations,
        "one_level_converged": alone.converged,
        "one_level_setup_ms": timed(lambda: MulticolorSGS(A, **blocks)),
        "one_level_solve_ms": timed(lambda: pcg(A, b, M=one_level, rtol=RTOL, maxiter=MAXITER)),
    }
    entries = sum(level.A.indices.size for level in M.levels)
    return case | {"figure_of_merit": 1e3 * entries / (case["setup_ms"] + case["solve_ms"])}


if __name__ == "__main__":
    main()
