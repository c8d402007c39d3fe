"""Preconditioners as dense matrices, and the factors of ILU(0) beside those of the reference."""

from __future__ import annotations

import numpy as np
from reference import ilu

from mcprecond import ILU0, color


def factors_in(order: np.ndarray, M, backend) -> tuple[np.ndarray, np.ndarray]:
    """The factors of M, dense, in another order than that of the levels."""
    place = np.empty(len(order), int)
    place[backend.to_host(M.blocks.perm)] = np.arange(len(order))
    return tuple(backend.to_host(F.toarray())[np.ix_(place[order], place[order])] for F in M.factors())


def applied(M, backend) -> np.ndarray:
    """The dense matrix of an operator."""
    return backend.to_host(M @ backend.xp.eye(M.shape[0], dtype=M.dtype))


def check(A, backend, to_device, ordering, order: np.ndarray | None = None) -> None:
    on_device = to_device(A)
    coloring = color(on_device, "ecl_gc")
    M = ILU0(on_device, ordering=ordering, coloring=coloring)
    order = backend.to_host(coloring.permutation()) if order is None else order
    expected = ilu.factors(A, order)
    for ours, theirs in zip(factors_in(order, M, backend), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12 * max(abs(theirs).max(), 1))
    inverse = np.empty_like(expected[0])
    inverse[np.ix_(order, order)] = np.linalg.inv(expected[0] @ expected[1])
    np.testing.assert_allclose(applied(M, backend), inverse, atol=1e-12)
    np.testing.assert_allclose(applied(M.T, backend), inverse.T, atol=1e-12)
