"""Linear elasticity in three dimensions: three unknowns per node, full rows of 81 entries inside."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from mcprecond.backends import compile_loop, get_backend

CORNERS = np.array(
    [(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)]
)  # of a hexahedron, as steps from the first


def elasticity(n: int, *, young: float = 1.0, poisson: float = 0.3, clamped: bool = True, device: str = "cpu") -> Any:
    """Return the stiffness matrix of an isotropic cube of n x n x n nodes, trilinear hexahedra.

    Component c of the displacement of node (x, y, z) is unknown ``3 (z + n (y + n x)) + c``. Rows are full, 27 neighbor
    nodes by 3 inside, zeros included, as assembled codes keep them.

    Parameters
    ----------
    n : int
        Nodes per edge of the unit cube, at least 2.
    young, poisson : float
        Young's modulus (positive) and Poisson's ratio (between -1 and 0.5).
    clamped : bool
        Fix the face x = 0 by symmetric elimination (unit rows, zeroed columns, the pattern stays): positive definite.
        Otherwise rigid motions cost no energy.
    device : {"cpu", "gpu"}
        Where the matrix goes; it is assembled on the CPU.

    Returns
    -------
    csr_matrix of float64, shape (3 n^3, 3 n^3)
        ``9 (3 n - 2)^3`` entries, sorted.

    Raises
    ------
    ValueError
        If an argument is out of range, or there is no GPU.

    References
    ----------
    Hughes: The Finite Element Method, 1987, Sections 3.2 and 3.10; 2 x 2 x 2 Gauss points.

    Examples
    --------
    >>> from mcprecond import MulticolorSGS, pcg, problems
    >>> A = problems.elasticity(6)
    >>> A.shape, A.nnz
    ((648, 648), 36864)
    >>> pcg(A, A.sum(axis=1), M=MulticolorSGS(A)).converged
    True
    """
    if not isinstance(n, int | np.integer) or n < 2:
        raise ValueError(f"n must be an integer of at least 2, got {n!r}")
    if not young > 0:
        raise ValueError(f"young must be positive, got {young}")
    if not -1 < poisson < 0.5:
        raise ValueError(f"poisson must lie between -1 and 0.5, got {poisson}")
    backend = get_backend(device)
    steps = np.array([1] * n)
    steps[0] = steps[-1] = 0
    along = 2 + steps  # nodes next to each one along an axis, itself included
    neighbors = (along[:, None, None] * along[:, None] * along).ravel()
    indptr = np.concatenate([[0], np.cumsum(np.repeat(9 * neighbors // 3, 3))])
    offset = np.int32 if indptr[-1] < 2**31 else np.int64
    indices, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1])
    assemble(n, element_stiffness(1 / (n - 1), young, poisson), clamped, indptr, indices, values)
    arrays = (backend.xp.asarray(array) for array in (values, indices, indptr.astype(offset)))
    return backend.sparse.csr_matrix(tuple(arrays), shape=(3 * n**3, 3 * n**3))


def element_stiffness(h: float, young: float, poisson: float) -> np.ndarray:
    """The stiffness matrix of a cube of edge h: corner by corner, three components each, shape (24, 24)."""
    shear = young / (2 * (1 + poisson))
    lame = young * poisson / ((1 + poisson) * (1 - 2 * poisson))
    # Strains xx, yy, zz, yz, zx, xy; shear strains count twice.
    elastic = np.diag([2 * shear] * 3 + [shear] * 3)
    elastic[:3, :3] += lame
    stiffness = np.zeros((24, 24))
    gauss = 0.5 + np.array([-0.5, 0.5]) / np.sqrt(3)
    for point in np.stack(np.meshgrid(gauss, gauss, gauss, indexing="ij"), axis=-1).reshape(-1, 3):
        factors = np.where(CORNERS == 1, point, 1 - point)
        slopes = np.where(CORNERS == 1, 1, -1) / h
        B = np.zeros((6, 24))
        for corner in range(8):
            f, s = factors[corner], slopes[corner]
            dx, dy, dz = s[0] * f[1] * f[2], f[0] * s[1] * f[2], f[0] * f[1] * s[2]
            B[:, 3 * corner : 3 * corner + 3] = [
                [dx, 0, 0], [0, dy, 0], [0, 0, dz], [0, dz, dy], [dz, 0, dx], [dy, dx, 0]
            ]  # fmt: skip
        stiffness += B.T @ elastic @ B * h**3 / 8
    return stiffness


@compile_loop
def assemble(n, stiffness, clamped, indptr, indices, values):
    """All rows of a node at once: the 3 x 3 block of a neighbor sums over the elements that both belong to."""
    for node in prange(n**3):
        x, y, z = node // (n * n), node // n % n, node % n
        place = 0
        for u in range(max(x - 1, 0), min(x + 2, n)):
            for v in range(max(y - 1, 0), min(y + 2, n)):
                for w in range(max(z - 1, 0), min(z + 2, n)):
                    block = np.zeros((3, 3))
                    for ex in range(max(x, u) - 1, min(x, u) + 1):
                        for ey in range(max(y, v) - 1, min(y, v) + 1):
                            for ez in range(max(z, w) - 1, min(z, w) + 1):
                                if 0 <= ex < n - 1 and 0 <= ey < n - 1 and 0 <= ez < n - 1:
                                    a = 4 * (x - ex) + 2 * (y - ey) + z - ez
                                    b = 4 * (u - ex) + 2 * (v - ey) + w - ez
                                    block += stiffness[3 * a : 3 * a + 3, 3 * b : 3 * b + 3]
                    if clamped and (x == 0 or u == 0):
                        block[:] = 0
                        if x == u and y == v and z == w:
                            block[:] = np.eye(3)
                    other = (u * n + v) * n + w
                    for c in range(3):
                        for d in range(3):
                            indices[indptr[3 * node + c] + place + d] = 3 * other + d
                            values[indptr[3 * node + c] + place + d] = block[c, d]
                    place += 3
