"""How a `SolveResult` is shown: as a block of text, and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

RESIDUAL, ERROR, BORDER = {"color": "C0"}, {"color": "C1", "linestyle": "--"}, {"color": "0.6", "linestyle": ":"}


def describe(result: Any, why: str) -> str:
    """The text: why the solve ended, and a line for each thing that is known. Of several columns it has the largest
    numbers.
    """
    error = largest([column.energy_error for column in result._each])
    condition, most = largest(result.condition), int(np.max(result.error_iterations))
    lines = {
        "method": way_of(result),
        "iterations": iterations_of(result) + (f", and {most} that told the error" if most else ""),
        "relative residual": f"{largest(result.relative_residual):.1e}",
        "energy error": "" if np.isnan(error) else f"about {error:.1e}, relative to the solution",
        "condition of M A": "" if np.isnan(condition) else f"about {condition:.1e}",
        "time": f"{result.setup_seconds:.3g} s of setup, {result.solve_seconds:.3g} s of the solve",
    }
    return "\n".join([why, *(f"  {name:<18} {text}" for name, text in lines.items() if text)])


def way_of(result: Any) -> str:
    """The method and its stages."""
    names = [name_of(stage) for stage in result.stages]
    return f"{result.method} with {', then '.join(names)}" if names else result.method


def name_of(stage: Any) -> str:
    """What a stage is called."""
    return "no preconditioner" if stage.name == "none" else stage.name


def iterations_of(result: Any) -> str:
    """How many iterations there were, and in which stages; of several columns the fewest and the most."""
    counts = np.atleast_1d(result.iterations)
    few, most = int(counts.min()), int(counts.max())
    if few < most:
        return f"{few} to {most}"
    parts = [str(stage.iterations) for stage in result.stages]
    return f"{most} ({' + '.join(parts)})" if len(parts) > 1 else str(most)


def largest(numbers: Any) -> float:
    """The largest number that is not NaN; NaN if there is none."""
    known = np.atleast_1d(numbers)
    known = known[~np.isnan(known)]
    return float(known.max()) if known.size else np.nan


def draw(columns: Sequence[Any], stages: Sequence[Any], ax: Any) -> Any:
    """See `SolveResult.plot`."""
    if ax is None:
        try:
            from matplotlib import pyplot
        except ImportError as error:
            raise ImportError("plots need matplotlib: pip install matplotlib") from error
        ax = pyplot.subplots(layout="constrained")[1]
    for k, column in enumerate(columns):
        labels = ("residual, relative to b", "energy error, estimated") if k == 0 else (None, None)
        draw_line(ax, column.residuals / (column.norm_of_b or 1.0), labels[0], RESIDUAL)
        if not np.isnan(column.energy_error):
            draw_line(ax, column.energy_errors, labels[1], ERROR)
    begin = 0
    for stage in stages:
        if begin:
            ax.axvline(begin, **BORDER)
        ax.annotate(name_of(stage), (begin, 1), (3, 3), xycoords=("data", "axes fraction"), textcoords="offset points")
        begin += stage.iterations
    ax.set(yscale="log", xlabel="iteration")
    ax.legend()
    return ax


def draw_line(ax: Any, numbers: np.ndarray, label: str | None, look: dict[str, Any]) -> None:
    """A line with gaps where a number is zero, which has no logarithm."""
    ax.plot(np.arange(len(numbers)), np.where(numbers > 0, numbers, np.nan), label=label, **look)
