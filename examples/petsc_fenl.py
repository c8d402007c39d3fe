"""The nonlinear problem `mcprecond.problems.fenl`, distributed: PETSc's DMDA, Newton by SNES, sweeps in colors.

    mpiexec -n 4 python examples/petsc_fenl.py -n 40 -advection 1 -snes_monitor -check

Each rank assembles the rows of its own box of nodes, from its own values of T and those of one layer of neighbors, so
that assembly sends nothing. All of PETSc's options can be given; without any, the linear systems are solved by
BiCGStab with a sweep forwards and one backwards over the rows of each rank. `-check` compares with the solution that
one process finds without PETSc.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import petsc4py
from mpi4py import MPI  # before `petsc4py.init`, which needs its libmpi where both come as wheels

from mcprecond import problems
from mcprecond.problems.fenl import BOTTOM, CONDUCTIVITY, DRIFT, MASS, SHAPE, STIFFNESS, TOP

DEFAULTS = {
    "ksp_type": "bcgs",
    "ksp_rtol": 1e-8,
    "snes_rtol": 1e-9,
    "pc_type": "bjacobi",
    "sub_ksp_type": "preonly",
    "sub_pc_type": "python",
    "sub_pc_python_type": "mcprecond.interop.petsc.MulticolorSGS",
}


def tensor(z: np.ndarray, y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """From one dimension to the eight corners and Gauss points of an element, x fastest."""
    return np.kron(z, np.kron(y, x))


def along_all_axes(matrix: np.ndarray) -> np.ndarray:
    """The sum of its tensors with masses along the two other axes."""
    return tensor(MASS, MASS, matrix) + tensor(MASS, matrix, MASS) + tensor(matrix, MASS, MASS)


class DistributedFENL:
    """n x n x n trilinear hexahedra on a cube, ``-∇·(k ∇T) + a·∇T + T² = 0``, T given at z = 0 and z = 1.

    Parameters
    ----------
    n : int
        Elements along an edge.
    advection : float
        Along x, y and z.
    """

    def __init__(self, n: int, advection: float = 0.0) -> None:
        from petsc4py import PETSc

        h, m = 1 / n, n + 1
        self.da = PETSc.DMDA().create([m, m, m], stencil_type=PETSc.DMDA.StencilType.BOX, stencil_width=1)
        (x0, x1), (y0, y1), (z0, z1) = self.da.getGhostRanges()
        nodes = np.arange((x1 - x0) * (y1 - y0) * (z1 - z0)).reshape(z1 - z0, y1 - y0, x1 - x0)
        #: The nodes of each element of this rank's box with its neighbors, as numbers in that box.
        self.corners = np.stack(
            [nodes[z : z - 1 or None, y : y - 1 or None, x : x - 1 or None].ravel() for z, y, x in np.ndindex(2, 2, 2)],
            axis=1,
        )
        height = np.broadcast_to(np.arange(z0, z1)[:, None, None], nodes.shape).ravel()
        self.prescribed = np.where(height == 0, BOTTOM, np.where(height == n, TOP, np.nan))
        self.free = np.isnan(self.prescribed)
        owned = np.zeros(nodes.shape, bool)
        (ox0, ox1), (oy0, oy1), (oz0, oz1) = self.da.getRanges()
        owned[oz0 - z0 : oz1 - z0, oy0 - y0 : oy1 - y0, ox0 - x0 : ox1 - x0] = True
        self.owned = owned.ravel()

        # Integrals over one element, as in mcprecond.problems.fenl.
        self.shape, self.weight = tensor(SHAPE, SHAPE, SHAPE), h**3 / 8
        self.linear = h * CONDUCTIVITY * along_all_axes(STIFFNESS) + h**2 * advection * along_all_axes(DRIFT)

        self.T_here = self.da.createLocalVec()
        self.J = self.da.createMat()
        numbers = self.da.getLGMap().apply(np.arange(nodes.size, dtype=PETSc.IntType))
        rows, columns = np.broadcast_arrays(self.corners[:, :, None], self.corners[:, None, :])
        #: Which entries of the elements' matrices are this rank's: symmetric elimination drops the others.
        self.kept = self.owned[rows] & self.free[rows] & self.free[columns]
        fixed = numbers[self.owned & ~self.free]
        self.ones = np.ones(len(fixed))
        self.J.setPreallocationCOO(
            np.concatenate((numbers[rows[self.kept]], fixed)), np.concatenate((numbers[columns[self.kept]], fixed))
        )

    def initial(self) -> Any:
        """Return zero, but the prescribed values."""
        T = self.da.createGlobalVec()
        T.setArray(np.nan_to_num(self.prescribed[self.owned]))
        return T

    def at_corners(self, T: Any) -> tuple[np.ndarray, np.ndarray]:
        """T in this rank's box with its neighbors, and at the corners of its elements."""
        self.da.globalToLocal(T, self.T_here)
        values = self.T_here.getArray(readonly=True)
        return values, values[self.corners]

    def residual(self, snes: Any, T: Any, R: Any) -> None:
        """R_i = ∫ k ∇φ_i·∇T + φ_i a·∇T + φ_i T²."""
        values, at_corners = self.at_corners(T)
        at_points = at_corners @ self.shape.T
        elements = at_corners @ self.linear.T + self.weight * at_points**2 @ self.shape
        sums = np.bincount(self.corners.ravel(), elements.ravel(), minlength=len(values))
        R.setArray(np.where(self.free, sums, values - self.prescribed)[self.owned])

    def jacobian(self, snes: Any, T: Any, J: Any, P: Any) -> None:
        """J_ij = ∫ k ∇φ_i·∇φ_j + φ_i a·∇φ_j + 2 T φ_i φ_j."""
        at_points = self.at_corners(T)[1] @ self.shape.T
        squares = self.shape[:, :, None] * self.shape[:, None, :]
        elements = self.linear + 2 * self.weight * np.tensordot(at_points, squares, 1)
        P.setValuesCOO(np.concatenate((elements[self.kept], self.ones)))

    def solve(self) -> tuple[Any, Any]:
        """Return T and the solver, a SNES with PETSc's options."""
        from petsc4py import PETSc

        options = PETSc.Options()
        for name, value in DEFAULTS.items():
            if not options.hasName(name):
                options.setValue(name, value)
        snes, T = PETSc.SNES().create(), self.initial()
        snes.setFunction(self.residual, T.duplicate())
        snes.setJacobian(self.jacobian, self.J)
        snes.setFromOptions()
        snes.solve(None, T)
        return T, snes

    def in_rows(self, T: Any) -> np.ndarray:
        """T of all ranks in the order of `mcprecond.problems.fenl`, x fastest, on every rank."""
        natural = self.da.createNaturalVec()
        self.da.globalToNatural(T, natural)
        return np.concatenate(MPI.COMM_WORLD.allgather(natural.getArray(readonly=True).copy()))


def main() -> None:
    """Solve, and say how."""
    petsc4py.init(sys.argv)
    from petsc4py import PETSc

    options = PETSc.Options()
    n, advection, checks = options.getInt("n", 20), options.getReal("advection", 0.0), options.hasName("check")
    problem = DistributedFENL(n, advection)
    T, snes = problem.solve()
    PETSc.Sys.Print(
        f"{(n + 1) ** 3} unknowns on {PETSc.COMM_WORLD.size} ranks: {snes.getIterationNumber()} Newton steps, "
        f"{snes.getLinearSolveIterations()} iterations, "
        f"{'converged' if snes.getConvergedReason() > 0 else 'not converged'}"
    )
    if checks:
        found = problem.in_rows(T)
        if PETSc.COMM_WORLD.rank == 0:
            expected, _ = problems.fenl(n, advection=advection).solve(rtol=1e-9)
            print(f"largest difference from the solution of one process: {abs(found - expected).max():.1e}")
    snes.destroy()


if __name__ == "__main__":
    main()
