"""Matrices behind the door: transposes, formats, and patterns of A + Aᵀ."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import patterns
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcprecond.matrix import admit_matrix, transpose

SMALL = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def to_scipy(csr, backend):
    """A CSR matrix of either library, whose arrays are checked."""
    data, indices, indptr = map(backend.to_host, (csr.data, csr.indices, csr.indptr))
    found = sp.csr_array((data, indices, indptr), shape=csr.shape)
    found.check_format()
    return found


@SMALL
@given(
    rows=st.integers(1, 70),
    columns=st.integers(1, 70),
    density=st.sampled_from([0.0, 0.02, 0.2]),
    seed=st.integers(0, 2**32 - 1),
)
def test_transposes(rows, columns, density, seed, backend, to_device):
    A = sp.random_array((rows, columns), density=density, rng=seed, format="csr")
    A.data[:] = np.arange(1, A.nnz + 1)
    found = to_scipy(transpose(to_device(sp.csr_matrix(A)), backend), backend)
    assert found.has_sorted_indices
    np.testing.assert_array_equal(found.toarray(), A.toarray().T)


@SMALL
@given(A=patterns())
def test_the_pattern_of_both_directions(A, backend, to_device):
    united = to_scipy(admit_matrix(to_device(A)).symmetrize().csr, backend)
    assert united.has_canonical_format
    np.testing.assert_array_equal(united.toarray() != 0, (A + A.T).toarray() != 0)


@pytest.mark.parametrize("spare", [0, 3])
@SMALL
@given(A=patterns())
def test_matrices_by_columns(A, spare, backend, to_device):
    """Arrays may be longer than the last offset says."""
    csc = sp.csc_matrix(A)
    data, indices = np.append(csc.data, np.ones(spare)), np.append(csc.indices, np.zeros(spare, np.int32))
    by_columns = backend.sparse.csc_matrix(A.shape)
    by_columns.data, by_columns.indices, by_columns.indptr = map(to_device, (data, indices, csc.indptr))
    found = admit_matrix(by_columns).canonical().csr
    np.testing.assert_array_equal(to_scipy(found, backend).toarray(), A.toarray())


@SMALL
@given(A=patterns(), seed=st.integers(0, 9), kind=st.sampled_from(["f", "d", "F", "D"]))
def test_the_extremes_of_values(A, seed, kind, backend, to_device):
    """The least and the largest magnitude of the values that are not zero, of complex ones that of the larger part."""
    random = np.random.default_rng(seed)
    values = 10.0 ** random.uniform(-30, 30, A.nnz) * random.choice([-1, 0, 1], A.nnz)
    if kind in "FD":
        values = values + 1j * values[::-1]
    A = sp.csr_matrix((values.astype(kind), A.indices, A.indptr), shape=A.shape)
    matrix = admit_matrix(to_device(A), finite=True)
    sizes = np.maximum(abs(A.data.real), abs(A.data.imag)).astype(float)
    assert matrix.largest == sizes.max(initial=0)
    assert matrix.least == sizes[sizes > 0].min(initial=np.inf)
