"""The rows of a matrix that a rank has, their products with vectors, and the rows of other ranks that it fetches."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from mcprecond.backends import Backend, KernelSet, offset_type
from mcprecond.backends.inputs import any_of
from mcprecond.interop import petsc_memory
from mcprecond.interop.petsc_halo import Halo, Ranks, Request, ranges_of
from mcprecond.linalg.csr import Csr, lanes_for
from mcprecond.matrix import canonical_csr, diagonal_places, read_diagonal

KERNELS = KernelSet(__file__, "OFFSET VALUE LANES")


class Rows:
    """The rows of a distributed square matrix that this rank has.

    Parameters
    ----------
    ranks : Ranks
    whole : csr matrix, shape (n, n + k)
        The first n columns belong to the unknowns of this rank, and column n + j belongs to the unknown with the global
        number ``ghosts[j]``.
    ghosts : array of int64, shape (k,), on the host
        The global numbers of the unknowns of other ranks that the rows refer to, in ascending order.

    Attributes
    ----------
    n, first, size : int
        The number of rows of this rank, the global number of its first row, and the number of rows of all ranks.
    firsts : array of int64, on the host
        The global number of the first row of each rank.
    """

    def __init__(self, ranks: Ranks, whole: Any, ghosts: Any) -> None:
        self.ranks, self.backend, self.whole, self.ghosts = ranks, ranks.backend, whole, ghosts
        self.n, self.dtype = whole.shape[0], np.dtype(whole.dtype)
        ends = np.cumsum(ranks.comm.allgather(self.n), dtype=np.int64)
        self.firsts, self.size = np.concatenate(([0], ends[:-1])), int(ends[-1])
        self.first = int(self.firsts[ranks.comm.rank])

    @classmethod
    def of(cls, A: Any, ranks: Ranks) -> Rows:
        """Copy those of a matrix of PETSc, within the GPU that both it and the backend are on. Collective."""
        own, other, ghosts = petsc_memory.blocks_of(A)
        on_gpu = ranks.backend.name == "gpu" and petsc_memory.is_on_gpu(A)
        whole = ranks.backend.sparse.csr_matrix(petsc_memory.csr_of(own, on_gpu=on_gpu))
        if other is not None and len(ghosts):
            beside = ranks.backend.sparse.csr_matrix(petsc_memory.csr_of(other, on_gpu=on_gpu))
            whole = side_by_side(whole, beside, ranks.backend)
        return cls(ranks, whole, ghosts)

    @classmethod
    def computed(cls, ranks: Ranks, csr: Any, n: int, numbers: Any) -> Rows:
        """The first n rows of a computed matrix, whose columns behind have these global numbers. Collective."""
        xp = ranks.backend.xp
        indptr = csr.indptr[: n + 1]
        indices, values = (array[: int(indptr[-1])] for array in (csr.indices, csr.data))
        is_read = xp.zeros(n + len(numbers), bool)
        is_read[indices] = True
        is_read = is_read[n:]
        places = xp.concatenate((xp.arange(n), n - 1 + xp.cumsum(is_read))).astype(np.int32)
        ghosts = numbers[ranks.backend.to_host(is_read)]
        whole = canonical_csr(values, places[indices], indptr, (n, n + len(ghosts)), ranks.backend)
        return cls(ranks, whole, ghosts)

    @property
    def entries(self) -> int:
        """The number of entries of these rows."""
        return len(self.whole.indices)

    @cached_property
    def own(self) -> Any:
        """The block on the diagonal, for the unknowns of this rank alone."""
        if not len(self.ghosts):
            return self.whole
        whole, backend, xp = self.whole, self.backend, self.backend.xp
        indptr = xp.concatenate((xp.zeros(1, np.int64), xp.cumsum(whole.indices < self.n)))[whole.indptr]
        entries = int(indptr[-1])
        indices, values = xp.empty(entries, np.int32), xp.empty(entries, self.dtype)
        begins = whole.indptr[:-1]
        copy_parts(begins, begins + xp.diff(indptr), whole, 0, indptr, indices, values, backend)
        return canonical_csr(values, indices, indptr, (self.n, self.n), backend)

    @cached_property
    def operator(self) -> DistributedMatrix:
        """A as an operator, for vectors that have room for its halo. Collective."""
        return DistributedMatrix(self)

    @cached_property
    def diagonal(self) -> Any:
        """That of this rank, with zeros where nothing is stored."""
        return read_diagonal(self.whole.indptr, self.whole.indices, self.whole.data, self.backend)[0]

    @property
    def pattern(self) -> list[Any]:
        """All that says where there are entries."""
        return [self.ghosts, self.whole.indptr, self.whole.indices]

    @cached_property
    def is_finite(self) -> bool:
        """Whether all values of all ranks are. Collective."""
        return not self.ranks.sum(int(any_of(~self.backend.xp.isfinite(self.whole.data))))

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether ``x^T A y`` is ``y^T A x`` for random vectors, up to rounding. They are scaled as the diagonal of A
        is, which has to be positive. Collective.

        An entry that differs from that across by more than roundings do makes both differ, with certainty but for
        rounding.
        """
        xp, scales, rng = self.backend.xp, self.diagonal**-0.5, self.backend.xp.random.default_rng(self.first)
        A, products = self.operator, list[float]()
        vectors = [A.halo.new_vector() for _ in range(2)]
        for v in vectors:
            v[: self.n] = (2 * rng.random(self.n) - 1) * scales
        z = xp.empty(self.n, self.dtype)
        for v, w in (vectors, vectors[::-1]):
            A.enqueue(v, z)
            products.append(self.ranks.sum(float(z @ w[: self.n])))
        entries = self.ranks.sum(self.entries)
        return bool(abs(products[0] - products[1]) <= np.sqrt(np.finfo(self.dtype).eps * entries))

    def damped(self) -> Any:
        """`own` with half of the magnitudes of couplings to other ranks added to the diagonal.

        If A is positive definite, sweeps over this block converge for A on any number of ranks: if M is the matrix of a
        sweep, ``M + M^T - A`` is positive definite, too.

        Baker, Falgout, Kolev, Yang: Multigrid Smoothers for Ultraparallel Computing, SIAM J. Sci. Comput. 33, 2011.
        """
        xp, own, whole, values = self.backend.xp, self.own, self.whole, self.own.data.copy()
        outside = xp.flatnonzero(whole.indices >= self.n)
        rows = xp.searchsorted(whole.indptr, outside, side="right") - 1
        sums = xp.bincount(rows, abs(whole.data[outside]), self.n)
        values[diagonal_places(own, xp.arange(self.n), self.backend)] += sums / 2
        return canonical_csr(values, own.indices, own.indptr, own.shape, self.backend)

    @property
    def columns(self) -> Any:
        """The global numbers of the columns of `whole`."""
        xp = self.backend.xp
        return xp.concatenate((xp.arange(self.first, self.first + self.n), xp.asarray(self.ghosts)))

    def request(self, numbers: Any) -> Request:
        """A request for the unknowns of other ranks with these global numbers; see `Request`. Collective."""
        return Request(self.ranks, self.firsts, numbers)

    def fetch(self, request: Request, whole: Any = None, columns: Any = None) -> tuple[Any, Any, Any]:
        """Return the lengths, the global columns and the values of rows that other ranks store. Collective.

        Parameters
        ----------
        request : Request
            For the rows.
        whole : csr matrix, optional
            The rows of another matrix that this rank stores; by default those of A.
        columns : array of int64, optional
            The global numbers of the columns of `whole`.
        """
        ranks, xp, to_host = self.ranks, self.backend.xp, self.backend.to_host
        whole, columns = (self.whole, self.columns) if whole is None else (whole, columns)
        begins, lengths = whole.indptr[request.taken], xp.diff(whole.indptr)[request.taken].astype(np.int64)
        received = xp.empty(sum(request.receives), np.int64)
        ranks.exchange(lengths, ranges_of(request.sends), received, ranges_of(request.receives))
        # How many entries each rank gets, and how many it sends here.
        sends, receives = (
            ranges_of([int(part.sum()) for part in np.split(to_host(each), np.cumsum(counts)[:-1])])
            for each, counts in ((lengths, request.sends), (received, request.receives))
        )
        ends = xp.cumsum(lengths)
        row = xp.searchsorted(ends, xp.arange(sends[-1][2] if sends else 0), side="right")
        places = xp.arange(len(row)) + (begins - ends + lengths)[row]
        found = []
        for sent in (columns[whole.indices[places]], whole.data[places]):
            found.append(xp.empty(receives[-1][2] if receives else 0, sent.dtype))
            ranks.exchange(sent, sends, found[-1], receives)
        return received, found[0], found[1]


class Part:
    """The first rows of a matrix as an operator.

    Parameters
    ----------
    csr : csr matrix
    rows, columns : int
        Of the operator.
    backend : Backend
    dtype, stored, argument : dtype, optional
        See `Csr`.
    places : array of int32, optional
        The columns of the operator for those of the matrix; by default the same.
    """

    def __init__(
        self,
        csr: Any,
        rows: int,
        columns: int,
        backend: Backend,
        *,
        dtype: Any = None,
        stored: Any = None,
        argument: Any = None,
        places: Any = None,
    ) -> None:
        indptr = csr.indptr[: rows + 1]
        entries = int(indptr[-1])
        indices = csr.indices[:entries] if places is None else places[csr.indices[:entries]]
        matrix = canonical_csr(csr.data[:entries], indices, indptr, (rows, columns), backend)
        longest = int(backend.xp.diff(indptr).max()) if rows else 0
        self.operator = Csr(matrix, backend, stored=stored, dtype=dtype, argument=argument, longest_row=longest)
        self.state = self.operator.new_state()

    def take(self, values: Any) -> None:
        """Take other values of the matrix."""
        self.operator.values[...] = values[: len(self.operator.values)]

    def enqueue(self, x: Any, y: Any) -> None:
        """y = A x."""
        self.operator.enqueue(self.state, x, y)

    def enqueue_sum(self, x: Any, y: Any) -> None:
        """y += A x."""
        self.operator.enqueue_sum(self.state, x, y)

    def enqueue_residual(self, b: Any, x: Any, r: Any) -> None:
        """r = b - A x."""
        self.operator.enqueue_residual(self.state, b, x, r)


def side_by_side(first: Any, second: Any, backend: Backend) -> Any:
    """Return the matrix ``[first, second]``, for two matrices with the same number of rows."""
    xp, (n, columns) = backend.xp, first.shape
    entries = first.nnz + second.nnz
    offset = offset_type(entries)
    of_first, of_second = (part.indptr.astype(offset, copy=False) for part in (first, second))
    indptr, indices, values = of_first + of_second, xp.empty(entries, np.int32), xp.empty(entries, first.dtype)
    begins = indptr[:-1]
    copy_parts(of_first[:-1], of_first[1:], first, 0, begins, indices, values, backend)
    behind = begins + xp.diff(of_first)
    copy_parts(of_second[:-1], of_second[1:], second, columns, behind, indices, values, backend)
    return canonical_csr(values, indices, indptr, (n, columns + second.shape[1]), backend)


def copy_parts(
    begins: Any, ends: Any, csr: Any, shift: int, begins_there: Any, indices: Any, values: Any, backend: Backend
) -> None:  # fmt: skip
    """Copy a part of each row of a matrix into other arrays.

    The part of row i consists of the entries from ``begins[i]`` to ``ends[i]``. It is stored from ``begins_there[i]``
    on, and `shift` is added to its column numbers.
    """
    offset, n = offset_type(max(csr.nnz, len(values))), len(begins)
    lanes = lanes_for(csr.nnz / max(n, 1))
    begins, ends, begins_there = (places.astype(offset, copy=False) for places in (begins, ends, begins_there))
    run = backend.kernels(KERNELS, OFFSET=offset, VALUE=values.dtype, LANES=lanes)
    columns = csr.indices.astype(np.int32, copy=False)
    run.copy_rows(n, begins, ends, columns, csr.data, shift, begins_there, indices, values)


# On the CPU.


@KERNELS.per_item
def copy_rows(first, end, begins, ends, indices, values, shift, begins_there, indices_there, values_there):
    """See `copy_parts`."""
    for i in range(first, end):
        begin, there = begins[i], begins_there[i]
        for k in range(ends[i] - begin):
            indices_there[there + k] = indices[begin + k] + shift
            values_there[there + k] = values[begin + k]


class DistributedMatrix:
    """The rows of a matrix as an operator on distributed vectors."""

    def __init__(self, rows: Rows) -> None:
        self.n, self.backend, self.ranks, self.dtype = rows.n, rows.backend, rows.ranks, rows.dtype
        self.halo = Halo(rows.ranks, rows.n, [rows.request(rows.ghosts)], self.dtype)
        self.part = Part(rows.whole, rows.n, self.halo.room, self.backend)

    def enqueue(self, x: Any, y: Any) -> None:
        """y = A x, for an x with room for a halo. Collective."""
        self.halo.fill(x)
        self.part.enqueue(x, y)

    def enqueue_residual(self, b: Any, x: Any, r: Any) -> None:
        """r = b - A x. Collective."""
        self.halo.fill(x)
        self.part.enqueue_residual(b, x, r)
