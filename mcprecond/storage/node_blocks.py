"""Blocks of nodes: color blocks of a matrix whose unknowns come b by b, as displacements do in elasticity.

The nodes are colored instead of the unknowns. A triangle has a dense b x b block for each pair of neighboring nodes,
with zeros where A stores nothing, and one index per block; the diagonal consists of such blocks, too. Rows of the upper
triangle are not divided: on a GPU that takes longer, at each update, than it saves.

On a GPU the numbers of the blocks that the threads of a warp take in one step lie number by number: first the upper
left ones of all these blocks, and so on, so that a warp reads contiguous memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet, compile_row
from mcprecond.backends.arguments import integer
from mcprecond.backends.sorting import lower_bound
from mcprecond.coloring import Coloring
from mcprecond.matrix import AdmittedMatrix, admit_matrix
from mcprecond.ordering.color_order import swept_coloring
from mcprecond.storage.color_blocks import ColorBlocks
from mcprecond.storage.diagnosis import first_other_row
from mcprecond.storage.node_values import KERNELS as VALUE_KERNELS
from mcprecond.storage.node_values import THREADS_PER_SLICE
from mcprecond.storage.triangle import Triangle

KERNELS = KernelSet(__file__, "OFFSET VALUE STORED BLOCK_SIZE LANES")


class NodeBlocks(ColorBlocks):
    """The permutation of a coloring of nodes, and P A Pᵀ stored as lower + diagonal + upper in blocks.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, shape (n, n)
        Real or complex floats, any format; n = b n_nodes. Node i has the unknowns b i .. b i + b - 1.
    coloring : str, Coloring or array of int, shape (n_nodes,)
        A method of `color`, or a coloring of the graph of nodes, which is checked.
    block_size : int
        b, at least 2.
    dtype : dtype, optional
        Of the stored triangles; that of A by default. The diagonal keeps the dtype of A.

    Attributes
    ----------
    coloring, perm, inverse, offsets, slices
        As in `ColorBlocks`, of nodes.
    lower, upper : Triangle
        With values of shape (entries, b, b).
    diagonal, dinv : array, shape (n_nodes, b, b)
        In color order, and the inverses.

    Raises
    ------
    TypeError, ValueError
        As `ColorBlocks`; also if b does not divide n.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from mcprecond.storage import NodeBlocks
    >>> A = scipy.sparse.csr_array(np.kron([[4.0, -1.0], [-1.0, 4.0]], [[2.0, 1.0], [1.0, 2.0]]))
    >>> blocks = NodeBlocks(A, [1, 0], block_size=2)
    >>> blocks.lower.values
    array([[[-2., -1.],
            [-1., -2.]]])
    """

    def __init__(self, A: Any, coloring: str | Coloring | Any = "auto", *, block_size: int, dtype: Any = None) -> None:
        matrix = admit_matrix(A, floats=True).canonical()
        self.block_size = integer(block_size, "block_size", 2)
        nodes = admit_matrix(node_pattern(matrix, block_size))
        colors: Any = getattr(coloring, "colors", coloring)
        if np.shape(colors) == (matrix.shape[0],) != (nodes.shape[0],):
            raise ValueError(
                f"coloring must be one of the {nodes.shape[0]} nodes of A, got {matrix.shape[0]} colors; pass "
                "block_size=1 if they are those of the unknowns"
            )
        # Without holes, entry number `source` of a row of nodes begins at b times that number in each row of A.
        self._full = matrix.indices.size == nodes.indices.size * block_size**2
        self._store(matrix, nodes, swept_coloring(nodes, coloring), dtype, divides=False)

    @property
    def vector_shape(self) -> tuple[int, ...]:
        return len(self.perm), self.block_size

    def _new_values(self, entries: int, dtype: Any) -> Any:
        return self.backend.xp.empty((entries, self.block_size, self.block_size), dtype)

    def _kernels(self, kernel_set: KernelSet, **macros: Any) -> Any:
        return self.backend.kernels(
            kernel_set,
            OFFSET=self.lower.indptr.dtype,
            VALUE=self.dtype,
            STORED=self._stored,
            BLOCK_SIZE=self.block_size,
            **macros,
        )

    def _fill_values(self, csr: Any, words: Any) -> None:
        lower, upper = ((part.indptr, part.columns, part.source, part.values) for part in (self.lower, self.upper))
        run = self._kernels(VALUE_KERNELS, SOURCE=self.lower.source.dtype, LANES=THREADS_PER_SLICE)
        run.fill_blocks(
            self.n_slices,
            self.slices,
            *lower,
            *upper,
            self._diagonal_source,
            self.diagonal,
            self.perm,
            int(self._full),
            *self.pattern_of(csr),
            csr.data,
            self._expected,
            words,
        )
        run.invert_diagonal(len(self.perm), self.diagonal, self.dinv, self._expected, words)

    def refuse_singular_diagonal(self) -> None:
        """Raise ValueError if a block of the diagonal is singular, naming the rows of the first such block."""
        if self._fingerprint.no_pivots:
            b, singular = self.block_size, ~self.backend.xp.isfinite(self.dinv).all(axis=(1, 2))
            first = int(self.perm[singular].min()) * b
            raise ValueError(
                f"the diagonal block of A in rows {first} to {first + b - 1} is singular; block Gauss-Seidel inverts it"
            )

    def permuted(self) -> Any:
        """Return P A Pᵀ as a CSR matrix with sorted rows, on the device of A; it stores the whole of every block."""
        self.refuse_halfway()
        xp, b, n_nodes = self.backend.xp, self.block_size, len(self.perm)
        nodes = xp.arange(n_nodes, dtype=np.int32)
        rows, columns, values = [nodes], [nodes], [self.diagonal]
        for triangle in (self.lower, self.upper):
            rows.append(triangle.rows_of_entries(xp))
            columns.append(self.columns_by_rows(triangle))
            values.append(self._values_by_rows(triangle))
        row, column, value = (xp.concatenate(arrays) for arrays in (rows, columns, values))
        within = xp.arange(b, dtype=np.int32)
        i = xp.broadcast_to(row[:, None, None] * b + within[:, None], value.shape).reshape(-1)
        j = xp.broadcast_to(column[:, None, None] * b + within, value.shape).reshape(-1)
        matrix = self.backend.sparse.coo_matrix((value.reshape(-1), (i, j)), shape=self.shape).tocsr()
        matrix.sort_indices()
        return matrix

    def _where_other(self, csr: Any) -> str:
        """Which entries of a block A had is not known, only which blocks."""
        b = self.block_size
        matrix = AdmittedMatrix.computed(csr, self.backend, self.longest_row, is_symmetric=False)
        node = first_other_row(self, node_pattern(matrix, b))
        return "inside of its blocks" if node is None else f"in rows {b * node} to {b * node + b - 1}"

    def _values_by_rows(self, triangle: Triangle) -> Any:
        values = self.backend.xp.empty_like(triangle.values)
        self._kernels(KERNELS, LANES=32).blocks_by_rows(
            self.n_slices, self.slices, triangle.indptr, triangle.columns, triangle.values, values
        )
        return values.astype(self.dtype)


def node_pattern(matrix: AdmittedMatrix, block_size: int) -> Any:
    """Return the pattern of the nodes of a canonical matrix: a canonical CSR matrix of ones, float32."""
    if matrix.shape[0] % block_size:
        raise ValueError(f"block_size {block_size} does not divide the {matrix.shape[0]} unknowns of A")
    backend, n_nodes, pattern = matrix.backend, matrix.shape[0] // block_size, (matrix.indptr, matrix.indices)
    xp, offset, dtype = backend.xp, matrix.indptr.dtype, matrix.dtype
    run = backend.kernels(KERNELS, OFFSET=offset, VALUE=dtype, STORED=dtype, BLOCK_SIZE=block_size, LANES=32)
    counts = xp.zeros(n_nodes + 1, offset)
    run.count_blocks(n_nodes, *pattern, counts[1:])
    indptr = xp.cumsum(counts, dtype=offset)
    indices = xp.empty(int(indptr[-1]), np.int32)
    run.list_blocks(n_nodes, *pattern, indptr, indices)
    nodes = backend.sparse.csr_matrix((xp.ones(len(indices), np.float32), indices, indptr), shape=(n_nodes, n_nodes))
    nodes.sort_indices()
    return nodes


# The CPU's functions take the size of a block from the shape of their arrays, or from the ratio of two row counts.


@compile_row
def opens_block(first_row, row, k, b, indptr, indices):
    """Whether entry k of a row is the first one of its node's rows, from first_row on, in that column of nodes."""
    begin = indices[k] // b * b
    if k > indptr[row] and indices[k - 1] >= begin:
        return False
    for other in range(first_row, row):
        e = indptr[other] + (k - indptr[row])  # where the entry is if rows of a node have the same columns
        if e < indptr[other + 1] and begin <= indices[e] < begin + b:
            return False
        e = lower_bound(indices, indptr[other], indptr[other + 1], begin)
        if e < indptr[other + 1] and indices[e] < begin + b:
            return False
    return True


@KERNELS.per_item
def count_blocks(first, end, indptr, indices, counts):
    """How many blocks each row of nodes has."""
    b = (len(indptr) - 1) // len(counts)
    for node in range(first, end):
        count = 0
        for row in range(b * node, b * (node + 1)):
            for k in range(indptr[row], indptr[row + 1]):
                count += opens_block(b * node, row, k, b, indptr, indices)
        counts[node] = count


@KERNELS.per_item
def list_blocks(first, end, indptr, indices, node_indptr, node_indices):
    """List the columns of the blocks."""
    b = (len(indptr) - 1) // (len(node_indptr) - 1)
    for node in range(first, end):
        e = node_indptr[node]
        for row in range(b * node, b * (node + 1)):
            for k in range(indptr[row], indptr[row + 1]):
                if opens_block(b * node, row, k, b, indptr, indices):
                    node_indices[e] = indices[k] // b
                    e += 1


@KERNELS.per_item_driver
def blocks_by_rows(n_slices, slices, block_indptr, columns, blocks, result):
    """The blocks in the order of CSR."""
    for e in range(block_indptr[slices[n_slices]]):
        result[e] = blocks[e]
