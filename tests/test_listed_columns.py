"""Columns that are listed as diagonals, or in two bytes: everything that goes through the triangles goes by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import DTYPES, patterns, spd, stencil27
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcprecond import ILU0, ColorBlocks, MulticolorDILU, MulticolorGS, MulticolorSGS, color, pcg

OPERATORS = {
    "SGS": lambda A, colors, dtype: MulticolorSGS(A, colors, dtype=dtype),
    "GS, two sweeps": lambda A, colors, dtype: MulticolorGS(A, colors, sweep="backward", sweeps=2, dtype=dtype),
    "DILU": lambda A, colors, dtype: MulticolorDILU(A, colors, dtype=dtype),
    "ILU0": lambda A, colors, dtype: ILU0(A, coloring=colors, dtype=dtype),
}


@pytest.fixture(params=["in_diagonals", "in_two_bytes"])
def listed(request, backend, listed_columns):
    """Let color blocks list columns in one of the two ways; return whether some do, which the CPU never does."""

    def force(rows: int) -> Callable[[Any], bool]:
        listed_columns(request.param, rows)
        return lambda blocks: getattr(blocks, request.param) == bool(backend.resident_warps)

    return force


@pytest.mark.parametrize("rows", [1, 8, 32])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("make", OPERATORS.values(), ids=OPERATORS)
def test_operators(listed, backend, to_device, make, dtype, rows):
    A = spd(stencil27(6), dtype=dtype)
    colors = color(A, "greedy").colors
    plain = make(A, colors, dtype)
    R = np.random.default_rng(0).uniform(-1, 1, (216, 4)).astype(dtype)
    is_listed = listed(rows)
    M = make(to_device(A), colors, dtype)
    assert is_listed(M.blocks)
    accuracy = 1e2 * np.finfo(dtype).eps

    def check(right: np.ndarray, expected: np.ndarray) -> None:
        found = backend.to_host(M @ to_device(right))
        np.testing.assert_allclose(found, expected, rtol=0, atol=accuracy * abs(expected).max())

    for right in (R[:, 0].copy(), R):
        check(right, plain @ right)
    B = A.copy()
    B.data *= 2
    M.update(to_device(B))
    check(R, plain @ R / 2)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pattern=patterns(), rows=st.sampled_from([1, 4, 32]))
def test_blocks_of_any_pattern(listed, backend, to_device, pattern, rows):
    listed(rows)
    A = pattern.copy()
    A.data = np.arange(1.0, len(A.data) + 1)
    blocks = ColorBlocks(to_device(A))
    perm = backend.to_host(blocks.perm)
    permuted = blocks.permuted()
    parts = (permuted.data, permuted.indices, permuted.indptr)
    found = sp.csr_matrix(tuple(backend.to_host(part) for part in parts), A.shape)
    np.testing.assert_array_equal(found.toarray(), A.toarray()[np.ix_(perm, perm)])


@pytest.mark.parametrize("form", ["plain", "eisenstat"])
@pytest.mark.parametrize("rows", [1, 4, 32])
def test_pcg(listed, backend, to_device, form, rows):
    A = spd(stencil27(8))
    b = A @ np.random.default_rng(0).uniform(-1, 1, 512)
    colors = color(A, "greedy").colors
    expected = pcg(A, b, M=MulticolorSGS(A, colors), form=form)
    is_listed = listed(rows)
    on_device = to_device(A)
    M = MulticolorSGS(on_device, colors)
    assert is_listed(M.blocks)
    found = pcg(on_device, to_device(b), M=M, form=form)
    assert found.iterations == expected.iterations
    np.testing.assert_allclose(backend.to_host(found.x), expected.x, rtol=1e-6)
