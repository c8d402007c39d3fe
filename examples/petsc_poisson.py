"""Poisson's equation on a cube, 7 points, by PETSc with whatever its options say.

mpiexec -n 2 python examples/petsc_poisson.py -n 40 -ksp_type cg -pc_type python \
    -pc_python_type mcprecond.interop.petsc.MulticolorSGS -ksp_view
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import petsc4py
from mpi4py import MPI  # noqa: F401  before `petsc4py.init`, which needs its libmpi where both come as wheels


def assembled(da: Any) -> Any:
    """The matrix: 6 for each node of this rank, -1 for its neighbors."""
    A, numbers = da.createMat(), da.getLGMap()
    ghosts, owned = da.getGhostRanges(), da.getRanges()
    nodes = np.arange(np.prod([end - begin for begin, end in ghosts]), dtype=np.int32)
    box = nodes.reshape([end - begin for begin, end in reversed(ghosts)])  # z, y, x
    own = tuple(slice(o[0] - g[0], o[1] - g[0]) for o, g in zip(reversed(owned), reversed(ghosts), strict=True))
    rows, columns, values = [box[own].ravel()], [box[own].ravel()], [np.full(box[own].size, 6.0)]
    for axis in range(3):
        first, second = (np.moveaxis(box, axis, 0)[part].ravel() for part in (slice(None, -1), slice(1, None)))
        for row, column in ((first, second), (second, first)):
            mine = np.isin(row, box[own])
            rows.append(row[mine])
            columns.append(column[mine])
            values.append(np.full(mine.sum(), -1.0))
    A.setPreallocationCOO(*(numbers.apply(np.concatenate(part)) for part in (rows, columns)))
    A.setValuesCOO(np.concatenate(values))
    return A


def main() -> None:
    """Solve, and say in how many iterations."""
    petsc4py.init(sys.argv)
    from petsc4py import PETSc

    n = PETSc.Options().getInt("n", 20)
    A = assembled(PETSc.DMDA().create([n, n, n], stencil_width=1))
    x, b = A.createVecs()
    b.set(1.0)
    ksp = PETSc.KSP().create()
    ksp.setOperators(A)
    ksp.setFromOptions()
    ksp.solve(b, x)
    outcome = "converged" if ksp.getConvergedReason() > 0 else "not converged"
    PETSc.Sys.Print(
        f"{n**3} unknowns on {PETSc.COMM_WORLD.size} ranks: {ksp.getIterationNumber()} iterations, {outcome}"
    )
    ksp.destroy()


if __name__ == "__main__":
    main()
