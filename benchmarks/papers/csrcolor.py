"""cuSPARSE's csrcolor, the coloring to beat: still in the library, no longer in its wrappers, so called with ctypes."""

from __future__ import annotations

import ctypes
import functools
import glob
from typing import Any


class CsrColor:
    """Colors a CuPy CSR matrix of float64 values, all of its rows."""

    def __init__(self) -> None:
        self.lib = library()
        self.handle, self.descriptor, self.info = (ctypes.c_void_p() for _ in range(3))
        self._call("cusparseCreate", ctypes.byref(self.handle))
        self._call("cusparseCreateMatDescr", ctypes.byref(self.descriptor))
        self._call("cusparseCreateColorInfo", ctypes.byref(self.info))

    def __call__(self, A: Any) -> tuple[Any, int]:
        """Return the colors and how many there are."""
        import cupy

        colors = cupy.empty(A.shape[0], cupy.int32)
        fraction, count = ctypes.c_double(1.0), ctypes.c_int(0)
        self._call(
            "cusparseDcsrcolor",
            self.handle,
            ctypes.c_int(A.shape[0]),
            ctypes.c_int(A.nnz),
            self.descriptor,
            *(ctypes.c_void_p(array.data.ptr) for array in (A.data, A.indptr, A.indices)),
            ctypes.byref(fraction),
            ctypes.byref(count),
            ctypes.c_void_p(colors.data.ptr),
            None,
            self.info,
        )
        return colors, count.value

    def _call(self, name: str, *args: Any) -> None:
        status = getattr(self.lib, name)(*args)
        if status:
            raise RuntimeError(f"{name} returned status {status}")


@functools.cache
def csrcolor() -> CsrColor:
    """One handle of the library for all calls."""
    return CsrColor()


def library() -> ctypes.CDLL:
    """The newest libcusparse that is found.

    Raises
    ------
    RuntimeError
        If there is none.
    """
    names = ["libcusparse.so.12", *glob.glob("/usr/local/cuda*/lib64/libcusparse.so.*")]
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise RuntimeError(f"libcusparse is not to be found; tried {', '.join(names)}")
