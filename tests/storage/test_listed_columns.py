"""Columns that are listed as diagonals: everything that goes through the triangles goes by them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import DTYPES, patterns, spd, stencil27
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcprecond import ILU0, ColorBlocks, MulticolorDILU, MulticolorGS, MulticolorSGS, color, pcg
from mcprecond.backends import get_backend

OPERATORS = {
    "SGS": lambda A, colors, dtype: MulticolorSGS(A, colors, dtype=dtype),
    "GS, two sweeps": lambda A, colors, dtype: MulticolorGS(A, colors, sweep="backward", sweeps=2, dtype=dtype),
    "DILU": lambda A, colors, dtype: MulticolorDILU(A, colors, dtype=dtype),
    "ILU0": lambda A, colors, dtype: ILU0(A, coloring=colors, dtype=dtype),
}


#: The CPU lists no columns, but it does in the emulation.
LISTING = [*(["cpu"] if get_backend("cpu").resident_warps else []), pytest.param("gpu", marks=pytest.mark.gpu)]
pytestmark = pytest.mark.parametrize("device", LISTING)


@pytest.mark.parametrize("rows", [1, 8, 32])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("make", OPERATORS.values(), ids=OPERATORS)
def test_operators(listed_columns, backend, to_device, make, dtype, rows):
    A, B = (spd(stencil27(6), seed, dtype) for seed in range(2))
    colors = color(A, "greedy").colors
    plain, other = (make(matrix, colors, dtype) for matrix in (A, B))
    R = np.random.default_rng(0).uniform(-1, 1, (216, 4)).astype(dtype)
    listed_columns(rows)
    M = make(to_device(A), colors, dtype)
    assert M.blocks.layout.name == "dia"
    accuracy = 1e2 * np.finfo(dtype).eps

    def check(right: np.ndarray, expected: np.ndarray) -> None:
        found = backend.to_host(M @ to_device(right))
        np.testing.assert_allclose(found, expected, rtol=0, atol=accuracy * abs(expected).max())

    for right in (R[:, 0].copy(), R):
        check(right, plain @ right)
    M.update(to_device(B))
    check(R, other @ R)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pattern=patterns(), rows=st.sampled_from([1, 4, 32]))
def test_blocks_of_any_pattern(listed_columns, backend, to_device, pattern, rows):
    listed_columns(rows)
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
def test_pcg(listed_columns, backend, to_device, form, rows):
    A = spd(stencil27(8))
    b = A @ np.random.default_rng(0).uniform(-1, 1, 512)
    colors = color(A, "greedy").colors
    expected = pcg(A, b, M=MulticolorSGS(A, colors), form=form)
    listed_columns(rows)
    on_device = to_device(A)
    M = MulticolorSGS(on_device, colors)
    assert M.blocks.layout.name == "dia"
    found = pcg(on_device, to_device(b), M=M, form=form)
    assert found.iterations == expected.iterations
    np.testing.assert_allclose(backend.to_host(found.x), expected.x, rtol=1e-6)
