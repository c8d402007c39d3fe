"""Solves that end by the energy norm of the error or by the preconditioned norm, and what results say of the error."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference.definite import Exact, draw

from mcprecond import PCG, MulticolorSGS, bicgstab, gmres, pcg, problems, solve
from mcprecond.matrix import admit_matrix
from mcprecond.solvers.backward import least_energy
from mcprecond.solvers.correction import verify
from mcprecond.solvers.energy import Coefficients
from mcprecond.solvers.result import Reason

NAMES = (None, "jacobi", "sgs", "ilu0", "multigrid", "auto")


def walker(side, decades, seed):
    """The Laplacian of a grid whose unknowns form tiles, with weights down to 10^-decades across these; one corner is
    fixed.
    """
    random, n = np.random.default_rng(seed), side * side
    index = np.arange(n).reshape(side, side)
    pairs = np.concatenate(
        [
            np.stack([index[:-1].ravel(), index[1:].ravel()], 1),
            np.stack([index[:, :-1].ravel(), index[:, 1:].ravel()], 1),
        ]
    )
    tiles = np.add.outer(np.arange(side) // 6 * side, np.arange(side) // 6).ravel()[pairs]
    weak, strong = 10.0 ** -random.uniform(decades / 2, decades, len(pairs)), random.uniform(0.5, 1, len(pairs))
    weights = np.where(tiles[:, 0] != tiles[:, 1], weak, strong)
    graph = sp.coo_matrix((weights, (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    graph = graph + graph.T
    L = sp.csr_matrix(sp.diags(np.asarray(graph.sum(axis=1)).ravel()) - graph)
    return sp.csr_matrix(L[1:, 1:])


def solution(A, b):
    """The solution by a dense direct solver, refined with extended precision."""
    dense = A.toarray()
    scale = 1 / np.sqrt(dense.diagonal().real)
    scaled, wide = scale[:, None] * dense * scale, dense.astype(np.longdouble)
    x = (scale * np.linalg.solve(scaled, scale * b)).astype(np.longdouble)
    for _ in range(4):
        x = x + scale * np.linalg.solve(scaled, scale * np.asarray(b - wide @ x, float))
    return x


def energy_error(A, x, exact):
    """The energy norm of the error, relative to that of the solution."""
    wide = A.toarray().astype(np.longdouble)
    return float(np.sqrt((x - exact) @ (wide @ (x - exact)) / (exact @ (wide @ exact))))


@pytest.fixture(scope="module")
def poisson():
    A = problems.laplacian((40, 40))
    b = np.random.default_rng(0).standard_normal(1600)
    return A, b, solution(A, b)


def place(backend, *arrays):
    """Arrays and sparse matrices on a device."""
    return [backend.sparse.csr_matrix(v) if sp.issparse(v) else backend.xp.asarray(v) for v in arrays]


@pytest.mark.parametrize("has_guess", [False, True])
@pytest.mark.parametrize("M", NAMES)
def test_energy_norm_ends_where_the_error_is_small(backend, poisson, M, has_guess):
    A, b, exact = poisson
    guess = np.asarray(exact, float) + 0.01 * np.random.default_rng(1).standard_normal(1600) if has_guess else None
    own_A, own_b = place(backend, A, b)
    x0 = None if guess is None else backend.xp.asarray(guess)
    for rtol in (1e-3, 1e-7):
        result = pcg(own_A, own_b, x0, M=M, rtol=rtol, norm="energy")
        error = energy_error(A, backend.to_host(result.x), exact)
        assert result.reason is Reason.CONVERGED and error <= rtol
        assert result.energy_error == pytest.approx(error, rel=0.1)
        assert 0 < result.energy_delay < result.iterations and result.error_iterations > 0
        assert "that told the error" in str(result)


@pytest.mark.parametrize("form", ["plain", "eisenstat"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_all_forms_end_alike(backend, poisson, form, dtype):
    A, b, exact = poisson
    own_A, own_b = place(backend, A, b)
    M = MulticolorSGS(own_A, "greedy", dtype=dtype)
    result = pcg(own_A, own_b, M=M, rtol=1e-8, norm="energy", form=form)
    assert result.converged and energy_error(A, backend.to_host(result.x), exact) <= 1e-8
    usual = pcg(own_A, own_b, M=MulticolorSGS(own_A, "greedy"), rtol=1e-8, norm="energy")
    assert abs(result.iterations - usual.iterations) <= 15  # after drift, single precision begins anew


def test_columns_end_alone(backend, poisson):
    A, b, exact = poisson
    columns = np.stack([b, np.zeros(1600), A @ np.ones(1600)], axis=1)
    own_A, own_b = place(backend, A, columns)
    together = pcg(own_A, own_b, M="sgs", rtol=1e-6, norm="energy", form="plain")
    for column in (0, 2):
        alone = pcg(own_A, own_b[:, column].copy(), M="sgs", rtol=1e-6, norm="energy", form="plain")
        assert abs(together.iterations[column] - alone.iterations) <= 1
        assert together.energy_error[column] == pytest.approx(alone.energy_error, rel=0.5)
        assert abs(together.error_iterations[column] - alone.error_iterations) <= 1
    assert together.iterations[1] == together.error_iterations[1] == 0
    assert energy_error(A, backend.to_host(together.x)[:, 0], exact) <= 1e-6
    assert together.backward_error.shape == together.componentwise_backward_error().shape == (3,)


@pytest.mark.parametrize("M", [None, "jacobi", "sgs", "multigrid"])
def test_preconditioned_norm(backend, poisson, M):
    A, b, _ = poisson
    own_A, own_b = place(backend, A, b)
    solver = PCG(own_A, M, norm="preconditioned")
    result = solver.solve(own_b, rtol=1e-6)
    apply = (lambda v: v) if solver.M is None else (lambda v: solver.M @ v)
    square = [float((v * apply(v)).sum()) for v in (own_b - own_A @ result.x, own_b)]
    assert result.converged and 1e-8 < np.sqrt(square[0] / square[1]) <= 1.01e-6


@pytest.mark.parametrize("power", [-400, 400])
def test_powers_of_two_change_nothing(backend, poisson, power):
    A, b, _ = poisson
    own_A, own_b = place(backend, A, b)
    usual = pcg(own_A, own_b, M="sgs", rtol=1e-6, norm="energy")
    scaled = pcg(own_A, own_b * 2.0**power, M="sgs", rtol=1e-6, norm="energy")
    assert scaled.iterations == usual.iterations
    assert scaled.energy_error == pytest.approx(usual.energy_error, rel=1e-6)


def test_atol_is_an_energy_norm(backend, poisson):
    A, b, exact = poisson
    own_A, own_b = place(backend, A, b)
    whole = float(np.sqrt(exact @ (A @ np.asarray(exact, float))))
    result = pcg(own_A, own_b, M="sgs", rtol=0, atol=1e-5 * whole, norm="energy")
    assert result.converged and 1e-8 < energy_error(A, backend.to_host(result.x), exact) <= 1e-5


@pytest.mark.parametrize("M", ["jacobi", "sgs", "ilu0"])
def test_a_wrong_mean_of_a_weak_part_is_found(backend, M):
    A = walker(30, 9, seed=2)
    b = np.zeros(A.shape[0])
    b[0] = 1
    exact = solution(A, b)
    own_A, own_b = place(backend, A, b)
    by_residual = pcg(own_A, own_b, M=M, rtol=1e-6)
    wrong = float(abs(backend.to_host(by_residual.x) - exact).max() / abs(exact).max())
    assert wrong > 0.1 and by_residual.reason is Reason.CONVERGED_IN_RESIDUAL and by_residual.converged
    assert "norm='energy'" in by_residual.reason.value
    by_energy = pcg(own_A, own_b, M=M, rtol=1e-6, norm="energy")
    assert by_energy.reason is Reason.CONVERGED
    assert energy_error(A, backend.to_host(by_energy.x), exact) <= 1e-6
    surer = solve(own_A, own_b, M=M, rtol=1e-6)
    assert surer.reason is Reason.CONVERGED and surer.iterations > by_residual.iterations
    assert float(abs(backend.to_host(surer.x) - exact).max() / abs(exact).max()) < 0.01


@pytest.mark.parametrize("power", [-1000, -500, 500, 960])
def test_doubts_and_errors_do_not_depend_on_the_units_of_b(backend, power):
    """Squares of such norms are zero or infinite, or have lost digits."""
    A = walker(30, 9, seed=2)
    own_A, b = place(backend, A, np.eye(1, A.shape[0])[0])
    for options in ({"M": "sgs"}, {"M": "sgs", "norm": "energy"}, {"M": "ilu0"}):
        usual, scaled = (pcg(own_A, b * 2.0**k, rtol=1e-6, **options) for k in (0, power))
        assert (scaled.reason, scaled.iterations) == (usual.reason, usual.iterations)
        assert usual.reason is (Reason.CONVERGED if "norm" in options else Reason.CONVERGED_IN_RESIDUAL)
        assert scaled.energy_error == pytest.approx(usual.energy_error, rel=1e-9)
        np.testing.assert_allclose(scaled.energy_errors, usual.energy_errors, rtol=1e-9)
        assert scaled.condition == pytest.approx(usual.condition, rel=1e-9)


@pytest.mark.parametrize("limits", [{"atol": 1e200, "rtol": 0}, {"rtol": 1e200}])
@pytest.mark.parametrize("norm", ["preconditioned", "energy"])
def test_limits_whose_squares_overflow(backend, poisson, norm, limits):
    own_A, own_b = place(backend, *poisson[:2])
    assert pcg(own_A, own_b, norm=norm, **limits).converged


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.int64])
@pytest.mark.parametrize("power", [0, 400])
def test_integers_on_the_right(backend, dtype, power):
    """Also where A is such that b gets other units in the solver."""
    A = walker(30, 9, seed=2)
    own_A, b = place(backend, A * 2.0**power, np.eye(1, A.shape[0], dtype=dtype)[0])
    of_integers, of_floats = (pcg(own_A, v, rtol=1e-6, M="sgs") for v in (b, b.astype(np.float64)))
    assert of_integers.reason is of_floats.reason is Reason.CONVERGED_IN_RESIDUAL
    assert of_integers.energy_error == of_floats.energy_error


@pytest.mark.parametrize("ratio", [1e-7, 1e7])
def test_errors_in_other_units_are_found(backend, ratio):
    """Without a preconditioner CG ends before it has seen the unknowns with the small equations."""
    A = problems.laplacian((12, 12))
    couples = sp.csr_matrix(sp.kron(A, np.array([[1, 0.4], [0.4, 1]])))
    scales = sp.diags(np.tile([1.0, ratio], 144))
    A = sp.csr_matrix(scales @ couples @ scales)
    b = A @ (np.random.default_rng(0).uniform(-1, 1, 288) / np.sqrt(A.diagonal()))
    exact, own = solution(A, b), place(backend, A, b)
    result = pcg(*own, rtol=1e-6)
    error = energy_error(A, backend.to_host(result.x), exact)
    assert result.reason is Reason.CONVERGED_IN_RESIDUAL and error > 1e-2
    assert error / 4 < result.energy_error <= 1.1 * error
    assert pcg(*own, rtol=1e-6, M="jacobi").reason is Reason.CONVERGED
    solved = solve(*own, rtol=1e-6, M=None, callback=lambda x: None)
    assert energy_error(A, backend.to_host(solved.x), exact) <= 1e-4


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(n=st.integers(2, 30), decades=st.floats(0, 8), seed=st.integers(0, 2**32 - 1))
def test_a_residual_bounds_the_error_from_below(backend, n, decades, seed):
    random = np.random.default_rng(seed)
    factor = sp.random(n, n, 0.3, random_state=random) + sp.eye(n)
    scales = sp.diags(10.0 ** random.uniform(-decades / 2, decades / 2, n))
    A = sp.csr_matrix(scales @ factor @ factor.T @ scales)
    error = random.standard_normal(n)
    matrix = admit_matrix(place(backend, A)[0], finite=True)
    least = least_energy(matrix, backend.xp.asarray(A @ error))
    assert 0 < least <= (1 + 1e-9) * (error @ (A @ error))


@pytest.mark.parametrize("M", [None, "jacobi", "multigrid"])
@pytest.mark.parametrize("name", ["poisson", "elasticity", "point source", "jumps"])
def test_no_false_alarm(backend, name, M):
    A = problems.elasticity(6) if name == "elasticity" else problems.laplacian((30, 30))
    n = A.shape[0]
    if name == "jumps":
        weights = 10.0 ** (6 * (np.arange(n) % 30 < 15))
        scale = sp.diags(np.sqrt(weights))
        A = sp.csr_matrix(scale @ A @ scale)
    b = np.eye(1, n, n // 2)[0] if name == "point source" else A @ np.random.default_rng(0).uniform(-1, 1, n)
    own_A, own_b = place(backend, A, b)
    assert pcg(own_A, own_b, M=M, rtol=1e-8, maxiter=10**5).reason is not Reason.CONVERGED_IN_RESIDUAL


@pytest.mark.parametrize("rtol", [1e-4, 1e-8])
def test_no_false_alarm_with_few_unknowns(backend, rtol):
    """CG ends with the solution after as many steps as there are eigenvalues, so the gains do not fall before."""
    for seed in range(40):
        random = np.random.default_rng(seed)
        n = 3 + seed % 3
        factor = random.standard_normal((n, n))
        A, b = sp.csr_matrix(factor @ factor.T / n + np.eye(n)), random.standard_normal(n)
        own_A, own_b = place(backend, A, b)
        for x0 in (None, backend.xp.zeros(n)):
            result = pcg(own_A, own_b, x0, rtol=rtol)
            assert result.reason is Reason.CONVERGED
        assert energy_error(A, backend.to_host(result.x), solution(A, b)) <= 10 * rtol
        assert not result.energy_error > 10 * rtol  # it is NaN after less than three steps


def test_errors_of_results(backend, poisson):
    A, b, _ = poisson
    own_A, own_b = place(backend, A, b)
    result = pcg(own_A, own_b, M=None, rtol=1e-10)
    x, r = backend.to_host(result.x), backend.to_host(own_b - own_A @ result.x)
    sizes = abs(A) @ abs(x) + abs(b)
    assert result.componentwise_backward_error() == pytest.approx((abs(r) / sizes).max(), rel=1e-3)
    expected = abs(r).max() / (abs(A).sum(axis=1).max() * abs(x).max() + abs(b).max())
    assert result.backward_error == pytest.approx(expected, rel=1e-3)
    eigenvalues = np.linalg.eigvalsh(A.toarray())
    assert result.condition == pytest.approx(eigenvalues[-1] / eigenvalues[0], rel=0.01)


@pytest.mark.parametrize("method", [gmres, bicgstab])
def test_other_methods_say_what_they_can(backend, poisson, method):
    A, b, _ = poisson
    own_A, own_b = place(backend, A, b)
    result = method(own_A, own_b, rtol=1e-8)
    assert np.isnan(result.energy_error) and np.isnan(result.condition) and result.energy_delay == 0
    assert 0 < result.backward_error < 1e-7 and 0 < result.componentwise_backward_error() < 1e-4


def test_bad_norms_are_refused(backend, poisson):
    own_A, own_b = place(backend, *poisson[:2])
    with pytest.raises(ValueError, match="norm"):
        pcg(own_A, own_b, norm="maximum")
    with pytest.raises(TypeError, match="norm"):
        PCG(own_A, norm=2)
    unsymmetric = own_A + backend.sparse.eye(1600, k=1, format="csr")
    with pytest.raises(ValueError, match="norm"):
        solve(unsymmetric, own_b, norm="energy")


@given(st.lists(st.floats(1e-3, 0.9), min_size=1, max_size=3), st.integers(20, 60))
def test_estimates_of_sums_of_geometric_series(rates, count):
    """Gains that are a sum of series have a tail that is known."""
    rates = np.array(rates)
    powers = rates ** np.arange(count)[:, None]
    coefficients = Coefficients()
    coefficients.alphas, coefficients.products = [1.0] * count, powers.sum(axis=1).tolist()
    found = coefficients.estimate()
    tail = float((rates**count / (1 - rates)).sum())
    assert found is not None
    before = float((rates ** (count - found.delay) / (1 - rates)).sum())
    assert 0.7 * before <= found.bound <= 1.0001 * before
    assert tail / 4 <= found.last <= 4 * tail or tail < 1e-300


def test_estimates_are_right_on_random_systems(to_device, backend):
    """With conditions and contrasts up to 1e12: the estimates are within a factor of 2 of the true error, and no solve
    says that it has converged while the error is too large.
    """
    ratios = []
    for seed in range(30):
        system = draw(seed, 200)
        exact, A, b = Exact(system.A, system.b), to_device(system.A), to_device(system.b)
        for M in (None, "jacobi", "sgs", "ilu0", "multigrid"):
            result = pcg(A, b, M=M, rtol=system.rtol, norm="energy", maxiter=5000)
            if result.reason is Reason.CONVERGED:
                error = exact.error(backend.to_host(result.x))
                assert error <= 1.1 * system.rtol
                ratios.append(error / result.energy_error)
    ratios = np.array(ratios)
    assert len(ratios) >= 100
    assert np.mean((ratios >= 0.5) & (ratios <= 2)) >= 0.98
    assert ratios.max() <= 10


@pytest.mark.parametrize("M", [None, "jacobi", "sgs"])
@pytest.mark.parametrize("seed", [9, 19, 29, 109])
def test_solves_go_on_where_the_estimate_was_wrong(to_device, backend, seed, M):
    """CG's coefficients call the errors of these systems small while they are 30 to 2,000 times too large. The solve
    goes on until the error is small, or until rounding does not let it become smaller.
    """
    system = draw(seed)
    result = pcg(to_device(system.A), to_device(system.b), M=M, rtol=system.rtol, norm="energy", maxiter=20000)
    error = Exact(system.A, system.b).error(backend.to_host(result.x))
    assert result.energy_error == pytest.approx(error, rel=0.5)
    assert len(result.residuals) == result.iterations + 1
    assert result.reason in (Reason.CONVERGED, Reason.STAGNATED)
    assert error <= 1.1 * system.rtol if result.converged else error > system.rtol / 1.1


def test_a_correction_that_breaks_down_tells_no_error(backend, poisson):
    """On a nearly singular A, M may be positive for b and, by rounding, not for the residual."""
    own_A, own_b = place(backend, *poisson[:2])
    solver = PCG(own_A, "sgs", norm="energy")
    right = solver.solve(own_b, rtol=1e-6)
    unknown = replace(right, _coefficients=Coefficients())

    def break_down(*arguments):
        return replace(solver.solve(arguments[0], rtol=0.1), reason=Reason.INDEFINITE_M)

    result = verify(unknown, break_down, 1e-6, 0.0, 100, backend)
    assert right.reason is Reason.CONVERGED and result.reason is Reason.INDEFINITE_M
    assert np.isnan(result.energy_error) and result.iterations == right.iterations


@pytest.mark.parametrize("seed", range(10))
def test_true_errors_of_random_systems_are_known(seed):
    """Refinement by floats of extended precision finds the same solution."""
    system = draw(seed, 150)
    exact, x = Exact(system.A, system.b), solution(system.A, system.b)
    rounded = np.asarray(x, float)
    assert exact.changed <= 1e-20
    assert exact.error(np.zeros(len(x))) == pytest.approx(1)
    assert exact.error(1.001 * rounded) == pytest.approx(1e-3, rel=1e-3)
    assert exact.error(rounded) < 1e-7


@pytest.mark.parametrize("M", ["none", "jacobi", "sgs", "ilu0", "multigrid"])
def test_most_estimates_are_right(M):
    """On random systems with contrasts up to 1e10: no solve that ends by the energy norm has a larger error."""
    ratios, random = [], np.random.default_rng(3)
    for seed in range(12):
        if seed % 2:
            A = walker(16, random.uniform(1, 10), seed)
        else:
            scale = sp.diags(10.0 ** random.uniform(-2, 0, 400))
            A = sp.csr_matrix(scale @ problems.laplacian((20, 20)) @ scale)
        b = random.standard_normal(A.shape[0])
        rtol = 10.0 ** -random.integers(2, 8)
        result = pcg(A, b, M=None if M == "none" else M, rtol=rtol, norm="energy", maxiter=10**5)
        if not result.converged:
            continue
        error = energy_error(A, result.x, solution(A, b))
        assert error <= 1.1 * rtol
        ratios.append(result.energy_error / error)
    ratios = np.array(ratios)
    assert len(ratios) >= 9
    assert np.mean((ratios > 1 / 2) & (ratios < 2)) >= 0.9
