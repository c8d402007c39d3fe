"""Small linear systems of known condition, in any units, and their solutions in extended precision."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from reference.precision import norm, wide

KINDS = "definite", "unsymmetric"
SCALINGS = "none", "units", "rows and columns"
DTYPES = tuple(np.dtype(name) for name in ("float32", "float64", "complex64", "complex128"))
#: Decimal exponents: of the largest condition, and of the largest and smallest scale of a row or column.
LARGEST_CONDITION = {"f": 6.0, "F": 6.0, "d": 15.0, "D": 15.0}
LARGEST_SCALE = {"f": 12.0, "F": 12.0, "d": 150.0, "D": 150.0}
#: If the condition times the unit of rounding is larger than this, rounding may make A singular or indefinite.
WORST_CONDITION = 1e-3
#: Steps of iterative refinement. Each step reduces the error by about the condition of A times the unit of rounding of
#: extended precision.
REFINEMENTS = 6


@dataclass(frozen=True)
class System:
    """A X = B as it is stored, and what it was made from.

    Attributes
    ----------
    condition : float
        The ratio of the largest singular value to the smallest one, before scaling and before rounding to the dtype.
    scales : (array, array)
        The powers of two nearest to the scales of rows and columns.
    """

    A: sp.csr_matrix
    B: np.ndarray
    kind: str
    scaling: str
    condition: float
    scales: tuple[np.ndarray, np.ndarray]

    @property
    def dtype(self) -> np.dtype:
        """Of A and B."""
        return self.A.dtype

    @property
    def is_definite(self) -> bool:
        """Whether A was made symmetric, or Hermitian, and positive definite."""
        return self.kind == "definite"

    @property
    def is_regular(self) -> bool:
        """Whether rounding to the dtype has left A far from all singular and indefinite matrices."""
        return self.condition * float(np.finfo(self.dtype).eps) <= WORST_CONDITION

    @cached_property
    def dense(self) -> np.ndarray:
        """A in extended precision."""
        return wide(self.A.toarray())

    @cached_property
    def inverse(self) -> np.ndarray:
        """inv(A) in extended precision, by way of the matrix without its scales."""
        rows, columns = self.scales
        return inverse(self.dense / rows[:, None] / columns) / columns[:, None] / rows

    @cached_property
    def solution(self) -> np.ndarray:
        """inv(A) B in extended precision; the residual is reduced to its rounding, which an inverse alone does not."""
        X = wide(np.zeros_like(self.B))
        for _ in range(REFINEMENTS):
            X += self.inverse @ (wide(self.B) - self.dense @ X)
        return X

    @cached_property
    def rounding(self) -> np.ndarray:
        """The residuals that one error of rounding in each product of an entry and a number of X may leave."""
        return float(np.finfo(self.dtype).eps) / 2 * (np.abs(self.dense) @ np.abs(self.solution))

    def best_residual(self, column: int) -> float:
        """The norm of the residual that can be reached: that of `rounding`."""
        return norm(self.rounding[:, column])

    def best_error(self, column: int) -> float:
        """The error in the norm of a definite A that can be reached: what residuals of the size of `rounding` with
        random signs come to. Scaling rows and columns alike does not change it.
        """
        return norm(np.sqrt(np.abs(np.diagonal(self.inverse))) * self.rounding[:, column])

    def error(self, column: int, x: np.ndarray) -> float:
        """The error of x in the norm of a definite A."""
        e = wide(x) - self.solution[:, column]
        return float(np.sqrt(max((e.conj() @ (self.dense @ e)).real, 0)))


def draw(seed: int, most: int = 120) -> System:
    """The system of a seed, with at most so many unknowns.

    Its right-hand sides are A times a random vector, a random vector and a unit vector, all of them in the units of A.
    """
    rng = np.random.default_rng(seed)
    dtype, kind, scaling = DTYPES[rng.integers(4)], KINDS[rng.integers(2)], SCALINGS[rng.integers(3)]
    n = int(np.exp(rng.uniform(np.log(5), np.log(most))))
    make = grid if rng.random() < 0.4 else rotated
    A = make(rng, n, 10 ** rng.uniform(2, LARGEST_CONDITION[dtype.char]), kind == "definite", dtype.kind == "c")
    condition = float(np.linalg.cond(A.astype(np.result_type(dtype, np.float64))))
    rows, columns = drawn_scales(rng, n, scaling, kind == "definite", LARGEST_SCALE[dtype.char])
    A *= rows[:, None] * columns
    first, second = wide(rng.uniform(-1, 1, (2, n)))
    B = np.stack([A @ (first / columns), second * rows, np.eye(n)[n // 2] * rows], axis=1)
    powers = nearest_powers(rows), nearest_powers(columns)
    return System(sp.csr_matrix(A.astype(dtype)), B.astype(dtype), kind, scaling, condition, powers)


def drawn_scales(
    rng: np.random.Generator, n: int, scaling: str, is_definite: bool, most: float
) -> tuple[np.ndarray, np.ndarray]:
    """The scales of rows and of columns: 1, one for all, or one for each, up to 10^most; alike for a definite A."""
    width = rng.uniform(0, most)
    exponents = np.zeros(n), np.full(n, rng.uniform(-most, most)), rng.uniform(-width, width, n)
    rows = wide(10.0) ** exponents[SCALINGS.index(scaling)]
    return rows, rows if is_definite else rng.permutation(rows)


def nearest_powers(scales: np.ndarray) -> np.ndarray:
    """The powers of two next to these numbers."""
    return np.ldexp(wide(np.ones(len(scales))), np.frexp(scales)[1])


def rotated(rng: np.random.Generator, n: int, condition: float, is_definite: bool, is_complex: bool) -> np.ndarray:
    """Singular values from 1 down to the inverse of the condition, and rotations of two rows and two columns each."""
    exponents = rng.random(n)
    exponents[:2] = 0, 1
    A = wide(np.diag(condition ** -wide(exponents)) + (0j if is_complex else 0))
    for _ in range(int(n * rng.uniform(0.5, 4))):
        places, turn = drawn_rotation(rng, n, is_complex)
        A[places] = turn @ A[places]
        if not is_definite:
            places, turn = drawn_rotation(rng, n, is_complex)
        A[:, places] = A[:, places] @ turn.conj().T
    return (A + A.conj().T) / 2 if is_definite else A


def drawn_rotation(rng: np.random.Generator, n: int, is_complex: bool) -> tuple[np.ndarray, np.ndarray]:
    """Two numbers of rows, and a unitary matrix for them."""
    places, angle = rng.choice(n, 2, replace=False), wide(rng.uniform(0, 2 * np.pi))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return places, turn * (phases(rng, 2)[:, None] if is_complex else 1)


def phases(rng: np.random.Generator, n: int) -> np.ndarray:
    """Complex numbers of magnitude 1."""
    return np.exp(1j * wide(rng.uniform(0, 2 * np.pi, n)))


def grid(rng: np.random.Generator, n: int, condition: float, is_definite: bool, is_complex: bool) -> np.ndarray:
    """A Laplacian on a grid in one dimension or two, with a shift that makes the condition, and with advection unless
    it is to be definite. Complex unknowns are turned by phases.
    """
    width = n if rng.random() < 0.5 else int(np.sqrt(n))
    number = np.arange(n)
    along, across = number[number % width < width - 1], number[: n - width]
    A, advection = wide(np.zeros((n, n))), 0 if is_definite else rng.uniform(0, 1)
    for first, second in ((along[along < n - 1], 1), (across, width)):
        A[first, first + second] -= 1 + advection
        A[first + second, first] -= 1 - advection
        A[first, first] += 1
        A[first + second, first + second] += 1
    A += np.eye(n) * (8 if width < n else 4) / condition
    if is_complex:
        turned = phases(rng, n)
        A = A * turned[:, None] * turned.conj()
        A = (A + A.conj().T) / 2 if is_definite else A
    return A


def inverse(A: np.ndarray) -> np.ndarray:
    """By elimination with pivots, in extended precision."""
    n = len(A)
    rows = np.concatenate([A, np.eye(n, dtype=A.dtype)], axis=1)
    for k in range(n):
        pivot = k + int(np.argmax(np.abs(rows[k:, k])))
        rows[[k, pivot]] = rows[[pivot, k]]
        rows[k] /= rows[k, k]
        others = np.arange(n) != k
        rows[others] -= rows[others, k][:, None] * rows[k]
    return rows[:, n:]
