"""Dense matrices on vectors: the inverses that a hierarchy applies on its coarsest level."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from mcprecond.backends import ROWS, Backend, KernelSet, compile_loop, compile_part, get_backend
from mcprecond.backends.determinism import is_same_on_all_gpus
from mcprecond.linalg.columns import row_products
from mcprecond.linalg.csr import columns_of
from mcprecond.linalg.operator import Operator

KERNELS = KernelSet(__file__, "VALUE LANES")

#: So many rows or columns are eliminated at once on a CPU; a multiple of 4.
PANEL = 32
#: A matrix is nearly singular if rounding may change a solution by this share.
NEARLY = 1e-6


class Dense(Operator):
    """The inverse of a sparse matrix, or a generalized one, as a dense array.

    Parameters
    ----------
    csr : sparse matrix, shape (n, n)
    definite : bool
        Whether the matrix is Hermitian and positive definite or semidefinite.
    sizes : function, optional
        See `inverse_of`.
    """

    def __init__(
        self, csr: Any, backend: Backend, *, definite: bool = True, sizes: Callable[[], Any] | None = None
    ) -> None:
        self.definite, self.shape, self.dtype = definite, csr.shape, csr.dtype
        self.matrix = self._inverse_of(csr, backend, sizes)
        self._run = backend.kernels(KERNELS, VALUE=csr.dtype, LANES=32)

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self.matrix.nbytes

    def adjoint(self) -> Dense:
        """The conjugate transpose of the inverse."""
        other = copy.copy(self)
        other.matrix = self.matrix.T.conj().copy()
        return other

    def update(self, csr: Any, backend: Backend, sizes: Callable[[], Any] | None = None) -> None:
        """Take another matrix of the same shape, into the same array."""
        self.matrix[...] = self._inverse_of(csr, backend, sizes)

    def _inverse_of(self, csr: Any, backend: Backend, sizes: Callable[[], Any] | None) -> Any:
        return inverse_of(csr, backend, sizes) if self.definite else general_inverse(csr, backend)

    def enqueue(self, state: None, b: Any, x: Any) -> None:
        """See `Operator`: x = inv(A) b."""
        n, k = len(b), columns_of(b)
        self._run.multiply_dense(n, k, self.matrix, b.reshape(n, k), x.reshape(n, k))


def inverse_of(csr: Any, backend: Backend, sizes: Callable[[], Any] | None = None) -> Any:
    """The inverse of a Hermitian positive definite matrix, or the pseudo-inverse of a semidefinite one, as a dense
    array.

    Rows and columns are scaled to a diagonal of ones before; the pseudo-inverse is that of the scaled matrix.

    Parameters
    ----------
    csr : sparse matrix, shape (n, n)
    backend : Backend
    sizes : function, optional
        Returns the magnitudes that the rounding of each row is relative to, those of the diagonal by default. It is
        called if the matrix is nearly singular.
    """
    xp, n, dtype = backend.xp, csr.shape[0], csr.dtype
    wide = np.dtype(np.complex128 if dtype.kind == "c" else np.float64)
    dense, (diagonal, scales) = xp.zeros((n, n), wide), xp.empty((2, n))
    if n == 0:
        return dense.astype(dtype)
    run = backend.kernels(KERNELS, VALUE=wide, LANES=32)
    rows = (
        *(array.astype(np.int32, copy=False) for array in (csr.indptr, csr.indices)),
        csr.data.astype(wide, copy=False),
    )
    run.find_scales(n, *rows, diagonal, scales)
    run.scale_to_dense(n, *rows, scales, dense)
    if backend.name == "gpu" and is_same_on_all_gpus():  # CUDA's libraries choose their steps by the device
        on_host = sizes and (lambda: backend.to_host(sizes()))
        on_cpu = get_backend("cpu")
        inverse = xp.asarray(_inverse(backend.to_host(dense), backend.to_host(diagonal), dtype, on_cpu, on_host))
    else:
        inverse = _inverse(dense, diagonal, dtype, backend, sizes)
    run.scale_back(n, inverse, scales, dense)
    return dense.astype(dtype, copy=False)


def _inverse(dense: Any, diagonal: Any, dtype: Any, backend: Backend, sizes: Callable[[], Any] | None) -> Any:
    """The inverse of a dense matrix with a diagonal of ones on a backend, for rounding in a dtype; `diagonal` is that
    before it was scaled.
    """
    xp, n = backend.xp, len(dense)
    eps = float(np.finfo(dtype).eps)
    inverse = _definite_inverse(dense, 10 * n * eps, backend)
    if inverse is None or float(_diagonal_of(inverse, backend).max()) * eps > NEARLY:
        rounding = 1.0 if sizes is None else max(float((sizes() / diagonal).max()), 1.0)
        values, vectors = xp.linalg.eigh(dense)
        kept = values > 10 * n * eps * rounding
        inverse = (vectors * xp.where(kept, 1 / xp.where(kept, values, 1), 0)) @ vectors.conj().T
    return xp.ascontiguousarray(inverse)


def _definite_inverse(dense: Any, least: float, backend: Backend) -> Any:
    """The inverse of a matrix with a diagonal of ones, or None if a pivot is at most `least`."""
    xp = backend.xp
    if backend.name == "cpu":  # not by LAPACK, whose threads wait for each other where other processes are busy
        inverse = dense.copy()
        return inverse if invert_definite(inverse, least) else None
    from cupyx.scipy.linalg import solve_triangular

    factor = xp.linalg.cholesky(dense)  # CuPy does not raise, but leaves pivots that are not positive
    if not (_diagonal_of(factor, backend) > least**0.5).all():
        return None
    inverse = solve_triangular(factor, xp.eye(len(dense), dtype=dense.dtype), lower=True, check_finite=False)
    return inverse.conj().T @ inverse


def _diagonal_of(dense: Any, backend: Backend) -> np.ndarray:
    """The real parts of the diagonal of a dense matrix, on the host."""
    return backend.to_host(dense.diagonal()).real


def general_inverse(csr: Any, backend: Backend) -> Any:
    """The inverse of any square matrix, or its pseudo-inverse if it is nearly singular, as a dense array."""
    xp = np if is_same_on_all_gpus() else backend.xp  # CUDA's libraries choose their steps by the device
    csr = csr.get() if xp is np and backend.name == "gpu" else csr
    dense = csr.toarray().astype(np.complex128 if csr.dtype.kind == "c" else np.float64)
    least = 10 * len(dense) * float(np.finfo(csr.dtype).eps)  # of the singular values, relative to the largest one
    try:
        inverse = xp.linalg.inv(dense)  # where CuPy does not raise, the inverse is not finite
        condition = float((abs(inverse) @ abs(dense).sum(axis=1)).max()) if len(dense) else 0.0
        is_singular = not condition * least <= 1
    except np.linalg.LinAlgError:
        is_singular = True
    if is_singular:
        inverse = xp.linalg.pinv(dense, rcond=least)
    return backend.xp.asarray(xp.ascontiguousarray(inverse).astype(csr.dtype))


@KERNELS.per_item(grain=ROWS // 8)
def find_scales(first, end, indptr, indices, values, diagonal, scales):
    """The diagonal, with ones in place of what is not positive, and its inverse square roots."""
    for i in range(first, end):
        diagonal[i] = 1
        for k in range(indptr[i], indptr[i + 1]):
            if indices[k] == i and values[k].real > 0:
                diagonal[i] = values[k].real
        scales[i] = 1 / np.sqrt(diagonal[i])


@KERNELS.per_item(grain=ROWS // 8)
def scale_to_dense(first, end, indptr, indices, values, scales, dense):
    """A sparse matrix, scaled from both sides, among zeros."""
    for i in range(first, end):
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            dense[i, j] = values[k] * (scales[i] * scales[j])


@KERNELS.per_item(grain=ROWS // 8)
def scale_back(first, end, matrix, scales, scaled):
    """The Hermitian part of a matrix, scaled from both sides."""
    for i in range(first, end):
        for j in range(len(scales)):
            scaled[i, j] = (matrix[i, j] + np.conj(matrix[j, i])) / 2 * (scales[i] * scales[j])


@KERNELS.per_item(grain=ROWS // 8)
def multiply_dense(first, end, k, matrix, x, y):
    """y = C x with a dense matrix, for vectors of k columns."""
    if k > 1:
        every = np.arange(len(x)).astype(np.uint32)
        for i in range(first, end):
            row_products(0, len(x), every, matrix[i], x, y, i)
        return
    for i in range(first, end):
        total = y.dtype.type(0)
        for j in range(len(x)):
            total += matrix[i, j] * x[j, 0]
        y[i, 0] = total


# These functions use loops, since Numba compiles array expressions more slowly.


@compile_part
def invert_definite(A, least):
    """Invert a Hermitian matrix in place, of which the lower triangle is read; False if a pivot is at most `least`.

    A = L L', X = inv(L) and inv(A) = X' X, each by panels of PANEL rows or columns: a triangle is read and written once
    for each panel.
    """
    n = len(A)
    if not factorize(A, least):
        return False
    X = np.zeros((n, n), A.dtype)
    for p in range(0, n, PANEL):
        q = min(p + PANEL, n)
        for k in range(p, q):
            X[k, k] = 1
            for m in range(p, k):
                for j in range(m + 1):
                    X[k, j] -= A[k, m] * X[m, j]
            for j in range(k + 1):
                X[k, j] /= A[k, k]
        subtract_products(q, n, 0, columns_of_panel(A, p, q), rows_of_panel(X, p, q), X)
    for i in range(n):
        for j in range(n):
            A[i, j] = 0
    for p in range(0, n, PANEL):
        q = min(p + PANEL, n)
        rows = rows_of_panel(X, p, q)
        subtract_products(0, q, 0, adjoint_of(rows, -1), rows, A)
    for i in range(n):
        A[i, i] = A[i, i].real
        for j in range(i):
            A[j, i] = np.conj(A[i, j])
    return True


@compile_part
def factorize(A, least):
    """Cholesky's L in the lower triangle of A; False if a pivot is at most `least`."""
    n = len(A)
    for p in range(0, n, PANEL):
        q = min(p + PANEL, n)
        for k in range(p, q):
            for m in range(p, k):
                for i in range(k, n):
                    A[i, k] -= A[i, m] * np.conj(A[k, m])
            pivot = A[k, k].real
            if not pivot > least:
                return False
            for i in range(k, n):
                A[i, k] /= np.sqrt(pivot)
        columns = columns_of_panel(A, p, q)
        subtract_products(q, n, q, columns, adjoint_of(columns, 1), A)
    return True


@compile_part
def columns_of_panel(A, p, q):
    """Columns from p to q - 1, and zeros behind them."""
    columns = np.zeros((len(A), PANEL), A.dtype)
    for i in range(len(A)):
        for k in range(p, q):
            columns[i, k - p] = A[i, k]
    return columns


@compile_part
def rows_of_panel(A, p, q):
    """Rows from p to q - 1, and zeros below them."""
    rows = np.zeros((PANEL, len(A)), A.dtype)
    for k in range(p, q):
        for j in range(len(A)):
            rows[k - p, j] = A[k, j]
    return rows


@compile_part
def adjoint_of(panel, sign):
    """The conjugate transpose of a panel, times 1 or -1."""
    adjoint = np.empty((panel.shape[1], panel.shape[0]), panel.dtype)
    for i in range(panel.shape[0]):
        for j in range(panel.shape[1]):
            adjoint[j, i] = sign * np.conj(panel[i, j])
    return adjoint


@compile_loop(grain=8)
def subtract_products(first, end, column, factors, rows, A):
    """A -= factors times rows in the lower triangle, for some of its rows, from a column on."""
    for i in range(first, end):
        for k in range(0, PANEL, 4):
            a, b, c, d = factors[i, k], factors[i, k + 1], factors[i, k + 2], factors[i, k + 3]
            for j in range(column, i + 1):
                A[i, j] -= (a * rows[k, j] + b * rows[k + 1, j]) + (c * rows[k + 2, j] + d * rows[k + 3, j])
