"""FENL: against scikit-fem's assembly, against the exact solution, and through Newton's method."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import stencil27

from mcprecond import MulticolorSGS, pcg, problems
from mcprecond.problems.fenl import DIFFUSIVITY

ADVECTIONS = [0.0, 3.0, (1.0, -2.0, 5.0)]


def some_temperature(problem) -> np.ndarray:
    """Random inside, the prescribed values on the two faces."""
    T = problem.backend.to_host(problem.initial()).copy()
    inside = T == 0
    T[inside] = np.random.default_rng(0).uniform(0.5, 2.5, inside.sum())
    return T


def by_scikit_fem(problem, T: np.ndarray) -> tuple[sp.csr_matrix, np.ndarray]:
    """Jacobian and residual assembled by scikit-fem, in our numbering and with our treatment of prescribed values."""
    from skfem import Basis, BilinearForm, ElementHex1, LinearForm, MeshHex
    from skfem.helpers import dot, grad

    line = np.linspace(0, 1, problem.n + 1)
    mesh = MeshHex.init_tensor(line, line, line)
    basis = Basis(mesh, ElementHex1(), intorder=3)  # 2 x 2 x 2 Gauss points
    points = np.rint(mesh.p * problem.n).astype(int)
    ours = points[0] + (problem.n + 1) * (points[1] + (problem.n + 1) * points[2])
    a = np.array(problem.advection)

    @BilinearForm
    def jacobian(u, v, w):
        transport = sum(a[d] * grad(u)[d] for d in range(3))
        return DIFFUSIVITY * dot(grad(u), grad(v)) + 2 * w["T"] * u * v + transport * v

    @LinearForm
    def residual(v, w):
        transport = sum(a[d] * w["T"].grad[d] for d in range(3))
        return DIFFUSIVITY * dot(w["T"].grad, grad(v)) + w["T"] ** 2 * v + transport * v

    field = basis.interpolate(T[ours])
    order = np.argsort(ours)
    J = sp.csr_matrix(jacobian.assemble(basis, T=field))[order][:, order].tolil()
    R = residual.assemble(basis, T=field)[order]
    z = problem.backend.to_host(problem.coordinates)[:, 2]
    fixed = np.flatnonzero((z == 0) | (z == 1))
    J[fixed, :] = 0
    J[:, fixed] = 0
    J[fixed, fixed] = 1
    R[fixed] = T[fixed] - np.where(z[fixed] == 0, 1.0, 2.0)
    return J.tocsr(), R


@pytest.mark.parametrize("advection", ADVECTIONS)
def test_assembly_equals_scikit_fem(advection):
    problem = problems.fenl(4, advection=advection)
    T = some_temperature(problem)
    J, R = by_scikit_fem(problem, T)
    assert abs(problem.jacobian(T) - J).max() < 1e-13
    np.testing.assert_allclose(problem.residual(T), R, atol=1e-13)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_pattern_is_the_27_point_stencil(n, device, backend):
    problem = problems.fenl(n, device=device)
    J = problem.jacobian(problem.initial())
    expected = stencil27(n + 1)
    expected.sort_indices()
    np.testing.assert_array_equal(backend.to_host(J.indptr), expected.indptr)
    np.testing.assert_array_equal(backend.to_host(J.indices), expected.indices)


def host_matrix(J, backend) -> sp.csr_matrix:
    return J if backend.name == "cpu" else J.get()


@pytest.mark.parametrize("advection", ADVECTIONS)
def test_symmetric_exactly_without_advection(advection, device, backend):
    problem = problems.fenl(4, advection=advection, device=device)
    J = host_matrix(problem.jacobian(backend.xp.asarray(some_temperature(problem))), backend).toarray()
    assert (abs(J - J.T).max() < 1e-14) == (advection == 0)
    if advection == 0:
        assert np.linalg.eigvalsh(J).min() > 0


def test_prescribed_rows_and_columns(device, backend):
    problem = problems.fenl(3, device=device)
    J = host_matrix(problem.jacobian(problem.initial()), backend).toarray()
    fixed = np.r_[0:16, 48:64]
    np.testing.assert_array_equal(J[fixed], np.eye(64)[fixed])
    np.testing.assert_array_equal(J[:, fixed], np.eye(64)[:, fixed])


@pytest.mark.parametrize("advection", ADVECTIONS)
def test_jacobian_is_the_derivative(advection, device, backend):
    problem = problems.fenl(4, advection=advection, device=device)
    xp = backend.xp
    T = xp.asarray(some_temperature(problem))
    direction = xp.asarray(np.random.default_rng(1).uniform(-1, 1, problem.unknowns))
    direction[: 5 * 5] = direction[-5 * 5 :] = 0
    # R is quadratic in T, so central differences are exact.
    difference = (problem.residual(T + 0.5 * direction) - problem.residual(T - 0.5 * direction))
    product = problem.jacobian(T) @ direction
    np.testing.assert_allclose(backend.to_host(product), backend.to_host(difference), atol=1e-12)


def test_error_falls_as_h_squared(device, backend):
    errors = []
    for n in (4, 8, 16):
        problem = problems.fenl(n, device=device)
        T, steps = problem.solve()
        assert steps[-1].residual <= 1e-7
        errors.append(float(abs(T - problem.exact()).max()))
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (rates > 1.8).all() and (rates < 2.2).all()


def test_newton_with_our_solver_and_preconditioner(device):
    problem = problems.fenl(10, device=device)
    seen = []
    T, steps = problem.solve(lambda J, b: pcg(J, b, rtol=1e-7, M=MulticolorSGS(J)), callback=seen.append)
    assert seen == steps and 3 <= len(steps) <= 5
    assert all(step.linear_info == 0 and step.iterations and step.seconds > 0 for step in steps)
    assert [step.residual for step in steps] == sorted((step.residual for step in steps), reverse=True)
    assert float(abs(T - problem.exact()).max()) < 2e-4


@pytest.mark.parametrize("method", ["bicgstab", "gmres"])
def test_unsymmetric_system_with_the_same_preconditioner(method, device, backend):
    if device == "gpu" and method == "bicgstab" and not hasattr(backend.linalg, "bicgstab"):
        method = "gmres"  # older CuPy has no bicgstab
    problem = problems.fenl(8, advection=10.0, device=device)
    tolerance = {"rtol" if device == "cpu" else "tol": 1e-8}
    T, steps = problem.solve(lambda J, b: getattr(backend.linalg, method)(J, b, M=MulticolorSGS(J), **tolerance))
    assert steps[-1].residual <= 1e-7
    assert float(backend.xp.linalg.norm(problem.residual(T))) < 1e-5


def test_default_solver_with_advection(device):
    _, steps = problems.fenl(6, advection=(0, 0, 4.0), device=device).solve()
    assert steps[-1].residual <= 1e-7


def test_too_few_steps_are_told(device):
    _, steps = problems.fenl(4, device=device).solve(max_steps=1)
    assert len(steps) == 1 and steps[0].residual > 1e-7


def test_nan_from_the_linear_solver():
    with pytest.raises(RuntimeError, match="NaN or infinity in Newton step 1"):
        problems.fenl(3).solve(lambda J, b: (np.full_like(b, np.nan), 0))


def test_coordinates_and_exact_solution(device, backend):
    problem = problems.fenl(3, device=device)
    coordinates = backend.to_host(problem.coordinates)
    np.testing.assert_allclose(coordinates[1 + 4 * (2 + 4 * 3)], [1 / 3, 2 / 3, 1])
    exact = backend.to_host(problem.exact())
    np.testing.assert_allclose([exact[0], exact[-1]], [1, 2])


@pytest.mark.gpu
@pytest.mark.parametrize("advection", ADVECTIONS)
def test_devices_agree(advection):
    cpu, gpu = (problems.fenl(9, advection=advection, device=device) for device in ("cpu", "gpu"))
    T = some_temperature(cpu)
    on_gpu = gpu.backend.xp.asarray(T)
    np.testing.assert_allclose(gpu.backend.to_host(gpu.residual(on_gpu)), cpu.residual(T), atol=1e-13)
    assert abs(gpu.jacobian(on_gpu).get() - cpu.jacobian(T)).max() < 1e-13


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n": 2.5}, TypeError, "n must be an integer, got 2.5"),
        ({"n": 0}, ValueError, "n must be positive, got 0"),
        ({"n": 3, "advection": (1, 2)}, ValueError, "advection must be a number or three numbers"),
        ({"n": 3, "advection": "up"}, ValueError, "advection must be a number or three numbers"),
        ({"n": 3, "advection": np.inf}, ValueError, "advection must be finite"),
        ({"n": 3, "device": "tpu"}, ValueError, "device must be"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        problems.fenl(**arguments)


def test_bad_temperatures():
    problem = problems.fenl(3)
    with pytest.raises(ValueError, match=r"T must have shape \(64,\)"):
        problem.residual(np.zeros(63))
    with pytest.raises(ValueError, match="T holds nan in row 5"):
        problem.jacobian(np.r_[np.zeros(5), np.nan, np.zeros(58)])
    with pytest.raises(ValueError, match="without advection only"):
        problems.fenl(3, advection=1.0).exact()
