"""What one reading of A tells multigrid, beside the formulas on a dense matrix; on both devices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import DTYPES, grid5, patterns, spd, star
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mcprecond.linalg.hermitian import is_hermitian
from mcprecond.multigrid.examination import STIFF, Findings, examine
from mcprecond.multigrid.row_sums import bounded_inverse_diagonal
from mcprecond.multigrid.splitting import THETA
from mcprecond.multigrid.strength import SHARE_OF_AVERAGE
from mcprecond.multigrid.units import MOST_EVEN, SMALL_SUM
from mcprecond.preconditioners.setup import admit


def admitted(A, to_device):
    return admit(to_device(A), finite=True)[0].canonical()


def expected_features(A):
    """The features of a sparse matrix, whose stored zeros are entries, by its dense form."""
    n, dense = A.shape[0], A.toarray()
    stored, diagonal = (
        sp.csr_matrix((np.ones(A.nnz), A.indices, A.indptr), A.shape).toarray() > 0,
        dense.diagonal().real,
    )
    beside, neighbors = stored & ~np.eye(n, dtype=bool), stored.sum(axis=1) - stored.diagonal()
    roots = np.ones(n) if diagonal.max() <= MOST_EVEN * diagonal.min() else 1 / np.sqrt(diagonal)
    sizes = np.sqrt(diagonal / np.maximum(neighbors, 1))
    is_strong = abs(dense) >= SHARE_OF_AVERAGE * np.outer(sizes, sizes)
    negative = np.where(beside, np.maximum(-dense.real, 0), 0)
    positive = np.where(beside, np.maximum(dense.real, 0), 0).sum(axis=1)
    is_dominated = dense.real.sum(axis=1) >= SMALL_SUM * diagonal
    of_row = (negative > 0) & (negative >= THETA * negative.max(axis=1, keepdims=True))
    connects = (is_strong & (negative > 0)).any(axis=1)
    return Findings(
        one_sided=(of_row & ~is_strong)[~is_dominated].sum() / max(A.nnz - n, 1),
        lonely=((neighbors > 0) & ~connects & ~is_dominated).mean(),
        stiff=(positive > STIFF * diagonal).mean(),
        of_ones=(abs(dense.sum(axis=1)) <= SMALL_SUM * diagonal).mean(),
        of_roots=(abs(dense @ roots) <= SMALL_SUM * diagonal * roots).mean(),
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pattern=patterns(),
    dtype=st.sampled_from(DTYPES),
    seed=st.integers(0, 99),
    size=st.sampled_from([0.0, 1e-14, 1e-6, 0.1]),
    decades=st.integers(0, 4),
)
@example(pattern=grid5(9), dtype=np.float64, seed=0, size=0.1, decades=2)
@example(pattern=star(300), dtype=np.complex128, seed=1, size=0.0, decades=0)
def test_findings_are_those_of_the_formulas(to_device, backend, pattern, dtype, seed, size, decades):
    rng, A = np.random.default_rng(seed), spd(pattern, seed, dtype)
    scales = 10 ** rng.uniform(-decades / 2, decades / 2, A.shape[0])
    A = sp.csr_matrix(sp.diags_array(scales) @ A @ sp.diags_array(scales)).astype(dtype)
    # So that some rows sum to about zero.
    diagonal = np.asarray(abs(A).sum(axis=1)).ravel() - abs(A.diagonal())
    A.setdiag(np.where((rng.random(A.shape[0]) < 0.5) & (diagonal > 0), diagonal, A.diagonal()).astype(dtype))
    k = rng.integers(A.nnz)
    row, column = np.searchsorted(A.indptr, k, side="right") - 1, A.indices[k]
    sizes = np.sqrt(A.diagonal().real)
    if row != column:
        A.data[k] += dtype(size * sizes[row] * sizes[column])
    matrix, dense = admitted(A, to_device), A.toarray()
    rest = abs(dense - dense.conj().T)
    differs = rest > np.sqrt(np.finfo(dtype).eps) * np.outer(sizes, sizes)
    assert matrix.is_hermitian == (not rest.any())
    assert is_hermitian(matrix) == (not differs.any())
    assert examine(matrix) == pytest.approx(expected_features(A))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pattern=patterns(), dtype=st.sampled_from(DTYPES), seed=st.integers(0, 99), share=st.floats(0.01, 3))
def test_weights_of_damped_jacobi_are_bounded_by_row_sums(to_device, backend, pattern, dtype, seed, share):
    A = spd(pattern, seed, dtype)
    A.setdiag((share * A.diagonal()).astype(dtype))
    found = backend.to_host(bounded_inverse_diagonal(admitted(A, to_device)))
    own, most = 1 / A.diagonal(), 2 / np.asarray(abs(A).sum(axis=1)).ravel()
    np.testing.assert_allclose(found, np.where(abs(own) <= most, own, most), rtol=1e-5)
