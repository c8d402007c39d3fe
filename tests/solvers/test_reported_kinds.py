"""Systems of the kinds that users report are solved, or refused with the row that is to blame and the remedy."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from reported import KINDS

from mcprecond import pcg, solve

RTOL = 1e-10
NULL = 1e-13  # singular values below this share of the largest one are those of a singular matrix


def null_space_of(A):
    _, sizes, V = np.linalg.svd(A)
    return V[sizes <= NULL * sizes[0]].T


def error_of(A, b, x):
    """The relative error without parts in the null space, in the units that make the diagonal one."""
    diagonal, largest = abs(A.diagonal()), abs(A).max(axis=1)
    scales = 1 / np.sqrt(np.where(diagonal > 0, diagonal, np.where(largest > 0, largest, 1)))
    U, sizes, V = np.linalg.svd(scales[:, None] * A * scales)
    is_range = sizes > NULL * sizes[0]
    exact = (U.T @ (scales * b))[is_range] / sizes[is_range]
    return np.linalg.norm((V @ (x / scales))[is_range] - exact) / np.linalg.norm(exact)


def is_for_cg(A):
    if not np.isfinite(A).all() or abs(A - A.T).max() > 0:
        return False
    sizes = np.linalg.eigvalsh(A)
    return sizes[0] >= -NULL * sizes[-1]


@pytest.mark.parametrize("solver", [solve, pcg])
@pytest.mark.parametrize("kind", KINDS)
def test_reported_kinds_are_solved_or_explained(to_device, backend, kind, solver):
    system = KINDS[kind]()
    A, b = system.A.toarray(), system.b
    call = partial(solver, to_device(system.A), to_device(b), M="auto", rtol=RTOL, **system.options)
    if not np.isfinite(A).all():
        with pytest.raises(ValueError, match=".*".join(system.says)):
            call()
        return
    result = call()
    if system.options:
        N = null_space_of(A)
        b = b - N @ (N.T @ b)
    x, of_b = backend.to_host(result.x), np.linalg.norm(b)
    norm = np.linalg.norm(b - A @ x)
    if solver is pcg and not is_for_cg(A):
        # It may end anyhow, but what it says of the residual is true.
        is_detected = bool(system.options)  # maybe a part of the null space, so that b is another one
        assert is_detected or result.residual_norm == pytest.approx(norm, rel=1e-3, abs=1e-13 * of_b)
        assert not result.converged or norm <= 1.01 * RTOL * of_b
        return
    said = f"{result.reason.value}; {result.detail}"
    assert result.converged == (not system.says), said
    for words in system.says:
        assert words in said
    if result.converged:
        assert norm <= 1.01 * RTOL * of_b
        assert error_of(A, b, x) <= system.accuracy
