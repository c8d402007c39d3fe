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


def conductances(n: int, decades: float = 5) -> sp.csr_array:
    """A grid of resistors with random conductances over some decades, and small ones to the ground."""
    rng, number = np.random.default_rng(1), np.arange(n * n).reshape(n, n)
    first = np.concatenate((number[:, :-1].ravel(), number[:-1].ravel()))
    second = np.concatenate((number[:, 1:].ravel(), number[1:].ravel()))
    W = sp.coo_array((10 ** rng.uniform(-decades, 0, len(first)), (first, second)), shape=(n * n, n * n))
    W = sp.csr_array(W + W.T)
    return sp.csr_array(sp.diags_array(W @ np.ones(n * n) + 1e-6) - W)


def layers(n: int) -> sp.csr_array:
    """Diffusion in a cube whose layers across the ranks have coefficients of 1 and of 1000 in turns."""
    a = np.where(np.arange(n + 1) % 3 < 2, 1.0, 1000.0)
    across = sp.diags_array([-a[1:-1], a[:-1] + a[1:], -a[1:-1]], offsets=[-1, 0, 1])
    plane, one = problems.laplacian((n, n)), sp.eye_array(n)
    return sp.csr_array(
        sp.kron(across, sp.eye_array(n * n)) + sp.kron(sp.diags_array((a[:-1] + a[1:]) / 2) @ one, plane)
    )


#: Matrix, block size, candidates.
SYSTEMS = {
    "7 points": lambda: (POISSON, 1, None),
    "27 points": lambda: (problems.laplacian((16, 16, 16), points=27), 1, None),
    "FENL": lambda: (fenl(14), 1, None),
    "strong along the first axis": lambda: (anisotropic(80, 0), 1, None),
    "strong along the second axis": lambda: (anisotropic(80, 1), 1, None),
    "elasticity": lambda: (problems.elasticity(9), 3, modes_of_cube(9)),
}


#: Types of PCs with one hierarchy across ranks.
AGGREGATES, POINTS = "DistributedSmoothedAggregation", "DistributedClassicalAMG"
#: Systems with one unknown per node. For some of them classical multigrid is the better choice.
SCALAR = {name: make for name, make in SYSTEMS.items() if name != "elasticity"} | {
    "conductances": lambda: (conductances(64), 1, None),
    "layers that jump": lambda: (layers(16), 1, None),
}
#: A type and a system that it fits.
HIERARCHIES = [*((AGGREGATES, name) for name in SYSTEMS), *((POINTS, name) for name in SCALAR)]


def right_hand_side(A) -> np.ndarray:
    return A @ np.random.default_rng(0).uniform(-1, 1, A.shape[0])
