"""The rows of a matrix that a rank has, their products with vectors, and the rows of other ranks that it fetches."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from mcprecond.backends import Backend
from mcprecond.interop import petsc_memory
from mcprecond.interop.petsc_halo import Halo, Ranks, owners_of
from mcprecond.linalg.csr import Csr
from mcprecond.matrix import canonical_csr, rows_of


class Rows:
    """The rows of a distributed square matrix that this rank has.

    Parameters
    ----------
    ranks : Ranks
    own, other : csr matrices
        The block on the diagonal, and the other entries.
    ghosts : array of int64, on the host
        The global numbers of the columns of `other`, ascending: its column k is column ``ghosts[k]`` of A.

    Attributes
    ----------
    n, first, size : int
        The number of rows of this rank, the global number of its first row, and the number of rows of all ranks.
    """

    def __init__(self, ranks: Ranks, own: Any, other: Any, ghosts: Any) -> None:
        self.ranks, self.backend, self.own, self.other, self.ghosts = ranks, ranks.backend, own, other, ghosts
        self.n, self.dtype = own.shape[0], np.dtype(own.dtype)
        of_ranks = ranks.comm.allgather(self.n)
        self.first, self.size = sum(of_ranks[: ranks.comm.rank]), sum(of_ranks)

    @classmethod
    def of(cls, A: Any, ranks: Ranks) -> Rows:
        """Copy those of a matrix of PETSc, within the GPU that both it and the backend are on. Collective."""
        own, other, ghosts = petsc_memory.blocks_of(A)
        on_gpu = ranks.backend.name == "gpu" and petsc_memory.is_on_gpu(A)
        parts = [petsc_memory.csr_of(block, on_gpu=on_gpu) for block in (own, other) if block is not None]
        if len(parts) == 1:
            parts.append(scipy.sparse.csr_matrix((parts[0].shape[0], 0), dtype=parts[0].dtype))
        of_rank, of_others = (ranks.backend.sparse.csr_matrix(part) for part in parts)
        return cls(ranks, of_rank, of_others, ghosts)

    @classmethod
    def computed(cls, ranks: Ranks, csr: Any, n: int, numbers: Any) -> Rows:
        """The first n rows of a computed matrix, whose columns behind have these global numbers. Collective."""
        xp = ranks.backend.xp
        indptr = csr.indptr[: n + 1]
        indices, values = (array[: int(indptr[-1])] for array in (csr.indices, csr.data))
        is_own = indices < n
        of_own = xp.concatenate((xp.zeros(1, np.int64), xp.cumsum(is_own)))[indptr]
        own = canonical_csr(values[is_own], indices[is_own], of_own, (n, n), ranks.backend)
        beside, theirs = xp.unique(indices[~is_own] - n, return_inverse=True)
        shape = n, len(beside)
        other = canonical_csr(values[~is_own], theirs.astype(np.int32), indptr - of_own, shape, ranks.backend)
        return cls(ranks, own, other, numbers[ranks.backend.to_host(beside)])

    @cached_property
    def whole(self) -> Any:
        """Both parts side by side: a matrix whose column n + k is that of ``ghosts[k]``."""
        own, other, xp = self.own, self.other, self.backend.xp
        indptr, entries = own.indptr.astype(np.int64) + other.indptr, own.nnz + other.nnz
        indices, values = xp.empty(entries, np.int32), xp.empty(entries, own.dtype)
        of_own = xp.arange(own.nnz) + other.indptr[rows_of(own.indptr, own.indices, xp)]
        of_other = xp.arange(other.nnz) + own.indptr[rows_of(other.indptr, other.indices, xp) + 1]
        indices[of_own], indices[of_other] = own.indices, other.indices + self.n
        values[of_own], values[of_other] = own.data, other.data
        return canonical_csr(values, indices, indptr, (self.n, self.n + len(self.ghosts)), self.backend)

    @cached_property
    def diagonal_places(self) -> Any:
        """Where `own` has its diagonal."""
        xp = self.backend.xp
        return xp.flatnonzero(rows_of(self.own.indptr, self.own.indices, xp) == self.own.indices)

    @property
    def diagonal(self) -> Any:
        """That of this rank, with zeros where nothing is stored."""
        found = self.backend.xp.zeros(self.n, self.dtype)
        found[self.own.indices[self.diagonal_places]] = self.own.data[self.diagonal_places]
        return found

    @property
    def pattern(self) -> list[Any]:
        """All that says where there are entries."""
        return [self.ghosts, self.own.indptr, self.own.indices, self.other.indptr, self.other.indices]

    @cached_property
    def is_finite(self) -> bool:
        """Whether all values of all ranks are. Collective."""
        xp, parts = self.backend.xp, (self.own.data, self.other.data)
        return not self.ranks.sum(sum(int(xp.count_nonzero(~xp.isfinite(values))) for values in parts))

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether ``x^T A y`` is ``y^T A x`` for random vectors, up to rounding. They are scaled as the diagonal of A
        is, which has to be positive. Collective.

        An entry that differs from that across by more than roundings do makes both differ, with certainty but for
        rounding.
        """
        xp, scales, rng = self.backend.xp, self.diagonal**-0.5, self.backend.xp.random.default_rng(self.first)
        A = DistributedMatrix(self)
        vectors, products = [A.halo.new_vector() for _ in range(2)], []
        for v in vectors:
            v[: self.n] = (2 * rng.random(self.n) - 1) * scales
        z = xp.empty(self.n, self.dtype)
        for v, w in (vectors, vectors[::-1]):
            A.enqueue(v, z)
            products.append(self.ranks.sum(float(z @ w[: self.n])))
        entries = self.ranks.sum(self.own.nnz + self.other.nnz)
        return bool(abs(products[0] - products[1]) <= np.sqrt(np.finfo(self.dtype).eps * entries))

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

    def fetch(self, numbers: Any) -> tuple[Any, Any, Any]:
        """On the host, the lengths, columns and values of rows of A, by global numbers that ascend. Collective."""
        comm, xp = self.ranks.comm, self.backend.xp
        owners = owners_of(numbers, self.first, comm)
        asked = comm.alltoall([numbers[owners == rank] for rank in range(comm.size)])
        wanted = xp.asarray(np.concatenate(asked) - self.first)
        begins, lengths = self.whole.indptr[wanted], xp.diff(self.whole.indptr)[wanted]
        ends = xp.cumsum(lengths)
        owner = xp.searchsorted(ends, xp.arange(int(ends[-1]) if len(ends) else 0), side="right")
        places = xp.arange(len(owner)) + (begins - ends + lengths)[owner]
        columns = xp.concatenate((xp.arange(self.first, self.first + self.n), xp.asarray(self.ghosts)))
        found = lengths, columns[self.whole.indices[places]], self.whole.data[places]
        lengths, columns, values = map(self.backend.to_host, found)
        of_ranks = np.cumsum([len(each) for each in asked])
        cuts = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))[of_ranks][:-1]
        answers = [np.split(lengths, of_ranks[:-1]), np.split(columns, cuts), np.split(values, cuts)]
        received = comm.alltoall(list(zip(*answers, strict=True)))
        theirs = [np.concatenate(part) for part in zip(*received, strict=True)]
        return theirs[0], theirs[1], theirs[2]


class Part:
    """This rank's rows of a matrix, as an operator on vectors with a halo.

    Parameters
    ----------
    csr : csr matrix
        Its first rows are this rank's, and its first columns are this rank's unknowns.
    rows, columns : int
        How many these are.
    numbers : array of int64
        The global numbers of the columns behind.
    halo : Halo
        Of the vectors that the operator is applied to.
    dtype, stored : dtype
        Of the products, and of the values that it reads.
    """

    def __init__(
        self, csr: Any, rows: int, columns: int, numbers: Any, halo: Halo, dtype: Any, stored: Any
    ) -> None:  # fmt: skip
        backend, xp = halo.ranks.backend, halo.ranks.backend.xp
        indptr = csr.indptr[: rows + 1]
        indices = csr.indices[: int(indptr[-1])]
        places = xp.concatenate((xp.arange(columns), columns + xp.searchsorted(xp.asarray(halo.ghosts), numbers)))
        shape, argument = (rows, halo.room), halo.new_vector().dtype
        matrix = canonical_csr(csr.data[: len(indices)], places[indices].astype(np.int32), indptr, shape, backend)
        longest = int(xp.diff(indptr).max()) if rows else 0
        self.operator = Csr(matrix, backend, stored=stored, dtype=dtype, argument=argument, longest_row=longest)
        self.state = self.operator.new_state()

    def take(self, values: Any) -> None:
        """Take other values of the whole matrix."""
        self.operator.values[...] = values[: len(self.operator.values)]

    def enqueue(self, x: Any, y: Any) -> None:
        """y = A x, for an x with its halo."""
        self.operator.enqueue(self.state, x, y)

    def enqueue_sum(self, x: Any, y: Any) -> None:
        """y += A x."""
        self.operator.enqueue_sum(self.state, x, y)


def ghosts_of(csr: Any, rows: int, columns: int, numbers: Any, backend: Backend) -> Any:
    """Of the global numbers of the columns behind those of this rank, the ones that its rows read; on the host."""
    indices = csr.indices[: int(csr.indptr[rows])]
    there = backend.xp.zeros(len(numbers), bool)
    there[indices[indices >= columns] - columns] = True
    return backend.to_host(numbers[there])


class DistributedMatrix:
    """The rows of a matrix as an operator on distributed vectors.

    Parameters
    ----------
    rows : Rows
    dtype, stored : dtype, optional
        Of the vectors, and of the values that it reads; by default those of the rows.
    further : arrays of int64
        The global numbers of what other matrices read of the vectors.
    """

    def __init__(self, rows: Rows, dtype: Any = None, stored: Any = None, further: tuple[Any, ...] = ()) -> None:
        self.n, self.backend, self.ranks, self.dtype = rows.n, rows.backend, rows.ranks, np.dtype(dtype or rows.dtype)
        ghosts = np.unique(np.concatenate((rows.ghosts, *further)))
        self.halo = Halo(rows.ranks, rows.first, rows.n, ghosts, self.dtype)
        numbers = self.backend.xp.asarray(rows.ghosts)
        self.part = Part(rows.whole, rows.n, rows.n, numbers, self.halo, self.dtype, stored or rows.dtype)

    def take(self, rows: Rows) -> None:
        """Take other values, into the same arrays."""
        self.part.take(rows.whole.data)

    def enqueue(self, x: Any, y: Any) -> None:
        """y = A x, for an x with room for a halo. Collective."""
        self.halo.fill(x)
        self.part.enqueue(x, y)

    def enqueue_residual(self, b: Any, x: Any, r: Any) -> None:
        """r = b - A x. Collective."""
        self.halo.fill(x)
        self.part.operator.enqueue_residual(self.part.state, b, x, r[: self.n])
