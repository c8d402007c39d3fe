"""Matrices and vectors from files, as SciPy and NumPy read them; whatever is wrong with a file is said in one line."""

from __future__ import annotations

import gzip
import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from mcprecond.backends.arguments import describe


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
    OSError
        If there is no such file, or it may not be read.
    ValueError
        If it is not a Matrix Market file, or its matrix is dense.
    MemoryError
        If it declares more than there is memory for.

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
    with _reading(path, "as a Matrix Market file") as stream:
        A = _mmread(stream)
        if not sp.issparse(A):
            raise ValueError("it holds a dense matrix (array); only sparse ones (coordinate) can be used")
        return canonical(A)


def npz(path: str | PathLike[str]) -> sp.csr_matrix:
    """Read a matrix that `scipy.sparse.save_npz` wrote; returns and raises as `matrix_market`."""
    with _reading(path, "as a file of scipy.sparse.save_npz") as stream:
        A = sp.load_npz(stream)
        if A.ndim != 2:
            raise ValueError(f"it holds an array of shape {A.shape}, and a matrix has two dimensions")
        if hasattr(A, "indptr"):
            A.check_format(full_check=True)  # SciPy's conversions would read and write outside of the arrays
        return canonical(A)


def vector(path: str | PathLike[str]) -> np.ndarray:
    """Read a vector from a .npy file, or from a Matrix Market file with one column; raises as `columns`."""
    found = columns(path)
    if found.shape[1] != 1:
        raise ValueError(f"{path} cannot be read as a vector: it holds {found.shape[1]} columns; a vector has one")
    return found.ravel()


def columns(path: str | PathLike[str]) -> np.ndarray:
    """Read vectors, the columns of an array of shape (n, k), from a .npy, .mtx or .mtx.gz file.

    Raises
    ------
    OSError, ValueError, MemoryError
        As `matrix_market`; also if its name ends otherwise.
    """
    with _reading(path, "as a vector, or several") as stream:
        if stream.name.endswith(".npy"):
            found = np.lib.format.read_array(stream, allow_pickle=False)
        elif stream.name.endswith((".mtx", ".mtx.gz")):
            found = _mmread(stream)
        else:
            raise ValueError("its name must end in .npy, .mtx or .mtx.gz")
        if found.ndim not in (1, 2):
            raise ValueError(f"it holds an array of shape {found.shape}, and a vector has one dimension")
        array = np.asarray(found.toarray() if sp.issparse(found) else found)  # type: ignore[attr-defined]
        return array if array.ndim == 2 else array[:, None]


def canonical(A: sp.sparray) -> sp.csr_matrix:
    """Return the matrix as a sorted csr_matrix of float64 or complex128, repeated entries added up."""
    csr = sp.csr_matrix(A, dtype=np.complex128 if A.dtype.kind == "c" else np.float64)
    csr.sum_duplicates()
    return csr


@contextmanager
def _reading(path: str | PathLike[str], what: str) -> Iterator[IO[bytes]]:
    """Open a file. NumPy, SciPy, gzip and zipfile raise errors of a dozen kinds, which get its name."""
    if not isinstance(path, str | PathLike):
        raise TypeError(f"path must be the name of a file, got {describe(path)}")
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a file")
    with path.open("rb") as stream, np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield stream
        except Exception as error:
            kind = MemoryError if isinstance(error, MemoryError) else ValueError
            raise kind(f"{path} cannot be read {what}: {' '.join(str(error).split())}") from error


def _mmread(stream: IO[bytes]) -> Any:
    """Read a Matrix Market file.

    SciPy's reader accesses memory out of bounds if there is a zero byte, if the last line has no newline, and if a
    dense skew-symmetric matrix has too many numbers. It divides by the number of rows of a dense matrix, and sets
    missing numbers of a dense symmetric matrix to zero.
    """
    import scipy.io  # ten milliseconds of every import of this package otherwise

    text = gzip.GzipFile(fileobj=stream).read() if stream.name.endswith(".gz") else stream.read()
    if b"\0" in text:
        raise ValueError("it holds a zero byte, so it is not text")
    rows, columns, _, form, _, symmetry = scipy.io.mminfo(io.BytesIO(text))
    if form == "array" and symmetry != "general":
        stored, triangle = numbers_of_array(text), rows * (rows - 1 if symmetry == "skew-symmetric" else rows + 1) // 2
        if stored != triangle:
            raise ValueError(f"a {symmetry} array of {rows} rows takes {triangle} numbers, and it has {stored}")
    if form == "array" and not rows * columns:
        return np.zeros((rows, columns))
    return scipy.io.mmread(io.BytesIO(text if text.endswith(b"\n") else text + b"\n"), spmatrix=False)


def numbers_of_array(text: bytes) -> int:
    """How many numbers a dense Matrix Market file has, each on a line of its own, after the line with the sizes."""
    return sum(bool(line.strip()) and not line.startswith(b"%") for line in text.splitlines()) - 1
