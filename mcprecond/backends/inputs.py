"""The door: what a user passes in is checked here, once, with messages that say what was found and what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from mcprecond.backends import Backend, backend_of

FLOATS = tuple(np.dtype(name) for name in ("float32", "float64", "complex64", "complex128"))


def csr_matrix(A: Any, name: str = "A") -> tuple[Any, Backend]:
    """Return A in CSR form (A itself where it is CSR already) and the backend it lives on.

    Raises
    ------
    TypeError
        If A is not a sparse matrix or array of SciPy or CuPy.
    ValueError
        If A is not two-dimensional and square, or is a CuPy matrix where CuPy finds no device.
    """
    backend = backend_of(A)
    if not (scipy.sparse.issparse(A) or (backend.name == "gpu" and backend.sparse.issparse(A))):
        found = f"{type(A).__module__}.{type(A).__name__}"
        raise TypeError(
            f"{name} must be a sparse matrix of SciPy or CuPy, got {found}; try scipy.sparse.csr_array({name})"
        )
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"{name} must be square, got shape {A.shape}")
    return A.tocsr(), backend


def csr_of_floats(A: Any, name: str = "A") -> tuple[Any, Backend]:
    """Return A in CSR form with values of one of `FLOATS`, and its backend.

    Raises
    ------
    TypeError, ValueError
        As `csr_matrix`; also for another dtype.
    """
    csr, backend = csr_matrix(A, name)
    if csr.dtype not in FLOATS:
        raise TypeError(
            f"{name} must hold float32, float64, complex64 or complex128 values, got {csr.dtype}; "
            f"convert it with {name}.astype(float)"
        )
    return csr, backend


def csr_system(A: Any, name: str = "A") -> tuple[Any, Backend]:
    """The same for values that are all finite.

    Raises
    ------
    TypeError, ValueError
        As `csr_of_floats`; also for NaN or infinity, naming the row.
    """
    csr, backend = csr_of_floats(A, name)
    if not _all_finite(csr.data, backend):
        k = int(backend.xp.argmin(backend.xp.isfinite(csr.data)))
        row = int(np.searchsorted(backend.to_host(csr.indptr), k, side="right")) - 1
        value, column = csr.data[k].item(), int(csr.indices[k])
        raise ValueError(f"{name} holds {value} in row {row}, column {column}; every value must be finite")
    return csr, backend


def canonical(csr: Any) -> Any:
    """Return a CSR matrix with sorted rows and without repeated entries: the matrix itself, or a copy.

    Raises
    ------
    TypeError, ValueError
        As `csr_system`, if it has to be copied: sums of finite values may overflow.
    """
    if csr.has_canonical_format:
        return csr
    csr = csr.copy()
    csr.sum_duplicates()
    return csr_system(csr)[0]


def vector(b: Any, n: int, backend: Backend, dtype: Any, name: str = "b") -> Any:
    """Return b as an array of shape (n,) and the given dtype on the backend; never a view that may be written to.

    Raises
    ------
    TypeError
        If b is on the other device than A, or does not hold numbers, or complex ones where the dtype is real.
    ValueError
        If b has another length, or holds NaN or infinity (names the first row).
    """
    array = shaped_vector(b, n, backend, dtype, name)
    refuse_not_finite(array, backend, name)
    return array


def shaped_vector(b: Any, n: int, backend: Backend, dtype: Any, name: str = "b") -> Any:
    """The same without a look at the values."""
    if backend_of(b).name != backend.name:
        raise TypeError(
            f"{name} is on the {backend_of(b).name} and must be on the {backend.name}; "
            f"move it with cupy.{'asnumpy' if backend.name == 'cpu' else 'asarray'}({name})"
        )
    array = backend.xp.asarray(b)
    if array.shape not in ((n,), (n, 1)):
        raise ValueError(f"{name} must have shape ({n},), got {array.shape}")
    if array.dtype.kind not in ("fiubc" if np.dtype(dtype).kind == "c" else "fiub"):
        wanted = "numbers" if np.dtype(dtype).kind == "c" else "real numbers, as A does"
        raise TypeError(f"{name} must hold {wanted}, got dtype {array.dtype}")
    return array.reshape(n).astype(dtype)


def refuse_not_finite(array: Any, backend: Backend, name: str = "b") -> None:
    """Raise ValueError if a vector holds NaN or infinity, naming the first row."""
    if not _all_finite(array, backend):
        row = int(backend.xp.argmin(backend.xp.isfinite(array)))
        raise ValueError(f"{name} holds {array[row].item()} in row {row}; every value must be finite")


def _all_finite(values: Any, backend: Backend) -> bool:
    """Look at each value only if the sum of squares is not finite, which may be an overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = backend.to_host(backend.xp.dot(values, values))
    return bool(np.isfinite(squares)) or bool(backend.xp.isfinite(values).all())
