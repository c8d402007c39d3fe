"""Solutions for arrays of JAX, and their derivatives beside differences and those of dense solves."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import grid5, messy, random_values, spd

import mcprecond.interop.jax
from mcprecond import ILU0, MulticolorSGS, bicgstab, gmres, pcg
from mcprecond.interop.jax import solve

jax = pytest.importorskip("jax")
jnp = jax.numpy


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def bcsr(A, values=None):
    from jax.experimental.sparse import BCSR

    return BCSR((jnp.asarray(A.data if values is None else values), A.indices, A.indptr), shape=A.shape)


def dense(A, values):
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    return jnp.zeros(A.shape, values.dtype).at[rows, A.indices].set(values)


def right_hand_sides(A, count, seed=1):
    shape = A.shape[:1] if count is None else (A.shape[0], count)
    numbers = random_values(np.random.default_rng(seed), int(np.prod(shape)))
    return jnp.asarray(numbers.reshape(shape).astype(A.dtype))


def example(solver, dtype=np.float64):
    """A matrix that the solver is for, with an unsymmetric pattern if that need not be symmetric."""
    if solver is pcg:
        return spd(grid5(3), dtype=dtype)
    A = sp.csr_matrix(messy() + sp.diags_array(np.arange(10.0, 15.0)))
    A.sum_duplicates()
    return A.astype(dtype)


@pytest.mark.parametrize(
    ("solver", "M", "dtype"),
    [
        (pcg, MulticolorSGS, np.float32),
        (pcg, MulticolorSGS, np.float64),
        (pcg, "auto", np.float64),
        (gmres, ILU0, np.float64),
        (bicgstab, None, np.float64),
    ],
)
@pytest.mark.parametrize("count", [None, 2])
def test_gradients_beside_those_of_a_dense_solve(solver, M, dtype, count):
    A = example(solver, dtype)
    b, weights = right_hand_sides(A, count), right_hand_sides(A, count, seed=2)

    def ours(values, b):
        return (solve(bcsr(A, values), b, M, solver=solver) * weights).sum()

    def theirs(values, b):
        return (jnp.linalg.solve(dense(A, values), b) * weights).sum()

    tolerance = 1e-3 if dtype == np.float32 else 1e-8
    found, expected = (jax.jit(jax.value_and_grad(f, (0, 1)))(jnp.asarray(A.data), b) for f in (ours, theirs))
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert one.dtype == dtype
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("solver", "M"), [(pcg, MulticolorSGS), (gmres, ILU0)])
def test_second_derivatives_beside_differences(solver, M):
    """In both modes, with respect to scales of the unknowns, so that a symmetric A stays symmetric."""
    from jax.test_util import check_grads

    A = example(solver)
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))

    def solution(scales, b):
        return solve(bcsr(A, A.data * scales[rows] * scales[A.indices]), b, M, solver=solver, rtol=1e-12)

    check_grads(solution, (jnp.linspace(1, 2, A.shape[0]), right_hand_sides(A, None)), order=2)


def test_batches_by_vmap_are_columns():
    A = example(pcg)
    b, M = right_hand_sides(A, 3), MulticolorSGS(A)
    rows = jax.vmap(lambda row: solve(bcsr(A), row, M))(b.T)
    np.testing.assert_allclose(rows.T, solve(bcsr(A), b, M), rtol=1e-8)
    np.testing.assert_allclose(A @ np.asarray(rows).T, b, rtol=1e-8)


def test_a_solution_that_is_none_is_an_error():
    A = grid5(20)
    with pytest.raises(Exception, match=r"the solve did not reach rtol: .*not converged within maxiter"):
        solve(bcsr(A), right_hand_sides(A, None), maxiter=1).block_until_ready()


def test_wrong_arguments_are_named():
    A, b = bcsr(grid5(3)), jnp.ones(9)
    for wrong, error, named in (
        ((grid5(3), b), TypeError, "A must be a square matrix of jax.experimental.sparse.BCSR, got .*csr_matrix"),
        ((bcsr(grid5(3).astype(complex)), b), TypeError, "A must hold float32 or float64 values, got complex128"),
        ((A, b.astype(np.float32)), TypeError, "b holds float32 and A float64; convert one of them"),
        ((A, jnp.ones(4)), ValueError, r"b must have shape \(9,\) or \(9, k\) with k columns at least 1, got \(4,\)"),
    ):
        with pytest.raises(error, match=named):
            solve(*wrong)
    with pytest.raises(
        TypeError, match="solver must be pcg, minres, gmres, bicgstab or a function like these, got 'cg'"
    ):
        solve(A, b, solver="cg")


def test_the_example_of_the_docstring():
    with jax.enable_x64(False):  # as it is by default
        results = doctest.testmod(mcprecond.interop.jax)
    assert results.attempted > 5 and results.failed == 0
