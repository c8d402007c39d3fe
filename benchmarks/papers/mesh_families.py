"""Families of systems on finer and finer meshes, and how multigrid is told what it has to know of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mcprecond import problems
from mcprecond.backends import backend_of
from mcprecond.multigrid import SmoothedAggregation, rigid_body_modes
from mcprecond.preconditioners import MulticolorSGS

JUMP, SIDE = 1e4, 8  # of coefficients, between squares of so many cells
ANISOTROPY = 1e-2


@dataclass(frozen=True)
class Family:
    """One kind of system.

    Attributes
    ----------
    make : function
        The matrix for so many nodes or elements per edge.
    small, large : tuple of int
        How many those are.
    unknowns : int
        Of a node. Where there are three, they are displacements of the nodes of a cube.
    """

    make: Callable[[int], Any]
    small: tuple[int, ...]
    large: tuple[int, ...]
    unknowns: int = 1

    def sgs(self, A: Any) -> MulticolorSGS:
        """The preconditioner of one level."""
        return MulticolorSGS(A, block_size=self.unknowns)

    def multigrid(self, A: Any) -> SmoothedAggregation:
        """Multigrid, with the rigid body modes of an elastic cube."""
        B = None
        if self.unknowns == 3:
            n = round((A.shape[0] / 3) ** (1 / 3))
            z, y, x = np.meshgrid(*[np.linspace(0, 1, n)] * 3, indexing="ij")
            B = backend_of(A).xp.asarray(rigid_body_modes(np.stack([x.ravel(), y.ravel(), z.ravel()], axis=1)))
        return SmoothedAggregation(A, B, block_size=self.unknowns)


def fenl(n: int) -> sp.csr_matrix:
    """The first Jacobian of FENL."""
    problem = problems.fenl(n)
    return problem.jacobian(problem.initial())


def anisotropic(n: int) -> sp.csr_matrix:
    """``-u_xx - u_yy / 100`` on an n x n grid, with Dirichlet conditions."""
    second = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    one = sp.eye_array(n)
    return sp.csr_matrix(sp.kron(one, second) + ANISOTROPY * sp.kron(second, one))


def jumping(n: int, seed: int = 0) -> sp.csr_matrix:
    """Diffusion on an n x n grid with Dirichlet conditions: coefficients of 1 and 10^4 at random in squares of 8 x 8
    cells, and their harmonic means between neighbors.
    """
    squares = np.random.default_rng(seed).random((-(-n // SIDE),) * 2) < 0.5
    k = np.kron(np.where(squares, 1.0, JUMP), np.ones((SIDE, SIDE)))[:n, :n]
    number = np.arange(n * n).reshape(n, n)
    pairs = ((np.s_[:, :-1], np.s_[:, 1:]), (np.s_[:-1], np.s_[1:]))
    rows, columns = (np.concatenate([number[pair[side]].ravel() for pair in pairs]) for side in (0, 1))
    one, other = k.ravel()[rows], k.ravel()[columns]
    half = sp.coo_array((-2 * one * other / (one + other), (rows, columns)), shape=(n * n, n * n))
    A = half + half.T
    sides = np.zeros((n, n))  # of a cell that are on the boundary
    for edge in (np.s_[0], np.s_[-1], np.s_[:, 0], np.s_[:, -1]):
        sides[edge] += 1
    return sp.csr_matrix(A + sp.diags_array((k * sides).ravel() - A.sum(axis=1)))


FAMILIES = {
    "poisson2d": Family(lambda n: problems.laplacian((n, n)), (32, 64), (256, 512, 1024, 2048)),
    "poisson3d": Family(lambda n: problems.laplacian((n, n, n)), (10, 16), (32, 64, 128)),
    "fenl": Family(fenl, (6, 10), (25, 50, 100, 180)),
    "anisotropy": Family(anisotropic, (32, 64), (256, 512, 1024)),
    "jumps": Family(jumping, (32, 64), (256, 512, 1024)),
    "elasticity": Family(problems.elasticity, (5, 8), (12, 24, 48), unknowns=3),
}
