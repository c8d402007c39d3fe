"""Elasticity: rigid bodies, exact energies, and the pattern."""

import itertools
import sys

import numpy as np
import pytest

from mcprecond import problems
from mcprecond.problems import graphs

ELEMENTS = ("hexahedra", "tetrahedra")
module = sys.modules[problems.elasticity.__module__]


def host(A, device):
    return A if device == "cpu" else A.get()


def coordinates(n):
    line = np.linspace(0, 1, n)
    z, y, x = np.meshgrid(line, line, line, indexing="ij")
    return np.stack([x.ravel(), y.ravel(), z.ravel()], axis=1)


@pytest.mark.parametrize(("elements", "most"), [("hexahedra", 81), ("tetrahedra", 45)])
@pytest.mark.parametrize("n", [2, 3, 6])
def test_full_pattern_symmetric_to_the_last_bit(device, n, elements, most):
    A = host(problems.elasticity(n, elements=elements, device=device), device)
    pattern = graphs.elasticity_pattern(n, elements)
    np.testing.assert_array_equal(A.indptr, pattern.indptr)
    np.testing.assert_array_equal(A.indices, pattern.indices)
    assert A.dtype == np.float64
    assert abs(A - A.T).max() == 0
    if n > 4:
        assert np.diff(A.indptr).max() == most


@pytest.mark.parametrize("elements", ELEMENTS)
@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.parametrize("poisson", [-0.9, 0.0, 0.3, 0.49])
def test_positive_definite(n, poisson, elements):
    assert np.linalg.eigvalsh(problems.elasticity(n, elements=elements, poisson=poisson).toarray()).min() > 0


@pytest.mark.parametrize("elements", ELEMENTS)
@pytest.mark.parametrize("n", [2, 5])
def test_exactly_the_rigid_bodies_move_without_a_force(n, elements):
    A = module.assemble(n, elements, 2.0, 0.3, clamped=False)
    x = coordinates(n)
    for direction in np.eye(3):
        for motion in (np.broadcast_to(direction, x.shape), np.cross(direction, x)):
            assert abs(A @ motion.ravel()).max() <= 1e-14 * abs(A.data).max() * 81
    values = np.linalg.eigvalsh(A.toarray())
    assert abs(values[:6]).max() < 1e-13 * values[-1]
    assert values[6] > 1e-6 * values[-1]


@pytest.mark.parametrize("elements", ELEMENTS)
@pytest.mark.parametrize("n", [2, 3, 5])
def test_energy_of_a_linear_displacement_is_exact(n, elements):
    young, poisson = 3.0, 0.2
    gradient = np.random.default_rng(n).standard_normal((3, 3))
    u = (coordinates(n) @ gradient.T).ravel()
    strain = (gradient + gradient.T) / 2
    lame, shear = young * poisson / ((1 + poisson) * (1 - 2 * poisson)), young / (2 * (1 + poisson))
    energy = lame / 2 * np.trace(strain) ** 2 + shear * (strain**2).sum()
    A = module.assemble(n, elements, young, poisson, clamped=False)
    assert u @ A @ u / 2 == pytest.approx(energy, rel=1e-12)


@pytest.mark.parametrize("n", [2, 4])
def test_scikit_fem_assembles_the_same_from_tetrahedra(n):
    import skfem
    from skfem.models.elasticity import lame_parameters, linear_elasticity

    lower = np.arange(n**3).reshape(n, n, n)[:-1, :-1, :-1].ravel()
    paths = [np.cumsum([0, *(n**axis for axis in axes)]) for axes in itertools.permutations(range(3))]
    mesh = skfem.MeshTet(coordinates(n).T, np.concatenate([lower[:, None] + path for path in paths]).T)
    basis = skfem.InteriorBasis(mesh, skfem.ElementVector(skfem.ElementTetP1()))
    theirs = linear_elasticity(*lame_parameters(3.0, 0.2)).assemble(basis).toarray()
    order = basis.nodal_dofs.T.ravel()
    ours = module.assemble(n, "tetrahedra", 3.0, 0.2, clamped=False).toarray()
    np.testing.assert_allclose(ours, theirs[np.ix_(order, order)], rtol=0, atol=1e-13 * abs(ours).max())


@pytest.mark.parametrize("elements", ELEMENTS)
def test_clamped_rows_and_columns_are_those_of_the_identity(elements):
    n = 3
    A = problems.elasticity(n, elements=elements).toarray()
    free = module.assemble(n, elements, 1.0, 0.3, clamped=False).toarray()
    fixed = np.arange(3 * n**3) < 3 * n**2
    identity = np.eye(len(A))
    np.testing.assert_array_equal(A[fixed], identity[fixed])
    np.testing.assert_array_equal(A[:, fixed], identity[:, fixed])
    np.testing.assert_array_equal(A[np.ix_(~fixed, ~fixed)], free[np.ix_(~fixed, ~fixed)])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 1}, "n must be between 2 and"),
        ({"n": 2.5}, "n must be an integer"),
        ({"n": 3, "elements": "prisms"}, "elements must be one of hexahedra, tetrahedra, got 'prisms'"),
        ({"n": 3, "young": 0.0}, "young must be"),
        ({"n": 3, "young": "steel"}, "young must be"),
        ({"n": 3, "poisson": 0.5}, "poisson must lie"),
        ({"n": 3, "poisson": None}, "poisson must be a real number"),
        ({"n": 3, "device": "tpu"}, "device must be"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        problems.elasticity(**arguments)
