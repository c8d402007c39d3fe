"""What the figures show: the numbers behind lines and bars, and that they can be told apart in gray."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from mcprecond import ILU0, SolveResult
from mcprecond.problems import graphs
from mcprecond.solvers.result import Reason
from mcprecond.studies import Table, plots


@pytest.fixture(autouse=True)
def pyplot():
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def row(matrix, method, seconds, *, verified=True, colors=4, vertices=100, iterations=7):
    facts = {"matrix": matrix, "method": method, "seconds": seconds, "verified": verified}
    return facts | {"colors": colors, "vertices": vertices, "iterations": iterations}


TABLE = Table(
    [
        row("A", "fast", 1.0, colors=8, vertices=1000, iterations=9),
        row("A", "slow", 4.0, colors=4, vertices=1000, iterations=7),
        row("B", "fast", 2.0, colors=6, vertices=10, iterations=5),
        row("B", "slow", 9.0, verified=False, vertices=10),
        row("A", "none", 2.0, colors=None, vertices=1000),
        row("B", "none", 1.0, colors=None, vertices=10),
    ]
)


def lines(ax):
    return {line.get_label(): line for line in ax.get_lines()}


def assert_readable(ax):
    """Drawn, named axes, a legend, and no two lines of one look."""
    ax.figure.canvas.draw()
    looks = [(line.get_marker(), line.get_fillstyle(), line.get_linestyle()) for line in ax.get_lines()]
    assert len(set(looks)) == len(looks)
    assert ax.get_xlabel() and ax.get_ylabel() and ax.get_legend() is not None


def test_performance_profile():
    ax = plots.performance_profile(TABLE)
    drawn = lines(ax)
    assert list(drawn) == ["fast", "slow", "none"]

    def part_within(label, tau):
        x, y = drawn[label].get_data()
        return y[np.flatnonzero(np.asarray(x) <= tau)[-1]]

    assert (part_within("fast", 1), part_within("fast", 1.9), part_within("fast", 2)) == (0.5, 0.5, 1)
    assert (part_within("slow", 3.9), part_within("slow", 4), part_within("slow", 4.4)) == (0, 0.5, 0.5)
    assert_readable(ax)


def test_a_profile_needs_every_method_on_every_matrix():
    with pytest.raises(ValueError, match="one row for each method on each matrix"):
        plots.performance_profile(Table(TABLE.rows[:3]))
    with pytest.raises(ValueError, match="one row for each method on each matrix"):
        plots.performance_profile(Table(TABLE.rows[:2] * 2))


def test_a_method_that_fails_everywhere_and_a_matrix_without_a_winner():
    rows = [row("A", "x", 1.0), row("A", "y", 1.0, verified=False)]
    rows += [row("B", "x", 1.0, verified=False), row("B", "y", 1.0, verified=False)]
    drawn = lines(plots.performance_profile(Table(rows)))
    assert max(drawn["x"].get_ydata()) == 0.5 and max(drawn["y"].get_ydata()) == 0


def test_points_of_verified_rows():
    ax = plots.time_against_colors(TABLE)
    drawn = {label: [tuple(point) for point in line.get_xydata()] for label, line in lines(ax).items()}
    assert drawn == {"fast": [(6, 2.0), (8, 1.0)], "slow": [(4, 4.0)]}  # no preconditioner, no colors
    assert_readable(ax)


@pytest.mark.parametrize("plot", [plots.performance_profile, plots.time_against_colors])
def test_nothing_verified_is_nothing_to_draw(plot):
    with pytest.raises(ValueError, match="no verified row"):
        plot(Table([row("A", "x", 1.0, verified=False)]))


def test_level_sizes():
    A = graphs.grid2d(12)
    levels = {order: ILU0(A, ordering=order, coloring="greedy").levels for order in ("natural", "color")}
    ax = plots.level_sizes(levels)
    drawn = lines(ax)
    assert drawn["natural"].get_ydata().tolist() == [*range(1, 13), *range(11, 0, -1)]
    assert drawn["color"].get_xydata().tolist() == [[1, 72], [2, 72]]
    assert_readable(ax)
    for nothing in ({}, {"empty": np.empty(0, np.int64)}):
        with pytest.raises(ValueError, match="at least one ILU0's levels"):
            plots.level_sizes(nothing)


def test_residual_history():
    def result(*residuals):
        return SolveResult(None, Reason.CONVERGED, len(residuals) - 1, np.array(residuals), 0.0, 0.0, 0.0)

    ax = plots.residual_history({"one": result(4.0, 2.0, 1.0), "two": result(2.0, 0.0), "zero": result(0.0)})
    drawn = lines(ax)
    assert drawn["one"].get_xydata().tolist() == [[0, 1], [1, 0.5], [2, 0.25]]
    assert np.isnan(drawn["two"].get_ydata()[1])
    assert_readable(ax)
    with pytest.raises(ValueError, match="at least one"):
        plots.residual_history({})


def test_multigrid():
    rows = [row("A", name, 1.0) | {"operator_complexity": 1.5, "residuals": [1.0, 0.25]} for name in ("V", "K")]
    ax = plots.multigrid(Table(rows))
    drawn = lines(ax)
    assert list(drawn) == ["V (1.50)", "K (1.50)"] and drawn["K (1.50)"].get_xydata().tolist() == [[0, 1], [1, 0.25]]
    assert_readable(ax)
    assert list(lines(plots.multigrid(Table([*rows, rows[0] | {"matrix": "B"}]))))[2] == "B, V (1.50)"
    with pytest.raises(ValueError, match="no verified row"):
        plots.multigrid(Table([row("A", "V", 1.0, verified=False)]))


def test_many_methods_look_different():
    methods = [str(i) for i in range(25)]
    ax = plots.time_against_colors(Table([row("A", method, 1.0) for method in methods]))
    assert list(lines(ax)) == methods
    assert_readable(ax)


def test_axes_of_the_caller(pyplot):
    _, (left, right) = pyplot.subplots(1, 2)
    assert plots.time_against_colors(TABLE, ax=left) is left
    assert len(left.get_lines()) == 2 and not right.get_lines() and pyplot.get_fignums() == [1]


def test_without_matplotlib_the_extra_is_named():
    program = "import sys; sys.modules['matplotlib'] = None; from mcprecond.studies import Table, plots\n"
    program += "plots.time_against_colors(Table([{'method': 'x', 'verified': True, 'colors': 1, 'seconds': 1.0}]))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "ImportError: plots need matplotlib; from a clone: pip install '.[studies]'" in result.stderr
