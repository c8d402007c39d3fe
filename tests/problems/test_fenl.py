"""FENL: against scikit-fem, against calculus, and against the exact solution."""

import itertools

import numpy as np
import pytest
import scipy.sparse.linalg

from mcprecond import MulticolorSGS, pcg, problems
from mcprecond.problems.fenl import CONDUCTIVITY

WINDS = [0.0, 3.0, (1.0, -20.0, 0.5)]
#: Keyword arguments of `fenl` for quadratic and anisotropic conductivities and for nonuniform meshes.
CONDUCTORS = [
    {},
    {"conductivity": (10.0, 1.0, 0.1)},
    {"conductivity": 2.0, "profile": (1.0, -1.5, 1.0)},
    {"conductivity": (0.3, 5.0, 2.0), "profile": (0.5, 2.0, -1.0), "advection": (1.0, 0.0, -4.0)},
    {"profile": ((1.0, 3.0, 0.0), (2.0, -1.0, 0.5), (1.0, 0.0, 1.0)), "bubble": 0.5},
    {"bubble": (0.9, -0.5, 0.3), "advection": (1.0, -20.0, 0.5)},
]


def faces(problem):
    """Where T is prescribed."""
    z = problem.backend.to_host(problem.coordinates)[:, 2]
    return (z == 0) | (z == 1)


def state(problem, seed=0):
    """A random T >= 0 with the prescribed values."""
    T = problem.backend.to_host(problem.initial()).copy()
    inner = ~faces(problem)
    T[inner] = 3 * np.random.default_rng(seed).random(inner.sum())
    return problem.backend.xp.asarray(T)


def host(problem, J):
    return J if problem.backend.name == "cpu" else J.get()


def scikit_fem(problem, T):
    """Jacobian (dense, conditions eliminated) and residual by scikit-fem, in our numbering."""
    import skfem
    from skfem.helpers import grad

    m = problem.n + 1
    lines = [np.unique(line) for line in problem.coordinates.T]
    mesh = skfem.MeshHex.init_tensor(*lines)
    basis = skfem.InteriorBasis(mesh, skfem.ElementHex1(), intorder=3)  # 2 x 2 x 2 Gauss points
    assert basis.X.shape == (3, 8)
    i, j, k = (np.searchsorted(line, at - 1e-9) for line, at in zip(lines, basis.doflocs, strict=True))
    ours = i + m * (j + m * k)
    theirs = np.argsort(ours)
    a = np.broadcast_to(problem.advection, 3)

    def flux(u, v, w):
        """∇v·k ∇u."""
        along = sum(k * grad(u)[d] * grad(v)[d] for d, k in enumerate(problem.conductivity))
        for x, (c0, c1, c2) in zip(w.x, problem.profile, strict=True):
            along = (c0 + c1 * x + c2 * x**2) * along
        return along

    def wind(u):
        return sum(a[d] * grad(u)[d] for d in range(3))

    @skfem.BilinearForm
    def derivative(u, v, w):
        return flux(u, v, w) + 2 * w.T * u * v + v * wind(u)

    @skfem.LinearForm
    def functional(v, w):
        return flux(w.T, v, w) + v * w.T**2 + v * wind(w.T)

    field = basis.interpolate(T[ours])
    J = derivative.assemble(basis, T=field).toarray()[np.ix_(theirs, theirs)]
    R = functional.assemble(basis, T=field)[theirs]
    fixed = faces(problem)
    J[fixed] = 0
    J[:, fixed] = 0
    J[fixed, fixed] = 1
    R[fixed] = (T - np.where(problem.coordinates[:, 2] == 0, 1, 2))[fixed]
    return J, R


@pytest.mark.parametrize("options", [*({"advection": advection} for advection in WINDS), *CONDUCTORS[1:]])
@pytest.mark.parametrize("n", [1, 2, 4])
def test_scikit_fem_assembles_the_same(n, options):
    problem = problems.fenl(n, **options)
    T = np.random.default_rng(n).standard_normal(problem.unknowns)
    J, R = scikit_fem(problem, T)
    np.testing.assert_allclose(problem.jacobian(T).toarray(), J, rtol=0, atol=1e-13 * abs(J).max())
    np.testing.assert_allclose(problem.residual(T), R, rtol=0, atol=1e-13 * abs(R).max())


@pytest.mark.parametrize("n", [1, 2, 5])
def test_pattern_is_the_27_point_one_and_sorted(device, n):
    problem = problems.fenl(n, advection=1.0, device=device)
    J = host(problem, problem.jacobian(problem.initial()))
    m = n + 1
    nodes = list(itertools.product(range(m), repeat=3))  # (z, y, x), x fastest
    for v, (z, y, x) in enumerate(nodes):
        near = itertools.product(*(range(max(c - 1, 0), min(c + 2, m)) for c in (z, y, x)))
        expected = [i + m * (j + m * k) for k, j, i in near]
        assert J.indices[J.indptr[v] : J.indptr[v + 1]].tolist() == expected
    assert J.indices.dtype == np.int32
    assert J.nnz == (3 * n + 1) ** 3
    np.testing.assert_allclose(problem.backend.to_host(problem.coordinates)[:, ::-1], np.array(nodes) / n, atol=1e-15)


def test_jacobians_share_the_pattern_but_not_the_values(device):
    problem = problems.fenl(3, device=device)
    first = problem.jacobian(problem.initial())
    before = first.data.copy()
    second = problem.jacobian(problem.exact())
    shares = problem.backend.xp.shares_memory
    assert shares(first.indices, second.indices)
    assert shares(first.indptr, second.indptr)
    assert bool((first.data == before).all())
    assert bool((first.data != second.data).any())


@pytest.mark.parametrize("options", [*({"advection": advection} for advection in WINDS), *CONDUCTORS])
def test_symmetric_to_the_last_bit_iff_there_is_no_advection(device, options):
    problem = problems.fenl(5, device=device, **options)
    J = host(problem, problem.jacobian(state(problem)))
    assert (abs(J - J.T).max() == 0) == (not any(problem.advection))


@pytest.mark.parametrize("options", CONDUCTORS[:3])
def test_positive_definite_without_advection(device, options):
    problem = problems.fenl(4, device=device, **options)
    J = host(problem, problem.jacobian(state(problem))).toarray()
    assert np.linalg.eigvalsh(J).min() > 0


@pytest.mark.parametrize("advection", WINDS)
def test_dirichlet_rows_and_columns_are_those_of_the_identity(device, advection):
    problem = problems.fenl(3, advection=advection, device=device)
    J = host(problem, problem.jacobian(state(problem))).toarray()
    fixed = faces(problem)
    identity = np.eye(problem.unknowns)
    np.testing.assert_array_equal(J[fixed], identity[fixed])
    np.testing.assert_array_equal(J[:, fixed], identity[:, fixed])


@pytest.mark.parametrize("advection", WINDS)
@pytest.mark.parametrize("n", [2, 5])
def test_jacobian_is_the_derivative_of_the_residual(device, n, advection):
    """The residual is quadratic in T, so a central difference is exact for any step."""
    problem = problems.fenl(n, advection=advection, device=device)
    T, d = state(problem, 1), state(problem, 2)
    d[problem.backend.xp.asarray(faces(problem))] = 0
    difference = (problem.residual(T + d) - problem.residual(T - d)) / 2
    derivative = problem.jacobian(T) @ d
    error = float(abs(difference - derivative).max())
    assert error <= 1e-13 * float(abs(derivative).max())


def test_residual_measures_what_is_prescribed(device):
    problem = problems.fenl(2, device=device)
    to_host = problem.backend.to_host
    assert not to_host(problem.residual(problem.initial()))[faces(problem)].any()
    shifted = to_host(problem.residual(problem.initial() + 0.25))
    np.testing.assert_array_equal(shifted[faces(problem)], 0.25)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"conductivity": (10.0, 3.0, CONDUCTIVITY)},
        {"conductivity": 1.0, "profile": (8.0, -6.0, 1.0)},
        {"conductivity": (20.0, 0.5, 2.0), "profile": (2.0, -1.0, 0.0)},
        {"bubble": (0.5, -0.3, 0.4)},
    ],
)
def test_newton_converges_to_the_exact_solution_with_second_order(device, options):
    errors = []
    for n in (4, 8, 16):
        problem = problems.fenl(n, device=device, **options)
        T, steps = problem.solve()
        assert steps[-1].residual <= 1e-7
        assert len(steps) == 3
        errors.append(float(abs(T - problem.exact()).max()))
    rates = np.log2(np.divide(errors[:-1], errors[1:]))
    assert (rates > 1.8).all()
    assert (rates < 2.2).all()


@pytest.mark.parametrize("advection", [5.0, (0.0, 0.0, 8.0), (4.0, -2.0, 1.0)])
def test_newton_solves_the_unsymmetric_problem(device, advection):
    problem = problems.fenl(6, advection=advection, device=device)
    linalg = problem.backend.linalg
    T, steps = problem.solve(lambda J, rhs: linalg.bicgstab(J, rhs, rtol=1e-10, maxiter=500))
    assert all(step.linear_info == 0 for step in steps)
    norm = problem.backend.xp.linalg.norm
    assert float(norm(problem.residual(T))) <= 1e-7 * float(norm(problem.residual(problem.initial())))
    by_default, _ = problem.solve()
    assert float(abs(T - by_default).max()) < 1e-5


def test_newton_with_our_solver_and_preconditioner(device):
    problem = problems.fenl(10, device=device)
    T, steps = problem.solve(lambda J, rhs: pcg(J, rhs, rtol=1e-7, M=MulticolorSGS(J)))
    assert all(step.linear_info == 0 and step.iterations > 0 for step in steps)
    residuals = [step.residual for step in steps]
    assert residuals == sorted(residuals, reverse=True)
    assert residuals[-1] <= 1e-7
    assert float(abs(T - problem.exact()).max()) < 2e-4


@pytest.mark.parametrize("method", ["bicgstab", "gmres"])
def test_unsymmetric_problem_with_our_preconditioner(device, method):
    problem = problems.fenl(8, advection=10.0, device=device)
    krylov = getattr(problem.backend.linalg, method)
    _, steps = problem.solve(lambda J, rhs: krylov(J, rhs, rtol=1e-8, M=MulticolorSGS(J)))
    assert all(step.linear_info == 0 for step in steps)
    assert steps[-1].residual <= 1e-7


def test_advection_along_z_keeps_the_solution_flat_in_x_and_y():
    problem = problems.fenl(5, advection=(0.0, 0.0, 4.0))
    T, _ = problem.solve(lambda J, rhs: (scipy.sparse.linalg.spsolve(J.tocsc(), rhs), 0))
    layers = T.reshape(6, 36)
    np.testing.assert_allclose(layers, np.broadcast_to(layers[:, :1], layers.shape), rtol=1e-12)


class Result:
    """Unpacks as (x, info), like a SolveResult."""

    iterations = 7

    def __init__(self, x, info):
        self.pair = x, info

    def __iter__(self):
        return iter(self.pair)


def test_record_and_callback_tell_what_each_step_did(device):
    problem = problems.fenl(4, device=device)
    seen = []

    def half_hearted(J, rhs):
        x, info = problem.backend.linalg.cg(J, rhs, maxiter=2)
        return Result(x, info)

    T, steps = problem.solve(half_hearted, max_steps=2, callback=seen.append)
    assert seen == steps
    assert len(steps) == 2
    assert all(step.linear_info != 0 and step.iterations == 7 and step.seconds > 0 for step in steps)
    norm = problem.backend.xp.linalg.norm
    relative = float(norm(problem.residual(T))) / float(norm(problem.residual(problem.initial())))
    assert steps[-1].residual == pytest.approx(relative, rel=1e-12)
    assert relative > 1e-7


def test_plain_pairs_have_no_iteration_count():
    _, steps = problems.fenl(3).solve(lambda J, rhs: tuple(pcg(J, rhs)))
    assert {step.iterations for step in steps} == {None}
    assert None not in {step.iterations for step in problems.fenl(3, advection=1.0).solve()[1]}


def test_nothing_to_solve_without_interior_nodes(device):
    problem = problems.fenl(1, device=device)
    T, steps = problem.solve()
    assert steps == []
    assert float(abs(T - problem.exact()).max()) < 1e-15


def test_newton_names_the_step_that_breaks(device):
    problem = problems.fenl(3, device=device)
    with pytest.raises(RuntimeError, match=r"Newton step 1 .*nan"):
        problem.solve(lambda J, rhs: (rhs * np.nan, 0))


@pytest.mark.gpu
@pytest.mark.parametrize("options", [*({"advection": advection} for advection in WINDS), *CONDUCTORS[1:]])
@pytest.mark.parametrize("n", [1, 2, 7, 20])
def test_gpu_equals_cpu(n, options):
    ours = problems.fenl(n, device="gpu", **options)
    reference = problems.fenl(n, **options)
    to_host = ours.backend.to_host
    T = np.random.default_rng(n).standard_normal(reference.unknowns)
    J, expected = ours.jacobian(ours.backend.xp.asarray(T)), reference.jacobian(T)
    np.testing.assert_array_equal(to_host(J.indptr), expected.indptr)
    np.testing.assert_array_equal(to_host(J.indices), expected.indices)
    np.testing.assert_allclose(to_host(J.data), expected.data, rtol=0, atol=1e-14 * abs(expected.data).max())
    R = reference.residual(T)
    np.testing.assert_allclose(to_host(ours.residual(ours.backend.xp.asarray(T))), R, rtol=0, atol=1e-13 * abs(R).max())
    for name in ("initial", "exact") if options == {"advection": 0.0} else ("initial",):
        np.testing.assert_allclose(to_host(getattr(ours, name)()), getattr(reference, name)(), rtol=1e-14)
    np.testing.assert_allclose(to_host(ours.coordinates), reference.coordinates, rtol=1e-14)


def test_wide_indices_give_the_same_matrix(monkeypatch, device):
    narrow = problems.fenl(3, advection=1.0, device=device)
    monkeypatch.setattr("mcprecond.backends.kernels.INT32_LIMIT", 10)
    wide = problems.fenl(3, advection=1.0, device=device)
    assert wide._indices.dtype == wide._indptr.dtype == np.int64
    T = state(narrow)
    assert abs(wide.jacobian(T) - narrow.jacobian(T)).max() == 0


@pytest.mark.parametrize("n", [2.0, "3", None, True])
def test_n_must_be_an_integer(n):
    with pytest.raises(TypeError, match="n must be an integer"):
        problems.fenl(n)


@pytest.mark.parametrize("n", [0, -1])
def test_n_must_be_positive(n):
    with pytest.raises(ValueError, match="n must be between 1 and"):
        problems.fenl(n)


@pytest.mark.parametrize("advection", [(1.0, 2.0), [[1.0]], np.nan, (0.0, np.inf, 0.0), "north", None, 1j, (1, 2, "x")])
def test_advection_must_be_one_or_three_finite_numbers(advection):
    with pytest.raises(ValueError, match="advection must be"):
        problems.fenl(2, advection=advection)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"conductivity": 0.0}, "conductivity must be positive in every direction"),
        ({"conductivity": (1.0, -1.0, 1.0)}, "conductivity must be positive"),
        ({"conductivity": "copper"}, "conductivity must be a finite number or three of them, got 'copper'"),
        ({"profile": 2.0}, "profile must be three finite numbers"),
        ({"profile": (1.0, np.inf, 0.0)}, "profile must be three finite numbers"),
        ({"profile": (1.0, -1.0, 0.0)}, "profile must be positive for all z"),
        ({"profile": (1.0, -4.0, 4.0)}, "profile must be positive for all z"),
        ({"profile": ((1, -2, 0), (1, 0, 0), (1, 0, 0))}, "profile must be positive for all x"),
        ({"profile": ((1, 0), (1, 0), (1, 0))}, "profile must be three finite numbers"),
        ({"profile": "steep"}, "profile must be three finite numbers"),
        ({"profile": ((1, 0), (1,))}, "profile must be three finite numbers, or three times three"),
        ({"profile": ((1, 0, 0), 2.0, (1, 0, 0))}, "profile must be three finite numbers"),
        ({"bubble": 1.0}, "bubble must be above -1 and below 1"),
        ({"bubble": (0.0, np.nan, 0.0)}, "bubble must be a finite number or three of them"),
    ],
)
def test_conductors_must_conduct(options, message):
    with pytest.raises(ValueError, match=message):
        problems.fenl(2, **options)


def test_device_must_be_known():
    with pytest.raises(ValueError, match="device must be 'cpu' or 'gpu'"):
        problems.fenl(2, device="tpu")


@pytest.mark.parametrize("method", ["residual", "jacobian"])
@pytest.mark.parametrize(
    ("T", "error"),
    [
        (np.ones(26), ValueError),
        (np.ones((3, 9)), ValueError),
        (np.full(27, np.nan), ValueError),
        (["a"] * 27, TypeError),
    ],
)
def test_T_must_fit(method, T, error):
    with pytest.raises(error, match=r"^T "):
        getattr(problems.fenl(2), method)(T)


@pytest.mark.gpu
def test_T_must_be_on_the_device():
    problem = problems.fenl(2, device="gpu")
    with pytest.raises((TypeError, ValueError), match=r"^T is on the cpu"):
        problem.residual(np.ones(27))


def test_no_closed_form_with_advection(device):
    with pytest.raises(ValueError, match="no closed form"):
        problems.fenl(2, advection=(0.0, 0.0, 1.0), device=device).exact()


@pytest.mark.parametrize(
    ("options", "why"), [*((c, "the conductivity") for c in CONDUCTORS[1:3]), (CONDUCTORS[4], "the profiles")]
)
def test_no_closed_form_for_most_conductors(options, why):
    with pytest.raises(ValueError, match=f"no closed form of the solution is known for {why}"):
        problems.fenl(2, **options).exact()


def test_the_function_is_the_door():
    problem = problems.fenl(2, advection=1)
    assert isinstance(problem, problems.FENL)
    assert problem.advection == (1.0, 1.0, 1.0)
    assert problem.unknowns == 27
