"""coloring="auto" of the preconditioners: the coloring for which setting up and iterating are predicted to take least.

What is predicted, by the cost model, is the time of a solve with PCG:

    coloring + iterations x iteration

The iterations that somebody expects are those with an average coloring; they differ between colorings with the square
root of the remainder. How many fronts first-fit in row order has is extrapolated from the first rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mcprecond.coloring import COLORINGS, Coloring, Graph
from mcprecond.coloring.coloring import finished
from mcprecond.coloring.priority.jp import colors_and_fronts, longest_chain
from mcprecond.matrix import AdmittedMatrix, admitted
from mcprecond.ordering.color_order import reordered
from mcprecond.storage.node_blocks import node_pattern
from mcprecond.tuning.cost_model import SPEEDS, Degrees, Speeds
from mcprecond.tuning.remainder import AVERAGE_ORDER, remainder_of

NEARLY_EQUAL = 0.5  # skew of degrees up to which first-fit in row order may have half of the colors of other methods
PROBED = 16  # of so many rows, the first one in so many tells how fronts grow


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
