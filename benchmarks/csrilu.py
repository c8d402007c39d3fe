"""cuSPARSE's ILU(0) and triangular solves, the factorization to beat: called with ctypes, every part by itself."""

from __future__ import annotations

import ctypes
from typing import Any

from papers.csrcolor import library

from mcprecond.backends import get_backend
from mcprecond.linalg.operator import Operator

INDEX_32, FLOAT_64 = 2, 1  # cusparseIndexType_t, cudaDataType
FILL_MODE, DIAG_TYPE = 0, 1  # cusparseSpMatAttribute_t
BY_LEVELS = 1  # cusparseSolvePolicy_t


class CsrIlu(Operator):
    """csrilu02 and a pair of SpSV for a CuPy CSR matrix of float64 values with sorted rows, in the order of its rows.

    `analyze_factorization`, `factorize`, `analyze_solves` in this order, then `enqueue`. Where the library no longer
    has csrilu02 (`can_factorize`), put the factors into `values` instead: U, and L without its unit diagonal.
    """

    captures = False  # before `try_capture`

    def __init__(self, A: Any) -> None:
        import cupy

        self.shape, self.dtype, self.backend = A.shape, A.dtype, get_backend("gpu")
        self.A, self.values = A, A.data.copy()
        self.lib = library()
        self.can_factorize = hasattr(self.lib, "cusparseDcsrilu02")
        self.handle, self.one = ctypes.c_void_p(), ctypes.c_double(1.0)
        self._call("cusparseCreate", ctypes.byref(self.handle))
        self._buffers: list[Any] = []
        self._t = cupy.empty(A.shape[0], A.dtype)

    def _of_A(self) -> tuple[Any, ...]:
        return (
            self.handle,
            ctypes.c_int(self.A.shape[0]),
            ctypes.c_int(self.A.nnz),
            self.descriptor,
            *(_pointer(array) for array in (self.values, self.A.indptr, self.A.indices)),
            self.info,
        )

    def analyze_factorization(self) -> None:
        """What csrilu02 has to know about the pattern."""
        self.descriptor, self.info = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cusparseCreateMatDescr", ctypes.byref(self.descriptor))
        self._call("cusparseCreateCsrilu02Info", ctypes.byref(self.info))
        size = ctypes.c_int(0)
        self._call("cusparseDcsrilu02_bufferSize", *self._of_A(), ctypes.byref(size))
        self._work = self._buffer(size.value)
        self._call("cusparseDcsrilu02_analysis", *self._of_A(), ctypes.c_int(BY_LEVELS), self._work)

    def factorize(self) -> None:
        """Copy the values of A, and factorize them in place."""
        self.values[...] = self.A.data
        self._set_stream()
        self._call("cusparseDcsrilu02", *self._of_A(), ctypes.c_int(BY_LEVELS), self._work)

    def analyze_solves(self) -> None:
        """Prepare both solves for the factors, which lie in one matrix."""
        import cupy

        n, A = ctypes.c_int64(self.A.shape[0]), self.A
        self._set_stream()
        self._solves = []
        self._vectors = [ctypes.c_void_p() for _ in range(3)]
        for vector in self._vectors:
            self._call("cusparseCreateDnVec", ctypes.byref(vector), n, _pointer(self._t), ctypes.c_int(FLOAT_64))
        for upper in (0, 1):
            matrix, descriptor, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
            self._call(
                "cusparseCreateCsr",
                ctypes.byref(matrix),
                n,
                n,
                ctypes.c_int64(A.nnz),
                _pointer(A.indptr),
                _pointer(A.indices),
                _pointer(self.values),
                *map(ctypes.c_int, (INDEX_32, INDEX_32, 0, FLOAT_64)),
            )
            # The lower triangle has a unit diagonal: the attributes' values are 0 and 1, in this order, or 1 and 0.
            for attribute, value in ((FILL_MODE, ctypes.c_int(upper)), (DIAG_TYPE, ctypes.c_int(1 - upper))):
                self._call(
                    "cusparseSpMatSetAttribute",
                    matrix,
                    ctypes.c_int(attribute),
                    ctypes.byref(value),
                    ctypes.c_size_t(ctypes.sizeof(value)),
                )
            self._call("cusparseSpSV_createDescr", ctypes.byref(descriptor))
            solve = self._call_arguments(matrix, *self._vectors[upper : upper + 2], descriptor)
            self._call("cusparseSpSV_bufferSize", *solve, ctypes.byref(size))
            self._call("cusparseSpSV_analysis", *solve, self._buffer(size.value))
            self._solves.append(solve)
        cupy.cuda.get_current_stream().synchronize()

    def try_capture(self) -> None:
        """Find out whether the solves can be captured."""
        import cupy

        r, z = cupy.ones_like(self._t), cupy.empty_like(self._t)
        self.captures = True
        try:
            self.backend.repeatable(lambda: self.enqueue(None, r, z))()
            cupy.cuda.Device().synchronize()
        except (RuntimeError, cupy.cuda.runtime.CUDARuntimeError):
            self.captures = False

    def enqueue(self, state: None, r: Any, z: Any) -> None:
        """z = inv(U) inv(L) r."""
        self._set_stream()
        for vector, array in zip(self._vectors, (r, self._t, z), strict=True):
            self._call("cusparseDnVecSetValues", vector, _pointer(array))
        for solve in self._solves:
            self._call("cusparseSpSV_solve", *solve)

    def __matmul__(self, r: Any) -> Any:
        """For solvers where the solves cannot be captured."""
        z = self._t.copy()
        self.enqueue(None, r.reshape(-1), z)
        return z

    def _call_arguments(self, matrix: Any, x: Any, y: Any, descriptor: Any) -> tuple[Any, ...]:
        """Those that all calls of SpSV begin with."""
        not_transposed, algorithm, value_type = ctypes.c_int(0), ctypes.c_int(0), ctypes.c_int(FLOAT_64)
        return (self.handle, not_transposed, ctypes.byref(self.one), matrix, x, y, value_type, algorithm, descriptor)

    def _buffer(self, size: int) -> Any:
        import cupy

        self._buffers.append(cupy.empty(max(size, 1), cupy.uint8))
        return _pointer(self._buffers[-1])

    def _set_stream(self) -> None:
        import cupy

        self._call("cusparseSetStream", self.handle, ctypes.c_void_p(cupy.cuda.get_current_stream().ptr))

    def _call(self, name: str, *args: Any) -> None:
        status = getattr(self.lib, name)(*args)
        if status:
            raise RuntimeError(f"{name} returned status {status}")


def _pointer(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.data.ptr)
