"""The operations of GraphBLAS that the colorings of graphblas.py are made of, on arrays: products over semirings."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_row
from mcprecond.backends.hashing import mix
from mcprecond.coloring.graph import Graph

KERNELS = KernelSet(__file__, "OFFSET LANES")

MAX_TIMES, BOOLEAN = 0, 1  # semirings
CUDA_CONSTANTS = {"MAX_TIMES": MAX_TIMES, "BOOLEAN": BOOLEAN}


class KernelEngine:
    """Operations of GraphBLAS on arrays of NumPy or CuPy, int64 or bool; products by the kernel `vxm`."""

    def __init__(self, graph: Graph):
        self.graph = graph
        lanes = 8 if graph.indices.size > 8 * graph.n else 2  # threads that share a row on the GPU
        self.kernels = graph.backend.kernels(KERNELS, OFFSET=graph.indptr.dtype, LANES=lanes)

    def zeros(self, dtype: Any) -> Any:
        """A vector of zeros."""
        return self.graph.backend.xp.zeros(self.graph.n, dtype)

    def random(self, seed: int) -> Any:
        """Distinct positive weights: GrB_apply of set_random()."""
        weight = self.graph.backend.xp.empty(self.graph.n, np.int64)
        self.kernels.set_random(self.graph.n, seed & 0xFFFFFFFF, weight)
        return weight

    def copy(self, x: Any) -> Any:
        """GrB_Vector_dup."""
        return x.copy()

    def vxm(self, x: Any, semiring: int, mask: Any) -> Any:
        """GrB_vxm where the mask is not zero; elsewhere the result is zero."""
        y = self.graph.backend.xp.empty_like(x)
        self.kernels.vxm(self.graph.n, self.graph.indptr, self.graph.indices, semiring, x, mask, y)
        return y

    def greater(self, x: Any, y: Any) -> Any:
        """GrB_eWiseAdd with GT."""
        return x > y

    def multiply(self, x: Any, y: Any) -> Any:
        """GrB_eWiseMult with TIMES."""
        return x * y

    def assign(self, x: Any, mask: Any, value: int) -> None:
        """GrB_assign of a scalar, in place, where the mask is true."""
        self.graph.backend.xp.copyto(x, value, where=mask)  # unlike x[mask] = value, it does not count the mask first

    def count(self, x: Any) -> int:
        """GrB_reduce of a Boolean vector with PLUS."""
        return int(x.sum())

    def scatter(self, x: Any, size: int) -> Any:
        """GxB_scatter: a Boolean vector of `size` that is true at the entries of x, and at 0."""
        flags = self.graph.backend.xp.zeros(size, np.bool_)
        flags[x] = flags[0] = True
        return flags

    def first_zero(self, x: Any) -> int:
        """GrB_eWiseMult with an ascending vector and GrB_reduce with MIN: the first position that is false."""
        return int(x.argmin())

    def colors(self, C: Any) -> Any:
        """The colors 1, 2, ... of a finished coloring as an array, from 0."""
        return (C - 1).astype(np.int32)


@compile_row
def add(semiring, a, b):
    """The semiring's addition. Its multiplication has nothing to do, since the entries of A are one."""
    return max(a, b) if semiring == MAX_TIMES else a | b


@KERNELS.per_item
def set_random(first, end, seed, weight):
    """The hash of a vertex and, below it, the vertex itself, from 1."""
    for v in range(first, end):
        weight[v] = mix(v, seed) << 31 | (v + 1)


@KERNELS.per_item
def vxm(first, end, indptr, indices, semiring, x, mask, y):
    """y = x A where the mask is not zero, and zero elsewhere; A is symmetric and without its diagonal."""
    for v in range(first, end):
        total = np.int64(0)
        if mask[v]:
            for k in range(indptr[v], indptr[v + 1]):
                if indices[k] != v:
                    total = add(semiring, total, np.int64(x[indices[k]]))
        y[v] = total
