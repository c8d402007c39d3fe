"""The matrix of the coarse level, ``A_c = P^H A P``: patterns once, values again and again.

It adds up in a fixed order, so that equal matrices have equal coarse matrices, to the last bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from mcprecond.backends import KernelSet
from mcprecond.matrix import AdmittedMatrix, diagonal_places
from mcprecond.multigrid.interpolation import Interpolation
from mcprecond.multigrid.patterns import Pattern, matrix_of_blocks, transpose_pattern
from mcprecond.multigrid.products import Arrays, Multiplication, Rows

KERNELS = KernelSet(__file__, "OFFSET VALUE UNKNOWNS CANDIDATES")


class Product(ABC):
    """R and the coarse matrix of a level, with the first values of A and P, and with others by updates.

    Attributes
    ----------
    P : Interpolation
    R : sparse matrix
        P^H. Between updates, its values may be stored in a narrower dtype than those of A; see `Level`.
    coarse : AdmittedMatrix
        R A P. Its values may be stored in a narrower dtype as well.
    pattern : pattern
        Of R A P, by nodes.
    longest_row : int
        The length of the longest row of R.
    """

    P: Interpolation
    R: Any
    coarse: AdmittedMatrix
    pattern: Pattern
    longest_row: int

    @abstractmethod
    def update(self, A: AdmittedMatrix) -> None:
        """Compute R and A_c with the values that A and P have now. Launches kernels only."""


class Galerkin(Product):
    """R and the coarse matrix by two products, A P and then R (A P).

    Parameters
    ----------
    A : AdmittedMatrix
    P : Interpolation
        With its values for A.
    """

    def __init__(self, A: AdmittedMatrix, P: Interpolation) -> None:
        self.P, backend, self._filled = P, A.backend, None
        b, k, count, dtype = P.b, P.k, P.count, P.csr.dtype
        pattern, self.places, longest = transpose_pattern(P.pattern, count, backend)
        self.R = matrix_of_blocks(pattern, k, b, A.shape[0] // b, dtype, backend)
        self._columns_of_R, self.places = pattern[1], self.places.astype(self.R.indptr.dtype, copy=False)
        self.longest_row = int(longest[0]) * b
        self._update_adjoint(A)
        self.product = Multiplication(self._arrays_of_R(), P.AP.take(), 1, k, count, backend, self.longest_row)
        self.pattern, values = self.product.in_order(k)
        coarse = matrix_of_blocks(self.pattern, k, k, count, dtype, backend, values)
        longest = self.product.longest * k
        self.coarse = AdmittedMatrix.computed(coarse, backend, longest, is_symmetric=A.is_symmetric)
        self._fill_empty(A)

    def _arrays_of_R(self) -> Arrays:
        return self.R.indptr, self.R.indices, self.R.data

    def _update_adjoint(self, A: AdmittedMatrix) -> None:
        """R = P^H."""
        P, (b, k) = self.P, (self.P.b, self.P.k)
        run = A.backend.kernels(KERNELS, OFFSET=self.places.dtype, VALUE=A.dtype, UNKNOWNS=b, CANDIDATES=k)
        of_R, of_P = (self.R.indptr, self._columns_of_R), (P.csr.indptr, P.pattern[1])
        run.take_adjoint(len(self.places), b, k, *of_R, self.places, *of_P, P.csr.data, self.R.data)

    def _fill_empty(self, A: AdmittedMatrix) -> None:
        """If a column of P is zero, its coarse unknown gets a one on the diagonal."""
        if self.P.empty is None:
            return
        if self._filled is not self.P.empty:
            self._filled = self.P.empty
            self._places_of_ones = diagonal_places(self.coarse.csr, self._filled, A.backend)
        self.coarse.data[self._places_of_ones] = 1

    def update(self, A: AdmittedMatrix) -> None:
        self._update_adjoint(A)
        AP = self.P.AP.compute((A.indptr, A.indices, A.data), Rows.of(self.P.pattern, self.P.csr.data))
        self.product.compute_into(self._arrays_of_R(), AP, Rows.of(self.pattern, self.coarse.data), self.P.k)
        self._fill_empty(A)


# On the CPU.


@KERNELS.per_item
def take_adjoint(first, end, b, k, R_indptr, R_columns, places, P_indptr, P_columns, P, R):
    """R = P^H, by the blocks of R."""
    if b == k == 1:
        for e in range(first, end):
            R[e] = np.conj(P[places[e]])
        return
    for e in range(first, end):
        v, a = R_columns[e], P_columns[places[e]]
        # Which block the two are in the rows of their nodes.
        of_R, of_P = e - R_indptr[a * k] // (b * k), places[e] - P_indptr[v * b] // (b * k)
        for c in range(k):
            for r in range(b):
                R[R_indptr[a * k + c] + of_R * b + r] = np.conj(P[P_indptr[v * b + r] + of_P * k + c])
