"""Laplacians on grids in two and three dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcprecond.backends import get_backend
from mcprecond.backends.arguments import describe, integer
from mcprecond.problems.graphs.grids import ALL_AROUND, ALONG_AXES, stencil
from mcprecond.problems.graphs.simple import size_of
from mcprecond.problems.placing import place_matrix

#: By the number of dimensions: the stencils with neighbors along the axes, and with all around.
POINTS = {2: (5, 9), 3: (7, 27)}


def laplacian(shape: Sequence[int], *, points: int | None = None, device: str = "cpu") -> Any:
    """Return the Laplacian of a grid in two or three dimensions, with Dirichlet conditions all around.

    -1 for each neighbor and points - 1 on the diagonal of every row, though nodes at the boundary have fewer neighbors:
    symmetric positive definite. Nodes are numbered as in a NumPy array of this shape: the last index runs fastest.

    Parameters
    ----------
    shape : two or three ints
        Nodes along each axis.
    points : {5, 9} in 2-D, {7, 27} in 3-D
        Of the stencil; by default 5 and 7: neighbors along the axes. With 9 and 27 they are all around.
    device : {"cpu", "gpu"}
        SciPy or CuPy. Assembled on the CPU.

    Returns
    -------
    csr_matrix of SciPy or CuPy, shape (n, n) with n the product of `shape`
        float64, sorted.

    Raises
    ------
    TypeError
        If shape is not a sequence.
    ValueError
        If shape is not two or three positive integers, points is another number, the device is unknown or missing, or
        there are too many entries for the GPU's int32 indices.

    Examples
    --------
    The 1024 x 1024 grid of many papers is ``laplacian((1024, 1024))``. A small one:

    >>> from mcprecond import problems
    >>> print(problems.laplacian((2, 3)).toarray())
    [[ 4. -1.  0. -1.  0.  0.]
     [-1.  4. -1.  0. -1.  0.]
     [ 0. -1.  4.  0.  0. -1.]
     [-1.  0.  0.  4. -1.  0.]
     [ 0. -1.  0. -1.  4. -1.]
     [ 0.  0. -1.  0. -1.  4.]]
    """
    backend = get_backend(device)
    if not isinstance(shape, Sequence) or isinstance(shape, str):
        raise TypeError(f"shape must be two or three integers, got {describe(shape)}; for a square use (n, n)")
    if len(shape) not in POINTS:
        raise ValueError(f"shape must have two or three numbers, got {describe(shape)}")
    sizes = [size_of(size, "every number in shape", 1, len(shape)) for size in shape]
    few, many = POINTS[len(sizes)]
    points = few if points is None else integer(points, "points")
    if points not in (few, many):
        raise ValueError(f"points must be {few} or {many} in {len(sizes)} dimensions, got {points}")
    x, y, z = [*reversed(sizes), 1][:3]
    return place_matrix(stencil((x, y, z), ALL_AROUND if points == many else ALONG_AXES, points - 1.0, -1.0), backend)
