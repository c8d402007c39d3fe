"""What users write: `mypy --strict` finds nothing here."""

from typing import Any

import numpy as np
import numpy.typing as npt

import mcprecond
from mcprecond import (
    COLORINGS,
    ILU0,
    AutoColoring,
    ColorBlocks,
    Coloring,
    MulticolorDILU,
    MulticolorGS,
    MulticolorSGS,
    SmoothedAggregation,
    SolveResult,
    color,
    pcg,
    solve,
)
from mcprecond.interop.arrays import as_linear_operator
from mcprecond.solvers import ColumnsResult, Reason
from mcprecond.typing import DeviceArray, LinearOperator, Matrix, SparseMatrix


def uses(A: SparseMatrix, b: npt.NDArray[np.float64], on_gpu: DeviceArray) -> None:
    coloring: Coloring = color(A, "eb", distance=2, recolor=1)
    for name in COLORINGS:
        coloring = color(A, name)
    colors: int = coloring.n_colors
    operators = [
        MulticolorGS(A, coloring, sweep="forward", dtype="float32"),
        MulticolorSGS(A, AutoColoring(colors), omega=1.2, dtype=np.float32),
        MulticolorSGS(A, [0, 1, 0], block_size=2, device="gpu"),
        MulticolorDILU(A, np.zeros(3, np.int32), pivot="shift", dtype=float),
        ILU0(A, ordering="natural"),
        ILU0(A, ordering="auto", coloring=coloring),
        ILU0(A, ordering=np.arange(3)),
        SmoothedAggregation(A, np.ones((3, 1)), smoother="chebyshev", cycle="K"),
    ]
    for M in operators:
        z: npt.NDArray[Any] = M @ b
        z = M.T @ M.matvec(z)
        on_device = M @ on_gpu
        print(on_device.shape, M.n_colors, M.nbytes)
        M.update(A)
        result: SolveResult[npt.NDArray[Any]] = pcg(A, b, z, M=M, rtol=1e-8, form="plain")
        print(result.x.sum(), result.iterations + 1, result.reason is Reason.CONVERGED)
        x, info = result
        print(x, info)
        assert isinstance(result, ColumnsResult)
        print(result.iterations.max(), result.reasons[0], result.residual_norm.sum())
    hierarchy, residuals = SmoothedAggregation(A), list[float]()
    print(hierarchy.solve(b, rtol=1e-8).iterations, hierarchy.solve(on_gpu).converged)
    print(hierarchy.solve(b, tol=1e-8, accel="cg", residuals=residuals), hierarchy.aspreconditioner("W").n_colors)
    blocks = ColorBlocks(A, "greedy", dtype=np.float32)
    print(blocks.n_colors, blocks.perm, mcprecond.__version__)


def solved(A: Matrix, b: npt.NDArray[np.float64], M: LinearOperator) -> SolveResult:
    tensors = as_linear_operator(MulticolorSGS(A), xp="torch")
    arrays = as_linear_operator(M, xp=np)
    print(tensors @ b, tensors.shape, arrays.T @ b)
    print(solve(A, b, block_size=3, nullspace="detect", device="gpu").relative_residual)
    return pcg(A, b, M=M)


def on_gpu(A: Matrix, b: DeviceArray) -> Any:
    return pcg(A, b, M=MulticolorSGS(A)).x
