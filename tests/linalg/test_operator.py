"""Whatever is applied speaks one protocol: shape, dtype, new_state(columns), enqueue(state, x, y)."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import grid5, spd
from hypothesis import given
from hypothesis import strategies as st

from mcprecond import ILU0, MulticolorDILU, MulticolorGS, MulticolorSGS, SmoothedAggregation
from mcprecond.linalg.csr import product_with
from mcprecond.linalg.dense import PANEL, Dense, invert_definite
from mcprecond.linalg.operator import Operator, operator_for
from mcprecond.matrix import admit_matrix
from mcprecond.multigrid.named_smoothers import SMOOTHERS, new_smoother

PRECONDITIONERS = {
    "sgs": MulticolorSGS,
    "two sweeps": lambda A: MulticolorSGS(A, sweeps=2),
    "backward": lambda A: MulticolorGS(A, sweep="backward", omega=1.2),
    "nodes": lambda A: MulticolorSGS(A, block_size=2),
    "dilu": MulticolorDILU,
    "ilu": ILU0,
    "multigrid": lambda A: SmoothedAggregation(A, max_coarse=20),
    "w cycle": lambda A: SmoothedAggregation(A, max_coarse=20, cycle="W", smoother="chebyshev"),
}


def operators(A, backend):
    """Each with the matrix that it is, as a function of a vector."""
    matrix = admit_matrix(A, finite=True).canonical()
    yield product_with(matrix), lambda x: A @ x
    dense = Dense(A, backend)
    yield dense, lambda x: dense.matrix @ x
    for build in PRECONDITIONERS.values():
        M = build(A)
        yield M, lambda x, M=M: M @ x
    for name in SMOOTHERS:
        smoother = new_smoother(name, matrix, "jp", 1)
        x, r = backend.xp.empty(A.shape[0], A.dtype), backend.xp.empty(A.shape[0], A.dtype)

        def one_sweep(b, smoother=smoother, x=x, r=r):
            smoother.before(smoother.new_state(), b, x, r, 1)
            return x.copy()

        yield smoother, one_sweep


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_all_operators_are_applied_alike(dtype, backend, to_device):
    A = to_device(spd(grid5(8), dtype=dtype))
    rng = np.random.default_rng(0)
    x, other = (to_device(rng.standard_normal(64).astype(dtype)) for _ in range(2))
    y, z = backend.xp.empty_like(x), backend.xp.empty_like(x)
    for operator, applied in operators(A, backend):
        assert isinstance(operator, Operator) and operator.shape == (64, 64) and operator.dtype == np.dtype(dtype)
        assert operator.captures and operator.linear
        expected = backend.to_host(applied(x))
        state, another = operator.new_state(), operator.new_state()
        operator.enqueue(state, x, y)
        operator.enqueue(another, other, z)  # disturbs neither the first result nor what follows
        eps = 200 * np.finfo(np.dtype(dtype)).eps * abs(expected).max()
        np.testing.assert_allclose(backend.to_host(y), expected, rtol=0, atol=eps)
        operator.enqueue(state, x, z)
        np.testing.assert_array_equal(backend.to_host(z), backend.to_host(y))


@pytest.mark.parametrize("name", PRECONDITIONERS)
def test_several_columns_take_one_state(name, backend, to_device):
    M = PRECONDITIONERS[name](to_device(spd(grid5(8))))
    X = to_device(np.ascontiguousarray(np.random.default_rng(0).standard_normal((64, 2))))
    Y = backend.xp.empty_like(X)
    with M.lend_state(2) as state:
        M.enqueue(state, X, Y)
    np.testing.assert_array_equal(backend.to_host(Y), backend.to_host(M @ X))


@pytest.mark.parametrize(
    ("own", "of_vectors"), [("float32", "float64"), ("float64", "complex128"), ("float32", "complex128")]
)
def test_operators_on_vectors_of_other_dtypes(own, of_vectors, backend, to_device):
    """In copies, and the parts of complex vectors as two columns; an operator of others is called."""
    A, rng = spd(grid5(8)), np.random.default_rng(0)
    x = rng.standard_normal(64).astype(of_vectors)
    if np.dtype(of_vectors).kind == "c":
        x += 1j * rng.standard_normal(64)
    x, M = to_device(x), MulticolorSGS(to_device(A.astype(own)))
    expected, y = backend.to_host(M @ x), backend.xp.empty_like(x)
    foreign = backend.linalg.aslinearoperator(to_device(A))
    for passed, result in ((M, expected), (foreign, backend.to_host(foreign @ x))):
        operator = operator_for(passed, np.dtype(of_vectors), backend)
        assert operator.shape == (64, 64) and operator.dtype == np.dtype(of_vectors)
        assert operator.captures == (passed is M)
        with operator.lend_state() as state:
            operator.enqueue(state, x, y)
        np.testing.assert_allclose(backend.to_host(y), result, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@given(n=st.integers(1, 3 * PANEL), seed=st.integers(0, 99))
def test_a_definite_matrix_is_inverted_by_panels(n, seed, dtype):
    """Only the lower triangle is read; and a pivot that is too small ends it."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if dtype is np.complex128 else 0)
    A = X @ X.conj().T / n + np.eye(n)
    inverse = np.tril(A).astype(dtype)
    assert invert_definite(inverse, 0.0)
    np.testing.assert_allclose(inverse @ A, np.eye(n), atol=1e-11 * n)
    np.testing.assert_array_equal(inverse, inverse.conj().T)
    assert not invert_definite(A - np.linalg.eigvalsh(A)[0] * 1.5 * np.eye(n), 1e-12)
