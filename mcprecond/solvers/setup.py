"""How a solve is set up: A, M -> form -> operators -> iteration.

The doors of this package admit A and M by `admit_system` and `admit_preconditioner`. `eisenstat_obstacle` decides
between the two forms of CG. Eisenstat's form takes A and M as they are stored, by `eisenstat_iteration`; every other
method takes them as operators on vectors of one dtype, by `operators_on`. The driver then runs the iteration.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from mcprecond.backends import Backend, backend_of
from mcprecond.backends.arguments import single
from mcprecond.linalg.csr import Csr, product_with
from mcprecond.linalg.diagonal import Diagonal
from mcprecond.linalg.operator import Operator, Scaled, operator_for
from mcprecond.matrix import AdmittedMatrix, admit_matrix, csr_form, with_floats
from mcprecond.preconditioners import Preconditioner
from mcprecond.solvers.eisenstat import EisenstatIteration, eisenstat_incompatibility
from mcprecond.solvers.iteration import Iteration, near_exponent
from mcprecond.solvers.reliable import ReliableUpdates
from mcprecond.tuning.cost_model import ROW_VALUES

#: Numbers for each row and column that an iteration of the plain form reads and writes, with sweeps for M.
VALUES_OF_PLAIN = 24


def admit_system(A: Any) -> tuple[Any, Backend]:
    """Return A as solvers take it, in CSR form or as an operator, and the backend it lives on.

    Dense arrays become sparse, and their integers floats.

    Raises
    ------
    TypeError, ValueError
        If A is neither a matrix of numbers nor an operator, or is not square.
    """
    backend = A.origin if isinstance(A, Preconditioner) else backend_of(A)
    if isinstance(A, backend.xp.ndarray):
        A = sparse_form(A, "A", backend)
    elif callable(getattr(A, "matvec", None)) and not hasattr(A, "tocsr"):
        shape = tuple(getattr(A, "shape", ()))
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ValueError(f"A must be square, got shape {shape}")
        return backend.linalg.aslinearoperator(A), backend
    return csr_form(A, floats=True)


def sparse_form(A: Any, name: str, backend: Backend) -> Any:
    """Return a dense matrix of numbers as a sparse one of floats."""
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"{name} must be square, got shape {A.shape}")
    return backend.sparse.csr_matrix(with_floats(A, name))


def admit_preconditioner(M: Any, A: Any, backend: Backend) -> Any:
    """Return what stands for M: None, a Preconditioner, an AdmittedMatrix, or any operator with ``@``.

    Raises
    ------
    TypeError, ValueError
        If M is none of these, has another shape than A, or is complex where A is real.
    """
    if M is None:
        return None
    if getattr(M, "shape", None) != A.shape:
        if not hasattr(M, "__matmul__"):
            raise TypeError(f"M must be a preconditioner, a sparse matrix or a LinearOperator, got {type(M).__name__}")
        raise ValueError(f"M must have the shape of A, {A.shape}, got {getattr(M, 'shape', type(M).__name__)}")
    if getattr(M, "dtype", None) is not None and M.dtype.kind == "c" and A.dtype.kind != "c":
        raise TypeError(f"M holds {M.dtype} and A {A.dtype}; convert A with A.astype(complex), or take a real M")
    if isinstance(M, Preconditioner | Diagonal):
        return M
    dense = isinstance(M, np.ndarray | backend.xp.ndarray)
    if backend_of(M).name != backend.name and (dense or hasattr(M, "tocsr")):
        raise TypeError(f"M must be on the {backend.name} like A")
    if dense:
        M = sparse_form(M, "M", backend)
    if backend.sparse.issparse(M):
        return admit_matrix(M, "M", finite=True)
    if not hasattr(M, "__matmul__"):
        raise TypeError(f"M must be a preconditioner, a sparse matrix or a LinearOperator, got {type(M).__name__}")
    return M


def operators_on(dtype: Any, A: Any, M: Any, backend: Backend) -> tuple[Operator, Operator | None]:
    """Return A and M as operators on vectors of a dtype; A is admitted or an operator, M is admitted."""
    if isinstance(M, AdmittedMatrix):
        M = replace(M, csr=M.csr.astype(dtype, copy=False))
        is_diagonal = M.max_degree == 0 and M.is_canonical and M.indices.size == M.shape[0]
        M = Diagonal(M.data, backend) if is_diagonal else product_with(M)
    if isinstance(M, Diagonal) and isinstance(A, AdmittedMatrix):
        M = M.beside(A)
    if M is not None:
        M = operator_for(M, dtype, backend)
    if isinstance(A, AdmittedMatrix):
        return product_with(replace(A, csr=A.csr.astype(dtype, copy=False))), M
    return operator_for(A, dtype, backend), M


def in_unit_of(A: Operator, M: Operator | None, backend: Backend) -> Operator | None:
    """M, times a power of two where A M is far from 1: then vectors of either side of A stay in range."""
    exponent = (A.exponent or 0) + (0 if M is None else M.exponent or 0)
    if (M is not None and M.exponent is None) or abs(exponent) <= near_exponent(A.dtype):
        return M
    most = int(np.finfo(A.dtype).maxexp) - 2
    return Scaled(M, 2.0 ** -max(-most, min(exponent, most)), A.shape, A.dtype, backend)


def eisenstat_obstacle(A: Any, M: Any, dtype: Any, narrows: bool) -> str | None:
    """Say why a system with A in CSR form cannot be solved in Eisenstat's form on vectors of a dtype; None if it can,
    provided that M was built from A. With `narrows` its steps may be in single precision where M is stored so.
    """
    if obstacle := eisenstat_incompatibility(A, M):
        return obstacle
    stored = M.blocks.lower.values.dtype
    if stored == dtype == M.dtype or (narrows and stored == single(dtype)):
        return None
    return f"the system is solved in {dtype}, as A, b or x0 needs it, and M is stored in {stored}"


def eisenstat_iteration(A: Any, M: Any, dtype: Any, backend: Backend) -> Iteration:
    """CG in Eisenstat's form on vectors of a dtype; its steps have the dtype that M is stored in."""
    iteration = EisenstatIteration(A, M, backend)
    if iteration.dtype == dtype:
        return iteration
    blocks = M.blocks
    A = Csr(A.astype(dtype, copy=False), backend, longest_row=blocks.longest_row, exponent=blocks.exponent)
    return ReliableUpdates(A, backend, iteration)


def columns_pay_one_by_one(A: Any, M: Any, columns: int) -> bool:
    """Whether Eisenstat's form, for one column after the other, reads and writes fewer bytes than the plain form for
    all at once: the first reads A once for each column, the second once and for each pass of M.
    """
    n, item = A.shape[0], A.dtype.itemsize
    matrix, vector = A.indices.size * (item + 4), n * item
    passes = 1 + math.ceil(columns / M.columns_at_once)
    rest = 1 - 1 / max(M.n_colors, 2)  # of the rows, which Eisenstat's form does not keep apart
    one_by_one = columns * (matrix + ROW_VALUES * vector * rest)
    return one_by_one < passes * matrix + VALUES_OF_PLAIN * columns * vector
