"""Matrices from files.

A file may be cut off, changed, or made to do harm. So what its header declares is compared with what the file can hold
and with the memory that is left before anything is allocated, and not much more is unpacked than it declares.
"""

from __future__ import annotations

import gzip
import io
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.io
import scipy.sparse as sp

from mcprecond.backends import get_backend
from mcprecond.backends.arguments import shown
from mcprecond.backends.memory import available_bytes

#: The arrays of a .npz file that hold indices.
INDEX_ARRAYS = ("indices", "indptr", "row", "col", "coords", "offsets")
#: Of a Matrix Market file: its comments and the line with the sizes have to fit in.
LONGEST_HEADER = 2**22
#: Of a Matrix Market file, on average. Who writes 17 digits of complex numbers needs 80.
LONGEST_LINE = 1024
#: gzip's limit: so many bytes become one.
MOST_COMPRESSED = 1032
#: What is needed for a row and for an entry while a matrix is read and made canonical; measured.
BYTES_PER_ROW, BYTES_PER_ENTRY = 24, 40
#: And for a number of a dense one.
BYTES_PER_VALUE = 32


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
        If it is not a Matrix Market file, its matrix is dense, it declares more entries than it can hold, or unpacks to
        much more than it declares.
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
    path = _existing(path)
    with _reading(path, "as a Matrix Market file"):
        A = _mmread(path)
        if sp.issparse(A):
            return canonical(A)
    raise ValueError(f"{path} holds a dense matrix (array); only sparse ones (coordinate) can be used")


def npz(path: str | PathLike[str]) -> sp.csr_matrix:
    """Read a matrix that `scipy.sparse.save_npz` wrote; returns and raises as `matrix_market`."""
    path = _existing(path)
    with _reading(path, "as a file of scipy.sparse.save_npz"):
        _check_arrays(path)
        A = sp.load_npz(path)
        if A.ndim != 2:
            raise ValueError(f"it holds an array of shape {A.shape}, and a matrix has two dimensions")
        if hasattr(A, "indptr"):
            A.check_format(full_check=True)
        _check_sparse(A.shape[0], A.nnz)
        return canonical(A)


def vector(path: str | PathLike[str]) -> np.ndarray:
    """Read a vector from a .npy file, or from a Matrix Market file with one column, .mtx or .mtx.gz.

    Raises
    ------
    OSError, ValueError, MemoryError
        As `matrix_market`; also if its name ends otherwise, or it holds more than one column.
    """
    found = columns(path)
    if found.shape[1] != 1:
        raise ValueError(f"{path} cannot be read as a vector: it holds {found.shape[1]} columns; a vector has one")
    return found.ravel()


def columns(path: str | PathLike[str]) -> np.ndarray:
    """Read vectors, the columns of an array of shape (n, k); otherwise as `vector`."""
    path = _existing(path)
    with _reading(path, "as a vector, or several"):
        if path.suffix == ".npy":
            with path.open("rb") as file:
                _check_array(file, path.stat().st_size)
                file.seek(0)
                found = np.lib.format.read_array(file, allow_pickle=False)
        elif path.name.endswith((".mtx", ".mtx.gz")):
            found = _mmread(path)
        else:
            raise ValueError("its name must end in .npy, .mtx or .mtx.gz")
        if found.ndim not in (1, 2):
            raise ValueError(f"it holds an array of shape {found.shape}, and a vector has one dimension")
        array = np.asarray(found.toarray() if sp.issparse(found) else found)  # type: ignore[attr-defined]
        return array if array.ndim == 2 else array[:, None]


def _existing(path: str | PathLike[str]) -> Path:
    if not isinstance(path, str | PathLike):
        raise TypeError(f"path must be the name of a file, got {shown(path)}")
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a file")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    with path.open("rb"):  # whether it may be read is another matter than what is in it
        return path


@contextmanager
def _reading(path: Path, what: str) -> Iterator[None]:
    """Turn whatever goes wrong into one line: NumPy, SciPy, gzip and zipfile raise errors of a dozen kinds."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of NumPy, about headers that are none
            yield
    except MemoryError as error:
        raise MemoryError(f"{path} cannot be read {what}: {_line(error) or 'it needs too much memory'}") from error
    except Exception as error:
        raise ValueError(f"{path} cannot be read {what}: {_line(error)}") from error


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _check_sparse(rows: int, entries: int) -> None:
    _check_memory(f"{rows:,} rows with {entries:,} entries", rows * BYTES_PER_ROW + entries * BYTES_PER_ENTRY)


def _check_memory(what: str, needed: int) -> None:
    left = available_bytes(get_backend("cpu"))
    if needed > left:
        raise MemoryError(f"{what} take {needed / 2**30:,.1f} GiB, and {left / 2**30:,.1f} GiB are left")


class _Text(io.RawIOBase):
    """A stream of at most so many bytes, without a zero byte and with a last line that ends.

    SciPy's reader goes on behind the end of its memory where it looks for the end of a line and finds a zero byte, also
    the one that it puts behind the file.
    """

    def __init__(self, stream: Any, left: int) -> None:
        self.stream, self.left, self.last = stream, left, b""
        self.completed = False  # by the end of its last line

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self.stream.read(min(len(buffer), 2**20))
        if not chunk and self.last not in (b"", b"\n"):
            chunk, self.completed = b"\n", True
        self.last = chunk[-1:]
        self.left -= len(chunk)
        if self.left < 0:
            raise ValueError("it holds much more than its header declares")
        if b"\0" in chunk:
            raise ValueError("it holds a zero byte, so it is not text")
        buffer[: len(chunk)] = chunk
        return len(chunk)


def _mmread(path: Path) -> Any:
    """Read a Matrix Market file, once its header has been checked."""
    packed = path.name.endswith(".gz")
    open_stream: Any = gzip.open if packed else open
    with open_stream(path, "rb") as stream:
        rows, columns, entries, symmetric, dense = _header(stream)
    if dense and entries == 0:
        return np.zeros((rows, columns))  # SciPy's reader divides by the number of rows
    # An entry takes the least of four characters, "1 1" and the end of the line; in a dense matrix of two.
    room = path.stat().st_size * (MOST_COMPRESSED if packed else 1) // (2 if dense else 4) + 1
    if entries > room:
        raise ValueError(
            f"its header declares {entries:,} entries, more than a file of {path.stat().st_size:,} bytes holds"
        )
    if dense:
        _check_memory(f"{entries:,} entries", entries * BYTES_PER_VALUE)
    else:
        _check_sparse(rows, entries * (1 + symmetric))
    most = LONGEST_HEADER + LONGEST_LINE * (entries + 16)
    with open_stream(path, "rb") as stream:
        if not packed:
            text = _Text(stream, most)
            while text.read(2**20):
                pass
            if not text.completed:
                return scipy.io.mmread(path, spmatrix=False)  # which is faster than from a stream
            stream.seek(0)
        return scipy.io.mmread(io.BufferedReader(_Text(stream, most), 2**20), spmatrix=False)


def _header(stream: IO[bytes]) -> tuple[int, int, int, bool, bool]:
    """Rows, columns, entries stored, whether each may stand for two, whether the matrix is dense."""
    left = LONGEST_HEADER
    words: list[bytes] = []
    while True:
        line = stream.readline(left)
        left -= len(line)
        if not line:
            raise ValueError("it ends before the line with the sizes")
        if left <= 0:
            raise ValueError(f"it has no line with the sizes in its first {LONGEST_HEADER:,} bytes")
        if not words:
            words = line.lower().split()
            if len(words) < 5 or words[0] != b"%%matrixmarket":
                raise ValueError("it does not begin with %%MatrixMarket matrix coordinate or array, and two words more")
        elif line.strip() and not line.startswith(b"%"):
            break
    dense = words[2] == b"array"
    found = line.split()
    if len(found) != 3 - dense or not all(word.isdigit() for word in found) or max(map(len, found)) > 18:
        raise ValueError(f"its line with the sizes is {line[:60]!r}")
    rows, columns, *count = map(int, found)
    return rows, columns, rows * columns if dense else count[0], words[4] != b"general", dense


def _check_arrays(path: Path) -> None:
    """Raise if an array of a .npz file declares more than the file holds, or than there is memory for."""
    with zipfile.ZipFile(path) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
        _check_memory("its arrays", 2 * unpacked)
        for member in archive.infolist():
            with archive.open(member) as file:
                dtype = _check_array(file, member.file_size)
            if Path(member.filename).stem in INDEX_ARRAYS and dtype.kind not in "iu":
                raise ValueError(f"its {Path(member.filename).stem} are not integers but {dtype}")


def _check_array(file: IO[bytes], size: int) -> np.dtype[Any]:
    """Raise if an array declares more than the `size` bytes of a .npy file hold, or objects; return its dtype."""
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"it is of version {version} of NumPy's format; this reads 1.0 and 2.0")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if dtype.hasobject:
        raise ValueError("it holds objects, which are not loaded: they may run any program")
    count = 1
    for length in shape:
        count *= length
    if count * dtype.itemsize > size or min(shape, default=0) < 0:
        raise ValueError(f"it declares an array of shape {shape}, of more than the {size:,} bytes that are there")
    return dtype


def canonical(A: sp.sparray) -> sp.csr_matrix:
    """Return the matrix as a sorted csr_matrix of float64 or complex128, repeated entries added up."""
    csr = sp.csr_matrix(A, dtype=np.complex128 if A.dtype.kind == "c" else np.float64)
    csr.sum_duplicates()
    return csr
