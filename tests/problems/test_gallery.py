"""PyAMG's gallery: what comes through is its matrix, in our form."""

import sys

import numpy as np
import pytest

from mcprecond import MulticolorSGS, pcg, problems


@pytest.mark.parametrize(
    ("name", "arguments", "options"),
    [
        ("poisson", ((7, 9),), {}),
        ("poisson", ((4, 5, 3),), {"format": "coo"}),
        ("linear_elasticity", ((4, 5),), {}),
        ("advection_2d", ((5, 5),), {}),
        ("load_example", ("airfoil",), {}),
    ],
)
def test_the_matrix_is_theirs(name, arguments, options):
    import pyamg.gallery

    theirs = getattr(pyamg.gallery, name)(*arguments, **options)
    theirs = theirs["A"] if isinstance(theirs, dict) else theirs[0] if isinstance(theirs, tuple) else theirs
    ours = problems.gallery(name, *arguments, **options)
    assert (ours.format, ours.dtype, ours.has_canonical_format) == ("csr", np.float64, True)
    assert ours.shape == theirs.shape
    assert abs(ours - theirs.tocsr()).max() == 0


def test_complex_matrices_stay_so():
    A = problems.gallery("gauge_laplacian", 4)
    assert A.dtype == np.complex128 and A.imag.nnz > 0
    assert abs(A - A.conj().T).max() < 1e-15


def test_it_can_be_solved():
    A = problems.gallery("linear_elasticity", (8, 8))
    b = A @ np.random.default_rng(0).standard_normal(A.shape[0])
    assert pcg(A, b, M=MulticolorSGS(A, "greedy")).converged


@pytest.mark.parametrize("name", ["ising", "__name__", "elasticity", 5])
def test_unknown_names_are_refused(name):
    with pytest.raises(ValueError, match=r"gallery has no function .*poisson"):
        problems.gallery(name)


def test_what_is_no_matrix_is_refused():
    with pytest.raises(ValueError, match="diffusion_stencil_2d makes no sparse matrix but ndarray"):
        problems.gallery("diffusion_stencil_2d")


def test_without_pyamg_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyamg", None)
    with pytest.raises(ImportError, match=r"from a clone: pip install '\.\[pyamg\]'"):
        problems.gallery("poisson", (3, 3))
