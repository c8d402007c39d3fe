"""What PETSc has on a GPU, as CuPy's arrays in place: vectors, matrices, and the stream that they are used on.

petsc4py has no access to matrices and streams. PETSc's own functions are called through ctypes, in the library that
petsc4py is linked to.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


def is_on_gpu(v: Any) -> bool:
    """Whether a vector or a matrix is of a type with memory on a CUDA device."""
    return "cu" in v.getType()  # cuda, seqcuda, mpicuda; aijcusparse and its like


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
    """The local part of a vector, which is at an address, with no copy."""
    return _array(address, v.getLocalSize(), scalar_type(), v)


def stream() -> Any:
    """The stream of PETSc's current device context, as CuPy's."""
    context, place = ctypes.c_void_p(), ctypes.POINTER(ctypes.c_void_p)()
    _call("PetscDeviceContextGetCurrentContext", ctypes.byref(context))
    _call("PetscDeviceContextGetStreamHandle", context, ctypes.byref(place))
    return _stream_at(place[0] or 0)


@functools.cache
def _stream_at(address: int) -> Any:
    import cupy

    return cupy.cuda.ExternalStream(address)


def matrix_of(own: Any) -> Any:
    """A sequential matrix of type aijcusparse as CuPy's, copied on the device."""
    import cupy
    from cupyx.scipy.sparse import csr_matrix
    from petsc4py import PETSc

    rows, columns, values = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    A, n = ctypes.c_void_p(own.handle), own.getSize()[0]
    _call("MatSeqAIJCUSPARSEGetIJ", A, ctypes.c_int(False), ctypes.byref(rows), ctypes.byref(columns))
    _call("MatSeqAIJCUSPARSEGetArrayRead", A, ctypes.byref(values))
    try:
        indptr = _array(rows.value, n + 1, index_type := np.dtype(PETSc.IntType), own)
        entries = int(indptr[-1]) if n else 0
        parts = values.value, entries, scalar_type(), own
        arrays = _array(*parts), _array(columns.value, entries, index_type, own), indptr
        return csr_matrix(tuple(cupy.array(array) for array in arrays), shape=own.getSize())
    finally:
        _call("MatSeqAIJCUSPARSERestoreArrayRead", A, ctypes.byref(values))
        _call("MatSeqAIJCUSPARSERestoreIJ", A, ctypes.c_int(False), ctypes.byref(rows), ctypes.byref(columns))


def scalar_type() -> np.dtype[Any]:
    """The dtype of PETSc's numbers."""
    from petsc4py import PETSc

    return np.dtype(PETSc.ScalarType)


def _array(pointer: int | None, size: int, dtype: np.dtype[Any], owner: Any) -> Any:
    """So many numbers at an address, which belong to an object of PETSc."""
    import cupy

    memory = cupy.cuda.UnownedMemory(pointer or 0, size * dtype.itemsize, owner)
    return cupy.ndarray((size,), dtype, cupy.cuda.MemoryPointer(memory, 0))


@functools.cache
def _function(name: str) -> Any:
    from petsc4py import PETSc

    return getattr(ctypes.CDLL(PETSc.__file__), name)


def _call(name: str, *arguments: Any) -> None:
    from petsc4py import PETSc

    if code := _function(name)(*arguments):
        raise PETSc.Error(code)
