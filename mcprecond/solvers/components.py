"""Null spaces by connected components: pure Neumann problems, Laplacians of graphs, several basins.

If all rows of a connected component of the graph of A sum to zero, the vector of ones in its rows and zeros elsewhere
is in the null space of A. Such components are the basins without a fixed value, and rows that are zero.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from mcprecond.linalg.sums import norm_of
from mcprecond.matrix import AdmittedMatrix

#: A row sums to zero up to rounding if its sum is at most this many times the machine epsilon times the sum of the
#: magnitudes.
ROUNDING_OF_ROW = 8


class Components(NamedTuple):
    """The connected components of the graph of A whose rows sum to zero: the singular ones.

    Attributes
    ----------
    n_components : int
        How many components the graph has, if any row sums to zero; 0 otherwise.
    basis : sparse matrix of float64 in CSR form, shape (k, n)
        The rows are orthonormal vectors, one for each singular component, in the order of the components' first
        unknowns. The matrix is on the device of A.
    """

    n_components: int
    basis: Any

    @property
    def n_singular(self) -> int:
        """How many components are singular."""
        return int(self.basis.shape[0])

    @property
    def is_constant(self) -> bool:
        """Whether all rows of A are one component, which is singular."""
        return self.n_components == self.n_singular == 1

    def advice(self) -> str:
        """Which components are singular, and the null space to pass."""
        if self.is_constant:
            return 'A is singular: all of its rows sum to zero; pass nullspace="constant" to pcg or solve'
        k, which = self.n_singular, "" if self.n_singular == 1 else "the first "
        return (
            f"A is singular: in {k} of the {self.n_components} connected components of its graph, {which}that of row "
            f'{int(self.basis.indices[0])}, all rows sum to zero; pass nullspace="detect" to pcg or solve'
        )


def singular_components(matrix: AdmittedMatrix) -> Components:
    """Find the singular components of a Hermitian matrix, unless they are known. The host finds them on both devices.

    Stored zeros connect nothing.
    """
    if matrix.components is not None:
        return matrix.components
    A, backend, n = matrix.canonical(), matrix.backend, matrix.shape[0]
    ones = backend.xp.ones(n)
    with np.errstate(all="ignore"):
        sums, sizes = abs(A.operand() @ ones.astype(np.result_type(A.dtype, np.float64))), A.magnitudes() @ ones
        vanishes = backend.to_host(sums <= ROUNDING_OF_ROW * float(np.finfo(A.dtype).eps) * sizes)
    if not vanishes.any():
        return Components(0, backend.sparse.csr_matrix((0, n)))
    pattern = tuple(backend.to_host(array) for array in (A.data != 0, A.indices, A.indptr))
    graph = sp.csr_matrix(pattern, shape=A.shape, copy=True)
    graph.eliminate_zeros()
    n_components, labels = connected_components(graph, connection="weak")
    is_singular = np.ones(n_components, bool)
    is_singular[labels[~vanishes]] = False
    order = np.argsort(labels, kind="stable")
    order = order[is_singular[labels[order]]]
    sizes_of_components = np.bincount(labels, minlength=n_components)[is_singular]
    offsets = np.concatenate([[0], np.cumsum(sizes_of_components)])
    values = np.repeat(1 / np.sqrt(sizes_of_components), sizes_of_components)
    basis = sp.csr_matrix((values, order, offsets), shape=(len(sizes_of_components), n))
    firsts = order[offsets[:-1]]
    return Components(int(n_components), backend.sparse.csr_matrix(basis[np.argsort(firsts, kind="stable")]))


def with_components(matrix: AdmittedMatrix) -> AdmittedMatrix:
    """Return a canonical matrix that knows its singular components, so that they are found once."""
    return matrix.knowing(components=singular_components(matrix))


def part_in_components(matrix: AdmittedMatrix, b: Any, rounding: float) -> float:
    """The norm of the part of b in the null space of a Hermitian A that singular components make; 0 if it is at most
    this share of rounding of b.
    """
    basis = singular_components(matrix).basis
    if not basis.shape[0]:
        return 0.0
    with np.errstate(all="ignore"):
        scale = float(abs(b).max())
        if not 0 < scale < math.inf:
            return 0.0
        part = norm_of(basis @ (b / scale), matrix.backend)
        return scale * part if part > rounding * norm_of(b / scale, matrix.backend) else 0.0
