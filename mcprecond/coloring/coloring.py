"""Coloring: the colors of the vertices of a matrix's graph, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mcprecond.backends import Backend, KernelSet, backend_of, compile_loop
from mcprecond.backends.inputs import integers
from mcprecond.backends.team.atomics import atomic_add, atomic_max, atomic_min
from mcprecond.coloring.graph import Graph
from mcprecond.coloring.history import log_of
from mcprecond.matrix import AdmittedMatrix
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
    """A proper coloring of the graph of a matrix: neighbors have different colors.

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
        short) are added to the last row.
    """

    colors: Any
    sizes: np.ndarray
    method: str
    history: np.ndarray = field(default_factory=lambda: np.empty((0, 2), np.int64))

    def __post_init__(self) -> None:
        """Kernels read the colors as int32.

        Raises
        ------
        TypeError, ValueError
            If they are not a vector of integers, or some do not fit.
        """
        colors, dtype = self.colors, getattr(self.colors, "dtype", None)
        if dtype is None or dtype.kind not in "iu" or colors.ndim != 1:
            raise TypeError(f"coloring: colors must be a vector of integers, got {dtype or type(colors).__name__}")
        if dtype != np.int32:
            if colors.size and not -(2**31) <= int(colors.min()) <= int(colors.max()) < 2**31:
                raise ValueError(f"coloring: colors must fit into int32, got {int(colors.max())}")
            object.__setattr__(self, "colors", colors.astype(np.int32))

    @property
    def n_colors(self) -> int:
        """The number of colors."""
        return len(self.sizes)

    @property
    def rounds(self) -> int:
        """The number of parallel steps that the method took."""
        return len(self.history)

    def is_valid(self, A: Matrix) -> bool:
        """Whether no two neighbors in the graph of A have the same color.

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
        graph = Graph.of(A)
        if backend_of(self.colors).name != graph.backend.name:
            raise TypeError(f"A is on the {graph.backend.name} and must be where the colors are; move one of them")
        return len(self.colors) == graph.n and conflict(graph, self.colors) is None

    def permutation(self) -> Any:
        """Return the vertices sorted by color, stably: entry i is the old number of the new vertex i (int32)."""
        keys = self.colors.astype(np.min_scalar_type(max(self.n_colors - 1, 0)))  # shorter ones are sorted faster
        return backend_of(self.colors).xp.argsort(keys, kind="stable").astype(np.int32)

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
        lines = [f"{self.method}: {len(self.colors)} vertices, {self.n_colors} colors, {self.rounds} rounds"]
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

    def plot(self, ax: Any = None) -> Any:
        """Draw how many vertices each color has.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            By default those of a new figure.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ImportError
            If matplotlib is not installed.

        Examples
        --------
        >>> from mcprecond import color, problems
        >>> ax = color(problems.laplacian((30, 30)), "greedy").plot()
        >>> ax.get_title()
        '900 vertices in 2 colors by greedy'
        """
        ax = draw_sizes(self.sizes, ax)
        ax.set(xlabel="color", ylabel="vertices")
        ax.set_title(f"{len(self.colors)} vertices in {self.n_colors} colors by {self.method}")
        return ax

    def __repr__(self) -> str:
        return f"<Coloring of {len(self.colors)} vertices in {self.n_colors} colors by {self.method}>"


def draw_sizes(sizes: np.ndarray, ax: Any) -> Any:
    """Draw the sizes of classes, one beside the other, on these axes, or on those of a new figure if they are None."""
    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure().subplots()
    ax.stairs(sizes, np.arange(len(sizes) + 1), fill=True)
    return ax


def finish(colors: Any, log: Any, method: str, backend: Backend) -> Coloring:
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


def user_coloring(colors: Any, matrix: AdmittedMatrix) -> Coloring:
    """Make a Coloring of a user's array, after checking it against the pattern of A.

    Raises
    ------
    TypeError, ValueError
        If it is not one non-negative integer per row, or two neighbors have the same color (names them).
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
    if edge := conflict(matrix, array):
        row, column = edge
        raise ValueError(
            f"coloring gives the neighbors {row} and {column} the same color {int(array[row])}; "
            "check it against A, or pass a method name"
        )
    return finish(array, log_of([], backend), "user", backend)


def conflict(pattern: AdmittedMatrix | Graph, colors: Any) -> tuple[int, int] | None:
    """Return the first stored entry (row, column) off the diagonal whose ends have the same color, or None."""
    backend, n, indptr, indices = pattern.backend, len(colors), pattern.indptr, pattern.indices
    first = backend.xp.full(1, n, np.int32)
    backend.kernels(KERNELS, OFFSET=indptr.dtype).first_conflict(n, indptr, indices, colors, first)
    row = int(first[0])
    if row == n:
        return None
    neighbors = backend.to_host(indices[int(indptr[row]) : int(indptr[row + 1])])
    same = backend.to_host(colors[neighbors]) == int(colors[row])
    return row, int(neighbors[same & (neighbors != row)][0])


@KERNELS.per_item
def first_conflict(begin, end, indptr, indices, colors, first):
    """The first row with a neighbor of its own color; `first` holds n before."""
    row = np.int64(first[0])
    for v in range(begin, end):
        for k in range(indptr[v], indptr[v + 1]):
            if colors[indices[k]] == colors[v] and indices[k] != v:
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
