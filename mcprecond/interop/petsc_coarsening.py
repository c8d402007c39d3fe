"""From one level to the next across the ranks of PETSc: each rank aggregates its own rows.

Aggregates end where the rows of a rank end (uncoupled aggregation), so that the tentative prolongator is block diagonal
over the ranks. The prolongator and the coarse matrix are not: a rank computes its rows of them from the rows of A in
its overlap, and they are what one process would make of these aggregates.

Tuminaro, Tong: Parallel Smoothed Aggregation Multigrid: Aggregation Strategies on Massively Parallel Machines, SC 2000.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import Backend
from mcprecond.coloring.graph import Graph
from mcprecond.interop import petsc_memory
from mcprecond.interop.petsc_overlap import Overlap, Rows, over
from mcprecond.matrix import AdmittedMatrix, canonical_csr, diagonal_places
from mcprecond.multigrid.aggregation import aggregates
from mcprecond.multigrid.galerkin import Galerkin
from mcprecond.multigrid.interpolation import SmoothedInterpolation
from mcprecond.multigrid.setup import MOST_KEPT, nodes_of
from mcprecond.multigrid.strength import Connections, symmetric_strength
from mcprecond.multigrid.tentative import Tentative, fit_tentative
from mcprecond.multigrid.units import CANCELED, NOT_DEFINITE, without_couplings


class Step:
    """From a level to the next one: patterns once, values again and again.

    Parameters
    ----------
    around : Overlap
        Of the rows of the level.
    nodes : AdmittedMatrix
        With the pattern of the nodes of its matrix; that itself where a node has one unknown.
    strong : Connections
        Of that matrix.
    labels : array of int32
        The aggregate of each node of this rank, or -1.
    count : int
        How many aggregates this rank has.
    B : array, shape (n, k)
        This rank's rows of the candidates.
    b : int
        Unknowns of a node.

    Attributes
    ----------
    B : array
        This rank's rows of the candidates of the coarse level.
    numbers : array of int64
        The global numbers of the coarse unknowns of other ranks, on the host.
    """

    def __init__(
        self,
        around: Overlap,
        nodes: AdmittedMatrix,
        strong: Connections,
        labels: Any,
        count: int,
        B: Any,
        b: int,
    ) -> None:
        A, matrix, backend, k = around.rows.A, around.matrix, around.backend, B.shape[1]
        self.around, self.own = around, count * k
        T = fit_tentative(labels, count, B, b, backend)
        self.B = T.B
        first, self.sizes = layout_of(A, self.own)
        labels, self.numbers = self._labels_around(labels, count, first // k, b, k)
        total = count + len(self.numbers) // k
        T = Tentative(labels, total, around.extend(T.Q), None, T.vanished)
        self.interpolation = SmoothedInterpolation(
            matrix, nodes, strong, T, around.extend(B), in_all=lambda entries: over(A, "sum", entries)
        )
        self.galerkin = Galerkin(matrix, self.interpolation)
        self._coarse: Share | None = None

    def _labels_around(self, labels: Any, count: int, first: int, b: int, k: int) -> tuple[Any, Any]:
        """The aggregates of the nodes of the overlap, and the global numbers of unknowns of those of other ranks."""
        xp, n = self.around.backend.xp, len(labels)
        of_all = xp.where(labels >= 0, labels + float(first), -1.0)
        theirs = self.around.backend.to_host(self.around.extend(xp.repeat(of_all, b)[:, None])[n * b :: b, 0])
        there, places = np.unique(theirs[theirs >= 0].astype(np.int64), return_inverse=True)
        beside = np.full(len(theirs), -1, np.int32)
        beside[theirs >= 0] = count + places
        return xp.concatenate((labels, xp.asarray(beside))), (there[:, None] * k + np.arange(k)).reshape(-1)

    def compute(self, rows: Rows, level: int) -> Rows:
        """Return the rows of the coarse matrix, that of the level of that number, for the values of these rows.

        Raises
        ------
        ValueError
            On all ranks, if a diagonal entry of the coarse matrix is negative, so that A is not positive definite.
        """
        if rows is not self.around.rows:
            self.around.take(rows)
            self.interpolation.update(self.around.matrix)
            self.galerkin.update(self.around.matrix)
        self._fill_diagonal(rows.A, self.around.matrix, level)
        coarse = self.galerkin.coarse.csr
        if self._coarse is None:
            self._coarse = Share(rows, coarse, self.own, self.numbers, self.sizes)
            self._coarse.mat.setBlockSize(self.B.shape[1])
        else:
            self._coarse.take(coarse.data)
        return self._coarse.rows()

    def _fill_diagonal(self, A: Any, matrix: AdmittedMatrix, level: int) -> None:
        """Refuse negative diagonal entries of the coarse matrix, and replace zeros: see `refuse_indefinite`."""
        xp, coarse, R = matrix.backend.xp, self.galerkin.coarse.renewed(), self.galerkin.R
        rounding, diagonal = CANCELED * float(np.finfo(coarse.dtype).eps), coarse.diagonal()[: self.own]
        uncoupled = without_couplings(R, matrix.diagonal(), matrix.backend)[: self.own]
        if over(A, "sum", int(xp.count_nonzero(~(diagonal >= -rounding * uncoupled)))):
            raise ValueError(f"the matrix of level {level} has negative entries on its diagonal, {NOT_DEFINITE}")
        canceled = xp.flatnonzero(diagonal <= rounding * uncoupled)
        if len(canceled):
            filled = xp.where(uncoupled > 0, uncoupled, 1)[canceled]
            coarse.data[diagonal_places(coarse.csr, canceled, matrix.backend)] = filled

    def destroy(self) -> None:
        """Free what is PETSc's."""
        self.around.destroy()
        if self._coarse is not None:
            self._coarse.mat.destroy()


def new_step(rows: Rows, B: Any, b: int, theta: float | None) -> Step | None:
    """Find the aggregates of a level; None, on all ranks, where the next level would hardly be smaller.

    See `Step`; B is where the backend has its arrays.
    """
    around = Overlap(rows, b)
    nodes = nodes_of(around.matrix, b)
    for limit in (theta, 0.0):  # as `coarsen`
        strong = symmetric_strength(around.matrix, nodes, limit, spreads=around.alone)
        labels, count, _ = aggregates(strong.graph if around.alone else within(strong, rows.n // b, rows.backend))
        if 0 < over(rows.A, "sum", count) * B.shape[1] <= MOST_KEPT * rows.A.getSize()[0]:
            return Step(around, nodes, strong, labels, count, B, b)
    around.destroy()
    return None


def within(strong: Connections, n: int, backend: Backend) -> Graph:
    """The graph of the strong connections between the first n nodes."""
    xp, end = backend.xp, int(strong.indptr[n])
    indices = strong.indices[:end]
    kept = indices < n
    indptr = xp.concatenate((xp.zeros(1, np.int64), xp.cumsum(kept)))[strong.indptr[: n + 1]]
    indices = indices[kept]
    return Graph.of(canonical_csr(xp.empty(len(indices), np.float32), indices, indptr, (n, n), backend))


class Share:
    """The first rows of a computed square matrix, which are this rank's, as a matrix of PETSc.

    Parameters
    ----------
    like : Rows
        Of a matrix of the same type.
    csr : csr matrix
    own : int
        How many rows and columns are this rank's.
    numbers : array of int64
        The global numbers of the columns behind.
    sizes : pair of int
        How many rows this rank has, and all ranks have.

    Attributes
    ----------
    mat : PETSc.Mat
    """

    def __init__(self, like: Rows, csr: Any, own: int, numbers: Any, sizes: tuple[int, int]) -> None:
        self.backend, xp = like.backend, like.backend.xp
        indptr = csr.indptr[: own + 1]
        indices = csr.indices[: int(indptr[-1])]
        mine = indices < own
        self.places = xp.flatnonzero(mine), xp.flatnonzero(~mine)
        of_own = xp.concatenate((xp.zeros(1, np.int64), xp.cumsum(mine)))[indptr]
        beside, theirs = xp.unique(indices[self.places[1]] - own, return_inverse=True)
        self.ghosts = numbers[self.backend.to_host(beside)]
        values = [csr.data[places] for places in self.places]
        self.own = canonical_csr(values[0], indices[self.places[0]], of_own, (own, own), self.backend)
        shape = own, len(self.ghosts)
        self.other = canonical_csr(values[1], theirs.astype(np.int32), indptr - of_own, shape, self.backend)
        self.mat = matrix_of(like.A, (sizes, sizes), self.own, self.other, self.ghosts, self.backend)

    def take(self, values: Any) -> None:
        """Take other values of the computed matrix."""
        for part, places in zip((self.own, self.other), self.places, strict=True):
            part.data = values[places]
        set_values(self.mat, self.own.data, self.other.data)

    def rows(self) -> Rows:
        """The rows with the values that they have now."""
        return Rows(self.mat, self.own, self.other, self.ghosts, self.backend)


def matrix_of(like: Any, sizes: Any, own: Any, other: Any, ghosts: Any, backend: Backend) -> Any:
    """A matrix of the type of another one, from this rank's block on the diagonal and its other entries."""
    from petsc4py import PETSc

    index, on_gpu = petsc_memory.index_type(), backend.name == "gpu" and petsc_memory.is_on_gpu(like)

    def arrays_of(part: Any) -> list[Any]:
        """Row offsets, columns and values, which PETSc uses in place. On a GPU it gets the values later."""
        values = np.empty(len(part.data), part.dtype) if on_gpu else backend.to_host(part.data)
        return [np.asarray(backend.to_host(array), index) for array in (part.indptr, part.indices)] + [values]

    parts: Any = arrays_of(own)
    if like.getComm().getSize() > 1:
        beside = arrays_of(other)
        beside[1] = ghosts.astype(index)[beside[1]]
        parts = parts, beside
    made = PETSc.Mat().createAIJWithArrays(sizes, parts, comm=like.getComm())
    if made.getType() != like.getType():
        made = made.convert(like.getType())
    if on_gpu:
        set_values(made, own.data, other.data)
    return made


def set_values(mat: Any, own: Any, other: Any) -> None:
    """Write other values into a matrix of the same pattern."""
    for block, values in zip(petsc_memory.blocks_of(mat)[:2], (own, other), strict=True):
        if block is not None:
            petsc_memory.take_entries(mat, block, values)
    mat.stateIncrease()


def layout_of(A: Any, own: int) -> tuple[int, tuple[int, int]]:
    """The number of the first of so many unknowns of this rank, and the numbers of its own and of all. Collective."""
    from petsc4py import PETSc

    layout = PETSc.Vec().createMPI((own, None), comm=A.getComm())
    first, sizes = layout.getOwnershipRange()[0], layout.getSizes()
    layout.destroy()
    return first, sizes
