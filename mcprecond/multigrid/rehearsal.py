"""Small calls of what a first hierarchy needs on a CPU, in double precision: Numba compiles half of it in a process
beside this one.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from mcprecond.backends import get_backend
from mcprecond.backends.beside import compile_beside, is_kept
from mcprecond.coloring.graph import Graph
from mcprecond.linalg.csr import Csr
from mcprecond.linalg.dense import Dense
from mcprecond.matrix import AdmittedMatrix
from mcprecond.multigrid.aggregation import aggregates
from mcprecond.multigrid.galerkin import Galerkin
from mcprecond.multigrid.interpolation import SmoothedInterpolation
from mcprecond.multigrid.polynomial import DEGREE, Polynomial
from mcprecond.multigrid.products import multiply_parts_into
from mcprecond.multigrid.strength import Connections, symmetric_strength
from mcprecond.multigrid.tentative import Tentative, fit_tentative
from mcprecond.multigrid.units import Narrowing
from mcprecond.preconditioners.setup import admit

N = 60


@cache
def rehearse() -> None:
    """Compile all of it, once, unless it is kept."""
    if not is_kept(multiply_parts_into):
        with compile_beside(f"{__name__}:rehearse_products"):
            rehearse_others()


def rehearse_products() -> None:
    """P, R and R A P for aggregates of three neighbors, and what levels of single precision need."""
    matrix, count = _line(), N // 3
    labels = np.arange(N, dtype=np.int32) // 3
    B = np.ones((N, 1))
    diagonal = np.arange(N + 1, dtype=matrix.indptr.dtype), np.arange(N, dtype=np.int32)
    C = Connections(Graph.of(matrix), *diagonal)
    P = SmoothedInterpolation(matrix, matrix, C, Tentative(labels, count, B, B[:count], None), B)
    product = Galerkin(matrix, P)
    product.update(matrix)
    for of_vectors in (np.float64, np.float32):
        rehearse_level(of_vectors)
    for argument in (np.float64, np.float32):
        to_single = Csr(matrix.csr, matrix.backend, stored=np.float32, dtype=np.float32, argument=argument)
        to_single.enqueue(to_single.new_state(), np.ones(N, argument), np.empty(N, np.float32))


def rehearse_others() -> None:
    """Aggregates, tentative prolongators, smoothers and cycles."""
    matrix, backend, b = _line(), get_backend("cpu"), np.ones(N)
    aggregates(symmetric_strength(matrix, matrix, None).graph)
    fit_tentative(np.zeros(N, np.int32), 1, np.ones((N, 1)), 1, backend)
    product = Csr(matrix.csr, backend, stored=np.float32, argument=np.float32)
    product.enqueue(product.new_state(), b.astype(np.float32), np.empty(N))
    Dense(matrix.csr, backend).enqueue(None, b, np.empty(N))


def rehearse_level(dtype: Any) -> None:
    """The smoother of a level with vectors of a dtype and a matrix of single precision."""
    narrow = Narrowing(get_backend("cpu"), "").narrow(_line(), np.float32, 0)
    smoother, (b, x, r) = Polynomial(narrow, DEGREE, dtype), np.ones((3, N), dtype)
    state = smoother.new_state()
    smoother.before(state, b, x, r, 1)
    smoother.after(state, b, x, 1)


def _line() -> AdmittedMatrix:
    """A Laplacian on a line."""
    return admit(sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(N, N)).tocsr())[0].canonical()
