"""Long rows: products with matrices that have hubs, on all devices, whatever the pieces are."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from mcprecond import MulticolorSGS, pcg
from mcprecond.matrix import admitted
from mcprecond.solvers import long_rows
from mcprecond.solvers.iteration import Product


def star_and_grid(n: int, hubs: int, dtype, seed: int) -> sp.csr_array:
    """A Hermitian positive definite matrix in which a few rows have most of the others as neighbors."""
    rng = np.random.default_rng(seed)
    rows = np.concatenate([np.full(n - 1, h) for h in range(hubs)] + [np.arange(n - 1)]).astype(np.int32)
    columns = np.concatenate([np.delete(np.arange(n), h) for h in range(hubs)] + [np.arange(1, n)]).astype(np.int32)
    values = rng.uniform(-1, 1, len(rows)).astype(dtype)
    if np.dtype(dtype).kind == "c":
        values += 1j * rng.uniform(-1, 1, len(rows)).astype(dtype)
    A = sp.csr_array(sp.coo_array((values, (rows, columns)), shape=(n, n)))
    A = A + A.conj().T
    A = A + sp.diags_array(np.asarray(abs(A).sum(axis=1)).ravel() + 1)
    return sp.csr_array(A.astype(dtype))


@pytest.fixture
def short_pieces(monkeypatch):
    """Rows are cut that are longer than a few entries for each thread."""
    monkeypatch.setattr(long_rows, "LONG", 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_products(dtype, short_pieces, backend, to_device):
    eps = np.finfo(dtype).eps

    @given(n=st.sampled_from([40, 1023, 1500, 3000]), hubs=st.integers(1, 4), seed=st.integers(0, 99))
    def check(n, hubs, seed):
        A = star_and_grid(n, hubs, dtype, seed)
        x = np.random.default_rng(seed).standard_normal(n).astype(dtype)
        product, y = Product(admitted(to_device(A), finite=True)), backend.xp.empty(n, dtype)
        on_device = to_device(x)
        product.enqueue(on_device, y)
        found = backend.to_host(y).copy()
        bound = 4 * np.sqrt(n) * eps * (abs(A) @ abs(x))
        assert (abs(found - A @ x) <= bound).all()
        product.enqueue(on_device, y)  # nothing is left over from the first one, and sums have an order
        np.testing.assert_array_equal(backend.to_host(y), found)

    check()


@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
@pytest.mark.parametrize("form", ["plain", "auto"])
def test_pcg(form, dtype, short_pieces, backend, to_device):
    A = star_and_grid(2500, 2, dtype, 5)
    x = np.random.default_rng(0).standard_normal(2500).astype(dtype)
    on_device = to_device(A)
    for M in (None, MulticolorSGS(on_device, "jp")):
        result = pcg(on_device, to_device(A @ x), M=M, form=form if M else "plain", rtol=1e-5)
        assert result.converged
        np.testing.assert_allclose(backend.to_host(result.x), x, rtol=0, atol=1e-3)
        again = pcg(on_device, to_device(A @ x), M=M, form=form if M else "plain", rtol=1e-5)
        np.testing.assert_array_equal(again.residuals, result.residuals)


def test_pieces_cover_long_rows_once(short_pieces, backend):
    lengths = np.array([5, 9000, 0, 300, 1024, 2049, 17])
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    cut = long_rows.long_rows(backend.xp.asarray(indptr), 9000, 8, backend)
    if not backend.resident_warps:
        assert cut.n_rows == cut.n_pieces == 0
        return
    plan = backend.to_host(cut.plan)
    owners, rows, firsts = np.split(plan, [cut.n_pieces, cut.n_pieces + cut.n_rows])
    assert cut.longest == 16
    np.testing.assert_array_equal(rows, [1, 3, 4, 5, 6])
    np.testing.assert_array_equal(np.diff(firsts), -(-lengths[rows] // long_rows.PIECE))
    np.testing.assert_array_equal(owners, np.repeat(np.arange(len(rows)), np.diff(firsts)))
