"""Draw the pictures of the pages, into docs/images: colorings, levels, convergence, errors that a residual hides, and
those of the gallery.

python docs/pictures.py
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg
from matplotlib.collections import LineCollection
from matplotlib.ticker import MaxNLocator
from scipy.spatial import Delaunay

from mcprecond import ILU0, MulticolorSGS, SmoothedAggregation, color, pcg, problems
from mcprecond.problems import graphs
from mcprecond.studies.plots import save_picture
from report.pictures import ON_BLACK

IMAGES = Path(__file__).resolve().parent / "images"
EXAMPLES = IMAGES.parent.parent / "examples" / "gallery"
GREEN, ORANGE, GRAY = "#1b9e77", "#d95f02", "0.5"
#: The colors of a chart cannot be inverted in dark mode where the chart contains an image. The text of such a chart is
#: gray, which can be read on white and on black.
ON_BOTH = dict.fromkeys(ON_BLACK, "0.5") | {"savefig.transparent": True}


def main() -> None:
    for draw in (colorings, levels, convergence, walker_errors, circuit_errors):
        # A fixed salt and no date: the same pictures every time.
        letters = ON_BOTH if draw is walker_errors else {}
        with plt.rc_context({"svg.hashsalt": draw.__name__, "font.size": 9} | letters):
            figure = draw()
            figure.savefig(IMAGES / f"{draw.__name__}.svg", metadata={"Date": None})
            plt.close(figure)
    gallery()


def gallery() -> None:
    """A picture of each example, at its size "shown"."""
    for name in sorted(path.stem for path in EXAMPLES.glob("*.py")):
        example = example_of_gallery(name)
        problem = example.prepare(example.SIZES["shown"])
        with plt.rc_context(ON_BOTH):
            save_picture(IMAGES / f"gallery-{name}.png", example.draw, problem, example.solve(problem))


def example_of_gallery(name: str) -> Any:
    """The module of an example."""
    if str(EXAMPLES) not in sys.path:
        sys.path.insert(0, str(EXAMPLES))
    return importlib.import_module(name)


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


def walker_errors() -> plt.Figure:
    """The probabilities of a random walker by the residual's norm, by that of the error and by a direct solver."""
    example = example_of_gallery("random_walker")
    problem = example.prepare(120)
    A, b = example.system(problem, beta=5e4, least=1e-10)
    M, exact = SmoothedAggregation(A), scipy.sparse.linalg.spsolve(A, b)
    figure, panels = plt.subplots(1, 4, figsize=(9, 3.4), layout="compressed")
    part = np.s_[60:, :76]
    panels[0].imshow(problem["image"][part], cmap="gray", interpolation="none")
    seeds = np.ma.masked_equal(problem["seeds"][part], 0)
    panels[0].imshow(seeds, cmap="autumn", alpha=0.6, interpolation="none")
    panels[0].set_title("seeds on coins (red)\nand beside (yellow)")
    found = {}
    for norm in ("residual", "energy"):
        result = pcg(A, b, M=M, rtol=1e-8, norm=norm)
        wrong = np.count_nonzero(abs(result.x - exact) > 0.01)
        found[f'norm="{norm}":\n{result.iterations} iterations,\n{wrong} pixels off by over 0.01'] = result.x
    for panel, (title, x) in zip(panels[1:], (found | {"a direct solver": exact}).items(), strict=True):
        shown = example.on_image(problem, x)[part]
        picture = panel.imshow(shown, vmin=0, vmax=1, cmap="viridis", interpolation="none")
        panel.set_title(title)
    for panel in panels:
        panel.set(xticks=[], yticks=[])
    figure.colorbar(picture, ax=panels, label="probability", location="bottom", shrink=0.3, aspect=30)
    figure.suptitle("pcg(A, b, M=SmoothedAggregation(A), rtol=1e-8), beta 5e4")
    return figure


def circuit_errors() -> plt.Figure:
    """The residual and the error of CG on two networks of conductances, and where it ends by either norm."""
    side = 48
    index = np.arange(side * side).reshape(side, side)
    edges = (index[:-1], index[1:]), (index[:, :-1], index[:, 1:])
    pairs = np.concatenate([np.stack(ends, -1).reshape(-1, 2) for ends in edges])
    tile = (index // side // 8 * side + index % side // 8).ravel()[pairs]
    tiles = np.where(tile[:, 0] == tile[:, 1], 1.0, 1e-9)
    decades = 10 ** np.random.default_rng(0).uniform(-9, 0, len(pairs))
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    _draw_errors(panels[0], pairs, tiles, 1e-8)
    panels[0].set_title("tiles: 1 inside and 1e-9 across, rtol=1e-8")
    _draw_errors(panels[1], pairs, decades, 1e-6)
    panels[1].set_title("at random between 1e-9 and 1, rtol=1e-6")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _draw_errors(panel: plt.Axes, pairs: np.ndarray, conductances: np.ndarray, rtol: float) -> None:
    """Draw what CG makes of a network with a potential of 0 at its first node and of 1 at its last one."""
    graph = sp.coo_array((conductances, pairs.T), shape=(pairs.max() + 1,) * 2)
    graph = graph + graph.T
    laplacian = sp.csr_array(sp.diags_array(graph.sum(axis=1)) - graph)
    A, b = laplacian[1:-1, 1:-1], -laplacian[1:-1, [-1]].toarray()[:, 0]
    factors = scipy.sparse.linalg.splu(sp.csc_array(A))
    exact = factors.solve(b)
    exact += factors.solve(b - A @ exact)

    def energy(v: np.ndarray) -> float:
        return np.sqrt(v @ (A @ v))

    M, errors = MulticolorSGS(A), [1.0]
    ends = {norm: pcg(A, b, M=M, rtol=rtol, norm=norm).iterations for norm in ("residual", "energy")}
    longer = ends["energy"] + ends["energy"] // 20
    whole = pcg(
        A, b, M=M, rtol=1e-15, maxiter=longer, callback=lambda x: errors.append(energy(x - exact) / energy(exact))
    )
    at = np.unique(np.linspace(1, longer, 150).astype(int))
    estimates = [pcg(A, b, M=M, rtol=1e-15, maxiter=count).energy_error for count in at]
    thin = slice(None, None, 1 + longer // 1000)
    steps = np.arange(longer + 1)[thin]
    panel.semilogy(steps, whole.residuals[thin] / whole.norm_of_b, color=GRAY, linewidth=0.7, label="relative residual")
    panel.semilogy(at, estimates, ".", color=ORANGE, markersize=3, label="error in the energy norm, as CG estimates it")
    panel.semilogy(steps, errors[thin], color=GREEN, linewidth=1.5, label="error in the energy norm")
    panel.axhline(rtol, color="black", linewidth=0.6, linestyle="--", label="rtol")
    for (norm, end), marker in zip(ends.items(), "os", strict=True):
        panel.semilogy(end, errors[end], marker, color="black", label=f'norm="{norm}" ends')
    panel.set(xlabel="iteration", ylim=(rtol / 1e4, 3))
    panel.grid(color="0.9")


if __name__ == "__main__":
    main()
