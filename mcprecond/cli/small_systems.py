"""Small systems of the kinds that README, the tutorial and the gallery solve, so that their kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from mcprecond import ILU0, ClassicalAMG, MulticolorSGS, SmoothedAggregation, bicgstab, color, pcg, problems
from mcprecond.backends import Backend
from mcprecond.multigrid import rigid_body_modes
from mcprecond.typing import MethodName, PreconditionerName

#: Points along a side of the grids. Their hierarchies have four levels, of which those below the finest one are stored
#: in single precision.
SIDE = 150


def solve_small_systems(backend: Backend, place: Callable[[Any], Any]) -> None:
    """Color, and solve in float64 by CG, Gauss-Seidel, ILU(0) and multigrid; `place` puts a matrix onto the device."""
    xp, n = backend.xp, SIDE**2
    grid = place(problems.laplacian((SIDE, SIDE)))
    one, two = xp.ones(n), xp.ones((n, 2))
    names: tuple[PreconditionerName, ...] = ("sgs", "ilu0", "multigrid", "auto")
    for name in names:
        pcg(grid, one, M=name)
    pcg(grid, two, M="multigrid")
    methods: tuple[MethodName, ...] = ("ecl_gc", "jpl")
    for A in (grid, place(problems.laplacian((8, 8, 8), points=27))):
        for method in methods:
            color(A, method).is_valid(A)
    # A product by SciPy, whose rows are not sorted: that is checked and mended, which `problems` do not need.
    line = scipy.sparse.diags_array([-1.0, -1, 4, -1, -1], offsets=[-30, -1, 0, 1, 30], shape=(900, 900)).tocsr()
    unsorted, weak, cube = place(line @ line), place(with_weak_points()), place(problems.elasticity(5))
    corners = np.stack(np.meshgrid(*[np.arange(6.0)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    B = xp.asarray(rigid_body_modes(corners)[-cube.shape[0] :])
    for A, operators in (
        (unsorted, (None, MulticolorSGS(unsorted), SmoothedAggregation(unsorted))),
        (weak, (SmoothedAggregation(weak), ClassicalAMG(weak))),
        (cube, (SmoothedAggregation(cube, B, block_size=3), MulticolorSGS(cube, block_size=3))),
    ):
        for M in operators:
            pcg(A, xp.ones(A.shape[0]), M=M)
    pcg(place(without_boundary()), xp.arange(float(n)), M="multigrid", nullspace="constant")
    with_flow = problems.laplacian((SIDE, SIDE)) + scipy.sparse.diags_array([0.5], offsets=[1], shape=(n, n))
    flow = place(with_flow.tocsr())
    bicgstab(flow, one, M=ILU0(flow))
    problem = problems.fenl(4, device=backend.name)
    start = problem.initial()
    problem.residual(start)
    problem.jacobian(start)
    backend.synchronize()


def with_weak_points() -> Any:
    """A grid in which one of ten points is weakly connected to all of its neighbors."""
    weights = np.where(np.random.default_rng(0).random(SIDE**2) < 0.1, 1e-4, 1.0)
    scales, A = scipy.sparse.diags_array(weights), scipy.sparse.triu(problems.laplacian((SIDE, SIDE)), k=1)
    edges = scales @ (A + A.T) @ scales
    return (edges - scipy.sparse.diags_array(edges.sum(axis=1) - 1e-6)).tocsr()


def without_boundary() -> Any:
    """A grid whose rows sum to zero."""
    A = scipy.sparse.csr_array(problems.laplacian((SIDE, SIDE)))
    return (A - scipy.sparse.diags_array(A.sum(axis=1))).tocsr()
