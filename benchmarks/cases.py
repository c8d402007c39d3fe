"""The matrices and graphs of the benchmarks, by the names that results and report use; each in full size and small."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from mcprecond import problems
from mcprecond.backends import get_backend
from mcprecond.problems import graphs

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
    # Multigrid on a CPU takes smaller ones.
    "poisson2d": Matrix(partial(poisson, 2), 1024, 60, 500),
    "poisson3d": Matrix(partial(poisson, 3), 128, 16, 60),
    "fenl": Matrix(fenl, 180, 10, 40),
    "elasticity": Matrix(elasticity, 48, 6, 16),
}
#: Family -> function of log2 of about how many vertices.
GROWING: dict[str, Callable[[int], Any]] = {
    "grid2d": lambda scale: graphs.grid2d(2 ** (scale // 2)),
    "delaunay": lambda scale: graphs.delaunay(2**scale, seed=SEED),
    "rgg": lambda scale: graphs.random_geometric(2**scale, seed=SEED),
    "rmat": lambda scale: graphs.rmat(scale, seed=SEED),
    "random": lambda scale: graphs.random_regular(2**scale, 8, seed=SEED),
    "road": lambda scale: graphs.road_like(2**scale, seed=SEED),
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
    "mycielskian15": Graph(graphs.mycielskian, 15, 9),
    "elasticity48": Graph(graphs.elasticity_pattern, 48, 8),
    "road22": Graph(GROWING["road"], 22, 12),
}
