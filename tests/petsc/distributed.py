"""SciPy's matrices and NumPy's vectors, which all ranks know, as PETSc's, and solves by options."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from petsc4py import PETSc

COMM = PETSc.COMM_WORLD
TYPES = ("MulticolorGS", "MulticolorSGS", "MulticolorDILU", "ILU0", "SmoothedAggregation")


def matrix(A: Any, block_size: int = 1, of_type: str = "aij") -> PETSc.Mat:
    """Each rank has an equal part of the rows."""
    csr, n = sp.csr_array(A), A.shape[0]
    layout = PETSc.Vec().createMPI(n, bsize=block_size)
    first, end = layout.getOwnershipRange()
    rows = csr[first:end]
    local = (rows.indptr.astype(PETSc.IntType), rows.indices.astype(PETSc.IntType), rows.data)
    P = PETSc.Mat().createAIJ(((end - first, n), (end - first, n)), csr=local)
    P.setBlockSize(block_size)
    P.assemble()
    P.setOption(PETSc.Mat.Option.SYMMETRIC, of_type == "sbaij")
    return P if of_type == "aij" else P.convert(of_type, PETSc.Mat())


def vector(b: np.ndarray, P: PETSc.Mat) -> PETSc.Vec:
    x = P.createVecRight()
    x.setArray(b[slice(*x.getOwnershipRange())])
    return x


def gathered(x: PETSc.Vec) -> np.ndarray:
    return np.concatenate(COMM.tompi4py().allgather(x.getArray(readonly=True).copy()))


def set_options(options: str) -> None:
    """Make these, and no others, PETSc's database of options; its own `clear` leaves what was inserted."""
    database = PETSc.Options()
    for name in database.getAll():
        database.delValue(name)
    database.insertString(options)


def solver(P: PETSc.Mat, options: str) -> PETSc.KSP:
    set_options(options)
    ksp = PETSc.KSP().create()
    ksp.setOperators(P)
    ksp.setTolerances(rtol=1e-10, max_it=500)
    ksp.setFromOptions()
    return ksp


def solution(ksp: PETSc.KSP, b: np.ndarray) -> np.ndarray:
    """By all ranks; it has converged."""
    P = ksp.getOperators()[1]
    x, right = P.createVecRight(), vector(b, P)
    ksp.solve(right, x)
    assert ksp.getConvergedReason() > 0
    return gathered(x)


@contextmanager
def viewer_of(ksp: PETSc.KSP) -> Iterator[Callable[[], str]]:
    """A function that returns what the PC of a solver says of itself; all ranks read what the first one has written."""
    # Temporary folders of pytest are cleaned up by each of them.
    folder = tempfile.TemporaryDirectory() if COMM.rank == 0 else nullcontext()
    path = COMM.tompi4py().bcast(COMM.rank == 0 and f"{folder.name}/view.txt")

    def viewed() -> str:
        viewer = PETSc.Viewer().createASCII(path, "w")
        ksp.getPC().view(viewer)
        viewer.destroy()
        COMM.tompi4py().Barrier()
        with open(path) as file:
            text = file.read()
        COMM.tompi4py().Barrier()  # before the first rank writes again, or removes the file
        return text

    yield viewed
    if COMM.rank == 0:
        folder.cleanup()


@contextmanager
def refused() -> Iterator[list[Exception]]:
    """Catch the error of PETSc and list its cause: what a Python type has raised.

    petsc4py loses the cause where Python collects garbage before the error is back in Python.
    """
    found: list[Exception] = []
    gc.disable()
    try:
        yield found
        pytest.fail("PETSc raised no error")
    except PETSc.Error as error:
        found.append(error.__cause__)
    finally:
        gc.enable()


def python_type(name: str, prefix: str = "") -> str:
    return f"-{prefix}pc_type python -{prefix}pc_python_type mcprecond.interop.petsc.{name} "


def in_blocks(name: str, method: str = "bjacobi") -> str:
    return f"-pc_type {method} -sub_ksp_type preonly " + python_type(name, "sub_")
