"""Matrices behind the door: transposes, formats, and patterns of A + Aᵀ."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import patterns
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcprecond import MulticolorSGS, pcg, problems
from mcprecond.backends import get_backend
from mcprecond.matrix import admit_matrix, csr_form, transpose

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


def cupy_array_class():
    """CuPy's sparse arrays, beside its matrices; CuPy 14.2 was the first to have them."""
    sparse = pytest.importorskip("cupyx.scipy.sparse")
    if not hasattr(sparse, "csr_array"):
        pytest.skip("this CuPy has no sparse arrays")
    return sparse.csr_array


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_an_array_of_cupy_is_taken_as_it_is(index, monkeypatch):
    """Without a device its parts are NumPy's."""
    monkeypatch.setattr("mcprecond.backends.gpu_problem", lambda: None)
    A = object.__new__(cupy_array_class())
    A.data, A._shape = np.array([2.0, -1.0, 2.0]), (2, 2)
    A.indices, A.indptr = np.array([0, 0, 1], index), np.array([0, 1, 3], index)
    found, backend = csr_form(A, floats=True)
    assert found is A and backend.name == "gpu"
    A._shape = (2, 3)
    with pytest.raises(ValueError, match=r"A must be square, got shape \(2, 3\)"):
        csr_form(A)


@pytest.mark.gpu
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_an_array_of_cupy_is_solved_as_its_matrix(index):
    csr_array, backend = cupy_array_class(), get_backend("gpu")
    matrix = problems.laplacian((20, 21), device="gpu")
    array = csr_array((matrix.data, matrix.indices.astype(index), matrix.indptr.astype(index)), shape=matrix.shape)
    b = backend.xp.ones(matrix.shape[0])
    expected, found = (pcg(A, b, M=MulticolorSGS(A)) for A in (matrix, array))
    assert found.converged and found.iterations == expected.iterations
    np.testing.assert_array_equal(backend.to_host(found.x), backend.to_host(expected.x))
