"""Points that are eliminated exactly, as the ends and the links of chains and trees: a level without a smoother.

Let F be an independent set of points and C all others. With P = [-inv(D_F) A_FC; I] the coarse matrix P^H A P is the
Schur complement of A in C, and x = P x_C + inv(D_F) b_F solves A x = b if x_C solves the coarse system for P^H b. A
point with at most two neighbors joins no more than these two, so that the Schur complement has fewer entries than A,
where aggregates and interpolation between points would fill it in.

In F are the points with at most two neighbors that come before each such neighbor, by the number of their neighbors and
then by a hash.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import KernelSet
from mcprecond.backends.hashing import mix
from mcprecond.linalg.diagonal import Diagonal
from mcprecond.matrix import AdmittedMatrix, rows_of
from mcprecond.multigrid.extended import ExtendedInterpolation
from mcprecond.multigrid.galerkin import Galerkin
from mcprecond.multigrid.hierarchy import Level
from mcprecond.multigrid.smoothers import Smoother
from mcprecond.multigrid.splitting import COARSE, FINE, INTERPOLATES

KERNELS = KernelSet(__file__, "OFFSET")

MOST_NEIGHBORS = 2
CUDA_CONSTANTS = {"MOST_NEIGHBORS": MOST_NEIGHBORS, "COARSE": COARSE, "FINE": FINE}
#: Of the points of a level: if fewer would go, none does.
LEAST_SHARE = 0.2


class ExactPoints(Smoother):
    """What a level with eliminated points has for a smoother: x = inv(D_F) b_F, which completes the correction."""

    is_exact = True
    description = "exact elimination"
    nbytes: int

    def __init__(self, A: AdmittedMatrix, is_fine: Any, dtype: Any) -> None:
        self.shape, self.dtype, self._is_fine = A.shape, np.dtype(dtype), is_fine
        self._dinv = A.backend.xp.zeros(A.shape[0], dtype)
        self.nbytes = self._dinv.nbytes
        self.update(A)
        self._operator = Diagonal(self._dinv, A.backend, 0)

    def update(self, matrix: AdmittedMatrix) -> None:
        xp = matrix.backend.xp
        self._dinv[...] = xp.where(self._is_fine, 1 / matrix.diagonal(), 0)

    def new_state(self, columns: int = 1) -> None:
        return None

    def enqueue(self, state: None, b: Any, x: Any) -> None:
        self._operator.enqueue(None, b, x)

    def before(self, state: None, b: Any, x: Any, r: Any, sweeps: int) -> None:
        raise NotImplementedError("the correction of a level with eliminated points is exact")

    after = residual = before  # type: ignore[assignment]


def eliminate(level: Level, A: AdmittedMatrix) -> Any:
    """Eliminate points of a canonical matrix with a diagonal, if that pays: A -> F -> P -> pattern of the Schur
    complement. Return whether each point is left, or None if all are.
    """
    backend, xp, n = A.backend, A.backend.xp, A.shape[0]
    states = xp.empty(n, np.int32)
    run = backend.kernels(KERNELS, OFFSET=A.indptr.dtype)
    run.find_chains(n, A.indptr, A.indices, A.degrees, states)
    is_fine = states == FINE
    if not LEAST_SHARE * n <= int(is_fine.sum()) < n:
        return None
    off_diagonal = rows_of(A.indptr, A.indices, xp) != A.indices
    P = ExtendedInterpolation(A, (off_diagonal * INTERPOLATES).astype(np.uint8), states)
    level.interpolation, level.galerkin = P, Galerkin(A, P)
    level.smoother = ExactPoints(A, is_fine, level.dtype)
    return ~is_fine


@KERNELS.per_item
def find_chains(first, end, indptr, indices, degrees, states):
    """Whether each point is eliminated (FINE) or left (COARSE)."""
    for i in range(first, end):
        goes = degrees[i] <= MOST_NEIGHBORS
        if goes:
            mine = mix(i, 0)
            for k in range(indptr[i], indptr[i + 1]):
                j = np.int64(indices[k])
                if j != i and degrees[j] <= MOST_NEIGHBORS:
                    theirs = mix(j, 0)
                    goes &= degrees[i] < degrees[j] or (degrees[i] == degrees[j] and mine < theirs)
        states[i] = FINE if goes else COARSE
