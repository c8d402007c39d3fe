"""Advection and diffusion on the unit square: upwind finite volumes and linear elements for some flows."""

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


def streamline(n: int, diffusion: float, flow: str) -> sp.csr_matrix:
    """Return the matrix of linear elements with streamline diffusion (SUPG) for ``v grad u - diffusion laplace(u)``.

    There are n x n inner nodes, and u = 0 at the nodes around them. Velocities are those at the centers of the
    triangles; the stabilization is that of Brooks and Hughes (1982). Unlike upwind differences it leaves positive
    entries beside the diagonal.
    """
    h = 1 / (n + 1)
    i, j = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    number = lambda i, j: np.where((i > 0) & (i <= n) & (j > 0) & (j <= n), (i - 1) * n + j - 1, -1)  # noqa: E731
    rows, columns, values = [], [], []
    for corners in (((0, 0), (1, 0), (0, 1)), ((1, 1), (0, 1), (1, 0))):
        side = corners[1][0] - corners[0][0]  # 1, or -1 for the upper triangles
        gradients = np.array([[-1, -1], [1, 0], [0, 1]]) * side / h
        center = np.mean(corners, axis=0)
        vx, vy = FLOWS[flow]((i + center[0]) * h, (j + center[1]) * h)
        speed = np.maximum(np.hypot(vx, vy), 1e-30)
        peclet = speed * h / (2 * diffusion)
        upwinding = np.where(
            peclet > 1e-3, 1 / np.tanh(np.maximum(peclet, 1e-3)) - 1 / np.maximum(peclet, 1e-3), peclet / 3
        )
        tau = h / (2 * speed) * upwinding
        along = [vx * x + vy * y for x, y in gradients]
        nodes = [number(i + di, j + dj) for di, dj in corners]
        for a in range(3):
            for c in range(3):
                value = diffusion * gradients[a] @ gradients[c] + along[c] / 3 + tau * along[a] * along[c]
                inside = (nodes[a] >= 0) & (nodes[c] >= 0)
                rows.append(nodes[a][inside])
                columns.append(nodes[c][inside])
                values.append((value * h * h / 2)[inside])
    entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
    return sp.csr_matrix(entries, shape=(n * n, n * n))


#: The matrices by how the equation is discretized.
SCHEMES = {"upwind": advection, "SUPG": streamline}
#: Flows with closed streamlines, where no order of the rows follows the flow.
ROTATING = "vortex", "closed", "cells"
