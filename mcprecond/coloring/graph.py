"""The graph of a sparse matrix: what every coloring reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mcprecond.backends import Backend, compile_part, compile_row
from mcprecond.backends.kernels import INT32_LIMIT
from mcprecond.backends.memory import available_bytes
from mcprecond.matrix import admit_matrix

UNCOLORED = -1  # instead of a color
CUDA_CONSTANTS = {"UNCOLORED": UNCOLORED}


@compile_row
def rows_near(v, distance, indptr):
    """Which rows list the vertices within distance 1 or 2 of v: its own, and at distance 2 those of its neighbors.

    Go through them with `row_near`. A vertex may be listed several times, as often for v as v for it, and v itself too.
    """
    own = np.int64(indptr[v])
    return range(own - 1, np.int64(indptr[v + 1]) if distance == 2 else own)


@compile_row
def row_near(j, v, indptr, indices):
    """The row that number j of `rows_near` stands for."""
    return np.int64(v) if j < indptr[v] else np.int64(indices[j])


@compile_part
def count_square(indptr, indices, most):
    """How many entries the squared pattern has with its diagonal; who has found more than `most` stops counting."""
    n, count = len(indptr) - 1, 0
    reached = np.full(n, -1, np.int32)
    for v in range(n):
        reached[v] = v
        count += 1
        for j in rows_near(v, 2, indptr):
            row = row_near(j, v, indptr, indices)
            for k in range(indptr[row], indptr[row + 1]):
                count += reached[indices[k]] != v
                reached[indices[k]] = v
        if count > most:
            break
    return count


@dataclass(frozen=True)
class Graph:
    """The undirected graph of a square matrix: symmetric CSR adjacency without repeated entries.

    Rows are sorted. The diagonal may be stored (copying 158 million indices to drop 6 million would cost more than
    coloring them): kernels skip it, and `degrees` does not count it.

    Attributes
    ----------
    indptr : array of int32 or int64, shape (n + 1,)
    indices : array of int32, shape (nnz,)
    degrees : array of int32, shape (n,)
    n, max_degree : int
    """

    indptr: Any
    indices: Any
    degrees: Any
    n: int
    max_degree: int
    backend: Backend

    @classmethod
    def of(cls, A: Any) -> Graph:
        """Build the graph of the pattern of A, on A's device.

        The pattern is used as it stands when it is symmetric and sorted, which is found out in one pass; otherwise it
        is sorted, freed of duplicates and united with its transpose.

        Raises
        ------
        TypeError, ValueError
            As `admit_matrix`.
        """
        matrix = admit_matrix(A)
        if not matrix.is_symmetric:
            matrix = matrix.symmetrize()
        return cls(matrix.indptr, matrix.indices, matrix.degrees, matrix.shape[0], matrix.max_degree, matrix.backend)

    def square(self) -> Graph:
        """The graph in which vertices with a common neighbor are neighbors, too.

        Raises
        ------
        MemoryError
            Before anything is built, if it would take more than the memory left on the device: 8 bytes an entry on a
            CPU, 16 from 2^31 entries on; on a GPU 40 for every path of one or two edges, which the product lists.
        """
        xp, sparse, on_cpu = self.backend.xp, self.backend.sparse, self.backend.name == "cpu"
        if self.n == 0:  # cuSPARSE multiplies no empty matrices
            return self
        left = available_bytes(self.backend)
        entries = self.paths()
        if on_cpu and 8 * entries > left >= 8 * (self.max_degree + 1) ** 2:
            # There may be fewer: several paths may lead to the same vertex.
            entries = count_square(self.indptr, self.indices, left // 8)
        if entries * (40 if not on_cpu else 8 if entries < INT32_LIMIT else 16) > left:
            raise MemoryError(
                f"the graph of all pairs within distance 2, of some {entries:,} entries, has no room in the "
                f"{left / 2**30:,.1f} GiB left on the {self.backend.name}; use a method that does without it: eb, jp "
                "or greedy"
            )
        ones = xp.ones(self.indices.size, np.float32)
        adjacency = sparse.csr_matrix((ones, self.indices, self.indptr), shape=(self.n, self.n))
        adjacency = adjacency + sparse.identity(self.n, np.float32, format="csr")
        square = (adjacency @ adjacency).tocsr()
        square.sort_indices()
        return Graph.of(square)

    def paths(self) -> int:
        """How many paths of at most two edges there are, counting at most n from a vertex: as many entries at most has
        the squared pattern.
        """
        xp, sparse, n = self.backend.xp, self.backend.sparse, self.n
        ones = xp.ones(self.indices.size, np.float64)
        adjacency = sparse.csr_matrix((ones, self.indices, self.indptr), shape=(n, n))
        degrees = self.degrees + 1.0
        return int(xp.minimum(adjacency @ degrees + degrees, n).sum())
