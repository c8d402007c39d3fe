"""The preconditioner of FiPy's solvers; what FiPy does with it is on its page."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import grid5, spd

from mcprecond import ILU0, MulticolorSGS
from mcprecond.interop.fipy import preconditioner


@pytest.mark.parametrize("operator", [MulticolorSGS, ILU0])
def test_values_are_updated_and_other_patterns_are_built_anew(operator):
    precon = preconditioner(operator, coloring="greedy")
    counts = []
    for A in (spd(grid5(8)), spd(grid5(8), 1), spd(grid5(9)), spd(grid5(9)) @ spd(grid5(9)), spd(grid5(8))):
        M, same = precon._applyToMatrix(A)
        assert same is A and M is precon.M
        r = np.ones(A.shape[0])
        np.testing.assert_array_equal(M @ r, operator(A, coloring="greedy") @ r)
        counts.append((precon.builds, precon.updates))
    assert counts == [(1, 0), (1, 1), (2, 1), (3, 1), (4, 1)]


def test_a_matrix_that_is_refused_leaves_nothing_wrong_behind():
    A = spd(grid5(8))
    precon = preconditioner(MulticolorSGS, "greedy")
    precon._applyToMatrix(A)
    with pytest.raises(ValueError, match="diagonal"):
        precon._applyToMatrix(0 * A)
    M, _ = precon._applyToMatrix(A)
    np.testing.assert_array_equal(M @ np.ones(64), MulticolorSGS(A, "greedy") @ np.ones(64))


def test_what_cannot_be_called():
    with pytest.raises(TypeError, match="operator must be a class of preconditioners, got 3"):
        preconditioner(3)
