"""Products with a diagonal matrix, which reads one number for each row and no index; and its square roots."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import NUMBERS, Backend, KernelSet
from mcprecond.linalg.operator import Operator
from mcprecond.linalg.powers import exponent_of
from mcprecond.matrix import AdmittedMatrix

KERNELS = KernelSet(__file__, "VALUE")


class Diagonal(Operator):
    """A diagonal matrix as an operator.

    Parameters
    ----------
    diagonal : array, shape (n,)
        Referred to.
    backend : Backend
    exponent : int, optional
        Of the operator; that of the largest entry by default.

    Attributes
    ----------
    numbers : array, shape (n,)
        The diagonal.
    """

    def __init__(self, diagonal: Any, backend: Backend, exponent: int | None = None) -> None:
        self.shape, self.dtype = (len(diagonal), len(diagonal)), diagonal.dtype
        self.numbers, self._backend = diagonal, backend
        self._exponent = exponent
        self._run = backend.kernels(KERNELS, VALUE=self.dtype)

    @property
    def exponent(self) -> int:
        if self._exponent is None:
            self._exponent = exponent_of(self.numbers, self._backend.xp)
        return self._exponent

    def beside(self, matrix: AdmittedMatrix) -> Diagonal:
        """Return this operator as a preconditioner of a matrix, with the exponent that brings the product of the two to
        the magnitude of the product's diagonal. Where units differ, the largest entries of the two are in different
        rows, and say nothing about their product. An operator that was made for a matrix of the same magnitude has that
        exponent already.
        """
        if self._exponent == 1 - matrix.exponent:
            return self
        with np.errstate(all="ignore"):
            products = self.numbers * matrix.canonical().diagonal()
        exponent = exponent_of(products, self._backend.xp) - matrix.exponent
        return Diagonal(self.numbers, self._backend, exponent)

    def matvec(self, x: Any) -> Any:
        """Return D x, for a vector or several columns."""
        return (self.numbers if x.ndim == 1 else self.numbers[:, None]) * x

    __matmul__ = matvec

    def enqueue(self, state: None, x: Any, y: Any) -> None:
        self._run.multiply(x.size, x.size // max(len(self.numbers), 1), self.numbers, x, y)


def sizes_of(matrix: AdmittedMatrix, *, per_neighbor: bool = False) -> Any:
    """The square roots of the diagonal's magnitudes, in double precision, or of those over the numbers of neighbors."""
    sizes = matrix.backend.xp.empty(matrix.shape[0])
    run = matrix.backend.kernels(KERNELS, VALUE=matrix.dtype)
    run.find_sizes(len(sizes), matrix.diagonal(), matrix.degrees, int(per_neighbor), sizes)
    return sizes


@KERNELS.per_item(grain=NUMBERS)
def find_sizes(first, end, diagonal, degrees, per_neighbor, sizes):
    """sqrt |a_ii|, or sqrt(|a_ii| / m_i) with the number m_i of neighbors."""
    for i in range(first, end):
        neighbors = max(degrees[i], 1) if per_neighbor else 1
        sizes[i] = np.sqrt(np.float64(abs(diagonal[i])) / neighbors)


@KERNELS.per_item(grain=NUMBERS)
def multiply(first, end, columns, diagonal, x, y):
    """y = D x, for vectors of so many columns."""
    x, y = x.reshape(-1), y.reshape(-1)
    for i in range(first, end):
        y[i] = diagonal[i // columns] * x[i]
