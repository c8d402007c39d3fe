"""What PETSc stores, as arrays in place: vectors and matrices, on the host or on a GPU; a rank's GPU, and its stream.

petsc4py has no access to streams, and to the values of matrices only by copies. PETSc's own functions are called
through ctypes, in the library that petsc4py is linked to.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from mcprecond.backends import gpu_problem
from mcprecond.interop.streams import stream_at

#: Pairs of vectors for which launches are kept.
MOST_CAPTURED = 16


def is_on_gpu(v: Any) -> bool:
    """Whether a vector or a matrix is of a type with memory on a CUDA device."""
    return "cu" in v.getType()  # cuda, seqcuda, mpicuda; aijcusparse and its like


def refuse_without_petsc4py() -> None:
    """Raise ImportError if petsc4py is missing."""
    if importlib.util.find_spec("petsc4py") is None:
        raise ImportError(
            "mcprecond.interop.petsc needs petsc4py, which is not installed; from a clone: pip install '.[petsc]', or "
            "take the petsc4py of the version of your PETSc"
        )


def as_aij(P: Any) -> Any:
    """A matrix of type AIJ: the matrix itself, or a copy.

    Raises
    ------
    TypeError
        If PETSc cannot make one of it.
    """
    from petsc4py import PETSc

    try:
        return P if "aij" in P.getType() and "baij" not in P.getType() else P.convert("aij", PETSc.Mat())
    except PETSc.Error as error:
        raise TypeError(f"P must be an assembled AIJ, BAIJ or SBAIJ matrix, got type {P.getType()!r}") from error


def on_device(device: str) -> Any:
    """A context in which this rank's GPU is the current one."""
    return nullcontext() if device != "gpu" or gpu_problem() else own_device()


@functools.cache
def own_device() -> Any:
    """The GPU of this rank."""
    import cupy
    from petsc4py import PETSc

    return cupy.cuda.Device(PETSc.COMM_WORLD.getRank() % cupy.cuda.runtime.getDeviceCount())


@contextmanager
def addresses_of(*vectors: tuple[Any, str]) -> Iterator[tuple[int, ...]]:
    """Where the local parts of vectors of a CUDA type are, each for reading ("r") or writing ("w")."""
    handles = [(v, v.getCUDAHandle(mode), mode) for v, mode in vectors]
    try:
        yield tuple(handle for _, handle, _ in handles)
    finally:
        for v, handle, mode in handles:
            v.restoreCUDAHandle(handle, mode)


def array_of(v: Any, address: int) -> Any:
    """The local part of a vector of a CUDA type, which is at an address, with no copy."""
    return _array(address, v.getLocalSize(), scalar_type(), v, on_gpu=True)


def stream() -> Any:
    """The stream of PETSc's current device context, as CuPy's."""
    context, place = ctypes.c_void_p(), ctypes.POINTER(ctypes.c_void_p)()
    _call("PetscDeviceContextGetCurrentContext", ctypes.byref(context))
    _call("PetscDeviceContextGetStreamHandle", context, ctypes.byref(place))
    return stream_at(place[0] or 0)


def take_numbers(v: Any, values: Any) -> None:
    """Copy an array of NumPy or CuPy into the local part of a vector."""
    if is_on_gpu(v) and not isinstance(values, np.ndarray):
        with addresses_of((v, "w")) as (address,):
            array_of(v, address)[:] = values
            _wait(on_gpu=True)
    else:
        v.setArray(values if isinstance(values, np.ndarray) else values.get())


class Block(NamedTuple):
    """A sequential matrix of type AIJ that is a part of another one.

    Attributes
    ----------
    whole : PETSc.Mat
        Which keeps it.
    handle : int
        Its address.
    """

    whole: Any
    handle: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        sizes = np.zeros(2, index_type())
        _call("MatGetSize", ctypes.c_void_p(self.handle), *(ctypes.c_void_p(sizes[k:].ctypes.data) for k in (0, 1)))
        return int(sizes[0]), int(sizes[1])


def blocks_of(A: Any) -> tuple[Block, Block | None, Any]:
    """The block on the diagonal of this rank, that of its other entries, and the columns of that, by global numbers.

    A matrix of one rank has the first one only.
    """
    if A.getType().startswith("seqaij"):
        return Block(A, A.handle), None, np.empty(0, np.int64)
    own, other, columns = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    _call("MatMPIAIJGetSeqAIJ", ctypes.c_void_p(A.handle), *map(ctypes.byref, (own, other, columns)))
    beside = Block(A, other.value or 0)
    numbers = _array(columns.value, beside.shape[1], index_type(), A, on_gpu=False)
    return Block(A, own.value or 0), beside, numbers.astype(np.int64)


def csr_of(block: Block, *, on_gpu: bool) -> Any:
    """A copy of a block, as a matrix of SciPy, or of CuPy where it has to be on its GPU."""
    before: tuple[Any, ...]
    after: tuple[Any, ...]
    rows, columns, (n, width) = ctypes.c_void_p(), ctypes.c_void_p(), block.shape
    handle, pointers = ctypes.c_void_p(block.handle), (ctypes.byref(rows), ctypes.byref(columns))
    if on_gpu:
        import cupy as xp
        from cupyx.scipy.sparse import csr_matrix

        pattern = "MatSeqAIJCUSPARSE{}IJ"
        before, after = (ctypes.c_int(False),), ()
    else:
        xp, csr_matrix = np, scipy.sparse.csr_matrix
        size, done = np.zeros(1, index_type()), ctypes.c_int()
        pattern, after = "Mat{}RowIJ", (ctypes.byref(done),)
        zero = ctypes.c_int64(0) if index_type().itemsize == 8 else ctypes.c_int(0)
        before = zero, ctypes.c_int(False), ctypes.c_int(False), ctypes.c_void_p(size.ctypes.data)
    _call(pattern.format("Get"), handle, *before, *pointers, *after)
    try:
        indptr = xp.array(_array(rows.value, n + 1, index_type(), block, on_gpu=on_gpu))
        entries = int(indptr[-1]) if n else 0
        indices = xp.array(_array(columns.value, entries, index_type(), block, on_gpu=on_gpu))
    finally:
        _call(pattern.format("Restore"), handle, *before, *pointers, *after)
    with values_of(block, entries, on_gpu=on_gpu) as values:
        return csr_matrix((xp.array(values), indices, indptr), shape=(n, width))


@contextmanager
def values_of(block: Block, entries: int, *, on_gpu: bool) -> Iterator[Any]:
    """The values of a block of so many entries, in place, to be read."""
    kind, pointer, handle = "CUSPARSE" if on_gpu else "", ctypes.c_void_p(), ctypes.c_void_p(block.handle)
    _call(f"MatSeqAIJ{kind}GetArrayRead", handle, ctypes.byref(pointer))
    _wait(on_gpu=on_gpu)
    try:
        yield _array(pointer.value, entries, scalar_type(), block, on_gpu=on_gpu)
        _wait(on_gpu=on_gpu)
    finally:
        _call(f"MatSeqAIJ{kind}RestoreArrayRead", handle, ctypes.byref(pointer))


def _wait(*, on_gpu: bool) -> None:
    """PETSc and CuPy may use other streams."""
    if on_gpu:
        import cupy

        cupy.cuda.Device().synchronize()


def scalar_type() -> np.dtype[Any]:
    """The dtype of PETSc's numbers."""
    from petsc4py import PETSc

    return np.dtype(PETSc.ScalarType)


def index_type() -> np.dtype[Any]:
    """The dtype of PETSc's indices."""
    from petsc4py import PETSc

    return np.dtype(PETSc.IntType)


def _array(pointer: int | None, size: int, dtype: np.dtype[Any], owner: Any, *, on_gpu: bool) -> Any:
    """So many numbers at an address, which belong to an object of PETSc."""
    if not on_gpu:
        if not pointer:
            return np.empty(0, dtype)
        memory: Any = (ctypes.c_byte * (size * dtype.itemsize)).from_address(pointer)
        return np.frombuffer(memory, dtype, size)
    import cupy

    unowned = cupy.cuda.UnownedMemory(pointer or 0, size * dtype.itemsize, owner)
    return cupy.ndarray((size,), dtype, cupy.cuda.MemoryPointer(unowned, 0))


@functools.cache
def _function(name: str) -> Any:
    from petsc4py import PETSc

    return getattr(ctypes.CDLL(PETSc.__file__), name)


def _call(name: str, *arguments: Any) -> None:
    from petsc4py import PETSc

    if code := _function(name)(*arguments):
        raise PETSc.Error(code)
