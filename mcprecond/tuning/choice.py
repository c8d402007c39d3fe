"""coloring="auto" of the preconditioners: the coloring for which setting up and iterating are predicted to take least.

What is predicted is the time of a solve with PCG, for a matrix with n rows, e entries and values of s bytes:

    coloring + iterations x iteration
    iteration = (e (s + 4) + 30 s n (1 - 1 / c) + 2 s n f c) / bandwidth + (2 c - 1) step + start

An iteration reads the matrix, a column index for each value, and once some 30 numbers per row: vectors, permutation,
diagonal and offsets; but hardly any in the first color's rows, which Eisenstat's form keeps apart, a c-th of all if
colors are alike. The last two terms are those of c colors: each reads much of the vector again, of which the share
f = min(1, s n / cache) comes from memory, and each waits for the one before it. On the GPU of the record this is within
a fifth of what was measured for all matrices and colorings of `benchmarks/results/sweeps-gpu.json`, as a test asserts.

The iterations that somebody expects are those with an average coloring; they differ between colorings. Where U is what
comes later in the order of colors, M - A = transpose(U) inv(D) U, and the iterations of CG grow like the square root of
what M adds to A for smooth vectors. For the smoothest, all ones, that is the

    remainder = sum over i of (sum of a_ij over all j of a later color)^2 / |a_ii|.

In blocks, j is of another node. It is smallest where every unknown has half of its neighbors before it, 4/3 of that in
random orders, and up to twice as large with two colors. (Doi, Washio: Ordering strategies and related techniques to
overcome the trade-off between parallelism and convergence in incomplete factorizations, Parallel Computing 25, 1999,
explain why many colors converge faster.) For elasticity, whose smooth vectors are not all of this kind, the ratio comes
out too small.

The time of a coloring is a start, a time per entry, more of it where degrees differ much, and for first-fit in row
order on a GPU a time per front: fronts follow one another. How many there are is extrapolated from the first rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numba import prange

from mcprecond.backends import KernelSet
from mcprecond.coloring import COLORINGS, Coloring, Graph
from mcprecond.coloring.coloring import finished
from mcprecond.coloring.priority.jp import colors_and_fronts, longest_chain
from mcprecond.matrix import AdmittedMatrix, admitted
from mcprecond.ordering.color_order import reordered
from mcprecond.storage.node_blocks import node_pattern

KERNELS = KernelSet(__file__)

ROW_VALUES = 30
AVERAGE_ORDER = 4 / 3  # the remainder of a random order over the smallest one
NEARLY_EQUAL = 0.5  # skew of degrees up to which first-fit in row order may have half of the colors of other methods
PROBED = 16  # of so many rows, the first one in so many tells how fronts grow


@dataclass(frozen=True)
class Degrees:
    """What the time of a coloring depends on.

    Attributes
    ----------
    skew : float
        log2 of the largest degree over the mean.
    entries : int
        Of the graph.
    """

    skew: float
    entries: int

    @classmethod
    def of(cls, graph: Graph) -> Degrees:
        """Read them off."""
        total = int(graph.degrees.sum(dtype=np.int64))
        return cls(math.log2(graph.max_degree * graph.n / total) if total else 0.0, graph.indices.size)


@dataclass(frozen=True)
class ColoringSpeed:
    """Seconds that a coloring takes to start, per entry, more per entry times skew squared, and per front."""

    start: float
    per_entry: float
    per_skew: float
    per_front: float = 0.0

    def seconds(self, degrees: Degrees, fronts: int = 0) -> float:
        """For a graph; at least, unless the fronts are known."""
        per_entry = self.per_entry + self.per_skew * degrees.skew**2
        return self.start + degrees.entries * per_entry + fronts * self.per_front


@dataclass(frozen=True)
class Speeds:
    """Bytes per second, bytes, and seconds that were measured on a device; its candidates, by their names."""

    bandwidth: float
    cache: float
    step: float
    start: float
    colorings: dict[str, ColoringSpeed]

    def iteration_seconds(
        self, n: int, entries: int, value_bytes: int, n_colors: float, block_size: int = 1
    ) -> float:  # fmt: skip
        """An iteration of PCG with so many colors; the entries of a block share a column index."""
        vector = value_bytes * n
        traffic = entries * (value_bytes + 4 / block_size**2) + ROW_VALUES * vector * (1 - 1 / max(n_colors, 2))
        traffic += 2 * vector * n_colors * min(1.0, vector / self.cache)
        return traffic / self.bandwidth + (2 * n_colors - 1) * self.step + self.start


#: By the name of the backend: measured on an H200, and on two cores of a server. On a CPU nothing else is as quick as
#: first-fit in row order, and "eb" has no fewer colors.
SPEEDS = {
    "gpu": Speeds(
        bandwidth=4.75e12, cache=50e6, step=1.2e-6, start=8e-6,
        colorings={
            "ecl_gc": ColoringSpeed(0.06e-3, 11e-12, 0.45e-12),
            "eb": ColoringSpeed(0.2e-3, 8.5e-12, 1.2e-12),
            "greedy": ColoringSpeed(0.1e-3, 7e-12, 8e-12, per_front=1e-6),
        },
    ),
    "cpu": Speeds(
        bandwidth=24e9, cache=32e6, step=20e-6, start=20e-6,
        colorings={
            "greedy": ColoringSpeed(20e-6, 1.1e-9, 0.02e-9),
            "ecl_gc": ColoringSpeed(0.3e-3, 9.5e-9, 0.1e-9),
        },
    ),
}  # fmt: skip


@dataclass(frozen=True)
class AutoColoring:
    """``coloring="auto"`` for another number of iterations.

    Parameters
    ----------
    expected_iterations : int
        How many iterations of a solver the preconditioner is made for, over all solves with this pattern.

    Raises
    ------
    ValueError
        If it is not a positive integer.

    Examples
    --------
    >>> from mcprecond import AutoColoring, MulticolorSGS, problems
    >>> M = MulticolorSGS(problems.graphs.grid2d(100), AutoColoring(500))
    >>> M.choice.method, M.choice.expected_iterations
    ('greedy', 500)
    """

    expected_iterations: int = 100

    def __post_init__(self) -> None:
        iterations = self.expected_iterations
        if not isinstance(iterations, int | np.integer) or iterations < 1:
            raise ValueError(f"expected_iterations must be a positive integer, got {iterations!r}")


@dataclass(frozen=True)
class Candidate:
    """A coloring that was considered, and what is predicted for it.

    Attributes
    ----------
    method : str
    n_colors : int or None
        None if it was not computed, since it cannot pay for itself; the predictions are then the best ones possible.
    coloring_seconds, iterations, iteration_seconds : float
    remark : str
    """

    method: str
    n_colors: int | None
    coloring_seconds: float
    iterations: float
    iteration_seconds: float
    remark: str = ""

    @property
    def total_seconds(self) -> float:
        """Coloring and iterations."""
        return self.coloring_seconds + self.iterations * self.iteration_seconds

    def costing(self, seconds: float, remark: str) -> Candidate:
        """The same with another time of the coloring."""
        return replace(self, coloring_seconds=seconds, remark=remark)


@dataclass(frozen=True)
class Choice:
    """What ``coloring="auto"`` has chosen, and why; `print` shows it.

    Attributes
    ----------
    method : str
        A name in `COLORINGS`, with its default options.
    reason : str
        One sentence.
    expected_iterations : int
    candidates : tuple of Candidate
        In the order in which they were considered.
    """

    method: str
    reason: str
    expected_iterations: int
    candidates: tuple[Candidate, ...]

    def __str__(self) -> str:
        lines = [self.reason, f"predicted for {self.expected_iterations} iterations with an average coloring, in ms:"]
        lines.append("          colors  coloring + iterations x  one     =   total")
        for c in self.candidates:
            colors = "at best" if c.n_colors is None else str(c.n_colors)
            lines.append(
                f"{c.method:8} {colors:>7} {in_ms(c.coloring_seconds):>9} + {c.iterations:10.0f} x "
                f"{in_ms(c.iteration_seconds):<8}= {in_ms(c.total_seconds):>8}"
            )
        return "\n".join(lines)


def chosen(A: Any, coloring: Any, block_size: int = 1) -> tuple[Any, Choice | None]:
    """Return the coloring that "auto" or an `AutoColoring` stands for, and the choice; another as it is, and None.

    Raises
    ------
    TypeError, ValueError
        As `ColorBlocks`, for a bad A.
    """
    if isinstance(coloring, str) and coloring == "auto":
        coloring = AutoColoring()
    if not isinstance(coloring, AutoColoring):
        return coloring, None
    matrix = admitted(A, floats=True)  # whether they are finite is found out where they are stored
    return choose(matrix, int(coloring.expected_iterations), SPEEDS[matrix.backend.name], block_size)


def choose(
    matrix: AdmittedMatrix, expected: int, speeds: Speeds, block_size: int = 1
) -> tuple[Coloring, Choice]:  # fmt: skip
    """Color by the method of least predicted cost, then by each other one that can pay for itself; return the best.

    "eb" is a candidate only if it is the first: it has no fewer colors than "ecl_gc".
    """
    backend = matrix.backend
    pattern = matrix if block_size == 1 else admitted(node_pattern(matrix.canonical(), block_size))
    graph = Graph.of(pattern)
    degrees, least = Degrees.of(graph), remainder_of(matrix, None, block_size)
    candidates: list[Candidate] = []

    def iteration(n_colors: float) -> float:
        n, entries, value_bytes = matrix.shape[0], matrix.indices.size, matrix.dtype.itemsize
        return speeds.iteration_seconds(n, entries, value_bytes, n_colors, block_size)

    def iterations(remainder: float) -> float:
        return expected * math.sqrt(remainder / (AVERAGE_ORDER * least)) if least > 0 else float(expected)

    def computed(method: str, cost: float) -> tuple[Candidate, Coloring, float]:
        coloring = reordered(pattern, finished(*COLORINGS[method](graph), method, backend))
        remainder = remainder_of(matrix, coloring.colors, block_size)
        n_colors = coloring.n_colors
        candidates.append(Candidate(method, n_colors, cost, iterations(remainder), iteration(n_colors)))
        return candidates[-1], coloring, remainder

    costs = {method: speed.seconds(degrees) for method, speed in speeds.colorings.items()}
    first = min((method for method in costs if not speeds.colorings[method].per_front), key=lambda name: costs[name])
    best, coloring, remainder = computed(first, costs[first])
    for method, speed in speeds.colorings.items():
        if method in (first, "eb"):
            continue
        # At best, colors are as few, and iterations as many, as one may hope for.
        fewest = max(coloring.n_colors / times_fewer(method, best.method, degrees), min(coloring.n_colors, 2))
        hoped = min(remainder, AVERAGE_ORDER * least) if best.method == "greedy" else remainder
        at_best = Candidate(method, None, costs[method], iterations(hoped), iteration(fewest))
        if speed.per_front:
            # A chain of neighbors is found quickly, and there are at least as many fronts.
            for name, fronts in (("or more", longest_chain), ("or so", fronts_expected)):
                if at_best.total_seconds < best.total_seconds:
                    count = fronts(graph)
                    at_best = at_best.costing(speed.seconds(degrees, count), f"{count} fronts {name}")
        if at_best.total_seconds < best.total_seconds:
            found = computed(method, at_best.coloring_seconds)
            if found[0].total_seconds < best.total_seconds:
                best, coloring, remainder = found
        else:
            candidates.append(at_best)
    return coloring, Choice(best.method, _reason(best, candidates), expected, tuple(candidates))


def in_ms(seconds: float) -> str:
    """A number of milliseconds, three digits or all before the point."""
    return f"{1e3 * seconds:.0f}" if seconds >= 0.1 else f"{1e3 * seconds:.3g}"


def _reason(best: Candidate, candidates: list[Candidate]) -> str:
    text = f"{best.method} with {best.n_colors} colors is predicted to take {in_ms(best.total_seconds)} ms in all"
    for other in candidates:
        if other is not best:
            colors = "at best" if other.n_colors is None else f"with {other.n_colors} colors"
            text += f", {other.method} {colors} {in_ms(other.total_seconds)} ms"
            text += f" ({other.remark})" if other.remark else ""
    return text + "."


def times_fewer(method: str, than: str, degrees: Degrees) -> float:
    """How many times fewer colors than another method one may have, by what was seen on all kinds of graphs."""
    if than == "greedy":
        return 1.0
    if method == "greedy":
        return 2.0 if degrees.skew < NEARLY_EQUAL else 1.0
    return min(2.0, 1 + 0.2 * degrees.skew)


def fronts_expected(graph: Graph) -> int:
    """How many fronts first-fit in row order has, if they go on to grow as in the second half of the first rows."""
    if graph.n <= PROBED:
        return graph.n
    rows = max(graph.n // PROBED, 2)
    fronts = colors_and_fronts(first_rows(graph, rows), None) >> 32
    half, found = int(fronts[: rows // 2].max()), int(fronts.max())
    return found + round((found - half) * (graph.n - rows) / (rows - rows // 2))


def first_rows(graph: Graph, rows: int) -> Graph:
    """The graph of the first so many vertices; its degrees are those of the whole graph."""
    xp = graph.backend.xp
    indices = graph.indices[: int(graph.indptr[rows])]
    inside = indices < rows
    before = xp.append(xp.zeros(1, graph.indptr.dtype), xp.cumsum(inside, dtype=graph.indptr.dtype))
    indptr = before[graph.indptr[: rows + 1]]
    return Graph(indptr, indices[inside], graph.degrees[:rows], rows, graph.max_degree, graph.backend)


def remainder_of(matrix: AdmittedMatrix, colors: Any | None, block_size: int = 1) -> float:
    """The remainder of a coloring, of nodes in blocks; without one, the least that any order may have."""
    backend, n = matrix.backend, matrix.shape[0]
    xp = backend.xp
    every = colors is None
    if every:
        colors = xp.zeros(n, np.int32)
    terms = xp.empty(n, np.float64)
    backend.kernels(KERNELS, OFFSET=matrix.indptr.dtype, VALUE=matrix.dtype, LANES=8).remainders(
        n, matrix.indptr, matrix.indices, matrix.data, block_size, colors, int(every), terms
    )
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(terms.sum())
    return total if math.isfinite(total) else 0.0


@KERNELS.twin
def remainders(n, indptr, indices, values, block_size, colors, every, terms):
    """(sum_j a_ij)^2 / |a_ii| over the j of a later color, or half of that over all j of other nodes; real parts."""
    for i in prange(n):
        node = i // block_size
        total = diagonal = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            other = indices[k] // block_size
            if indices[k] == i:
                diagonal += values[k].real
            elif other != node and (every or colors[other] > colors[node]):
                total += values[k].real
        if every:
            total *= 0.5
        terms[i] = total * total / abs(diagonal) if diagonal != 0 else 0.0
