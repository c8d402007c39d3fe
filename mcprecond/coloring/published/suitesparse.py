"""The operations that the GraphBLAS colorings are made of, by SuiteSparse:GraphBLAS (Davis, ACM TOMS 45, 2019)."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.coloring.graph import Graph
from mcprecond.coloring.published.semirings import BOOLEAN, MAX_TIMES, KernelEngine


class SuiteSparseEngine:
    """The operations of `KernelEngine` on vectors of python-graphblas, all of whose entries are stored."""

    def __init__(self, graph: Graph):
        if graph.backend.name != "cpu":
            raise ValueError("engine='suitesparse' works on the CPU only; pass a SciPy matrix, or engine='kernels'")
        try:
            import graphblas
        except ImportError as error:
            raise ImportError(
                "engine='suitesparse' needs python-graphblas; from a clone: pip install '.[graphblas]'"
            ) from error
        self.graph, self.gb = graph, graphblas
        stored = graphblas.Matrix.from_csr(graph.indptr, graph.indices, 1, nrows=graph.n, ncols=graph.n, dtype=np.int64)
        A = graphblas.select.offdiag(stored).new()
        self.products = {
            MAX_TIMES: (graphblas.semiring.max_times, A),
            BOOLEAN: (graphblas.semiring.lor_land, A.dup(np.bool_)),
        }

    def zeros(self, dtype: Any) -> Any:
        """A vector of zeros."""
        return self.gb.Vector.from_scalar(0, self.graph.n, dtype)

    def random(self, seed: int) -> Any:
        """Distinct positive weights."""
        return self.gb.Vector.from_dense(KernelEngine(self.graph).random(seed))

    def copy(self, x: Any) -> Any:
        """GrB_Vector_dup."""
        return x.dup()

    def vxm(self, x: Any, semiring: int, mask: Any) -> Any:
        """GrB_vxm where the mask is not zero; elsewhere there is no entry."""
        add_and_multiply, A = self.products[semiring]
        return x.vxm(A, add_and_multiply).new(mask=mask.V)

    def greater(self, x: Any, y: Any) -> Any:
        """GrB_eWiseAdd with GT, which takes an entry of x as it is where y has none."""
        return x.ewise_add(y, self.gb.binary.gt).new(dtype=np.bool_)

    def multiply(self, x: Any, y: Any) -> Any:
        """GrB_eWiseMult with TIMES."""
        return x.ewise_mult(y, self.gb.binary.times).new()

    def assign(self, x: Any, mask: Any, value: int) -> None:
        """GrB_assign of a scalar, in place, where the mask is true."""
        x(mask.V) << value

    def count(self, x: Any) -> int:
        """GrB_reduce of a Boolean vector with PLUS."""
        return int(x.reduce(self.gb.monoid.plus[np.int64], allow_empty=False).new().value)

    def scatter(self, x: Any, size: int) -> Any:
        """A vector of `size` with entries at 0 and at the entries of x, some of which may be equal."""
        values = x.to_coo(indices=False)[1]
        return self.gb.Vector.from_coo(np.append(values, 0), True, size=size)

    def first_zero(self, x: Any) -> int:
        """The first position without an entry."""
        ascending = self.gb.Vector.from_dense(np.arange(x.size))
        return int(ascending.dup(mask=~x.S).reduce(self.gb.monoid.min).new().value)

    def colors(self, C: Any) -> Any:
        """The colors 1, 2, ... of a finished coloring as an array, from 0."""
        return (C.to_dense() - 1).astype(np.int32)
