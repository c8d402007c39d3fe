"""The types of arguments, for type checkers: what a matrix and a vector are, and the names that options have.

SciPy and CuPy have no types of their own. So matrices are known by their attributes, and arrays on a GPU by the CUDA
array interface.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "ArrayLibrary",
    "CSRTensor",
    "ColoringMethod",
    "Cycle",
    "Device",
    "DeviceArray",
    "Form",
    "HostArray",
    "Integers",
    "LinearOperator",
    "Matrix",
    "MethodName",
    "NullSpace",
    "Order",
    "PivotRule",
    "PreconditionerName",
    "RowOrdering",
    "SmootherName",
    "SparseMatrix",
    "StoredDType",
    "StrengthName",
    "Sweep",
    "SystemMatrix",
]


class SparseMatrix(Protocol):
    """A sparse matrix or array of SciPy or CuPy, in any format."""

    @property
    def shape(self) -> Any:
        """(n, n)."""

    @property
    def dtype(self) -> Any:
        """Of the values."""

    def tocsr(self) -> Any:
        """Return it in CSR form."""


class CSRTensor(Protocol):
    """A sparse CSR tensor of PyTorch."""

    @property
    def shape(self) -> Any:
        """(n, n)."""

    def crow_indices(self) -> Any:
        """Return row offsets."""

    def col_indices(self) -> Any:
        """Return columns."""

    def values(self) -> Any:
        """Return values."""


class DeviceArray(Protocol):
    """An array on a GPU, as of CuPy."""

    @property
    def shape(self) -> Any:
        """Of the array."""

    @property
    def __cuda_array_interface__(self) -> Any: ...


class LinearOperator(Protocol):
    """A linear operator of SciPy or CuPy, or one of another library that has their methods."""

    @property
    def shape(self) -> Any:
        """(n, n)."""

    @property
    def dtype(self) -> Any:
        """Of its vectors."""

    def matvec(self, x: Any) -> Any:
        """Apply it to a vector."""


class ArrayLibrary(Protocol):
    """A module of arrays that speak DLPack."""

    def from_dlpack(self, x: Any, /) -> Any:
        """Return an array that shares the memory of another one."""


#: What the argument A may be.
Matrix: TypeAlias = SparseMatrix | CSRTensor
#: Numbers on the host.
HostArray: TypeAlias = npt.NDArray[np.number[Any] | np.bool_]
#: What the solvers take for A.
SystemMatrix: TypeAlias = Matrix | LinearOperator | HostArray | DeviceArray
#: A vector of integers on either device, or a list.
Integers: TypeAlias = npt.NDArray[np.integer[Any]] | Sequence[int] | DeviceArray

#: Where something is computed.
Device: TypeAlias = Literal["cpu", "gpu"]
#: In which triangles are stored.
StoredDType: TypeAlias = (
    Literal["float32", "float64", "complex64", "complex128"]
    | type[np.float32]
    | type[np.float64]
    | type[np.complex64]
    | type[np.complex128]
    | type[float]
    | type[complex]
    | np.dtype[Any]
)

#: The names in `COLORINGS`.
MethodName: TypeAlias = Literal[
    "eb",
    "ecl_gc",
    "jpl",
    "jp",
    "ipgc",
    "vb",
    "vb_bit",
    "rig",
    "sirg",
    "gm",
    "chen_topo",
    "chen_wlc",
    "chen_pq",
    "cc",
    "is_minmax",
    "is_hash",
    "is_reduce",
    "graphblas_is",
    "graphblas_mis",
    "graphblas_jp",
    "greedy",
]
#: What `color` takes as a method.
ColoringMethod: TypeAlias = Literal["auto"] | MethodName
#: Orders of vertices, of `color`.
Order: TypeAlias = Literal["natural", "random", "ldf", "ldf_natural", "sdl", "sdl_batch", "sd", "id"]
#: Directions of Gauss-Seidel sweeps.
Sweep: TypeAlias = Literal["forward", "backward", "symmetric"]
#: What incomplete factorizations do about bad pivots.
PivotRule: TypeAlias = Literal["positive", "raise", "shift"]
#: Names of preconditioners, of `pcg`.
PreconditionerName: TypeAlias = Literal["auto", "jacobi", "sgs", "dilu", "ilu0", "multigrid"]
#: Orders of rows, of `ILU0`.
RowOrdering: TypeAlias = Literal["auto", "color", "natural"]
#: How multigrid tells strong connections.
StrengthName: TypeAlias = Literal["symmetric"]
#: Smoothers of multigrid.
SmootherName: TypeAlias = Literal["auto", "dilu", "gauss_seidel", "sgs", "jacobi", "damped_jacobi", "chebyshev"]
#: Cycles of multigrid.
Cycle: TypeAlias = Literal["V", "W", "K"]
#: Null spaces of `pcg`.
NullSpace: TypeAlias = Literal["constant", "detect"] | HostArray | DeviceArray | None
#: Forms of `pcg`.
Form: TypeAlias = Literal["auto", "plain", "eisenstat"]
#: The norms that `pcg` may end by.
Norm: TypeAlias = Literal["residual", "energy", "preconditioned"]
