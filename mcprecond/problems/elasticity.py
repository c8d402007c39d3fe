"""Linear elasticity on a cube, of trilinear hexahedra or linear tetrahedra: three unknowns a node.

All small cubes are alike, so there is one element matrix, that of a hexahedron or of six tetrahedra. Rows are assembled
node by node, each by one thread that adds up the cubes around the node in the same order everywhere: the result does
not depend on the number of threads, and it is symmetric to the last bit.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import scipy.sparse as sp

from mcprecond.backends import compile_loop, compile_row, get_backend
from mcprecond.backends.arguments import real
from mcprecond.problems.graphs.grids import elasticity_pattern, in_stencil, neighbors_of
from mcprecond.problems.graphs.simple import size_of
from mcprecond.problems.placing import place_matrix


def elasticity(
    n: int, *, elements: str = "hexahedra", device: str = "cpu", young: float = 1.0, poisson: float = 0.3
) -> Any:
    """Return the stiffness matrix of an elastic unit cube of n x n x n nodes, clamped at z = 0.

    Isotropic and homogeneous; of trilinear hexahedra, integrated by 2 x 2 x 2 Gauss points, which is exact, or of
    linear tetrahedra, six around the same diagonal of every small cube. Displacements at z = 0 are eliminated
    symmetrically: unit rows and columns, with the pattern kept. Component c of the displacement of node v is unknown
    3 v + c; nodes are numbered x fastest, then y.

    Parameters
    ----------
    n : int
        Nodes along an edge, at least 2.
    elements : {"hexahedra", "tetrahedra"}
        Nodes inside are coupled to 27 nodes or to 15, themselves included: 81 or 45 entries a row.
    device : {"cpu", "gpu"}
        SciPy or CuPy. Assembled on the CPU.
    young : float
        Young's modulus, positive.
    poisson : float
        Poisson's ratio, -1 < poisson < 1/2. The matrix gets worse conditioned towards 1/2.

    Returns
    -------
    csr_matrix of SciPy or CuPy, shape (3 n^3, 3 n^3)
        float64, sorted, symmetric positive definite. All couplings between nodes of an element are stored, zeros too
        (`mcprecond.problems.graphs.elasticity_pattern`): 9 (3 n - 2)^3 entries with hexahedra.

    Raises
    ------
    TypeError, ValueError
        If n is not an integer of at least 2, elements is something else, young or poisson is out of range, the device
        is unknown or missing, or n is too large for the GPU's int32 indices (n > 207 with hexahedra).

    References
    ----------
    Hughes: The Finite Element Method, Dover 2000, Chapters 2 and 3.
    Kuhn: Some Combinatorial Lemmas in Topology, IBM Journal of Research and Development 4, 1960: the tetrahedra.

    Examples
    --------
    >>> from mcprecond import MulticolorSGS, pcg, problems
    >>> A = problems.elasticity(6)
    >>> A.shape, A.nnz
    ((648, 648), 36864)
    >>> pcg(A, A.sum(axis=1), M=MulticolorSGS(A)).iterations
    20
    """
    backend = get_backend(device)
    n = size_of(n, "n", 2, 3)
    young, poisson = real(young, "young"), real(poisson, "poisson")
    if young <= 0:
        raise ValueError(f"young must be a positive number, got {young}")
    if not -1 < poisson < 0.5:
        raise ValueError(f"poisson must lie between -1 and 1/2, got {poisson}")
    return place_matrix(assemble(n, elements, young, poisson, clamped=True), backend)


def assemble(n: int, elements: str, young: float, poisson: float, *, clamped: bool) -> sp.csr_matrix:
    """Return the matrix of `elasticity` on the host; not clamped, it is singular: rigid bodies move without a force."""
    A = elasticity_pattern(n, elements)
    K = _element_matrix(1 / (n - 1), elements, young, poisson)
    _assemble(0, n**3, n, neighbors_of(elements), K, clamped, A.indptr, A.data)
    return A


def _element_matrix(h: float, elements: str, young: float, poisson: float) -> np.ndarray:
    """∫ Bᵀ D B over a cube of edge h, shape (8, 3, 8, 3); a corner is numbered by its bits, x + 2 y + 4 z."""
    gradients = _gradients_in_tetrahedra() if elements == "tetrahedra" else _gradients_at_gauss_points()
    lame = young * poisson / ((1 + poisson) * (1 - 2 * poisson))
    shear = young / (2 * (1 + poisson))
    # Strains are xx, yy, zz and the engineering strains yz, xz, xy.
    D = np.diag([2 * shear] * 3 + [shear] * 3)
    D[:3, :3] += lame
    K = np.zeros((24, 24))
    for gradient in gradients:
        B = np.zeros((6, 8, 3))
        for axis in range(3):
            along = gradient[:, axis] / h
            B[axis, :, axis] = along
            others = [other for other in range(3) if other != axis]
            B[3 + others[0], :, others[1]] = along
            B[3 + others[1], :, others[0]] = along
        strains = B.reshape(6, 24)
        K += h**3 / len(gradients) * (strains.T @ D @ strains)
    return ((K + K.T) / 2).reshape(8, 3, 8, 3)


def _gradients_at_gauss_points() -> list[np.ndarray]:
    """Of the eight trilinear functions on the unit cube, shape (8, 3), at each of the eight Gauss points."""
    corners = np.array([[a & 1, a >> 1 & 1, a >> 2] for a in range(8)])
    found = []
    for point in itertools.product((0.5 - 12**-0.5, 0.5 + 12**-0.5), repeat=3):
        along = np.where(corners, point, 1 - np.array(point))
        columns = [(2 * corners[:, axis] - 1) * np.delete(along, axis, axis=1).prod(axis=1) for axis in range(3)]
        found.append(np.stack(columns, axis=1))
    return found


def _gradients_in_tetrahedra() -> list[np.ndarray]:
    """Of the linear functions of the cube's corners, shape (8, 3), in each of its six tetrahedra.

    A tetrahedron goes from corner 0 along the axes a, b, c to corner 7: its functions are 1 - x_a, x_a - x_b, x_b - x_c
    and x_c.
    """
    found = []
    for axes in itertools.permutations(range(3)):
        gradient, corner = np.zeros((8, 3)), 0
        for axis in axes:
            gradient[corner, axis] -= 1
            corner += 1 << axis
            gradient[corner, axis] += 1
        found.append(gradient)
    return found


@compile_row
def stiffness(v, p, c, d, n, K):
    """The entry between component c of node v and d of the p-th of the 27 nodes around it, added up over elements."""
    x, y, z = v % n, v // n % n, v // (n * n)
    total = 0.0
    for e in range(8):
        # Of node v in its element e, and of the other node.
        ax, ay, az = 1 - (e & 1), 1 - (e >> 1 & 1), 1 - (e >> 2)
        bx, by, bz = ax + p % 3 - 1, ay + p // 3 % 3 - 1, az + p // 9 - 1
        exists = 0 <= x - ax < n - 1 and 0 <= y - ay < n - 1 and 0 <= z - az < n - 1
        if exists and 0 <= bx <= 1 and 0 <= by <= 1 and 0 <= bz <= 1:
            total += K[ax + 2 * ay + 4 * az, c, bx + 2 * by + 4 * bz, d]
    return total


@compile_loop
def _assemble(first, end, n, neighbors, K, clamped, indptr, values):
    """Three rows for every node, in the pattern's order: the neighbors that exist, three components each."""
    for v in range(first, end):
        x, y, z = v % n, v // n % n, v // (n * n)
        for c in range(3):
            place = indptr[3 * v + c]
            for p in range(27):
                if in_stencil(p, x, y, z, n, n, n, neighbors):
                    for d in range(3):
                        if clamped and (z == 0 or z + p // 9 == 1):
                            values[place] = 1.0 if p == 13 and c == d else 0.0
                        else:
                            values[place] = stiffness(v, p, c, d, n, K)
                        place += 1
