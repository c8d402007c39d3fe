"""The largest colors of a coloring, and the rest: all vertices of the other colors, which have edges among them.

Where a graph has hubs, a few colors have nearly all vertices, and many more have a few each, which are those around the
hubs.
"""

from __future__ import annotations

import numpy as np

from mcprecond.backends import backend_of
from mcprecond.coloring import Coloring
from mcprecond.matrix import AdmittedMatrix
from mcprecond.ordering.color_order import MOST_COLORS, couplings_of


def with_rest(coloring: Coloring, max_colors: int | None) -> Coloring:
    """Return so many of the largest colors, in their order, and the rest as one color behind them.

    It is the coloring itself where no two colors would be left for the rest.
    """
    if max_colors is None or coloring.n_colors <= max_colors + 1:
        return coloring
    return renumbered(coloring, np.sort(by_size(coloring)[:max_colors]))


def shares_of_rest(matrix: AdmittedMatrix, coloring: Coloring) -> tuple[np.ndarray, np.ndarray]:
    """Return how much is left for the rest if the k largest colors are kept: entry k.

    That is the share of the vertices that belong to the rest, and that of the entries that are among them. k goes up to
    the number of colors, or to 63. In rows with more than 1024 entries some are counted for all.
    """
    ranked = renumbered(coloring, by_size(coloring)[: MOST_COLORS - 1])
    table = couplings_of(matrix, ranked, samples=matrix.shape[0])
    entries = np.array([table[k:, k:].sum() for k in range(ranked.n_colors)]) / max(matrix.indices.size, 1)
    return ranked.sizes[::-1].cumsum()[::-1] / max(matrix.shape[0], 1), entries


def by_size(coloring: Coloring) -> np.ndarray:
    """The colors, the largest one first."""
    return np.argsort(-coloring.sizes, kind="stable")


def renumbered(coloring: Coloring, kept: np.ndarray) -> Coloring:
    """Return the colors `kept` with these numbers, and behind them all others, if there are any, as one."""
    numbers = np.full(coloring.n_colors, len(kept), np.int32)
    numbers[kept] = np.arange(len(kept), dtype=np.int32)
    colors = backend_of(coloring.colors).xp.asarray(numbers)[coloring.colors]
    others = coloring.sizes.sum() - coloring.sizes[kept].sum()
    sizes = np.append(coloring.sizes[kept], others if others else []).astype(np.int64)
    return Coloring(colors, sizes, coloring.method, blocks=coloring.blocks, order=coloring.order)
