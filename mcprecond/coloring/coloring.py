"""Coloring: the colors of the vertices of a matrix's graph, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mcprecond.backends import Backend, KernelSet, backend_of, compile_loop
from mcprecond.backends.atomics import atomic_add, atomic_max, atomic_min
from mcprecond.backends.inputs import integers
from mcprecond.coloring.blocks import labels_of, rank_of_blocks
from mcprecond.coloring.history import log_of
from mcprecond.coloring.orders import by_keys, permutation
from mcprecond.matrix import AdmittedMatrix, admitted
from mcprecond.typing import Matrix

KERNELS = KernelSet(__file__, "OFFSET=int32")

REPORTED = 40  # classes that a report lists
REPORTED_ROUNDS = 8
# So many are counted and read before it is known how many there are; mostly that is all.
FIRST_COLORS = 1024
OWN_COLORS = 4096  # that a part of the vertices, or a block of a GPU, counts by itself
PARTS = 64  # of the vertices, on a CPU
FIRST_ROWS = 1024
CUDA_CONSTANTS = {"OWN_COLORS": OWN_COLORS}


@dataclass(frozen=True)
class Coloring:
    """A proper coloring of the graph of a matrix, or of blocks of its vertices.

    In a coloring of blocks neighbors in different blocks have different colors. All vertices of a block have its color;
    sweeps go through them one after the other.

    Attributes
    ----------
    colors : array of int32, shape (n,)
        0-based and contiguous: every color below `n_colors` occurs. On the device of the matrix.
    sizes : numpy.ndarray of int64, shape (n_colors,)
        Vertices per color.
    method : str
        The name in `COLORINGS`, or "user".
    history : numpy.ndarray of int64, shape (rounds, 2)
        What each round of the method did. Column 0: how many vertices it colored. Column 1: how many colored ones it
        found in conflict, which have to be colored again; 0 unless the method is speculative. So column 0 less column 1
        adds up to n. A vertex for which a speculative round found no color counts in both. Empty for a user's coloring;
        refinements (``recolor``, ``balance``) do not change it. Rounds beyond n + 64 (1023 in ``ecl_gc`` where rows are
        short) are added to the last row. Of a coloring of blocks it counts blocks.
    blocks : array of int32, shape (n,), or None
        The number of each vertex's block, from 0, all of which occur; None where each vertex is colored by itself.
    order : array of int32, shape (n,), or None
        In which order the vertices of a block are swept: which vertex comes when; None stands for row order.
    """

    colors: Any
    sizes: np.ndarray
    method: str
    history: np.ndarray = field(default_factory=lambda: np.empty((0, 2), np.int64))
    blocks: Any = None
    order: Any = None

    def __post_init__(self) -> None:
        """Kernels read the colors, and the numbers of blocks, as int32.

        Raises
        ------
        TypeError, ValueError
            If they are not vectors of integers, one for each vertex, or some do not fit.
        """
        for name in ("colors", "blocks", "order"):
            numbers, dtype = getattr(self, name), getattr(getattr(self, name), "dtype", None)
            if name != "colors" and numbers is None:
                continue
            if dtype is None or dtype.kind not in "iu" or numbers.ndim != 1:
                found = dtype or type(numbers).__name__
                raise TypeError(f"coloring: {name} must be a vector of integers, got {found}")
            if dtype != np.int32:
                if numbers.size and not -(2**31) <= int(numbers.min()) <= int(numbers.max()) < 2**31:
                    raise ValueError(f"coloring: {name} must fit into int32, got {int(numbers.max())}")
                object.__setattr__(self, name, numbers.astype(np.int32))
            if numbers.shape != self.colors.shape:
                raise ValueError(f"coloring: {name} must be of {len(self.colors)} vertices, got {len(numbers)}")

    @property
    def n_colors(self) -> int:
        """The number of colors."""
        return len(self.sizes)

    @property
    def rounds(self) -> int:
        """The number of parallel steps that the method took."""
        return len(self.history)

    def is_valid(self, A: Matrix) -> bool:
        """Whether no two neighbors in the graph of A have the same color, or those of different blocks.

        Parameters
        ----------
        A : sparse matrix of SciPy or CuPy, shape (n, n)
            On the device of `colors`.

        Raises
        ------
        TypeError, ValueError
            If A is not a square sparse matrix, or on the other device.

        Examples
        --------
        >>> import scipy.sparse
        >>> from mcprecond import color
        >>> A = scipy.sparse.diags_array([1.0, 2.0, 1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
        >>> color(A).is_valid(A)
        True
        """
        matrix = admitted(A)
        if backend_of(self.colors).name != matrix.backend.name:
            raise TypeError(f"A is on the {matrix.backend.name} and must be where the colors are; move one of them")
        if len(self.colors) != matrix.shape[0] or conflict(matrix, self.colors, self.blocks) is not None:
            return False
        return self.blocks is None or divided_block(self.colors, self.blocks) is None

    def permutation(self) -> Any:
        """Return the vertices sorted by color, stably: entry i is the old number of the new vertex i (int32).

        The vertices of a block stay together, and are in its order.
        """
        xp = backend_of(self.colors).xp
        if self.blocks is None or not len(self.blocks):
            keys = self.colors.astype(np.min_scalar_type(max(self.n_colors - 1, 0)))  # shorter ones are sorted faster
            return xp.argsort(keys, kind="stable").astype(np.int32)
        rank = rank_of_blocks(self.colors, self.blocks, xp)[self.blocks]
        return by_keys(rank, xp) if self.order is None else self.order[by_keys(rank[self.order], xp)]

    def report(self) -> str:
        """Return one screen of text: rounds, classes, balance, and what a sweep over them takes on a GPU.

        Examples
        --------
        >>> import scipy.sparse
        >>> from mcprecond import color
        >>> A = scipy.sparse.diags_array([1.0, 2.0, 1.0], offsets=[-1, 0, 1], shape=(5, 5), format="csr")
        >>> print(color(A, "greedy").report())
        greedy: 5 vertices, 2 colors, 1 rounds
        round    1:        5 colored,        0 conflicts
        largest class 3, smallest 2, imbalance 1.50
        symmetric sweep: 2 launches, 3 steps
        color    0:        3  ##############################
        color    1:        2  ####################
        """
        lines = [f"{self.method}: {self._vertices()}, {self.n_colors} colors, {self.rounds} rounds"]
        for r, (colored, conflicts) in enumerate(self.history[:REPORTED_ROUNDS], start=1):
            lines.append(f"round {r:4}: {colored:8} colored, {conflicts:8} conflicts")
        if self.rounds > REPORTED_ROUNDS:
            colored, conflicts = self.history[REPORTED_ROUNDS:].sum(axis=0)
            lines.append(f"the others: {colored:8} colored, {conflicts:8} conflicts")
        if self.n_colors:
            largest, smallest = int(self.sizes.max()), int(self.sizes.min())
            lines.append(f"largest class {largest}, smallest {smallest}, imbalance {largest / smallest:.2f}")
            lines.append(f"symmetric sweep: 2 launches, {2 * self.n_colors - 1} steps")
            for c, size in enumerate(self.sizes[:REPORTED]):
                lines.append(f"color {c:4}: {size:8}  {'#' * round(30 * size / largest)}".rstrip())
            if self.n_colors > REPORTED:
                lines.append(f"... and {self.n_colors - REPORTED} more")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Coloring of {self._vertices()} in {self.n_colors} colors by {self.method}>"

    def _vertices(self) -> str:
        vertices = f"{len(self.colors)} vertices"
        if self.blocks is None:
            return vertices
        return f"{vertices} in {int(self.blocks.max()) + 1 if len(self.blocks) else 0} blocks"


def finished(colors: Any, log: Any, method: str, backend: Backend) -> Coloring:
    """Make a Coloring of non-negative colors and the log of rounds; numbers that no vertex has are squeezed out."""
    xp = backend.xp
    sizes, history = sizes_and_history(colors, log, backend)
    used = sizes > 0
    if not used.all():
        new_number = xp.asarray(np.cumsum(used).astype(np.int32) - 1)
        colors = new_number[colors]
    return Coloring(colors, sizes[used], method, history)


def sizes_and_history(colors: Any, log: Any, backend: Backend) -> tuple[np.ndarray, np.ndarray]:
    """Count the vertices of each color, and read the log: all that the host wants to know arrives in one copy."""
    n_counted, n_rows = FIRST_COLORS, min(FIRST_ROWS, len(log))
    run, flat_log = backend.kernels(KERNELS), log.view(np.int64).ravel()
    while True:
        report = backend.xp.zeros(n_counted + 1 + n_rows, np.int64)
        run.count_colors(len(colors), colors, n_counted, flat_log, n_rows, report)
        report = backend.to_host(report)
        n_colors, rows = int(report[n_counted]), report[n_counted + 1 :].view(np.int32).reshape(-1, 2)
        rounds = int(rows[0, 0])
        if n_colors <= n_counted and rounds < n_rows:
            return report[:n_colors], rows[1 : rounds + 1].astype(np.int64)
        n_counted, n_rows = max(n_counted, n_colors), max(n_rows, rounds + 1)


def user_coloring(colors: Any, matrix: AdmittedMatrix, blocks: Any = None, order: Any = None) -> Coloring:
    """Make a Coloring of a user's array, after checking it against the pattern of A; with blocks and their order, or
    without.

    Raises
    ------
    TypeError, ValueError
        If it is not one non-negative integer per row, or two neighbors have the same color (names them), but for those
        of one block; or if the vertices of a block differ in color, or the order is no permutation.
    """
    backend, n = matrix.backend, matrix.shape[0]
    array = integers(colors, backend, "coloring must be a method name, a Coloring or an array of integers")
    if array.shape != (n,):
        raise ValueError(f"coloring must have shape ({n},) to match A, got {array.shape}")
    if n and int(array.min()) < 0:
        row = int(array.argmin())
        raise ValueError(f"coloring gives row {row} the color {int(array[row])}; colors start at 0")
    if n and int(array.max()) >= 2**24:
        row = int(array.argmax())
        raise ValueError(f"coloring gives row {row} the color {int(array[row])}; colors must lie below 2**24")
    array = array.astype(np.int32)
    if blocks is not None:
        blocks = labels_of(blocks, backend, n)
        if n and (int(blocks.max()) >= n or not bool((backend.xp.bincount(blocks) > 0).all())):
            raise ValueError(
                f"blocks of a coloring must be numbered from 0 on, each of them with a row, to {blocks.max()}"
            )
        if (rows := divided_block(array, blocks)) is not None:
            raise ValueError(
                f"coloring gives the rows {rows[0]} and {rows[1]} of one block the colors {int(array[rows[0]])} and "
                f"{int(array[rows[1]])}; a block has one color"
            )
    if edge := conflict(matrix, array, blocks):
        row, column = edge
        raise ValueError(
            f"coloring gives the neighbors {row} and {column} the same color {int(array[row])}; "
            "check it against A, or pass a method name"
        )
    if order is not None:
        order = permutation(order, n, backend, "order of a coloring", ())
    return replace(finished(array, log_of([], backend), "user", backend), blocks=blocks, order=order)


def conflict(matrix: AdmittedMatrix, colors: Any, blocks: Any = None) -> tuple[int, int] | None:
    """Return the first stored entry (row, column) off the diagonal whose ends have the same color, or None; with
    blocks, the first one between two of them.
    """
    backend, n, indptr, indices = matrix.backend, matrix.shape[0], matrix.indptr, matrix.indices
    first = backend.xp.full(1, n, np.int32)
    of_rows = backend.xp.arange(n, dtype=np.int32) if blocks is None else blocks
    backend.kernels(KERNELS, OFFSET=indptr.dtype).first_conflict(n, indptr, indices, colors, of_rows, first)
    row = int(first[0])
    if row == n:
        return None
    neighbors = backend.to_host(indices[int(indptr[row]) : int(indptr[row + 1])])
    same = backend.to_host(colors[neighbors]) == int(colors[row])
    same &= backend.to_host(of_rows[neighbors]) != int(of_rows[row])
    return row, int(neighbors[same][0])


def divided_block(colors: Any, blocks: Any) -> tuple[int, int] | None:
    """Return two rows of the same block that differ in color, or None."""
    xp = backend_of(colors).xp
    if not len(blocks):
        return None
    some_row = xp.zeros(int(blocks.max()) + 1, np.int64)
    some_row[blocks] = xp.arange(len(blocks))
    other = xp.flatnonzero(colors != colors[some_row[blocks]])
    return (int(other[0]), int(some_row[blocks[other[0]]])) if other.size else None


@KERNELS.per_item
def first_conflict(begin, end, indptr, indices, colors, blocks, first):
    """The first row with a neighbor of its own color in another block; `first` holds n before."""
    row = np.int64(first[0])
    for v in range(begin, end):
        for k in range(indptr[v], indptr[v + 1]):
            if colors[indices[k]] == colors[v] and blocks[indices[k]] != blocks[v]:
                row = min(row, v)
    atomic_min(first, 0, np.int32(row))


@KERNELS.strided
def count_colors(n, colors, n_counted, log, n_rows, report):
    """A histogram of the first so many colors; behind it, how many there are, and the first rows of the log."""
    for row in range(n_rows):
        report[n_counted + 1 + row] = log[row]
    n_own = min(n_counted, OWN_COLORS)
    count_parts(0, PARTS, n, colors, n_own, n_counted, report)


@compile_loop(grain=1)
def count_parts(first, end, n, colors, n_own, n_counted, report):
    """The histograms of some parts of the vertices."""
    for part in range(first, end):
        own, last = np.zeros(n_own, np.int64), np.int64(-1)
        for v in range(part * n // PARTS, (part + 1) * n // PARTS):
            color = np.int64(colors[v])
            if color < n_own:
                own[color] += 1
            elif color < n_counted:
                atomic_add(report, color, np.int64(1))
            last = max(last, color)
        for c in range(n_own):
            if own[c]:
                atomic_add(report, c, own[c])
        atomic_max(report, n_counted, last + 1)
