"""Draw the pictures of the pages, into docs/images: colorings, levels, convergence, and those of the gallery.

python docs/pictures.py
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from matplotlib.collections import LineCollection
from matplotlib.ticker import MaxNLocator
from scipy.spatial import Delaunay

from mcprecond import ILU0, MulticolorSGS, SmoothedAggregation, color, pcg, problems
from mcprecond.problems import graphs
from mcprecond.studies.plots import save_picture

IMAGES = Path(__file__).resolve().parent / "images"
EXAMPLES = IMAGES.parent.parent / "examples" / "gallery"
GREEN, ORANGE, GRAY = "#1b9e77", "#d95f02", "0.5"


def main() -> None:
    for draw in (colorings, levels, convergence):
        # A fixed salt and no date: the same pictures every time.
        with plt.rc_context({"svg.hashsalt": draw.__name__, "font.size": 9}):
            figure = draw()
            figure.savefig(IMAGES / f"{draw.__name__}.svg", metadata={"Date": None})
            plt.close(figure)
    gallery()


def gallery() -> None:
    """A picture of each example, at its size "shown"."""
    sys.path.insert(0, str(EXAMPLES))
    for name in sorted(path.stem for path in EXAMPLES.glob("*.py")):
        example = importlib.import_module(name)
        problem = example.prepare(example.SIZES["shown"])
        save_picture(IMAGES / f"gallery-{name}.png", example.draw, problem, example.solve(problem))


def colorings() -> plt.Figure:
    """Three meshes and their colors."""
    figure, panels = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
    n = 14
    y, x = np.divmod(np.arange(n * n), n)
    stencils = (("5 points", 5, {"method": "greedy"}), ("9 points", 9, {"method": "jpl"}))
    for panel, (name, points, options) in zip(panels, stencils, strict=False):
        A = graphs.grid2d(n, points=points)
        of = color(A, **options)
        edges = sp.triu(A, 1).tocoo()
        ends = np.stack([np.stack([x[of_edge], y[of_edge]], axis=1) for of_edge in (edges.row, edges.col)], axis=1)
        panel.add_collection(LineCollection(ends, color="0.8", linewidth=0.6, zorder=0, rasterized=True))
        panel.scatter(x, y, c=of.colors, cmap="tab20", s=40)
        panel.set_title(f"{name}, {options['method']}: {of.n_colors} colors")
    points = np.random.default_rng(0).random((260, 2))
    triangles = Delaunay(points).simplices
    i, j = triangles.ravel(), np.roll(triangles, 1, axis=1).ravel()
    A = np.zeros((len(points),) * 2)
    A[i, j] = A[j, i] = 1
    of = color(sp.csr_array(A), "greedy")
    panels[2].triplot(*points.T, triangles, color="0.8", linewidth=0.6)
    panels[2].scatter(*points.T, c=of.colors, cmap="tab20", s=22, zorder=2)
    panels[2].set_title(f"triangles, greedy: {of.n_colors} colors")
    for panel in panels:
        panel.set(aspect="equal", xticks=[], yticks=[])
    return figure


def levels() -> plt.Figure:
    """The levels of ILU(0) on a grid, in the order of the rows and in that of the colors."""
    n = 24
    A = problems.laplacian((n, n))
    figure, panels = plt.subplots(1, 2, figsize=(7.5, 3.2), layout="constrained")
    y, x = np.divmod(np.arange(n * n), n)
    of = color(A, "greedy")
    shown = (("row order", x + y, ILU0(A, ordering="natural")), ("two colors", of.colors, ILU0(A, coloring=of)))
    for panel, (name, level, M) in zip(panels, shown, strict=True):
        picture = panel.imshow(np.asarray(level).reshape(n, n), cmap="viridis")
        panel.set(xticks=[], yticks=[], title=f"{name}: {len(M.levels)} levels")
        figure.colorbar(picture, ax=panel, label="solved in step", ticks=MaxNLocator(integer=True))
    return figure


def convergence() -> plt.Figure:
    """The residuals of CG on a grid."""
    n = 300
    A = problems.laplacian((n, n))
    b = np.random.default_rng(0).standard_normal(n * n)
    figure, panel = plt.subplots(figsize=(7.5, 3.2), layout="constrained")
    solvers = (
        ("CG", None, GRAY),
        ("CG with multicolor Gauss-Seidel", MulticolorSGS(A), GREEN),
        ("CG with multigrid", SmoothedAggregation(A), ORANGE),
    )
    for name, M, look in solvers:
        result = pcg(A, b, M=M, rtol=1e-8)
        label = f"{name}: {result.iterations} iterations"
        panel.semilogy(result.residuals / result.residuals[0], color=look, label=label)
    panel.set(xlabel="iteration", ylabel="residual", title=f"Poisson's equation on {n} x {n} nodes")
    panel.grid(color="0.9")
    panel.legend()
    return figure


if __name__ == "__main__":
    main()
