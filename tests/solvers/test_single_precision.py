"""CG in single precision to any tolerance that double precision reaches: reliable updates."""

from __future__ import annotations

import pickle
import time

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import grid5, patterns, random_values, spd, stencil27
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from mcprecond import ILU0, PCG, MulticolorDILU, MulticolorSGS, SmoothedAggregation, pcg
from mcprecond.backends import get_backend
from mcprecond.problems.elasticity import elasticity
from mcprecond.solvers import Reason, reliable
from mcprecond.solvers.eisenstat import EisenstatIteration
from mcprecond.solvers.reliable import ReliableUpdates

METHODS = [
    MulticolorSGS,
    MulticolorDILU,
    lambda A, **options: MulticolorSGS(A, omega=1.2, **options),
]


def relative_residual(A, b, x) -> float:
    return float(np.linalg.norm(b - A @ x) / np.linalg.norm(b))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtypes", [(np.float64, np.float32), (np.complex128, np.complex64)])
@pytest.mark.parametrize("rtol", [1e-3, 1e-8, 1e-12])
def test_iterations_are_those_of_double_precision(method, dtypes, rtol, backend, to_device):
    A = spd(stencil27(12), dtype=dtypes[0])
    b = A @ random_values(np.random.default_rng(0), A.shape[0], dtypes[0])
    on_device, b_on_device = to_device(A), to_device(b)
    wide = pcg(on_device, b_on_device, M=method(on_device), rtol=rtol)
    narrow = pcg(on_device, b_on_device, M=method(on_device, dtype=dtypes[1]), rtol=rtol)
    assert narrow.reason is Reason.CONVERGED and narrow.x.dtype == dtypes[0]
    assert [stage.name for stage in narrow.stages] == [np.dtype(dtypes[1]).name]
    assert relative_residual(A, b, backend.to_host(narrow.x)) <= rtol
    assert narrow.iterations <= 1.1 * wide.iterations + 1
    assert len(narrow.residuals) == narrow.iterations + 1
    np.testing.assert_allclose(narrow.residual_norm, np.linalg.norm(b - A @ backend.to_host(narrow.x)), rtol=0.1)


@pytest.mark.parametrize("options", [{"coloring": "greedy"}, {"coloring": "greedy", "block_size": 3}])
def test_nodes_of_several_unknowns_and_first_colors(options, backend, to_device):
    """In points the first color is kept apart, which an update has to respect."""
    A = elasticity(8)
    b = A @ np.random.default_rng(0).uniform(-1, 1, A.shape[0])
    on_device, b_on_device = to_device(A), to_device(b)
    wide, narrow = (
        pcg(on_device, b_on_device, M=MulticolorSGS(on_device, dtype=dtype, **options), rtol=1e-8)
        for dtype in (None, "float32")
    )
    assert narrow.reason is Reason.CONVERGED and narrow.iterations <= 1.1 * wide.iterations
    assert relative_residual(A, b, backend.to_host(narrow.x)) <= 1e-8


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtypes", [(np.float32, np.float64), (np.complex64, np.complex128)])
def test_triangles_may_be_wider_than_A(method, dtypes, backend, to_device):
    """M keeps its pivots in the dtype of A, so that it does not have all digits of A in the wider dtype."""
    narrow, wide = dtypes
    A = spd(grid5(20), dtype=narrow)
    b = random_values(np.random.default_rng(0), A.shape[0], wide)
    result = pcg(to_device(A), to_device(b), M=method(to_device(A), dtype=wide), rtol=1e-12)
    assert result.converged and relative_residual(A.astype(wide), b, backend.to_host(result.x)) <= 1e-12


def test_the_direction_is_kept(backend, to_device):
    """A restart at every update would take half as many iterations again."""
    A = grid5(150)
    b = A @ np.random.default_rng(0).uniform(-1, 1, A.shape[0])
    on_device, b_on_device = to_device(A), to_device(b)
    wide, narrow = (
        pcg(on_device, b_on_device, M=MulticolorSGS(on_device, "greedy", dtype=dtype), rtol=1e-11)
        for dtype in (None, "float32")
    )
    assert wide.iterations <= narrow.iterations <= 1.05 * wide.iterations


def ill_conditioned(seed: int, n: int, condition: float, kind: int) -> tuple[sp.csr_matrix, np.ndarray]:
    rng = np.random.default_rng(seed)
    if kind == 0:  # a few dense blocks, with eigenvalues in geometric progression
        Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
        A = Q @ np.diag(np.geomspace(1, condition, n)) @ Q.T
        A = sp.csr_matrix((A + A.T) / 2)
    elif kind == 1:  # a beam
        T = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], (n, n))
        A = sp.csr_matrix(T @ T + sp.identity(n) / condition)
    else:  # a grid in units that differ
        A = grid5(int(np.sqrt(n)) + 2) + 1e-3 * sp.identity((int(np.sqrt(n)) + 2) ** 2)
        units = sp.diags(condition ** rng.uniform(-0.25, 0.25, A.shape[0]))
        A = sp.csr_matrix(units @ A @ units)
    A = A * 10.0 ** rng.integers(-6, 7)
    return A, [rng.standard_normal(A.shape[0]), np.ones(A.shape[0]), A @ rng.standard_normal(A.shape[0])][seed % 3]


@given(
    seed=st.integers(0, 99),
    n=st.integers(3, 60),
    condition=st.floats(0, 12).map(lambda x: 10**x),
    kind=st.integers(0, 2),
    method=st.sampled_from(METHODS),
    rtol=st.sampled_from([1e-6, 1e-10]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_double_precision_solves_is_solved(seed, n, condition, kind, method, rtol, backend, to_device):
    A, b = ill_conditioned(seed, n, condition, kind)
    on_device, b_on_device = to_device(A), to_device(b)
    try:
        wide_M, narrow_M = method(on_device), method(on_device, dtype="float32")
    except ValueError:  # pivots or coarse diagonals cancel
        reject()
    wide = pcg(on_device, b_on_device, M=wide_M, rtol=rtol)
    narrow = pcg(on_device, b_on_device, M=narrow_M, rtol=rtol)
    assert narrow.converged or not wide.converged
    if narrow.converged:
        assert relative_residual(A, b, backend.to_host(narrow.x)) <= rtol * (1 + 1e-6)


def test_double_precision_takes_over_and_the_reason_says_so(backend, to_device):
    A, b = ill_conditioned(0, 50, 1e7, 0)
    on_device, seen = to_device(A), []
    M = MulticolorSGS(on_device, dtype="float32")
    solver = PCG(on_device, M)
    result = solver.solve(to_device(b), rtol=1e-6, progress=lambda count, norm: seen.append(count))
    assert result.converged and result.info == 0 and result.reason is Reason.CONVERGED_IN_DOUBLE
    assert "double precision took over" in result.reason.value
    assert [stage.name for stage in result.stages] == ["float32", "float64"]
    assert sum(stage.iterations for stage in result.stages) == result.iterations == len(result.residuals) - 1
    assert seen == sorted(seen) and seen[-1] == result.iterations
    assert relative_residual(A, b, backend.to_host(result.x)) <= 1e-6
    few = solver.solve(to_device(b), rtol=1e-6, maxiter=3)
    assert few.iterations == 3 and few.reason is Reason.MAX_ITERATIONS
    again = pcg(on_device, to_device(b), M=pickle.loads(pickle.dumps(M)), rtol=1e-6)
    assert again.reason is Reason.CONVERGED_IN_DOUBLE


@pytest.mark.parametrize(
    "method",
    [
        lambda A: MulticolorDILU(A, dtype="float32").T,
        lambda A: MulticolorSGS(A, "greedy", omega=1.3, dtype="float32"),
    ],
)
def test_it_takes_over_from_any_preconditioner(method, backend, to_device):
    A, b = ill_conditioned(1, 200, 1e12, 1)
    result = pcg(to_device(A), to_device(b), M=method(to_device(A)), rtol=1e-6)
    assert result.reason is Reason.CONVERGED_IN_DOUBLE
    assert relative_residual(A, b, backend.to_host(result.x)) <= 1e-6


@given(A=patterns(), method=st.sampled_from(METHODS))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_pattern(A, method, backend, to_device):
    A = spd(A)
    b = A @ random_values(np.random.default_rng(0), A.shape[0])
    result = pcg(to_device(A), to_device(b), M=method(to_device(A), dtype="float32"), rtol=1e-9)
    assert result.converged
    assert np.linalg.norm(b - A @ backend.to_host(result.x)) <= 1e-9 * np.linalg.norm(b) * (1 + 1e-6)


@pytest.mark.parametrize("unit", [1e-150, 1e-20, 1e20, 1e150])
def test_any_unit_of_b(unit, backend, to_device):
    A = grid5(20)
    b = unit * (A @ np.random.default_rng(0).uniform(-1, 1, 400))
    result = pcg(to_device(A), to_device(b), M=MulticolorSGS(to_device(A), dtype="float32"), rtol=1e-9)
    assert result.reason is Reason.CONVERGED
    assert relative_residual(A, b / unit, backend.to_host(result.x) / unit) <= 1e-9 * (1 + 1e-6)


def test_guesses_callbacks_and_limits(backend, to_device):
    A = grid5(30)
    solution = np.random.default_rng(0).uniform(-1, 1, 900)
    b, on_device, seen = A @ solution, to_device(A), []
    M = MulticolorSGS(on_device, "greedy", dtype="float32")
    guess = to_device(solution + 1e-3)
    result = pcg(on_device, to_device(b), guess, M=M, rtol=1e-10, callback=lambda x: seen.append(backend.to_host(x)))
    assert result.reason is Reason.CONVERGED and len(seen) == result.iterations
    residuals = [np.linalg.norm(b - A @ x) for x in seen]
    np.testing.assert_allclose(residuals[:-1], result.residuals[1:-1], rtol=1e-2)
    assert pcg(on_device, to_device(b), to_device(solution), M=M, rtol=1e-8).iterations == 0
    few = pcg(on_device, to_device(b), M=M, rtol=1e-10, maxiter=7)
    assert few.iterations == 7 and few.reason is Reason.MAX_ITERATIONS
    np.testing.assert_allclose(few.residual_norm, few.residuals[-1], rtol=1e-4)
    assert pcg(on_device, to_device(0 * b), M=M).iterations == 0


def test_a_system_in_double_precision_with_a_matrix_in_single(backend, to_device):
    A = spd(stencil27(8)).astype(np.float32)
    b = A.astype(np.float64) @ np.random.default_rng(0).uniform(-1, 1, 512)
    for method in METHODS:
        result = pcg(to_device(A), to_device(b), M=method(to_device(A)), rtol=1e-12)
        assert result.reason is Reason.CONVERGED and result.x.dtype == np.float64
        assert [stage.name for stage in result.stages] == ["float32"]
        assert relative_residual(A.astype(np.float64), b, backend.to_host(result.x)) <= 1e-12 * (1 + 1e-6)


@given(
    now=st.one_of(st.floats(0, 1e3), st.just(np.inf)),
    before=st.one_of(st.floats(1e-6, 1e3), st.just(np.inf)),
    limit=st.floats(0, 1.0),
    last=st.floats(0, 30.0),
    exponent=st.integers(-20, 20),
)
def test_when_the_next_update_is_due(now, before, limit, last, exponent):
    """It ends at the limit, or where the norm has hardly fallen; otherwise the norm falls by 10 to 1000 until then."""
    scale = 2.0**exponent
    run = get_backend("cpu").kernels(reliable.KERNELS, VALUE=np.dtype("d"), STORED=np.dtype("f"))
    of_system, scalars, history = np.zeros(12), np.full(12, 2.0), np.zeros(reliable.HISTORY)
    control, settings_ = np.zeros(4, np.int64), np.zeros(4)
    run.begin_updates(1, limit, now, scale, 9, of_system, settings_, control)
    settings_[reliable.BEFORE] = before
    history[control[reliable.ITERATION]] = last * scale
    run.set_limit(1, of_system, settings_, control, scalars, history)
    ends = now <= limit or now > before / reliable.LEFT_AT_MOST
    state = reliable.NAN if now == np.inf else reliable.EXHAUSTED if ends else reliable.RUNNING
    assert control[reliable.STATE] == state and control[reliable.MAXITER] == 9
    if state == reliable.RUNNING:
        due = scalars[reliable.TOLERANCE] / scale**2
        most, least = (max(limit, now / factor**2) for factor in (reliable.LEAST, reliable.MOST))
        assert least * (1 - 1e-12) <= due <= most * (1 + 1e-12) and settings_[reliable.BEFORE] == now
        assert (scalars[reliable.RZ] == 0) == (now > reliable.ANOTHER * last**2)


@pytest.mark.parametrize("exponent", [-112, -60, 60, 112])
def test_units_of_A_near_the_ends_of_single_precision_do_not_matter(exponent, backend, to_device):
    """Values of A have room there, but inv(A) r, or the steps, might not."""
    A, b = grid5(8), np.random.default_rng(0).uniform(-1, 1, 64)
    plain, other = (
        pcg(to_device(unit * A), to_device(b), M=MulticolorSGS(to_device(unit * A), dtype="float32"), rtol=1e-12)
        for unit in (1.0, 2.0**exponent)
    )
    assert other.converged and other.iterations == plain.iterations
    # On a GPU sweeps store their vectors in single precision, too, and the last residuals differed by 0.1 % there.
    rtol = 1e-2 if backend.name == "gpu" else 0
    np.testing.assert_allclose(other.residuals, plain.residuals, rtol=rtol)


def test_the_setup_of_what_takes_over_counts(backend, to_device, monkeypatch):
    """The clock stands, but for the hour in which M is built in double precision."""
    A, b = ill_conditioned(0, 6, 1e7, 0)
    M, now, built = MulticolorSGS(to_device(A), dtype="float32"), [1.0], MulticolorSGS.built_for

    def slowly(self, *args, **options):
        now[0] += 3600
        return built(self, *args, **options)

    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(MulticolorSGS, "built_for", slowly)
    result = pcg(to_device(A), to_device(b), M=M, rtol=1e-6)
    assert result.reason is Reason.CONVERGED_IN_DOUBLE
    assert (result.setup_seconds, result.solve_seconds) == (3600, 0)


def test_causes_are_found_all_the_same(backend, to_device):
    A = grid5(20).tolil()
    A[3, 2] = 0.5
    A = to_device(A.tocsr())
    b = to_device(np.ones(400))
    result = pcg(A, b, M=MulticolorSGS(A, dtype="float32"), rtol=1e-14, maxiter=5)
    assert result.reason is Reason.UNSYMMETRIC_A
    ring = sp.diags([-1.0, -1.0, 2.0, -1.0, -1.0], [-49, -1, 0, 1, 49], (50, 50)).tocsr()
    b = np.arange(50.0)
    on_device = to_device(ring)
    result = pcg(on_device, to_device(b), M=MulticolorSGS(on_device, dtype="float32"), rtol=1e-8)
    assert result.reason is Reason.INCONSISTENT
    result = pcg(on_device, to_device(b - b.mean()), M=MulticolorSGS(on_device, dtype="float32"), rtol=1e-8)
    assert result.converged
    M = MulticolorSGS(on_device, dtype="float32")
    assert pcg(on_device, to_device(b), M=M, rtol=1e-8, nullspace="constant").converged


def test_a_solver_is_used_again_and_takes_new_values(backend, to_device):
    A = spd(stencil27(8))
    solver = PCG(on_device := to_device(A), M := MulticolorSGS(on_device, dtype="float32"))
    b = A @ np.random.default_rng(0).uniform(-1, 1, 512)
    first, second = (solver.solve(to_device(b), rtol=1e-10) for _ in range(2))
    assert np.array_equal(backend.to_host(first.x), backend.to_host(second.x))
    on_device.data[...] *= 3
    M.update(on_device)
    third = solver.solve(to_device(b), rtol=1e-10)
    np.testing.assert_allclose(3 * backend.to_host(third.x), backend.to_host(first.x), rtol=1e-7, atol=1e-8)


def test_which_iteration_runs(backend, to_device, monkeypatch):
    used: list[str] = []
    for kind in (ReliableUpdates, EisenstatIteration):
        begin = lambda self, old=kind.begin: (used.append(type(self)), old(self))  # noqa: E731
        monkeypatch.setattr(kind, "begin", begin)
    A, b = to_device(grid5(12)), to_device(grid5(12) @ np.ones(144))
    pcg(A, b, M=MulticolorSGS(A, dtype="float32"))
    assert used == [ReliableUpdates, EisenstatIteration]
    del used[:]
    pcg(A, b, M=SmoothedAggregation(A, dtype="float32", max_coarse=20))
    pcg(A, b, M=ILU0(A, ordering="natural", dtype="float32"), form="plain")
    pcg(A, b, M=MulticolorSGS(A, sweeps=2, dtype="float32"))
    pcg(A, b, M=MulticolorSGS(A, dtype="float32"), form="plain")
    pcg(A, b - b.mean(), M=MulticolorSGS(A, dtype="float32"), maxiter=3, form="plain")
    assert not used
