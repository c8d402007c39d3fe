"""Cycles over the levels of a hierarchy: smoothing, restriction, correction, and a dense solve on the coarsest level.

Everything is launched and nothing else: no allocation, no look at a value, so that a cycle can be captured.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from mcprecond.backends import Backend, KernelSet, unsigned

KERNELS = KernelSet(__file__)


class Transfer:
    """A rectangular sparse matrix on vectors: a prolongator or a restriction.

    Parameters
    ----------
    csr : sparse matrix
    dtype : dtype
        Of the vectors.
    stored : dtype
        Of the values.
    """

    def __init__(self, csr: Any, dtype: Any, stored: Any, backend: Backend) -> None:
        xp, rows, entries = backend.xp, csr.shape[0], csr.indices.size
        offset = np.int32 if entries < 2**31 - 2**16 else np.int64
        self.rows, self.indptr = rows, xp.asarray(csr.indptr, dtype=offset)
        self.indices, self.values = xp.asarray(csr.indices, dtype=np.int32), csr.data.astype(stored, copy=False)
        self._run = backend.kernels(
            KERNELS, OFFSET=offset, VALUE=dtype, STORED=stored, LANES=lanes_for(entries / max(rows, 1))
        )
        self._arrays = (unsigned(self.indptr), unsigned(self.indices), self.values)

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self.indptr.nbytes + self.indices.nbytes + self.values.nbytes

    def replace(self, csr: Any) -> None:
        """Take the values of a matrix with the same pattern, into the same arrays."""
        self.values[...] = csr.data

    def apply(self, x: Any, y: Any, *, adds: bool = False) -> None:
        """y = C x, or y += C x."""
        self._run.multiply(self.rows, *self._arrays, x, int(adds), y)


class Dense:
    """A dense matrix on vectors: the inverse, or pseudo-inverse, of the matrix of the coarsest level."""

    def __init__(self, csr: Any, backend: Backend) -> None:
        self.matrix = inverse_of(csr, backend)
        self._run = backend.kernels(KERNELS, OFFSET=np.int32, VALUE=csr.dtype, STORED=csr.dtype, LANES=32)

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self.matrix.nbytes

    def update(self, csr: Any, backend: Backend) -> None:
        """Take another matrix of the same shape, into the same array."""
        self.matrix[...] = inverse_of(csr, backend)

    def apply(self, b: Any, x: Any) -> None:
        """x = inv(A) b."""
        self._run.multiply_dense(len(b), self.matrix, b, x)


def inverse_of(csr: Any, backend: Backend) -> Any:
    """The inverse of a Hermitian matrix, as a dense array; its pseudo-inverse if it is singular to working precision."""
    xp, n = backend.xp, csr.shape[0]
    dense = xp.asarray(csr.toarray(), order="C")
    if n == 0:
        return dense
    dense = (dense + dense.conj().T) / 2
    values, vectors = xp.linalg.eigh(dense)
    sizes = abs(values)
    limit = sizes.max() * n * np.finfo(dense.dtype).eps
    inverses = xp.where(sizes > limit, 1 / xp.where(sizes > limit, values, 1), 0)
    inverse = (vectors * inverses) @ vectors.conj().T
    return xp.ascontiguousarray((inverse + inverse.conj().T) / 2)


def lanes_for(per_row: float) -> int:
    """How many threads of a GPU share a row."""
    lanes = 1
    while lanes < 32 and lanes < per_row / 2:
        lanes *= 2
    return lanes


@KERNELS.twin
def multiply(n, indptr, indices, values, x, adds, y):
    """y = C x, or y += C x."""
    for i in prange(n):
        total = y.dtype.type(0)
        for k in range(indptr[i], indptr[i + 1]):
            total += values[k] * x[indices[k]]
        y[i] = y[i] + total if adds else total


@KERNELS.twin
def multiply_dense(n, matrix, x, y):
    """y = C x with a dense matrix."""
    for i in prange(n):
        total = y.dtype.type(0)
        for j in range(n):
            total += matrix[i, j] * x[j]
        y[i] = total


@KERNELS.twin
def add(n, factor, x, y):
    """y += factor x."""
    for i in prange(n):
        y[i] += y.real.dtype.type(factor) * x[i]
