"""The coloring of least time: that with which a solve is predicted to take least.

This is what ``coloring="auto"`` of the preconditioners stands for. ``color(A, "auto")`` is not made for a solve and
chooses between the same two methods by another rule, few colors first (`mcprecond.coloring.auto`).

What is predicted for every candidate, by the cost model, is the time of a solve with PCG:

    coloring + iterations x iteration

Nothing is colored or timed to find it out. The number of colors follows from the degrees, as on the meshes of the
record; where degrees differ much it is about the same for all methods, and the quickest one is taken. First-fit in row
order has half of the colors on numbered meshes, but on a GPU it takes a time per front, a set of rows that can be
colored at once. A sample of rows and the longest chain of neighbors in row order tell how many fronts there are.

All candidates give the same coloring in every run, on either device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from mcprecond.coloring import Coloring, Graph, color
from mcprecond.coloring.auto import fronts_expected
from mcprecond.matrix import AdmittedMatrix
from mcprecond.ordering.color_order import reorder
from mcprecond.tuning.cost_model import Degrees, Speeds, speeds_of
from mcprecond.typing import ColoringMethod, Integers

#: Skew of degrees up to which first-fit in row order has fewer colors than other methods, if rows are numbered along
#: lines.
NEARLY_EQUAL = 0.5
#: A mesh whose longest row has d entries gets about a + b d colors: (a, b) for random priorities, and for first-fit in
#: row order. With rows of 5, 27 and 81 entries random priorities gave 5, 17 and 44 colors, first-fit 2, 8 and 24.
IN_RANDOM_ORDER, IN_ROW_ORDER = (2.5, 0.52), (0.0, 0.3)


@dataclass(frozen=True)
class AutoColoring:
    """The coloring of least predicted time for a number of iterations; ``coloring="auto"`` stands for 100 of them.

    ``color(A, "auto")`` goes by another rule: few colors first, whatever they are for.

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


#: What the argument `coloring` may be.
ColoringArgument: TypeAlias = ColoringMethod | AutoColoring | Coloring | Integers


@dataclass(frozen=True)
class Candidate:
    """A coloring that was considered, and what is predicted for it.

    Attributes
    ----------
    method : str
    n_colors : int or None
        About so many; None where degrees do not tell.
    coloring_seconds, iteration_seconds : float
    iterations : int
    remark : str
        What else the prediction rests on.
    """

    method: str
    n_colors: int | None
    coloring_seconds: float
    iteration_seconds: float
    iterations: int
    remark: str = ""

    @property
    def total_seconds(self) -> float:
        """Coloring and iterations."""
        return self.coloring_seconds + self.iterations * self.iteration_seconds


@dataclass(frozen=True)
class Choice:
    """The coloring of least predicted time, and why; `print` shows it.

    Attributes
    ----------
    method : str
        A name in `COLORINGS`, with its default options.
    candidates : tuple of Candidate
        The least one first.
    """

    method: str
    candidates: tuple[Candidate, ...]

    @property
    def expected_iterations(self) -> int:
        """How many iterations the prediction is for."""
        return self.candidates[0].iterations

    @property
    def reason(self) -> str:
        """One sentence."""
        best, *others = self.candidates
        text = f"{best.method} is predicted to take {in_ms(best.total_seconds)} ms in all"
        for other in others:
            text += f", {other.method} {in_ms(other.total_seconds)} ms"
        return f"{text}."

    def __str__(self) -> str:
        lines = [self.reason, "predicted, in ms:", "          colors  coloring + iterations x one        =    total"]
        for c in self.candidates:
            lines.append(
                f"{c.method:8} {c.n_colors or '?':>7} {in_ms(c.coloring_seconds):>9} + {c.iterations:10} x "
                f"{in_ms(c.iteration_seconds):<10} = {in_ms(c.total_seconds):>8}{c.remark and f'  ({c.remark})'}"
            )
        return "\n".join(lines)


def choose_coloring(matrix: AdmittedMatrix, coloring: Any, block_size: int = 1) -> tuple[Any, Choice | None]:
    """Return the method of least time, where "auto" or an `AutoColoring` asks for it, and the choice; another coloring
    as it is, and None. On a CPU first-fit follows a compact order of the rows where their own is bad.
    """
    if isinstance(coloring, str) and coloring == "auto":
        coloring = AutoColoring()
    if not isinstance(coloring, AutoColoring):
        return coloring, None
    speeds = speeds_of(matrix.backend)
    choice = choose(matrix, int(coloring.expected_iterations), speeds, block_size)
    # First-fit has few colors on a mesh, if one neighbor after the other is visited.
    order = matrix.compact_order if is_regular(matrix, 1) and block_size == 1 else None
    if choice.method == "greedy" and order is not None:
        return reorder(matrix, color(matrix, "greedy", order=order)), choice
    return choice.method, choice


def choose(matrix: AdmittedMatrix, iterations: int, speeds: Speeds, block_size: int = 1) -> Choice:
    """The method of least predicted time for a matrix whose nodes have so many unknowns."""
    n, entries, value_bytes = matrix.shape[0], matrix.indices.size, matrix.dtype.itemsize
    degrees = degrees_of(matrix, block_size)

    def candidate(method: str, expected: tuple[float, float], fronts: int = 0) -> Candidate:
        colors = expected_colors(matrix, expected, block_size)
        return Candidate(
            method,
            colors if is_regular(matrix, block_size) else None,
            speeds.colorings[method].seconds(degrees, fronts),
            speeds.iteration_seconds(n, entries, value_bytes, colors, block_size),
            iterations,
            f"{fronts} fronts or so" if fronts else "",
        )

    candidates = [candidate("ecl_gc", IN_RANDOM_ORDER)]
    in_row_order = candidate("greedy", IN_ROW_ORDER)
    if speeds.colorings["greedy"].per_front and in_row_order.total_seconds < candidates[0].total_seconds:
        fronts = fronts_expected(Graph.of(matrix), block_size)
        if not fronts:  # then first-fit has no fewer colors, and nobody knows how many fronts
            return Choice("ecl_gc", tuple(candidates))
        in_row_order = candidate("greedy", IN_ROW_ORDER, fronts)
    candidates.append(in_row_order)
    candidates.sort(key=lambda c: c.total_seconds)  # stably: of equals the first
    return Choice(candidates[0].method, tuple(candidates))


def usual_colors(matrix: AdmittedMatrix, speeds: Speeds) -> float:
    """About how many colors "auto" finds: where it depends on fronts, the mean of both candidates."""
    in_row_order = expected_colors(matrix, IN_ROW_ORDER)
    if not speeds.colorings["greedy"].per_front:
        return in_row_order
    return (in_row_order + expected_colors(matrix, IN_RANDOM_ORDER)) / 2


def expected_colors(matrix: AdmittedMatrix, expected: tuple[float, float], block_size: int = 1) -> int:
    """About how many colors a method finds, with IN_RANDOM_ORDER or IN_ROW_ORDER. Where degrees differ much, all
    methods find about as many, and the mean degree stands for that.
    """
    n, longest = matrix.shape[0], degrees_of(matrix, block_size).longest
    few, share = expected
    if is_regular(matrix, block_size):
        return max(min(round(few + share * longest), round(longest)), min(2, n))
    return max(matrix.indices.size // max(n, 1), min(2, n))


def degrees_of(matrix: AdmittedMatrix, block_size: int) -> Degrees:
    """The degrees of its nodes, as if all of them were full."""
    entries = max(matrix.indices.size // block_size**2, 1)
    return Degrees(matrix.shape[0] // block_size, entries, (matrix.max_degree + 1) / block_size)


def is_regular(matrix: AdmittedMatrix, block_size: int) -> bool:
    """Whether degrees are nearly equal, as in meshes that are numbered along lines."""
    return degrees_of(matrix, block_size).skew < NEARLY_EQUAL


def in_ms(seconds: float) -> str:
    """A number of milliseconds, three digits or all before the point."""
    return f"{1e3 * seconds:.0f}" if seconds >= 0.1 else f"{1e3 * seconds:.3g}"
