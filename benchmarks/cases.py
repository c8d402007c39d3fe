"""The matrices and graphs of the benchmarks, by the names that results and report use; each in full size and small."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from families import mycielskian, random_geometric, random_regular, road_like
from scipy.spatial import Delaunay

from mcprecond import problems
from mcprecond.backends import get_backend
from mcprecond.problems import graphs
from mcprecond.problems.placing import place_matrix
from mcprecond.studies.demo import triangulation

SEED = 0


class Matrix(NamedTuple):
    """A function of size and device, with the sizes: that on a CPU is the full one unless it is given."""

    make: Callable[[int, str], Any]
    full: int
    small: int
    on_a_cpu: int | None = None

    def __call__(self, small: bool, device: str) -> Any:
        return self.make(self.size(small, device), device)

    def size(self, small: bool, device: str) -> int:
        return self.small if small else self.on_a_cpu if device == "cpu" and self.on_a_cpu else self.full


class Graph(NamedTuple):
    """A function of the size, with two sizes."""

    make: Callable[[int], Any]
    full: int
    small: int

    def __call__(self, small: bool) -> Any:
        return self.make(self.small if small else self.full)


def fenl(n: int, device: str) -> Any:
    problem = problems.fenl(n, device=device)
    return problem.jacobian(problem.exact())


def elasticity(n: int, device: str) -> Any:
    return problems.elasticity(n, device=device)


def grid2d(n: int, device: str) -> Any:
    return get_backend(device).sparse.csr_matrix(graphs.grid2d(n))


def poisson(dimensions: int, n: int, device: str) -> Any:
    return problems.laplacian((n,) * dimensions, device=device)


MATRICES = {
    "fenl_50": Matrix(fenl, 50, 12),
    "fenl_100": Matrix(fenl, 100, 16),
    "fenl_180": Matrix(fenl, 180, 20),
    "elasticity48": Matrix(elasticity, 48, 8),
    "grid2d_1024": Matrix(grid2d, 1024, 64),
    "circuit1259": Matrix(lambda n, device: problems.circuit(n, device=device), 1259, 64),
    # What README shows; on a CPU they are smaller.
    "circuit": Matrix(lambda n, device: problems.circuit(n, device=device), 1259, 64, 300),
    "triangulation": Matrix(lambda n, device: place_matrix(triangulation(n), get_backend(device)), 10**6, 2000, 10**5),
    "poisson2d": Matrix(partial(poisson, 2), 1024, 60, 500),
    "poisson2d_1024": Matrix(partial(poisson, 2), 1024, 60),  # as large on a CPU as on a GPU
    "poisson3d": Matrix(partial(poisson, 3), 128, 16, 60),
    "fenl": Matrix(fenl, 100, 10, 45),
    "elasticity": Matrix(elasticity, 48, 6, 24),
}


def shuffled(A: sp.csr_matrix) -> sp.csr_matrix:
    """The same unknowns, numbered at random."""
    order = np.random.default_rng(SEED).permutation(A.shape[0])
    return A[order][:, order].sorted_indices()


def linear_elements(n: int, stretch: float = 1) -> sp.csr_matrix:
    """The stiffness matrix of linear elements on n random points, triangulated in the unit square that is stretched
    afterwards; the hull's points are fixed.
    """
    points = np.random.default_rng(SEED).random((n, 2))
    corner = np.unique(np.sort(Delaunay(points).simplices, axis=1), axis=0)
    return stiffness(points * [stretch, 1], corner, _edge_counts(corner, n))


def stiffness(points: np.ndarray, corner: np.ndarray, free: np.ndarray) -> sp.csr_matrix:
    """The stiffness matrix of linear elements with these corners, without the points that are not free."""
    n, corners = len(points), points[corner]
    sides = np.roll(corners, -1, axis=1) - np.roll(corners, 1, axis=1)
    areas = abs(np.linalg.det(sides[:, :2])) / 2
    elements = sides @ sides.transpose(0, 2, 1) / (4 * areas[:, None, None])
    rows, columns = np.broadcast_arrays(corner[:, :, None], corner[:, None, :])
    A = sp.csr_matrix((elements.ravel(), (rows.ravel(), columns.ravel())), shape=(n, n))
    kept = np.flatnonzero(free)
    return A[kept][:, kept]


def _edge_counts(triangles: np.ndarray, n: int) -> np.ndarray:
    """For each point, whether all of its edges lie between two triangles: then it is inside."""
    edges = np.sort(np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [0, 2]]]), axis=1)
    edges, times = np.unique(edges, axis=0, return_counts=True)
    inside = np.ones(n, bool)
    inside[edges[times == 1]] = False
    return inside


def diffusion(shape: tuple[int, ...], conductivity: np.ndarray, along: tuple[float, ...]) -> sp.csr_matrix:
    """Finite volumes on a grid with Dirichlet conditions all around: between two cells the harmonic mean of their
    conductivities, times a factor for each axis.
    """
    n, number = int(np.prod(shape)), np.arange(np.prod(shape)).reshape(shape)
    A, diagonal = sp.csr_matrix((n, n)), np.zeros(shape)
    for axis, factor in enumerate(along):
        k, cells = np.moveaxis(conductivity, axis, 0), np.moveaxis(number, axis, 0)
        between = factor * 2 * k[1:] * k[:-1] / (k[1:] + k[:-1])
        A = A - sp.csr_matrix((between.ravel(), (cells[1:].ravel(), cells[:-1].ravel())), shape=(n, n))
        total = np.moveaxis(diagonal, axis, 0)
        total[1:] += between
        total[:-1] += between
        total[0] += 2 * factor * k[0]
        total[-1] += 2 * factor * k[-1]
    return sp.csr_matrix(A + A.T + sp.diags_array(diagonal.ravel()))


def jumping(n: int) -> sp.csr_matrix:
    """Seven points, with cubes of 8^3 cells whose conductivities are 1 or 10^4 at random."""
    cubes = 10.0 ** (4 * np.random.default_rng(SEED).integers(0, 2, (-(-n // 8),) * 3))
    return diffusion((n, n, n), np.kron(cubes, np.ones((8, 8, 8)))[:n, :n, :n], (1, 1, 1))


def anisotropic(n: int) -> sp.csr_matrix:
    """Five points; a hundredth of the conductivity along the second axis."""
    return diffusion((n, n), np.ones((n, n)), (1, 0.01))


def laplacian_of(graph: sp.csr_matrix, shift: float = 0.01) -> sp.csr_matrix:
    """The Laplacian of a graph with so much more on the diagonal, which makes it positive definite."""
    G = sp.csr_array(abs(graph) + abs(graph.T))
    G.setdiag(0)
    G.eliminate_zeros()
    G.data[:] = -1.0
    return sp.csr_matrix(G + sp.diags_array(shift - np.asarray(G.sum(axis=1)).ravel()))


def preferential(n: int, each: int = 4) -> sp.csr_matrix:
    """The graph of Barabasi and Albert: every vertex joins ends of `each` earlier edges, drawn at random."""
    rng = np.random.default_rng(SEED)
    ends = np.empty(2 * each * n, np.int64)
    ends[: 2 * each] = np.arange(2 * each) % (each + 1)
    for v in range(1, n):
        ends[2 * each * v : 2 * each * v + each] = v
        ends[2 * each * v + each : 2 * each * (v + 1)] = ends[rng.integers(0, 2 * each * v, each)]
    joining, joined = ends.reshape(n, 2, each).transpose(1, 0, 2).reshape(2, -1)
    return sp.csr_matrix((np.ones(each * n), (joining, joined)), shape=(n, n))


def star(leaves: int) -> sp.csr_matrix:
    """One vertex with so many neighbors, which have no other."""
    return sp.csr_matrix((np.ones(leaves), (np.zeros(leaves, int), np.arange(1, leaves + 1))), shape=(leaves + 1,) * 2)


def constrained(n: int) -> sp.csr_matrix:
    """A grid of n x n points, and five more that springs tie to half of them, chosen at random: five dense rows."""
    A, tied = graphs.grid2d(n), np.random.default_rng(SEED).random((5, n * n)) < 0.5
    C = sp.csr_array(tied / n)
    springs = (sp.diags_array(C.sum(axis=axis)) for axis in (0, 1))
    return sp.csr_matrix(sp.block_array([[A + next(springs), -C.T], [-C, next(springs)]]))


def on_the_host(make: Callable[[int], sp.csr_matrix]) -> Callable[[int, str], Any]:
    """A matrix that SciPy makes, for both devices."""
    return lambda n, device: get_backend(device).sparse.csr_matrix(make(n))


#: What is solved, on both devices.
SOLVED = {
    "fenl_50": Matrix(fenl, 50, 12, 40),
    "fenl_77": Matrix(fenl, 77, 12, 45),
    "fenl_100": Matrix(fenl, 100, 16, 50),
    "elasticity48": Matrix(elasticity, 48, 8, 20),
    "grid2d_1024": Matrix(grid2d, 1024, 64, 400),
    "circuit1259": Matrix(MATRICES["circuit1259"].make, 1259, 64, 400),
    "grid2d_300": Matrix(grid2d, 300, 30),
    "shuffled_fenl_50": Matrix(on_the_host(lambda n: shuffled(fenl(n, "cpu"))), 50, 12, 40),
    "shuffled_fenl_77": Matrix(on_the_host(lambda n: shuffled(fenl(n, "cpu"))), 77, 12, 45),
    "shuffled_fenl_100": Matrix(on_the_host(lambda n: shuffled(fenl(n, "cpu"))), 100, 16, 50),
    "shuffled_elasticity48": Matrix(on_the_host(lambda n: shuffled(elasticity(n, "cpu"))), 48, 8, 20),
    "shuffled_grid2d_1024": Matrix(on_the_host(lambda n: shuffled(graphs.grid2d(n))), 1024, 64, 400),
    "shuffled_circuit1259": Matrix(on_the_host(lambda n: shuffled(problems.circuit(n))), 1259, 64, 400),
    "p1_delaunay": Matrix(on_the_host(linear_elements), 10**6, 2000, 10**5),
    "jumping": Matrix(on_the_host(jumping), 100, 12, 50),
    "anisotropic": Matrix(on_the_host(anisotropic), 1024, 40, 300),
    "rgg": Matrix(on_the_host(lambda s: laplacian_of(random_geometric(2**s, seed=SEED))), 20, 10, 16),
    "delaunay": Matrix(on_the_host(lambda s: laplacian_of(graphs.delaunay(2**s, seed=SEED))), 20, 10, 17),
    "rmat_18": Matrix(on_the_host(lambda s: laplacian_of(graphs.rmat(s, seed=SEED))), 18, 10, 16),
    "rmat_20": Matrix(on_the_host(lambda s: laplacian_of(graphs.rmat(s, seed=SEED))), 20, 11, 17),
    "preferential": Matrix(on_the_host(lambda s: laplacian_of(preferential(2**s))), 18, 10, 16),
    "star": Matrix(on_the_host(lambda leaves: laplacian_of(star(leaves))), 10**5, 1000),
    "constrained": Matrix(on_the_host(constrained), 500, 30, 200),
}
MATRICES["hubs"] = SOLVED["rmat_20"]  # README shows it, too
#: Unknowns of a node, of those that are solved node by node.
BLOCK_SIZES = {"elasticity48": 3}
#: Family -> function of log2 of about how many vertices.
GROWING: dict[str, Callable[[int], Any]] = {
    "grid2d": lambda scale: graphs.grid2d(2 ** (scale // 2)),
    "delaunay": lambda scale: graphs.delaunay(2**scale, seed=SEED),
    "rgg": lambda scale: random_geometric(2**scale, seed=SEED),
    "rmat": lambda scale: graphs.rmat(scale, seed=SEED),
    "random": lambda scale: random_regular(2**scale, 8, seed=SEED),
    "road": lambda scale: road_like(2**scale, seed=SEED),
    "fenl": lambda scale: graphs.fenl(round(2 ** (scale / 3)) - 1),
}
GRAPHS = {
    "fenl_50": Graph(graphs.fenl, 50, 12),
    "fenl_100": Graph(graphs.fenl, 100, 16),
    "fenl_180": Graph(graphs.fenl, 180, 20),
    "grid2d_1024": Graph(GROWING["grid2d"], 20, 12),
    "delaunay20": Graph(GROWING["delaunay"], 20, 12),
    "rgg20": Graph(GROWING["rgg"], 20, 12),
    "rmat16": Graph(GROWING["rmat"], 16, 10),
    "rmat20": Graph(GROWING["rmat"], 20, 12),
    "rmat22": Graph(GROWING["rmat"], 22, 13),
    "random20": Graph(GROWING["random"], 20, 12),
    "mycielskian15": Graph(mycielskian, 15, 9),
    "elasticity48": Graph(graphs.elasticity_pattern, 48, 8),
    "road22": Graph(GROWING["road"], 22, 12),
}
