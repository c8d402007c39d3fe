"""Smoothing: Gauss-Seidel and SOR from a given x, one row after the other in the order of the colors."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import grid5, spd, stencil27
from reference.gauss_seidel import swept

from mcprecond import MulticolorGS, smooth


@pytest.mark.parametrize("omega", [1.0, 0.7, 1.5])
@pytest.mark.parametrize("sweep", ["forward", "backward", "symmetric"])
def test_is_sor_in_the_order_of_the_colors(sweep, omega, backend, to_device):
    A = spd(stencil27(5))
    rng = np.random.default_rng(0)
    x, b = rng.uniform(size=125), rng.uniform(size=125)
    M = MulticolorGS(to_device(A), "ecl_gc", sweep=sweep, omega=omega, sweeps=2)
    perm, expected = backend.to_host(M.blocks.perm), x
    for _ in range(2):
        for rows in {"forward": [perm], "backward": [perm[::-1]], "symmetric": [perm, perm[::-1]]}[sweep]:
            expected = swept(A.toarray(), expected, b, rows, omega)
    on_device = to_device(x.copy())
    result = M.smooth(on_device, to_device(b))
    np.testing.assert_allclose(backend.to_host(result), expected, atol=1e-14)
    np.testing.assert_array_equal(backend.to_host(on_device), x)
    other = smooth(to_device(A), on_device, to_device(b), 2, coloring="ecl_gc", sweep=sweep, omega=omega)
    np.testing.assert_array_equal(backend.to_host(other), backend.to_host(result))


@pytest.mark.parametrize("sweep", ["forward", "backward", "symmetric"])
def test_from_zero_it_is_the_preconditioner(sweep, backend, to_device):
    A = to_device(spd(grid5(12)))
    b = to_device(np.random.default_rng(0).uniform(size=144))
    M = MulticolorGS(A, sweep=sweep, omega=1.2)
    for _ in range(2):  # the one must not disturb the other
        np.testing.assert_allclose(backend.to_host(M.smooth(0 * b, b)), backend.to_host(M @ b), atol=1e-14)


@pytest.mark.parametrize("block_size", [1, 3])
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("from_zero", [False, True])
def test_one_object_sweeps_both_ways_in_place(from_zero, columns, block_size, backend, to_device):
    """As often as a captured graph is replayed, too; and an application in between is what it was."""
    A = spd(stencil27(4))[:60, :60]
    rng = np.random.default_rng(1)
    x, b = rng.uniform(size=(60, columns)), rng.uniform(size=(60, columns))
    M = MulticolorGS(to_device(A), "jpl", omega=1.1, block_size=block_size)
    applied = backend.to_host(M @ to_device(b))
    for direction in ("forward", "backward", "symmetric"):
        expected = 0 * x if from_zero else x
        expected = np.stack(
            [
                backend.to_host(
                    smooth(
                        to_device(A),
                        *map(to_device, pair),
                        coloring=M.coloring,
                        sweep=direction,
                        omega=1.1,
                        block_size=block_size,
                    )
                )
                for pair in zip(expected.T.copy(), b.T.copy(), strict=True)
            ],
            axis=1,
        )
        on_device, right = to_device(x.copy()), to_device(b)
        M.enqueue_sweep(on_device, right, direction, from_zero=from_zero)
        np.testing.assert_allclose(backend.to_host(on_device), expected, atol=1e-14)
        again = backend.repeatable(lambda: M.enqueue_sweep(on_device, right, direction, from_zero=from_zero))  # noqa: B023
        on_device[...] = to_device(x)
        again()
        np.testing.assert_allclose(backend.to_host(on_device), expected, atol=1e-14)
        np.testing.assert_array_equal(backend.to_host(M @ right), applied)


def test_the_solution_stays(backend, to_device):
    A = spd(grid5(10))
    x = np.random.default_rng(0).uniform(size=100)
    np.testing.assert_allclose(backend.to_host(smooth(to_device(A), to_device(x), to_device(A @ x))), x, atol=1e-14)


def test_bad_vectors(to_device):
    M = MulticolorGS(to_device(grid5(4)))
    with pytest.raises(ValueError, match=r"x must have shape \(16,\)"):
        M.smooth(to_device(np.ones(15)), to_device(np.ones(16)))
    with pytest.raises(ValueError, match="b holds nan in row 0"):
        M.smooth(to_device(np.ones(16)), to_device(np.full(16, np.nan)))
    with pytest.raises(ValueError, match="sweeps must be at least 1, got 0"):
        smooth(to_device(grid5(4)), to_device(np.ones(16)), to_device(np.ones(16)), 0)


@pytest.mark.parametrize("sweeps", [1, 2, 3])
@pytest.mark.parametrize("sweep", ["forward", "backward", "symmetric"])
def test_smoothing_leaves_applications_alone(sweep, sweeps, backend, to_device):
    """Both work in the same arrays, each from where it finds them."""
    A, r = to_device(spd(stencil27(5))), to_device(np.random.default_rng(0).uniform(size=125))
    M = MulticolorGS(A, "ecl_gc", sweep=sweep, sweeps=sweeps)
    smoothed, applied = backend.to_host(M.smooth(r, r)), backend.to_host(M @ r)
    for _ in range(2):
        np.testing.assert_array_equal(backend.to_host(M.smooth(r, r)), smoothed)
        for _ in range(2):
            np.testing.assert_array_equal(backend.to_host(M @ r), applied)
