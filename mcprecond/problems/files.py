"""Matrices from files."""

from __future__ import annotations

import zlib
from os import PathLike
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse as sp

#: What SciPy and NumPy raise for files that are not what their names say.
READING_ERRORS = (ValueError, OverflowError, EOFError, OSError, zlib.error)


def matrix_market(path: str | PathLike[str]) -> sp.csr_matrix:
    """Read a sparse matrix from a Matrix Market file, .mtx or compressed .mtx.gz.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    scipy.sparse.csr_matrix of float64 or complex128
        Sorted, repeated entries added up, of a symmetric or Hermitian file both triangles. Entries of a pattern are
        ones.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not a Matrix Market file, or its matrix is dense.

    References
    ----------
    Boisvert, Pozo, Remington: The Matrix Market Exchange Formats: Initial Design, NISTIR 5935, 1996.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from mcprecond import problems
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.mtx")
    ...     _ = path.write_text("%%MatrixMarket matrix coordinate real symmetric\\n2 2 2\\n1 1 4.0\\n2 1 -1.0\\n")
    ...     A = problems.matrix_market(path)
    >>> print(A.toarray())
    [[ 4. -1.]
     [-1.  0.]]
    """
    path = _existing(path)
    try:
        A = scipy.io.mmread(path, spmatrix=False)
    except READING_ERRORS as error:
        raise ValueError(f"{path} cannot be read as a Matrix Market file: {error}") from error
    if not sp.issparse(A):
        raise ValueError(f"{path} holds a dense matrix (array); only sparse ones (coordinate) can be used")
    return canonical(A)


def npz(path: str | PathLike[str]) -> sp.csr_matrix:
    """Read a matrix that `scipy.sparse.save_npz` wrote; returns and raises as `matrix_market`."""
    path = _existing(path)
    try:
        A = sp.load_npz(path)
    except Exception as error:  # NumPy and zipfile raise errors of many kinds for what is no such file
        raise ValueError(f"{path} cannot be read as a file of scipy.sparse.save_npz: {error}") from error
    return canonical(A)


def vector(path: str | PathLike[str]) -> np.ndarray:
    """Read a vector from a .npy file, or from a Matrix Market file with one column, .mtx or .mtx.gz.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it ends otherwise, cannot be read, or holds more than one column.
    """
    path = _existing(path)
    try:
        if path.suffix == ".npy":
            return np.asarray(np.load(path, allow_pickle=False))
        if not path.name.endswith((".mtx", ".mtx.gz")):
            raise ValueError("its name must end in .npy, .mtx or .mtx.gz")
        found = scipy.io.mmread(path, spmatrix=False)
    except READING_ERRORS as error:
        raise ValueError(f"{path} cannot be read as a vector: {error}") from error
    if found.ndim == 2 and found.shape[1] != 1:
        raise ValueError(f"{path} holds {found.shape[1]} columns; a vector has one")
    return np.asarray(found.toarray() if sp.issparse(found) else found).ravel()


def _existing(path: str | PathLike[str]) -> Path:
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    return path


def canonical(A: sp.sparray) -> sp.csr_matrix:
    """Return the matrix as a sorted csr_matrix of float64 or complex128, repeated entries added up."""
    csr = sp.csr_matrix(A, dtype=np.complex128 if A.dtype.kind == "c" else np.float64)
    csr.sum_duplicates()
    return csr
