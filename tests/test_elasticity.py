"""Linear elasticity: symmetry, rigid motions, exact energies, definiteness, the pattern."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprecond import problems
from mcprecond.problems import graphs


def nodes(n: int) -> np.ndarray:
    """Coordinates in the order of the unknowns, shape (n^3, 3)."""
    line = np.linspace(0, 1, n)
    return np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)


@pytest.mark.parametrize("clamped", [True, False])
def test_symmetric_with_full_rows(clamped, backend, device):
    A = problems.elasticity(5, clamped=clamped, device=device)
    A = A if device == "cpu" else A.get()
    assert abs(A - A.T).max() < 1e-15
    pattern = graphs.elasticity_pattern(5)
    np.testing.assert_array_equal(A.indptr, pattern.indptr)
    np.testing.assert_array_equal(A.indices, pattern.indices)


@given(
    gradient=st.lists(st.floats(-2, 2), min_size=9, max_size=9),
    young=st.floats(0.1, 10),
    poisson=st.floats(-0.5, 0.45),
)
def test_linear_displacements_have_their_exact_energy(gradient, young, poisson):
    G = np.array(gradient).reshape(3, 3)
    u = (nodes(4) @ G.T + [1.0, -2.0, 0.5]).ravel()
    A = problems.elasticity(4, young=young, poisson=poisson, clamped=False)
    strain = (G + G.T) / 2
    shear = young / (2 * (1 + poisson))
    lame = young * poisson / ((1 + poisson) * (1 - 2 * poisson))
    energy = lame * np.trace(strain) ** 2 + 2 * shear * (strain**2).sum()
    np.testing.assert_allclose(u @ (A @ u), energy, rtol=1e-10, atol=1e-11 * young)


def test_only_rigid_motions_cost_nothing():
    eigenvalues = np.linalg.eigvalsh(problems.elasticity(3, clamped=False).toarray())
    assert (abs(eigenvalues) < 1e-12).sum() == 6


def test_a_clamped_cube_is_positive_definite():
    A = problems.elasticity(4)
    assert np.linalg.eigvalsh(A.toarray()).min() > 1e-4
    fixed = A[: 3 * 16].toarray()
    np.testing.assert_array_equal(fixed, np.eye(3 * 16, A.shape[0]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 1}, "n must be an integer of at least 2, got 1"),
        ({"n": 3, "young": 0}, "young must be positive"),
        ({"n": 3, "poisson": 0.5}, "poisson must lie between"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        problems.elasticity(**arguments)
