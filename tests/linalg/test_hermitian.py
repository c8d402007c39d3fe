"""Whether a matrix is Hermitian up to rounding."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcprecond.linalg.hermitian import first_unsymmetric, is_hermitian
from mcprecond.matrix import admit_matrix

DTYPES = ["float32", "float64", "complex64", "complex128"]


def random_hermitian(n: int, dtype: str, seed: int, decades: float, hub: bool) -> sp.csr_array:
    """With a few zeros on the diagonal, units of unknowns that differ by some decades, and perhaps a full row."""
    rng = np.random.default_rng(seed)
    A = sp.random_array((n, n), density=0.2, rng=rng).toarray()
    if hub:
        A[n // 2] = rng.uniform(0.5, 1, n)
    if np.dtype(dtype).kind == "c":
        A = A * np.exp(1j * rng.uniform(0, 6, (n, n)))
    A = A + A.conj().T
    np.fill_diagonal(A, rng.integers(0, 5, n))
    units = 10 ** rng.uniform(-decades / 2, decades / 2, n)
    upper = np.triu(units[:, None] * A * units).astype(dtype)
    return sp.csr_array(upper + np.triu(upper, 1).conj().T)


@pytest.mark.parametrize("dtype", DTYPES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(n=st.integers(1, 50), seed=st.integers(0, 10**6), decades=st.floats(0, 6), hub=st.booleans())
def test_a_change_of_one_entry_is_found(dtype, n, seed, decades, hub, to_device):
    A = random_hermitian(n, dtype, seed, decades, hub)
    assert is_hermitian(admit_matrix(to_device(A)))
    rng = np.random.default_rng(seed)
    places = np.flatnonzero(A.tocoo().row != A.indices)
    if not len(places):
        return
    k = rng.choice(places)
    row, column = int(A.tocoo().row[k]), int(A.indices[k])
    scales = np.sqrt(np.where(A.diagonal() != 0, abs(A.diagonal()), abs(A.data).max()).astype(float))
    size, eps = scales[row] * scales[column], np.sqrt(np.finfo(dtype).eps)
    rounded = A.copy()
    rounded.data[k] += 0.1 * eps * size
    assert is_hermitian(admit_matrix(to_device(rounded)))
    A.data[k] += 10 * eps * max(size, abs(A.data[k]))
    found = first_unsymmetric(admit_matrix(to_device(A)))
    assert found == min((row, column), (column, row))


def test_an_entry_without_one_across_differs(to_device):
    A = sp.csr_array(np.array([[1.0, 0, 0], [0, 2, 0], [0.5, 0, 1]]))
    assert first_unsymmetric(admit_matrix(to_device(A))) == (2, 0)
    A[2, 0] = 0.0
    assert is_hermitian(admit_matrix(to_device(A)))


def test_an_empty_matrix_is_hermitian(to_device):
    assert is_hermitian(admit_matrix(to_device(sp.csr_array((3, 3)))))
