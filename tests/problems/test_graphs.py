"""Graph families: symmetric, simple, reproducible, and what their documentation says they are."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import grid5, stencil27
from scipy.spatial import ConvexHull

from mcprecond import problems
from mcprecond.backends.team import get_threads, set_threads
from mcprecond.problems import graphs
from mcprecond.problems.graphs import networks
from mcprecond.problems.graphs.points import random_points

WITH_DIAGONAL = {
    "fenl": lambda: graphs.fenl(4),
    "grid2d-5": lambda: graphs.grid2d(7),
    "grid2d-9": lambda: graphs.grid2d(7, 9),
    "grid3d-7": lambda: graphs.grid3d(5),
    "grid3d-27": lambda: graphs.grid3d(5, points=27),
    "elasticity": lambda: graphs.elasticity_pattern(4),
    "tetrahedra": lambda: graphs.elasticity_pattern(4, "tetrahedra"),
}
SEEDED = {
    "rmat": lambda seed=0: graphs.rmat(9, seed=seed),
    "rmat odd": lambda seed=0: graphs.rmat(5, edges=300, seed=seed, probabilities=[0.25] * 4),
    "delaunay": lambda seed=0: graphs.delaunay(400, seed),
}
SIMPLE = SEEDED | {
    "rmat without edges": lambda: graphs.rmat(3, edges=0),
    "rmat of one entry": lambda: graphs.rmat(3, probabilities=(0, 1, 0, 0)),
    "triangle": lambda: graphs.delaunay(3),
}


def same(A, B) -> bool:
    """Equal to the last bit, in the same order."""
    return all(np.array_equal(getattr(A, name), getattr(B, name)) for name in ("indptr", "indices", "data"))


@pytest.mark.parametrize("name", WITH_DIAGONAL | SIMPLE)
def test_form(name):
    A = (WITH_DIAGONAL | SIMPLE)[name]()
    assert isinstance(A, sp.csr_matrix) and A.shape[0] == A.shape[1]
    assert A.dtype == np.float64 and A.indices.dtype == A.indptr.dtype == np.int32
    assert A.indptr[0] == 0 and A.indptr[-1] == len(A.indices) == len(A.data)
    assert all((np.diff(A.indices[a:b]) > 0).all() for a, b in zip(A.indptr, A.indptr[1:], strict=False))
    # A transposed CSR matrix is in order if the matrix is: the very same arrays.
    assert same(A, A.T.tocsr())
    if name in SIMPLE:
        assert (A.data == 1).all() and not A.diagonal().any()
    else:
        assert A.diagonal().all()


@pytest.mark.parametrize("name", SEEDED)
def test_a_seed_gives_one_graph(name):
    make = SEEDED[name]
    assert same(make(), make(seed=0)) and same(make(seed=2**40), make(seed=2**40))
    assert not same(make(), make(seed=1)) and not same(make(), make(seed=2**40))


@pytest.mark.parametrize("name", ["rmat", "delaunay"])
def test_any_number_of_threads_gives_the_same_graph(name):
    expected, threads = SEEDED[name](), get_threads()
    set_threads(1)
    try:
        assert same(SEEDED[name](), expected)
    finally:
        set_threads(threads)


def test_fenl_is_the_pattern_of_the_jacobian():
    problem = problems.fenl(4)
    J, A = problem.jacobian(problem.initial()), graphs.fenl(4)
    np.testing.assert_array_equal(A.indptr, J.indptr)
    np.testing.assert_array_equal(A.indices, J.indices)
    assert A.shape == (125, 125) and A.nnz == 13**3 and (A.data == 1).all()


@pytest.mark.parametrize(
    ("make", "nnz", "diagonal"),
    [
        (lambda: graphs.grid2d(9), 5 * 81 - 36, 4),
        (lambda: graphs.grid2d(9, 9), 25**2, 8),
        (lambda: graphs.grid3d(6), 7 * 216 - 216, 6),
        (lambda: graphs.grid3d(6, 27), 16**3, 26),
        (lambda: graphs.grid2d(1), 1, 4),
    ],
)
def test_grids_are_positive_definite_laplacians(make, nnz, diagonal):
    A = make()
    assert A.nnz == nnz
    assert (A.diagonal() == diagonal).all()
    assert (A.data[A.data != diagonal] == -1).all()
    assert A.getnnz(axis=1).max() == min(diagonal + 1, nnz)
    assert np.linalg.eigvalsh(A.toarray()).min() > 0


def test_grids_against_kronecker_products():
    assert not (graphs.grid2d(9) != grid5(9)).nnz
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4))
    assert not (graphs.grid3d(4) != sp.kron(grid5(4), sp.eye_array(4)) + sp.kron(sp.eye_array(16), line)).nnz
    assert not (abs(graphs.grid3d(4, 27)).sign() != stencil27(4)).nnz


def test_elasticity_rows_are_full_blocks():
    A = graphs.elasticity_pattern(4)
    assert same(A, sp.csr_matrix(sp.kron(stencil27(4), np.ones((3, 3)), "csr")))
    assert A.shape == (192, 192) and A.nnz == 9 * 10**3
    x = np.arange(192) // 3 % 4
    y, z = np.arange(192) // 12 % 4, np.arange(192) // 48
    inside = np.all([(c > 0) & (c < 3) for c in (x, y, z)], axis=0)
    assert (A.getnnz(axis=1)[inside] == 81).all() and A.getnnz(axis=1)[~inside].max() < 81


def test_rmat_has_a_heavy_tail():
    A = graphs.rmat(12)
    degrees = A.getnnz(axis=1)
    assert 0.5 * 16 * 2**12 < A.nnz < 16 * 2**12
    assert degrees.max() > 20 * degrees.mean() and np.median(degrees) < degrees.mean() / 2
    uniform = graphs.rmat(12, probabilities=(0.25,) * 4).getnnz(axis=1)
    assert uniform.max() < 3 * uniform.mean()


def test_rmat_draws_the_quarters_with_their_probabilities():
    p = np.array([0.1, 0.2, 0.3, 0.4])
    rows, columns = np.empty(20000, np.int32), np.empty(20000, np.int32)
    networks.draw_edges(0, 20000, 7, 3, np.rint(np.cumsum(p)[:3] * 2**32).astype(np.uint64), rows, columns)
    for bit in range(7):
        quarter = 2 * (rows >> bit & 1) + (columns >> bit & 1)
        # Four standard deviations are 0.014.
        np.testing.assert_allclose(np.bincount(quarter, minlength=4) / 20000, p, atol=0.015)


def test_points_are_sorted_by_cell_and_the_cells_do_not_move_them():
    points = random_points(1000, 8, 5)
    x, y = (points * 8).astype(int).T
    assert (np.diff(x + 8 * y) >= 0).all()
    other = random_points(1000, 3, 5)
    np.testing.assert_array_equal(np.sort(points, axis=0), np.sort(other, axis=0))


def test_delaunay_is_a_triangulation():
    n = 400
    A = graphs.delaunay(n, 2)
    hull = ConvexHull(random_points(n, 20, 2)).simplices
    # Euler's formula for a triangulated convex polygon.
    assert A.nnz // 2 == 3 * n - 3 - len(hull)
    assert (A[hull[:, 0], hull[:, 1]] == 1).all()
    assert A.getnnz(axis=1).min() >= 2


#: By the name of the argument: generators of one size. What follows are no sizes for any of them.
SIZES = [
    ("n", graphs.fenl),
    ("n", graphs.grid2d),
    ("n", graphs.grid3d),
    ("n", graphs.elasticity_pattern),
    ("scale", graphs.rmat),
    ("n", partial(random_points, cells=3)),
    ("cells", partial(random_points, 5)),
    ("n", graphs.delaunay),
]
NO_SIZES = [-1, 10**30, 2.0, np.nan, np.inf, 2j, True, None, "4", b"4", [4], np.array([4, 4]), object()]


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("n", lambda: graphs.fenl(0)),
        ("n", lambda: graphs.fenl(2.5)),
        ("n", lambda: graphs.grid2d(-1)),
        ("points", lambda: graphs.grid2d(4, 7)),
        ("n", lambda: graphs.grid3d(True)),
        ("points", lambda: graphs.grid3d(4, 9)),
        ("n", lambda: graphs.elasticity_pattern("4")),
        ("scale", lambda: graphs.rmat(0)),
        ("scale", lambda: graphs.rmat(31)),
        ("edges", lambda: graphs.rmat(4, -1)),
        ("seed", lambda: graphs.rmat(4, seed=-1)),
        ("seed", lambda: graphs.delaunay(4, seed=0.5)),
        ("probabilities", lambda: graphs.rmat(4, probabilities=(0.5, 0.5))),
        ("probabilities", lambda: graphs.rmat(4, probabilities=(0.5, 0.5, 0.5, -0.5))),
        ("probabilities", lambda: graphs.rmat(4, probabilities=(0.1, 0.1, 0.1, 0.1))),
        ("probabilities", lambda: graphs.rmat(4, probabilities="abcd")),
        ("probabilities", lambda: graphs.rmat(4, probabilities=(np.nan,) * 4)),
        ("cells", lambda: random_points(10, 0)),
        ("n", lambda: graphs.delaunay(2)),
        *((name, partial(call, value)) for name, call in SIZES for value in NO_SIZES),
        ("points", lambda: graphs.grid2d(4, "5")),
        ("points", lambda: graphs.grid3d(4, 7.0)),
        ("elements", lambda: graphs.elasticity_pattern(3, None)),
        ("elements", lambda: graphs.elasticity_pattern(3, ["hexahedra"])),
        ("seed", lambda: random_points(9, 2, None)),
        ("edges", lambda: graphs.rmat(4, 2.5)),
        ("probabilities", lambda: graphs.rmat(4, probabilities=None)),
    ],
)
def test_bad_input_is_named(name, call):
    with pytest.raises((TypeError, ValueError), match=f"^{name} must be"):
        call()
