"""Near-null spaces: what a prolongator has to represent, since smoothing does nothing about it."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import backend_of
from mcprecond.backends.inputs import any_of


def rigid_body_modes(coordinates: Any) -> Any:
    """Return the rigid body modes of nodes in two or three dimensions: B for `SmoothedAggregation` in elasticity.

    Translations along the axes, then rotations about the center of the nodes, of a size of about 1. Component c of the
    displacement of node v is row d v + c.

    Parameters
    ----------
    coordinates : array of float, shape (n_nodes, d)
        NumPy or CuPy; d is 2 or 3.

    Returns
    -------
    array of float64, shape (d n_nodes, 3) in two dimensions, (d n_nodes, 6) in three
        Where the coordinates are.

    Raises
    ------
    TypeError, ValueError
        If the coordinates are not finite real numbers of such a shape.

    Examples
    --------
    >>> from mcprecond.multigrid import rigid_body_modes
    >>> rigid_body_modes([[0.0, 0.0], [1.0, 0.0]])
    array([[ 1. ,  0. ,  0. ],
           [ 0. ,  1. , -0.5],
           [ 1. ,  0. ,  0. ],
           [ 0. ,  1. ,  0.5]])
    """
    xp = backend_of(coordinates).xp
    x = xp.asarray(coordinates)
    if x.dtype.kind not in "fiu":
        raise TypeError(f"coordinates must be real numbers, got dtype {x.dtype}")
    if x.ndim != 2 or x.shape[1] not in (2, 3):
        raise ValueError(f"coordinates must have shape (n, 2) or (n, 3), a row for each node, got {x.shape}")
    if any_of(~xp.isfinite(x)):
        raise ValueError("coordinates hold NaN or infinity; every value must be finite")
    n, d = x.shape
    x = x.astype(np.float64)
    if n:
        x = x - (x.max(axis=0) + x.min(axis=0)) / 2
        x = x / max(float((x.max(axis=0) - x.min(axis=0)).max()), np.finfo(float).tiny)
    planes = [(0, 1)] if d == 2 else [(1, 2), (2, 0), (0, 1)]
    B = xp.zeros((n, d, d + len(planes)))
    for c in range(d):
        B[:, c, c] = 1
    for k, (i, j) in enumerate(planes, start=d):
        B[:, i, k], B[:, j, k] = 0 - x[:, j], x[:, i]
    return B.reshape(n * d, -1)
