"""Dense matrices on vectors: the inverses that a hierarchy applies on its coarsest level."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mcprecond.backends import ROWS, Backend, KernelSet, compile_part
from mcprecond.linalg.operator import Operator
from mcprecond.matrix import rows_of

KERNELS = KernelSet(__file__, "VALUE LANES")

#: A matrix is nearly singular if rounding may change a solution by this share.
NEARLY = 1e-6


class Dense(Operator):
    """The inverse of a sparse matrix, or a generalized one, as a dense array.

    Parameters
    ----------
    csr : sparse matrix, shape (n, n)
    definite : bool
        Whether the matrix is Hermitian and positive definite or semidefinite. If it is not, the host computes its
        pseudo-inverse.
    sizes : function, optional
        See `inverse_of`.
    """

    def __init__(
        self, csr: Any, backend: Backend, *, definite: bool = True, sizes: Callable[[], Any] | None = None
    ) -> None:
        self.matrix = inverse_of(csr, backend, sizes) if definite else pseudo_inverse(csr, backend)
        self.shape, self.dtype = csr.shape, csr.dtype
        self._run = backend.kernels(KERNELS, VALUE=csr.dtype, LANES=32)

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self.matrix.nbytes

    def update(self, csr: Any, backend: Backend, sizes: Callable[[], Any] | None = None) -> None:
        """Take another matrix of the same shape, into the same array."""
        self.matrix[...] = inverse_of(csr, backend, sizes)

    def enqueue(self, state: None, b: Any, x: Any) -> None:
        """See `Operator`: x = inv(A) b."""
        self._run.multiply_dense(len(b), self.matrix, b, x)


def inverse_of(csr: Any, backend: Backend, sizes: Callable[[], Any] | None = None) -> Any:
    """The inverse of a Hermitian positive (semi-)definite matrix, as a dense array.

    If it is singular to working precision, a symmetric generalized inverse: unknowns that depend on those before them
    are left at zero.

    Parameters
    ----------
    csr : sparse matrix, shape (n, n)
    backend : Backend
    sizes : function, optional
        Returns the magnitudes that the rounding of each row is relative to, those of the diagonal by default. It is
        called if the matrix is nearly singular.
    """
    xp, n, eps = backend.xp, csr.shape[0], float(np.finfo(csr.dtype).eps)
    dense = dense_array(csr, backend)
    if n == 0:
        return dense.astype(csr.dtype)
    diagonal = xp.diagonal(dense).real.copy()
    inverse = _inverse(dense, 10 * n * eps * diagonal, backend)
    if sizes is not None and float((xp.diagonal(inverse).real * diagonal).max()) * eps > NEARLY:
        least = 10 * n * eps * xp.maximum(sizes(), diagonal)
        inverse = _inverse(dense_array(csr, backend), least, backend)
    return inverse.astype(csr.dtype)


def dense_array(csr: Any, backend: Backend) -> Any:
    """A square sparse matrix as a dense array in double precision."""
    xp, n = backend.xp, csr.shape[0]
    dense = xp.zeros((n, n), np.complex128 if csr.dtype.kind == "c" else np.float64)
    # CuPy's toarray would look for repeated entries, and compile for seconds.
    dense.reshape(-1)[rows_of(csr.indptr, csr.indices, xp) * np.int64(n) + csr.indices] = csr.data
    return dense


def _inverse(dense: Any, least: Any, backend: Backend) -> Any:
    """The inverse without the unknowns whose pivots are not above `least`; writes over the array."""
    n, column, scratch = len(dense), backend.xp.empty(len(dense), dense.dtype), backend.xp.zeros(4, np.int32)
    run = backend.kernels(KERNELS, VALUE=dense.dtype, LANES=1)
    run.invert(n * n, n, dense.reshape(-1), least, column, scratch)
    return (dense + dense.conj().T) / 2


def pseudo_inverse(csr: Any, backend: Backend) -> Any:
    """The pseudo-inverse of any square matrix, as a dense array; computed on the host."""
    dense = backend.to_host(csr.toarray())
    return backend.xp.asarray(np.ascontiguousarray(np.linalg.pinv(dense) if dense.size else dense).astype(csr.dtype))


@KERNELS.per_item(grain=ROWS // 8)
def multiply_dense(first, end, matrix, x, y):
    """y = C x with a dense matrix."""
    for i in range(first, end):
        total = y.dtype.type(0)
        for j in range(len(x)):
            total += matrix[i, j] * x[j]
        y[i] = total


@compile_part
def pivot_step(p, n, A, least, column):
    """Eliminate unknown p from all others, in place; or leave it out."""
    pivot = A[p * n + p]
    keeps = pivot.real > least[p]
    for i in range(n):
        column[i] = A[i * n + p]
    for i in range(n):
        if i == p or not keeps:
            continue
        factor = column[i] / pivot
        for j in range(n):
            if j != p:
                A[i * n + j] -= factor * A[p * n + j]
    for i in range(n):
        if i != p:
            A[i * n + p] = -column[i] / pivot if keeps else A.dtype.type(0)
            A[p * n + i] = A[p * n + i] / pivot if keeps else A.dtype.type(0)
    A[p * n + p] = 1 / pivot if keeps else A.dtype.type(0)


@KERNELS.resident
def invert(size, n, A, least, column, scratch):
    """The inverse in place of A, by Gauss and Jordan's elimination without exchanges, as a definite matrix allows it.

    Where a pivot is not above `least`, its row and column become zero: then A is singular.
    """
    for p in range(n):
        pivot_step(p, n, A, least, column)
