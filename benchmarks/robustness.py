"""How many iterations CG takes with multigrid, ours and PyAMG's, and how long, from easy to hard, on the CPU.

    python benchmarks/robustness.py                          # minutes
    python benchmarks/robustness.py --cases tree circuit     # some of the matrices
    python benchmarks/robustness.py --small

writes benchmarks/results/robustness-cpu.json (or where --output says). b = A x* with random x*, and `pcg` iterates to a
relative residual of 1e-8 with each hierarchy. Ours are the multigrid that fits, as M="multigrid" takes it, with its
defaults and with Gauss-Seidel for a smoother, and both kinds by name. PyAMG's are smoothed aggregation, by its
symmetric strength and by its evolution strength, root-node, pairwise aggregation, and Ruge and Stüben's method. All of
Gauss-Seidel sweeps forward before a correction and backward after it. On elasticity the hierarchies are given the rigid
body modes; those that have no use for them are left out there. Seconds are those of setup and solve, and of the
setup alone, the least of five runs. Ours use all threads; PyAMG has one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

# PyAMG's setup calls a BLAS for short products. Where its threads wait for each other, they take the cores from others.
# To be set before NumPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pyamg
import scipy.sparse as sp
from cases import SEED, diffusion, fenl, laplacian_of, linear_elements, stiffness
from families import random_geometric, random_regular
from measure import MULTIGRID, measure_each, parser_of
from scipy.spatial import Delaunay

from mcprecond import ClassicalAMG, SmoothedAggregation, pcg, problems
from mcprecond.multigrid import fitting_multigrid, rigid_body_modes
from mcprecond.problems import graphs

RTOL, MAXITER, RUNS = 1e-8, 1000, 5
SWEEPS = "forward", "backward"


class System(NamedTuple):
    """A matrix, and what else hierarchies and `pcg` are told of it."""

    A: sp.csr_matrix
    B: np.ndarray | None = None
    block_size: int = 1
    nullspace: str | None = None


class Family(NamedTuple):
    """A function of the size, with two sizes."""

    make: Callable[[int], System | sp.csr_matrix]
    full: int
    small: int

    def __call__(self, small: bool) -> System:
        made = self.make(self.small if small else self.full)
        return made if isinstance(made, System) else System(sp.csr_matrix(made))


def main() -> None:
    parser = parser_of(__doc__, device=False)
    parser.add_argument("--cases", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    arguments = parser.parse_args()
    cases = {name: partial(measure_case, name, arguments.small) for name in arguments.cases}
    measure_each("robustness", arguments, cases, MULTIGRID, peers=("pyamg",), rtol=RTOL, maxiter=MAXITER)


def measure_case(name: str, small: bool) -> dict[str, Any]:
    A, B, block_size, nullspace = FAMILIES[name](small)
    b = A @ np.random.default_rng(SEED).uniform(-1, 1, A.shape[0])
    case = {"unknowns": A.shape[0], "nnz": int(A.nnz), "hierarchies": []}
    for label, build in (ours(A, B, block_size) | peers(A, B, block_size)).items():
        setup, seconds = [], []
        for _ in range(RUNS):
            np.random.seed(SEED)  # noqa: NPY002 - by which PyAMG estimates spectral radii
            began = time.perf_counter()
            M, complexity = build()
            setup.append(time.perf_counter() - began)
            result = pcg(A, b, M=M, rtol=RTOL, maxiter=MAXITER, nullspace=nullspace)
            seconds.append(time.perf_counter() - began)
        row = {"name": label, "iterations": result.iterations, "converged": result.converged}
        row |= {"setup_seconds": min(setup), "seconds": min(seconds)}
        case["hierarchies"].append(row | {"operator_complexity": complexity})
    return case


def ours(A: sp.csr_matrix, B: np.ndarray | None, block_size: int) -> dict[str, Callable[[], tuple[Any, float]]]:
    """Label -> function that builds a hierarchy and returns it with its operator complexity."""

    def of(build: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Any, float]:
        M = build(A, *arguments, **options)
        return M, M.operator_complexity

    nodes = {"block_size": block_size}
    found = {
        "ours": partial(of, fitting_multigrid, B, **nodes),
        "ours, Gauss-Seidel": partial(of, fitting_multigrid, B, **nodes, smoother="gauss_seidel"),
        "ours, by aggregates": partial(of, SmoothedAggregation, B, **nodes),
    }
    return found if block_size > 1 else found | {"ours, by points": partial(of, ClassicalAMG)}


def peers(A: sp.csr_matrix, B: np.ndarray | None, block_size: int) -> dict[str, Callable[[], tuple[Any, float]]]:
    """The same for PyAMG's hierarchies."""
    nodes = A.tobsr((block_size, block_size)) if block_size > 1 else A

    def of(build: Callable[..., Any], matrix: Any, *arguments: Any, **options: Any) -> tuple[Any, float]:
        relaxation = "gauss_seidel" if matrix is A else "block_gauss_seidel"
        before, after = ((relaxation, {"sweep": sweep}) for sweep in SWEEPS)
        ml = build(matrix, *arguments, presmoother=before, postsmoother=after, **options)
        return ml.aspreconditioner(), ml.operator_complexity()

    found = {
        f"PyAMG, {strength}": partial(of, pyamg.smoothed_aggregation_solver, nodes, B, strength=strength)
        for strength in ("symmetric", "evolution")
    }
    found["PyAMG, root-node"] = partial(of, pyamg.rootnode_solver, nodes, B)
    if block_size == 1:
        found["PyAMG, pairwise"] = partial(of, pyamg.pairwise_solver, A)
        found["PyAMG, Ruge-Stüben"] = partial(of, pyamg.ruge_stuben_solver, A)
    return found


def along_the_grid(n: int, ratio: float) -> sp.csr_matrix:
    """Five points, with this share of the conductivity along the second axis."""
    return diffusion((n, n), np.ones((n, n)), (1, ratio))


def rotated(n: int, ratio: float, degrees: float, by: str = "FE") -> sp.csr_matrix:
    """Nine points, of bilinear elements or of differences, with this share of the conductivity across a direction."""
    stencil = pyamg.gallery.diffusion.diffusion_stencil_2d(ratio, np.radians(degrees), type=by)
    return pyamg.gallery.stencil_grid(stencil, (n, n), format="csr")


def jumps(*shape: int) -> sp.csr_matrix:
    """Each cell has a conductivity of 1 or 10^4, at random."""
    return diffusion(shape, 10.0 ** (4 * np.random.default_rng(SEED).integers(0, 2, shape)), (1,) * len(shape))


def random_jumps(n: int, decades: float) -> sp.csr_matrix:
    """Each cell has a conductivity of its own, over so many decades."""
    return diffusion((n, n), 10 ** (decades * np.random.default_rng(SEED).random((n, n))), (1, 1))


def two_units(n: int, ratio: float) -> sp.csr_matrix:
    """Five points, every other unknown of which has another unit."""
    return in_two_units(problems.laplacian((n, n)), n, ratio)


def in_two_units(A: sp.csr_matrix, n: int, ratio: float) -> sp.csr_matrix:
    """A matrix of a grid, every other unknown of which gets another unit."""
    units = sp.diags_array(np.where(np.add.outer(np.arange(n), np.arange(n)).ravel() % 2, ratio, 1.0))
    return sp.csr_matrix(units @ A @ units)


def fourth_order(n: int, shift: float) -> sp.csr_matrix:
    """The square of five points with a shift, as of a Matern covariance."""
    A = problems.laplacian((n, n)) + shift * sp.eye_array(n * n)
    return sp.csr_matrix(A @ A)


def flat_triangles(n: int) -> sp.csr_matrix:
    """Linear elements on n random points with the hull, where triangles are flat; the points at the left are fixed."""
    points = np.random.default_rng(SEED).random((n, 2))
    return stiffness(points, Delaunay(points).simplices, points[:, 0] > 0.02)


def plate(n: int) -> System:
    """Linear elasticity of a square plate that is clamped all around."""
    A, B = pyamg.gallery.linear_elasticity((n, n))
    return System(A.tocsr(), B, 2)


def cube(n: int) -> System:
    """Linear elasticity of a cube that is clamped at its bottom."""
    z, y, x = np.meshgrid(*[np.linspace(0, 1, n)] * 3, indexing="ij")
    return System(problems.elasticity(n), rigid_body_modes(np.stack([x.ravel(), y.ravel(), z.ravel()], axis=1)), 3)


def without_boundary(n: int) -> System:
    """Five points with Neumann conditions all around."""
    A = problems.laplacian((n, n))
    return System(sp.csr_matrix(A - sp.diags_array(A @ np.ones(n * n))), nullspace="constant")


def stretched(n: int, growth: float = 1.06) -> sp.csr_matrix:
    """Finite volumes on a grid whose spacing grows from line to line, along both axes."""
    spacing = growth ** np.arange(n + 1)
    left, right = 1 / spacing[:-1], 1 / spacing[1:]
    second = sp.diags_array([-left[1:], left + right, -right[:-1]], offsets=[-1, 0, 1], shape=(n, n))
    widths = sp.diags_array((spacing[:-1] + spacing[1:]) / 2)
    return sp.csr_matrix(sp.kron(second, widths) + sp.kron(widths, second))


def flat_bilinear(n: int, ratio: float) -> sp.csr_matrix:
    """Bilinear elements that are flat: `ratio` is the square of the short edge over the long one."""
    stiffness = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    mass = sp.eye_array(n) - stiffness / 6
    return sp.csr_matrix(sp.kron(stiffness, mass) + ratio * sp.kron(mass, stiffness))


def quadratic_elements(n: int) -> sp.csr_matrix:
    """Biquadratic elements on n^2 squares, fixed all around."""
    ends = 2 * np.arange(n)[:, None, None]
    rows, columns = (ends + np.arange(3).reshape(shape) + np.zeros((3, 3), int) for shape in ((3, 1), (1, 3)))
    matrices = []
    for of_interval in (
        np.array([[7, -8, 1], [-8, 16, -8], [1, -8, 7]]) / 3,
        np.array([[4, 2, -1], [2, 16, 2], [-1, 2, 4]]) / 30,
    ):
        values = np.broadcast_to(of_interval, rows.shape).ravel()
        matrix = sp.csr_matrix((values, (rows.ravel(), columns.ravel())), shape=(2 * n + 1,) * 2)
        matrices.append(matrix[1:-1, 1:-1])
    stiffness, mass = matrices
    return sp.csr_matrix(sp.kron(stiffness, mass) + sp.kron(mass, stiffness))


def tetrahedra(n: int) -> sp.csr_matrix:
    """Linear elements on n random points of a cube, whose outer ones are fixed."""
    points = np.random.default_rng(SEED).random((n, 3))
    inner = np.flatnonzero(((points > 0.03) & (points < 0.97)).all(axis=1))
    corner = Delaunay(points).simplices
    edges = points[corner[:, 1:]] - points[corner[:, :1]]
    gradients = np.linalg.inv(edges).transpose(0, 2, 1)
    gradients = np.concatenate([-gradients.sum(axis=1, keepdims=True), gradients], axis=1)
    elements = gradients @ gradients.transpose(0, 2, 1) * (abs(np.linalg.det(edges)) / 6)[:, None, None]
    rows, columns = np.broadcast_arrays(corner[:, :, None], corner[:, None, :])
    A = sp.csr_matrix((elements.ravel(), (rows.ravel(), columns.ravel())), shape=(n, n))
    return A[inner][:, inner]


def time_step(n: int) -> sp.csr_matrix:
    """Five points, and ten on the diagonal, as in an implicit step of the heat equation."""
    return sp.csr_matrix(problems.laplacian((n, n)) + 10 * sp.eye_array(n * n))


def jumps_in_two_units(n: int, decades: float, ratio: float) -> sp.csr_matrix:
    """Random jumps, where every other unknown has another unit."""
    return in_two_units(random_jumps(n, decades), n, ratio)


def random_walker(n: int, labeled: int = 60) -> sp.csr_matrix:
    """The segmentation of a noisy image: the similarity of pixels conducts, and some pixels have their labels."""
    rng = np.random.default_rng(SEED)
    x, y = np.meshgrid(*[np.linspace(0, 1, n)] * 2)
    image = ((np.sin(9 * x) * np.cos(7 * y) > 0) + 0.35 * rng.standard_normal((n, n))).ravel()
    number = np.arange(n * n).reshape(n, n)
    first = np.concatenate([number[:, :-1].ravel(), number[:-1].ravel()])
    second = np.concatenate([number[:, 1:].ravel(), number[1:].ravel()])
    weights = np.exp(-13 * (image[first] - image[second]) ** 2 / image.std()) + 1e-10
    free = np.setdiff1d(np.arange(n * n), rng.integers(0, n * n, labeled))
    return network(first, second, weights, np.zeros(n * n))[free][:, free]


def random_tree(n: int) -> sp.csr_matrix:
    """Each vertex hangs on an earlier one, and the first one is grounded."""
    later = np.arange(1, n)
    earlier = (np.random.default_rng(SEED).random(n - 1) * later).astype(int)
    return network(later, earlier, np.ones(n - 1), np.eye(1, n)[0])


def network(first: np.ndarray, second: np.ndarray, weights: np.ndarray, to_ground: np.ndarray) -> sp.csr_matrix:
    """The matrix of a network of conductances between these vertices, and from each vertex to the ground."""
    W = sp.csr_matrix((weights, (first, second)), shape=(len(to_ground),) * 2)
    W = W + W.T
    return sp.csr_matrix(sp.diags_array(W @ np.ones(len(to_ground)) + to_ground) - W)


FAMILIES = {
    "poisson2d": Family(lambda n: problems.laplacian((n, n)), 200, 30),
    "poisson3d": Family(lambda n: problems.laplacian((n, n, n)), 36, 10),
    "poisson3d, 27 points": Family(lambda n: problems.laplacian((n, n, n), points=27), 28, 10),
    "fenl": Family(lambda n: fenl(n, "cpu"), 28, 10),
    "anisotropy 1e-2": Family(lambda n: along_the_grid(n, 1e-2), 200, 30),
    "anisotropy 1e-4": Family(lambda n: along_the_grid(n, 1e-4), 200, 30),
    "anisotropy 1e-2, 30 degrees": Family(lambda n: rotated(n, 1e-2, 30), 200, 30),
    "anisotropy 1e-4, 30 degrees": Family(lambda n: rotated(n, 1e-4, 30), 200, 30),
    "anisotropy 1e-2, 45 degrees": Family(lambda n: rotated(n, 1e-2, 45), 200, 30),
    "anisotropy 1e-4, 45 degrees": Family(lambda n: rotated(n, 1e-4, 45), 200, 30),
    "rotated by differences": Family(lambda n: rotated(n, 1e-2, 30, "FD"), 200, 30),
    "random jumps, 5 decades": Family(lambda n: random_jumps(n, 5), 200, 30),
    "random jumps, 8 decades": Family(lambda n: random_jumps(n, 8), 200, 30),
    "flat bilinear elements": Family(lambda n: flat_bilinear(n, 1e-3), 200, 30),
    "quadratic elements": Family(quadratic_elements, 100, 15),
    "tetrahedra": Family(tetrahedra, 15_000, 1000),
    "time step": Family(time_step, 200, 30),
    "jumps in two units": Family(lambda n: jumps_in_two_units(n, 3, 30), 200, 30),
    "two units": Family(lambda n: two_units(n, 1e3), 200, 30),
    "fourth order": Family(lambda n: fourth_order(n, 0.05), 150, 30),
    "flat triangles": Family(flat_triangles, 50_000, 1000),
    "jumps in 2D": Family(lambda n: jumps(n, n), 200, 30),
    "jumps in 3D": Family(lambda n: jumps(n, n, n), 32, 10),
    "triangulation": Family(linear_elements, 30_000, 1000),
    "stretched grid": Family(stretched, 110, 30),
    "elasticity in 2D": Family(plate, 80, 15),
    "elasticity in 3D": Family(cube, 15, 6),
    "neumann": Family(without_boundary, 180, 30),
    "random walker": Family(random_walker, 220, 30),
    "circuit": Family(problems.circuit, 150, 30),
    "geometric graph": Family(lambda n: laplacian_of(random_geometric(n, seed=SEED), 1e-6), 20_000, 1000),
    "random graph": Family(lambda n: laplacian_of(random_regular(n, 6, seed=SEED), 1e-3), 10_000, 1000),
    "tree": Family(random_tree, 30_000, 1000),
    "hubs": Family(lambda k: laplacian_of(graphs.rmat(k), 1e-3), 12, 9),
}


if __name__ == "__main__":
    main()
