"""The systems that tests of several ranks solve."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from mcprecond import problems
from mcprecond.multigrid import rigid_body_modes

POISSON = problems.laplacian((16, 16, 16))


def anisotropic(n: int, strong: int) -> sp.csr_array:
    """Ranks own slabs of the first axis; the couplings along one of both axes are strong."""
    line, one = sp.diags_array([-1.0, 2, -1], offsets=[-1, 0, 1], shape=(n, n)), sp.eye_array(n)
    first, second = ((1, 0.01), (0.01, 1))[strong]
    return sp.csr_array(first * sp.kron(line, one) + second * sp.kron(one, line))


def modes_of_cube(n: int) -> np.ndarray:
    z, y, x = np.meshgrid(*3 * [np.linspace(0, 1, n)], indexing="ij")
    return rigid_body_modes(np.stack([x, y, z], axis=-1).reshape(-1, 3))


def fenl(n: int):
    problem = problems.fenl(n)
    return problem.jacobian(problem.initial())


#: Matrix, block size, candidates.
SYSTEMS = {
    "7 points": lambda: (POISSON, 1, None),
    "27 points": lambda: (problems.laplacian((16, 16, 16), points=27), 1, None),
    "FENL": lambda: (fenl(14), 1, None),
    "strong along the first axis": lambda: (anisotropic(80, 0), 1, None),
    "strong along the second axis": lambda: (anisotropic(80, 1), 1, None),
    "elasticity": lambda: (problems.elasticity(9), 3, modes_of_cube(9)),
}


def right_hand_side(A) -> np.ndarray:
    return A @ np.random.default_rng(0).uniform(-1, 1, A.shape[0])
