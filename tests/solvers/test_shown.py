"""How results are printed and drawn."""

import numpy as np
import pytest
from graphs import grid5

import mcprecond
from mcprecond import PCG, ColorBlocks, MulticolorSGS, gmres, pcg
from mcprecond.linalg.csr import product_with
from mcprecond.matrix import admit_matrix
from mcprecond.solvers import Reason, SolveResult
from mcprecond.solvers.result import Stage
from mcprecond.solvers.shown import iterations_of, way_of

A = grid5(30)


def test_the_package_lists_what_users_call():
    assert sorted(dir(mcprecond)) == sorted(mcprecond.__all__)
    assert all(hasattr(mcprecond, name) for name in dir(mcprecond))


def test_objects_say_what_they_are(backend, to_device):
    matrix, where = to_device(A), f"on the {backend.name}"
    for M, said in (
        (None, "no M"),
        ("auto", "M: auto"),
        ("sgs", "M: sgs"),
        (MulticolorSGS(matrix), "M: MulticolorSGS"),
    ):
        assert repr(PCG(matrix, M)) == f"<PCG of 900 x 900, {where}, {said}>"
    assert repr(PCG(matrix, "jacobi").M) == "<Diagonal of 900 x 900, float64>"
    assert repr(product_with(admit_matrix(matrix))) == "<Csr of 900 x 900, float64>"
    blocks = ColorBlocks(matrix, "greedy")
    assert repr(blocks) == f"<ColorBlocks of 900 x 900, float64, in {blocks.n_colors} colors>"


def right_sides(*shape):
    return np.random.default_rng(0).uniform(-1, 1, shape)


def lines_of(result):
    """The reason, and the text for each name."""
    why, *lines = str(result).splitlines()
    return why, dict(line.strip().split("  ", 1) for line in lines)


def test_a_printed_result_says_what_is_known(backend, to_device):
    result = pcg(to_device(A), to_device(right_sides(900)), M="auto", rtol=1e-8)
    why, lines = lines_of(result)
    assert why == result.reason.value
    assert list(lines) == ["method", "iterations", "relative residual", "energy error", "condition of M A", "time"]
    assert lines["iterations"].split()[0] == str(result.iterations)
    assert float(lines["relative residual"]) == pytest.approx(result.relative_residual, rel=0.1)
    assert f"{result.energy_error:.1e}" in lines["energy error"]


def test_a_printed_result_leaves_out_what_is_not_known(backend, to_device):
    _, lines = lines_of(gmres(to_device(A), to_device(right_sides(900)), rtol=1e-8, callback_type="x"))
    assert list(lines) == ["method", "iterations", "relative residual", "time"]


def test_columns_are_printed_with_their_largest_numbers(backend, to_device):
    b = right_sides(900, 2)
    b[:, 1] = A @ np.ones(900)
    result = pcg(to_device(A), to_device(b), rtol=1e-8)
    _, lines = lines_of(result)
    assert result.iterations.min() < result.iterations.max()
    assert lines["iterations"].strip() == f"{result.iterations.min()} to {result.iterations.max()}"
    assert f"{result.energy_error.max():.1e}" in lines["energy error"]


def test_stages_are_named():
    stages = Stage("none", 3), Stage("SGS", 4)
    result = SolveResult(np.ones(1), Reason.CONVERGED, 7, np.ones(8), 0.0, 0.0, 0.0, stages=stages, method="pcg")
    assert way_of(result) == "pcg with no preconditioner, then SGS" and iterations_of(result) == "7 (3 + 4)"


@pytest.mark.parametrize("columns", [(), (3,)])
def test_estimates_of_the_error_follow_it(backend, to_device, columns):
    exact = right_sides(900, *columns)
    result = pcg(to_device(A), to_device(A @ exact), M="sgs", rtol=1e-10)
    assert result.energy_errors.shape == result.residuals.shape
    at_start, at_end = result.energy_errors[0], np.nanmin(result.energy_errors, axis=0)
    np.testing.assert_allclose(at_start, 1, rtol=1e-6)  # the guess is zero
    np.testing.assert_allclose(at_end, result.energy_error)
    for k in range(10, 40, 10):
        x = backend.to_host(pcg(to_device(A), to_device(A @ exact), M="sgs", rtol=0, maxiter=k).x)
        error = np.sqrt(np.sum((x - exact) * (A @ (x - exact)), axis=0) / np.sum(exact * (A @ exact), axis=0))
        np.testing.assert_allclose(result.energy_errors[k], error, rtol=0.01)


@pytest.mark.parametrize("columns", [(), (2,)])
def test_a_plot_has_the_residuals_and_the_errors(backend, to_device, columns):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    result = pcg(to_device(A), to_device(right_sides(900, *columns)), M="sgs", rtol=1e-8)
    ax = result.plot()
    residuals, errors = ax.lines[0].get_ydata(), ax.lines[1].get_ydata()
    first = (slice(None), 0) if columns else slice(None)
    norm = result.norm_of_b[0] if columns else result.norm_of_b
    drawn = result.residuals[first] / norm
    np.testing.assert_allclose(residuals, drawn[~np.isnan(drawn)])
    np.testing.assert_allclose(errors, result.energy_errors[first][: len(errors)])
    assert ax.get_yscale() == "log" and len(ax.lines) == 2 * (columns[0] if columns else 1)
    assert result.plot(ax) is ax
    matplotlib.pyplot.close(ax.figure)
