"""The rows of a rank of PETSc, and those around them that other ranks own, as a matrix of their own.

What a rank computes for its rows, such as a part of a coarse matrix, is then what one process would compute: it has all
rows that this depends on. Ranks compute for the rows in the overlap, too, and do not use that.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from mcprecond.backends import Backend
from mcprecond.interop import petsc_memory
from mcprecond.matrix import canonical_csr, rows_of
from mcprecond.preconditioners.setup import admit

#: How far rows are fetched from. A row of the coarse matrix adds up rows of A P at distance 1, to which rows of P at
#: distance 2 contribute. These need whole rows of A, and the diagonal and the length of the rows at distance 3, by
#: which it is decided what is strong.
LAYERS = 3


class Rows:
    """The rows of a distributed matrix that this rank owns.

    Parameters
    ----------
    A : PETSc.Mat
        Of type AIJ, assembled.
    own, other : csr matrices
        The block on the diagonal, and the other entries, where the backend has them.
    ghosts : array of int64
        The global numbers of the columns of `other`, sorted: its column k is column ``ghosts[k]`` of A.
    backend : Backend

    Attributes
    ----------
    n, first : int
        How many rows there are, and the number of the first one.
    """

    def __init__(self, A: Any, own: Any, other: Any, ghosts: Any, backend: Backend) -> None:
        self.A, self.own, self.other, self.ghosts, self.backend = A, own, other, ghosts, backend
        self.first, end = A.getOwnershipRange()
        self.n = end - self.first

    @classmethod
    def of(cls, A: Any, backend: Backend) -> Rows:
        """Copy them from a matrix, within the GPU that both it and the backend are on."""
        own, other, ghosts = petsc_memory.blocks_of(A)
        on_gpu = backend.name == "gpu" and petsc_memory.is_on_gpu(A)
        parts = [petsc_memory.csr_of(block, on_gpu=on_gpu) for block in (own, other) if block is not None]
        if len(parts) == 1:
            parts.append(scipy.sparse.csr_matrix((parts[0].shape[0], 0), dtype=parts[0].dtype))
        of_rank, of_others = (backend.sparse.csr_matrix(part) for part in parts)
        return cls(A, of_rank, of_others, ghosts, backend)

    @cached_property
    def diagonal_places(self) -> Any:
        """Where `own` has its diagonal."""
        xp = self.backend.xp
        return xp.flatnonzero(rows_of(self.own.indptr, self.own.indices, xp) == self.own.indices)

    @property
    def diagonal(self) -> Any:
        """That of this rank, with zeros where nothing is stored."""
        found = self.backend.xp.zeros(self.n, self.own.dtype)
        found[self.own.indices[self.diagonal_places]] = self.own.data[self.diagonal_places]
        return found

    @property
    def pattern(self) -> list[Any]:
        """All that says where there are entries."""
        return [self.ghosts, self.own.indptr, self.own.indices, self.other.indptr, self.other.indices]

    def damped(self) -> Any:
        """`own` with half of the magnitudes of couplings to other ranks added to the diagonal.

        If A is positive definite, sweeps over this block converge for A on any number of ranks: if M is the matrix of a
        sweep, ``M + M^T - A`` is positive definite, too.

        Baker, Falgout, Kolev, Yang: Multigrid Smoothers for Ultraparallel Computing, SIAM J. Sci. Comput. 33, 2011.
        """
        xp, values = self.backend.xp, self.own.data.copy()
        sums = xp.bincount(rows_of(self.other.indptr, self.other.indices, xp), abs(self.other.data), self.n)
        values[self.diagonal_places] += sums[self.own.indices[self.diagonal_places]] / 2
        return canonical_csr(values, self.own.indices, self.own.indptr, self.own.shape, self.backend)


class Overlap:
    """The matrix of a rank's rows and of those around them, in nodes of some unknowns.

    The unknowns of this rank come first, then layers of those of other ranks: the neighbors of its rows, their
    neighbors, and so on. The last layer is of unknowns whose rows are not known: these have what mirrors the rows
    before, and ones on the diagonal.

    Parameters
    ----------
    rows : Rows
    b : int
        Unknowns of a node.

    Attributes
    ----------
    numbers : array of int64
        The global numbers of the unknowns that follow those of this rank.
    rows : Rows
    matrix : AdmittedMatrix
        With the values of these rows.
    """

    def __init__(self, rows: Rows, b: int) -> None:
        self.n, self.first, self.backend = rows.n, rows.first, rows.backend
        self.alone, xp = rows.A.getComm().getSize() == 1, self.backend.xp
        self.layers: list[Any] = []
        self.numbers = xp.empty(0, np.int64)
        if self.alone:
            self._take(rows, None)
            return
        layer, parts = whole_nodes(xp.asarray(rows.ghosts), b, xp), []
        for _ in range(LAYERS):
            self.layers.append(self.backend.to_host(layer))
            parts.append(fetch_rows(rows.A, self.layers[-1]))
            self.numbers = xp.concatenate((self.numbers, layer))
            columns = whole_nodes(xp.asarray(parts[-1][1]), b, xp)
            outside = columns[(columns < self.first) | (columns >= self.first + self.n)]
            layer = outside[~xp.isin(outside, self.numbers)]
        self.numbers = xp.concatenate((self.numbers, layer))
        self._order = xp.argsort(self.numbers)
        lengths, columns, values = (np.concatenate(part) for part in zip(*parts, strict=True))
        self._find_pattern(rows, xp.asarray(lengths), xp.asarray(columns))
        self._open_scatter(rows.A)
        self._take(rows, values)

    def _find_pattern(self, rows: Rows, lengths: Any, column: Any) -> None:
        """Where the entries of the whole matrix are, and which of the given ones goes where; see `fetch_rows`."""
        xp, known = self.backend.xp, len(lengths)
        row = xp.searchsorted(xp.cumsum(lengths), xp.arange(len(column)), side="right")
        column = self._local(column)
        # Of what is fetched, behind a one.
        source = xp.arange(1, len(row) + 1)
        outermost, new = xp.flatnonzero(column >= self.n + known), xp.arange(known, len(self.numbers))
        row, column, source = (
            xp.concatenate(triple)
            for triple in (
                (row, column[outermost] - self.n, new),
                (column, row[outermost] + self.n, self.n + new),
                (source, source[outermost], xp.zeros(len(new), np.int64)),
            )
        )
        size = self.n + len(self.numbers)
        order = xp.argsort(row * size + column)
        self._source = source[order]
        own, other, beside = rows.own, rows.other, self._local(xp.asarray(rows.ghosts))
        of_own, of_other = (rows_of(part.indptr, part.indices, xp) for part in (own, other))
        self._of_own = xp.arange(own.nnz) + other.indptr[of_own]
        self._of_other = xp.arange(other.nnz) + own.indptr[of_other + 1]
        stored = own.nnz + other.nnz
        self.indices = xp.empty(stored + len(order), np.int32)
        self.indices[self._of_own], self.indices[self._of_other] = own.indices, beside[other.indices]
        self.indices[stored:] = column[order]
        behind = stored + xp.cumsum(xp.bincount(row, minlength=len(self.numbers)))
        self.indptr = xp.concatenate((own.indptr.astype(np.int64) + other.indptr, behind))

    def _local(self, columns: Any) -> Any:
        """The numbers here of columns by their global numbers."""
        xp = self.backend.xp
        mine = (columns >= self.first) & (columns < self.first + self.n)
        place = xp.searchsorted(self.numbers[self._order], columns)
        return xp.where(mine, columns - self.first, self.n + xp.append(self._order, 0)[place])

    def take(self, rows: Rows) -> None:
        """Take the values of these rows, in the same pattern. Collective."""
        values = None if self.alone else np.concatenate([fetch_rows(rows.A, layer)[2] for layer in self.layers])
        self._take(rows, values)

    def _take(self, rows: Rows, fetched_values: Any) -> None:
        self.rows = rows
        if self.alone:
            self.matrix, _ = admit(rows.own, finite=True)
            return
        xp, dtype = self.backend.xp, rows.own.dtype
        values = xp.empty(len(self.indices), dtype)
        values[self._of_own], values[self._of_other] = rows.own.data, rows.other.data
        around = xp.asarray(np.concatenate((np.ones(1, dtype), fetched_values)))
        values[rows.own.nnz + rows.other.nnz :] = around[self._source]
        shape = (len(self.indptr) - 1,) * 2
        self.matrix, _ = admit(canonical_csr(values, self.indices, self.indptr, shape, self.backend), finite=True)

    def _open_scatter(self, A: Any) -> None:
        from petsc4py import PETSc

        numbers = self.backend.to_host(self.numbers).astype(PETSc.IntType)
        places = PETSc.IS().createGeneral(numbers, comm=PETSc.COMM_SELF)
        self._x, self._y = A.createVecLeft(), PETSc.Vec().createSeq(len(numbers))
        self._scatter = PETSc.Scatter().create(self._x, places, self._y, None)
        places.destroy()

    def extend(self, values: Any) -> Any:
        """An array with what each rank has for its unknowns, shape (n, m), and what others have behind. Collective."""
        if self.alone:
            return values
        xp, theirs = self.backend.xp, np.empty((len(self.numbers), values.shape[1]), values.dtype)
        for column, of_ours in zip(theirs.T, values.T, strict=True):
            petsc_memory.take_numbers(self._x, of_ours)
            self._scatter.scatter(self._x, self._y)
            column[:] = self._y.getArray()
        return xp.concatenate((values, xp.asarray(theirs)))

    def destroy(self) -> None:
        """Free what is PETSc's."""
        if not self.alone:
            for each in (self._scatter, self._x, self._y):
                each.destroy()


def whole_nodes(numbers: Any, b: int, xp: Any) -> Any:
    """The unknowns of all nodes that have some of these unknowns, ascending."""
    return (xp.unique(numbers.astype(np.int64) // b)[:, None] * b + xp.arange(b)).reshape(-1)


def fetch_rows(A: Any, numbers: Any) -> tuple[Any, Any, Any]:
    """The lengths, columns and values of rows of a matrix by their global numbers, which ascend. Collective."""
    from petsc4py import PETSc

    rows = PETSc.IS().createGeneral(numbers.astype(PETSc.IntType), comm=PETSc.COMM_SELF)
    columns = PETSc.IS().createStride(A.getSize()[1], 0, 1, comm=PETSc.COMM_SELF)
    (found,) = A.createSubMatrices(rows, columns)
    indptr, indices, values = found.getValuesCSR()
    for each in (found, rows, columns):
        each.destroy()
    return np.diff(indptr), indices, values


def over(A: Any, how: str, value: Any) -> Any:
    """The sum or the minimum of a number of each rank, as how says. All ranks of A have to call."""
    from petsc4py import PETSc

    x = PETSc.Vec().createMPI((1, None), comm=A.getComm())
    x.setArray(np.array([value], PETSc.ScalarType))
    found = x.sum() if how == "sum" else x.min()[1]
    x.destroy()
    return found
