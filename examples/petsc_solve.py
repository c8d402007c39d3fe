"""Poisson's equation on a cube by one call on all ranks, each of which has some layers of the grid.

mpiexec -n 2 python examples/petsc_solve.py -n 40
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import scipy.sparse as sp
from mpi4py import MPI

from mcprecond.interop.petsc import solve


def layers_of(n: int, comm: Any) -> tuple[Any, Any]:
    """This rank's rows of the matrix of a cube with n points along an edge, 7 points each, and its part of b."""
    first, end = (n * (comm.rank + step) // comm.size for step in (0, 1))
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n), format="csr")
    one = sp.eye_array(n, format="csr")
    layer = sp.kron(line, one) + sp.kron(one, line)
    own = sp.kron(one[first:end], layer) + sp.kron(line[first:end], sp.eye_array(n * n))
    return sp.csr_array(own), np.ones((end - first) * n * n)


def main() -> None:
    """Solve, and say how."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=40, help="points along an edge")
    arguments, _ = parser.parse_known_args()
    comm = MPI.COMM_WORLD
    A, b = layers_of(arguments.n, comm)
    result = solve(A, b, comm)
    if comm.rank == 0:
        print(repr(result))
        print(f"{result.stages[0].name}, {result.iterations} iterations, converged: {result.converged}")


if __name__ == "__main__":
    main()
