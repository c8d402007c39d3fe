"""Dense matrices on vectors: the inverses that a hierarchy applies on its coarsest level."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import ROWS, Backend, KernelSet
from mcprecond.linalg.operator import Operator
from mcprecond.matrix import rows_of

KERNELS = KernelSet(__file__, "VALUE LANES")


class Dense(Operator):
    """The inverse of a sparse matrix, or a generalized one, as a dense array.

    Parameters
    ----------
    csr : sparse matrix, shape (n, n)
    definite : bool
        Whether the matrix is Hermitian and positive definite or semidefinite. If it is not, the host computes its
        pseudo-inverse.
    """

    def __init__(self, csr: Any, backend: Backend, *, definite: bool = True) -> None:
        self.matrix = inverse_of(csr, backend) if definite else pseudo_inverse(csr, backend)
        self.shape, self.dtype = csr.shape, csr.dtype
        self._run = backend.kernels(KERNELS, VALUE=csr.dtype, LANES=32)

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self.matrix.nbytes

    def update(self, csr: Any, backend: Backend) -> None:
        """Take another matrix of the same shape, into the same array."""
        self.matrix[...] = inverse_of(csr, backend)

    def enqueue(self, state: None, b: Any, x: Any) -> None:
        """See `Operator`: x = inv(A) b."""
        self._run.multiply_dense(len(b), self.matrix, b, x)


def inverse_of(csr: Any, backend: Backend) -> Any:
    """The inverse of a Hermitian positive definite matrix as a dense array, or the pseudo-inverse of a semidefinite one.

    Rows and columns are scaled to a diagonal of ones before; the pseudo-inverse is that of the scaled matrix.
    """
    xp, n, dtype = backend.xp, csr.shape[0], csr.dtype
    dense = xp.zeros((n, n), np.complex128 if dtype.kind == "c" else np.float64)
    # CuPy's toarray would look for repeated entries, and compile for seconds.
    dense.reshape(-1)[rows_of(csr.indptr, csr.indices, xp) * np.int64(n) + csr.indices] = csr.data
    diagonal = xp.diagonal(dense).real
    scale = 1 / xp.sqrt(xp.where(diagonal > 0, diagonal, 1))
    dense *= scale[:, None] * scale
    rounding = 100 * n * float(np.finfo(dtype).eps)
    inverse = _by_cholesky(dense, rounding, backend)
    if inverse is None:
        values, vectors = xp.linalg.eigh(dense)
        kept = values > rounding * max(float(values.max(initial=0)), 1.0)
        inverse = (vectors * xp.where(kept, 1 / xp.where(kept, values, 1), 0)) @ vectors.conj().T
    inverse = (inverse + inverse.conj().T) / 2
    return (inverse * (scale[:, None] * scale)).astype(dtype)


def _by_cholesky(dense: Any, rounding: float, backend: Backend) -> Any:
    """The inverse of a matrix with a diagonal of ones, or None if a pivot is not above rounding."""
    xp = backend.xp
    if backend.name == "gpu":
        from cupyx.scipy.linalg import solve_triangular
    else:
        from scipy.linalg import solve_triangular
    try:
        factor = xp.linalg.cholesky(dense)
    except np.linalg.LinAlgError:  # CuPy leaves pivots that are not positive instead
        return None
    pivots = xp.diagonal(factor).real
    if not bool((pivots > rounding**0.5).all()):
        return None
    inverse = solve_triangular(factor, xp.eye(len(dense), dtype=dense.dtype), lower=True, check_finite=False)
    return inverse.conj().T @ inverse


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
