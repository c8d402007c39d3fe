"""Advection and diffusion on the unit square: upwind finite volumes for some flows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

Velocity = Callable[[Any, Any], tuple[Any, Any]]


def cells_of(count: int) -> Velocity:
    """A flow without divergence in so many closed cells along each side."""
    k = np.pi * count
    return lambda x, y: (np.sin(k * x) * np.cos(k * y), -np.cos(k * x) * np.sin(k * y))


#: The velocity at points (x, y).
FLOWS: dict[str, Velocity] = {
    "vortex": lambda x, y: (2 * y - 1, 1 - 2 * x),
    "diagonal": lambda x, y: (1 + 0 * x, 0.7 + 0 * x),
    "along x": lambda x, y: (1 + 0 * x, 0 * x),
    "shear": lambda x, y: (y, 0 * x),
    "closed": cells_of(1),
    "cells": cells_of(4),
    "inflow": lambda x, y: (x * (1 - y), y * (1 - x)),
}


def advection(n: int, diffusion: float, flow: str) -> sp.csr_matrix:
    """Return the matrix of ``div(v u) - diffusion laplace(u)`` for n x n cells, with u = 0 around them.

    Each face takes u from the cell that the flow comes from: an M-matrix, whatever the diffusion.
    """
    h = 1 / n
    x, y = np.meshgrid((np.arange(n) + 0.5) * h, (np.arange(n) + 0.5) * h, indexing="ij")
    numbers = np.arange(n * n).reshape(n, n)
    diagonal, rows, columns, values = np.zeros((n, n)), [], [], []
    for axis, step in ((0, 1), (0, -1), (1, 1), (1, -1)):
        shift = 0.5 * step * h
        velocity = FLOWS[flow](x + shift * (axis == 0), y + shift * (axis == 1))[axis]
        through = step * velocity * h  # out of the cell
        diagonal += diffusion + np.maximum(through, 0)
        inside = [slice(None), slice(None)]
        inside[axis] = slice(0, n - 1) if step > 0 else slice(1, n)
        own = tuple(inside)
        rows.append(numbers[own].ravel())
        columns.append(np.roll(numbers, -step, axis)[own].ravel())
        values.append((np.minimum(through, 0) - diffusion)[own].ravel())
    rows, columns, values = (
        np.concatenate((*parts, last.ravel()))
        for parts, last in ((rows, numbers), (columns, numbers), (values, diagonal))
    )
    return sp.csr_matrix((values, (rows, columns)), shape=(n * n, n * n))
