"""A user's matrix, admitted once: what is checked here is not checked again, and no kernel meets a broken matrix.

Every public function that takes a matrix calls `admit_matrix`, and passes on what it returns. One pass over the pattern
checks row offsets and column indices, and finds what else depends on the pattern alone: whether rows are sorted,
whether the pattern is symmetric, and the degrees of its graph. Where values matter they are checked as well: whether
they are finite, and whether the matrix is exactly Hermitian. The diagonal is found, on a GPU in the same pass.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NoReturn

import numpy as np
import scipy.sparse

from mcprecond.backends import (
    NUMBERS,
    Backend,
    KernelSet,
    backend_of,
    compile_inlined,
    compile_loop,
    compile_row,
    offset_type,
)
from mcprecond.backends.arguments import FLOATS
from mcprecond.backends.hashing import mix64
from mcprecond.backends.inputs import any_of
from mcprecond.backends.sorting import lower_bound
from mcprecond.backends.team.atomics import atomic_add, atomic_max, atomic_or
from mcprecond.numbering import compact_order

KERNELS = KernelSet(__file__, "OFFSET VALUE LANES")

# Flaws of a pattern, as bits: NOT_SYMMETRIC is found by hashes, the others by the kernel.
NOT_SORTED, NOT_SYMMETRIC, OUT_OF_RANGE, BROKEN_OFFSETS = 1, 2, 4, 8
# What the kernels report. Of a diagonal it is INFINITY_BITS minus the bits of its least entry, and the bits of its
# largest one, as doubles. Entries that are not positive count as zero. Of all values it is the same, but those that are
# zero do not count. So reports begin with zeros, and atomic maxima update them.
LEAST_PIVOT, LARGEST_PIVOT = range(PIVOTS := 2)
FLAWS, MAX_DEGREE, SURPLUS, SURPLUS_OF_VALUES, NOT_FINITE, LEAST, LARGEST = range(PIVOTS, REPORTED := PIVOTS + 7)
INFINITY_BITS = 0x7FF << 52
CUDA_CONSTANTS = {
    "NOT_SORTED": NOT_SORTED,
    "OUT_OF_RANGE": OUT_OF_RANGE,
    "BROKEN_OFFSETS": BROKEN_OFFSETS,
    "FLAWS": FLAWS,
    "MAX_DEGREE": MAX_DEGREE,
    "SURPLUS": SURPLUS,
    "SURPLUS_OF_VALUES": SURPLUS_OF_VALUES,
    "NOT_FINITE": NOT_FINITE,
    "LEAST": LEAST,
    "LARGEST": LARGEST,
    "LEAST_PIVOT": LEAST_PIVOT,
    "LARGEST_PIVOT": LARGEST_PIVOT,
    "INFINITY_BITS": INFINITY_BITS,
}


#: What to do about a row of A that is zero.
REMEDY_FOR_ZERO_ROW = "drop the row, or put 1 there"
#: See `AdmittedMatrix.has_hubs`.
HUB = 50


class PatternChangedError(ValueError):
    """New values were given for another pattern than that of the object: build a new object for it."""


@dataclass(frozen=True, eq=False)
class AdmittedMatrix:
    """A square CSR matrix whose row offsets and column indices are those of a matrix.

    Attributes
    ----------
    csr : sparse matrix of SciPy or CuPy
        As the user gave it, if it was in CSR form.
    backend : Backend
        Where it lives.
    degrees : array of int32, shape (n,)
        Entries off the diagonal of each row.
    max_degree : int
    is_canonical : bool
        Whether rows are sorted and no entry is repeated.
    is_symmetric : bool
        Whether the pattern is symmetric; known only if `is_canonical`, and False otherwise.
    is_hermitian : bool
        Whether A is exactly Hermitian; known only if `is_canonical` and values were checked, and False otherwise.
    least, largest : float or None
        The least magnitude of a value that is not zero, infinite if there is none, and the largest one; of a complex
        value that of its larger part. None if values were not checked.
    is_ours : bool
        Whether this package has computed the matrix, so that nobody else changes its values.
    is_nearly_hermitian : bool, optional
        Whether A is Hermitian up to rounding, where that has been found; see linalg/hermitian.py.
    findings : Findings, optional
        What decides between the two multigrids; see multigrid/examination.py.
    features : Features, optional
        What tells which preconditioner is the fastest; see tuning/features.py.
    spectral_radius : float or None
        A bound of the eigenvalues of D^-1 A, where multigrid has estimated it; D is the diagonal.
    components : Components, optional
        The connected components whose rows sum to zero, where they have been found; see solvers/components.py.
    """

    csr: Any
    backend: Backend
    degrees: Any
    max_degree: int
    is_canonical: bool
    is_symmetric: bool
    is_hermitian: bool = False
    least: float | None = None
    largest: float | None = None
    is_ours: bool = False
    is_nearly_hermitian: bool | None = None
    findings: Any = None
    features: Any = None
    spectral_radius: float | None = None
    components: Any = None

    @classmethod
    def computed(
        cls, csr: Any, backend: Backend, longest_row: int | None = None, *, is_symmetric: bool
    ) -> AdmittedMatrix:
        """A matrix that this package has computed, which needs no check.

        Parameters
        ----------
        csr : sparse matrix
            Canonical, with all entries of the diagonal.
        longest_row : int, optional
            The length of its longest row; the host waits for it if it is not given.
        is_symmetric : bool
            Whether the pattern is known to be symmetric.
        """
        xp, n = backend.xp, csr.shape[0]
        degrees, offset = xp.empty(n, np.int32), offset_type(csr.indices.size)
        run = backend.kernels(KERNELS, OFFSET=offset, VALUE=np.float64, LANES=1)
        run.find_degrees(n, csr.indptr.astype(offset, copy=False), degrees)
        if longest_row is None:
            longest_row = int(degrees.max()) + 1 if n else 0
        max_degree = max(longest_row - 1, 0)
        return cls(csr, backend, degrees, max_degree, is_canonical=True, is_symmetric=is_symmetric, is_ours=True)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self.csr.shape

    @property
    def has_hubs(self) -> bool:
        """Whether the longest row has more than HUB times as many entries as the average row."""
        return (self.max_degree + 1) * self.shape[0] > HUB * self.indices.size

    @property
    def dtype(self) -> Any:
        """Of the values."""
        return self.csr.dtype

    @property
    def data(self) -> Any:
        """The values."""
        return self.csr.data

    @cached_property
    def indptr(self) -> Any:
        """Row offsets as kernels take them: int32, or int64 where there are too many entries for that."""
        return self.csr.indptr.astype(offset_type(self.csr.indices.size), copy=False)

    @cached_property
    def indices(self) -> Any:
        """Column indices as kernels take them: int32."""
        return self.csr.indices.astype(np.int32, copy=False)

    @cached_property
    def compact_order(self) -> Any | None:
        """On the CPU, a breadth-first order of rows (new number -> old number) where their own is bad; else None."""
        if self.backend.name != "cpu":
            return None
        return compact_order(self.csr.indptr, self.csr.indices, self.dtype.itemsize, self.is_symmetric)

    def diagonal(self) -> Any:
        """The diagonal of a matrix in canonical form, which nobody changes; found once, see `renewed`."""
        return self._pivots[0]

    @cached_property
    def extremes(self) -> tuple[Any, Any]:
        """The least and the largest entry of the diagonal, by their real parts: two numbers on the host.

        Entries that are not positive, or no numbers, count as zero. An empty matrix has infinity and zero.
        """
        least, largest = self.backend.to_host(self._pivots[1])
        real = np.finfo(self.dtype).dtype.type
        bits = np.array([INFINITY_BITS - least, largest])
        return tuple(real(number) for number in bits.view(np.float64))

    @cached_property
    def _pivots(self) -> tuple[Any, Any]:
        return read_diagonal(self.indptr, self.indices, self.data, self.backend)

    def renewed(self, **changed: Any) -> AdmittedMatrix:
        """The same matrix after its values have been computed anew, or with other ones, and other attributes: what
        depends on values is found again.
        """
        matrix = self.knowing(**changed)
        for found in ("_pivots", "extremes", "compact_order", "_canonical"):
            matrix.__dict__.pop(found, None)
        return matrix

    def with_spectral_radius(self, radius: float) -> AdmittedMatrix:
        """The same matrix, and all that is known of it, with a bound of the eigenvalues of D^-1 A."""
        return self.knowing(spectral_radius=radius)

    def knowing(self, **found: Any) -> AdmittedMatrix:
        """The same matrix, and all that is known of it, with attributes that have been found since."""
        matrix = copy(self)
        matrix.__dict__.update(found)
        return matrix

    @property
    def exponent(self) -> int:
        """2^exponent is just above the largest magnitude, if values were checked."""
        return math.frexp(self.largest or 0.0)[1]

    def operand(self) -> Any:
        """The matrix for products of its library: a copy unless it is canonical, since CuPy sorts rows in place."""
        if not self.is_canonical:
            return self.csr.copy()
        return canonical_csr(self.csr.data, self.csr.indices, self.csr.indptr, self.shape, self.backend)

    def magnitudes(self) -> Any:
        """The magnitudes of the entries, as a new matrix in CSR form; see `operand`."""
        csr = self.operand()
        csr.data = abs(csr.data)
        return csr

    def on(self, backend: Backend) -> AdmittedMatrix:
        """The same matrix on another device."""
        return admit_matrix(backend.sparse.csr_matrix(self.csr), finite=self.largest is not None)

    def canonical(self) -> AdmittedMatrix:
        """Return the same matrix with sorted rows and without repeated entries: itself, or a copy.

        Raises
        ------
        ValueError
            If sums of repeated entries are not finite.
        """
        return self if self.is_canonical else self._canonical

    def symmetrize(self) -> AdmittedMatrix:
        """The pattern of A + Aᵀ in canonical form; its values mean nothing."""
        xp, sparse, csr = self.backend.xp, self.backend.sparse, self.csr
        ones = xp.ones(csr.indices.size, np.float32)  # positive, so that nothing cancels
        pattern = sparse.csr_matrix((ones, csr.indices.copy(), csr.indptr.copy()), shape=csr.shape)
        pattern.sum_duplicates()
        united = (pattern + transpose(pattern, self.backend)).tocsr()
        united.sum_duplicates()
        return admit_matrix(united)

    @cached_property
    def _canonical(self) -> AdmittedMatrix:
        arrays = (self.csr.data.copy(), self.csr.indices.copy(), self.csr.indptr.copy())
        csr = self.backend.sparse.csr_matrix(arrays, shape=self.shape)  # without what A believes of its order
        csr.sum_duplicates()
        return admit_matrix(csr, finite=csr.dtype in FLOATS)


def diagonal_of(csr: Any, backend: Backend) -> Any:
    """The diagonal of a square CSR matrix in canonical form, as a new array."""
    indptr = csr.indptr.astype(offset_type(csr.indices.size), copy=False)
    return read_diagonal(indptr, csr.indices.astype(np.int32, copy=False), csr.data, backend)[0]


def read_diagonal(indptr: Any, indices: Any, values: Any, backend: Backend) -> tuple[Any, Any]:
    """The diagonal of a CSR matrix in canonical form, and what is reported of it: see `AdmittedMatrix.extremes`."""
    n = len(indptr) - 1
    diagonal, report = backend.xp.empty(n, values.dtype), backend.zeros(PIVOTS, np.int64)
    run = backend.kernels(KERNELS, OFFSET=indptr.dtype, VALUE=values.dtype, LANES=1)
    run.find_diagonal(n, indptr, indices, values, diagonal, report)
    return diagonal, report


def diagonal_places(csr: Any, rows: Any, backend: Backend) -> Any:
    """Where a square CSR matrix in canonical form has the diagonal entries of some rows, which it stores."""
    xp, offset = backend.xp, offset_type(csr.indices.size)
    rows, places = xp.asarray(rows, dtype=np.int64), xp.empty(len(rows), np.int64)
    indptr, indices = csr.indptr.astype(offset, copy=False), csr.indices.astype(np.int32, copy=False)
    run = backend.kernels(KERNELS, OFFSET=offset, VALUE=np.float64, LANES=1)
    run.find_places(len(rows), rows, indptr, indices, places)
    return places


def admit_matrix(A: Any, name: str = "A", *, floats: bool = False, finite: bool = False) -> AdmittedMatrix:
    """Check a user's matrix and return it in CSR form; what was admitted already is returned as it is.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, shape (n, n), or AdmittedMatrix
        In any format. It is not changed. A CSR tensor of PyTorch is read in place.
    name : str
        What messages call it.
    floats : bool
        Whether its values have to be floats of single or double precision, real or complex. Integers and booleans
        become float64.
    finite : bool
        Whether they have to be finite floats, for which they are read.

    Raises
    ------
    TypeError
        If A is not a sparse matrix or array of SciPy or CuPy, or does not hold floats where they are needed.
    ValueError
        If A is not two-dimensional and square, its row offsets or column indices are not those of a matrix, a value is
        not finite (names the row) where that matters, or it is a CuPy matrix where CuPy finds no device.
    """
    if isinstance(A, AdmittedMatrix):
        if (floats or finite) and A.dtype not in FLOATS:
            return admit_matrix(A.csr, name, floats=floats, finite=finite)
        return admit_matrix(A.csr, name, finite=True) if finite and A.largest is None else A
    csr, backend = csr_form(A, name, floats=floats or finite)
    xp, n, entries = backend.xp, csr.shape[0], csr.indices.size
    offset = offset_type(entries)
    indptr, indices = xp.asarray(csr.indptr, dtype=offset), xp.asarray(csr.indices, dtype=np.int32)
    degrees, report = xp.empty(n, np.int32), backend.zeros(REPORTED, np.int64)
    run = backend.kernels(
        KERNELS, OFFSET=offset, LANES=lanes_of_rows(n, entries), VALUE=csr.dtype if finite else np.float64
    )
    if finite:
        diagonal = xp.empty(n, csr.dtype)
        run.check_matrix(n, entries, indptr, indices, csr.data, degrees, diagonal, report)
    else:
        run.check_pattern(n, entries, indptr, indices, degrees, report)
    report = backend.to_host(report)
    flaws = int(report[FLAWS])
    if flaws & BROKEN_OFFSETS:
        return admit_matrix(_prune(csr, backend, name), name, floats=floats, finite=finite)
    if flaws & OUT_OF_RANGE:
        _refuse_index(csr, backend, name)
    if report[NOT_FINITE]:
        refuse_not_finite_entry(csr, backend, name)
    extremes = np.array([INFINITY_BITS - report[LEAST], report[LARGEST]]).view(np.float64).tolist() if finite else ()
    is_sorted = not flaws & NOT_SORTED
    is_symmetric = bool(is_sorted and not report[SURPLUS])
    is_hermitian = bool(finite and is_symmetric and not report[SURPLUS_OF_VALUES])
    of_pattern = int(report[MAX_DEGREE]), is_sorted, is_symmetric
    matrix = AdmittedMatrix(csr, backend, degrees, *of_pattern, is_hermitian, *extremes)
    if finite and is_sorted:
        matrix.__dict__["_pivots"] = diagonal, report[:PIVOTS]
    return matrix


def lanes_of_rows(n: int, entries: int) -> int:
    """How many threads of a GPU share a row in these kernels."""
    return 8 if entries > 8 * n else 2


def csr_form(A: Any, name: str = "A", *, floats: bool = False) -> tuple[Any, Backend]:
    """Return A in CSR form (A itself where it is CSR already) and the backend it lives on.

    Arrays have the lengths and types that they must have; but whether offsets and indices stay inside of them is not
    known yet, where A is CSR with indices of 32 bits.

    Raises
    ------
    TypeError, ValueError
        As `admit_matrix`.
    """
    backend = backend_of(A)
    if callable(getattr(A, "crow_indices", None)):
        A = _csr_of_tensor(A, backend, name)
    if not (scipy.sparse.issparse(A) or (backend.name == "gpu" and backend.sparse.issparse(A))):
        found = f"{type(A).__module__}.{type(A).__name__}"
        raise TypeError(
            f"{name} must be a sparse matrix of SciPy or CuPy, got {found}; try scipy.sparse.csr_array({name})"
        )
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"{name} must be square, got shape {A.shape}")
    if floats:
        A = with_floats(A, name)
    if A.shape[0] >= 2**31:
        raise ValueError(f"{name} has {A.shape[0]} rows; row numbers must fit into 31 bits")
    if A.format != "csr":
        _refuse_broken_format(A, backend, name)
        return transpose(A.T, backend) if A.format == "csc" else A.tocsr(), backend
    n, entries = A.shape[0], len(A.indices)
    for part, array in (("indptr", A.indptr), ("indices", A.indices)):
        if array.dtype.kind not in "iu" or array.ndim != 1:
            raise TypeError(f"{name}.{part} must be a vector of integers, got dtype {array.dtype}, shape {array.shape}")
    if len(A.indptr) != n + 1 or A.data.shape != A.indices.shape:
        raise ValueError(
            f"{name} has {n} rows, so {name}.indptr must have {n + 1} numbers, got {len(A.indptr)}; {name}.indices and "
            f"{name}.data must have equal lengths, got {entries} and {A.data.shape}; rebuild {name}"
        )
    # Numbers of 64 bits could look right once they are cut to 32.
    if A.indptr.dtype.itemsize > 4 and not _within(A.indptr, entries + 1):
        _prune(A, backend, name)
    if A.indices.dtype.itemsize > 4 and not _within(A.indices, n):
        A = _prune(A, backend, name)
        _refuse_index(A, backend, name)
    return A, backend


def _csr_of_tensor(A: Any, backend: Backend, name: str) -> Any:
    """A CSR tensor of PyTorch as a matrix of SciPy or CuPy that reads the same memory, by DLPack."""
    try:
        parts = A.values(), A.col_indices(), A.crow_indices()
        data, indices, indptr = map(backend.xp.from_dlpack, parts)
    except (RuntimeError, BufferError) as error:  # of another layout, or with gradients
        raise TypeError(
            f"{name} is a tensor and must be one in CSR layout that is detached from gradients ({error}); try "
            f"{name}.detach().to_sparse_csr()"
        ) from error
    if data.ndim != 1 or len(A.shape) != 2:
        raise TypeError(f"{name} must be a matrix in CSR layout, got blocks or a batch; try {name}.to_sparse_csr()")
    return backend.sparse.csr_matrix((data, indices, indptr), shape=tuple(A.shape))


def canonical_csr(data: Any, indices: Any, indptr: Any, shape: tuple[int, int], backend: Backend) -> Any:
    """Return a CSR matrix of arrays that are known to be in canonical form.

    A constructor that gets them would check that, and wait for the GPU; one that gets a shape would make arrays of its
    own.
    """
    empty = _empty_matrix(backend.sparse)
    csr = object.__new__(type(empty))
    csr.__dict__.update(empty.__dict__)  # as copy.copy does, which takes twenty microseconds
    csr.data, csr.indices, csr.indptr, csr._shape = data, indices, indptr, tuple(shape)
    csr.has_canonical_format = True
    return csr


@cache
def _empty_matrix(sparse: Any) -> Any:
    """A CSR matrix of a library."""
    return sparse.csr_matrix((0, 0))


def transpose(csr: Any, backend: Backend) -> Any:
    """Return the transpose of a CSR matrix in CSR form.

    CuPy's ``csr.T.tocsr()`` calls cuSPARSE (csr2cscEx2 of CUDA 13.0), which puts entries into columns that do not exist
    for some small matrices of 33 columns and more.
    """
    if not backend.resident_warps:
        return csr.T.tocsr()
    xp, entries = backend.xp, int(csr.indptr[-1])
    columns = csr.indices[:entries]
    order = xp.argsort(columns, kind="stable")
    rows = rows_of(csr.indptr, columns, xp)[order].astype(np.int32)
    indptr = xp.searchsorted(columns[order], xp.arange(csr.shape[1] + 1)).astype(offset_type(entries))
    return backend.sparse.csr_matrix((csr.data[order], rows, indptr), shape=csr.shape[::-1])


def rows_of(indptr: Any, indices: Any, xp: Any) -> Any:
    """The row of each entry of a CSR matrix with these offsets and columns."""
    if xp is np and indptr[-1] == len(indices):
        return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return xp.searchsorted(indptr, xp.arange(len(indices)), side="right") - 1


def refuse_not_finite_entry(csr: Any, backend: Backend, name: str = "A") -> None:
    """Raise ValueError if a value of a checked CSR matrix is NaN or infinite, naming its row."""
    finite = backend.xp.isfinite(csr.data)
    if any_of(~finite):
        k = int(backend.xp.argmin(finite))
        row, column = place_of(csr, k, backend)
        raise ValueError(f"{name} holds {csr.data[k].item()} in row {row}, column {column}; every value must be finite")


def with_floats(A: Any, name: str) -> Any:
    """Return a matrix of integers or booleans as one of float64, as SciPy's solvers do, and one of floats as it is.

    Raises
    ------
    TypeError
        If it holds anything else that solvers cannot compute with.
    """
    if A.dtype.kind in "biu":
        return A.astype(np.float64)
    if A.dtype not in FLOATS:
        raise TypeError(
            f"{name} must hold float32, float64, complex64 or complex128 values, got {A.dtype}; "
            f"convert it with {name}.astype(float)"
        )
    return A


def place_of(csr: Any, k: int, backend: Backend) -> tuple[int, int]:
    """The row and the column of entry k."""
    return int(np.searchsorted(backend.to_host(csr.indptr), k, side="right")) - 1, int(csr.indices[k])


def _within(numbers: Any, end: int) -> bool:
    """Whether all of them are from 0 to end - 1."""
    return len(numbers) == 0 or (int(numbers.min()) >= 0 and int(numbers.max()) < end)


def _prune(csr: Any, backend: Backend, name: str) -> Any:
    """Return a CSR matrix without what its arrays hold behind the last row, or raise ValueError for broken offsets."""
    offsets, entries = backend.to_host(csr.indptr), len(csr.indices)
    rows = np.flatnonzero(np.diff(offsets.astype(np.int64)) < 0)
    if offsets[0] != 0 or len(rows) or offsets[-1] > entries:
        found = (
            f"begins with {offsets[0]}"
            if offsets[0] != 0
            else f"says that row {rows[0]} begins at {offsets[rows[0]]} and ends at {offsets[rows[0] + 1]}"
            if len(rows)
            else f"ends with {offsets[-1]}"
        )
        raise ValueError(
            f"{name}.indptr must rise from 0 to the number of entries, {entries}, but {found}; rebuild {name}, for "
            "instance from COO"
        )
    end = int(offsets[-1])
    return backend.sparse.csr_matrix((csr.data[:end], csr.indices[:end], csr.indptr), shape=csr.shape)


def _refuse_index(csr: Any, backend: Backend, name: str) -> NoReturn:
    """Raise ValueError for the first index that is no column."""
    n = csr.shape[0]
    k = int(backend.xp.argmax((csr.indices < 0) | (csr.indices >= n)))
    row, column = place_of(csr, k, backend)
    raise ValueError(
        f"{name} has an entry in row {row}, column {column}, but its columns are 0..{n - 1}; rebuild {name}, for "
        "instance from COO"
    )


def _refuse_broken_format(A: Any, backend: Backend, name: str) -> None:
    """Raise ValueError for a matrix that a library cannot convert to CSR without reading outside of its arrays."""
    if A.format in ("csc", "bsr"):
        rows, columns = (A.shape[k] // (A.blocksize[k] if A.format == "bsr" else 1) for k in range(2))
        major, minor = (columns, rows) if A.format == "csc" else (rows, columns)
        offsets, entries = backend.to_host(A.indptr).astype(np.int64), len(A.indices)
        rises = len(offsets) == major + 1 and offsets[0] == 0 and (np.diff(offsets) >= 0).all()
        if not rises or offsets[-1] > min(entries, len(A.data)):
            raise ValueError(f"{name}.indptr must rise from 0 to the number of entries, {entries}; rebuild {name}")
        if not _within(A.indices[: int(offsets[-1])], minor):
            raise ValueError(f"{name}.indices must be from 0 to {minor - 1}; rebuild {name}, for instance from COO")
    elif A.format == "coo":
        if not len(A.row) == len(A.col) == len(A.data):
            raise ValueError(f"{name}.row, {name}.col and {name}.data must have equal lengths; rebuild {name}")
        if not (_within(A.row, A.shape[0]) and _within(A.col, A.shape[1])):
            raise ValueError(f"{name}.row and {name}.col must be from 0 to {A.shape[0] - 1}; rebuild {name}")


@compile_inlined
def hash_value(edge, value, is_upper):
    """A hash of an edge and of the entry that its upper end stores, if the matrix is Hermitian."""
    hashed = mix64(edge ^ np.uint64(np.float64(value.real + 0.0).view(np.int64)))  # -0 is 0
    if value.imag != 0:
        imag = np.float64(value.imag if is_upper else -value.imag)
        hashed = mix64(hashed ^ np.uint64(imag.view(np.int64)))
    return hashed


@compile_row
def check_row(v, n, begin, end, indices, values):
    """The flaws of a row, how many neighbors it lists, and two sums of hashes, of its edges and of their values: those
    of edges to larger vertices are added, those to smaller ones subtracted.

    Each edge of a symmetric pattern is listed at both of its ends, so that over all rows these sums cancel. Those of
    values cancel if the matrix is Hermitian. Only a sorted pattern is judged: an unsorted one is rebuilt anyway. Where
    there are no values, their sum means nothing.
    """
    flaws = degree = 0
    hashes = of_values = np.uint64(0)
    for k in range(begin, end):
        u = indices[k]
        if u < 0 or u >= n:
            flaws |= OUT_OF_RANGE
            continue
        if k > begin and indices[k - 1] >= u:
            flaws |= NOT_SORTED
        degree += u != v
        edge = mix64(np.uint64(min(u, v)) << np.uint64(32) | np.uint64(max(u, v)))
        hashes += edge if u > v else np.uint64(0) - edge if u < v else np.uint64(0)
        if len(values):
            if u == v:
                of_values += edge if values[k].imag != 0 else np.uint64(0)
            else:
                hashed = hash_value(edge, values[k], u > v)
                of_values += hashed if u > v else np.uint64(0) - hashed
    return flaws, degree, hashes, of_values


@KERNELS.strided
def check_pattern(n, entries, indptr, indices, degrees, report):
    """Count the neighbors of each vertex; report flaws (bits), the largest degree, and the sum of the rows' hashes.

    Of a row whose offsets lie outside of the entries, none is read.
    """
    if indptr[0] != 0 or indptr[n] != entries:
        report[FLAWS] = BROKEN_OFFSETS
    check_rows(0, n, n, entries, indptr, indices, np.empty(0), degrees, report)


@compile_loop
def check_rows(first, last, n, entries, indptr, indices, values, degrees, report):
    """The rows of `check_pattern`, with values or without."""
    largest = 0
    surplus = of_values = np.uint64(0)
    for v in range(first, last):
        begin, end = np.int64(indptr[v]), np.int64(indptr[v + 1])
        if begin < 0 or end < begin or end > entries:
            atomic_or(report, FLAWS, np.int64(BROKEN_OFFSETS))
            begin = end = np.int64(0)
        flaws, degree, of_edges, of_entries = check_row(np.int64(v), n, begin, end, indices, values)
        degrees[v] = degree
        if flaws:
            atomic_or(report, FLAWS, np.int64(flaws))
        largest = max(largest, degree)
        surplus, of_values = surplus + of_edges, of_values + of_entries
    atomic_max(report, MAX_DEGREE, np.int64(largest))
    atomic_add(report, SURPLUS, np.int64(surplus))
    atomic_add(report, SURPLUS_OF_VALUES, np.int64(of_values))


@KERNELS.strided
def check_matrix(n, entries, indptr, indices, values, degrees, diagonal, report):
    """Check the pattern and the values: count those that are not finite, and report the least and the largest magnitude
    among the others. If rows are sorted, copy the diagonal, and report its extremes.
    """
    if indptr[0] != 0 or indptr[n] != entries:
        report[FLAWS] = BROKEN_OFFSETS
    check_rows(0, n, n, entries, indptr, indices, values, degrees, report)
    report[NOT_FINITE] = check_numbers(0, entries, values, report)
    if report[FLAWS] == 0:
        copy_pivots(0, n, indptr, indices, values, diagonal, report)


@compile_loop(grain=NUMBERS)
def check_numbers(first, end, values, report):
    """The values of `check_matrix`; returns how many are not finite."""
    not_finite, least, largest = 0, np.inf, 0.0
    for k in range(first, end):
        if np.isfinite(values[k]):
            size = np.float64(max(abs(values[k].real), abs(values[k].imag)))
            largest = max(largest, size)
            if size > 0:
                least = min(least, size)
        else:
            not_finite += 1
    atomic_max(report, LEAST, INFINITY_BITS - np.float64(least).view(np.int64))
    atomic_max(report, LARGEST, np.float64(largest).view(np.int64))
    return not_finite


@KERNELS.per_item(grain=NUMBERS)
def find_degrees(first, end, indptr, degrees):
    """The degrees of rows that have their diagonal entries."""
    for v in range(first, end):
        degrees[v] = indptr[v + 1] - indptr[v] - 1


@KERNELS.per_item
def find_places(first, end, rows, indptr, indices, places):
    """Where the diagonal entries of some rows are."""
    for t in range(first, end):
        places[t] = lower_bound(indices, indptr[rows[t]], indptr[rows[t] + 1], rows[t])


@KERNELS.strided
def find_diagonal(n, indptr, indices, values, diagonal, report):
    """Copy the entries on the diagonal, and report the least and the largest one; where one is not stored, it is
    zero.
    """
    copy_pivots(0, n, indptr, indices, values, diagonal, report)


@compile_loop
def copy_pivots(first, end, indptr, indices, values, diagonal, report):
    """The rows of `find_diagonal`."""
    least, largest = np.inf, 0.0
    for i in range(first, end):
        k = lower_bound(indices, indptr[i], indptr[i + 1], i)
        diagonal[i] = values[k] if k < indptr[i + 1] and indices[k] == i else diagonal.dtype.type(0)
        pivot = np.float64(diagonal[i].real)
        pivot = pivot if pivot > 0 else 0.0
        least, largest = min(least, pivot), max(largest, pivot)
    atomic_max(report, LEAST_PIVOT, INFINITY_BITS - np.float64(least).view(np.int64))
    atomic_max(report, LARGEST_PIVOT, np.float64(largest).view(np.int64))


def refuse_other_pattern(matrix: AdmittedMatrix, before: Any, backend: Backend) -> None:
    """Raise ValueError unless a canonical matrix has the shape, the dtype and the pattern of the one before."""
    csr = matrix.csr
    if matrix.backend.name != backend.name or csr.shape != before.shape or csr.dtype != before.dtype:
        raise ValueError(
            f"A must be of shape {before.shape}, dtype {before.dtype} and on the {backend.name} as before, got shape "
            f"{csr.shape}, dtype {csr.dtype} on the {matrix.backend.name}"
        )
    same_rows, same_columns = csr.indptr is before.indptr, csr.indices is before.indices
    if not same_rows and any_of(rows := csr.indptr != before.indptr):
        row = int(rows.argmax()) - 1
    elif not same_columns and any_of(columns := csr.indices != before.indices):
        row = int(backend.xp.searchsorted(csr.indptr, columns.argmax(), side="right")) - 1
    else:
        return
    raise PatternChangedError(f"A has another pattern than before in row {row}; build a new object for a new pattern")
