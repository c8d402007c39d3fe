"""What users get wrong: type checkers find each line that is marked, and no other one."""

import numpy as np
import numpy.typing as npt

from mcprecond import (
    ILU0,
    MulticolorDILU,
    MulticolorGS,
    MulticolorSGS,
    SmoothedAggregation,
    SolveResult,
    color,
    pcg,
)
from mcprecond.interop.arrays import as_linear_operator
from mcprecond.typing import DeviceArray, SparseMatrix


def wrong(A: SparseMatrix, b: npt.NDArray[np.float64], on_gpu: DeviceArray, words: npt.NDArray[np.str_]) -> None:
    color(A, "edge_based")  # error
    color(A, distance=3)  # error
    color(np.eye(3), "eb")  # error
    color(A, "jp", order="largest_first")  # error
    MulticolorSGS(np.eye(3))  # error
    MulticolorSGS(A, "gredy")  # error
    MulticolorSGS(A, coloring=np.ones(3))  # error
    MulticolorSGS(A, omega="1.5")  # error
    MulticolorSGS(A, dtype="float16")  # error
    MulticolorSGS(A, dtype=np.int32)  # error
    MulticolorSGS(A, device="cuda")  # error
    MulticolorGS(A, sweep="forwards")  # error
    MulticolorDILU(A, pivot="clip")  # error
    ILU0(A, ordering="colour")  # error
    ILU0(A, "eb")  # error
    SmoothedAggregation(A, smoother="jacobi2")  # error
    SmoothedAggregation(A, cycle="F")  # error
    M = MulticolorSGS(A)
    M @ A  # error
    M @ words  # error
    M.matvec("b")  # error
    M.update(b)  # error
    print(M.colouring)  # error
    pcg(b, A)  # error
    pcg(A, words)  # error
    pcg(A, b, on_gpu)  # error
    pcg(A, on_gpu, b)  # error
    pcg(A, b, M="ilu")  # error
    pcg(A, b, form="fast")  # error
    print(pcg(A, b).x.iterations)  # error
    result: SolveResult[list[float]] = pcg(A, b)  # error
    print(result.reason + 1)  # error
    as_linear_operator(M, xp="tensorflow")  # error
    as_linear_operator(M, xp=3)  # error
    as_linear_operator(A, xp=np)  # error
