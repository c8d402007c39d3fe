"""Random sparse systems with a symmetric positive definite matrix, of conditions and contrasts up to 1e12, and the true
error of a vector, by integers.

Entries of A and numbers of x are integers times powers of two, whose products and sums are exact. A solution is refined
with such residuals until it has many more digits than a double, if Cholesky's factors in double precision reduce an
error at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpocon

#: Condition numbers and contrasts are at most 10**DECADES. Tolerances are between 10 to the powers in RTOLS.
DECADES, RTOLS = 12.0, (-10.0, -4.0)
#: The numbers of unknowns, and the largest one of a dense matrix.
SIZES, DENSE = (100, 2000), 300
#: Iterative refinement ends when a step changes the solution by at most KNOWN, relative to it in the energy norm. If
#: STEPS steps do not achieve that, the refinement has failed.
KNOWN, STEPS = 1e-20, 60
#: Binary places of the solution, in addition to those that its largest number asks for.
PLACES = 320


class Drawn(NamedTuple):
    """A system to solve, and to which tolerance.

    Attributes
    ----------
    family, source : str
        How the matrix and the right-hand side were made.
    A : csr_matrix
    b : array
    rtol : float
    """

    family: str
    source: str
    A: sp.csr_matrix
    b: np.ndarray
    rtol: float


def draw(seed: int, most: int = SIZES[1]) -> Drawn:
    """The system of a seed, with at most so many unknowns; families take turns."""
    rng = np.random.default_rng([69, seed])
    family = list(FAMILIES)[seed % len(FAMILIES)]
    n = int(np.exp(rng.uniform(np.log(SIZES[0]), np.log(most))))
    A = sp.csr_matrix(FAMILIES[family](rng, n))
    A.sort_indices()
    n = A.shape[0]
    sources = {"random": rng.standard_normal(n), "of random x": A @ rng.standard_normal(n), "point": np.zeros(n)}
    sources["point"][rng.integers(n)] = 1
    source = list(sources)[rng.integers(len(sources))]
    return Drawn(family, source, A, sources[source], 10 ** rng.uniform(*RTOLS))


def network(n: int, pairs: np.ndarray, weights: np.ndarray, to_ground: np.ndarray) -> sp.csr_matrix:
    """The matrix of conductances between pairs of vertices, shape (., 2), and from each vertex to the ground."""
    W = sp.csr_matrix((weights, pairs.T), shape=(n, n))
    W = W + W.T
    return sp.csr_matrix(sp.diags_array(W @ np.ones(n) + to_ground) - W)


def neighbors(*shape: int) -> np.ndarray:
    """The pairs of neighbors of a grid."""
    number = np.arange(math.prod(shape)).reshape(shape)
    along = [np.moveaxis(number, axis, 0) for axis in range(len(shape))]
    return np.concatenate([np.stack([part[:-1].ravel(), part[1:].ravel()], axis=1) for part in along])


def at_boundary(*shape: int) -> np.ndarray:
    """1 for the vertices of the first line or plane of a grid, and 0 for others."""
    fixed = np.zeros(shape)
    fixed[0] = 1
    return fixed.ravel()


def over_decades(rng: np.random.Generator, count: int, most: float = DECADES) -> np.ndarray:
    """Numbers from 1 down over so many decades, or over fewer."""
    return 10 ** -rng.uniform(0, rng.uniform(0, most), count)


def jumps(rng: np.random.Generator, *shape: int) -> sp.csr_matrix:
    """A grid of cells with one of two conductivities, or each with one of its own."""
    n, pairs = math.prod(shape), neighbors(*shape)
    contrast = 10 ** -rng.uniform(0, DECADES)
    cells = contrast ** rng.integers(0, 2, n) if rng.random() < 0.5 else contrast ** rng.random(n)
    weights = 2 / (1 / cells[pairs[:, 0]] + 1 / cells[pairs[:, 1]])
    return network(n, pairs, weights, 2 * cells * at_boundary(*shape))


def jumps_in_2d(rng: np.random.Generator, n: int) -> sp.csr_matrix:
    """Cells of a square."""
    return jumps(rng, side := math.isqrt(n), side)


def jumps_in_3d(rng: np.random.Generator, n: int) -> sp.csr_matrix:
    """Cells of a cube."""
    return jumps(rng, side := round(n ** (1 / 3)), side, side)


def anisotropic(rng: np.random.Generator, n: int) -> sp.csr_matrix:
    """A grid that conducts less along the one axis, down to a millionth."""
    shape = (side := math.isqrt(n), side)
    pairs, ratio = neighbors(*shape), 10 ** -rng.uniform(0, 6)
    weights = np.where(pairs[:, 1] - pairs[:, 0] == 1, ratio, 1.0)
    return network(side * side, pairs, weights, max(ratio, rng.random()) * at_boundary(*shape))


def walker(rng: np.random.Generator, n: int) -> sp.csr_matrix:
    """A grid of tiles with weak conductances across, grounded in a corner, as of a random walker on an image."""
    side, width = math.isqrt(n), int(rng.integers(3, 9))
    pairs, index = neighbors(side, side), np.arange(side * side)
    tile = (index // side // width * side + index % side // width)[pairs]
    decades = rng.uniform(1, DECADES)
    weak = 10 ** -rng.uniform(decades / 2, decades, len(pairs))
    weights = np.where(tile[:, 0] == tile[:, 1], rng.uniform(0.5, 1, len(pairs)), weak)
    return network(side * side, pairs, weights, np.eye(1, side * side)[0])


def random_graph(rng: np.random.Generator, n: int) -> np.ndarray:
    """Pairs of vertices at random, and for each vertex one with an earlier one, so that the graph is connected."""
    later = np.arange(1, n)
    tree = np.stack([later, (rng.random(n - 1) * later).astype(int)], axis=1)
    others = rng.integers(0, n, (rng.integers(1, 4) * n, 2))
    return np.concatenate([tree, others[others[:, 0] != others[:, 1]]])


def circuit(rng: np.random.Generator, n: int) -> sp.csr_matrix:
    """A random graph of conductances over many decades, with a few vertices grounded."""
    pairs, ground = random_graph(rng, n), np.zeros(n)
    ground[rng.integers(0, n, 3)] = 1
    return network(n, pairs, over_decades(rng, len(pairs)), ground)


def scaled_graph(rng: np.random.Generator, n: int) -> sp.csr_matrix:
    """The Laplacian of a random graph with a shift, its unknowns in units of their own."""
    pairs = random_graph(rng, n)
    A = network(n, pairs, rng.random(len(pairs)), np.full(n, 10 ** -rng.uniform(0, 9)))
    return in_units(A, over_decades(rng, n, DECADES / 2))


def in_units(A: sp.csr_matrix, units: np.ndarray) -> sp.csr_matrix:
    """D A D, as symmetric as A."""
    D = sp.diags_array(units)
    found = sp.csr_matrix(D @ A @ D)
    return sp.csr_matrix((found + found.T) / 2)


def units(rng: np.random.Generator, n: int) -> sp.csr_matrix:
    """A Poisson problem whose unknowns have units of their own."""
    shape = (side := math.isqrt(n), side)
    A = network(side * side, pairs := neighbors(*shape), np.ones(len(pairs)), at_boundary(*shape))
    return in_units(A, over_decades(rng, side * side, DECADES / 2))


def fourth_order(rng: np.random.Generator, n: int) -> sp.csr_matrix:
    """The square of a Laplacian with a shift."""
    shape = (side := math.isqrt(n), side)
    A = network(side * side, pairs := neighbors(*shape), np.ones(len(pairs)), at_boundary(*shape))
    A = A + 10 ** -rng.uniform(0, 5) * sp.eye_array(side * side)
    return sp.csr_matrix(A @ A)


def normal_equations(rng: np.random.Generator, n: int) -> sp.csr_matrix:
    """B'B with a shift, for a random sparse B with columns of different norms."""
    B = sp.random_array((int(1.2 * n), n), density=3 / n, rng=rng, data_sampler=rng.standard_normal, format="csr")
    B = B @ sp.diags_array(over_decades(rng, n, 4))
    return sp.csr_matrix(B.T @ B + 10 ** -rng.uniform(2, DECADES) * sp.eye_array(n))


def dense_spectrum(rng: np.random.Generator, n: int) -> sp.csr_matrix:
    """A dense matrix with eigenvectors at random, and eigenvalues over many decades."""
    n = min(n, DENSE)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    values = 10 ** -np.sort(rng.uniform(0, rng.uniform(1, DECADES), n))
    if rng.random() < 0.5:  # most of them are near 1
        values[: n - n // 10] = rng.uniform(0.5, 1, n - n // 10)
    A = (Q * values) @ Q.T
    return sp.csr_matrix((A + A.T) / 2)


FAMILIES: dict[str, Callable[[np.random.Generator, int], sp.csr_matrix]] = {
    "jumps in 2D": jumps_in_2d,
    "jumps in 3D": jumps_in_3d,
    "anisotropic": anisotropic,
    "random walker": walker,
    "circuit": circuit,
    "scaled graph": scaled_graph,
    "units": units,
    "fourth order": fourth_order,
    "normal equations": normal_equations,
    "dense spectrum": dense_spectrum,
}


class Exact:
    """The solution of A x = b in fixed-point numbers, and the true errors of vectors.

    Parameters
    ----------
    A : csr_matrix
        Symmetric and positive definite, in double precision.
    b : array

    Attributes
    ----------
    changed : float
        By which share the last step of refinement changed the solution, in the energy norm.
    condition : float
        That of A with a diagonal of 1, in the 1-norm, as LAPACK estimates it.

    Raises
    ------
    ValueError
        If the solution was not found.
    """

    def __init__(self, A: sp.csr_matrix, b: np.ndarray) -> None:
        self.indptr, self.indices = A.indptr, A.indices
        self.places_of_A = places_for(A.data)
        self.values = integers(A.data, self.places_of_A)
        scale = 1 / np.sqrt(A.diagonal())
        scaled = A.toarray() * scale * scale[:, None]
        try:
            factor = cho_factor(scaled, lower=True)
        except np.linalg.LinAlgError as error:
            raise ValueError("A is not definite in double precision") from error
        self.condition = 1 / float(dpocon(factor[0], abs(scaled).sum(axis=0).max(), uplo="L")[0])
        largest = float(abs(scale * cho_solve(factor, scale * b)).max())
        self.places = PLACES - math.frexp(largest)[1]
        right = integers(b, places_of_b := places_for(b))
        right = shifted(right, self.places + self.places_of_A - places_of_b)
        self.x = integers(np.zeros(len(b)), 0)
        for _ in range(STEPS):
            r = doubles(right - self.times_A(self.x), self.places + self.places_of_A)
            step = integers(scale * cho_solve(factor, scale * r), self.places)
            self.x = self.x + step
            self.changed = self.norm(step) / self.norm(self.x)
            if self.changed <= KNOWN:
                break
        else:
            raise ValueError(f"the solution is not known: the last step changed it by {self.changed:.0e}")

    def times_A(self, x: np.ndarray) -> np.ndarray:
        """A x, without any rounding."""
        return np.add.reduceat(self.values * x[self.indices], self.indptr[:-1])

    def norm(self, x: np.ndarray) -> float:
        """The energy norm of integers, in the units of the solution."""
        square, places = int((x * self.times_A(x)).sum()), 2 * self.places + self.places_of_A
        return math.sqrt(square / 2**places) if places >= 0 else math.sqrt(square << -places)

    def error(self, x: np.ndarray) -> float:
        """The energy norm of the error of a vector, relative to that of the solution."""
        return self.norm(integers(x, self.places) - self.x) / self.norm(self.x)


def places_for(values: np.ndarray) -> int:
    """How many binary places numbers have."""
    return 53 - int(np.frexp(values[values != 0])[1].min())


def integers(values: np.ndarray, places: int) -> np.ndarray:
    """Numbers times a power of two, without what is left after so many binary places."""
    digits, exponents = np.frexp(values)
    whole = np.array([int(part) for part in np.ldexp(digits, 53)], object)
    return np.array([shift(part, int(by)) for part, by in zip(whole, exponents + places - 53, strict=True)], object)


def doubles(values: np.ndarray, places: int) -> np.ndarray:
    """The numbers again, rounded."""
    return np.array([value / 2**places for value in values])


def shifted(values: np.ndarray, by: int) -> np.ndarray:
    """Integers times a power of two."""
    return np.array([shift(value, by) for value in values], object)


def shift(value: int, by: int) -> int:
    """An integer times a power of two."""
    return value << by if by >= 0 else value >> -by
