"""Figures of studies, one call each; matplotlib comes with the extra `studies`.

Every function takes `ax`, the Axes to draw into (by default those of a new figure), and returns them. Lines differ in
markers and dashes and bars in hatches, so that they can be told apart in gray. Rows that are not verified count as
failures in `performance_profile` and are left out elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import cycle, product
from pathlib import Path
from typing import Any

import numpy as np

from mcprecond.backends import backend_of
from mcprecond.coloring import Coloring
from mcprecond.solvers import SolveResult
from mcprecond.studies.table import Table

__all__ = [
    "color_blocks",
    "level_sizes",
    "multigrid",
    "performance_profile",
    "residual_history",
    "time_against_colors",
]

#: A picture of a matrix is so many squares wide at most.
SQUARES = 600
MARKERS = "osv^D*PX<>"
FILLS = ("none", "full", "left")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (8, 3)))


def performance_profile(table: Table, ax: Any = None) -> Any:
    """Draw for each method on what part of the matrices it takes at most tau times the fastest method's time.

    Parameters
    ----------
    table : Table
        Of `coloring` or `convergence`, with a row for each method on each matrix.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If no row is verified, or a method has no row, or two, for a matrix.

    References
    ----------
    Dolan, Moré: Benchmarking optimization software with performance profiles, Mathematical Programming 91, 2002.

    Examples
    --------
    >>> from mcprecond import studies
    >>> from mcprecond.problems import graphs
    >>> table = studies.coloring({"grid": graphs.grid2d(8)}, ["greedy", "jpl"], repeats=1)
    >>> ax = studies.plots.performance_profile(table)
    """
    _verify(table)
    methods, matrices = _names(table, "method"), _names(table, "matrix")
    if len(table.rows) != len(methods) * len(matrices) or len({(r["matrix"], r["method"]) for r in table.rows}) != len(
        table.rows
    ):
        raise ValueError("the table must have one row for each method on each matrix")
    seconds = np.full((len(matrices), len(methods)), np.inf)
    for row in table.rows:
        if row["verified"]:
            seconds[matrices.index(row["matrix"]), methods.index(row["method"])] = row["seconds"]
    fastest = seconds.min(axis=1, keepdims=True)
    # Where every method failed, no ratio is finite.
    ratios = np.divide(seconds, fastest, out=np.full_like(seconds, np.inf), where=np.isfinite(seconds))
    end = 1.1 * ratios[np.isfinite(ratios)].max()
    ax = _axes(ax)
    for (method, look), column in zip(_looks(methods), ratios.T, strict=True):
        taus = np.sort(column[np.isfinite(column)])
        part = np.arange(1, len(taus) + 1) / len(matrices)
        x, y = np.concatenate([[1.0], taus, [end]]), np.concatenate([[0.0], part, part[-1:] if len(part) else [0.0]])
        ax.step(x, y, where="post", label=method, **look)
    ax.set(xscale="log", xlabel="time relative to the fastest", ylabel="part of the matrices", ylim=(-0.02, 1.04))
    ax.legend()
    return ax


def time_against_colors(table: Table, ax: Any = None) -> Any:
    """Draw time (`seconds`) over colors, a point for each row, a marker for each method.

    Parameters
    ----------
    table : Table
        Of `coloring` or `convergence`. Rows without colors are left out.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If no row is left.
    """
    ax = draw_methods(table, "colors", "seconds", ax, linestyle="none")
    ax.set(xscale="log", yscale="log", xlabel="colors", ylabel="time [s]")
    return ax


def color_blocks(A: Any, coloring: Coloring, ax: Any = None) -> Any:
    """Draw where a matrix has entries when its rows are ordered by colors: every diagonal block is diagonal.

    Entries have the color of their row's block. A large matrix is drawn by squares of rows and columns, each shown if
    it holds an entry.

    Parameters
    ----------
    A : sparse matrix or array of SciPy, shape (n, n)
    coloring : Coloring
        Of A.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If A has no rows, or the coloring has another number of vertices.

    Examples
    --------
    >>> from mcprecond import color, problems, studies
    >>> A = problems.laplacian((8, 8))
    >>> ax = studies.plots.color_blocks(A, color(A, "greedy"))
    """
    n = A.shape[0]
    colors = backend_of(coloring.colors).to_host(coloring.colors)
    if n == 0 or len(colors) != n:
        raise ValueError(f"A has {n} rows and the coloring {len(colors)} vertices; there must be as many, and some")
    place = np.empty(n, np.int64)
    place[np.argsort(colors, kind="stable")] = np.arange(n)
    entries = A.tocoo()
    entries = entries.row[entries.data != 0], entries.col[entries.data != 0]
    squares = min(n, SQUARES)
    picture = np.full((squares, squares), -1)
    row, column = (place[index] * squares // n for index in entries)
    picture[row, column] = colors[entries[0]]
    ax = _axes(ax)
    ax.imshow(
        np.ma.masked_less(picture, 0),
        cmap="tab20",
        interpolation="nearest",
        extent=(0, n, n, 0),
        vmin=0,
        vmax=max(20, coloring.n_colors),
    )
    for border in np.cumsum(coloring.sizes)[:-1]:
        ax.axhline(border, color="0.6", linewidth=0.5)
        ax.axvline(border, color="0.6", linewidth=0.5)
    ax.set(xlabel="column, by colors", ylabel="row, by colors")
    return ax


def level_sizes(levels: Mapping[str, np.ndarray], ax: Any = None) -> Any:
    """Draw the rows of each level, a line for each label: many small levels in natural order, few large ones by color.

    Parameters
    ----------
    levels : dict of str to array of int, shape (n_levels,)
        Label -> `ILU0.levels`.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If there is nothing to draw.

    References
    ----------
    Naumov: Graph Coloring: More Parallelism for Incomplete-LU Factorization, NVIDIA 2015, Figure 6.

    Examples
    --------
    >>> from mcprecond import ILU0, studies
    >>> from mcprecond.problems import graphs
    >>> A = graphs.grid2d(16)
    >>> ax = studies.plots.level_sizes({order: ILU0(A, ordering=order).levels for order in ("natural", "color")})
    """
    if not any(len(sizes) for sizes in levels.values()):
        raise ValueError("levels must hold at least one ILU0's levels")
    ax = _axes(ax)
    for label, look in _looks(list(levels)):
        sizes = np.asarray(levels[label])
        ax.plot(np.arange(1, len(sizes) + 1), sizes, label=label, markevery=max(1, len(sizes) // 10), **look)
    ax.set(xscale="log", yscale="log", xlabel="level", ylabel="rows")
    ax.legend()
    return ax


def residual_history(results: Mapping[str, SolveResult], ax: Any = None) -> Any:
    """Draw the residual norms of solves, relative to the first one, over the iterations.

    Parameters
    ----------
    results : dict of str to SolveResult
        Label -> what the solver returned.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If there is no result.
    """
    if not results:
        raise ValueError("results must hold at least one SolveResult")
    return _histories({label: result.residuals for label, result in results.items()}, ax)


def multigrid(table: Table, ax: Any = None) -> Any:
    """Draw the residual norms of CG with each hierarchy, relative to the first one, over the iterations.

    The legend has the operator complexities: how many times the entries of A a hierarchy holds.

    Parameters
    ----------
    table : Table
        Of `studies.multigrid`.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If no row is verified.

    Examples
    --------
    >>> from mcprecond import problems, studies
    >>> table = studies.multigrid({"grid": problems.laplacian((30, 30))}, {"V": {}, "K": {"cycle": "K"}}, repeats=1)
    >>> ax = studies.plots.multigrid(table)
    """
    several = len(_names(table, "matrix")) > 1
    histories = {}
    for row in _verify(table):
        name = f"{row['matrix']}, {row['method']}" if several else row["method"]
        histories[f"{name} ({row['operator_complexity']:.2f})"] = np.array(row["residuals"])
    ax = _histories(histories, ax)
    ax.legend(title="hierarchy (operator complexity)")
    return ax


def _histories(histories: Mapping[str, np.ndarray], ax: Any) -> Any:
    """Draw norms relative to their first one, a line for each label."""
    ax = _axes(ax)
    for label, look in _looks(list(histories)):
        norms = histories[label]
        relative = norms / (norms[0] or 1.0)
        # Zeros have no logarithm: gaps in the line.
        drawn = np.where(relative > 0, relative, np.nan)
        ax.plot(np.arange(len(norms)), drawn, label=label, markevery=max(1, len(norms) // 10), **look)
    ax.set(yscale="log", xlabel="iteration", ylabel="residual, relative to the first")
    ax.legend()
    return ax


def save_picture(path: str | Path, draw: Callable[..., Any], *problem: Any) -> None:
    """Let ``draw(figure, *problem)`` draw on a new figure, and save that: what the examples of the gallery end with."""
    figure = _pyplot().figure(figsize=(6, 3.4), layout="constrained")
    draw(figure, *problem)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    _pyplot().close(figure)


def draw_methods(table: Table, x: str, y: str, ax: Any = None, **style: Any) -> Any:
    """Draw one column of a table over another, in the look of each method; rows that are not verified are left out."""
    rows = [row for row in _verify(table) if row.get(x) is not None and row.get(y) is not None]
    if not rows:
        raise ValueError(f"the table has no verified row with {x} and {y}")
    ax = _axes(ax)
    for method, look in _looks(_names(table, "method")):
        points = sorted((row[x], row[y]) for row in rows if row["method"] == method)
        if points:
            ax.plot(*zip(*points, strict=True), label=method, **(look | style))
    ax.legend()
    return ax


def _axes(ax: Any) -> Any:
    return _pyplot().subplots(layout="constrained")[1] if ax is None else ax


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("plots need matplotlib; from a clone: pip install '.[studies]'") from error
    return pyplot


def _looks(names: list[str]) -> list[tuple[str, dict[str, Any]]]:
    """Each name with a marker, filled in one of three ways, and dashes: the first 30 differ in their markers alone."""
    markers = cycle(product(FILLS, MARKERS))
    return [
        (name, {"marker": marker, "linestyle": dashes, "fillstyle": fill})
        for name, (fill, marker), dashes in zip(names, markers, cycle(DASHES), strict=False)
    ]


def _names(table: Table, column: str) -> list[str]:
    return list(dict.fromkeys(row[column] for row in table.rows))


def _verify(table: Table) -> list[dict[str, Any]]:
    rows = [row for row in table.rows if row["verified"]]
    if not rows:
        raise ValueError("the table has no verified row to draw")
    return rows
