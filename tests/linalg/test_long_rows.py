"""Long rows: products and sweeps with matrices that have hubs, on all devices, whatever the pieces are."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sla
from hypothesis import given
from hypothesis import strategies as st

from mcprecond import ILU0, MulticolorDILU, MulticolorGS, MulticolorSGS, SmoothedAggregation, pcg
from mcprecond.backends.cpu import CpuBackend
from mcprecond.linalg import csr
from mcprecond.linalg.csr import product_with
from mcprecond.matrix import admit_matrix
from mcprecond.storage import schedule, split


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
    monkeypatch.setattr(csr, "LONG", 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_products(dtype, short_pieces, backend, to_device):
    eps = np.finfo(dtype).eps

    @given(n=st.sampled_from([40, 1023, 1500, 3000]), hubs=st.integers(1, 4), seed=st.integers(0, 99))
    def check(n, hubs, seed):
        A = star_and_grid(n, hubs, dtype, seed)
        x = np.random.default_rng(seed).standard_normal(n).astype(dtype)
        product, y = product_with(admit_matrix(to_device(A), finite=True)), backend.xp.empty(n, dtype)
        on_device = to_device(x)
        state = product.new_state()
        product.enqueue(state, on_device, y)
        found = backend.to_host(y).copy()
        bound = 4 * np.sqrt(n) * eps * (abs(A) @ abs(x))
        assert (abs(found - A @ x) <= bound).all()
        product.enqueue(state, on_device, y)  # nothing is left over from the first one, and sums have an order
        np.testing.assert_array_equal(backend.to_host(y), found)

    check()


@pytest.mark.parametrize(
    "lengths", [[50] * 300, [0, 3000, 1] * 40, [20_000], [700] * 30], ids=["50", "3000", "hub", "700"]
)
@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_products_where_neighboring_rows_have_many_entries(lengths, dtype, backend, to_device):
    """A block loads them in rounds, or each row loads its own: most rows are short."""
    n, rng = 20_000, np.random.default_rng(0)
    of_rows = np.concatenate([lengths, rng.integers(0, 4, n - len(lengths))])
    columns = np.concatenate([np.sort(rng.choice(n, length, replace=False)) for length in of_rows]).astype(np.int32)
    values = rng.uniform(-1, 1, len(columns)).astype(dtype)
    A = sp.csr_matrix((values, columns, np.concatenate([[0], np.cumsum(of_rows)])), shape=(n, n))
    x, y = rng.uniform(-1, 1, n).astype(dtype), backend.xp.empty(n, dtype)
    product = product_with(admit_matrix(to_device(A), finite=True))
    product.enqueue(product.new_state(), to_device(x), y)
    bound = 200 * np.finfo(dtype).eps * (abs(A) @ abs(x))
    assert (abs(backend.to_host(y) - A @ x) <= bound).all()


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
    cut = csr.long_rows(backend.xp.asarray(indptr), 9000, 8, backend)
    if not backend.resident_warps:
        assert cut.n_rows == cut.n_pieces == 0
        return
    plan = backend.to_host(cut.plan)
    owners, rows, firsts = np.split(plan, [cut.n_pieces, cut.n_pieces + cut.n_rows])
    assert cut.longest == 16
    np.testing.assert_array_equal(rows, [1, 3, 4, 5, 6])
    np.testing.assert_array_equal(np.diff(firsts), -(-lengths[rows] // csr.PIECE))
    np.testing.assert_array_equal(owners, np.repeat(np.arange(len(rows)), np.diff(firsts)))


def parts(M, backend):
    """L, D and U in color order, and the permutation, on the host."""
    A, perm = M.blocks.permuted(), backend.to_host(M.blocks.perm)
    A = sp.csr_array(A.get() if hasattr(A, "get") else A)
    return sp.tril(A, -1, format="csr"), sp.diags_array(A.diagonal(), format="csr"), sp.triu(A, 1, format="csr"), perm


def in_row_order(x, perm):
    result = np.empty_like(x)
    result[perm] = x
    return result


@pytest.mark.parametrize(
    ("dtype", "stored", "columns"),
    [
        (np.float64, None, 1),
        (np.float64, None, 3),
        (np.float64, np.float32, 1),
        (np.float32, None, 1),
        (np.complex128, None, 1),
    ],
)
def test_sweeps_go_through_long_rows_in_pieces(dtype, stored, columns, backend, to_device):
    @given(n=st.sampled_from([700, 1500, 5000]), hubs=st.integers(1, 4), seed=st.integers(0, 99))
    def check(n, hubs, seed):
        A = star_and_grid(n, hubs, dtype, seed)
        rng = np.random.default_rng(seed)
        r = rng.standard_normal((n, columns)).astype(dtype)
        M = MulticolorSGS(to_device(A), "jp", dtype=stored)  # all colors are swept, which "auto" does not do on a GPU
        assert M.blocks.longest_row >= n - 1
        L, D, U, perm = parts(M, backend)
        once = sla.spsolve_triangular(L + D, r[perm].astype(A.dtype), lower=True)
        expected = in_row_order(sla.spsolve_triangular(D + U, D @ once, lower=False), perm)
        found = backend.to_host(M @ to_device(r))
        tolerance = 100 * np.finfo(stored or dtype).eps
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * abs(expected).max())
        np.testing.assert_array_equal(backend.to_host(M @ to_device(r)), found)
        M.update(to_device(A))  # values go the same ways again
        np.testing.assert_array_equal(backend.to_host(M @ to_device(r)), found)

    check()


@pytest.mark.parametrize("direction", ["forward", "backward", "symmetric"])
def test_smoothing_with_long_rows(direction, backend, to_device):
    A = star_and_grid(3000, 3, np.float64, 1)
    rng = np.random.default_rng(2)
    b, x = rng.standard_normal((2, 3000))
    M = MulticolorGS(to_device(A), "jp", sweep=direction, sweeps=2)
    found = backend.to_host(M.smooth(to_device(x), to_device(b)))
    L, D, U, perm = parts(M, backend)
    z, b = x[perm], b[perm]
    for _ in range(2):
        if direction != "backward":
            z = sla.spsolve_triangular(L + D, b - U @ z, lower=True)
        if direction != "forward":
            z = sla.spsolve_triangular(D + U, b - L @ z, lower=False)
    np.testing.assert_allclose(found, in_row_order(z, perm), rtol=0, atol=1e-13 * abs(z).max())


def test_pivots_with_long_rows(backend, to_device):
    A = star_and_grid(3000, 3, np.float64, 3)
    M = MulticolorDILU(to_device(A), pivot="raise")
    L, D, U, perm = parts(M, backend)
    pivots, upper = D.diagonal().copy(), U.toarray()
    lower = L.toarray()
    for i in range(len(pivots)):
        neighbors = np.flatnonzero(lower[i, :i])
        pivots[i] -= lower[i, neighbors] @ (upper[neighbors, i] / pivots[neighbors])
    r = np.random.default_rng(0).standard_normal(3000)
    E = sp.diags_array(pivots, format="csr")
    once = sla.spsolve_triangular(L + E, r[perm], lower=True)
    expected = in_row_order(sla.spsolve_triangular(E + U, E @ once, lower=False), perm)
    np.testing.assert_allclose(backend.to_host(M @ to_device(r)), expected, rtol=0, atol=1e-12 * abs(expected).max())


@pytest.mark.parametrize("ordering", ["color", "natural"])
def test_factors_with_long_rows(ordering, backend, to_device):
    A = star_and_grid(1200, 2, np.float64, 4)
    M = ILU0(to_device(A), ordering=ordering)
    perm = backend.to_host(M.blocks.perm)
    B = A[perm][:, perm].toarray()
    stored = B != 0
    for i in range(1, len(B)):
        for k in np.flatnonzero(stored[i, :i]):
            B[i, k] /= B[k, k]
            B[i, k + 1 :] -= np.where(stored[i, k + 1 :], B[i, k] * B[k, k + 1 :], 0)
    L, U = np.tril(B, -1) + np.eye(len(B)), np.triu(B)
    r = np.random.default_rng(0).standard_normal(len(B))
    expected = in_row_order(np.linalg.solve(U, np.linalg.solve(L, r[perm])), perm)
    found = backend.to_host(M @ to_device(r))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * abs(expected).max())


def test_cut_rows_are_covered_once(backend):
    lengths, slices = np.array([5, 513, 0, 3000, 512, 7]), np.array([0, 1, 2, 3, 4, 6])
    indptr = backend.xp.asarray(np.concatenate([[0], np.cumsum(lengths)]))
    records, n_pieces = schedule.cut_long_rows(backend.xp.asarray(slices), indptr, backend.xp.zeros(7, int), backend)
    assert n_pieces == 2 + 6
    expected = [[0, 1, 0, 0], [1, -2, 0, 0], [1, -2, 1, 0], [2, 3, 0, 0]]
    expected += [[3, -6, piece, 2] for piece in range(6)] + [[4, 6, 0, 0], [6, 6, 0, 0]]
    np.testing.assert_array_equal(backend.to_host(records), expected)


@pytest.mark.parametrize("hubs", [1, 2])
def test_a_split_in_pieces_is_that_of_whole_rows(hubs):
    """What a GPU does with rows that are longer than a piece, by the functions of the CPU."""
    n, rng = 1500, np.random.default_rng(hubs)
    A = sp.lil_array((n, n))
    A.setdiag(1.0)
    for hub in range(hubs):
        A[700 + hub, rng.permutation(n)[:1300]] = 1.0
        A[700 + hub, 700 + hub] = 1.0
    A = sp.csr_array(A)
    perm = rng.permutation(n).astype(np.int32)
    inverse = np.argsort(perm).astype(np.int32)
    backend, longest = CpuBackend(), int(np.diff(A.indptr).max())
    assert longest > split.PIECE

    def found():
        *triangles, diagonal, _ = split.split((A.indptr, A.indices), perm, inverse, longest, backend)
        parts = [sp.csr_array((t.source.astype(int) + 1, t.columns, t.indptr), shape=A.shape) for t in triangles]
        return *(part.toarray() for part in parts), diagonal

    whole = found()
    backend.resident_warps = 1
    for of_pieces, of_rows in zip(found(), whole, strict=True):
        np.testing.assert_array_equal(of_pieces, of_rows)


@pytest.mark.parametrize("smoother", ["jacobi", "chebyshev", "dilu"])
def test_smoothers_and_transfers_with_long_rows(smoother, short_pieces, to_device, backend):
    """The same as with rows that nothing cuts, but for rounding."""
    A = star_and_grid(3000, 2, np.float64, 7)
    b = np.random.default_rng(0).standard_normal(3000)
    M = SmoothedAggregation(to_device(A), smoother=smoother)
    result = pcg(to_device(A), to_device(b), M=M, rtol=1e-10)
    assert len(M.levels) > 1 and result.converged
    x = sla.spsolve(sp.csc_array(A), b)
    np.testing.assert_allclose(backend.to_host(result.x), x, atol=1e-7 * abs(x).max())
