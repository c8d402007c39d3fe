"""Systems of other families and sizes than those by which the choice of "auto" was fitted; see automatic.py."""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.sparse as sp
from cases import SEED, diffusion, laplacian_of, on_the_host
from cases import Matrix as Case
from families import random_regular, road_like
from robustness import network, random_walker, stretched
from scipy.spatial import Delaunay, KDTree

from mcprecond.problems import graphs


def mass(n: int) -> sp.csr_matrix:
    """The mass matrix of linear elements on n random points."""
    points = np.random.default_rng(SEED).random((n, 2))
    corner = Delaunay(points).simplices
    sides = points[corner[:, 1:]] - points[corner[:, :1]]
    areas = abs(np.linalg.det(sides)) / 2
    elements = areas[:, None, None] * (np.ones((3, 3)) + np.eye(3)) / 12
    rows, columns = np.broadcast_arrays(corner[:, :, None], corner[:, None, :])
    return sp.csr_matrix((elements.ravel(), (rows.ravel(), columns.ravel())), shape=(n, n))


def heat_step(n: int, step: float) -> sp.csr_matrix:
    """An implicit step of the heat equation, by bilinear elements; `step` is relative to the square of the spacing."""
    second = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    mass = sp.eye_array(n) - second / 6
    stiffness = sp.kron(second, mass) + sp.kron(mass, second)
    return sp.csr_matrix(sp.kron(mass, mass) + step * stiffness)


def small_world(n: int) -> sp.csr_matrix:
    """A ring whose vertices know three others on each side; a tenth of the edges lead to random vertices instead."""
    rng = np.random.default_rng(SEED)
    first = np.tile(np.arange(n), 3)
    second = (first + np.repeat([1, 2, 3], n)) % n
    second = np.where(rng.random(3 * n) < 0.1, rng.integers(0, n, 3 * n), second)
    return laplacian_of(sp.csr_matrix((np.ones(3 * n), (first, second)), shape=(n, n)), 1e-3)


def caterpillar(n: int) -> sp.csr_matrix:
    """A path of n / 2 vertices, each with a leaf; its ends are grounded."""
    half = n // 2
    first = np.concatenate([np.arange(half - 1), np.arange(half)])
    second = np.concatenate([np.arange(1, half), np.arange(half, 2 * half)])
    return network(first, second, np.ones(len(first)), np.eye(1, 2 * half)[0])


def covariance(n: int) -> sp.csr_matrix:
    """Wendland's function of the distances of n random points, with compact support, and a nugget."""
    points = np.random.default_rng(SEED).random((n, 2))
    radius = 2.2 / np.sqrt(n)
    pairs = KDTree(points).sparse_distance_matrix(KDTree(points), radius, output_type="coo_matrix").tocsr()
    r = pairs.data / radius
    pairs.data = (1 - r) ** 4 * (4 * r + 1)
    pairs.setdiag(1.01)
    return sp.csr_matrix(pairs)


def least_squares(n: int) -> sp.csr_matrix:
    """The normal equations of a random sparse matrix of 2 n rows with three entries each, and a little ridge."""
    rng = np.random.default_rng(SEED)
    J = sp.csr_matrix((rng.standard_normal(6 * n), rng.integers(0, n, 6 * n), np.arange(0, 6 * n + 1, 3)), (2 * n, n))
    return sp.csr_matrix(J.T @ J + 1e-2 * sp.eye_array(n))


def smoothing(n: int) -> sp.csr_matrix:
    """Penalized least squares on a line: second differences, squared."""
    D = sp.diags_array([1.0, -2.0, 1.0], offsets=[0, 1, 2], shape=(n - 2, n))
    return sp.csr_matrix(sp.eye_array(n) + 1e4 * D.T @ D)


def channels(n: int) -> sp.csr_matrix:
    """Five points; channels of 10^5 times the conductivity run across."""
    rows = np.sin(np.arange(n)[:, None] / 7) + 0 * np.arange(n) > 0.9
    return diffusion((n, n), np.where(rows, 1e5, 1.0), (1, 1))


def slab(n: int) -> sp.csr_matrix:
    """Seven points on n x n x n / 8 cells that are flat: a hundred times as strong in one direction."""
    shape = n, n, max(n // 8, 2)
    return diffusion(shape, np.ones(shape), (1, 1, 100))


def anisotropic_in_space(n: int) -> sp.csr_matrix:
    """Seven points; a hundredth and a ten-thousandth of the conductivity along two axes."""
    return diffusion((n, n, n), np.ones((n, n, n)), (1, 1e-2, 1e-4))


def lognormal(n: int) -> sp.csr_matrix:
    """Seven points; each cell has a conductivity of its own, log-normal with a deviation of 2."""
    return diffusion((n, n, n), np.exp(2 * np.random.default_rng(SEED).standard_normal((n, n, n))), (1, 1, 1))


def plate(n: int) -> sp.csr_matrix:
    """Plane elasticity on n x n points, by finite differences with cross terms, clamped all around."""
    one = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    half = sp.diags_array([-0.5, 0.5], offsets=[-1, 1], shape=(n, n))
    along, across, cross = sp.kron(one, sp.eye_array(n)), sp.kron(sp.eye_array(n), one), sp.kron(half, half)
    return sp.csr_matrix(sp.block_array([[3 * along + across, -2 * cross], [-2 * cross, along + 3 * across]]))


def torus(n: int, shift: float) -> sp.csr_matrix:
    """Five points with periodic conditions, and a shift."""
    ring = sp.csr_matrix(sp.diags_array([-1, -1, 2.0, -1, -1], offsets=[1 - n, -1, 0, 1, n - 1], shape=(n, n)))
    return sp.csr_matrix(sp.kron(ring, sp.eye_array(n)) + sp.kron(sp.eye_array(n), ring) + shift * sp.eye_array(n * n))


def dense_blocks(n: int) -> sp.csr_matrix:
    """Blocks of 16 unknowns, each A = Q' Q + 1 with random Q, joined weakly into a ring."""
    Q = np.random.default_rng(SEED).standard_normal((n // 16, 16, 16)) / 4
    blocks = sp.block_diag(list(Q.transpose(0, 2, 1) @ Q + np.eye(16) / 4), format="csr")
    m = blocks.shape[0]
    ring = sp.diags_array([-1, -1, 2.0, -1, -1], offsets=[1 - m, -1, 0, 1, m - 1], shape=(m, m))
    return sp.csr_matrix(blocks + 0.01 * ring)


HELD_OUT = {
    "mass": Case(on_the_host(mass), 10**6, 2000, 10**5),
    "short heat step": Case(on_the_host(partial(heat_step, step=0.1)), 1000, 40, 300),
    "long heat step": Case(on_the_host(partial(heat_step, step=100.0)), 1000, 40, 300),
    "small world": Case(on_the_host(small_world), 500_000, 2000, 50_000),
    "regular graph": Case(
        on_the_host(lambda n: laplacian_of(random_regular(n, 8, seed=SEED), 1e-4)), 2**19, 2000, 2**16
    ),
    "roads": Case(on_the_host(lambda n: laplacian_of(road_like(n, seed=SEED), 1e-5)), 10**6, 3000, 10**5),
    "caterpillar": Case(on_the_host(caterpillar), 200_000, 2000, 20_000),
    "covariance": Case(on_the_host(covariance), 300_000, 2000, 50_000),
    "least squares": Case(on_the_host(least_squares), 200_000, 2000, 40_000),
    "smoothing": Case(on_the_host(smoothing), 500_000, 2000, 50_000),
    "channels": Case(on_the_host(channels), 1000, 40, 300),
    "slab": Case(on_the_host(slab), 160, 16, 80),
    "anisotropic in space": Case(on_the_host(anisotropic_in_space), 90, 12, 45),
    "log-normal": Case(on_the_host(lognormal), 90, 12, 45),
    "plate": Case(on_the_host(plate), 500, 24, 120),
    "torus": Case(on_the_host(lambda n: torus(n, 1e-4)), 900, 40, 250),
    "dense blocks": Case(on_the_host(dense_blocks), 2**19, 2048, 2**16),
    "walker": Case(on_the_host(random_walker), 1000, 40, 300),
    "stretched": Case(on_the_host(lambda n: stretched(n, 1.02)), 800, 40, 250),
    "triangles with weights": Case(
        on_the_host(lambda s: laplacian_of(graphs.delaunay(2**s, seed=SEED + 1), 1e-5)), 19, 10, 16
    ),
}
