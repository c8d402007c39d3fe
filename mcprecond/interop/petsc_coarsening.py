"""From one level to the next across the ranks of PETSc: each rank aggregates its own rows.

Aggregates end where the rows of a rank end (uncoupled aggregation), so that the tentative prolongator T is block
diagonal over the ranks. The prolongator ``P = (I - omega D F) T`` is not: F, the filtered matrix, keeps the strong
couplings between ranks. So P is what one process would make of these aggregates. This package finds strong couplings,
aggregates, T and F; PETSc multiplies ``(I - omega D F) T`` and ``P^H A P``.

Tuminaro, Tong: Parallel Smoothed Aggregation Multigrid: Aggregation Strategies on Massively Parallel Machines, SC 2000.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from mcprecond.backends import Backend
from mcprecond.matrix import AdmittedMatrix, admitted
from mcprecond.multigrid.aggregation import aggregates
from mcprecond.multigrid.coarsening import MOST_KEPT, nodes_of, tentative_pattern
from mcprecond.multigrid.filtered import FilteredMatrix
from mcprecond.multigrid.galerkin import MOST_GROWTH, OMEGA
from mcprecond.multigrid.patterns import product_pattern
from mcprecond.multigrid.strength import SHARE_OF_AVERAGE, Connections, strong_connections
from mcprecond.multigrid.transfer import tentative
from mcprecond.multigrid.units import CANCELED, NOT_DEFINITE


class Rows:
    """The rows of a distributed matrix that this rank owns, copied.

    Parameters
    ----------
    A : PETSc.Mat
        Of type AIJ, assembled.

    Attributes
    ----------
    n, first : int
        How many rows there are, and the number of the first one.
    ghosts : array of int
        The columns of other ranks that they have entries in.
    own, other : csr_matrix
        The block on the diagonal, and the other entries: column k is that of ``ghosts[k]``.
    """

    def __init__(self, A: Any) -> None:
        self.A = A
        self.first, end = A.getOwnershipRange()
        self.n = n = end - self.first
        indptr, columns, values = A.getValuesCSR()
        mine = (columns >= self.first) & (columns < end)
        self.ghosts = np.unique(columns[~mine])
        of_own = np.concatenate(([0], np.cumsum(mine)))[indptr]
        own = values[mine], columns[mine] - self.first, of_own
        other = values[~mine], np.searchsorted(self.ghosts, columns[~mine]), indptr - of_own
        self.own = scipy.sparse.csr_matrix(own, shape=(n, n))
        self.other = scipy.sparse.csr_matrix(other, shape=(n, len(self.ghosts)))

    @cached_property
    def diagonal_places(self) -> Any:
        """Where `own` has its diagonal."""
        return np.flatnonzero(np.repeat(np.arange(self.n), np.diff(self.own.indptr)) == self.own.indices)

    @cached_property
    def rows_of_other(self) -> Any:
        """The row of each entry of `other`."""
        return np.repeat(np.arange(self.n), np.diff(self.other.indptr))

    @property
    def sums_of_own(self) -> Any:
        """The sums of the magnitudes of the rows of `own`."""
        magnitudes = abs(self.own.data), self.own.indices, self.own.indptr
        return scipy.sparse.csr_matrix(magnitudes, shape=self.own.shape) @ np.ones(self.n)

    @property
    def sums_of_other(self) -> Any:
        """Those of `other`."""
        return np.bincount(self.rows_of_other, abs(self.other.data), self.n)

    def of_ghosts(self, values: Any) -> Any:
        """What the ranks that own the ghosts have in this array, which has a number for each row. Collective."""
        from petsc4py import PETSc

        places = PETSc.IS().createGeneral(self.ghosts.astype(PETSc.IntType), comm=PETSc.COMM_SELF)
        x, y = self.A.createVecLeft(), PETSc.Vec().createSeq(len(self.ghosts))
        x.setArray(values)
        scatter = PETSc.Scatter().create(x, places, y, None)
        scatter.scatter(x, y)
        found = y.getArray().astype(values.dtype)
        for each in (scatter, places, x, y):
            each.destroy()
        return found

    @property
    def pattern(self) -> list[Any]:
        """All that says where there are entries."""
        return [self.first, self.ghosts, self.own.indptr, self.own.indices, self.other.indptr, self.other.indices]

    def damped(self, before: Any = None) -> Any:
        """The block of this rank, with half of the magnitudes of couplings to other ranks on its diagonal.

        If A is positive definite, sweeps over this block converge for A on any number of ranks: if M is the matrix of a
        sweep, ``M + M^T - A`` is positive definite, too. The block is returned as a matrix of the type of A; its values
        are written into `before` if that is given.

        Baker, Falgout, Kolev, Yang: Multigrid Smoothers for Ultraparallel Computing, SIAM J. Sci. Comput. 33, 2011.
        """
        values = self.own.data.copy()
        values[self.diagonal_places] += self.sums_of_other / 2
        if before is None:
            rows = self.first + np.repeat(np.arange(self.n), np.diff(self.own.indptr))
            return matrix_of_places(self.A, self.A.getSizes(), rows, self.first + self.own.indices, values)
        before.setValuesCOO(values)
        return before


class Step:
    """From a level to the next one: patterns once, values again and again.

    Parameters
    ----------
    rows : Rows
        Of the level.
    B : array, shape (n, k)
        This rank's rows of the candidates.
    b : int
        Unknowns of a node.
    local : AdmittedMatrix
        The block of this rank, see `lumped`.
    nodes : AdmittedMatrix
        With the pattern of its nodes; `local` itself where a node has one unknown.
    strong : Connections
        Of `local`.
    labels : array of int32
        The aggregate of each node, or -1.
    count : int
        How many aggregates this rank has.
    theta : float or None
        What `strong` was found with.

    Attributes
    ----------
    B : array
        This rank's rows of the candidates of the coarse level.
    P, coarse : PETSc.Mat
        The prolongator and the coarse matrix, after `compute`.
    """

    def __init__(
        self,
        rows: Rows,
        B: Any,
        b: int,
        local: AdmittedMatrix,
        nodes: AdmittedMatrix,
        strong: Connections,
        labels: Any,
        count: int,
        theta: float | None,
    ) -> None:
        backend = self.backend = local.backend
        k, entries, T_pattern = B.shape[1], len(rows.other.data), tentative_pattern(labels, count, backend.xp)
        Q, coarse_B, _ = tentative(T_pattern, count, backend.xp.asarray(B), b, backend)
        self.B = backend.to_host(coarse_B)
        self.T = tentative_prolongator(rows, np.repeat(backend.to_host(labels), b), backend.to_host(Q), count)
        # F has those couplings to other ranks that are kept; of others it has these multiples on the diagonal.
        own, kept, self.lumps = (local.indptr, local.indices), np.ones(entries, bool), np.zeros(entries)
        if b == k == 1:
            own, kept = (strong.indptr, strong.indices), strong_others(rows, theta)
            self.lumps = np.where(kept, 0, ratios(rows, B))
        self.filtered, self.kept = FilteredMatrix(local, *own, backend.xp.asarray(B)), np.flatnonzero(kept)
        self.G: Any = None
        self.P: Any = None
        self.coarse: Any = None
        self._product: Any = None
        weak = entries - len(self.kept) + local.indices.size - self.filtered.indices.size
        self.smooths = stays_sparse(rows, nodes, own, b, T_pattern, count, k)
        self.filters = over(rows.A, "sum", weak) > 0
        if self.smooths and self.filters:
            self._open_filtered(rows)

    def _open_filtered(self, rows: Rows) -> None:
        """Make G = I - omega D F for an F that is not A, with values that are not set yet."""
        indptr, indices = (self.backend.to_host(part) for part in (self.filtered.indptr, self.filtered.indices))
        of_own = np.repeat(np.arange(rows.n), np.diff(indptr))
        self.on_diagonal = np.flatnonzero(of_own == indices)
        self.rows_of_values = np.concatenate((of_own, rows.rows_of_other[self.kept]))
        columns = np.concatenate((rows.first + indices, rows.ghosts[rows.other.indices[self.kept]]))
        self.G = matrix_of_places(rows.A, rows.A.getSizes(), rows.first + self.rows_of_values, columns)

    def compute(self, rows: Rows, level: int) -> Any:
        """Return the coarse matrix, that of the level of that number, for the values of these rows.

        Raises
        ------
        ValueError
            On all ranks, if a diagonal entry of the coarse matrix is negative, so that A is not positive definite.
        """
        self.P = self.T
        if self.smooths:
            self._smooth(rows)
            self.P = self._product = self.G.matMult(self.T, self._product)
        self.coarse = rows.A.ptap(self.P, self.coarse)
        self.coarse.setBlockSize(self.B.shape[1])
        self._fill_diagonal(rows.A, level)
        return self.coarse

    def _smooth(self, rows: Rows) -> None:
        """G = I - omega D F."""
        if not self.filters:
            scale = rows.A.createVecLeft()
            scale.setArray(damping(rows.sums_of_own + rows.sums_of_other))
            self.G = rows.A.copy(self.G)
            self.G.diagonalScale(scale)
            self.G.shift(1.0)
            scale.destroy()
            return
        own = self.filtered.values(lumped(rows, self.lumps, self.backend))
        values = np.concatenate((self.backend.to_host(own), rows.other.data[self.kept]))
        values *= damping(np.bincount(self.rows_of_values, abs(values), rows.n))[self.rows_of_values]
        values[self.on_diagonal] += 1
        self.G.setValuesCOO(values)

    def _fill_diagonal(self, A: Any, level: int) -> None:
        """Refuse negative diagonal entries of the coarse matrix, and replace zeros: see `refuse_indefinite`."""
        rounding = CANCELED * float(np.finfo(self.B.dtype).eps)
        diagonal, of_A = self.coarse.getDiagonal(), A.getDiagonal()
        if diagonal.min()[1] <= rounding * of_A.max()[1]:
            squares, uncoupled = self.P.copy(), diagonal.duplicate()
            indptr, columns, values = squares.getValuesCSR()
            squares.setValuesCSR(indptr, columns, values**2)
            squares.assemble()
            squares.multTranspose(of_A, uncoupled)
            alone, entries = uncoupled.getArray(readonly=True), diagonal.getArray().copy()
            if over(A, "sum", np.count_nonzero(entries < -rounding * alone)):
                raise ValueError(f"the matrix of level {level} has negative entries on its diagonal, {NOT_DEFINITE}")
            canceled = entries <= rounding * alone
            entries[canceled] = np.where(alone > 0, alone, 1)[canceled]
            diagonal.setArray(entries)
            self.coarse.setDiagonal(diagonal)
            for each in (squares, uncoupled):
                each.destroy()
        diagonal.destroy()
        of_A.destroy()

    def destroy(self) -> None:
        """Free the matrices."""
        for each in (self.G, self.T, self._product, self.coarse):
            if each is not None:
                each.destroy()


def new_step(rows: Rows, B: Any, b: int, theta: float | None, backend: Backend) -> Step | None:
    """Find the aggregates of a level; None, on all ranks, where the next level would hardly be smaller.

    See `Step`; b is how many unknowns a node has.
    """
    k = B.shape[1]
    local = lumped(rows, ratios(rows, B) if b == k == 1 else np.zeros(len(rows.other.data)), backend)
    nodes = nodes_of(local, b)
    for limit in (theta, 0.0):  # as `coarsen`
        strong = strong_connections(local, nodes, limit)
        labels, count = aggregates(strong.graph)
        if 0 < over(rows.A, "sum", count) * k <= MOST_KEPT * rows.A.getSize()[0]:
            return Step(rows, B, b, local, nodes, strong, labels, count, limit)
    return None


def damping(sums: Any) -> Any:
    """-omega D for the sums of the magnitudes of rows."""
    return np.divide(-OMEGA, sums, out=np.zeros(len(sums)), where=sums > 0)


def lumped(rows: Rows, factors: Any, backend: Backend) -> AdmittedMatrix:
    """The block of this rank with couplings to other ranks on its diagonal, each of them times its factor."""
    own = rows.own.copy()
    sums = np.bincount(rows.rows_of_other, rows.other.data * factors, rows.n)
    own.data[rows.diagonal_places] += sums
    return admitted(own if backend.name == "cpu" else backend.sparse.csr_matrix(own), finite=True)


def ratios(rows: Rows, B: Any) -> Any:
    """B_j / B_i for each coupling a_ij to other ranks; 0 where B_i is 0."""
    B_i, B_j = B[rows.rows_of_other, 0], rows.of_ghosts(B[:, 0])[rows.other.indices]
    return np.divide(B_j, B_i, out=np.zeros_like(B_i), where=B_i != 0)


def strong_others(rows: Rows, theta: float | None) -> Any:
    """Which couplings to other ranks are strong: see `strong_connections`."""
    neighbors = np.diff(rows.own.indptr) + np.diff(rows.other.indptr) - 1
    sizes = np.sqrt(abs(rows.own.diagonal()) / (np.maximum(neighbors, 1) if theta is None else 1))
    least = SHARE_OF_AVERAGE if theta is None else theta
    limits = least * sizes[rows.rows_of_other] * rows.of_ghosts(sizes)[rows.other.indices]
    entries = abs(rows.other.data)
    return (entries > 0) & (entries >= limits * (1 - 8 * np.finfo(entries.dtype).eps))


def stays_sparse(rows: Rows, nodes: AdmittedMatrix, own: Any, b: int, T_pattern: Any, count: int, k: int) -> bool:
    """Whether A P stays sparse with a smoothed P, within the ranks: see `GalerkinProduct`."""
    pattern = nodes.indptr, nodes.indices
    P = product_pattern(own if b == 1 else pattern, T_pattern, count, nodes.backend)
    entries = len(product_pattern(pattern, P, count, nodes.backend)[1])
    return over(rows.A, "sum", entries * k - MOST_GROWTH * nodes.indices.size * b) <= 0


def tentative_prolongator(rows: Rows, labels: Any, Q: Any, count: int) -> Any:
    """T, block diagonal over the ranks, from what `tentative` returns and the aggregate of each unknown."""
    from petsc4py import PETSc

    k = Q.shape[1]
    layout = PETSc.Vec().createMPI((count * k, None), comm=rows.A.getComm())
    first, sizes = layout.getOwnershipRange()[0], layout.getSizes()
    layout.destroy()
    i = np.flatnonzero(labels >= 0)
    columns = first + k * labels[i, None] + np.arange(k)
    return matrix_of_places(rows.A, (rows.A.getSizes()[0], sizes), np.repeat(rows.first + i, k), columns, Q[i])


def matrix_of_places(A: Any, sizes: Any, rows: Any, columns: Any, values: Any = None) -> Any:
    """A matrix of the type of A with entries in these places, each given once, by global numbers."""
    from petsc4py import PETSc

    made = PETSc.Mat().create(A.getComm())
    made.setSizes(sizes)
    made.setType(A.getType())
    made.setPreallocationCOO(rows.astype(PETSc.IntType), columns.reshape(-1).astype(PETSc.IntType))
    if values is not None:
        made.setValuesCOO(values.reshape(-1))
    return made


def over(A: Any, how: str, value: Any) -> Any:
    """The sum or the minimum of a number of each rank, as how says. All ranks of A have to call."""
    from petsc4py import PETSc

    x = PETSc.Vec().createMPI((1, None), comm=A.getComm())
    x.setArray(np.array([value], PETSc.ScalarType))
    found = x.sum() if how == "sum" else x.min()[1]
    x.destroy()
    return found
