"""Faults in the middle of things: memory that runs out, Ctrl-C, callbacks that raise, matrices that are refused late.

What is updated has its old values afterwards, or its new ones, or says that it has neither; and the next call is right.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import grid5, spd

from mcprecond import ILU0, PCG, ColorBlocks, MulticolorDILU, MulticolorSGS, SmoothedAggregation, pcg

#: What can be updated, by name.
UPDATED: dict[str, Callable[[Any], Any]] = {
    "color blocks": partial(ColorBlocks, coloring="greedy"),
    "SGS": partial(MulticolorSGS, coloring="greedy"),
    "SGS with a rest": partial(MulticolorSGS, coloring="greedy", max_colors=2),
    "SGS of nodes": partial(MulticolorSGS, coloring="greedy", block_size=2),
    "DILU": partial(MulticolorDILU, coloring="greedy", pivot="raise"),
    "ILU0": partial(ILU0, pivot="raise"),
    "multigrid": partial(SmoothedAggregation, smoother="gauss_seidel", coloring="greedy", max_coarse=8),
    "multigrid, Chebyshev": partial(SmoothedAggregation, smoother="chebyshev", max_coarse=8),
}
#: Those whose values are replaced at the speed of memory: no copy is made of them first.
UNCOPIED = {"color blocks", "SGS", "SGS with a rest", "SGS of nodes"}


def applied(M: Any) -> np.ndarray:
    """What M does, in bits."""
    b = M.backend.xp.asarray(np.random.default_rng(0).uniform(-1, 1, M.shape[0]))
    return M.backend.to_host(M.permuted() @ b if isinstance(M, ColorBlocks) else M @ b)


def system(to_device: Callable[[Any], Any], size: int = 12) -> tuple[Any, Any, Any]:
    """A, another matrix with its pattern, and b."""
    A = spd(grid5(size))
    scale = sp.diags_array(np.random.default_rng(1).uniform(1, 2, size**2))
    return to_device(A), to_device(sp.csr_matrix(scale @ A @ scale)), to_device(np.ones(size**2))


class Expected:
    """What an object does before an update and after it."""

    def __init__(self, make: Callable[[Any], Any], A: Any, other: Any) -> None:
        self.M = make(A)
        self.old = applied(self.M)
        self.updated(other)
        self.new = applied(self.M)
        self.updated(A, self.old)
        assert not np.array_equal(self.old, self.new)

    def check(self, unchanged: bool, may_be_halfway: bool) -> None:
        """After an update that has failed: all old values, or all new ones unless `unchanged`; or M says that it is
        halfway.
        """
        if may_be_halfway and self.M.is_halfway:
            with pytest.raises(RuntimeError, match="the last update failed"):
                applied(self.M)
            return
        found = applied(self.M)
        assert np.array_equal(found, self.old) or (not unchanged and np.array_equal(found, self.new))

    def updated(self, A: Any, values: np.ndarray | None = None) -> None:
        """An update that succeeds."""
        self.M.update(A)
        if values is not None:
            np.testing.assert_array_equal(applied(self.M), values)


# ---- Matrices that are refused late


def without_pivot(A: sp.csr_matrix) -> sp.csr_matrix:
    """The same pattern with zeros on the diagonal, which the door lets in: the last rows of it."""
    bad = A.copy()
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    bad.data[(rows == bad.indices) & (rows >= A.shape[0] - 2)] = 0
    bad.data[(rows != bad.indices) & (rows >= A.shape[0] - 2)] = 0
    return bad


@pytest.mark.parametrize("kind", UPDATED)
def test_a_matrix_that_is_refused_late_changes_nothing(kind, to_device):
    """Or, where no copy is made before, M refuses to be used."""
    host = spd(grid5(12))
    A, other, _ = system(to_device)
    case = Expected(UPDATED[kind], A, other)
    if kind == "color blocks":  # which divide by nothing, and so refuse at the door only
        bad, message = host.copy(), "finite"
        bad.data[-1] = np.nan
    else:
        bad, message = without_pivot(host), "row"
    for _ in range(2):
        with pytest.raises(ValueError, match=message):
            case.M.update(to_device(bad))
        case.check(unchanged=True, may_be_halfway=kind in UNCOPIED - {"color blocks"})
    case.updated(other, case.new)
    case.updated(A, case.old)


@pytest.mark.parametrize("smoother", ["gauss_seidel", "chebyshev", "dilu"])
def test_a_coarse_level_that_is_refused_changes_nothing(smoother, to_device, backend):
    """The finest level is symmetric with a positive diagonal; a coarse one is indefinite."""
    host = sp.csr_matrix(grid5(20))
    A = to_device(host)
    M = SmoothedAggregation(A, smoother=smoother, max_coarse=8)
    assert len(M.levels) > 2
    before = applied(M)
    solver, b = PCG(A, M), to_device(np.ones(400))
    x = backend.to_host(solver.solve(b, rtol=1e-9).x)
    indefinite = host.copy()
    indefinite.setdiag(host.diagonal() * 0.6)
    with pytest.raises(ValueError, match="level"):
        M.update(to_device(indefinite))
    np.testing.assert_array_equal(applied(M), before)
    np.testing.assert_array_equal(backend.to_host(solver.solve(b, rtol=1e-9).x), x)


@pytest.mark.parametrize("form", ["plain", "eisenstat"])
def test_pcg_does_not_use_what_is_halfway(form, to_device, backend):
    host = spd(grid5(12))
    A, b = to_device(host), to_device(np.ones(144))
    M = MulticolorSGS(A, "greedy")
    solver = PCG(A, M, form=form)
    x = backend.to_host(solver.solve(b).x)
    with pytest.raises(ValueError, match="row"):
        M.update(to_device(without_pivot(host)))
    for solve in (partial(solver.solve, b), partial(pcg, A, b, M=M, form=form)):
        with pytest.raises(RuntimeError, match="the last update failed"):
            solve()
    M.update(A)
    np.testing.assert_array_equal(backend.to_host(solver.solve(b).x), x)
