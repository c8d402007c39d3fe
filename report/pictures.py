"""Pictures for the pages; the same figures give the same file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mcprecond.studies import Table, plots

MARKERS = "osD^v"  # told apart without color
#: Of lines and markers: dark enough to be read on white. Markers and dashes tell more of them apart.
COLORS = ("black", "#1b6ca8", "#c44e00", "#2a7f3f", "#8e3a97", "#a07000", "#c0243c", "#0a8080")

#: What is dark in a picture for white pages, in one for black pages.
ON_BLACK = dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), "#e0e0e0")


@contextmanager
def picture(
    path: Path,
    rows: int = 1,
    columns: int = 1,
    *,
    salt: str | None = None,
    style: dict[str, str] | None = None,
    **look: Any,
) -> Iterator[Any]:
    """Lend the panels of a figure to a block that draws in them, then write it, with nothing behind it. A fixed salt
    and no date make files equal.
    """
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    fixed = {"svg.hashsalt": salt or path.stem, "font.size": 9, "axes.prop_cycle": plt.cycler(color=COLORS)}
    with plt.rc_context(fixed | (style or {})):
        yield plt.subplots(rows, columns, squeeze=False, layout="constrained", **look)[1]
        path.parent.mkdir(parents=True, exist_ok=True)
        plt.gcf().savefig(path, metadata={"Date": None}, transparent=True)
        plt.close()


def over_size(table: Table, column: str, ax: Any, size: str = "vertices") -> Any:
    """Draw a column over the number of vertices, or another size, a line for each method."""
    ax = plots.draw_methods(table, size, column, ax)
    ax.set(xscale="log", yscale="log", xlabel=size, ylabel="time [s]" if column == "seconds" else column)
    return ax


def plain_ticks(axis: Any) -> None:
    """Ticks of a logarithmic axis as 1, 2, 5, 10, ..."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def beside_legend(ax: Any, label: str, **look: Any) -> None:
    """Label the logarithmic vertical axis, with plain ticks, and put the legend to the right of the panel."""
    ax.set(ylabel=label)
    plain_ticks(ax.yaxis)
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), **look)


def gray_dots(ax: Any, names: list[str], cases: dict[str, dict[str, float]], *, white: int) -> None:
    """A row for each name, and a gray and a marker for each case; the case of that number is white."""
    for k, (label, values) in enumerate(cases.items()):
        look = {"linestyle": "none", "markeredgecolor": "black", "color": str(k / max(white, 1)), "label": label}
        ax.plot(values.values(), [names.index(name) for name in values], MARKERS[k % len(MARKERS)], **look)
    ax.grid(axis="both", color="0.85")
    ax.set_axisbelow(True)
