"""Delaunay triangulations of many points, in parts that run beside each other.

Qhull, SciPy's library for it, is serial. So points are cut into strips, each is triangulated together with a margin of
its neighbors, and what could be different in the whole is triangulated once more.

A triangle belongs to the whole if no point lies in its circumcircle. A strip knows all points up to its margin's ends.
So those of its triangles are certain whose circle does not reach beyond and is no wider than the margin; and a triangle
of the whole with such a circle is certain in the strip of each of its vertices. Around most vertices all triangles are
certain, and then the whole has no others there. The other vertices, at the hull and around empty places, are doubtful:
with their neighbors, they are triangulated once more. All corners of triangles that the whole has around a doubtful
vertex are among these points: of a certain one as its neighbors, of any other since they are doubtful themselves. And
what is Delaunay among all points is so among some of them. So the triangles found around it are those of the whole.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from mcprecond.backends.team import get_threads

PART = 2**17  # points of a strip
MARGIN = 8.0  # width of the margin, in mean distances of points: few circles are as large


def delaunay_triangles(points: np.ndarray, part: int = PART) -> np.ndarray:
    """Return the triangles of the Delaunay triangulation of points in the plane.

    Parameters
    ----------
    points : array, shape (n, 2)
        No four on a circle without another one in it, as random points: the parts could choose differently there.
    part : int
        How many of them to triangulate at a time.

    Returns
    -------
    array of int32 or int64, shape (m, 3)
        Numbers of points; a triangle may occur more than once.
    """
    from scipy.spatial import Delaunay

    n = len(points)
    if n <= part:
        return Delaunay(points).simplices
    order = np.argsort(points[:, 1], kind="stable")
    heights = points[order, 1]
    width = np.ptp(points[:, 0])
    margin = MARGIN * math.sqrt(width * (heights[-1] - heights[0]) / n)
    begins = np.arange(0, n, part)
    cuts = np.concatenate([[-np.inf], heights[begins[1:]], [np.inf]])

    def strip(k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        first = np.searchsorted(heights, cuts[k] - margin)
        last = np.searchsorted(heights, cuts[k + 1] + margin, side="right")
        return _strip(points, order[first:last], cuts[k], cuts[k + 1], margin)

    with ThreadPoolExecutor(get_threads()) as pool:  # Qhull lets go of the interpreter
        strips = list(pool.map(strip, range(len(begins))))
    certain, doubtful, near = (np.concatenate(arrays) for arrays in zip(*strips, strict=True))
    if not len(doubtful):
        return certain
    some = np.unique(np.concatenate([doubtful, near]))
    triangles = some[Delaunay(points[some]).simplices]
    is_doubtful = np.zeros(n, bool)
    is_doubtful[doubtful] = True
    return np.concatenate([certain, triangles[is_doubtful[triangles].any(axis=1)]])


def _strip(
    points: np.ndarray, numbers: np.ndarray, begin: float, end: float, margin: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of a strip with its margins: certain triangles, doubtful points between the heights `begin` and `end`, and these
    points' neighbors.
    """
    from scipy.spatial import Delaunay

    part = Delaunay(points[numbers])
    triangles = part.simplices
    low, high = begin - margin, end + margin
    height, radius = _circles(part.points[triangles])
    with np.errstate(invalid="ignore"):
        is_certain = (2 * radius <= margin) & (height - radius > low) & (height + radius < high)
    doubtful = np.zeros(len(numbers), bool)
    doubtful[triangles[~is_certain]] = True
    doubtful[part.convex_hull] = True
    own = part.points[:, 1]
    doubtful &= (begin <= own) & (own < end)
    around = triangles[doubtful[triangles].any(axis=1)]
    return numbers[triangles[is_certain]], numbers[doubtful], numbers[np.unique(around)]


def _circles(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Heights of the centers and radii of circles through three points each; not finite where these are on a line."""
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    b, c = b - a, c - a
    squares_b, squares_c = (b**2).sum(axis=1), (c**2).sum(axis=1)
    twice = 2 * (b[:, 0] * c[:, 1] - b[:, 1] * c[:, 0])
    with np.errstate(divide="ignore", invalid="ignore"):
        x = (c[:, 1] * squares_b - b[:, 1] * squares_c) / twice
        y = (b[:, 0] * squares_c - c[:, 0] * squares_b) / twice
    return a[:, 1] + y, np.hypot(x, y)
