"""Row offsets of 64 bits, as from 2^31 entries on: forced on small matrices, everything gives the same as with 32."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from graphs import spd, stencil27

from mcprecond import COLORINGS, ILU0, MulticolorDILU, MulticolorGS, MulticolorSGS, color, pcg, problems
from mcprecond.coloring import Graph
from mcprecond.multigrid import ClassicalAMG, SmoothedAggregation
from mcprecond.problems import graphs

FIRST_FIT = {"jp", "greedy", "ecl_gc", "jpl", "cc", "is_minmax", "is_hash", "is_reduce"}
FIRST_FIT |= {"graphblas_is", "graphblas_mis", "graphblas_jp"}

KINDS = {
    "SGS": lambda A: MulticolorSGS(A, "ecl_gc"),
    "SSOR, two sweeps": lambda A: MulticolorSGS(A, "ecl_gc", omega=1.2, sweeps=2),
    "backward": lambda A: MulticolorGS(A, "ecl_gc", sweep="backward"),
    "float32": lambda A: MulticolorSGS(A, "ecl_gc", dtype="float32"),
    "blocks": lambda A: MulticolorSGS(A, "ecl_gc", block_size=3),
    "DILU": lambda A: MulticolorDILU(A, "ecl_gc"),
    "ILU0": lambda A: ILU0(A, coloring="ecl_gc"),
    "ILU0 natural": lambda A: ILU0(A, ordering="natural"),
    "auto": lambda A: MulticolorSGS(A, "auto"),
}


@pytest.fixture
def widened(monkeypatch):
    """A function after whose call row offsets have 64 bits."""
    return lambda: monkeypatch.setattr("mcprecond.backends.kernels.INT32_LIMIT", 1)


@pytest.mark.nightly
@pytest.mark.parametrize(("build", "size"), [(graphs.rmat, 8), (graphs.grid2d, 20)])
@pytest.mark.parametrize("method", COLORINGS)
def test_colorings(method, build, size, to_device, backend, widened):
    A = to_device(build(size))
    narrow = color(A, method)
    widened()
    assert Graph.of(A).indptr.dtype == np.int64
    wide = color(A, method)
    assert wide.is_valid(A)
    if method in FIRST_FIT:
        np.testing.assert_array_equal(backend.to_host(wide.colors), backend.to_host(narrow.colors))


@pytest.mark.nightly
@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_preconditioners_and_solvers(kind, listed, to_device, backend, widened, listed_columns):
    if listed:
        listed_columns()
    A = to_device(spd(stencil27(6)))
    b = to_device(np.random.default_rng(0).uniform(-1, 1, 216))
    M = KINDS[kind](A)
    if kind == "auto":  # not the same in every run where "eb" is chosen
        M = MulticolorSGS(A, M.coloring)
    expected, solved = backend.to_host(M @ b), None
    if M.symmetric:
        solved = [backend.to_host(pcg(A, b, M=m, rtol=1e-10, form=f).x) for m, f in forms(M)]
    widened()
    wide = MulticolorSGS(A, M.coloring) if kind == "auto" else KINDS[kind](A)
    assert wide.blocks.lower.indptr.dtype == np.int64 and M.blocks.lower.indptr.dtype == np.int32
    np.testing.assert_array_equal(backend.to_host(wide @ b), expected)
    if solved:
        for (m, form), x in zip(forms(wide), solved, strict=True):
            np.testing.assert_allclose(backend.to_host(pcg(A, b, M=m, rtol=1e-10, form=form).x), x, rtol=0, atol=1e-12)
    wide.update(2 * A)
    np.testing.assert_allclose(backend.to_host(wide @ b), expected / 2, rtol=1e-6)


def forms(M):
    return [(M, "plain"), (None, "plain")] + (
        []
        if getattr(M, "eisenstat_incompatibility", True) or M.blocks.lower.values.dtype != M.dtype
        else [(M, "eisenstat")]
    )


def test_smoothing(to_device, backend, widened):
    A = to_device(spd(stencil27(5)))
    x, b = (to_device(np.random.default_rng(k).uniform(-1, 1, 125)) for k in range(2))
    narrow = MulticolorGS(A, "ecl_gc", sweeps=2).smooth(x, b)
    widened()
    wide = MulticolorGS(A, "ecl_gc", sweeps=2).smooth(x, b)
    np.testing.assert_array_equal(backend.to_host(wide), backend.to_host(narrow))


@pytest.mark.nightly
@pytest.mark.parametrize("limit", [1, 500, 9000])
@pytest.mark.parametrize(
    ("matrix", "build"),
    [
        (lambda: problems.laplacian((45, 45)), SmoothedAggregation),
        (lambda: problems.elasticity(4), partial(SmoothedAggregation, block_size=3)),
        (lambda: spd(graphs.rmat(9)), ClassicalAMG),
    ],
    ids=["grid", "blocks", "graph"],
)
def test_hierarchies(matrix, build, limit, to_device, backend, monkeypatch):
    """Only some of the row offsets have 64 bits where the limit is between the sizes of levels and transfers."""
    monkeypatch.setattr("mcprecond.multigrid.products.LEAST_ROOM", 1)
    # The kernel for small levels takes all offsets in one dtype.
    monkeypatch.setattr("mcprecond.multigrid.small_levels.MOST_ROWS", -1)
    A = matrix()
    b, found = to_device(np.random.default_rng(0).uniform(-1, 1, A.shape[0])), []
    for _ in range(2):
        M = build(to_device(A), max_coarse=10)
        found.append(backend.to_host(M @ b))
        M.update(to_device(3 * A))
        found.append(backend.to_host(M @ b))
        monkeypatch.setattr("mcprecond.backends.kernels.INT32_LIMIT", limit)
    np.testing.assert_array_equal(found[:2], found[2:])


def test_assembly_and_the_way_to_the_solution(device, widened):
    narrow = problems.fenl(4, device=device)
    T, _ = narrow.solve(linear_solver=lambda J, r: pcg(J, r, M=MulticolorSGS(J, "ecl_gc"), rtol=1e-10))
    widened()
    wide = problems.fenl(4, device=device)
    assert wide._indptr.dtype == np.int64
    same, _ = wide.solve(linear_solver=lambda J, r: pcg(J, r, M=MulticolorSGS(J, "ecl_gc"), rtol=1e-10))
    to_host = wide.backend.to_host
    np.testing.assert_allclose(to_host(same), to_host(T), rtol=1e-9)
