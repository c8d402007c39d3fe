"""Preconditioners and colorings that travel: pickles, deep copies, and objects in other processes."""

from __future__ import annotations

import copy
import multiprocessing
import pickle

import numpy as np
import pytest
from graphs import grid5, spd, stencil27
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numba import cloudpickle
from scipy.sparse.linalg import LinearOperator

from mcprecond import (
    ILU0,
    PCG,
    AutoColoring,
    ClassicalAMG,
    ColorBlocks,
    MulticolorDILU,
    MulticolorGS,
    MulticolorSGS,
    SmoothedAggregation,
    color,
    gmres,
    multigrid,
    pcg,
)
from mcprecond.backends import Kernels, get_backend
from mcprecond.multigrid.named_smoothers import SMOOTHERS
from mcprecond.preconditioners.base import Preconditioner

#: joblib sends objects by cloudpickle.
WAYS = {
    "pickle": lambda M: pickle.loads(pickle.dumps(M)),
    "oldest protocol": lambda M: pickle.loads(pickle.dumps(M, protocol=2)),
    "cloudpickle": lambda M: pickle.loads(cloudpickle.dumps(M)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}
MAKERS = {
    "GS forward": lambda A, **options: MulticolorGS(A, sweep="forward", **options),
    "GS twice": lambda A, **options: MulticolorGS(A, "jpl", sweeps=2, omega=1.2, **options),
    "SGS": lambda A, **options: MulticolorSGS(A, AutoColoring(50), **options),
    "SGS of nodes": lambda A, **options: MulticolorSGS(A, block_size=2, **options),
    "DILU": lambda A, **options: MulticolorDILU(A, pivot="shift", **options),
    "ILU0": lambda A, **options: ILU0(A, coloring="greedy", **options),
    "ILU0 in row order": lambda A, **options: ILU0(A, ordering="natural", **options),
    "multigrid of nodes": lambda A, **options: SmoothedAggregation(A, block_size=2, max_coarse=20, **options),
    "classical multigrid": lambda A, **options: ClassicalAMG(A, max_coarse=20, **options),
    "K cycles": lambda A, **options: SmoothedAggregation(A, cycle="K", max_coarse=10, **options),
    "W cycles of levels of V cycles": lambda A, **options: SmoothedAggregation(
        A, max_coarse=20, **options
    ).aspreconditioner("W"),
    "adjoint of a V cycle": lambda A, **options: ClassicalAMG(A, postsweeps=0, max_coarse=20, **options).H,
    **{
        f"multigrid, {smoother}": (
            lambda A, smoother=smoother, **options: SmoothedAggregation(A, smoother=smoother, max_coarse=20, **options)
        )
        for smoother in SMOOTHERS
    },
}
#: They differ from their bases in how they are called.
OF_PYAMG = "CalledAsPyAMG", "SmoothedAggregationSolver", "RugeStubenSolver"
DTYPES = {"double": (np.float64, None), "complex": (np.complex128, None), "narrow": (np.float64, np.float32)}


def vector_for(A, to_device, seed=0):
    return to_device(np.random.default_rng(seed).uniform(-1, 1, A.shape[0]).astype(A.dtype))


def assert_same(found, expected, backend):
    np.testing.assert_array_equal(backend.to_host(found), backend.to_host(expected))


def all_classes(kind):
    return {kind} | {found for sub in kind.__subclasses__() for found in all_classes(sub)}


def test_every_public_preconditioner_is_tried(backend, to_device):
    A = to_device(spd(grid5(6)))
    tried = {type(make(A)).__name__ for make in MAKERS.values()} | {"PyAMGHierarchy"}
    public = {kind.__name__ for kind in all_classes(Preconditioner) if kind.__module__.startswith("mcprecond")}
    assert public - tried - {*OF_PYAMG} == {
        "Preconditioner",
        "Colored",
        "Factored",
        "Multigrid",
        "BuiltMultigrid",
    }


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MAKERS)
def test_what_arrives_is_the_same_operator(name, dtype, backend, to_device):
    """To the last bit, before and after an update; neither the origin nor its other copies take part in that."""
    own, stored = DTYPES[dtype]
    stored = np.complex64 if stored and own is np.complex128 else stored
    A, other = (spd(grid5(10), seed, own) for seed in range(2))
    M, again = (MAKERS[name](to_device(values), dtype=stored) for values in (A, A))
    r = vector_for(A, to_device)
    before = M @ r
    again.update(to_device(other))
    after = again @ r
    for way in ("pickle", "deepcopy"):
        arrived = WAYS[way](M)
        assert type(arrived) is type(M) and isinstance(arrived, LinearOperator)
        assert (arrived.shape, arrived.dtype, arrived.nbytes) == (M.shape, M.dtype, M.nbytes)
        for known in ("symmetric", "linear", "eisenstat_incompatibility", "choice"):
            assert getattr(arrived, known, None) == getattr(M, known, None)
        assert repr(arrived) == repr(M)
        assert_same(arrived @ r, before, backend)
        arrived.update(to_device(other))
        assert_same(arrived @ r, after, backend)
        assert_same(M @ r, before, backend)
        assert_same(WAYS[way](arrived) @ r, after, backend)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["SGS of nodes", "ILU0", "multigrid, dilu"])
def test_all_ways(name, way, backend, to_device):
    A = spd(grid5(8))
    M, r = MAKERS[name](to_device(A)), vector_for(A, to_device)
    arrived = WAYS[way](M)
    before = M @ r
    assert_same(arrived @ r, before, backend)
    M.update(to_device(spd(grid5(8), 1)))
    assert_same(arrived @ r, before, backend)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_operators_travel_at_any_time(backend, to_device, data):
    """After applications to several vectors, updates and solves, and as transposes."""
    A = spd(stencil27(4), data.draw(st.integers(0, 3)))
    M, turned = MAKERS[data.draw(st.sampled_from(sorted(MAKERS)))](to_device(A)), False
    for step in data.draw(st.lists(st.sampled_from(["apply", "columns", "update", "solve", "travel", "turn"]))):
        if step == "apply":
            M @ vector_for(A, to_device)
        elif step == "columns":
            M @ backend.xp.ones((A.shape[0], 3))
        elif step == "update" and not turned:  # that of nodes has no holes in its blocks
            A = spd(stencil27(4), 7)
            M.update(to_device(A))
        elif step == "solve" and M.symmetric:
            pcg(to_device(A), vector_for(A, to_device), M=M, maxiter=3)
        elif step == "travel":
            M = WAYS[data.draw(st.sampled_from(sorted(WAYS)))](M)
        elif step == "turn" and M.linear and M.symmetric:
            M, turned = M.T, True
    R = backend.xp.asarray(np.random.default_rng(1).uniform(-1, 1, (A.shape[0], 2)))
    assert_same(WAYS["pickle"](M) @ R, M @ R, backend)


def test_solves_take_the_same_iterations(backend, to_device):
    A = to_device(spd(grid5(30)))
    b = vector_for(A, to_device)
    for M in (MulticolorSGS(A), MulticolorDILU(A), SmoothedAggregation(A)):
        here, there = (pcg(A, b, M=operator, rtol=1e-8) for operator in (M, WAYS["pickle"](M)))
        assert here.iterations == there.iterations
        assert_same(there.x, here.x, backend)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("M", [None, "jacobi", "sgs", "multigrid", "auto"])
def test_solvers_travel_after_solves(M, way, backend, to_device):
    """What a solve keeps for the next one stays behind."""
    A = to_device(spd(grid5(20)))
    b, solver = vector_for(A, to_device), PCG(A, M)
    before = solver.solve(b, rtol=1e-8)
    arrived = WAYS[way](solver)
    for one in (arrived, solver):
        after = one.solve(b, rtol=1e-8)
        assert after.reason is before.reason and after.iterations == before.iterations
        assert_same(after.x, before.x, backend)
    if way != "copy":
        arrived.update(4 * A)
        assert_same(4 * arrived.solve(b, rtol=1e-8).x, before.x, backend)
        assert_same(solver.solve(b, rtol=1e-8).x, before.x, backend)


def test_hierarchies_of_pyamg_travel(backend, to_device):
    pyamg = pytest.importorskip("pyamg")
    A = grid5(20)
    M = multigrid.from_pyamg(pyamg.ruge_stuben_solver(A, max_coarse=20), device=backend.name)
    r = vector_for(A, to_device)
    for way in ("pickle", "deepcopy"):
        assert_same(WAYS[way](M) @ r, M @ r, backend)


def test_vectors_stay_where_they_were(backend):
    """An operator of SciPy that works behind the door of a device arrives as one."""
    A = spd(grid5(8))
    M = MulticolorSGS(A, device=backend.name)
    arrived, r = WAYS["pickle"](M), np.ones(64)
    assert isinstance(arrived, LinearOperator)
    assert arrived.backend.name == backend.name
    np.testing.assert_array_equal(arrived @ r, M @ r)


@pytest.mark.parametrize("way", WAYS)
def test_colorings_and_color_blocks_travel(way, backend, to_device):
    A = to_device(spd(grid5(12)))
    colors = color(A, "eb")
    arrived = WAYS[way](colors)
    assert_same(arrived.colors, colors.colors, backend)
    assert arrived.is_valid(A) and repr(arrived) == repr(colors) and arrived.report() == colors.report()
    if way != "copy":  # which shares all arrays, as copies of frozen objects may
        blocks, other = ColorBlocks(A, colors), to_device(spd(grid5(12), 1))
        moved = WAYS[way](blocks)
        moved.update(other)
        assert abs(moved.permuted() - ColorBlocks(other, colors).permuted()).max() == 0
        assert abs(blocks.permuted() - ColorBlocks(A, colors).permuted()).max() == 0


def test_a_pickle_holds_no_more_than_the_operator(backend, to_device):
    """Nothing of the workspaces, and no array twice."""
    A = to_device(spd(stencil27(12)))
    for make in (MulticolorSGS, MulticolorDILU, lambda A: SmoothedAggregation(A, smoother="chebyshev")):
        M = make(A)
        size = len(pickle.dumps(M))
        M @ backend.xp.ones((A.shape[0], 4))
        assert abs(len(pickle.dumps(M)) - size) < 200  # a cached number may have come
        assert len(pickle.dumps(WAYS["pickle"](M))) < 1.01 * size + 200  # views would have become copies


def mapped(value):
    """What joblib hands to its processes: arrays that lie in read-only memory."""
    buffers = []
    text = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(text, buffers=[memoryview(bytes(buffer.raw())) for buffer in buffers])


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_read_only_is_copied_before_an_update(name, backend, to_device):
    A, other = (spd(grid5(8), seed) for seed in range(2))
    M, r = MAKERS[name](to_device(A)), vector_for(A, to_device)
    arrived = mapped(M)
    assert_same(arrived @ r, M @ r, backend)
    with pytest.raises(ValueError, match="pattern"):
        arrived.update(to_device(A @ A))
    for values in (other, A):
        arrived.update(to_device(values))
        M.update(to_device(values))
        assert_same(arrived @ r, M @ r, backend)
    assert_same(WAYS["pickle"](arrived) @ r, M @ r, backend)


def test_color_blocks_that_are_read_only_are_copied_before_an_update(backend, to_device):
    A, other = (to_device(spd(grid5(8), seed)) for seed in range(2))
    arrived = mapped(ColorBlocks(A, "greedy"))
    assert abs(arrived.permuted() - ColorBlocks(A, "greedy").permuted()).max() == 0
    arrived.update(other)
    assert abs(arrived.permuted() - ColorBlocks(other, "greedy").permuted()).max() == 0


def test_kernels_are_found_again(backend):
    from mcprecond.sweeps.triangular import KERNELS

    assert WAYS["pickle"](KERNELS) is KERNELS
    assert WAYS["pickle"](backend) is backend
    run = WAYS["pickle"](
        Kernels({}, get_backend("cpu"), KERNELS, {"OFFSET": np.int32, "VALUE": np.float64, "STORED": np.float64})
    )
    with pytest.raises(AttributeError, match="there is no kernel 'nothing'"):
        run.nothing  # noqa: B018


def emulate_as_here(emulates):
    """Before anything arrives."""
    if emulates:
        import emulated

        emulated.pytest_configure()


def applied_there(pairs):
    """Apply what has arrived; send the results back, and the operators."""
    return [(M @ r, M) for M, r in pairs]


def test_processes_that_are_spawned(backend, to_device, pytestconfig):
    A, other = (spd(grid5(8), seed) for seed in range(2))
    r = vector_for(A, to_device)
    names = ("SGS", "ILU0", "multigrid, gauss_seidel")
    operators = [MAKERS[name](to_device(A)) for name in names]
    with multiprocessing.get_context("spawn").Pool(
        1, emulate_as_here, (pytestconfig.pluginmanager.has_plugin("emulated"),)
    ) as pool:
        returned = pool.apply(applied_there, ([(M, r) for M in operators],))
    for M, (z, back) in zip(operators, returned, strict=True):
        assert_same(z, M @ r, backend)
        for operator in (M, back):
            operator.update(to_device(other))
        assert_same(back @ r, M @ r, backend)


def test_repr_says_size_colors_device_and_memory(backend, to_device):
    A = to_device(spd(grid5(16)))
    shown = {name: repr(MAKERS[name](A)) for name in ("SGS", "SGS of nodes", "ILU0", "multigrid, gauss_seidel")}
    for name, text in shown.items():
        first, *_, last = text.splitlines()
        kind = "SmoothedAggregation" if "multigrid" in name else "ILU0" if name == "ILU0" else "MulticolorSGS"
        assert first == f"<{kind} of 256 x 256, float64, on the {backend.name}"
        assert last.endswith("B>") and len(text.splitlines()) == 3
    assert "colors by" in shown["SGS"] and "nodes of 2 unknowns" in shown["SGS of nodes"]
    assert "levels, greedy order" in shown["ILU0"]
    assert "levels, " in shown["multigrid, gauss_seidel"]


@pytest.mark.parametrize("way", WAYS)
def test_results_travel_with_scipys_incomplete_factors(way):
    """SciPy's object cannot be pickled, so that a copy factorizes A again."""
    A = grid5(12)
    result = gmres(A, np.ones(144), M="auto", rtol=1e-9)
    assert [stage.name for stage in result.stages] == ["spilu"]
    arrived = WAYS[way](result)
    b = np.random.default_rng(0).standard_normal(144)
    np.testing.assert_array_equal(arrived.M @ b, result.M @ b)
    np.testing.assert_array_equal(arrived.M.rmatvec(b), result.M.rmatvec(b))
    assert (arrived.reason, arrived.backward_error) == (result.reason, result.backward_error)
