"""Effective resistances: which roads of a network have no way around."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg
from scipy.spatial import Delaunay

from mcprecond import SmoothedAggregation, pcg
from mcprecond.problems.devices import on, to_host

#: Places that roads connect.
SIZES = {"test": 300, "shown": 4000, "timed": 200_000}
BESIDE = "SciPy's direct solver"
PROBES, RTOL, SEED = 32, 1e-6, 0


def prepare(size: int) -> dict[str, Any]:
    """Places and roads: the edges of triangles, but for those that cross a river, which has two bridges."""
    rng = np.random.default_rng(SEED)
    points = rng.random((size, 2))
    triangles = Delaunay(points).simplices
    edges = np.unique(np.sort(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1), axis=0)
    side = points[:, 1] > 0.5 + 0.1 * np.sin(6 * points[:, 0])
    crosses, middle = side[edges[:, 0]] != side[edges[:, 1]], points[edges].mean(axis=1)[:, 0]
    width = 3 / np.sqrt(size)
    kept = edges[~crosses | (abs(middle - 0.25) < width) | (abs(middle - 0.7) < width)]
    ends = np.arange(len(kept)).repeat(2), kept.ravel()
    C = sp.csr_array((np.tile([1.0, -1.0], len(kept)), ends), shape=(len(kept), size))
    return {"points": points, "edges": kept, "C": C, "probes": rng.choice([-1.0, 1.0], (len(kept), PROBES))}


# shown in the docs
def solve(problem: dict[str, Any], device: str = "cpu") -> np.ndarray:
    """Estimate the resistance between the ends of every road from a few random currents, which are solved for at once.

    Spielman, Srivastava: Graph Sparsification by Effective Resistances, SIAM J. Comput. 40, 2011.
    """
    C, probes = problem["C"], problem["probes"]
    L, B = on(device, sp.csr_array(C.T @ C), C.T @ probes)
    potentials = to_host(pcg(L, B, M=SmoothedAggregation(L), nullspace="constant", rtol=RTOL).x)
    return ((C @ potentials) ** 2).mean(axis=1)


# end
def by_default(problem: dict[str, Any]) -> np.ndarray:
    """SciPy's direct solver, with the first place at potential zero."""
    C, probes = problem["C"], problem["probes"]
    factors = scipy.sparse.linalg.splu(sp.csc_array(C.T @ C)[1:, 1:])
    potentials = np.zeros((C.shape[1], PROBES))
    potentials[1:] = factors.solve((C.T @ probes)[1:])
    return ((C @ potentials) ** 2).mean(axis=1)


def difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    """That of the resistances, relative to the largest one."""
    return float(abs(ours - theirs).max() / theirs.max())


def draw(figure: Any, problem: dict[str, Any], found: np.ndarray) -> None:
    """Roads, colored by the resistance between their ends."""
    from matplotlib.collections import LineCollection

    axes = figure.add_subplot()
    roads = LineCollection(problem["points"][problem["edges"]], cmap="inferno_r", linewidth=0.6, rasterized=True)
    roads.set_array(np.minimum(found, 1.0))
    axes.add_collection(roads)
    axes.set(aspect="equal", xlim=(0, 1), ylim=(0, 1), xticks=[], yticks=[])
    figure.colorbar(roads, label="resistance")


if __name__ == "__main__":
    from mcprecond.studies.plots import save_picture

    shown = prepare(SIZES["shown"])
    save_picture("effective_resistances.png", draw, shown, solve(shown))
