"""The part of a V cycle that is one kernel on a GPU, against the same steps in kernels of their own."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks.flows import advection
from mcprecond import ClassicalAMG, SmoothedAggregation, pcg, problems
from mcprecond.multigrid import small_levels
from mcprecond.multigrid.hierarchy import Multigrid


@contextmanager
def step_by_step():
    """Without the kernel, in states that are made now."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_levels, "MOST_ROWS", -1)
        yield


def compare(M: Multigrid, backend, *, levels: int = 2):
    """The same bits with the kernel, where there is a GPU, as without it. At least so many levels are in it."""
    rng = np.random.default_rng(0)
    r = rng.standard_normal(M.shape[0]) + (1j * rng.standard_normal(M.shape[0]) if M.dtype.kind == "c" else 0)
    r = backend.xp.asarray(r.astype(M.dtype))
    with step_by_step():
        state = M.new_state()
        assert all(space.small is None for space in state)
    M.enqueue(state, r, expected := backend.xp.empty_like(r))
    state = M.new_state()
    inside = [len(state) - number for number, space in enumerate(state) if space.small is not None]
    assert len(inside) == 1 and inside[0] >= levels if backend.resident_warps else not inside
    for _ in range(2):  # counters of barriers are used again
        M.enqueue(state, r, found := backend.xp.empty_like(r))
        np.testing.assert_array_equal(backend.to_host(found), backend.to_host(expected))


def with_absorption(A):
    """A complex Hermitian positive definite matrix with the pattern of A."""
    phases = sp.diags_array(np.exp(1j * np.random.default_rng(3).uniform(0, 6, A.shape[0])))
    return sp.csr_matrix(phases @ A @ phases.conj())


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_smoothed_aggregation(dtype, to_device, backend):
    A = problems.laplacian((50, 50))
    A = with_absorption(A) if dtype.startswith("c") else A
    M = SmoothedAggregation(to_device(A.astype(dtype)), max_coarse=20)
    compare(M, backend)
    M.update(to_device((3 * A).astype(dtype)))
    compare(M, backend)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_one_precision_for_all_levels(dtype, to_device, backend):
    compare(SmoothedAggregation(to_device(problems.laplacian((12, 12, 12))), dtype=dtype, max_coarse=20), backend)


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
@pytest.mark.parametrize("sweeps", [(1, 1), (2, 1), (1, 3)])
def test_not_symmetric(sweeps, dtype, to_device, backend):
    """And the adjoint, with the numbers of sweeps exchanged."""
    A = advection(40, 1e-3, "vortex").astype(dtype)
    presweeps, postsweeps = sweeps
    M = ClassicalAMG(to_device(A), presweeps=presweeps, postsweeps=postsweeps, max_coarse=20)
    compare(M, backend)
    compare(M.H, backend)
    M.update(to_device(2 * A))
    with M.H.workspace():  # which follows the update
        compare(M.H, backend)


def test_several_steps_of_classical(to_device, backend):
    M = ClassicalAMG(to_device(problems.laplacian((40, 40))), presweeps=3, postsweeps=3, max_coarse=20)
    compare(M, backend)


def test_a_smoother_on_the_coarsest_level(to_device, backend):
    M = SmoothedAggregation(to_device(problems.laplacian((40, 40))), max_coarse=0, max_levels=3)
    compare(M, backend, levels=2)


@pytest.mark.parametrize("cycle", ["W", "K"])
def test_other_cycles_from_the_last_second_correction_on(cycle, to_device, backend):
    M = SmoothedAggregation(to_device(problems.laplacian((60, 60))), max_coarse=5, cycle=cycle)
    compare(M, backend)


@pytest.mark.parametrize("smoother", ["sgs", "jacobi"])
def test_smoothers_that_have_kernels_of_their_own(smoother, to_device):
    M = SmoothedAggregation(to_device(problems.laplacian((30, 30))), smoother=smoother)
    assert all(space.small is None for space in M.new_state())


def test_long_rows_stay_outside(to_device, backend):
    """Many warps share the rows of a hub, so that a level with one has kernels of its own."""
    grid = problems.laplacian((60, 60)).tolil()
    grid[0, 1:3000] = grid[1:3000, 0] = -1e-3
    grid[0, 0] = 10
    state = SmoothedAggregation(to_device(grid.tocsr())).new_state()
    assert len(state) > 1 and state[0].small is None


def test_a_solve(to_device, backend):
    """In a captured loop, with the bits of a solve by steps."""
    A = problems.laplacian((60, 60))
    b = to_device(np.ones(A.shape[0]))
    results = []
    for options in ({}, {"rows": -1}):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(small_levels, "MOST_ROWS", options.get("rows", small_levels.MOST_ROWS))
            M = SmoothedAggregation(to_device(A), max_coarse=20)
            results.append(pcg(to_device(A), b, M=M, rtol=1e-10))
    found, expected = results
    assert found.converged and found.iterations == expected.iterations
    np.testing.assert_array_equal(backend.to_host(found.x), backend.to_host(expected.x))
